#include "ptx/lower/source_text.h"

namespace warpstack::ptx {
namespace {

/// "bfs.cu:12", with the line of the outermost caller before it where that is in another file;
/// empty without line information.
std::string source_line_of(const Module& module, const SourcePosition& source) {
  const trace::SourceTable& sources = module.sources;
  std::string line = sources.place(source.file, source.line);
  if (source.inlined_at == 0) return line;
  const trace::InlinedCall* call = &sources.calls[source.inlined_at - 1];
  while (call->caller != 0) call = &sources.calls[call->caller - 1];
  if (call->file == source.file) return line;
  const std::string caller = sources.place(call->file, call->line);
  return caller.empty() || line.empty() ? line : caller + ", " + line;
}

}  // namespace

simt::SourceInstruction source_text(const Module& module, const Instruction& instruction) {
  return {.source = source_line_of(module, instruction.source),
          .place = "PTX line " + std::to_string(instruction.line),
          .opcode = instruction.full_opcode()};
}

}  // namespace warpstack::ptx
