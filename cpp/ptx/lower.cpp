#include "ptx/lower/lower.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "common/error.h"
#include "ptx/expansion.h"
#include "ptx/lower/source_text.h"
#include "simt/atomics.h"
#include "simt/control_flow.h"
#include "simt/device_memory.h"
#include "trace/access.h"

namespace warpstack::ptx {
namespace {

/// Bytes of one unit of a frame: a 32-bit value of 32 lanes.
constexpr std::uint32_t unit_bytes = 128;
/// Addresses of functions, which only indirect calls read.
constexpr std::uint64_t function_address_base = 0x1000;

/// The reason why an instruction cannot run; the caller adds which one it is.
struct Unsupported {
  std::string reason;
};

[[noreturn]] void fail_local(const Module& module, const Function& function, std::uint32_t line,
                             const std::string& what) {
  throw InputError(module.file + ":" + std::to_string(line) + ": " +
                   (function.is_entry ? "kernel " : "function ") + function.name + ": " + what +
                   " bytes of local memory per thread, at most " + std::to_string(max_local_bytes) +
                   " are possible; keep large arrays in global memory");
}

/// The words of an opcode, ticked off one by one; what stays is not supported.
class Words {
 public:
  explicit Words(const Instruction& instruction)
      : words_(instruction.modifiers), taken_(instruction.modifiers.size(), false) {}

  /// True when the word is there.
  bool take(std::string_view word) {
    bool found = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == word && !taken_[i]) found = taken_[i] = true;
    }
    return found;
  }
  /// The number of the first word of the list that is there, or none.
  std::optional<std::size_t> take_one_of(std::initializer_list<std::string_view> list) {
    std::size_t i = 0;
    for (const std::string_view word : list) {
      if (take(word)) return i;
      ++i;
    }
    return std::nullopt;
  }
  /// The next type, or none.
  Type take_type() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (taken_[i]) continue;
      const Type type = type_named(words_[i]);
      if (type == Type::none) continue;
      taken_[i] = true;
      return type;
    }
    return Type::none;
  }
  Type need_type() {
    const Type type = take_type();
    if (type == Type::none) throw Unsupported{"it names no type"};
    return type;
  }
  /// The first word that is left; empty: none.
  std::string_view next() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (taken_[i]) continue;
      taken_[i] = true;
      return words_[i];
    }
    return {};
  }
  void take_all() { taken_.assign(taken_.size(), true); }
  /// Ticks off all words that begin so.
  bool take_prefix(std::string_view prefix) {
    bool found = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (!taken_[i] && words_[i].starts_with(prefix)) found = taken_[i] = true;
    }
    return found;
  }
  void finish() const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (!taken_[i]) throw Unsupported{"the modifier ." + words_[i] + " is not supported here"};
    }
  }

 private:
  const std::vector<std::string>& words_;
  std::vector<bool> taken_;
};

/// A value of a function: a virtual register, a temporary, or an immediate operand.
struct Value {
  std::uint8_t units = 1;
  bool is_predicate = false;
  bool is_constant = false;
  std::uint64_t bits = 0;  ///< of a constant
};

/// A row of the trace whose registers are still values of its function.
struct PendingRow {
  StaticInstruction instruction;
  std::vector<std::uint32_t> destinations;
  std::vector<std::uint32_t> sources;
};

OpClass arithmetic_class(Type type) {
  switch (type) {
    case Type::f64:
      return OpClass::fp64;
    case Type::f32:
    case Type::tf32:
      return OpClass::fp32;
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
      return OpClass::fp16;
    default:
      return OpClass::integer;
  }
}

/// Which functions a kernel reaches, and where its shared variables lie.
struct KernelLayout {
  std::vector<const Function*> functions;  ///< 0: the kernel
  std::map<std::string, std::uint32_t, std::less<>> function_numbers;
  std::map<std::pair<const Function*, std::string>, std::uint64_t> shared;  ///< null: of the module
};

/// Variables that an instruction names anywhere in its operands.
template <class F>
void for_each_name(const Operand& operand, F f) {
  if (operand.kind == Operand::Kind::variable) f(operand.name);
  for (const Operand& element : operand.elements) for_each_name(element, f);
}

class FunctionLowering {
 public:
  FunctionLowering(const Module& module, const SymbolTable& symbols, const KernelLayout& layout,
                   KernelProgram& program, const Function& function, bool is_kernel)
      : module_(module),
        symbols_(symbols),
        layout_(layout),
        program_(program),
        function_(function),
        is_kernel_(is_kernel) {}

