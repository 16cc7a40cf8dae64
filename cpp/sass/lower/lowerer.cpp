#include "sass/lower/lowerer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "common/error.h"
#include "common/text.h"
#include "sass/lower/driver_constants.h"
#include "sass/lower/handlers.h"
#include "simt/program/flow_analysis.h"
#include "trace/instructions/copy_groups.h"

namespace warpstack::sass {
namespace {

/// An instruction that is not executed, with its place.
struct Refusal : InputError {
  using InputError::InputError;
};

/// For messages.
std::string operands_text(const Instruction& instruction) {
  std::string text = instruction.opcode;
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    text += (i == 0 ? " " : ",") + instruction.operands[i].text;
  }
  return shortened(text);
}

/// The control fields, with the operands of `DEPBAR.LE SB0, 0x1, {4,3}`: the counted barrier, how
/// many may hold it, and barriers that must be free.
Control control_of(const Instruction& instruction) {
  Control control = instruction.control;
  if (!instruction.opcode.starts_with("DEPBAR")) return control;
  bool is_listed = false;
  for (const Operand& operand : instruction.operands) {
    const std::string_view text = operand.text;
    is_listed = is_listed || text.starts_with('{');
    if (is_listed) {
      for (const char c : text) {
        if (c >= '0' && c <= '5') control.wait_mask |= static_cast<std::uint8_t>(1u << (c - '0'));
      }
    } else if (text.size() == 3 && text.starts_with("SB")) {
      control.counted_barrier = static_cast<std::uint8_t>(text[2] - '0');
    } else if (operand.kind == Operand::Kind::integer) {
      control.counted_most =
          static_cast<std::uint8_t>(std::clamp<std::int64_t>(operand.integer, 0, 63));
    }
  }
  return control;
}

}  // namespace

Lowerer::Lowerer(const Module& module, const Kernel& kernel, const SectionAddresses& addresses)
    : module_(module), kernel_(kernel), addresses_(addresses), frame_(kernel) {}

simt::KernelProgram Lowerer::run() {
  function_.name = kernel_.name;
  for (const Instruction& instruction : kernel_.code) {
    first_steps_.push_back(static_cast<std::uint32_t>(function_.steps.size()));
    lower(instruction);
  }
  link();
  function_.register_bytes = frame_.bytes();
  function_.constants = frame_.initial_bytes();
  function_.local_bytes = static_cast<std::uint32_t>(kernel_.local_bytes);
  function_.pressure = kernel_.registers;
  simt::find_stretches(function_);
  program_.frame_constants = frame_.constants();
  program_.functions.push_back(std::move(function_));
  return std::move(program_);
}

void Lowerer::lower(const Instruction& instruction) {
  instruction_ = &instruction;
  function_.instructions.push_back({module_.place_of(instruction), hexadecimal(instruction.address),
                                    operands_text(instruction)});
  const std::size_t first = function_.steps.size();
  row_step_ = first;
  guard_ = {};
  applied_.assign(instruction.operands.size() + 1, 0);
  if (instruction.is_guarded) guard_ = condition(instruction.guard);
  Form form(instruction);
  const trace::SassOpcode* opcode = trace::find_sass_opcode(form.base());
  try {
    handler_of(opcode)(*this, form);
  } catch (const Refusal&) {
    throw;
  } catch (const InputError& error) {
    refuse(error.what());
  }
  refuse_rest(form);
  if (function_.steps.size() == first) emit(Action::nothing);
  function_.steps[first].begins = true;
  row_step_ = std::min(row_step_, function_.steps.size() - 1);
  add_row(instruction, opcode);
  frame_.end_instruction();
}

