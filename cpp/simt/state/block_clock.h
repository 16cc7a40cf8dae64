#pragma once

#include <cstdint>

#include "simt/program/program.h"

namespace warpstack::simt {

struct Warp;

// Blocks in the order of time. Each warp has a cycle, an estimate of when it issues its next
// instruction, and the block whose warps are behind the others goes on. The estimate is to be cheap
// and to put blocks in order, not to predict times: the models do that from the trace. Latencies
// are round numbers for any GPU.

/// Cycles by which a block may run ahead of the others before they have a turn.
inline constexpr std::uint64_t turn_cycles = 512;
/// From the last arrival at a barrier of a block until its warps go on.
inline constexpr std::uint64_t barrier_cycles = 20;

/// The time of a launch whose blocks run in its order.
struct BlockClock {
  std::uint64_t pace = 1;  ///< cycles from one instruction of a warp to its next
  std::uint64_t now = 0;   ///< when the next block begins
  std::uint64_t others =
      0;  ///< when the first of the other resident blocks goes on; none: all ones
};

/// Cycles of a warp per instruction on an SM with so many warps: its four schedulers issue one each
/// per cycle, and a result is there for the next instruction after some cycles.
[[nodiscard]] std::uint64_t issue_pace(std::uint64_t warps_per_sm);

/// Cycles that a warp waits for a step, beyond its issue. A load that follows another one closely
/// waits for nothing more.
std::uint64_t cycles_of(const KernelProgram& program, const Step& step, Warp& warp,
                        std::uint64_t pace);

/// Whether an access gives what other blocks wrote: an atomic on global memory whose result is
/// read.
[[nodiscard]] bool watches_others(const MemoryAccess& access);

/// Whether a kernel has a loop with a volatile, relaxed or acquire load of global memory.
[[nodiscard]] bool polls_memory(const KernelProgram& program);

/// Whether a kernel reads what other blocks of its launch write: it polls memory, or has such an
/// atomic.
[[nodiscard]] bool watches_others(const KernelProgram& program);

}  // namespace warpstack::simt