  /// Registers of the trace are numbered from `first_register` on, which is moved behind them.
  ProgramFunction run(std::uint32_t& first_register) {
    result_.name = function_.name;
    for (const Instruction& instruction : function_.body) {
      result_.instructions.push_back(source_text(module_, instruction));
    }
    declare_registers();
    place_variables();
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      first_step_.push_back(static_cast<std::uint32_t>(result_.steps.size()));
      lower_instruction(i);
    }
    first_step_.push_back(static_cast<std::uint32_t>(result_.steps.size()));
    connect();
    place_values();
    add_rows(first_register);
    return std::move(result_);
  }

 private:
  // ---- values ----

  void declare_registers() {
    for (const Register& reg : function_.registers) {
      first_value_.push_back(static_cast<std::uint32_t>(values_.size()));
      for (std::uint32_t i = 0; i < reg.vector; ++i) {
        values_.push_back({.units = static_cast<std::uint8_t>(bytes_of(reg.type) == 8 ? 2 : 1),
                           .is_predicate = reg.type == Type::pred});
      }
    }
  }

  /// Registers that the current kind of instruction may use: b128 has no slot.
  std::uint32_t value_of(const Operand& operand) const {
    if (function_.registers[operand.index].type == Type::b128) {
      throw Unsupported{"128-bit registers are not supported"};
    }
    return first_value_[operand.index] + operand.component;
  }

  std::uint32_t temporary(std::uint32_t bytes, bool is_predicate = false) {
    values_.push_back(
        {.units = static_cast<std::uint8_t>(bytes == 8 ? 2 : 1), .is_predicate = is_predicate});
    return static_cast<std::uint32_t>(values_.size() - 1);
  }

  std::uint32_t constant(std::uint64_t bits, std::uint32_t bytes) {
    if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
    const auto [entry, is_new] = constants_.try_emplace({bits, bytes == 8}, 0);
    if (is_new) {
      values_.push_back({.units = static_cast<std::uint8_t>(bytes == 8 ? 2 : 1),
                         .is_constant = true,
                         .bits = bits});
      entry->second = static_cast<std::uint32_t>(values_.size() - 1);
    }
    return entry->second;
  }

  std::uint32_t width_of(std::uint32_t value) const { return values_[value].units * 4; }

  // ---- steps ----

  Step& emit(Action action, std::vector<std::uint32_t> definitions,
             std::vector<std::uint32_t> uses) {
    Step step;
    step.action = action;
    step.instruction = instruction_number_;
    step.guard = guard_;
    step.guard_negated = guard_negated_;
    if (guard_ != none) uses.push_back(guard_);
    std::erase(definitions, none);
    std::erase(uses, none);
    effects_.push_back({std::move(definitions), std::move(uses), guard_ != none});
    result_.steps.push_back(step);
    return result_.steps.back();
  }

  /// An arithmetic step. Throws when the form does not exist.
  void lanes(const LaneForm& form, std::uint32_t target, std::vector<std::uint32_t> sources,
             std::uint32_t immediate = 0) {
    const LaneFunction function = find_lane_function(form);
    if (function == nullptr) throw Unsupported{"this form is not supported"};
    if (form.rounding != Rounding::nearest) immediate = static_cast<std::uint32_t>(form.rounding);
    Step& step = emit(Action::lanes, {target}, sources);
    step.function = function;
    step.operands.target = target;
    step.operands.immediate = immediate;
    for (std::size_t i = 0; i < sources.size(); ++i) step.operands.source[i] = sources[i];
  }

  void copy(std::uint32_t target, std::uint32_t source, Type type) {
    lanes({.operation = Operation::mov, .type = type}, target, {source});
  }

  static Type bits_type(std::uint32_t bytes) {
    return bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : Type::b16;
  }

  // ---- operands ----

  const Operand& operand(std::size_t i) const {
    if (i >= instruction_->operands.size()) {
      throw Unsupported{"it has " + std::to_string(instruction_->operands.size()) +
                        " operands, more are needed"};
    }
    return instruction_->operands[i];
  }

  void read(std::uint32_t value) {
    if (!values_[value].is_constant) row_sources_.push_back(value);
  }

  /// The value of a source operand, which an instruction reads as `type`.
  std::uint32_t in(const Operand& source, Type type) {
    const std::uint32_t bytes = type == Type::pred ? 4 : std::max(bytes_of(type), 2u);
    switch (source.kind) {
      case Operand::Kind::reg: {
        const std::uint32_t value = value_of(source);
        read(value);
        if ((type == Type::pred) != values_[value].is_predicate) {
          throw Unsupported{"operand " + function_.registers[source.index].name +
                            " has another type than the instruction"};
        }
        if (type == Type::pred) {
          if (!source.negated) return value;
          const std::uint32_t negated = temporary(4, true);
          lanes({.operation = Operation::bit_not, .type = Type::pred}, negated, {value});
          return negated;
        }
        if ((width_of(value) == 8) != (bytes == 8)) {
          throw Unsupported{"register " + function_.registers[source.index].name +
                            " has another width than the instruction"};
        }
        return value;
      }
      case Operand::Kind::integer:
        if (is_float(type) && bytes > 2) break;
        return constant(static_cast<std::uint64_t>(source.integer), bytes);
      case Operand::Kind::floating:
        return float_constant(source, type);
      case Operand::Kind::predicate_constant: {
        const bool set = (source.integer != 0) != source.negated;
        return constant(set ? 0xffffffffu : 0, 4);
      }
      case Operand::Kind::special: {
        const std::uint32_t value = temporary(bytes);
        read_special(source, value);
        return value;
      }
      case Operand::Kind::variable:
        return address_of(source, bytes);
      default:
        break;
    }
    throw Unsupported{"it has an operand of a kind that is not supported"};
  }

  std::uint32_t in(std::size_t i, Type type) { return in(operand(i), type); }

  std::uint32_t float_constant(const Operand& source, Type type) {
    const auto bits = static_cast<std::uint64_t>(source.integer);
    const bool is_f32 = source.literal == Type::f32;
    if (bytes_of(type) == 8) {
      if (!is_f32) return constant(bits, 8);
      const double value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      return constant(std::bit_cast<std::uint64_t>(value), 8);
    }
    if (is_f32) return constant(bits, 4);
    return constant(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits))),
                    4);
  }

  /// The value that a destination operand names; a sink gets a temporary.
  std::uint32_t out(const Operand& target, Type type) {
    const std::uint32_t bytes = type == Type::pred ? 4 : std::max(bytes_of(type), 2u);
    if (target.kind == Operand::Kind::sink) return temporary(bytes, type == Type::pred);
    if (target.kind != Operand::Kind::reg) throw Unsupported{"its destination is no register"};
    const std::uint32_t value = value_of(target);
    if ((type == Type::pred) != values_[value].is_predicate ||
        (width_of(value) == 8) != (bytes == 8)) {
      throw Unsupported{"register " + function_.registers[target.index].name +
                        " has another type than the instruction"};
    }
    row_destinations_.push_back(value);
    return value;
  }
  std::uint32_t out(std::size_t i, Type type) { return out(operand(i), type); }

  /// Declared bytes of a register operand.
  std::uint32_t register_bytes(const Operand& reg) const {
    if (reg.kind != Operand::Kind::reg) return 8;
    return bytes_of(function_.registers[reg.index].type);
  }

  // ---- variables ----

  void place_variables() {
    // The parameter area of a function holds its results and parameters, then the `.param`
    // variables of the calls it makes.
    std::uint64_t end = 0;
    const auto place = [&](const Variable& variable) {
      end = placed(variable, end, "parameters of it and of its calls");
      parameter_offsets_[variable.name] = end;
      const Call::Piece piece{static_cast<std::uint32_t>(end),
                              static_cast<std::uint32_t>(variable.size)};
      end += piece.bytes;
      return piece;
    };
    if (is_kernel_) {
      const auto offsets = parameter_offsets(module_, function_);
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        kernel_parameters_[function_.parameters[i].name] = offsets[i];
      }
    } else {
      for (const Variable& variable : function_.returns) result_.results.push_back(place(variable));
      for (const Variable& variable : function_.parameters) {
        result_.parameters.push_back(place(variable));
      }
    }
    std::uint64_t local = 0;
    for (const Variable& variable : function_.variables) {
      if (variable.space == Space::param) {
        variable_sizes_[variable.name] = place(variable).bytes;
      } else if (variable.space == Space::local) {
        local = placed(variable, local, "local variables");
        local_offsets_[variable.name] = local;
        local += variable.size;
      }
    }
    result_.parameter_bytes = static_cast<std::uint32_t>(align(end, 16));
    result_.local_bytes = static_cast<std::uint32_t>(align(local, 16));
  }

  static std::uint64_t align(std::uint64_t offset, std::uint64_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
  }

  /// Where a variable begins, behind others that end at `end`; all of them fit local memory.
  std::uint64_t placed(const Variable& variable, std::uint64_t end, const char* what) const {
    const std::uint64_t begin = align(end, variable.alignment);
    if (begin > max_local_bytes || variable.size > max_local_bytes - begin) {
      fail_local(module_, function_, variable.line,
                 "the " + std::string(what) + " need " + std::to_string(begin + variable.size));
    }
    return begin;
  }

  /// The address of a variable in its own space, as a value of `bytes`.
  std::uint32_t address_of(const Operand& source, std::uint32_t bytes) {
    const auto addend = static_cast<std::uint64_t>(source.integer);
    if (const auto local = local_offsets_.find(source.name); local != local_offsets_.end()) {
      const std::uint32_t value = temporary(bytes);
      program_.local_offsets.push_back(local->second + addend);
      emit(Action::local_address, {value}, {}).detail = last(program_.local_offsets);
      result_.steps.back().operands.target = value;
      result_.steps.back().operands.immediate = bytes;
      return value;
    }
    return constant(static_address(source.name) + addend, bytes);
  }

  /// Addresses that are known before a launch: of shared, global and constant variables, of kernel
  /// parameters (offsets) and functions.
  std::uint64_t static_address(const std::string& name) const {
    for (const Function* owner : {&function_, static_cast<const Function*>(nullptr)}) {
      const auto shared = layout_.shared.find({owner, name});
      if (shared != layout_.shared.end()) return shared->second;
    }
    if (const auto found = kernel_parameters_.find(name); found != kernel_parameters_.end()) {
      return found->second;
    }
    if (const auto found = symbols_.addresses.find(name); found != symbols_.addresses.end()) {
      return found->second;
    }
    if (const auto found = layout_.function_numbers.find(name);
        found != layout_.function_numbers.end()) {
      return function_address(module_, *layout_.functions[found->second]);
    }
    throw Unsupported{"the address of " + name + " cannot be taken"};
  }

  template <class T>
  static std::uint32_t last(const std::vector<T>& table) {
    return static_cast<std::uint32_t>(table.size() - 1);
  }

  void read_special(const Operand& source, std::uint32_t target) {
    switch (source.special) {
      case Special::cluster_ctaid:
      case Special::cluster_nctaid:
      case Special::clusterid:
      case Special::nclusterid:
      case Special::cluster_ctarank:
      case Special::cluster_nctarank:
      case Special::is_explicit_cluster:
        throw Unsupported{"thread block clusters are not supported"};
      case Special::pm:
        throw Unsupported{"this special register is not supported"};
      case Special::envreg:
        // The halves of the address of a cooperative launch's workspace.
        if (source.component != 1 && source.component != 2) {
          throw Unsupported{"this special register is not supported"};
        }
        program_.synchronizes_grid = true;
        break;
      default:
        break;
    }
    program_.specials.push_back({source.special, source.component});
    Step& step = emit(Action::special, {target}, {});
    step.detail = last(program_.specials);
    step.operands.target = target;
    step.operands.immediate = width_of(target);
  }

  // ---- instructions ----

  void lower_instruction(std::uint32_t number) {
    instruction_number_ = number;
    instruction_ = &function_.body[number];
    guard_ = none;
    row_destinations_.clear();
    row_sources_.clear();
    const auto first = static_cast<std::uint32_t>(result_.steps.size());
    pending_ = {};
    folded_ = false;
    parts_.clear();
    try {
      if (instruction_->guard) prepare_guard();
      Words words(*instruction_);
      const auto& table = lowerings();
      const auto found = table.find(instruction_->opcode);
      if (found == table.end()) throw Unsupported{"the instruction is not supported"};
      (this->*found->second)(words);
      words.finish();
    } catch (const Unsupported& problem) {
      throw InputError(module_.file + ":" + std::to_string(instruction_->line) + ": kernel " +
                       program_.name + ": cannot simulate " + instruction_->full_opcode() + ": " +
                       problem.reason);
    }
    if (result_.steps.size() == first) emit(Action::nothing, {}, {});
    result_.steps[first].begins = true;
    if (!folded_) add_pending_rows();
  }

  void prepare_guard() {
    Operand reg;
    reg.kind = Operand::Kind::reg;
    reg.index = *instruction_->guard;
    const std::uint32_t value = value_of(reg);
    read(value);
    // An instruction of several steps must not change its own guard between them.
    const bool own_target = std::ranges::any_of(instruction_->operands, [&](const Operand& o) {
      return o.kind == Operand::Kind::reg && o.index == reg.index;
    });
    std::uint32_t guard = value;
    if (own_target) {
      guard = temporary(4, true);
      copy(guard, value, Type::pred);
    }
    guard_ = guard;
    guard_negated_ = instruction_->guard_negated;
  }

  /// The trace rows of the current instruction, on its last step.
  void add_pending_rows() {
    Step& step = result_.steps.back();
    step.first_row = static_cast<std::uint32_t>(rows_.size());
    if (!parts_.empty()) {
      step.num_rows = static_cast<std::uint16_t>(parts_.size());
      for (Part& part : parts_) {
        PendingRow row{pending_, std::move(part.destinations), std::move(part.sources)};
        row.instruction.opcode = instruction_->full_opcode();
        row.instruction.source_line = source_line();
        if (guard_ != none) row.sources.push_back(guard_);
        rows_.push_back(std::move(row));
      }
      return;
    }
    std::vector<TraceRow> rows = expand(instruction_->opcode, *instruction_, pending_);
    step.num_rows = static_cast<std::uint16_t>(rows.size());
    std::sort(row_sources_.begin(), row_sources_.end());
    row_sources_.erase(std::unique(row_sources_.begin(), row_sources_.end()), row_sources_.end());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      PendingRow row;
      row.instruction = pending_;
      row.instruction.opcode = rows[i].opcode;
      row.instruction.op_class = rows[i].op_class;
      row.instruction.source_line = source_line();
      row.destinations = row_destinations_;
      // Later operations of a sequence work on what the first ones made.
      row.sources = i == 0 ? row_sources_ : row_destinations_;
      rows_.push_back(std::move(row));
    }
  }

  /// The line in the file that the kernel itself is in.
  std::uint32_t source_line() const {
    return instruction_->outermost.line != 0 ? instruction_->outermost.line
                                             : instruction_->source.line;
  }

  void set_class(OpClass op_class) { pending_.op_class = op_class; }

  using Lowering = void (FunctionLowering::*)(Words&);
  static const std::unordered_map<std::string, Lowering>& lowerings();

  static Rounding take_rounding(Words& words) {
    if (words.take("rz")) return Rounding::zero;
    if (words.take("rm")) return Rounding::down;
    if (words.take("rp")) return Rounding::up;
    words.take("rn");
    return Rounding::nearest;
  }

  /// Modifiers of float arithmetic.
  static void take_float_modifiers(Words& words, LaneForm& form) {
    form.rounding = take_rounding(words);
    form.flush = words.take("ftz");
    form.saturate = words.take("sat");
    form.relu = words.take("relu");
    words.take("approx");
    words.take("full");
    words.take("oob");
  }

  /// Instructions whose operands all have one type.
  void uniform(Words& words, Operation operation, std::size_t operands) {
    LaneForm form{.operation = operation};
    take_float_modifiers(words, form);
    form.propagate_nan = words.take("NaN");
    if (words.take("xorsign")) {
      words.take("abs");
      form.xor_sign = true;
    }
    form.type = words.need_type();
    std::vector<std::uint32_t> sources;
    for (std::size_t i = 1; i <= operands; ++i) sources.push_back(in(i, form.type));
    set_class(arithmetic_class(form.type));
    lanes(form, out(0, form.type), sources);
  }

  void lower_add(Words& words) { add_or_subtract(words, false, false); }
  void lower_addc(Words& words) { add_or_subtract(words, false, true); }
  void lower_sub(Words& words) { add_or_subtract(words, true, false); }
  void lower_subc(Words& words) { add_or_subtract(words, true, true); }

  void add_or_subtract(Words& words, bool subtract, bool carry_in) {
    const bool carry_out = words.take("cc");
    if (!carry_in && !carry_out) {
      uniform(words, subtract ? Operation::sub : Operation::add, 2);
      return;
    }
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, type);
    with_carry(type, subtract, out(0, type), a, b, carry_in, carry_out);
  }

  void with_carry(Type type, bool subtract, std::uint32_t target, std::uint32_t a, std::uint32_t b,
                  bool carry_in, bool carry_out) {
    if (carry_ == none) carry_ = temporary(4);
    if (carry_in) read(carry_);
    if (carry_out) row_destinations_.push_back(carry_);
    const std::uint32_t c = carry_in ? carry_ : constant(0, 4);
    lanes({.operation = subtract ? Operation::subc : Operation::addc, .type = type}, target,
          {a, b, c});
    const std::uint32_t made = carry_out ? carry_ : temporary(4);
    result_.steps.back().operands.target2 = made;
    effects_.back().definitions.push_back(made);
  }

  void lower_mul(Words& words) {
    const auto part = words.take_one_of({"lo", "hi", "wide"});
    if (!part) {
      uniform(words, Operation::mul_lo, 2);
      return;
    }
    static constexpr Operation operations[] = {Operation::mul_lo, Operation::mul_hi,
                                               Operation::mul_wide};
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, type);
    lanes({.operation = operations[*part], .type = type}, out(0, *part == 2 ? wide(type) : type),
          {a, b});
    set_class(OpClass::integer);
  }

  static Type wide(Type type) {
    switch (type) {
      case Type::u16:
        return Type::u32;
      case Type::s16:
        return Type::s32;
      case Type::u32:
        return Type::u64;
      case Type::s32:
        return Type::s64;
      default:
        throw Unsupported{"there is no wider type"};
    }
  }

  void lower_mad(Words& words) { multiply_add(words, false); }
  void lower_madc(Words& words) { multiply_add(words, true); }

  void multiply_add(Words& words, bool carry_in) {
    const auto part = words.take_one_of({"lo", "hi", "wide"});
    if (!part) {  // mad.f32 and mad.f64 are fma
      uniform(words, Operation::fma, 3);
      return;
    }
    const bool carry_out = words.take("cc");
    const bool saturate = words.take("sat");
    const Type type = words.need_type();
    const Type result = *part == 2 ? wide(type) : type;
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, type);
    const std::uint32_t c = in(3, result);
    set_class(OpClass::integer);
    if (carry_in || carry_out) {
      static constexpr Operation products[] = {Operation::mul_lo, Operation::mul_hi,
                                               Operation::mul_wide};
      const std::uint32_t product = temporary(bytes_of(result));
      const std::uint32_t target = out(0, result);
      lanes({.operation = products[*part], .type = type}, product, {a, b});
      with_carry(result, false, target, product, c, carry_in, carry_out);
      return;
    }
    static constexpr Operation operations[] = {Operation::mad_lo, Operation::mad_hi,
                                               Operation::mad_wide};
    lanes({.operation = operations[*part], .type = type, .saturate = saturate}, out(0, result),
          {a, b, c});
  }

  void lower_mul24(Words& words) { multiply_24(words, Operation::mul24, 2); }
  void lower_mad24(Words& words) { multiply_24(words, Operation::mad24, 3); }
  void multiply_24(Words& words, Operation operation, std::size_t operands) {
    const bool high = words.take("hi");
    words.take("lo");
    const Type type = words.need_type();
    std::vector<std::uint32_t> sources;
    for (std::size_t i = 1; i <= operands; ++i) sources.push_back(in(i, type));
    set_class(OpClass::integer);
    lanes({.operation = operation, .type = type, .high = high}, out(0, type), sources);
  }

  void lower_fma(Words& words) { uniform(words, Operation::fma, 3); }
  void lower_sad(Words& words) { uniform(words, Operation::sad, 3); }
  void lower_div(Words& words) { uniform(words, Operation::div, 2); }
  void lower_rem(Words& words) { uniform(words, Operation::rem, 2); }
  void lower_abs(Words& words) { uniform(words, Operation::abs, 1); }
  void lower_neg(Words& words) { uniform(words, Operation::neg, 1); }
  void lower_min(Words& words) { uniform(words, Operation::min, 2); }
  void lower_max(Words& words) { uniform(words, Operation::max, 2); }
  void lower_rcp(Words& words) { special_function(words, Operation::rcp); }
  void lower_sqrt(Words& words) { special_function(words, Operation::sqrt); }
  void lower_rsqrt(Words& words) { special_function(words, Operation::rsqrt); }
  void lower_sin(Words& words) { special_function(words, Operation::sin); }
  void lower_cos(Words& words) { special_function(words, Operation::cos); }
  void lower_ex2(Words& words) { special_function(words, Operation::ex2); }
  void lower_lg2(Words& words) { special_function(words, Operation::lg2); }
  void lower_tanh(Words& words) { special_function(words, Operation::tanh); }
  void special_function(Words& words, Operation operation) {
    uniform(words, operation, 1);
    set_class(OpClass::sfu);
  }

  void lower_copysign(Words& words) { uniform(words, Operation::copysign, 2); }

  void lower_testp(Words& words) {
    const auto property =
        words.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    if (!property) throw Unsupported{"it names no property"};
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    set_class(arithmetic_class(type));
    lanes(
        {.operation = Operation::testp, .type = type, .mode = static_cast<std::uint8_t>(*property)},
        out(0, Type::pred), {a});
  }

  void lower_and(Words& words) { bitwise(words, Operation::bit_and, 2); }
  void lower_or(Words& words) { bitwise(words, Operation::bit_or, 2); }
  void lower_xor(Words& words) { bitwise(words, Operation::bit_xor, 2); }
  void lower_not(Words& words) { bitwise(words, Operation::bit_not, 1); }
  void lower_cnot(Words& words) { bitwise(words, Operation::cnot, 1); }
  void bitwise(Words& words, Operation operation, std::size_t operands) {
    const Type type = words.need_type();
    std::vector<std::uint32_t> sources;
    for (std::size_t i = 1; i <= operands; ++i) sources.push_back(in(i, type));
    set_class(OpClass::integer);
    lanes({.operation = operation, .type = type}, out(0, type), sources);
  }

  void lower_lop3(Words& words) {
    const auto join = words.take_one_of({"or", "and"});
    const Type type = words.need_type();
    const bool paired = operand(0).paired;
    const std::size_t first = paired ? 2 : 1;
    const std::uint32_t a = in(first, type);
    const std::uint32_t b = in(first + 1, type);
    const std::uint32_t c = in(first + 2, type);
    const auto table = static_cast<std::uint32_t>(operand(first + 3).integer);
    set_class(OpClass::integer);
    if (!join) {
      lanes({.operation = Operation::lop3, .type = type}, out(0, type), {a, b, c}, table & 255);
      return;
    }
    const std::uint32_t q = in(first + 4, Type::pred);
    const std::uint32_t result = temporary(4);
    const std::uint32_t is_set = temporary(4, true);
    lanes({.operation = Operation::lop3, .type = type}, result, {a, b, c}, table & 255);
    lanes({.operation = Operation::setp, .type = Type::u32, .comparison = Comparison::ne}, is_set,
          {result, constant(0, 4)});
    lanes({.operation = *join == 0 ? Operation::bit_or : Operation::bit_and, .type = Type::pred},
          out(paired ? 1 : 0, Type::pred), {is_set, q});
    if (paired) copy(out(0, type), result, type);
  }

  void lower_shl(Words& words) { shift(words, Operation::shl); }
  void lower_shr(Words& words) { shift(words, Operation::shr); }
  void shift(Words& words, Operation operation) {
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, Type::u32);
    set_class(OpClass::integer);
    lanes({.operation = operation, .type = type}, out(0, type), {a, b});
  }

  void lower_shf(Words& words) {
    const bool left = words.take("l");
    words.take("r");
    const bool clamp = words.take("clamp");
    words.take("wrap");
    words.need_type();
    const std::uint32_t a = in(1, Type::u32);
    const std::uint32_t b = in(2, Type::u32);
    const std::uint32_t c = in(3, Type::u32);
    set_class(OpClass::integer);
    lanes({.operation = left ? Operation::shf_l : Operation::shf_r,
           .type = Type::b32,
           .clamp = clamp},
          out(0, Type::u32), {a, b, c});
  }

  /// Bit-counting instructions, whose result is a u32.
  void count_bits(Words& words, Operation operation, bool high) {
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    set_class(OpClass::sfu);
    lanes({.operation = operation, .type = type, .high = high}, out(0, Type::u32), {a});
  }
  void lower_popc(Words& words) { count_bits(words, Operation::popc, false); }
  void lower_clz(Words& words) { count_bits(words, Operation::clz, false); }
  void lower_bfind(Words& words) {
    const bool as_shift = words.take("shiftamt");
    count_bits(words, Operation::bfind, as_shift);
  }
  void lower_brev(Words& words) {
    bitwise(words, Operation::brev, 1);
    set_class(OpClass::sfu);
  }

  void lower_fns(Words& words) {
    words.need_type();
    const std::uint32_t a = in(1, Type::u32);
    const std::uint32_t b = in(2, Type::u32);
    const std::uint32_t c = in(3, Type::s32);
    set_class(OpClass::integer);
    lanes({.operation = Operation::fns, .type = Type::b32}, out(0, Type::u32), {a, b, c});
  }

  void lower_bfe(Words& words) {
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, Type::u32);
    const std::uint32_t c = in(3, Type::u32);
    set_class(OpClass::integer);
    lanes({.operation = Operation::bfe, .type = type}, out(0, type), {a, b, c});
  }
  void lower_bfi(Words& words) {
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, type);
    const std::uint32_t c = in(3, Type::u32);
    const std::uint32_t d = in(4, Type::u32);
    set_class(OpClass::integer);
    lanes({.operation = Operation::bfi, .type = type}, out(0, type), {a, b, c, d});
  }
  void lower_bmsk(Words& words) { clamped_pair(words, Operation::bmsk); }
  void lower_szext(Words& words) { clamped_pair(words, Operation::szext); }
  void clamped_pair(Words& words, Operation operation) {
    const bool clamp = words.take("clamp");
    words.take("wrap");
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, Type::u32);
    set_class(OpClass::integer);
    lanes({.operation = operation, .type = type, .clamp = clamp}, out(0, type), {a, b});
  }

  void lower_dp4a(Words& words) { dot_product(words, Operation::dp4a); }
  void lower_dp2a(Words& words) { dot_product(words, Operation::dp2a); }
  void dot_product(Words& words, Operation operation) {
    const bool high = words.take("hi");
    words.take("lo");
    const Type type = words.need_type();
    const Type second = words.need_type();
    const std::uint32_t a = in(1, Type::u32);
    const std::uint32_t b = in(2, Type::u32);
    const std::uint32_t c = in(3, Type::u32);
    set_class(OpClass::integer);
    lanes({.operation = operation, .type = type, .source = second, .high = high}, out(0, Type::u32),
          {a, b, c});
  }

  void lower_prmt(Words& words) {
    words.need_type();
    const auto mode = words.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    const std::uint32_t a = in(1, Type::u32);
    const std::uint32_t b = in(2, Type::u32);
    const std::uint32_t c = in(3, Type::u32);
    set_class(OpClass::integer);
    lanes({.operation = Operation::prmt,
           .type = Type::b32,
           .mode = static_cast<std::uint8_t>(mode ? *mode + 1 : 0)},
          out(0, Type::u32), {a, b, c});
  }

  // ---- comparisons ----

  /// Reads the comparison, whose unsigned names lo, ls, hi, hs mean lt, le, gt, ge.
  static Comparison take_comparison(Words& words) {
    static constexpr std::pair<std::string_view, Comparison> names[] = {
        {"eq", Comparison::eq},   {"ne", Comparison::ne},   {"lt", Comparison::lt},
        {"le", Comparison::le},   {"gt", Comparison::gt},   {"ge", Comparison::ge},
        {"lo", Comparison::lt},   {"ls", Comparison::le},   {"hi", Comparison::gt},
        {"hs", Comparison::ge},   {"equ", Comparison::equ}, {"neu", Comparison::neu},
        {"ltu", Comparison::ltu}, {"leu", Comparison::leu}, {"gtu", Comparison::gtu},
        {"geu", Comparison::geu}, {"num", Comparison::num}, {"nan", Comparison::nan}};
    for (const auto& [name, comparison] : names) {
      if (words.take(name)) return comparison;
    }
    throw Unsupported{"it names no comparison"};
  }

  static std::optional<Operation> take_combination(Words& words) {
    static constexpr Operation operations[] = {Operation::bit_and, Operation::bit_or,
                                               Operation::bit_xor};
    const auto found = words.take_one_of({"and", "or", "xor"});
    if (!found) return std::nullopt;
    return operations[*found];
  }

  static bool is_packed(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }

  /// Compares the low or high halves of packed values; a predicate, joined with `c` if asked for.
  std::uint32_t compare_half(LaneForm form, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                             std::optional<Operation> join, std::uint32_t half) {
    form.type = form.type == Type::f16x2 ? Type::f16 : Type::bf16;
    std::uint32_t parts[2];
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t shifted = temporary(4);
      lanes({.operation = Operation::shr, .type = Type::u32}, shifted,
            {i == 0 ? a : b, constant(16 * half, 4)});
      parts[i] = temporary(2);
      lanes({.operation = Operation::cvt, .type = Type::u16, .source = Type::u32}, parts[i],
            {shifted});
    }
    const std::uint32_t holds = temporary(4, true);
    lanes(form, holds, {parts[0], parts[1]});
    if (!join) return holds;
    const std::uint32_t joined = temporary(4, true);
    lanes({.operation = *join, .type = Type::pred}, joined, {holds, c});
    return joined;
  }

  void lower_setp(Words& words) {
    LaneForm form{.operation = Operation::setp};
    form.comparison = take_comparison(words);
    const auto join = take_combination(words);
    form.flush = words.take("ftz");
    form.type = words.need_type();
    const bool paired = operand(0).paired;
    const std::size_t first = paired ? 2 : 1;
    const std::uint32_t a = in(first, form.type);
    const std::uint32_t b = in(first + 1, form.type);
    set_class(arithmetic_class(form.type));
    if (is_packed(form.type)) {
      if (!paired) throw Unsupported{"a comparison of packed values has two results"};
      const std::uint32_t c = join ? in(first + 2, Type::pred) : none;
      const std::uint32_t low = compare_half(form, a, b, c, join, 0);
      const std::uint32_t high = compare_half(form, a, b, c, join, 1);
      copy(out(0, Type::pred), low, Type::pred);
      copy(out(1, Type::pred), high, Type::pred);
      return;
    }
    if (!join && !paired) {
      lanes(form, out(0, Type::pred), {a, b});
      return;
    }
    const std::uint32_t c = join ? in(first + 2, Type::pred) : none;
    const std::uint32_t holds = temporary(4, true);
    lanes(form, holds, {a, b});
    const std::uint32_t fails = temporary(4, true);
    if (paired) {
      lanes({.operation = Operation::bit_not, .type = Type::pred}, fails, {holds});
    }
    const auto finish = [&](std::uint32_t target, std::uint32_t value) {
      if (join) {
        lanes({.operation = *join, .type = Type::pred}, target, {value, c});
      } else {
        copy(target, value, Type::pred);
      }
    };
    if (!paired) {
      finish(out(0, Type::pred), holds);
      return;
    }
    // The first target may be the predicate that both results are joined with.
    const std::uint32_t made = temporary(4, true);
    finish(made, holds);
    finish(out(1, Type::pred), fails);
    copy(out(0, Type::pred), made, Type::pred);
  }

  void lower_set(Words& words) {
    LaneForm form{.operation = Operation::setp};
    form.comparison = take_comparison(words);
    const auto join = take_combination(words);
    form.flush = words.take("ftz");
    const Type result = words.need_type();
    form.type = words.need_type();
    if (is_packed(result) != is_packed(form.type)) {
      throw Unsupported{"a comparison of packed values has a packed result"};
    }
    const std::uint32_t a = in(1, form.type);
    const std::uint32_t b = in(2, form.type);
    if (is_packed(form.type)) {
      const std::uint32_t c = join ? in(3, Type::pred) : none;
      const std::uint64_t one = result == Type::f16x2 ? 0x3c00u : 0x3f80u;
      set_class(arithmetic_class(form.type));
      const std::uint32_t halves[] = {temporary(4), temporary(4)};
      for (std::uint32_t half = 0; half < 2; ++half) {
        const std::uint32_t holds = compare_half(form, a, b, c, join, half);
        lanes({.operation = Operation::selp, .type = Type::b32}, halves[half],
              {constant(one << (16 * half), 4), constant(0, 4), holds});
      }
      lanes({.operation = Operation::bit_or, .type = Type::b32}, out(0, result),
            {halves[0], halves[1]});
      return;
    }
    std::uint32_t holds = temporary(4, true);
    lanes(form, holds, {a, b});
    if (join) {
      const std::uint32_t c = in(3, Type::pred);
      const std::uint32_t joined = temporary(4, true);
      lanes({.operation = *join, .type = Type::pred}, joined, {holds, c});
      holds = joined;
    }
    std::uint64_t yes = 0xffffffffu;
    if (result == Type::f32) yes = 0x3f800000u;
    if (result == Type::f16) yes = 0x3c00u;
    if (result == Type::bf16) yes = 0x3f80u;
    set_class(arithmetic_class(form.type));
    lanes({.operation = Operation::selp, .type = bits_type(std::max(bytes_of(result), 2u))},
          out(0, result), {constant(yes, bytes_of(result)), constant(0, bytes_of(result)), holds});
  }

  void lower_selp(Words& words) {
    const Type type = words.need_type();
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, type);
    const std::uint32_t c = in(3, Type::pred);
    set_class(OpClass::integer);
    lanes({.operation = Operation::selp, .type = type}, out(0, type), {a, b, c});
  }

  void lower_slct(Words& words) {
    const bool flush = words.take("ftz");
    const Type type = words.need_type();
    const Type selector = words.need_type();
    if (flush && selector != Type::f32) throw Unsupported{"only an f32 can be flushed"};
    const std::uint32_t a = in(1, type);
    const std::uint32_t b = in(2, type);
    const std::uint32_t c = in(3, selector);
    set_class(OpClass::integer);
    lanes({.operation = Operation::slct, .type = type, .source = selector, .flush = flush},
          out(0, type), {a, b, c});
  }

  // ---- data movement ----

  void lower_mov(Words& words) {
    const Type type = words.need_type();
    const Operand& target = operand(0);
    const Operand& source = operand(1);
    set_class(OpClass::integer);
    if (target.kind == Operand::Kind::vector) {
      unpack(target, source, type);
    } else if (source.kind == Operand::Kind::vector) {
      pack(target, source, type);
    } else if (source.kind == Operand::Kind::special) {
      read_special(source, out(target, type));
    } else {
      const std::uint32_t value = in(source, type);
      copy(out(target, type), value, type);
    }
  }

  /// mov.b64 {lo, hi}, x and the like.
  void unpack(const Operand& target, const Operand& source, Type type) {
    if (target.elements.empty()) throw Unsupported{"its vector is empty"};
    const std::uint32_t bytes = bytes_of(type) / static_cast<std::uint32_t>(target.elements.size());
    const std::uint32_t value = in(source, type);
    if (bytes != 2 && bytes != 4) throw Unsupported{"parts of this width are not supported"};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> parts;
    for (std::size_t i = 0; i < target.elements.size(); ++i) {
      // Parts go through temporaries: a target may be the source.
      const std::uint32_t shifted = temporary(bytes_of(type));
      lanes({.operation = Operation::shr, .type = bytes_of(type) == 8 ? Type::u64 : Type::u32},
            shifted, {value, constant(8 * bytes * i, 4)});
      const std::uint32_t part = temporary(bytes);
      lanes({.operation = Operation::cvt,
             .type = bytes == 4 ? Type::u32 : Type::u16,
             .source = bytes_of(type) == 8 ? Type::u64 : Type::u32},
            part, {shifted});
      parts.emplace_back(out(target.elements[i], bits_type(bytes)), part);
    }
    for (const auto& [place, part] : parts) copy(place, part, bits_type(bytes));
  }

  /// mov.b64 x, {lo, hi}
  void pack(const Operand& target, const Operand& source, Type type) {
    if (source.elements.empty()) throw Unsupported{"its vector is empty"};
    const std::uint32_t bytes = bytes_of(type) / static_cast<std::uint32_t>(source.elements.size());
    if (bytes != 2 && bytes != 4) throw Unsupported{"parts of this width are not supported"};
    const Type whole = bytes_of(type) == 8 ? Type::u64 : Type::u32;
    std::uint32_t joined = none;
    for (std::size_t i = 0; i < source.elements.size(); ++i) {
      const std::uint32_t part = in(source.elements[i], bits_type(bytes));
      const std::uint32_t extended = temporary(bytes_of(type));
      lanes({.operation = Operation::cvt,
             .type = whole,
             .source = bytes == 4 ? Type::u32 : Type::u16},
            extended, {part});
      std::uint32_t placed = extended;
      if (i > 0) {
        placed = temporary(bytes_of(type));
        lanes({.operation = Operation::shl, .type = whole}, placed,
              {extended, constant(8 * bytes * i, 4)});
        const std::uint32_t both = temporary(bytes_of(type));
        lanes({.operation = Operation::bit_or, .type = whole}, both, {joined, placed});
        placed = both;
      }
      joined = placed;
    }
    copy(out(target, type), joined, type);
  }

  void lower_cvt(Words& words) {
    LaneForm form{.operation = Operation::cvt};
    static constexpr std::pair<std::string_view, Rounding> integral[] = {{"rni", Rounding::nearest},
                                                                         {"rzi", Rounding::zero},
                                                                         {"rmi", Rounding::down},
                                                                         {"rpi", Rounding::up}};
    bool has_integral = false;
    for (const auto& [name, rounding] : integral) {
      if (words.take(name)) {
        form.rounding = rounding;
        has_integral = true;
      }
    }
    const bool ties_away = words.take("rna");
    if (!has_integral) form.rounding = take_rounding(words);
    form.flush = words.take("ftz");
    form.saturate = words.take("sat");
    form.relu = words.take("relu");
    form.type = words.need_type();
    form.source = words.need_type();
    form.integer_rounding = has_integral && is_float(form.type);
    if ((form.type == Type::tf32) != ties_away) throw Unsupported{"this rounding is not supported"};
    const bool same = !is_float(form.type) && !is_float(form.source);
    set_class(same ? OpClass::integer : OpClass::sfu);
    const std::uint32_t rounding = static_cast<std::uint32_t>(form.rounding);
    if (form.type == Type::f16x2 || form.type == Type::bf16x2) {
      const std::uint32_t a = in(1, form.source);
      const std::uint32_t b = in(2, form.source);
      LaneForm pair = form;
      pair.rounding = Rounding::nearest;
      lanes(pair, out(0, Type::b32), {a, b}, rounding);
      return;
    }
    // The source register may be wider than the source type, the target register wider than the
    // target type (PTX ISA, "Operand size exceeding instruction-type size").
    std::uint32_t source;
    if (operand(1).kind == Operand::Kind::reg && register_bytes(operand(1)) == 8 &&
        bytes_of(form.source) < 8) {
      const std::uint32_t whole = in(1, Type::u64);
      source = temporary(4);
      lanes({.operation = Operation::cvt, .type = Type::u32, .source = Type::u64}, source, {whole});
    } else {
      source = in(1, form.source);
    }
    const std::uint32_t target_bytes = register_bytes(operand(0));
    const bool widen = !is_float(form.type) && operand(0).kind == Operand::Kind::reg &&
                       (is_signed(form.type) ? bytes_of(form.type) < target_bytes
                                             : bytes_of(form.type) < 8 && target_bytes == 8);
    const bool by_immediate = uses_immediate_rounding(form);
    LaneForm used = form;
    const auto convert = [&](std::uint32_t target) {
      if (by_immediate) {
        // These take the rounding as an argument, not from the processor's mode.
        const LaneFunction function = find_lane_function(used);
        if (function == nullptr) throw Unsupported{"this form is not supported"};
        Step& step = emit(Action::lanes, {target}, {source});
        step.function = function;
        step.operands.target = target;
        step.operands.source[0] = source;
        step.operands.immediate = rounding;
      } else {
        lanes(used, target, {source});
      }
    };
    if (!widen) {
      const Type width = bytes_of(form.type) == 1 ? Type::b16 : form.type;
      convert(out(0, width == Type::tf32 ? Type::b32 : width));
      return;
    }
    const std::uint32_t narrow = temporary(bytes_of(form.type));
    convert(narrow);
    const bool to_64 = target_bytes == 8;
    const Type whole = is_signed(form.type) ? (to_64               ? Type::s64
                                               : target_bytes == 4 ? Type::s32
                                                                   : Type::s16)
                                            : Type::u64;
    lanes({.operation = Operation::cvt, .type = whole, .source = form.type},
          out(0, bits_type(target_bytes)), {narrow});
  }

  /// Conversions whose function reads the rounding from the step.
  static bool uses_immediate_rounding(const LaneForm& form) {
    const bool short_target = form.type == Type::f16 || form.type == Type::bf16;
    if (!is_float(form.source)) return short_target;
    return !is_float(form.type) || form.integer_rounding || short_target;
  }

  void lower_cvta(Words& words) {
    const bool to = words.take("to");
    const auto space = words.take_one_of({"global", "const", "shared", "local", "param"});
    if (!space) throw Unsupported{"it names no state space"};
    words.take_prefix("::");
    const Type type = words.need_type();
    if (bytes_of(type) != 8) throw Unsupported{"32-bit generic addresses are not supported"};
    std::uint64_t window = 0;
    if (*space == 2) window = shared_window;
    if (*space == 3) window = local_window;
    const std::uint32_t source = in(1, type);
    const std::uint32_t target = out(0, type);
    // The addresses of these spaces are generic addresses already. ptxas removes such a cvta, and
    // makes an addition of the others.
    folded_ = window == 0 && *space != 4;
    if (folded_) aliases_[target] = source;
    set_class(OpClass::integer);
    if (*space == 4) {
      if (to) throw Unsupported{"cvta.to.param is not supported"};
      const std::uint32_t base = temporary(8);
      emit(Action::parameter_base, {base}, {}).operands.target = base;
      lanes({.operation = Operation::add, .type = Type::u64}, target, {source, base});
      return;
    }
    if (window == 0) {
      copy(target, source, Type::u64);
      return;
    }
    lanes({.operation = to ? Operation::sub : Operation::add, .type = Type::u64}, target,
          {source, constant(window, 8)});
  }

  void lower_isspacep(Words& words) {
    const auto space = words.take_one_of({"global", "const", "shared", "local", "param"});
    if (!space || *space == 4) throw Unsupported{"this state space is not supported"};
    words.take_prefix("::");
    const std::uint32_t address = in(1, Type::u64);
    set_class(OpClass::integer);
    Step& step = emit(Action::address_query, {none}, {address});
    const std::uint32_t target = out(0, Type::pred);
    effects_.back().definitions.push_back(target);
    step.operands.target = target;
    step.operands.source[0] = address;
    step.operands.immediate = static_cast<std::uint32_t>(*space);
  }

  // ---- memory ----

  /// Splits an address operand into a slot and an offset.
  struct Address {
    std::uint32_t value = none;
    bool is_64_bits = true;
    std::int64_t offset = 0;
  };
  static const Operand& base_of(const Operand& operand) {
    if (operand.kind != Operand::Kind::address || operand.elements.empty()) {
      throw Unsupported{"its address operand is missing"};
    }
    return operand.elements[0];
  }
  Address address(const Operand& operand) {
    const Operand& base = base_of(operand);
    Address result{.offset = operand.integer};
    switch (base.kind) {
      case Operand::Kind::reg:
        result.value = value_of(base);
        read(result.value);
        result.is_64_bits = width_of(result.value) == 8;
        return result;
      case Operand::Kind::variable:
        if (local_offsets_.contains(base.name)) {
          result.value = address_of(base, 8);
          return result;
        }
        result.offset += static_cast<std::int64_t>(static_address(base.name)) + base.integer;
        return result;
      case Operand::Kind::integer:
        result.offset += base.integer;
        return result;
      default:
        throw Unsupported{"an address operand of this kind is not supported"};
    }
  }

  /// State space and cache modifiers of ld, st, atom and red, for the step and the trace's row.
  struct SpaceWords {
    AddressSpace space = AddressSpace::generic;
    bool constant = false;
    bool parameter = false;
    bool strong = false;
    bool acquires = false;
    bool releases = false;
  };
  SpaceWords take_space(Words& words) {
    SpaceWords result;
    const auto space = words.take_one_of({"global", "const", "shared", "local", "param",
                                          "shared::cta", "param::entry", "param::func"});
    if (words.take("shared::cluster")) throw Unsupported{"thread block clusters are not supported"};
    if (space) {
      static constexpr AddressSpace spaces[] = {
          AddressSpace::global, AddressSpace::global, AddressSpace::shared, AddressSpace::local,
          AddressSpace::local,  AddressSpace::shared, AddressSpace::local,  AddressSpace::local};
      result.space = spaces[*space];
      result.constant = *space == 1;
      result.parameter = *space == 4 || *space >= 6;
    }
    auto cache = CacheOperator::none;
    if (words.take("cs") || words.take("L1::evict_first") || words.take("L1::no_allocate")) {
      cache = CacheOperator::evict_first;
    }
    if (words.take("L1::evict_last")) cache = CacheOperator::evict_last;
    if (words.take("cg") || words.take("cv") || words.take("wt")) cache = CacheOperator::bypass_l1;
    const bool both = words.take("acq_rel");
    result.acquires = both || words.take("acquire");
    result.releases = both || words.take("release");
    const bool strong = result.acquires || result.releases || words.take("volatile") ||
                        words.take("relaxed") || words.take("mmio");
    result.strong = strong;
    const bool block = words.take("cta");
    if (words.take("cluster")) throw Unsupported{"thread block clusters are not supported"};
    words.take("gpu");
    words.take("sys");
    if (strong && !block) cache = CacheOperator::bypass_l1;
    words.take("weak");
    words.take("nc");
    words.take("ca");
    words.take("lu");
    words.take("wb");
    words.take_prefix("L1::");
    words.take_prefix("L2::");
    words.take("unified");
    pending_.cache_operator = cache;
    return result;
  }

  static MemorySpace memory_space(AddressSpace space) {
    switch (space) {
      case AddressSpace::global:
        return MemorySpace::global;
      case AddressSpace::shared:
        return MemorySpace::shared;
      case AddressSpace::local:
        return MemorySpace::local;
      case AddressSpace::generic:
        return MemorySpace::generic;
    }
    return MemorySpace::generic;
  }

  std::uint8_t take_elements(Words& words) {
    const auto found = words.take_one_of({"v2", "v4", "v8"});
    return static_cast<std::uint8_t>(found ? 2u << *found : 1u);
  }

  /// The operands of a vector, or the operand itself.
  static std::vector<const Operand*> elements_of(const Operand& operand) {
    std::vector<const Operand*> result;
    if (operand.kind == Operand::Kind::vector) {
      for (const Operand& element : operand.elements) result.push_back(&element);
    } else {
      result.push_back(&operand);
    }
    return result;
  }

  /// Registers that a load of `type` fills; they may be wider than the type.
  template <class Access>
  std::vector<std::uint32_t> load_targets(Access& access, const Operand& operand, Type type) {
    const auto elements = elements_of(operand);
    if (elements.size() != access.elements) throw Unsupported{"it has too few or many registers"};
    std::vector<std::uint32_t> targets;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const std::uint32_t bytes = elements[i]->kind == Operand::Kind::reg
                                      ? register_bytes(*elements[i])
                                      : std::max(bytes_of(type), 2u);
      if (bytes < std::min(bytes_of(type), 2u) || bytes > 8 || bytes_of(type) > bytes) {
        throw Unsupported{"its register is narrower than its type"};
      }
      const std::uint32_t value = out(*elements[i], bits_type(bytes));
      access.values[i] = value;
      access.value_bytes[i] = static_cast<std::uint8_t>(bytes);
      targets.push_back(value);
    }
    return targets;
  }
  template <class Access>
  std::vector<std::uint32_t> store_sources(Access& access, const Operand& operand, Type type) {
    const auto elements = elements_of(operand);
    if (elements.size() != access.elements) throw Unsupported{"it has too few or many registers"};
    std::vector<std::uint32_t> sources;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      std::uint32_t bytes = std::max(bytes_of(type), 2u);
      if (elements[i]->kind == Operand::Kind::reg) bytes = register_bytes(*elements[i]);
      if (bytes < bytes_of(type)) throw Unsupported{"its register is narrower than its type"};
      const std::uint32_t value = in(*elements[i], stored_type(*elements[i], type, bytes));
      access.values[i] = value;
      access.value_bytes[i] = static_cast<std::uint8_t>(bytes);
      sources.push_back(value);
    }
    return sources;
  }
  /// Immediate operands need the type, registers their width.
  static Type stored_type(const Operand& operand, Type type, std::uint32_t bytes) {
    return operand.kind == Operand::Kind::reg ? bits_type(bytes) : type;
  }

  void lower_ld(Words& words) {
    const SpaceWords space = take_space(words);
    const std::uint8_t elements = take_elements(words);
    const Type type = words.need_type();
    if (bytes_of(type) > 8) throw Unsupported{"128-bit registers are not supported"};
    if (space.parameter) {
      load_parameter(type, elements);
      return;
    }
    MemoryAccess access;
    access.space = space.space;
    access.constant = space.constant;
    access.strong = space.strong;
    access.acquires = space.acquires;
    access.bytes = static_cast<std::uint8_t>(bytes_of(type));
    access.elements = elements;
    access.sign_extend = is_signed(type);
    const Address from = address(operand(1));
    access.address = from.value;
    access.address_is_64_bits = from.is_64_bits;
    access.offset = from.offset;
    const auto targets = load_targets(access, operand(0), type);
    program_.memory.push_back(access);
    emit(Action::load, targets, {access.address}).detail = last(program_.memory);
    if (space.constant) {
      set_class(OpClass::constant_load);
      pending_.cache_operator = CacheOperator::none;
      return;
    }
    set_memory_row(space.space, MemoryKind::load, bytes_of(type) * elements);
  }

  void set_memory_row(AddressSpace space, MemoryKind kind, std::uint32_t width) {
    set_class(OpClass::memory);
    pending_.space = memory_space(space);
    pending_.kind = kind;
    pending_.width = width;
    if (space == AddressSpace::shared) pending_.cache_operator = CacheOperator::none;
  }

  void lower_st(Words& words) {
    const SpaceWords space = take_space(words);
    const std::uint8_t elements = take_elements(words);
    const Type type = words.need_type();
    if (bytes_of(type) > 8) throw Unsupported{"128-bit registers are not supported"};
    if (space.parameter) {
      store_parameter(type, elements);
      return;
    }
    MemoryAccess access;
    access.space = space.space;
    access.strong = space.strong;
    access.releases = space.releases;
    access.bytes = static_cast<std::uint8_t>(bytes_of(type));
    access.elements = elements;
    const Address to = address(operand(0));
    access.address = to.value;
    access.address_is_64_bits = to.is_64_bits;
    access.offset = to.offset;
    auto uses = store_sources(access, operand(1), type);
    uses.push_back(access.address);
    program_.memory.push_back(access);
    emit(Action::store, {}, uses).detail = last(program_.memory);
    set_memory_row(space.space, MemoryKind::store, bytes_of(type) * elements);
  }

  /// Where a `.param` operand lies: its area's offset, or a computed address.
  void place_parameter(ParameterAccess& access, const Operand& operand,
                       const std::map<std::string, std::uint64_t>& offsets) {
    const Operand& base = base_of(operand);
    if (base.kind == Operand::Kind::variable) {
      const auto found = offsets.find(base.name);
      if (found == offsets.end()) throw Unsupported{"it names no parameter of this function"};
      access.offset = found->second + static_cast<std::uint64_t>(base.integer) +
                      static_cast<std::uint64_t>(operand.integer);
      return;
    }
    if (base.kind != Operand::Kind::reg) throw Unsupported{"its address is not supported"};
    access.address = value_of(base);
    access.address_is_64_bits = width_of(access.address) == 8;
    access.offset = static_cast<std::uint64_t>(operand.integer);
  }

  void load_parameter(Type type, std::uint8_t elements) {
    ParameterAccess access;
    access.bytes = static_cast<std::uint8_t>(bytes_of(type));
    access.elements = elements;
    access.sign_extend = is_signed(type);
    const Operand& from = operand(1);
    const Operand& base = base_of(from);
    const bool own =
        is_kernel_ && (base.kind == Operand::Kind::reg || kernel_parameters_.contains(base.name));
    place_parameter(access, from, own ? kernel_parameters_ : parameter_offsets_);
    const auto targets = load_targets(access, operand(0), type);
    program_.parameter_accesses.push_back(access);
    emit(own ? Action::kernel_parameter : Action::parameter_load, targets, {access.address})
        .detail = last(program_.parameter_accesses);
    // Kernel parameters are operands from the constant bank, call parameters registers.
    folded_ = true;
  }

  void store_parameter(Type type, std::uint8_t elements) {
    ParameterAccess access;
    access.bytes = static_cast<std::uint8_t>(bytes_of(type));
    access.elements = elements;
    place_parameter(access, operand(0), parameter_offsets_);
    auto uses = store_sources(access, operand(1), type);
    uses.push_back(access.address);
    program_.parameter_accesses.push_back(access);
    emit(Action::parameter_store, {}, uses).detail = last(program_.parameter_accesses);
    folded_ = true;
  }

  void lower_atom(Words& words) { atomic(words, true); }
  void lower_red(Words& words) {
    if (words.take("async")) throw Unsupported{"thread block clusters are not supported"};
    atomic(words, false);
  }
  void atomic(Words& words, bool returns) {
    const SpaceWords space = take_space(words);
    words.take("noftz");
    static constexpr std::string_view names[] = {"add",  "min", "max", "inc", "dec",
                                                 "exch", "cas", "and", "or",  "xor"};
    std::string_view name;
    for (const std::string_view candidate : names) {
      if (words.take(candidate)) name = candidate;
    }
    const Type type = words.need_type();
    MemoryAccess access;
    access.space = space.space;
    access.strong = true;
    access.acquires = space.acquires;
    access.releases = space.releases;
    access.bytes = static_cast<std::uint8_t>(bytes_of(type));
    access.atomic = find_atomic(name, type, space.space != AddressSpace::shared);
    if (access.atomic == nullptr) throw Unsupported{"this atomic operation is not supported"};
    const std::size_t first = returns ? 1 : 0;
    const Address at = address(operand(first));
    access.address = at.value;
    access.address_is_64_bits = at.is_64_bits;
    access.offset = at.offset;
    access.operand_b = in(first + 1, type);
    access.operand_c = name == "cas" ? in(first + 2, type) : none;
    access.takes_locks = name == "cas" || name == "exch";
    if (returns) access.result = out(0, type);
    program_.memory.push_back(access);
    emit(Action::atomic, {access.result}, {access.address, access.operand_b, access.operand_c})
        .detail = last(program_.memory);
    pending_.cache_operator = CacheOperator::none;
    set_memory_row(space.space, returns ? MemoryKind::atomic : MemoryKind::reduction,
                   bytes_of(type));
  }

  void lower_cp(Words& words) {
    if (!words.take("async") || words.take("bulk") || words.take("reduce") ||
        words.take("mbarrier")) {
      throw Unsupported{"of these copies only cp.async is supported"};
    }
    set_class(OpClass::barrier);
    // Copies finish at once, so waiting for them takes no step.
    if (words.take("commit_group") || words.take("wait_all") || words.take("wait_group")) return;
    words.take("ca");
    const bool bypass = words.take("cg");
    words.take("shared");
    words.take("shared::cta");
    words.take("global");
    words.take_prefix("L2::");
    MemoryAccess access;
    access.space = AddressSpace::shared;
    const Address to = address(operand(0));
    const Address from = address(operand(1));
    access.address = to.value;
    access.address_is_64_bits = to.is_64_bits;
    access.offset = to.offset;
    access.second_address = from.value;
    access.second_is_64_bits = from.is_64_bits;
    access.second_offset = from.offset;
    access.bytes = static_cast<std::uint8_t>(operand(2).integer);
    if (access.bytes != 4 && access.bytes != 8 && access.bytes != 16) {
      throw Unsupported{"cp.async copies 4, 8 or 16 bytes"};
    }
    if (instruction_->operands.size() > 3) access.source_bytes = in(3, Type::u32);
    program_.memory.push_back(access);
    emit(Action::async_copy, {}, {access.address, access.second_address, access.source_bytes})
        .detail = last(program_.memory);
    set_memory_row(AddressSpace::global, MemoryKind::async_copy, access.bytes);
    if (bypass) pending_.cache_operator = CacheOperator::bypass_l1;
  }

  /// Hints that change no value and take no access of the trace.
  void lower_hint(Words& words) {
    words.take_all();
    set_class(OpClass::control);
  }
  void lower_fence(Words& words) {
    words.take_all();
    emit(Action::fence, {}, {});
    set_class(OpClass::barrier);
  }

  // ---- textures ----

  void lower_tex(Words& words) {
    TextureAccess access;
    const bool has_level = words.take("level");
    if (words.take("grad")) throw Unsupported{"gradients are not supported"};
    words.take("base");
    take_geometry(words, access);
    words.take("v4");
    access.type = words.need_type();
    const Type coordinate = words.need_type();
    access.fetch = coordinate == Type::s32;
    const Operand& from = operand(1);
    if (from.kind != Operand::Kind::texture || from.elements.size() < 2) {
      throw Unsupported{"its texture operand is missing"};
    }
    if (has_level) read_level(operand(2));
    std::vector<std::uint32_t> uses = texture_object(from, access);
    const auto coordinates = elements_of(from.elements.back());
    const std::size_t needed = access.dimensions + (access.layered ? 1u : 0u);
    if (coordinates.size() < needed) throw Unsupported{"it has too few coordinates"};
    if (access.cube && access.fetch) throw Unsupported{"cubemaps are not read at integers"};
    for (std::size_t i = 0; i < needed; ++i) {
      access.coordinates[i] =
          in(*coordinates[i], i == 0 && access.layered ? Type::s32 : coordinate);
      uses.push_back(access.coordinates[i]);
    }
    const auto targets = elements_of(operand(0));
    if (targets.size() > 4) throw Unsupported{"it has too many registers"};
    access.elements = static_cast<std::uint8_t>(targets.size());
    std::vector<std::uint32_t> definitions;
    for (std::size_t i = 0; i < targets.size() && i < 4; ++i) {
      access.values[i] = out(*targets[i], Type::b32);
      definitions.push_back(access.values[i]);
    }
    program_.textures.push_back(access);
    emit(Action::texture, definitions, uses).detail = last(program_.textures);
    set_class(OpClass::texture);
  }

  void read_level(const Operand& level) {
    const bool zero =
        (level.kind == Operand::Kind::floating || level.kind == Operand::Kind::integer) &&
        level.integer == 0;
    if (!zero) in(level, Type::b32);  // one level exists, whatever is asked for
  }

  void take_geometry(Words& words, TextureAccess& access) {
    const auto shape = words.take_one_of({"1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms"});
    if (!shape) throw Unsupported{"it names no geometry"};
    if (*shape == 7) throw Unsupported{"multisampled textures are not supported"};
    static constexpr std::uint8_t dimensions[] = {1, 2, 3, 1, 2, 3, 3};
    access.dimensions = dimensions[*shape];
    access.layered = *shape == 3 || *shape == 4 || *shape == 6;
    access.cube = *shape == 5 || *shape == 6;
  }

  /// The handle in a register, or the number of a `.texref` variable.
  std::vector<std::uint32_t> texture_object(const Operand& from, TextureAccess& access) {
    if (from.elements.empty()) throw Unsupported{"its texture operand is missing"};
    const Operand& object = from.elements[0];
    if (object.kind == Operand::Kind::variable) {
      const auto found = symbols_.texture_references.find(object.name);
      if (found == symbols_.texture_references.end()) {
        throw Unsupported{object.name + " is no texture reference"};
      }
      access.reference = found->second;
      return {};
    }
    access.object = in(object, Type::u64);
    return {access.object};
  }

  void lower_suld(Words& words) { surface(words, true); }
  void lower_sust(Words& words) { surface(words, false); }
  void surface(Words& words, bool is_load) {
    if (!words.take("b")) throw Unsupported{"formatted surface accesses are not supported"};
    TextureAccess access;
    take_geometry(words, access);
    if (access.cube) throw Unsupported{"it names no geometry of a surface"};
    words.take_one_of({"ca", "cg", "cs", "cv", "wb", "wt"});
    access.elements = take_elements(words);
    const Type type = words.need_type();
    access.element_bytes = static_cast<std::uint8_t>(bytes_of(type));
    const auto beyond = words.take_one_of({"trap", "clamp", "zero"});
    access.out_of_bounds = static_cast<std::uint8_t>(beyond.value_or(0));
    const Operand& at = operand(is_load ? 1 : 0);
    if (at.kind != Operand::Kind::texture) throw Unsupported{"its surface operand is missing"};
    std::vector<std::uint32_t> uses = texture_object(at, access);
    const auto coordinates = elements_of(at.elements.back());
    if (coordinates.size() < access.dimensions + (access.layered ? 1u : 0u)) {
      throw Unsupported{"it has too few coordinates"};
    }
    for (std::size_t i = 0; i < coordinates.size() && i < 4; ++i) {
      access.coordinates[i] = in(*coordinates[i], Type::b32);
      uses.push_back(access.coordinates[i]);
    }
    const auto registers = elements_of(operand(is_load ? 0 : 1));
    if (registers.size() != access.elements || registers.size() > 4) {
      throw Unsupported{"it has too few or many registers"};
    }
    std::vector<std::uint32_t> definitions;
    for (std::size_t i = 0; i < registers.size() && i < 4; ++i) {
      const Type width = bits_type(std::max(bytes_of(type), 2u));
      access.values[i] = is_load ? out(*registers[i], width) : in(*registers[i], width);
      (is_load ? definitions : uses).push_back(access.values[i]);
    }
    program_.textures.push_back(access);
    emit(is_load ? Action::surface_load : Action::surface_store, definitions, uses).detail =
        last(program_.textures);
    set_class(OpClass::texture);
  }

  void lower_txq(Words& words) {
    TextureAccess access;
    const auto query = words.take_one_of({"width", "height", "depth"});
    if (!query) throw Unsupported{"this query is not supported"};
    access.query = static_cast<std::uint8_t>(*query);
    words.need_type();
    Operand at = operand(1);
    std::vector<std::uint32_t> uses = texture_object(at, access);
    access.values[0] = out(0, Type::b32);
    program_.textures.push_back(access);
    emit(Action::texture_query, {access.values[0]}, uses).detail = last(program_.textures);
    set_class(OpClass::texture);
  }

  // ---- warp-wide ----

  void add_collective(Action action, const Collective& collective) {
    program_.collectives.push_back(collective);
    emit(action, {collective.result, collective.predicate},
         {collective.a, collective.b, collective.c, collective.members})
        .detail = last(program_.collectives);
  }

  void lower_shfl(Words& words) {
    const bool sync = words.take("sync");
    const auto mode = words.take_one_of({"up", "down", "bfly", "idx"});
    if (!mode) throw Unsupported{"it names no mode"};
    words.need_type();
    Collective collective{.mode = static_cast<std::uint8_t>(*mode)};
    const bool paired = operand(0).paired;
    const std::size_t first = paired ? 2 : 1;
    collective.a = in(first, Type::b32);
    collective.b = in(first + 1, Type::b32);
    collective.c = in(first + 2, Type::b32);
    if (sync) collective.members = in(first + 3, Type::b32);
    collective.result = out(0, Type::b32);
    if (paired) collective.predicate = out(1, Type::pred);
    add_collective(Action::shuffle, collective);
    set_class(OpClass::shuffle);
  }

  void lower_vote(Words& words) {
    const bool sync = words.take("sync");
    const auto mode = words.take_one_of({"all", "any", "uni", "ballot"});
    if (!mode) throw Unsupported{"it names no mode"};
    const Type type = words.need_type();
    Collective collective{.mode = static_cast<std::uint8_t>(*mode)};
    collective.a = in(1, Type::pred);
    if (sync) collective.members = in(2, Type::b32);
    collective.result = out(0, type);
    add_collective(Action::vote, collective);
    set_class(OpClass::integer);
  }

  void lower_match(Words& words) {
    const bool all = words.take("all");
    words.take("any");
    words.take("sync");
    const Type type = words.need_type();
    Collective collective{.mode = static_cast<std::uint8_t>(all ? 1 : 0), .type = type};
    const bool paired = operand(0).paired;
    const std::size_t first = paired ? 2 : 1;
    collective.a = in(first, type);
    collective.members = in(first + 1, Type::b32);
    collective.result = out(0, Type::b32);
    if (paired) collective.predicate = out(1, Type::pred);
    add_collective(Action::match, collective);
    set_class(OpClass::shuffle);
  }

  void lower_redux(Words& words) {
    words.take("sync");
    static constexpr std::string_view names[] = {"add", "min", "max", "and", "or", "xor"};
    std::string_view name;
    for (const std::string_view candidate : names) {
      if (words.take(candidate)) name = candidate;
    }
    const Type type = words.need_type();
    Collective collective{.type = type};
    collective.combine = find_atomic(name, type, false);
    if (collective.combine == nullptr || bytes_of(type) != 4) {
      throw Unsupported{"this reduction is not supported"};
    }
    collective.a = in(1, Type::b32);
    collective.members = in(2, Type::b32);
    collective.result = out(0, Type::b32);
    add_collective(Action::reduce, collective);
    set_class(OpClass::uniform);
  }

  void lower_activemask(Words& words) {
    words.need_type();
    add_collective(Action::active_mask, {.result = out(0, Type::b32)});
    set_class(OpClass::integer);
  }

  void lower_elect(Words& words) {
    words.take("sync");
    const bool paired = operand(0).paired;
    Collective collective;
    collective.members = in(paired ? 2 : 1, Type::b32);
    collective.result = out(0, Type::b32);
    if (paired) collective.predicate = out(1, Type::pred);
    add_collective(Action::elect, collective);
    set_class(OpClass::shuffle);
  }

  // ---- matrices ----

  static MatrixElement element_named(std::string_view word) {
    static constexpr std::pair<std::string_view, MatrixElement> names[] = {
        {"f16", MatrixElement::f16}, {"bf16", MatrixElement::bf16}, {"tf32", MatrixElement::tf32},
        {"f32", MatrixElement::f32}, {"f64", MatrixElement::f64},   {"s32", MatrixElement::s32},
        {"s8", MatrixElement::s8},   {"u8", MatrixElement::u8},     {"s4", MatrixElement::s4},
        {"u4", MatrixElement::u4},   {"b1", MatrixElement::b1}};
    for (const auto& [name, element] : names) {
      if (word == name) return element;
    }
    throw Unsupported{word.empty() ? std::string("it names too few types")
                                   : "matrices of ." + std::string(word) + " are not supported"};
  }

  /// M, N and K.
  struct MatrixShape {
    std::uint32_t m = 0;
    std::uint32_t n = 0;
    std::uint32_t k = 0;
  };
  static MatrixShape take_matrix_shape(Words& words) {
    static constexpr std::pair<std::string_view, MatrixShape> names[] = {
        {"m8n8k4", {8, 8, 4}},       {"m8n8k16", {8, 8, 16}},     {"m8n8k32", {8, 8, 32}},
        {"m8n8k128", {8, 8, 128}},   {"m16n8k4", {16, 8, 4}},     {"m16n8k8", {16, 8, 8}},
        {"m16n8k16", {16, 8, 16}},   {"m16n8k32", {16, 8, 32}},   {"m16n8k64", {16, 8, 64}},
        {"m16n8k128", {16, 8, 128}}, {"m16n8k256", {16, 8, 256}}, {"m16n16k8", {16, 16, 8}},
        {"m16n16k16", {16, 16, 16}}, {"m8n32k16", {8, 32, 16}},   {"m32n8k16", {32, 8, 16}}};
    for (const auto& [name, shape] : names) {
      if (words.take(name)) return shape;
    }
    throw Unsupported{"this shape is not supported"};
  }

  /// Whether the machine multiplies such matrices (PTX ISA, tables of shapes of mma and wmma).
  static bool has_matrix_shape(const MatrixShape& shape, MatrixElement element, bool wmma) {
    const std::uint32_t bits = element == MatrixElement::b1 ? 1 : bits_of(element);
    const std::uint32_t row_bits = shape.k * bits;
    if (element == MatrixElement::f64) {
      if (shape.m == 8) return shape.n == 8 && shape.k == 4;
      return !wmma && shape.m == 16 && shape.n == 8 &&
             (shape.k == 4 || shape.k == 8 || shape.k == 16);
    }
    if (wmma) {
      if (bits == 16 || bits == 8) return shape.k == 16 && shape.m * shape.n == 256;
      if (bits == 32) return shape.n == 16 && shape.k == 8;
      return shape.m == 8 && shape.n == 8 && row_bits == 128;
    }
    if (shape.n != 8) return false;
    if (shape.m == 8) return bits <= 8 && row_bits == 128;
    return shape.m == 16 && (row_bits == 128 || row_bits == 256);
  }

  /// The fragment of a matrix; those of b1 count in words.
  static MatrixFragment fragment_of(MatrixRole role, MatrixElement element, MatrixShape shape) {
    if (element == MatrixElement::b1) shape.k /= 32;
    switch (role) {
      case MatrixRole::a:
        return {role, element, shape.m, shape.k};
      case MatrixRole::b:
        return {role, element, shape.k, shape.n};
      case MatrixRole::accumulator:
        break;
    }
    return {role, element, shape.m, shape.n};
  }

  /// Registers of a fragment: wmma's f16 ones have eight, which repeat the elements.
  static std::size_t num_registers(const MatrixFragment& fragment, bool wmma) {
    const bool repeats =
        wmma && fragment.element == MatrixElement::f16 && fragment.role != MatrixRole::accumulator;
    return repeats ? 8 : fragment.num_registers();
  }

  std::vector<const Operand*> matrix_registers(std::size_t i, const MatrixFragment& fragment,
                                               bool wmma) const {
    auto registers = elements_of(operand(i));
    const std::size_t needed = num_registers(fragment, wmma);
    if (registers.size() != needed) {
      throw Unsupported{"operand " + std::to_string(i) + " has " +
                        std::to_string(registers.size()) + " registers instead of " +
                        std::to_string(needed)};
    }
    return registers;
  }

  static Type register_type(const MatrixFragment& fragment) {
    switch (fragment.element) {
      case MatrixElement::f64:
        return Type::f64;
      case MatrixElement::f32:
        return Type::f32;
      default:
        return Type::b32;
    }
  }

  void lower_mma(Words& words) {
    if (words.take("sp") || words.take_prefix("sp::")) {
      throw Unsupported{"sparse matrices are not supported"};
    }
    if (words.take_prefix("kind::") || words.take("block_scale")) {
      throw Unsupported{"matrices of 4-bit to 8-bit floats are not supported"};
    }
    multiply(words, false);
  }

  void lower_wmma(Words& words) {
    const auto verb = words.take_one_of({"mma", "load", "store"});
    if (!verb) throw Unsupported{"it is no load, mma or store"};
    if (*verb == 0) {
      multiply(words, true);
    } else {
      access_fragment(words, *verb == 1);
    }
  }

  void multiply(Words& words, bool wmma) {
    words.take("sync");
    words.take("aligned");
    const MatrixShape shape = take_matrix_shape(words);
    const bool has_columns = words.take("col");
    const bool has_rows = words.take("row");
    MatrixMultiply multiply;
    multiply.saturate = words.take("satfinite");
    words.take("rn");
    if (words.take_one_of({"rz", "rm", "rp"})) {
      throw Unsupported{"matrices are rounded to nearest alone"};
    }
    multiply.by_and = words.take("and");
    words.take("xor");
    words.take("popc");
    const MatrixElement d = element_named(words.next());
    const MatrixElement second = element_named(words.next());
    MatrixElement a = second, b = second, c = second;
    // wmma of f16 names the types of D and C alone.
    const bool short_form = wmma && (second == MatrixElement::f16 || second == MatrixElement::f32);
    const std::string_view third = words.next();
    if (short_form && third.empty()) {
      a = b = MatrixElement::f16;
    } else {
      b = element_named(third);
      c = element_named(words.next());
    }
    check_matrix_types(shape, a, b, c, d, wmma);
    if (!wmma && !(has_rows && has_columns)) {
      throw Unsupported{"of these matrices A lies in rows and B in columns"};
    }
    multiply.a = fragment_of(MatrixRole::a, a, shape);
    multiply.b = fragment_of(MatrixRole::b, b, shape);
    multiply.c = fragment_of(MatrixRole::accumulator, c, shape);
    multiply.d = fragment_of(MatrixRole::accumulator, d, shape);
    std::vector<std::uint32_t> uses, definitions;
    const auto read_all = [&](std::size_t i, const MatrixFragment& fragment,
                              std::array<std::uint32_t, 8>& values) {
      std::vector<std::uint32_t> read;
      for (const Operand* reg : matrix_registers(i, fragment, wmma)) {
        const std::uint32_t value = in(*reg, register_type(fragment));
        if (read.size() < fragment.num_registers()) values[read.size()] = value;
        read.push_back(value);
      }
      read.resize(fragment.num_registers());
      uses.insert(uses.end(), read.begin(), read.end());
      return read;
    };
    const auto a_read = read_all(1, multiply.a, multiply.a_values);
    const auto b_read = read_all(2, multiply.b, multiply.b_values);
    const auto c_read = read_all(3, multiply.c, multiply.c_values);
    for (const Operand* reg : matrix_registers(0, multiply.d, wmma)) {
      multiply.d_values[definitions.size()] = out(*reg, register_type(multiply.d));
      definitions.push_back(multiply.d_values[definitions.size()]);
    }
    program_.multiplications.push_back(multiply);
    emit(Action::matrix_multiply, definitions, uses).detail = last(program_.multiplications);
    set_class(OpClass::tensor);
    // The machine multiplies 16 x 8 at most; larger ones are two, of a half of the result each.
    const std::size_t parts = shape.m * shape.n > 128 ? 2 : 1;
    const auto half = [parts](const std::vector<std::uint32_t>& all, std::size_t part) {
      const auto size = static_cast<std::ptrdiff_t>(all.size() / parts);
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(part) * size;
      return std::vector<std::uint32_t>(first, first + size);
    };
    for (std::size_t part = 0; part < parts; ++part) {
      Part row{half(definitions, part), a_read};
      row.sources.insert(row.sources.end(), b_read.begin(), b_read.end());
      const auto added = half(c_read, part);
      row.sources.insert(row.sources.end(), added.begin(), added.end());
      std::erase_if(row.sources, [this](std::uint32_t v) { return values_[v].is_constant; });
      parts_.push_back(std::move(row));
    }
  }

  static void check_matrix_types(const MatrixShape& shape, MatrixElement a, MatrixElement b,
                                 MatrixElement c, MatrixElement d, bool wmma) {
    if (shape.m == 8 && shape.n == 8 && shape.k == 4 && a == MatrixElement::f16) {
      throw Unsupported{"m8n8k4 of f16, which is for compute capability 7.0, is not supported"};
    }
    const auto is_integer = [](MatrixElement e) {
      return e >= MatrixElement::s8 && e <= MatrixElement::u4;
    };
    const bool same = a == b || (is_integer(a) && is_integer(b) && bits_of(a) == bits_of(b));
    bool fits = false;
    switch (a) {
      case MatrixElement::f16:
        fits = (c == MatrixElement::f16 || c == MatrixElement::f32) &&
               (d == MatrixElement::f16 || d == MatrixElement::f32);
        break;
      case MatrixElement::bf16:
      case MatrixElement::tf32:
        fits = c == MatrixElement::f32 && d == MatrixElement::f32;
        break;
      case MatrixElement::f64:
        fits = c == MatrixElement::f64 && d == MatrixElement::f64;
        break;
      case MatrixElement::f32:
      case MatrixElement::s32:
      case MatrixElement::none:
        break;
      default:
        fits = c == MatrixElement::s32 && d == MatrixElement::s32;
        break;
    }
    if (!same || !fits || !has_matrix_shape(shape, a, wmma)) {
      throw Unsupported{"these types are not multiplied in this shape"};
    }
  }

  void access_fragment(Words& words, bool is_load) {
    const auto matrix = words.take_one_of({"a", "b", "c", "d"});
    if (!matrix || is_load != (*matrix < 3)) throw Unsupported{"it names no matrix"};
    const MatrixRole role = *matrix == 0   ? MatrixRole::a
                            : *matrix == 1 ? MatrixRole::b
                                           : MatrixRole::accumulator;
    words.take("sync");
    words.take("aligned");
    const MatrixShape shape = take_matrix_shape(words);
    FragmentAccess access;
    access.column_major = words.take("col");
    if (words.take("row") == access.column_major) throw Unsupported{"it is neither row nor col"};
    const SpaceWords space = take_space(words);
    if (space.constant || space.parameter || space.space == AddressSpace::local) {
      throw Unsupported{"matrices lie in global or shared memory"};
    }
    access.space = space.space;
    const MatrixElement element = element_named(words.next());
    const bool accumulates = element == MatrixElement::f32 || element == MatrixElement::s32;
    const bool both = element == MatrixElement::f16 || element == MatrixElement::f64;
    if (role == MatrixRole::accumulator ? !accumulates && !both : accumulates) {
      throw Unsupported{"there is no such matrix"};
    }
    // Accumulators of f32 and s32 have the shapes of any factors.
    const bool has_shape =
        accumulates ? shape.m * shape.n == 256 || (element == MatrixElement::s32 && shape.m == 8 &&
                                                   shape.n == 8 && shape.k >= 32)
                    : has_matrix_shape(shape, element, true);
    if (!has_shape) throw Unsupported{"these types are not multiplied in this shape"};
    access.fragment = fragment_of(role, element, shape);
    if (bits_of(element) < 8 || element == MatrixElement::b1) {
      if (!access.is_contiguous()) {
        throw Unsupported{"of these matrices A lies in rows and B in columns"};
      }
    }
    const Address at = address(operand(is_load ? 1 : 0));
    access.address = at.value;
    access.address_is_64_bits = at.is_64_bits;
    access.offset = at.offset;
    std::vector<std::uint32_t> uses{access.address};
    if (instruction_->operands.size() > 2) {
      access.stride = in(2, Type::u32);
      uses.push_back(access.stride);
    }
    const std::vector<std::uint32_t> address_sources = row_sources_;
    const auto registers = matrix_registers(is_load ? 0 : 1, access.fragment, true);
    const Type type = register_type(access.fragment);
    std::vector<std::uint32_t> values;
    for (const Operand* reg : registers) {
      values.push_back(is_load ? out(*reg, type) : in(*reg, type));
      access.values[values.size() - 1] = values.back();
    }
    access.registers = static_cast<std::uint8_t>(values.size());
    if (!is_load) uses.insert(uses.end(), values.begin(), values.end());
    program_.fragment_accesses.push_back(access);
    emit(is_load ? Action::fragment_load : Action::fragment_store,
         is_load ? values : std::vector<std::uint32_t>{}, uses)
        .detail = last(program_.fragment_accesses);
    set_memory_row(access.space, is_load ? MemoryKind::load : MemoryKind::store,
                   access.access_bytes());
    const std::uint32_t tiles = access.fragment.num_tiles();
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
      // Every access of a tile works on its registers.
      std::vector<std::uint32_t> moved;
      const std::size_t distinct = access.fragment.num_registers();
      for (std::size_t r = 0; r < values.size(); ++r) {
        if (r % distinct * tiles / distinct == tile) moved.push_back(values[r]);
      }
      std::erase_if(moved, [this](std::uint32_t v) { return values_[v].is_constant; });
      for (std::uint32_t i = 0; i < access.accesses_per_tile(); ++i) {
        Part part{{}, address_sources};
        auto& list = is_load ? part.destinations : part.sources;
        list.insert(list.end(), moved.begin(), moved.end());
        parts_.push_back(std::move(part));
      }
    }
  }

  void lower_ldmatrix(Words& words) { access_matrices(words, true); }
  void lower_stmatrix(Words& words) { access_matrices(words, false); }
  void access_matrices(Words& words, bool is_load) {
    words.take("sync");
    words.take("aligned");
    if (!words.take("m8n8")) throw Unsupported{"this shape is not supported"};
    const auto count = words.take_one_of({"x1", "x2", "x4"});
    if (!count) throw Unsupported{"it names no number of matrices"};
    MatrixAccess access;
    access.matrices = static_cast<std::uint8_t>(1u << *count);
    access.transposed = words.take("trans");
    const SpaceWords space = take_space(words);
    if (space.space != AddressSpace::shared && space.space != AddressSpace::generic) {
      throw Unsupported{"these matrices lie in shared memory"};
    }
    access.space = space.space;
    if (words.take_type() != Type::b16) throw Unsupported{"only matrices of .b16 are supported"};
    const Address at = address(operand(is_load ? 1 : 0));
    access.address = at.value;
    access.address_is_64_bits = at.is_64_bits;
    access.offset = at.offset;
    const auto registers = elements_of(operand(is_load ? 0 : 1));
    if (registers.size() != access.matrices) throw Unsupported{"it has too few or many registers"};
    std::vector<std::uint32_t> values;
    for (const Operand* reg : registers) {
      values.push_back(is_load ? out(*reg, Type::b32) : in(*reg, Type::b32));
      access.values[values.size() - 1] = values.back();
    }
    std::vector<std::uint32_t> uses{access.address};
    if (!is_load) uses.insert(uses.end(), values.begin(), values.end());
    program_.matrix_accesses.push_back(access);
    emit(is_load ? Action::matrix_load : Action::matrix_store,
         is_load ? values : std::vector<std::uint32_t>{}, uses)
        .detail = last(program_.matrix_accesses);
    set_memory_row(AddressSpace::shared, is_load ? MemoryKind::load : MemoryKind::store,
                   4u * access.matrices);
  }

  void lower_movmatrix(Words& words) {
    words.take("sync");
    words.take("aligned");
    if (!words.take("m8n8") || !words.take("trans") || words.take_type() != Type::b16) {
      throw Unsupported{"only m8n8.trans.b16 is supported"};
    }
    const std::uint32_t source = in(1, Type::b32);
    const std::uint32_t target = out(0, Type::b32);
    Step& step = emit(Action::matrix_transpose, {target}, {source});
    step.operands.target = target;
    step.operands.source[0] = source;
    set_class(OpClass::shuffle);
  }

  // ---- barriers ----

  void lower_bar(Words& words) {
    if (words.take("warp")) {
      words.take("sync");
      add_collective(Action::warp_sync, {.members = in(0, Type::b32)});
      set_class(OpClass::control);
      return;
    }
    words.take("cta");
    if (words.take("cluster")) throw Unsupported{"thread block clusters are not supported"};
    words.take("aligned");
    Barrier barrier;
    barrier.may_diverge = instruction_->opcode == "barrier" && !instruction_->has("aligned");
    std::size_t next = 0;
    if (words.take("red")) {
      const auto mode = words.take_one_of({"popc", "and", "or"});
      const Type type = words.need_type();
      static constexpr BarrierKind kinds[] = {BarrierKind::count, BarrierKind::all,
                                              BarrierKind::any};
      barrier.kind = kinds[mode.value_or(0)];
      barrier.result = out(0, type);
      const std::size_t last_operand = instruction_->operands.size() - 1;
      barrier.number = in(1, Type::u32);
      if (last_operand == 3) barrier.threads = in(2, Type::u32);
      barrier.predicate = in(last_operand, Type::pred);
    } else {
      if (words.take("arrive")) {
        barrier.kind = BarrierKind::arrive;
      } else {
        words.take("sync");
      }
      barrier.number = in(next++, Type::u32);
      if (instruction_->operands.size() > next) barrier.threads = in(next, Type::u32);
    }
    program_.barriers.push_back(barrier);
    emit(Action::barrier, {barrier.result}, {barrier.number, barrier.threads, barrier.predicate})
        .detail = last(program_.barriers);
    set_class(OpClass::barrier);
  }

  // ---- control ----

  void lower_bra(Words& words) {
    words.take("uni");
    set_class(OpClass::control);
    if (operand(0).kind != Operand::Kind::label) throw Unsupported{"its target is no label"};
    emit(Action::branch, {}, {}).jump = operand(0).index;  // instruction; connect() makes it a step
  }

  void lower_brx(Words& words) {
    words.take("idx");
    words.take("uni");
    IndexedBranch branch;
    branch.index = in(0, Type::u32);
    if (operand(1).kind != Operand::Kind::targets) throw Unsupported{"its target list is missing"};
    branch.targets = function_.target_lists[operand(1).index].labels;
    program_.indexed_branches.push_back(branch);
    emit(Action::indexed_branch, {}, {branch.index}).detail = last(program_.indexed_branches);
    set_class(OpClass::control);
  }

  void lower_call(Words& words) {
    words.take("uni");
    set_class(OpClass::control);
    Call call;
    std::size_t next = 0;
    const auto pieces = [&](const Operand& list) {
      std::vector<Call::Piece> result;
      for (const Operand& element : list.elements) {
        if (element.kind == Operand::Kind::sink) {
          result.push_back({});
          continue;
        }
        const auto offset = parameter_offsets_.find(element.name);
        if (element.kind != Operand::Kind::variable || offset == parameter_offsets_.end() ||
            !variable_sizes_.contains(element.name)) {
          throw Unsupported{"arguments that are not .param variables are not supported"};
        }
        result.push_back(
            {static_cast<std::uint32_t>(offset->second), variable_sizes_.at(element.name)});
      }
      return result;
    };
    if (operand(0).kind == Operand::Kind::arguments) call.results = pieces(operand(next++));
    const Operand& callee = operand(next++);
    if (instruction_->operands.size() > next && operand(next).kind == Operand::Kind::arguments) {
      call.arguments = pieces(operand(next));
    }
    if (callee.kind == Operand::Kind::reg) {
      call.address = in(callee, Type::u64);
      program_.calls.push_back(call);
      emit(Action::indirect_call, {}, {call.address}).detail = last(program_.calls);
      return;
    }
    static constexpr std::pair<std::string_view, Call::BuiltIn> built_in[] = {
        {"vprintf", Call::BuiltIn::print},
        {"__assertfail", Call::BuiltIn::assert_fail},
        {"malloc", Call::BuiltIn::allocate},
        {"free", Call::BuiltIn::release}};
    for (const auto& [name, kind] : built_in) {
      if (callee.name == name) call.built_in = kind;
    }
    if (call.built_in == Call::BuiltIn::none) {
      const auto found = layout_.function_numbers.find(callee.name);
      if (found == layout_.function_numbers.end()) {
        throw Unsupported{"function " + callee.name + " is not in the module"};
      }
      call.function = found->second;
      const Function& text = *layout_.functions[call.function];
      if (text.parameters.size() != call.arguments.size() ||
          text.returns.size() != call.results.size()) {
        throw Unsupported{callee.name + " has another number of parameters"};
      }
    }
    program_.calls.push_back(call);
    emit(Action::call, {}, {}).detail = last(program_.calls);
  }

  void lower_ret(Words& words) {
    words.take("uni");
    set_class(OpClass::control);
    emit(is_kernel_ ? Action::exit : Action::function_return, {}, {});
  }
  void lower_exit(Words&) {
    set_class(OpClass::control);
    emit(Action::exit, {}, {});
  }
  void lower_trap(Words&) {
    set_class(OpClass::control);
    emit(Action::trap, {}, {});
  }

  // ---- finishing ----

  /// Makes targets of branches steps, and finds where branches reconverge.
  void connect() {
    const auto end = static_cast<std::uint32_t>(result_.steps.size());
    successors_.resize(end);
    for (std::uint32_t i = 0; i < end; ++i) {
      Step& step = result_.steps[i];
      const bool guarded = step.guard != none;
      auto& next = successors_[i];
      switch (step.action) {
        case Action::branch:
          step.jump = first_step_[step.jump];
          if (exits_at(step.jump)) {
            // Machine code exits on the spot, and so must a simulation: lanes on their way to the
            // kernel's end keep nobody waiting at a barrier.
            step.action = Action::exit;
            if (step.num_rows > 0) rows_[step.first_row].instruction.opcode = "exit";
            next.push_back(end);
            if (guarded && i + 1 != end) next.push_back(i + 1);
            break;
          }
          next.push_back(step.jump);
          if (guarded && step.jump != i + 1) next.push_back(i + 1);
          break;
        case Action::indexed_branch:
          for (std::uint32_t& target : program_.indexed_branches[step.detail].targets) {
            target = first_step_[target];
            if (std::ranges::find(next, target) == next.end()) next.push_back(target);
          }
          if (guarded && std::ranges::find(next, i + 1) == next.end()) next.push_back(i + 1);
          break;
        case Action::exit:
        case Action::function_return:
        case Action::trap:
          next.push_back(end);
          if (guarded && i + 1 != end) next.push_back(i + 1);
          break;
        default:
          next.push_back(i + 1);
          break;
      }
    }
    for (std::uint32_t i = 0; i + 1 < end; ++i) {
      // Lanes that call different functions meet behind the call.
      if (result_.steps[i].action == Action::indirect_call) result_.steps[i + 1].reconverges = true;
    }
    const std::vector<std::uint32_t> meeting = post_dominators(without_early_exits());
    for (std::uint32_t i = 0; i < end; ++i) {
      Step& step = result_.steps[i];
      if (step.action != Action::branch && step.action != Action::indexed_branch) continue;
      step.reconvergence = meeting[i];
      if (meeting[i] == end) continue;
      result_.steps[meeting[i]].reconverges = true;
    }
  }

  /// Steps from which `to` can be reached, itself among them.
  static std::vector<bool> leading_to(const Successors& previous, std::uint32_t to) {
    std::vector<bool> leads(previous.size(), false);
    std::vector<std::uint32_t> work{to};
    leads[to] = true;
    while (!work.empty()) {
      const std::uint32_t step = work.back();
      work.pop_back();
      for (const std::uint32_t from : previous[step]) {
        if (leads[from]) continue;
        leads[from] = true;
        work.push_back(from);
      }
    }
    return leads;
  }

  /// Successors without the ways that lead only to early exits: lanes that are gone keep nobody
  /// from meeting. The exit that most steps can reach is the natural one, the others are early.
  /// Steps that cannot reach it keep all their ways.
  Successors without_early_exits() const {
    const auto end = static_cast<std::uint32_t>(result_.steps.size());
    Successors previous(end);
    for (std::uint32_t i = 0; i < end; ++i) {
      for (const std::uint32_t next : successors_[i]) {
        if (next != end) previous[next].push_back(i);
      }
    }
    std::uint32_t natural = end;
    std::ptrdiff_t most = 0;
    std::vector<bool> core;
    for (std::uint32_t i = 0; i < end; ++i) {
      if (successors_[i] != std::vector{end} || result_.steps[i].action == Action::trap) continue;
      std::vector<bool> leads = leading_to(previous, i);
      const std::ptrdiff_t count = std::ranges::count(leads, true);
      if (count < most) continue;
      natural = i;
      most = count;
      core = std::move(leads);
    }
    Successors result = successors_;
    if (natural == end) return result;
    for (std::uint32_t i = 0; i < end; ++i) {
      if (!core[i] || i == natural) continue;
      std::erase_if(result[i], [&](std::uint32_t next) { return next == end || !core[next]; });
    }
    return result;
  }

  /// The step is nothing but the end of the kernel.
  bool exits_at(std::uint32_t step) const {
    if (!is_kernel_ || step >= result_.steps.size()) return is_kernel_;
    return result_.steps[step].action == Action::exit && result_.steps[step].guard == none;
  }

  /// Gives values their places in the frame: constants first, then registers.
  void place_values() {
    std::vector<std::uint8_t> units, counts;
    for (const Value& value : values_) {
      units.push_back(value.units);
      counts.push_back(value.is_predicate ? 0 : 1);
    }
    for (DefinitionsAndUses& effect : effects_) {
      std::erase_if(effect.uses, [this](std::uint32_t v) { return values_[v].is_constant; });
    }
    const Allocation32 places = allocate_registers(successors_, effects_, units, counts);
    result_.pressure = places.pressure;
    offsets_.assign(values_.size() + 1, 0);  // one more: operands that a step lacks name value 0
    std::uint32_t end = 0;
    for (const std::uint8_t width : {2, 1}) {
      for (std::size_t v = 0; v < values_.size(); ++v) {
        if (!values_[v].is_constant || values_[v].units != width) continue;
        offsets_[v] = end;
        end += width * unit_bytes;
      }
    }
    end = align(end, 2 * unit_bytes);
    result_.constants.resize(end);
    for (std::size_t v = 0; v < values_.size(); ++v) {
      if (values_[v].is_constant) {
        for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
          const std::uint32_t bytes = values_[v].units * 4u;
          std::memcpy(result_.constants.data() + offsets_[v] + lane * bytes, &values_[v].bits,
                      bytes);
        }
      } else if (places.unit[v] != ~0u) {
        offsets_[v] = end + places.unit[v] * unit_bytes;
      }
    }
    result_.register_bytes = align(end + places.num_units * unit_bytes, 2 * unit_bytes);
    patch();
  }

  void patch() {
    const auto place = [this](std::uint32_t& value) {
      if (value != none) value = offsets_[value];
    };
    for (std::size_t i = 0; i < result_.steps.size(); ++i) {
      Step& step = result_.steps[i];
      place(step.guard);
      place(step.operands.target);
      place(step.operands.target2);
      for (std::uint32_t& source : step.operands.source) place(source);
      switch (step.action) {
        case Action::load:
        case Action::store:
        case Action::atomic:
        case Action::async_copy: {
          MemoryAccess& access = program_.memory[step.detail];
          for (std::uint32_t e = 0; e < access.elements; ++e) place(access.values[e]);
          for (std::uint32_t* value :
               {&access.address, &access.result, &access.operand_b, &access.operand_c,
                &access.second_address, &access.source_bytes}) {
            place(*value);
          }
          break;
        }
        case Action::kernel_parameter:
        case Action::parameter_load:
        case Action::parameter_store: {
          ParameterAccess& access = program_.parameter_accesses[step.detail];
          for (std::uint32_t e = 0; e < access.elements; ++e) place(access.values[e]);
          place(access.address);
          break;
        }
        case Action::texture:
        case Action::surface_load:
        case Action::surface_store:
        case Action::texture_query: {
          TextureAccess& access = program_.textures[step.detail];
          place(access.object);
          for (std::uint32_t& value : access.coordinates) place(value);
          for (std::uint32_t& value : access.values) place(value);
          break;
        }
        case Action::shuffle:
        case Action::vote:
        case Action::match:
        case Action::reduce:
        case Action::active_mask:
        case Action::elect:
        case Action::warp_sync: {
          Collective& collective = program_.collectives[step.detail];
          for (std::uint32_t* value : {&collective.result, &collective.predicate, &collective.a,
                                       &collective.b, &collective.c, &collective.members}) {
            place(*value);
          }
          break;
        }
        case Action::matrix_multiply: {
          MatrixMultiply& multiply = program_.multiplications[step.detail];
          for (auto* values :
               {&multiply.a_values, &multiply.b_values, &multiply.c_values, &multiply.d_values}) {
            for (std::uint32_t& value : *values) place(value);
          }
          break;
        }
        case Action::matrix_load:
        case Action::matrix_store: {
          MatrixAccess& access = program_.matrix_accesses[step.detail];
          place(access.address);
          for (std::uint32_t& value : access.values) place(value);
          break;
        }
        case Action::fragment_load:
        case Action::fragment_store: {
          FragmentAccess& access = program_.fragment_accesses[step.detail];
          place(access.address);
          place(access.stride);
          for (std::uint32_t& value : access.values) place(value);
          break;
        }
        case Action::barrier: {
          Barrier& barrier = program_.barriers[step.detail];
          for (std::uint32_t* value :
               {&barrier.number, &barrier.threads, &barrier.predicate, &barrier.result}) {
            place(*value);
          }
          break;
        }
        case Action::indexed_branch:
          place(program_.indexed_branches[step.detail].index);
          break;
        case Action::indirect_call:
          place(program_.calls[step.detail].address);
          break;
        default:
          break;
      }
    }
  }

  /// The value at the beginning of each value's chain of folded copies: itself when it is not one.
  /// Copies in a circle, which nothing has given a value, share one of them.
  std::vector<std::uint32_t> origins(const std::vector<std::uint32_t>& writes) const {
    std::vector<std::uint32_t> origin(values_.size(), none);
    std::vector<std::uint32_t> chain;
    for (std::uint32_t first = 0; first < values_.size(); ++first) {
      chain.clear();
      std::uint32_t value = first;
      while (origin[value] == none) {
        origin[value] = value;
        chain.push_back(value);
        const auto next = aliases_.find(value);
        if (next == aliases_.end() || writes[value] != 1 || writes[next->second] > 1 ||
            values_[next->second].is_constant) {
          break;
        }
        value = next->second;
      }
      for (const std::uint32_t copy : chain) origin[copy] = origin[value];
    }
    return origin;
  }

  /// Numbers the registers of the rows for the whole kernel. A folded copy shares the number of its
  /// source when both are written once.
  void add_rows(std::uint32_t& first_register) {
    std::vector<std::uint32_t> writes(values_.size(), 0);
    for (const DefinitionsAndUses& effect : effects_) {
      for (const std::uint32_t value : effect.definitions) ++writes[value];
    }
    std::vector<std::uint32_t> number(values_.size());
    for (std::size_t v = 0; v < values_.size(); ++v) {
      number[v] = first_register;
      if (!values_[v].is_constant) first_register += values_[v].units;
    }
    const std::vector<std::uint32_t> origin = origins(writes);
    const auto append = [&](std::vector<std::uint16_t>& registers, std::uint32_t value) {
      value = origin[value];
      for (std::uint32_t i = 0; i < values_[value].units; ++i) {
        // 255 is the zero register of the machine's own names; 16 bits must do for the rest.
        const std::uint32_t n = (number[value] + i) % 65000;
        registers.push_back(static_cast<std::uint16_t>(n < zero_register ? n : n + 1));
      }
    };
    const auto base = static_cast<std::uint32_t>(program_.rows.size());
    for (PendingRow& row : rows_) {
      for (const std::uint32_t value : row.destinations)
        append(row.instruction.destinations, value);
      for (const std::uint32_t value : row.sources) append(row.instruction.sources, value);
      row.instruction.pc = static_cast<std::uint32_t>(program_.rows.size() * 16);
      program_.rows.push_back(std::move(row.instruction));
    }
    for (Step& step : result_.steps) {
      if (step.num_rows > 0) step.first_row += base;
    }
  }

  const Module& module_;
  const SymbolTable& symbols_;
  const KernelLayout& layout_;
  KernelProgram& program_;
  const Function& function_;
  bool is_kernel_;

  ProgramFunction result_;
  std::vector<Value> values_;
  std::vector<std::uint32_t> first_value_;  ///< of each register
  std::map<std::pair<std::uint64_t, bool>, std::uint32_t> constants_;
  std::vector<DefinitionsAndUses> effects_;  ///< of each step
  std::vector<std::uint32_t> first_step_;    ///< of each instruction
  Successors successors_;
  std::vector<std::uint32_t> offsets_;  ///< of each value in the frame
  std::uint32_t carry_ = none;
  std::map<std::string, std::uint64_t> parameter_offsets_;
  std::map<std::string, std::uint64_t> kernel_parameters_;
  std::map<std::string, std::uint32_t> variable_sizes_;
  std::map<std::string, std::uint64_t> local_offsets_;
  std::map<std::uint32_t, std::uint32_t> aliases_;  ///< folded copies: target to source
  std::vector<PendingRow> rows_;

  // The instruction at hand.
  std::uint32_t instruction_number_ = 0;
  const Instruction* instruction_ = nullptr;
  std::uint32_t guard_ = none;
  bool guard_negated_ = false;
  bool folded_ = false;
  /// Rows of an instruction that is several of the same class in the machine, none after another.
  struct Part {
    std::vector<std::uint32_t> destinations;
    std::vector<std::uint32_t> sources;
  };
  std::vector<Part> parts_;
  StaticInstruction pending_;
  std::vector<std::uint32_t> row_destinations_;
  std::vector<std::uint32_t> row_sources_;
};

