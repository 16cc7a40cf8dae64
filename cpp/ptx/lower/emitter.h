#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ptx/lower/draft.h"
#include "ptx/lower/layout.h"
#include "ptx/lower/modifiers.h"
#include "ptx/lower/opcode.h"
#include "ptx/lower/variables.h"

namespace warpstack::ptx {

/// Turns the instructions of a function into steps. It holds the program under construction; the
/// handlers of instructions read operands and emit steps through it.
class Emitter {
 public:
  Emitter(const Module& module, const SymbolTable& symbols, const KernelLayout& layout,
          KernelProgram& program, const Function& function, bool is_kernel);

  /// Registers of the trace are numbered from `first_register` on, which is then set behind them.
  ProgramFunction run(std::uint32_t& first_register);

  // ---- the instruction at hand ----

  [[nodiscard]] const Opcode& opcode() const { return *opcode_; }
  /// The opcode as in the text, with modifiers.
  [[nodiscard]] std::string opcode_text() const;
  [[nodiscard]] const Instruction& instruction() const { return *instruction_; }
  [[nodiscard]] std::size_t num_operands() const { return instruction_->operands.size(); }
  /// Throws Unsupported when the instruction has fewer.
  [[nodiscard]] const Operand& operand(std::size_t i) const;
  [[nodiscard]] const Function& function() const { return draft_.text; }
  [[nodiscard]] bool in_kernel() const { return draft_.is_kernel; }
  [[nodiscard]] const KernelLayout& layout() const { return layout_; }
  [[nodiscard]] const SymbolTable& symbols() const { return symbols_; }
  [[nodiscard]] const Variables& variables() const { return variables_; }
  [[nodiscard]] Variables& variables() { return variables_; }
  [[nodiscard]] KernelProgram& program() { return program_; }

  // ---- values ----

  /// The value of a register operand. Throws Unsupported for registers of 128 bits.
  [[nodiscard]] std::uint32_t value_of(const Operand& operand) const;
  std::uint32_t temporary(std::uint32_t bytes);
  std::uint32_t temporary_predicate();
  std::uint32_t constant(std::uint64_t bits, std::uint32_t bytes, bool is_shared_address = false);
  /// A predicate that holds in all lanes, or in none.
  std::uint32_t predicate_constant(bool holds);
  /// The carry flag, which instructions with `.cc` write.
  std::uint32_t carry();
  /// The number of bytes of the thread's stack in use, 64 bits wide.
  std::uint32_t stack_top();
  /// Bytes of a value in a lane: 4 or 8.
  [[nodiscard]] std::uint32_t width_of(std::uint32_t value) const {
    return draft_.values[value].units * 4;
  }
  [[nodiscard]] bool is_constant(std::uint32_t value) const {
    return draft_.values[value].is_constant;
  }

  // ---- operands ----

  /// The value of a source operand, which the instruction reads as `type`.
  std::uint32_t in(const Operand& source, Type type);
  std::uint32_t in(std::size_t i, Type type) { return in(operand(i), type); }
  /// The value that a destination operand names; a sink gets a temporary.
  std::uint32_t out(const Operand& target, Type type);
  std::uint32_t out(std::size_t i, Type type) { return out(operand(i), type); }
  /// The lower and the upper 64 bits of a register of 128 bits, which an instruction reads or
  /// writes.
  std::array<std::uint32_t, 2> halves_in(const Operand& source);
  std::array<std::uint32_t, 2> halves_out(const Operand& target);
  /// Declared bytes of a register operand.
  [[nodiscard]] std::uint32_t register_bytes(const Operand& reg) const;
  /// The address of a variable in its own space, as a value of `bytes`.
  std::uint32_t address_of(const Operand& variable, std::uint32_t bytes);
  void read_special(const Operand& source, std::uint32_t target);

  // ---- steps ----

