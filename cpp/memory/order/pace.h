#pragma once

#include <cstdint>
#include <vector>

#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// What a warp does from the issue of an access to that of its next one, on the reference machine:
/// means over the warps of a sample, of which the first 8192 instructions count. The sample has 16
/// blocks, evenly over the trace, and of the n-th the warp n, modulo their number; of fewer blocks
/// all, and of each as many warps, evenly, that there are at most 16.
struct Pace {
  double instructions = 8;  ///< issued, the access included
  double cycles = 32;       ///< as if all data were there at once
  bool waits = true;        ///< for the data of its accesses so far
};

/// The pace after an access of each row of the instruction table; rows that no warp of the sample
/// has keep the defaults.
struct Paces {
  std::vector<Pace> after;
  Pace before_first;
};

/// An instruction issues a cycle after the one before, or when what it reads is there: after a
/// cycle from an access, after the normal latency from others.
Paces paces_of(const trace::KernelTrace& trace);

}  // namespace warpstack::memory