void Lowerer::refuse_rest(const Form& form) const {
  if (!form.left().empty()) {
    refuse("its modifier ." + std::string(form.left()) + " is not executed");
  }
  if (form.more()) refuse("operand " + form.peek().text + " is one too many");
  const auto check = [this](const Operand& operand, std::uint8_t applied) {
    const char* part = nullptr;
    if (operand.negated && (applied & negation) == 0) {
      part = "sign";
    } else if (operand.complement && (applied & complement) == 0) {
      part = "~";
    } else if (operand.absolute && (applied & absolute) == 0) {
      part = "| |";
    } else if (!operand.suffix.empty() && (applied & suffix) == 0) {
      part = "suffix";
    }
    if (part != nullptr) refuse("operand " + operand.text + ": its " + part + " is not executed");
  };
  for (std::size_t i = 0; i < instruction_->operands.size(); ++i) {
    check(instruction_->operands[i], applied_[i]);
  }
  if (instruction_->is_guarded) check(instruction_->guard, applied_.back());
}

void Lowerer::add_row(const Instruction& instruction, const trace::SassOpcode* opcode) {
  std::vector<std::uint16_t> destinations;
  std::vector<std::uint16_t> sources;
  bool may_write = opcode == nullptr || opcode->writes_first();
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::reg) {
      (may_write ? destinations : sources).push_back(static_cast<std::uint16_t>(operand.index));
    } else if (operand.base != Operand::no_base) {
      sources.push_back(static_cast<std::uint16_t>(operand.base));
    }
    if (!operand.is_predicate()) may_write = false;
  }
  std::erase(destinations, trace::zero_register);
  trace::StaticInstruction row = trace::make_static_instruction(
      instruction.address, instruction.opcode, destinations, sources, instruction.line);
  row.source_file = instruction.file;
  row.inlined_at = instruction.inlined_at;
  row.control = control_of(instruction);
  simt::Step& step = function_.steps[row_step_];
  if (simt::is_texel_access(step.action)) {
    simt::make_texel_access(row, step.action, program_.textures[step.detail]);
  }
  complete_row(instruction, step, row);
  step.first_row = static_cast<std::uint32_t>(program_.rows.size());
  step.num_rows = 1;
  const bool is_of_tensor_memory = step.action == Action::tensor_product;
  if (step.action == Action::warpgroup_multiply || is_of_tensor_memory) {
    // Its reads of factors are a row of their own.
    trace::StaticInstruction reads;
    reads.pc = row.pc;
    reads.source_line = row.source_line;
    reads.source_file = row.source_file;
    reads.inlined_at = row.inlined_at;
    reads.opcode = is_of_tensor_memory ? "tcgen05.operands.shared" : "wgmma.operands.shared";
    reads.op_class = trace::OpClass::memory;
    reads.space = trace::MemorySpace::shared;
    reads.kind = trace::MemoryKind::load;
    reads.width = 16;
    reads.control = Control{.stall = 1, .wait_mask = row.control->wait_mask};
    program_.rows.push_back(std::move(reads));
    step.num_rows = 2;
  }
  program_.rows.push_back(std::move(row));
}

bool Lowerer::awaits_stores(const Control& control) const {
  return std::ranges::any_of(kernel_.code, [&](const Instruction& other) {
    return other.opcode == "UTMACMDFLUSH" && other.control.read_barrier == control.counted_barrier;
  });
}

