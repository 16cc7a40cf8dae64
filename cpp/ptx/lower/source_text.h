#pragma once

#include "ptx/text/module.h"
#include "simt/program/program.h"

namespace warpstack::ptx {

/// How messages of a running program describe an instruction. For code of a header's function, the
/// line of the call comes first: "bfs.cu:12, sm_30_intrinsics.hpp:134".
simt::SourceInstruction source_text(const Module& module, const Instruction& instruction);

}  // namespace warpstack::ptx
