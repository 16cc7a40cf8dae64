#pragma once

#include <string>
#include <vector>

#include "ptx/text/module.h"
#include "trace/instructions/opcode.h"

namespace warpstack::ptx {

using trace::OpClass;

/// A row of the trace that stands for a PTX instruction or a part of it.
struct TraceRow {
  std::string opcode;
  OpClass op_class;
};

/// The machine operations of a PTX instruction that becomes a sequence. Most instructions are one
/// operation, named as in the text; ptxas turns divisions, square roots and reciprocals into
/// sequences around a special function unit (docs/explanation/functional-simulation.md has the
/// table). Empty if this form of the instruction is one operation.
using Expansion = std::vector<TraceRow> (*)(const Instruction& instruction);

std::vector<TraceRow> expand_div(const Instruction& instruction);
std::vector<TraceRow> expand_rem(const Instruction& instruction);
std::vector<TraceRow> expand_rcp(const Instruction& instruction);
std::vector<TraceRow> expand_sqrt(const Instruction& instruction);
std::vector<TraceRow> expand_sin(const Instruction& instruction);
std::vector<TraceRow> expand_cos(const Instruction& instruction);

}  // namespace warpstack::ptx