  Step& emit(Action action, std::vector<std::uint32_t> definitions,
             std::vector<std::uint32_t> uses);
  /// A step with an entry in a table of the program.
  template <class Entry>
  Step& emit(Action action, std::vector<Entry>& table, const Entry& entry,
             std::vector<std::uint32_t> definitions, std::vector<std::uint32_t> uses) {
    table.push_back(entry);
    Step& step = emit(action, std::move(definitions), std::move(uses));
    step.detail = static_cast<std::uint32_t>(table.size() - 1);
    return step;
  }
  /// An arithmetic step. Throws Unsupported when the form does not exist.
  Step& lanes(const LaneForm& form, std::uint32_t target, const std::vector<std::uint32_t>& sources,
              std::uint32_t immediate = 0);
  /// Gives the last step a second result.
  void define_second(std::uint32_t target);
  /// Stops the launch when the predicate holds in a lane of the instruction.
  void trap_where(std::uint32_t predicate);
  void copy(std::uint32_t target, std::uint32_t source, Type type);
  /// A form with the operation of the instruction's row in the table.
  [[nodiscard]] LaneForm form() const { return {.operation = opcode_->operation}; }
  /// Emits the step of an instruction whose operands follow its signature.
  void apply(const LaneForm& form);

  // ---- rows of the trace ----

  void set_class(OpClass op_class) { row_.op_class = op_class; }
  /// What the instruction's rows have in common. It has an opcode if that is not the instruction's
  /// own.
  [[nodiscard]] StaticInstruction& row() { return row_; }
  /// Notes that the rows read a value, or write one.
  void note_read(std::uint32_t value);
  void note_written(std::uint32_t value) { row_destinations_.push_back(value); }
  /// Values that the rows read so far.
  [[nodiscard]] const std::vector<std::uint32_t>& values_read() const { return row_sources_; }
  /// Attaches the rows to the last step so far instead of the instruction's last.
  void set_row_step() { row_step_ = draft_.result.steps.size() - 1; }
  /// Emits what a function does before it returns: it stores results from registers and frees its
  /// stack.
  void leave_function();
  /// The instruction gets no row, because machine code has none for it.
  void fold() { is_folded_ = true; }
  /// Folds the copy of a value.
  void fold_copy(std::uint32_t target, std::uint32_t source);
  /// Adds a row of an instruction that the machine executes as several of the same class. Constants
  /// among the values are left out.
  void add_part(std::vector<std::uint32_t> destinations, std::vector<std::uint32_t> sources);
  /// Adds a row of another kind.
  void add_part(StaticInstruction row, std::vector<std::uint32_t> destinations,
                std::vector<std::uint32_t> sources);

 private:
  struct Part {
    std::vector<std::uint32_t> destinations;
    std::vector<std::uint32_t> sources;
    std::optional<StaticInstruction> row;  ///< empty: the instruction's own
  };

  void declare_registers();
  void enter_function();
  void lower_instruction(std::uint32_t number);
  void prepare_guard();
  void add_pending_rows();
  PendingRow new_row() const;
  [[nodiscard]] std::array<std::uint32_t, 2> halves_of(const Operand& operand) const;
  std::uint32_t element_address(const Operand& variable, std::uint32_t bytes);
  std::uint32_t float_constant(const Operand& source, Type type);

  const Module& module_;
  const SymbolTable& symbols_;
  const KernelLayout& layout_;
  KernelProgram& program_;
  Variables variables_;
  FunctionDraft draft_;
  std::vector<std::uint32_t> first_value_;  ///< of each register
  /// By bits, and whether they are 64 and an address of a shared variable.
  std::map<std::tuple<std::uint64_t, bool, bool>, std::uint32_t> constants_;
  std::uint32_t carry_ = none;
  std::uint32_t stack_top_ = none;

  // The instruction at hand.
  std::uint32_t instruction_number_ = 0;
  const Instruction* instruction_ = nullptr;
  const Opcode* opcode_ = nullptr;
  std::uint32_t guard_ = none;
  bool guard_negated_ = false;
  bool is_folded_ = false;
  StaticInstruction row_;
  std::optional<std::size_t> row_step_;  ///< empty: the instruction's last step
  std::vector<std::uint32_t> row_destinations_;
  std::vector<std::uint32_t> row_sources_;
  std::vector<Part> parts_;
};

}  // namespace warpstack::ptx
