#pragma once

#include <string>
#include <vector>

#include "ptx/module.h"
#include "trace/static_instruction.h"

namespace warpstack::ptx {

/// A row of the trace that stands for a PTX instruction or a part of it.
struct TraceRow {
  std::string opcode;
  OpClass op_class;
};

/// The machine operations of a PTX instruction. Most have one, named as in the text; divisions,
/// square roots and reciprocals are sequences around a special function unit, as ptxas makes them
/// (docs/explanation/functional-simulation.md has the table). `row` holds the class that the
/// instruction has by itself.
std::vector<TraceRow> expand(const std::string& opcode, const Instruction& instruction,
                             const StaticInstruction& row);

}  // namespace warpstack::ptx
