#pragma once

#include <cstdint>
#include <span>

#include "trace/columns/trace_builder.h"

namespace warpstack::trace {

/// An instruction that all warps of a launch may issue. Arrays have one entry per warp, in the
/// order of blocks; those per lane have 32 entries per warp.
struct ProgramStep {
  std::uint32_t row = 0;
  std::span<const std::uint8_t> issued;      ///< empty: every warp issues it
  std::span<const std::uint32_t> mask;       ///< active lanes; empty: all threads of the warp
  std::span<const std::uint64_t> addresses;  ///< per lane; empty: no address operand
};

/// Appends the program to the builder, warp by warp. Throws InputError when the length of an array
/// is not the launch's number of warps (or lanes).
void append_program(TraceBuilder& builder, std::span<const ProgramStep> steps,
                    const InterruptCheck& interrupt = {});

}  // namespace warpstack::trace