void Lowerer::complete_row(const Instruction& instruction, const simt::Step& step,
                           trace::StaticInstruction& row) {
  using trace::MemoryKind;
  const auto is = [&](std::string_view start) { return instruction.opcode.starts_with(start); };
  const auto access = [&row](trace::MemorySpace space, MemoryKind kind) {
    row.op_class = trace::OpClass::memory;
    row.space = space;
    row.kind = kind;
    row.width = 16;
    if (kind == MemoryKind::async_copy) row.cache_operator = trace::CacheOperator::bypass_l1;
  };
  if (step.action == Action::bulk_copy || step.action == Action::tensor_copy) {
    if (is("UTMALDG") || is("UBLKCP.S.G"))
      return access(trace::MemorySpace::global, MemoryKind::async_copy);
    if (is("UBLKCP.S") || is("UBLKRED.S"))
      return access(trace::MemorySpace::shared, MemoryKind::load);
    const bool reduces = is("UTMAREDG") || is("UBLKRED");
    return access(trace::MemorySpace::global, reduces ? MemoryKind::reduction : MemoryKind::store);
  }
  if (step.action == Action::tensor_fill) {
    return access(trace::MemorySpace::shared, MemoryKind::load);
  }
  const auto append = [this](std::vector<std::uint16_t>& registers, Slot first, std::size_t n) {
    const auto number = static_cast<std::uint16_t>((first - frame_.reg(0)) / Frame::slot_bytes);
    trace::append_register_tuple(registers, number, static_cast<std::uint32_t>(n));
  };
  if (step.action == Action::tensor_transfer) {
    const simt::TensorTransfer& transfer = program_.tensor_transfers[step.detail];
    row.destinations.clear();
    row.sources.clear();
    if (transfer.values[0] >= frame_.reg(0)) {
      append(transfer.is_store ? row.sources : row.destinations, transfer.values[0],
             transfer.values.size());
    }
  }
  if (step.action == Action::warpgroup_multiply) {
    const simt::WarpgroupMultiply& multiply = program_.warpgroup_multiplications[step.detail];
    row.destinations.clear();
    row.sources.clear();
    const bool has_registers = multiply.a_descriptor == simt::none;
    if (has_registers && multiply.a_values[0] != Frame::zero) {
      append(row.sources, multiply.a_values[0], multiply.a_values.size());
    }
    append(row.sources, multiply.d_values[0], multiply.d_values.size());
    append(row.destinations, multiply.d_values[0], multiply.d_values.size());
  }
  const bool ends_group =
      !instruction.operands.empty() && instruction.operands.back().text == "gsb0";
  if (ends_group) row.opcode += ".gsb0";
  if (const Control& control = *row.control; is("DEPBAR.LE") && awaits_stores(control)) {
    row.opcode = trace::wait_opcode(row.opcode + ".bulk", control.counted_most);
  }
  if (step.action == Action::warpgroup_wait) {
    row.opcode = trace::wait_opcode(
        row.opcode, static_cast<std::uint32_t>(program_.warpgroup_waits[step.detail].pending));
  }
}

// ---- sources ----

Slot Lowerer::parameter_address() {
  const Slot address = temporary();
  emit(Action::parameter_base).operands.target = address;
  const Slot words = temporary();
  emit(Operation::unpack, Type::b64, words, {address});
  return words;
}

Slot Lowerer::word(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::reg:
      return operand.index == zero_register ? Frame::zero : frame_.reg(operand.index);
    case Operand::Kind::uniform:
      check_uniform(operand);
      return operand.index == zero_uniform ? Frame::zero : frame_.uniform(operand.index);
    case Operand::Kind::integer:
      return frame_.literal(static_cast<std::uint32_t>(number(operand)));
    case Operand::Kind::real:  // a decimal without a point
      if (operand.real != static_cast<double>(static_cast<std::int32_t>(operand.integer))) break;
      return frame_.literal(static_cast<std::uint32_t>(operand.integer));
    case Operand::Kind::constant:
      if (operand.base != Operand::no_base || operand.uniform_base != Operand::no_base) break;
      check_place(operand, 4);
      if (operand.bank == 0 && driver_constants(arch()).is_parameter_address(operand.integer)) {
        return parameter_address() + static_cast<Slot>(operand.integer % 8 / 4) * Frame::slot_bytes;
      }
      return frame_.constant(operand.bank, constant_offset(operand));
    case Operand::Kind::name:
      return frame_.literal(address_word(operand));
    default:
      break;
  }
  refuse("operand " + operand.text + " is not a word");
}

