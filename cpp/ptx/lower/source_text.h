#pragma once

#include "ptx/text/module.h"
#include "simt/program/program.h"

namespace warpstack::ptx {

/// What messages of a running program say of an instruction. Of what a header's function is made
/// of, the line that calls it comes first: "bfs.cu:12, sm_30_intrinsics.hpp:134".
simt::SourceInstruction source_text(const Module& module, const Instruction& instruction);

}  // namespace warpstack::ptx