const std::unordered_map<std::string, FunctionLowering::Lowering>& FunctionLowering::lowerings() {
  using F = FunctionLowering;
  static const std::unordered_map<std::string, Lowering> table{
      {"abs", &F::lower_abs},
      {"activemask", &F::lower_activemask},
      {"add", &F::lower_add},
      {"addc", &F::lower_addc},
      {"and", &F::lower_and},
      {"applypriority", &F::lower_hint},
      {"atom", &F::lower_atom},
      {"bar", &F::lower_bar},
      {"barrier", &F::lower_bar},
      {"bfe", &F::lower_bfe},
      {"bfi", &F::lower_bfi},
      {"bfind", &F::lower_bfind},
      {"bmsk", &F::lower_bmsk},
      {"bra", &F::lower_bra},
      {"brev", &F::lower_brev},
      {"brkpt", &F::lower_trap},
      {"brx", &F::lower_brx},
      {"call", &F::lower_call},
      {"clz", &F::lower_clz},
      {"cnot", &F::lower_cnot},
      {"copysign", &F::lower_copysign},
      {"cos", &F::lower_cos},
      {"cp", &F::lower_cp},
      {"cvt", &F::lower_cvt},
      {"cvta", &F::lower_cvta},
      {"discard", &F::lower_hint},
      {"div", &F::lower_div},
      {"dp2a", &F::lower_dp2a},
      {"dp4a", &F::lower_dp4a},
      {"elect", &F::lower_elect},
      {"ex2", &F::lower_ex2},
      {"exit", &F::lower_exit},
      {"fence", &F::lower_fence},
      {"fma", &F::lower_fma},
      {"fns", &F::lower_fns},
      {"isspacep", &F::lower_isspacep},
      {"ld", &F::lower_ld},
      {"ldu", &F::lower_ld},
      {"ldmatrix", &F::lower_ldmatrix},
      {"lg2", &F::lower_lg2},
      {"lop3", &F::lower_lop3},
      {"mad", &F::lower_mad},
      {"mad24", &F::lower_mad24},
      {"madc", &F::lower_madc},
      {"match", &F::lower_match},
      {"max", &F::lower_max},
      {"membar", &F::lower_fence},
      {"min", &F::lower_min},
      {"mma", &F::lower_mma},
      {"mov", &F::lower_mov},
      {"movmatrix", &F::lower_movmatrix},
      {"mul", &F::lower_mul},
      {"mul24", &F::lower_mul24},
      {"nanosleep", &F::lower_hint},
      {"neg", &F::lower_neg},
      {"not", &F::lower_not},
      {"or", &F::lower_or},
      {"pmevent", &F::lower_hint},
      {"popc", &F::lower_popc},
      {"prefetch", &F::lower_hint},
      {"prefetchu", &F::lower_hint},
      {"prmt", &F::lower_prmt},
      {"rcp", &F::lower_rcp},
      {"red", &F::lower_red},
      {"redux", &F::lower_redux},
      {"rem", &F::lower_rem},
      {"ret", &F::lower_ret},
      {"rsqrt", &F::lower_rsqrt},
      {"sad", &F::lower_sad},
      {"selp", &F::lower_selp},
      {"set", &F::lower_set},
      {"setp", &F::lower_setp},
      {"shf", &F::lower_shf},
      {"shfl", &F::lower_shfl},
      {"shl", &F::lower_shl},
      {"shr", &F::lower_shr},
      {"sin", &F::lower_sin},
      {"slct", &F::lower_slct},
      {"sqrt", &F::lower_sqrt},
      {"st", &F::lower_st},
      {"stmatrix", &F::lower_stmatrix},
      {"sub", &F::lower_sub},
      {"subc", &F::lower_subc},
      {"suld", &F::lower_suld},
      {"sust", &F::lower_sust},
      {"szext", &F::lower_szext},
      {"tanh", &F::lower_tanh},
      {"testp", &F::lower_testp},
      {"tex", &F::lower_tex},
      {"trap", &F::lower_trap},
      {"txq", &F::lower_txq},
      {"vote", &F::lower_vote},
      {"wmma", &F::lower_wmma},
      {"xor", &F::lower_xor},
  };
  return table;
}

