#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "interval/interval.h"
#include "interval/waves.h"
#include "memory/cache/instruction_cache.h"
#include "memory/system/memory_system.h"

namespace warpstack::interval {

/// What it is, beside memory, that a warp waits for where it waits for a row of the instruction
/// table.
struct RowWait {
  bool is_shared = false;
  bool is_barrier = false;
  double conflicts = 0;  ///< share of the latency that further turns through shared memory make up
};

/// What a warp instruction asks of each resource: means over all warps of a kernel.
struct ResourceDemands {
  double loads = 0;            ///< active ones of global and local memory
  double lsu_cycles = 0;       ///< of the load-store unit, for L1 requests and shared-memory passes
  double tag_cycles = 0;       ///< of these, for further lines of an access and passes over banks
  double shared_cycles = 0;    ///< and for accesses to shared memory, without bank conflicts
  double conflict_cycles = 0;  ///< and for their further turns
  double read_misses = 0;      ///< read requests that leave the SM
  double misses_past_l1 = 0;   ///< of them, those that pass L1 by and hold no MSHR of it
  double read_bytes = 0;       ///< that return from L2
  double write_requests = 0;   ///< writes and atomics that leave the SM
  double write_bytes = 0;      ///< to L2
  double posted_requests = 0;  ///< of the writes, those whose warps go on at once
  double posted_bytes = 0;
  double dram_read_requests = 0;  ///< read misses that reach DRAM
  double dram_bytes = 0;          ///< between L2 and DRAM, write-backs too
  double dram_write_bytes = 0;    ///< of them, to DRAM
  double missing_loads = 0;       ///< instructions that wait for L2 or DRAM
  double missing_lines = 1;       ///< read requests of such an instruction that leave the SM
  double hit_bytes = 0;           ///< of requests that L2 serves without DRAM
  double slice_turns = 0;         ///< MemoryProfile::slice_turns of all slices of L2
  /// Bytes of the DRAM channel that moves most over those of the mean one.
  double dram_imbalance = 1;
  double hottest_slice_turns = 0;  ///< as if all slices took as many as the one that takes most
  /// Of `slice_turns`, the further ones of lanes that meet in a word.
  double atomic_turns = 0;
  /// As if, in each short while, all slices took as many as the one that then takes most
  /// (MemoryProfile::slice_crowding); counts from `hottest_slice_turns` on.
  double crowded_slice_turns = 0;
  /// `read_bytes` of the SM that gets most, per instruction of all SMs.
  double most_read_bytes = 0;
  /// Cycles of the load-store unit in which a load waits for a place in its set of L1 on the
  /// reference machine, until data come from L2, from DRAM.
  double place_wait_l2 = 0;
  double place_wait_dram = 0;
  double tensor_cycles = 0;  ///< of a scheduler's tensor cores
  /// Of these, those in which the control fields of machine code keep a warp from its next matrix
  /// instruction, and which are part of its time alone.
  double spaced_tensor_cycles = 0;
  /// Instructions of the units of a scheduler, by trace::OpClass: all but memory accesses.
  std::array<double, trace::num_op_classes> unit_instructions{};
  /// Warps of a block that its barriers, in the mean, bring to the load-store unit and the tensor
  /// cores together; of kernels without matrix instructions 1.
  double warps_in_step = 1;

  memory::CodeWalk code;
  /// By row; null where the rows are not known.
  std::shared_ptr<const std::vector<RowWait>> row_waits;

  /// Means per instruction, from sums over `instructions` instructions.
  [[nodiscard]] ResourceDemands per(double instructions) const;
};

/// What demands depend on beside the kernel and what the caches did.
struct DemandOptions {
  gpu::TensorUnit tensor{};
  gpu::GlobalLoads global_loads = gpu::GlobalLoads::cached;  ///< which of them L1 took
  std::uint32_t dram_channels = 0;                           ///< of the slices; 0: unknown
  gpu::WarpWaits waits{};
  double lsu_interval = 1;             ///< cycles of a memory instruction, at least
  double shared_wavefront_cycles = 1;  ///< of a pass through shared memory
  double shared_latency = 1;           ///< of an access of one pass
  double l1_tags_per_cycle = 0;        ///< lines; 0: one, and no passes over the banks of L1
  memory::CodeStorage code{};