std::uint32_t Lowerer::address_word(const Operand& operand) const {
  std::string_view name = operand.text;
  const bool is_high = name.starts_with("32@hi(");
  if ((!is_high && !name.starts_with("32@lo(")) || !name.ends_with(')')) {
    refuse("operand " + operand.text + " is not a word");
  }
  name.remove_prefix(std::string_view("32@hi").size());
  while (name.starts_with('(') && name.ends_with(')')) name = name.substr(1, name.size() - 2);
  std::uint64_t address = 0;
  if (const std::size_t plus = name.rfind("+0x"); plus != std::string_view::npos) {
    const Operand addend = parse_operand(name.substr(plus + 1));
    address = static_cast<std::uint64_t>(number(addend));
    name = name.substr(0, plus);
  }
  const auto symbol = module_.symbols.find(name);
  const auto place = symbol == module_.symbols.end() ? addresses_.find(name)
                                                     : addresses_.find(symbol->second.section);
  if (const auto label = kernel_.labels.find(name); label != kernel_.labels.end()) {
    address += label->second;
  } else if (place != addresses_.end()) {
    address += place->second + (symbol == module_.symbols.end() ? 0 : symbol->second.offset);
  } else if (name != kernel_.name) {  // the kernel begins at 0
    refuse("operand " + operand.text + ": there is no variable or function of this name");
  }
  return static_cast<std::uint32_t>(is_high ? address >> 32 : address);
}

Slot Lowerer::integer(const Operand& operand) {
  Slot value = word(operand);
  if (operand.kind == Operand::Kind::integer || operand.kind == Operand::Kind::real) return value;
  applies(operand, negation | complement | absolute);
  const auto change = [&](Operation operation) {
    const Slot result = temporary();
    emit(operation, Type::s32, result, {value});
    value = result;
  };
  if (operand.absolute) change(Operation::abs);
  if (operand.negated) change(Operation::neg);
  if (operand.complement) {
    const Slot result = temporary();
    emit(Operation::bit_not, Type::b32, result, {value});
    value = result;
  }
  return value;
}

Slot Lowerer::real_word(const Operand& operand) {
  if (operand.kind == Operand::Kind::real) {
    const auto value = static_cast<float>(operand.real);
    if (std::isinf(value) && !std::isinf(operand.real)) {
      refuse("operand " + operand.text + " is not a number of single precision");
    }
    return frame_.literal(std::bit_cast<std::uint32_t>(value));
  }
  return word(operand);
}

Slot Lowerer::signed_real_word(const Operand& operand) {
  Slot value = real_word(operand);
  if (operand.kind == Operand::Kind::real) return value;
  applies(operand, negation | absolute);
  const auto change = [&](Operation operation) {
    const Slot result = temporary();
    emit(operation, Type::f32, result, {value});
    value = result;
  };
  if (operand.absolute) change(Operation::abs);
  if (operand.negated) change(Operation::neg);
  return value;
}

Slot Lowerer::pair(const Operand& operand) {
  if (operand.absolute) {
    refuse("operand " + operand.text + ": the absolute value of 64 bits is not executed");
  }
  if (operand.kind != Operand::Kind::integer && (operand.negated || operand.complement)) {
    const Slot words = pair(without(operand, negation | complement));
    const Slot value = temporary();
    emit(Operation::pack, Type::b64, value, {words});
    emit(operand.negated ? Operation::neg : Operation::bit_not,
         operand.negated ? Type::s64 : Type::b64, value, {value});
    const Slot result = temporary();
    emit(Operation::unpack, Type::b64, result, {value});
    return result;
  }
  switch (operand.kind) {
    case Operand::Kind::integer:
      return frame_.literal_pair(static_cast<std::uint64_t>(number(operand)));
    case Operand::Kind::constant:
      if (operand.base != Operand::no_base || operand.uniform_base != Operand::no_base) break;
      check_place(operand, 8);
      if (operand.bank == 0 && driver_constants(arch()).is_parameter_address(operand.integer)) {
        return parameter_address();
      }
      return frame_.constant_pair(operand.bank, constant_offset(operand));
    case Operand::Kind::reg:
    case Operand::Kind::uniform:
      check_tuple(operand, 2);
      return word(operand);
    default:
      break;
  }
  refuse("operand " + operand.text + " is not a 64-bit value");
}