/// The functions that a kernel can reach: by calls, and, when it takes addresses of functions or
/// calls through registers, all functions whose address is taken.
void find_functions(const Module& module, const Function& kernel, KernelLayout& layout) {
  const auto add = [&](const Function& function) {
    const auto number = static_cast<std::uint32_t>(layout.functions.size());
    if (layout.function_numbers.try_emplace(function.name, number).second) {
      layout.functions.push_back(&function);
    }
  };
  add(kernel);
  const auto add_named = [&](const std::string& name) {
    const Function* function = module.function(name);
    if (function != nullptr && !function->is_declaration && !function->is_entry) add(*function);
  };
  for (std::size_t i = 0; i < layout.functions.size(); ++i) {
    bool indirect = false;
    for (const Instruction& instruction : layout.functions[i]->body) {
      for (const Operand& operand : instruction.operands) for_each_name(operand, add_named);
      if (instruction.opcode != "call") continue;
      for (const Operand& operand : instruction.operands) {
        indirect = indirect || operand.kind == Operand::Kind::reg;
      }
    }
    if (!indirect) continue;
    // Tables of function addresses lie in variables.
    for (const Variable& variable : module.variables) {
      for (const AddressInitializer& address : variable.addresses) add_named(address.symbol);
    }
  }
}

