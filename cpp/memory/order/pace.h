#pragma once

#include <cstdint>
#include <vector>

#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// What a warp does between the issues of two accesses on the reference machine: means over the
/// first 8192 instructions of the warps of a sample. The sample has 16 blocks, spread evenly over
/// the trace, and the n-th gives its warp n, modulo their number. If there are fewer blocks, each
/// gives several warps, spread evenly, at most 16 in all.
struct Pace {
  double instructions = 8;  ///< issued, including the access
  double cycles = 32;       ///< if all data were there at once
  bool waits = true;        ///< for the data of all its accesses so far
};

/// The pace after an access, by row of the instruction table. Rows that no warp of the sample
/// executes keep the defaults.
struct Paces {
  std::vector<Pace> after;
  Pace before_first;
};

/// An instruction issues a cycle after the one before it, or later when its operands are there.
/// Results of accesses are there after a cycle, others after the normal latency. With
/// `atomics_stop_warps` every instruction waits for the atomics before it.
Paces paces_of(const trace::KernelTrace& trace, bool atomics_stop_warps = false);

}  // namespace warpstack::memory
