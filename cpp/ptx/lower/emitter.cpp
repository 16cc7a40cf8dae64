#include "ptx/lower/emitter.h"

#include <algorithm>
#include <bit>

#include "common/error.h"
#include "ptx/lower/register_arguments.h"
#include "ptx/lower/source_text.h"

namespace warpstack::ptx {
namespace {

bool names_register(const std::vector<Operand>& operands, std::uint32_t number) {
  return std::ranges::any_of(operands, [number](const Operand& operand) {
    return (operand.kind == Operand::Kind::reg && operand.index == number) ||
           names_register(operand.elements, number);
  });
}

}  // namespace

Emitter::Emitter(const Module& module, const SymbolTable& symbols, const KernelLayout& layout,
                 KernelProgram& program, const Function& function, bool is_kernel)
    : module_(module),
      symbols_(symbols),
      layout_(layout),
      program_(program),
      variables_(module, symbols, layout, function, is_kernel),
      draft_(function, is_kernel) {}

ProgramFunction Emitter::run(std::uint32_t& first_register) {
  draft_.result.name = draft_.text.name;
  for (const Instruction& instruction : draft_.text.body) {
    draft_.result.instructions.push_back(source_text(module_, instruction));
  }
  declare_registers();
  variables_.place(draft_.result);
  const auto note_first_step = [this] {
    draft_.first_step.push_back(static_cast<std::uint32_t>(draft_.result.steps.size()));
  };
  enter_function();
  for (std::uint32_t i = 0; i < draft_.text.body.size(); ++i) {
    note_first_step();
    lower_instruction(i);
  }
  note_first_step();
  guard_ = none;
  if (!draft_.text.body.empty()) leave_function();  // at its end
  draft_.result.parameter_bytes = variables_.parameter_bytes();
  connect_branches(draft_, program_);
  place_values(draft_, program_);
  add_rows(draft_, program_, first_register);
  return std::move(draft_.result);
}

void Emitter::enter_function() {
  if (layout_.stack_bytes != 0) {
    if (draft_.is_kernel) {
      copy(stack_top(), constant(0, 8), Type::u64);
    } else {
      load_value(*this, draft_.result.parameters.back(), stack_top(), 8);
    }
  }
  if (draft_.is_kernel) return;
  const std::vector<Variable>& parameters = draft_.text.parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].reg) continue;
    load_from_piece(*this, draft_.result.parameters[i], register_of(draft_.text, parameters[i]),
                    parameters[i].type);
  }
}

void Emitter::leave_function() {
  if (draft_.is_kernel) return;
  const std::vector<Variable>& results = draft_.text.returns;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].reg) continue;
    store_to_piece(*this, draft_.result.results[i], register_of(draft_.text, results[i]),
                   results[i].type);
  }
}

// --- the instruction at hand --------------------------------------------------------------------

void Emitter::lower_instruction(std::uint32_t number) {
  instruction_number_ = number;
  instruction_ = &draft_.text.body[number];
  guard_ = none;
  row_destinations_.clear();
  row_sources_.clear();
  row_ = {};
  is_folded_ = false;
  parts_.clear();
  row_step_.reset();
  std::vector<Step>& steps = draft_.result.steps;
  const std::size_t first = steps.size();
  const auto refuse = [this](std::string_view reason) {
    throw InputError(module_.file_of(draft_.text) + ":" + std::to_string(instruction_->line) +
                     ": kernel " + program_.name + ": cannot simulate " +
                     instruction_->full_opcode() + ": " + std::string(reason));
  };
  if (!instruction_->problem.empty()) refuse(instruction_->problem);
  try {
    if (instruction_->guard) prepare_guard();
    opcode_ = find_opcode(instruction_->opcode);
    if (opcode_ == nullptr) throw Unsupported{"the instruction is not supported"};
    set_class(opcode_->row_class.op_class);
    Modifiers modifiers(*instruction_);
    opcode_->handler(*this, modifiers);
    modifiers.finish();
  } catch (const Unsupported& problem) {
    refuse(problem.reason);
  }
  if (steps.size() == first) emit(Action::nothing, {}, {});
  steps[first].begins = true;
  if (!is_folded_) add_pending_rows();
}

void Emitter::prepare_guard() {
  Operand reg;
  reg.kind = Operand::Kind::reg;
  reg.index = *instruction_->guard;
  std::uint32_t guard = value_of(reg);
  note_read(guard);
  // An instruction of several steps must not change its own guard in between.
  if (names_register(instruction_->operands, reg.index)) {
    const std::uint32_t value = guard;
    guard = temporary_predicate();
    copy(guard, value, Type::pred);
  }
  guard_ = guard;
  guard_negated_ = instruction_->guard_negated;
}

