#include "trace/instructions/static_instruction.h"

#include <algorithm>
#include <utility>

namespace warpstack::trace {

void append_register_tuple(std::vector<std::uint16_t>& registers, std::uint16_t first,
                           std::uint32_t width) {
  for (std::uint32_t i = 0; i < width; ++i) {
    const auto reg = static_cast<std::uint16_t>(first + i);
    if (reg == zero_register) return;
    if (std::ranges::find(registers, reg) == registers.end()) registers.push_back(reg);
  }
}

StaticInstruction make_static_instruction(std::uint32_t pc, std::string opcode,
                                          std::span<const std::uint16_t> destinations,
                                          std::span<const std::uint16_t> sources,
                                          std::uint32_t source_line, std::uint32_t traced_width) {
  DecodedOpcode decoded = decode_opcode(opcode);
  const bool known = decoded.op_class != OpClass::unknown;
  if (!known && traced_width > 0) {
    decoded.op_class = OpClass::memory;
    decoded.space = MemorySpace::generic;
    decoded.kind = destinations.empty() ? MemoryKind::store : MemoryKind::load;
    decoded.width = traced_width;
    decoded.registers = Registers::data;
  }
  const OperandWidths widths = operand_widths(opcode, decoded, sources.size());
  StaticInstruction result;
  result.pc = pc;
  result.known_opcode = known;
  result.source_line = source_line;
  result.op_class = decoded.op_class;
  result.space = decoded.space;
  result.kind = decoded.kind;
  result.cache_operator = decoded.cache_operator;
  result.width = decoded.width;
  for (const std::uint16_t reg : destinations) {
    append_register_tuple(result.destinations, reg, widths.destination);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::uint32_t width = widths.source[std::min(i, max_operands - 1)];
    append_register_tuple(result.sources, sources[i], width);
  }
  result.opcode = std::move(opcode);
  return result;
}

}  // namespace warpstack::trace
