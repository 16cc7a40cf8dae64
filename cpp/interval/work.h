#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "interval/interval.h"
#include "interval/waves.h"
#include "memory/memory_system.h"

namespace warpstack {

/// What a warp instruction asks of each resource: means over all warps of a kernel.
struct Demands {
  double memory_instructions = 0;  ///< active ones of global and local memory
  double lsu_cycles = 0;           ///< L1 requests and shared-memory wavefronts, one per cycle
  double read_misses = 0;          ///< read requests that leave the SM
  double read_bytes = 0;           ///< that return from L2
  double write_requests = 0;       ///< writes and atomics that leave the SM
  double write_bytes = 0;          ///< to L2
  double dram_read_requests = 0;   ///< read misses that reach DRAM
  double dram_bytes = 0;           ///< between L2 and DRAM, write-backs too

  /// The means over so many instructions of what are sums.
  [[nodiscard]] Demands per(double instructions) const;
};

/// Demands of a kernel by what the caches did with it. Throws InputError when they did it with
/// another kernel.
Demands demands_of(const KernelTrace& trace, const MemoryProfile& memory);

/// Demands of the warp with these intervals; `l1_bytes` and `l2_bytes` are of a request that does
/// not say.
Demands demands_of(const IntervalColumns& intervals, double l1_bytes, double l2_bytes);

/// A part of a kernel's work: what runs while so many SMs have so many unfinished warps.
struct Phase {
  double instructions = 0;  ///< warp instructions of all SMs
  double warp_cycles = 0;   ///< that their warps need for them when each is alone on its SM
  double warps = 1;         ///< on an SM; a mean
  double active_sms = 1;    ///< a mean
};

/// A launch as it runs.
struct PhaseList {
  std::vector<Phase> phases;
  double first_warps = 0;  ///< on an SM when the launch starts; a mean
  double first_sms = 0;    ///< with work then
};

/// One warp alone on an SM.
struct WarpWork {
  double instructions = 0;
  double cycles = 0;  ///< at least instructions / issue rate
};

/// The warps of a kernel, block by block: enough to play the launch on any number of SMs.
class KernelWork {
 public:
  /// Runs the interval algorithm over every warp. Uses `num_threads` threads; the result does not
  /// depend on their number. Throws InputError unless the latencies are finite.
  KernelWork(const KernelTrace& trace, const Latencies& latencies, double issue_rate,
             unsigned num_threads = 1, const InterruptCheck& interrupt = {});

  struct Launch {
    std::uint32_t num_sms = 1;
    std::uint32_t blocks_per_sm = 1;
    /// The issue slots of an SM go to the oldest warps first; else all get the same share.
    bool oldest_first = true;
  };
  /// Plays the launch: blocks go to SMs as slots get free; a warp runs as fast as alone while its
  /// SM has issue slots for it. Contention for memory slows all warps alike, so that it changes
  /// how long a phase lasts but not what runs in it. Blocks that were not traced run like those
  /// that were; of very many only some, which stand for all. Phases with nearly as many warps and
  /// SMs are put together; they are in the order of active SMs and warps.
  [[nodiscard]] PhaseList play(const Launch& launch, const InterruptCheck& interrupt = {}) const;

 private:
  std::vector<std::vector<WarpWork>> blocks_;  ///< traced ones; warps that have instructions
  std::uint64_t num_blocks_;                   ///< of the launch
  double issue_rate_;
};

/// The phases of a launch in waves of warps like the one with these intervals.
PhaseList phases_of(const IntervalColumns& intervals, std::span<const Wave> waves,
                    double issue_rate);

}  // namespace warpstack
