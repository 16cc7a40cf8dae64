#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ptx/lower/lower.h"
#include "simt/program/flow_analysis.h"
#include "trace/instructions/static_instruction.h"

namespace warpstack::ptx {

using trace::StaticInstruction;

/// A value of a function: a virtual register, a temporary, or an immediate operand.
struct Value {
  std::uint8_t units = 1;  ///< of 32 bits: 1 or 2
  bool is_predicate = false;
  bool is_constant = false;
  std::uint64_t bits = 0;          ///< of a constant
  bool is_shared_address = false;  ///< a constant that is the address of a shared variable
};

/// A row of the trace whose registers are still values of its function.
struct PendingRow {
  StaticInstruction instruction;
  std::vector<std::uint32_t> destinations;
  std::vector<std::uint32_t> sources;
};

/// A function under construction. The operands of its steps, and of their entries in the program's
/// tables, are numbers of values until place_values() replaces them by places in the frame.
struct FunctionDraft {
  FunctionDraft(const Function& function, bool kernel) : text(function), is_kernel(kernel) {}

  const Function& text;
  bool is_kernel = false;
  ProgramFunction result;
  std::vector<Value> values;
  std::vector<DefinitionsAndUses> effects;  ///< of each step
  std::vector<std::uint32_t> first_step;    ///< of each instruction, and the number of steps
  Successors successors;                    ///< of each step
  std::vector<PendingRow> rows;
  std::map<std::uint32_t, std::uint32_t> aliases;  ///< folded copies: target to source
};

/// Turns targets of branches into steps, and finds where branches reconverge.
void connect_branches(FunctionDraft& draft, KernelProgram& program);

/// Gives values their places in the frame: constants first, then registers.
void place_values(FunctionDraft& draft, KernelProgram& program);

/// Numbers the registers of the rows for the whole kernel and adds the rows to the program.
/// Registers of the trace are numbered from `first_register` on, which is then set behind them. A
/// folded copy shares the number of its source when both are written once.
void add_rows(FunctionDraft& draft, KernelProgram& program, std::uint32_t& first_register);

/// The least multiple of `alignment` that is not below `offset`.
constexpr std::uint64_t align(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// Replaces the values that a step of an asynchronous operation names by places in the frame.
void place_async_operands(const Step& step, KernelProgram& program,
                          const std::vector<std::uint32_t>& offsets);

}  // namespace warpstack::ptx