const Operand& Emitter::operand(std::size_t i) const {
  if (i >= num_operands()) {
    throw Unsupported{"it has " + std::to_string(num_operands()) + " operands, more are needed"};
  }
  return instruction_->operands[i];
}

// --- values -------------------------------------------------------------------------------------

void Emitter::declare_registers() {
  for (const Register& reg : draft_.text.registers) {
    first_value_.push_back(static_cast<std::uint32_t>(draft_.values.size()));
    const bool is_wide = reg.type == Type::b128;  // a value for each half
    for (std::uint32_t i = 0; i < (is_wide ? 2 : reg.vector); ++i) {
      draft_.values.push_back({.units = static_cast<std::uint8_t>(bytes_of(reg.type) >= 8 ? 2 : 1),
                               .is_predicate = reg.type == Type::pred});
    }
  }
}

std::uint32_t Emitter::value_of(const Operand& operand) const {
  if (draft_.text.registers[operand.index].type == Type::b128) {
    throw Unsupported{"128-bit registers are not supported here"};
  }
  return first_value_[operand.index] + operand.component;
}

std::uint32_t Emitter::temporary(std::uint32_t bytes) {
  draft_.values.push_back({.units = static_cast<std::uint8_t>(bytes == 8 ? 2 : 1)});
  return static_cast<std::uint32_t>(draft_.values.size() - 1);
}

std::uint32_t Emitter::temporary_predicate() {
  draft_.values.push_back({.is_predicate = true});
  return static_cast<std::uint32_t>(draft_.values.size() - 1);
}

std::uint32_t Emitter::constant(std::uint64_t bits, std::uint32_t bytes, bool is_shared_address) {
  if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [entry, is_new] = constants_.try_emplace({bits, bytes == 8, is_shared_address}, 0);
  if (is_new) {
    draft_.values.push_back({.units = static_cast<std::uint8_t>(bytes == 8 ? 2 : 1),
                             .is_constant = true,
                             .bits = bits,
                             .is_shared_address = is_shared_address});
    entry->second = static_cast<std::uint32_t>(draft_.values.size() - 1);
  }
  return entry->second;
}

std::uint32_t Emitter::predicate_constant(bool holds) {
  return constant(holds ? 0xffffffffu : 0, 4);
}

std::uint32_t Emitter::stack_top() {
  if (stack_top_ == none) stack_top_ = temporary(8);
  return stack_top_;
}

std::uint32_t Emitter::carry() {
  if (carry_ == none) carry_ = temporary(4);
  return carry_;
}

// --- operands -----------------------------------------------------------------------------------

std::uint32_t Emitter::in(const Operand& source, Type type) {
  const std::uint32_t bytes = type == Type::pred ? 4 : std::max(bytes_of(type), 2u);
  switch (source.kind) {
    case Operand::Kind::reg: {
      const std::uint32_t value = value_of(source);
      note_read(value);
      const std::string& name = draft_.text.registers[source.index].name;
      if ((type == Type::pred) != draft_.values[value].is_predicate) {
        throw Unsupported{"operand " + name + " has another type than the instruction"};
      }
      if (type == Type::pred) {
        if (!source.negated) return value;
        const std::uint32_t negated = temporary_predicate();
        lanes({.operation = Operation::bit_not, .type = Type::pred}, negated, {value});
        return negated;
      }
      if ((width_of(value) == 8) != (bytes == 8)) {
        throw Unsupported{"register " + name + " has another width than the instruction"};
      }
      return value;
    }
    case Operand::Kind::integer:
      if (type == Type::pred) return predicate_constant(source.integer != 0);
      if (is_float(type) && bytes > 2) break;
      return constant(static_cast<std::uint64_t>(source.integer), bytes);
    case Operand::Kind::floating:
      return float_constant(source, type);
    case Operand::Kind::predicate_constant:
      return predicate_constant((source.integer != 0) != source.negated);
    case Operand::Kind::special: {
      const std::uint32_t value = type == Type::pred ? temporary_predicate() : temporary(bytes);
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

std::uint32_t Emitter::float_constant(const Operand& source, Type type) {
  const auto bits = static_cast<std::uint64_t>(source.integer);
  const bool is_f32 = source.literal == Type::f32;
  if (bytes_of(type) == 8) {
    if (!is_f32) return constant(bits, 8);
    const double value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return constant(std::bit_cast<std::uint64_t>(value), 8);
  }
  if (is_f32) return constant(bits, 4);
  return constant(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits))), 4);
}