Slot Lowerer::packed(const Operand& operand, bool is_wide) {
  if (operand.kind == Operand::Kind::integer && !is_wide &&
      number(operand) > std::numeric_limits<std::int32_t>::max()) {
    refuse("operand " + operand.text + ": how it is extended to 64 bits is not known");
  }
  const Slot words = operand.kind == Operand::Kind::integer
                         ? frame_.literal_pair(static_cast<std::uint64_t>(operand.integer))
                         : pair(without(operand, negation));
  const Slot value = temporary();
  emit(Operation::pack, Type::b64, value, {words});
  if (operand.negated) emit(Operation::neg, Type::s64, value, {value});
  return value;
}

Slot Lowerer::real_pair(const Operand& operand) {
  if (operand.kind == Operand::Kind::real) {
    return frame_.literal_pair(std::bit_cast<std::uint64_t>(operand.real));
  }
  if (operand.kind == Operand::Kind::integer) {
    return frame_.literal_pair(static_cast<std::uint64_t>(number(operand)) << 32);
  }
  Operand bare = operand;
  bare.negated = bare.absolute = false;
  return pair(bare);
}

Condition Lowerer::condition(const Operand& operand) {
  if (!operand.is_predicate()) refuse("operand " + operand.text + " is not a predicate");
  applies(operand, negation);
  return {frame_.predicate(operand.index, operand.kind == Operand::Kind::uniform_predicate),
          operand.negated};
}

Slot Lowerer::positive(Condition condition) {
  if (!condition.negated) return condition.slot;
  if (condition.slot == Frame::truth) return Frame::zero;
  const Slot result = temporary();
  emit(Operation::bit_not, Type::b32, result, {condition.slot});
  return result;
}

Operand Lowerer::without(const Operand& operand, std::uint8_t parts) {
  applies(operand, parts);
  Operand bare = operand;
  if ((parts & negation) != 0) bare.negated = false;
  if ((parts & complement) != 0) bare.complement = false;
  if ((parts & absolute) != 0) bare.absolute = false;
  if ((parts & suffix) != 0) bare.suffix.clear();
  return bare;
}

void Lowerer::applies(const Operand& operand, std::uint8_t parts) {
  if (&operand == &instruction_->guard) applied_.back() |= parts;
  for (std::size_t i = 0; i < instruction_->operands.size(); ++i) {
    if (&operand == &instruction_->operands[i]) applied_[i] |= parts;
  }
}

void Lowerer::check_tuple(const Operand& operand, std::uint32_t words) const {
  if (words < 2 || !operand.is_register()) return;
  const bool is_uniform = operand.kind == Operand::Kind::uniform;
  const std::uint32_t zero = is_uniform ? zero_uniform : zero_register;
  const std::uint32_t first = operand.index;
  if (first == zero) return;
  const std::string prefix = is_uniform ? "UR" : "R";
  if (first % words == 0 && first + words <= zero) {
    const std::uint32_t has = is_uniform || kernel_.registers == 0 || kernel_.changes_registers
                                  ? zero
                                  : kernel_.registers;
    if (first + words <= has) return;
    refuse(prefix + std::to_string(first) + " is the first of " + std::to_string(words) +
           " registers, and by .needs the kernel has " + std::to_string(has));
  }
  refuse(prefix + std::to_string(first) + " is the first of " + std::to_string(words) +
         " registers: its number must be a multiple of " + std::to_string(words) +
         ", and the last register is " + prefix + std::to_string(zero - 1));
}

void Lowerer::check_uniform(const Operand& operand) const {
  constexpr std::uint32_t last_before = 62;
  constexpr std::uint32_t first_arch_with_more = 100;
  if (operand.index <= last_before || operand.index == zero_uniform ||
      arch() >= first_arch_with_more) {
    return;
  }
  refuse("operand " + operand.text + ": the last uniform register before sm_100 is UR62");
}