/// Lays out the shared variables that the kernel's functions own or name.
void place_shared(const Module& module, KernelLayout& layout, KernelProgram& program) {
  std::set<std::string> named;
  for (const Function* function : layout.functions) {
    for (const Instruction& instruction : function->body) {
      for (const Operand& operand : instruction.operands) {
        for_each_name(operand, [&](const std::string& name) { named.insert(name); });
      }
    }
  }
  std::uint64_t end = 0;
  std::uint64_t dynamic_alignment = 1;
  std::vector<std::pair<const Function*, std::string>> dynamic;
  const auto place = [&](const Function* owner, const Variable& variable) {
    if (variable.space != Space::shared) return;
    if (variable.size == 0) {
      dynamic.emplace_back(owner, variable.name);
      dynamic_alignment = std::max<std::uint64_t>(dynamic_alignment, variable.alignment);
      return;
    }
    end = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
    layout.shared[{owner, variable.name}] = end;
    program.shared_variables.push_back({variable.name, end, variable.size});
    // More than any block has: a launch says so. The sum of very many would not fit 64 bits.
    end = std::min(end + variable.size, std::uint64_t{1} << 48);
  };
  for (const Variable& variable : module.variables) {
    if (named.contains(variable.name)) place(nullptr, variable);
  }
  for (const Function* function : layout.functions) {
    for (const Variable& variable : function->variables) place(function, variable);
  }
  program.shared_bytes = end;
  program.dynamic_shared_offset =
      (end + dynamic_alignment - 1) / dynamic_alignment * dynamic_alignment;
  program.uses_dynamic_shared = !dynamic.empty();
  for (const auto& name : dynamic) layout.shared[name] = program.dynamic_shared_offset;
}