std::uint32_t Emitter::out(const Operand& target, Type type) {
  if (target.kind == Operand::Kind::sink) {
    return type == Type::pred ? temporary_predicate() : temporary(bytes_of(type));
  }
  if (target.kind != Operand::Kind::reg) throw Unsupported{"its destination is not a register"};
  const std::uint32_t value = value_of(target);
  if ((type == Type::pred) != draft_.values[value].is_predicate ||
      (width_of(value) == 8) != (bytes_of(type) == 8)) {
    throw Unsupported{"register " + draft_.text.registers[target.index].name +
                      " has another type than the instruction"};
  }
  note_written(value);
  return value;
}

std::array<std::uint32_t, 2> Emitter::halves_of(const Operand& operand) const {
  if (operand.kind != Operand::Kind::reg ||
      draft_.text.registers[operand.index].type != Type::b128) {
    throw Unsupported{"it has an operand that is no 128-bit register"};
  }
  return {first_value_[operand.index], first_value_[operand.index] + 1};
}

std::array<std::uint32_t, 2> Emitter::halves_in(const Operand& source) {
  const auto halves = halves_of(source);
  for (const std::uint32_t half : halves) note_read(half);
  return halves;
}

std::array<std::uint32_t, 2> Emitter::halves_out(const Operand& target) {
  const auto halves = halves_of(target);
  for (const std::uint32_t half : halves) note_written(half);
  return halves;
}

std::uint32_t Emitter::register_bytes(const Operand& reg) const {
  if (reg.kind != Operand::Kind::reg) return 8;
  return bytes_of(draft_.text.registers[reg.index].type);
}

std::uint32_t Emitter::address_of(const Operand& variable, std::uint32_t bytes) {
  if (!variable.elements.empty()) return element_address(variable, bytes);
  const auto addend = static_cast<std::uint64_t>(variable.integer);
  const auto local = variables_.local().find(variable.name);
  if (local == variables_.local().end()) {
    return constant(variables_.static_address(variable.name) + addend, bytes,
                    variables_.is_shared(variable.name));
  }
  const std::uint32_t value = temporary(bytes);
  Step& step =
      emit(Action::local_address, program_.local_offsets, local->second + addend, {value}, {});
  step.operands.target = value;
  step.operands.immediate = bytes;
  return value;
}

/// The address of `a[r]`.
std::uint32_t Emitter::element_address(const Operand& variable, std::uint32_t bytes) {
  Operand array = variable;
  array.elements.clear();
  const Type type = bytes == 8 ? Type::u64 : Type::u32;
  const Type index_type = register_bytes(variable.elements[0]) == 8 ? Type::u64 : Type::u32;
  const std::uint32_t base = address_of(array, bytes);
  const std::uint32_t index = temporary(bytes);
  lanes({.operation = Operation::cvt, .type = type, .source = index_type}, index,
        {in(variable.elements[0], index_type)});
  const std::uint32_t address = temporary(bytes);
  lanes({.operation = Operation::mad_lo, .type = type}, address,
        {index, constant(variable.index, bytes), base});
  return address;
}

