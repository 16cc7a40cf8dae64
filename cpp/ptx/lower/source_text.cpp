#include "ptx/lower/source_text.h"

namespace warpstack::ptx {
namespace {

/// "bfs.cu:12"; empty without line information.
std::string line_of(const Module& module, const SourcePosition& position) {
  if (position.line == 0 || position.file >= module.files.size()) return {};
  std::string file = module.files[position.file];
  file.erase(0, file.rfind('/') + 1);
  return file + ":" + std::to_string(position.line);
}

std::string source_line_of(const Module& module, const Instruction& instruction) {
  const std::string line = line_of(module, instruction.source);
  if (instruction.outermost.file == instruction.source.file) return line;
  const std::string caller = line_of(module, instruction.outermost);
  return caller.empty() || line.empty() ? line : caller + ", " + line;
}

}  // namespace

simt::SourceInstruction source_text(const Module& module, const Instruction& instruction) {
  return {.source = source_line_of(module, instruction),
          .place = "PTX line " + std::to_string(instruction.line),
          .opcode = instruction.full_opcode()};
}

}  // namespace warpstack::ptx