/// Local bytes and registers of the deepest chain of calls; marks recursion.
class CallDepth {
 public:
  CallDepth(const KernelProgram& program, bool& recursive)
      : program_(program), recursive_(recursive), state_(program.functions.size()) {}

  struct Needs {
    std::uint64_t local_bytes = 0;
    std::uint32_t registers = 0;
  };
  Needs of(std::uint32_t function) {
    State& state = state_[function];
    if (state.done) return state.needs;
    if (state.open) {
      recursive_ = true;
      return {};
    }
    state.open = true;
    Needs deepest;
    const auto visit = [&](std::uint32_t callee) {
      const Needs needs = of(callee);
      deepest.local_bytes = std::max(deepest.local_bytes, needs.local_bytes);
      deepest.registers = std::max(deepest.registers, needs.registers);
    };
    for (const Step& step : program_.functions[function].steps) {
      if (step.action == Action::call) {
        const Call& call = program_.calls[step.detail];
        if (call.function != none) visit(call.function);
      } else if (step.action == Action::indirect_call) {
        for (std::uint32_t f = 1; f < program_.functions.size(); ++f) visit(f);
      }
    }
    state.needs = {deepest.local_bytes + program_.functions[function].local_bytes,
                   deepest.registers + program_.functions[function].pressure};
    state.open = false;
    state.done = true;
    return state.needs;
  }