void Emitter::read_special(const Operand& source, std::uint32_t target) {
  switch (source.special) {
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
  Step& step = emit(Action::special, program_.specials,
                    SpecialRead{source.special, source.component}, {target}, {});
  step.operands.target = target;
  step.operands.immediate = width_of(target);
}

// --- steps --------------------------------------------------------------------------------------

Step& Emitter::emit(Action action, std::vector<std::uint32_t> definitions,
                    std::vector<std::uint32_t> uses) {
  Step step;
  step.action = action;
  step.instruction = instruction_number_;
  step.guard = guard_;
  step.guard_negated = guard_negated_;
  if (guard_ != none) uses.push_back(guard_);
  std::erase(definitions, none);
  std::erase(uses, none);
  draft_.effects.push_back({std::move(definitions), std::move(uses), guard_ != none});
  draft_.result.steps.push_back(step);
  return draft_.result.steps.back();
}

Step& Emitter::lanes(const LaneForm& form, std::uint32_t target,
                     const std::vector<std::uint32_t>& sources, std::uint32_t immediate) {
  const LaneFunction function = find_lane_function(form);
  if (function == nullptr) throw Unsupported{"this form is not supported"};
  if (form.rounding != Rounding::nearest) immediate = static_cast<std::uint32_t>(form.rounding);
  Step& step = emit(Action::lanes, {target}, sources);
  step.function = function;
  step.operands.target = target;
  step.operands.immediate = immediate;
  for (std::size_t i = 0; i < sources.size(); ++i) step.operands.source[i] = sources[i];
  return step;
}

void Emitter::define_second(std::uint32_t target) {
  draft_.result.steps.back().operands.target2 = target;
  draft_.effects.back().definitions.push_back(target);
}

void Emitter::trap_where(std::uint32_t predicate) {
  const std::uint32_t guard = guard_;
  const bool guard_negated = guard_negated_;
  if (guard != none) {  // both hold
    const std::uint32_t both = temporary_predicate();
    guard_ = none;
    copy(both, constant(0, 4), Type::pred);
    guard_ = guard;
    lanes({.operation = Operation::mov, .type = Type::pred}, both, {predicate});
    predicate = both;
  }
  guard_ = predicate;
  guard_negated_ = false;
  emit(Action::trap, {}, {});
  guard_ = guard;
  guard_negated_ = guard_negated;
}

void Emitter::copy(std::uint32_t target, std::uint32_t source, Type type) {
  lanes({.operation = Operation::mov, .type = type}, target, {source});
}

void Emitter::apply(const LaneForm& form) {
  const Signature& signature = opcode_->signature;
  std::vector<std::uint32_t> sources;
  for (std::size_t i = 1; i <= signature.num_sources(); ++i) {
    sources.push_back(in(i, signature.type(i, form.type, form.source)));
  }
  if (opcode_->row_class.by_type) set_class(arithmetic_class(form.type));
  lanes(form, out(0, signature.type(0, form.type, form.source)), sources);
}

// --- rows of the trace --------------------------------------------------------------------------

void Emitter::note_read(std::uint32_t value) {
  if (!is_constant(value)) row_sources_.push_back(value);
}

void Emitter::fold_copy(std::uint32_t target, std::uint32_t source) {
  fold();
  draft_.aliases[target] = source;
}

void Emitter::add_part(std::vector<std::uint32_t> destinations,
                       std::vector<std::uint32_t> sources) {
  const auto is_left_out = [this](std::uint32_t value) { return is_constant(value); };
  std::erase_if(destinations, is_left_out);
  std::erase_if(sources, is_left_out);
  parts_.push_back({std::move(destinations), std::move(sources), {}});
}

void Emitter::add_part(StaticInstruction row, std::vector<std::uint32_t> destinations,
                       std::vector<std::uint32_t> sources) {
  add_part(std::move(destinations), std::move(sources));
  parts_.back().row = std::move(row);
}

std::string Emitter::opcode_text() const { return instruction_->full_opcode(); }

/// The instruction's own row, without registers.
PendingRow Emitter::new_row() const {
  PendingRow row{row_, {}, {}};
  row.instruction.source_line = instruction_->source.line;
  row.instruction.source_file = instruction_->source.file;
  row.instruction.inlined_at = instruction_->source.inlined_at;
  return row;
}

/// The trace rows of the current instruction, on its last step.
void Emitter::add_pending_rows() {
  const std::size_t first = draft_.rows.size();
  std::vector<TraceRow> sequence;
  if (parts_.empty() && opcode_->expansion != nullptr) sequence = opcode_->expansion(*instruction_);
  std::sort(row_sources_.begin(), row_sources_.end());
  row_sources_.erase(std::unique(row_sources_.begin(), row_sources_.end()), row_sources_.end());
  for (Part& part : parts_) {
    PendingRow& row = draft_.rows.emplace_back(new_row());
    row.instruction.opcode = instruction_->full_opcode();
    if (part.row) {
      part.row->source_line = row.instruction.source_line;
      part.row->source_file = row.instruction.source_file;
      part.row->inlined_at = row.instruction.inlined_at;
      row.instruction = std::move(*part.row);
    }
    row.destinations = std::move(part.destinations);
    row.sources = std::move(part.sources);
    if (guard_ != none) row.sources.push_back(guard_);
  }
  for (TraceRow& operation : sequence) {
    PendingRow& row = draft_.rows.emplace_back(new_row());
    row.instruction.opcode = std::move(operation.opcode);
    row.instruction.op_class = operation.op_class;
    row.destinations = row_destinations_;
    // Later operations of a sequence use the results of the first ones.
    row.sources = &operation == sequence.data() ? row_sources_ : row_destinations_;
  }
  if (draft_.rows.size() == first) {
    PendingRow& row = draft_.rows.emplace_back(new_row());
    if (row.instruction.opcode.empty()) row.instruction.opcode = instruction_->full_opcode();
    row.destinations = std::move(row_destinations_);
    row.sources = std::move(row_sources_);
  }
  Step& step = row_step_ ? draft_.result.steps[*row_step_] : draft_.result.steps.back();
  step.first_row = static_cast<std::uint32_t>(first);
  step.num_rows = static_cast<std::uint16_t>(draft_.rows.size() - first);
}

}  // namespace warpstack::ptx
