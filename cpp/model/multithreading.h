#pragma once

#include "model/model.h"

namespace warpstack::model {

// Cycles that an SM needs for one pass of the representative warp through its intervals while
// `warps` warps share the SM, without contention for memory.

/// One warp's own cycles: every instruction of the others hides in its stalls (GPUMech, Eq. 1).
double single_warp_cycles(const interval::IntervalColumns& intervals, double warps,
                          const ModelParameters& parameters);

/// Sum of C_i: the warp's own cycles and the instructions of other warps that hide no stall
/// (GPUMech, Section IV-A; Eq. 9 to 11 round robin, Eq. 12 to 16 greedy then oldest).
double multithreaded_cycles(const interval::IntervalColumns& intervals, double warps,
                            const ModelParameters& parameters);

/// IPC of the Markov chain of Chen and Aamodt, as cycles.
double markov_cycles(const interval::IntervalColumns& intervals, double warps,
                     const ModelParameters& parameters);

}  // namespace warpstack::model