  static DemandOptions of(const gpu::Gpu& gpu) {
    return {gpu::TensorUnit::of(gpu),
            gpu.l1_global_loads,
            gpu.num_dram_channels(),
            gpu::WarpWaits::of(gpu),
            static_cast<double>(gpu.lsu_interval),
            static_cast<double>(gpu.shared_wavefront_cycles),
            gpu.shared_memory_latency,
            static_cast<double>(gpu.l1_tags_per_cycle),
            memory::CodeStorage::of(gpu)};
  }
};

/// Demands of a kernel by what the caches did with it, and of its units. Throws InputError when the
/// caches did it with another kernel.
ResourceDemands demands_of(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                           const DemandOptions& options = {});

/// Whether a kernel has matrix instructions, and barriers at which its warps meet between them:
/// then its warps keep step, and those of an SM are played (play_blocks).
bool keeps_step(const trace::KernelTrace& trace);

/// Demands of the warp with these intervals; `l1_bytes` and `l2_bytes` are of a request that does
/// not say.
ResourceDemands demands_of(const IntervalColumns& intervals, double l1_bytes, double l2_bytes);

/// A population: how many warps share an SM, how many share the GPU, and how many SMs these are on.
struct Phase {
  double warps = 1;      ///< on the SM
  double all_warps = 1;  ///< on all SMs, at least `warps`
  double busy_sms = 1;   ///< that have warps
  /// Cycles for an instruction of a warp if the blocks of the SM, which keep step, wait for nothing
  /// beyond it; 0: they do not.
  double in_step = 0;
};

/// What one SM does in a launch.
struct SmWork {
  /// Instructions that every warp of the SM runs one after the other, by phase.
  std::vector<double> depth;
  double instructions = 0;  ///< of all its warps
  /// Half of what its longest block takes alone, as far as its warps compete: 1 - 1 / the most
  /// warps.
  double drain_cycles = 0;
  double drain_instructions = 0;  ///< the same of the most instructions of a warp
  double rounds = 0;              ///< the most blocks that take a place one after the other
  /// Instructions of the warps of a block that wait for each other at barriers, in the mean, times
  /// the rounds.
  double round_instructions = 0;
};

/// A launch as it runs. Phases, `depth`, instructions and the first warps do not depend on any
/// latency; `alone_cycles`, `after_stores`, `span`, `off_units` and `drain_cycles` grow with every
/// latency.
struct PhaseList {
  std::vector<Phase> phases;
  /// The mean of SmWork::depth over the SMs that have work, by phase.
  std::vector<double> mean_depth;
  /// SMs that may be the last to end; no SM of the launch has more than one of these of everything.
  std::vector<SmWork> sms;
  double instructions = 0;  ///< warp instructions of all SMs
  double alone_cycles = 0;  ///< per instruction of a warp alone on its SM; a mean
  double store_cycles = 0;  ///< of these, while it waits for its stores at its end
  double after_stores =
      0;            ///< cycles in which the launch waits for its last stores, and nobody else
  double span = 0;  ///< cycles of the launch if no warp held another one up
  TimesOffUnits off_units;  ///< the means over the warps that have instructions of the unit
  double accessing = 1;     ///< share of the warps that access memory
  /// Blocks that take the place of another one, for each instruction of a block's longest warp.
  double replacements = 0;
  double first_warps = 0;  ///< on the fullest SM when the launch starts
  double first_all_warps = 0;
  /// Blocks with which the SM starts that has most work, as numbers of traced ones.
  std::vector<std::uint32_t> first_blocks;
  bool has_latest_end = true;  ///< no launch ends later than one thing after another
  /// Shares of the phases then, with the level of warps that the fullest SM does not exceed.
  std::vector<double> at_start;
};

/// One warp alone on an SM.
struct WarpWork {
  double instructions = 0;
  double cycles = 0;            ///< at least instructions / issue rate
  double reference_cycles = 0;  ///< on the reference machine
  double store_cycles = 0;      ///< as those of WarpGroup
};

/// Latencies on the reference machine, which are the same for all GPUs: by them it is decided who
/// runs beside whom. A memory instruction has the mean over its miss events.
WarpLatencies reference_latencies(const trace::KernelTrace& trace,
                                  const memory::MemoryProfile& memory);

/// The warps of a kernel, block by block: enough to play the launch on any number of SMs.
class KernelWork {
 public:
  /// Runs the interval algorithm over every warp, with the GPU's latencies and with those of the
  /// reference machine, which issues an instruction per cycle. A warp ends when its results are
  /// there, and what else it waits for. Uses `num_threads` threads; the result does not
  /// depend on their number. Throws InputError unless the latencies are finite.
  KernelWork(const trace::KernelTrace& trace, const WarpLatencies& latencies,
             const WarpLatencies& reference, double issue_rate, unsigned num_threads = 1,
             const InterruptCheck& interrupt = {}, const gpu::WarpWaits& waits = {});

  /// Plays the launch in the time of the reference machine: each block takes the slot that is free
  /// first; of slots that are free at the same time the SMs get one each in turn. Blocks that were
  /// not traced run like those that were; of very many only some, which stand for all.
  [[nodiscard]] PhaseList play(std::uint32_t num_sms, std::uint32_t blocks_per_sm,
                               const InterruptCheck& interrupt = {}) const;

  /// The longest of the blocks with which a launch starts on the SM that has most work.
  [[nodiscard]] std::uint32_t longest_first(const PhaseList& launch) const;
  /// Puts the times of phases in which blocks keep step into a launch: `one` are the cycles of
  /// longest_first() on an SM of its own, `all` those of launch.first_blocks together
  /// (play_blocks). Between, the time of an instruction grows with the number of blocks.
  void put_in_step(PhaseList& launch, double one, double all) const;

  /// The traced blocks: warps that have instructions.
  [[nodiscard]] const std::vector<std::vector<WarpWork>>& blocks() const { return blocks_; }

 private:
  std::vector<std::vector<WarpWork>> blocks_;
  std::uint64_t num_blocks_;  ///< of the launch
  bool warps_wait_for_stores_;
  TimesOffUnits off_units_{};  ///< sums over the warps
  double share_at_barriers_;   ///< of a block's warps that wait for each other there
};

/// The phases of a launch in waves of warps like the one with these intervals.
PhaseList phases_of(const IntervalColumns& intervals, std::span<const Wave> waves,
                    double issue_rate);

}  // namespace warpstack::interval