void Lowerer::check_place(const Operand& constant, std::uint32_t bytes) const {
  if (constant.integer % bytes == 0) return;
  refuse("operand " + constant.text + " of " + std::to_string(bytes) +
         " bytes does not lie at a multiple of its size");
}

std::int64_t Lowerer::number(const Operand& operand) const {
  if (operand.kind != Operand::Kind::integer)
    refuse("operand " + operand.text + " is not a number");
  // A 64-bit number has wrapped around if its sign differs from that of its text.
  const bool has_wrapped =
      operand.integer != 0 && (operand.integer < 0) != operand.text.starts_with('-');
  if (has_wrapped || operand.integer < std::numeric_limits<std::int32_t>::min() ||
      operand.integer > std::numeric_limits<std::uint32_t>::max()) {
    refuse("operand " + operand.text + " does not fit 32 bits");
  }
  return operand.integer;
}

bool Lowerer::reads_driver_word(const Operand& constant, bool moved) {
  const auto offset = static_cast<std::uint32_t>(constant.integer);
  const DriverConstants places = driver_constants(arch());
  if (offset - places.workspace < 8) program_.synchronizes_grid = true;
  return moved ? places.is_moved(offset) : places.has(offset);
}

std::uint32_t Lowerer::constant_offset(const Operand& operand) {
  if (operand.integer < 0 || operand.integer > std::numeric_limits<std::uint16_t>::max()) {
    refuse("operand " + operand.text + " lies outside of a constant bank of 64 KiB");
  }
  const auto offset = static_cast<std::uint32_t>(operand.integer);
  if (operand.bank == 0 && offset < kernel_.parameter_base && !reads_driver_word(operand, false)) {
    refuse("what the driver puts at " + operand.text + " is not known");
  }
  return offset;
}

// ---- targets ----

Slot Lowerer::target(const Operand& operand) const {
  if (!operand.is_register()) refuse("operand " + operand.text + " is not a register");
  if (operand.kind == Operand::Kind::reg) {
    return operand.index == zero_register ? Frame::sink : frame_.reg(operand.index);
  }
  check_uniform(operand);
  return operand.index == zero_uniform ? Frame::sink : frame_.uniform(operand.index);
}

Slot Lowerer::predicate_target(const Operand& operand) {
  if (!operand.is_predicate()) refuse("operand " + operand.text + " is not a predicate");
  if (is_unused(operand)) return Frame::sink;
  return frame_.predicate(operand.index, operand.kind == Operand::Kind::uniform_predicate);
}

// ---- steps ----

simt::Step& Lowerer::emit(const LaneForm& form, Slot target, std::initializer_list<Slot> sources,
                          std::uint32_t immediate) {
  const simt::LaneFunction function = simt::find_lane_function(form);
  if (function == nullptr) refuse("this form is not executed");
  simt::Step& step = emit(Action::lanes);
  step.function = function;
  step.operands.target = target;
  step.operands.immediate = immediate;
  std::ranges::copy(sources, step.operands.source.begin());
  return step;
}

simt::Step& Lowerer::emit(Operation operation, Type type, Slot target,
                          std::initializer_list<Slot> sources, std::uint32_t immediate) {
  return emit(LaneForm{.operation = operation, .type = type}, target, sources, immediate);
}

simt::Step& Lowerer::emit(Action action, std::uint32_t detail) {
  simt::Step step;
  step.action = action;
  step.detail = detail;
  if (!guard_.is_true()) {
    step.guard = guard_.slot;
    step.guard_negated = guard_.negated;
  }
  step.instruction = static_cast<std::uint32_t>(function_.instructions.size() - 1);
  function_.steps.push_back(step);
  return function_.steps.back();
}

void Lowerer::require(Condition condition) {
  const Condition guard = guard_;
  if (guard.is_true()) {
    guard_by(condition);
    return;
  }
  guard_off();
  const Slot both = temporary();
  const std::uint32_t table =
      table_of([&](bool a, bool b, bool) { return a != guard.negated && b != condition.negated; });
  emit(Operation::lop3, Type::b32, both, {guard.slot, condition.slot, Frame::zero}, table);
  guard_by({both, false});
}