 private:
  struct State {
    bool open = false;
    bool done = false;
    Needs needs;
  };
  const KernelProgram& program_;
  bool& recursive_;
  std::vector<State> state_;
};

}  // namespace

std::vector<std::uint64_t> parameter_offsets(const Module& module, const Function& kernel) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  for (const Variable& parameter : kernel.parameters) {
    end = (end + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    offsets.push_back(end);
    end += parameter.size;
    if (end > max_parameter_bytes) {
      throw InputError(module.file + ":" + std::to_string(parameter.line) + ": kernel " +
                       kernel.name + ": its parameters up to " + parameter.name + " take " +
                       std::to_string(end) + " bytes, at most " +
                       std::to_string(max_parameter_bytes) +
                       " are possible; pass a pointer to them");
    }
  }
  return offsets;
}

std::uint64_t function_address(const Module& module, const Function& function) {
  const auto number = static_cast<std::uint64_t>(&function - module.functions.data());
  return function_address_base + 16 * number;
}

namespace {

/// 75 for sm_75.
std::uint64_t binary_version(const Module& module) {
  std::uint64_t version = 0;
  for (const char c : module.target) {
    if (c >= '0' && c <= '9') version = version * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return version;
}

std::uint64_t parameter_bytes(const Module& module, const Function& kernel) {
  const std::vector<std::uint64_t> offsets = parameter_offsets(module, kernel);
  return offsets.empty() ? 0 : offsets.back() + kernel.parameters.back().size;
}

}  // namespace

KernelProgram lower(const Module& module, std::string_view kernel, const SymbolTable& symbols) {
  const Function* entry = module.function(kernel);
  if (entry == nullptr || !entry->is_entry) {
    throw InputError(module.file + ": there is no kernel " + std::string(kernel));
  }
  KernelProgram program;
  program.name = entry->name;
  program.source = "ptx";
  program.binary_version = binary_version(module);
  program.parameter_bytes = parameter_bytes(module, *entry);
  KernelLayout layout;
  find_functions(module, *entry, layout);
  place_shared(module, layout, program);
  for (std::uint32_t i = 0; i < layout.functions.size(); ++i) {
    program.function_addresses[function_address(module, *layout.functions[i])] = i;
  }
  std::uint32_t registers = 0;
  for (const Function* function : layout.functions) {
    FunctionLowering lowering(module, symbols, layout, program, *function, function == entry);
    program.functions.push_back(lowering.run(registers));
  }
  CallDepth depth(program, program.recursive);
  const CallDepth::Needs needs = depth.of(0);
  // A recursive kernel gets room for some levels; running out of it is an error at run time.
  if (needs.local_bytes > max_local_bytes) {
    fail_local(module, *entry, entry->line,
               "it and the functions that it calls need " + std::to_string(needs.local_bytes));
  }
  program.local_bytes = program.recursive
                            ? std::min(needs.local_bytes + (64 << 10), max_local_bytes)
                            : needs.local_bytes;
  // ptxas never gives a kernel of compute capability 7.0 and later fewer than 16.
  program.registers_per_thread = std::clamp(needs.registers, 16u, 255u);
  const auto& limit =
      entry->required_threads[0] != 0 ? entry->required_threads : entry->max_threads;
  if (limit[0] != 0) {
    std::uint64_t product = 1;
    for (const std::uint32_t size : limit) {
      product = std::min<std::uint64_t>(product * std::max(size, 1u), program.max_threads);
    }
    program.max_threads = static_cast<std::uint32_t>(product);
  }
  return program;
}

}  // namespace warpstack::ptx