void Lowerer::guard_by_first_lane() {
  simt::Collective first;
  first.result = temporary();
  first.predicate = temporary();
  emit(Action::elect, static_cast<std::uint32_t>(program_.collectives.size()));
  program_.collectives.push_back(first);
  require({first.predicate, false});
}

void Lowerer::combine(const Operand& p, const Operand& q, char combination, Condition with,
                      Slot result) {
  const auto apply = [combination](bool a, bool b) {
    if (combination == '&') return a && b;
    return combination == '|' ? a || b : a != b;
  };
  const Slot first = predicate_target(p);
  const Slot second = predicate_target(q);
  Slot other = with.slot;
  if (other != Frame::truth && (other == first || other == second) && !is_unused(q)) {
    other = temporary();
    move(other, with.slot);
  }
  const auto write = [&](Slot target, bool opposite) {
    const std::uint32_t table = table_of(
        [&](bool a, bool b, bool) { return apply(opposite ? !a : a, with.negated ? !b : b); });
    emit(Operation::lop3, Type::b32, target, {result, other, Frame::zero}, table);
  };
  // The guard is written last, because it affects all of these.
  const bool second_is_guard = second == guard_.slot;
  if (!is_unused(q) && !second_is_guard) write(second, true);
  write(first, false);
  if (!is_unused(q) && second_is_guard) write(second, true);
}

void Lowerer::jump(std::uint32_t address) {
  emit(Action::branch);
  jumps_.emplace_back(static_cast<std::uint32_t>(function_.steps.size() - 1), address);
}

void Lowerer::computed_jump(Slot index, std::int64_t offset) {
  emit(Action::indexed_branch, static_cast<std::uint32_t>(program_.indexed_branches.size()));
  program_.indexed_branches.push_back(
      {.index = index,
       .offset = offset,
       .shift = static_cast<std::uint32_t>(std::countr_zero(instruction_bytes)),
       .targets = {}});
}

std::uint32_t Lowerer::address_of(const Operand& operand) const {
  if (operand.kind == Operand::Kind::integer) {
    if (operand.integer < 0) refuse("its target " + operand.text + " is not an address");
    return static_cast<std::uint32_t>(number(operand));
  }
  if (operand.text == kernel_.name) return 0;
  const auto found = kernel_.labels.find(operand.text);
  if (found == kernel_.labels.end()) {
    refuse("it goes to " + operand.text +
           ", which is not in the kernel's own code: calls of other functions are not executed");
  }
  return found->second;
}

void Lowerer::link() {
  for (const auto& [step, address] : jumps_) {
    const std::uint32_t number = address / instruction_bytes;
    if (address % instruction_bytes != 0 || number >= first_steps_.size()) {
      instruction_ = &kernel_.code[function_.steps[step].instruction];
      refuse("its target " + hexadecimal(address) + " is not an instruction of the kernel");
    }
    function_.steps[step].jump = first_steps_[number];
  }
  for (simt::IndexedBranch& branch : program_.indexed_branches) branch.targets = first_steps_;
}

void Lowerer::refuse(const std::string& what) const {
  constexpr std::size_t most_text = 1000;
  const std::string source = module_.place_of(*instruction_);
  const bool is_listed = module_.source == TextOf::listing && instruction_->listing_line > 0;
  throw Refusal((is_listed ? module_.file + ":" + std::to_string(instruction_->listing_line) + ": "
                           : std::string()) +
                "kernel " + kernel_.name + " (" + (source.empty() ? "" : source + ", ") +
                "machine code at " + hexadecimal(instruction_->address) + ", " +
                operands_text(*instruction_) + "): " + shortened(what, most_text) +
                (is_listed ? " (correct this line, or make the listing anew: MachineModule.listing)"
                           : " (run the kernel's PTX: in Python from a module without "
                             "machine_code, on the command line without --machine-code)"));
}

}  // namespace warpstack::sass
