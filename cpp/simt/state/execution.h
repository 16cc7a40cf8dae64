#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/device/memory_view.h"
#include "simt/device/written_bytes.h"
#include "simt/program/program.h"
#include "simt/state/block_clock.h"
#include "simt/state/launch.h"
#include "simt/state/race_check.h"
#include "simt/state/spin_detector.h"
#include "simt/state/tensor_memory.h"
#include "simt/state/warp.h"

namespace warpstack::simt {

inline constexpr std::size_t num_barriers = 16;

/// The arrivals at a barrier of a block.
struct BarrierState {
  std::uint32_t warps = 0;    ///< that have arrived
  std::uint32_t threads = 0;  ///< needed; 0: all of the block
  std::uint32_t count = 0;    ///< lanes whose predicate holds
  bool all = true;
  std::uint64_t cycle = 0;  ///< of the last arrival, where blocks run in the order of time

  /// The result of a bar.red.
  [[nodiscard]] std::uint64_t value(BarrierKind kind) const {
    if (kind == BarrierKind::all) return all ? ~std::uint64_t{0} : 0;
    if (kind == BarrierKind::any) return count > 0 ? ~std::uint64_t{0} : 0;
    return count;
  }
};

/// What a block's instructions have completed at one of its mbarriers.
struct PhaseCount {
  std::uint32_t barrier = 0;  ///< its address in shared memory
  std::uint32_t made = 0;     ///< completions, see trace::PhaseStep
  std::uint32_t ended = 0;    ///< those until the end of its last phase
};

/// A copy that has moved bytes which no phase of its mbarrier has expected so far.
struct UnexpectedBytes {
  std::uint64_t barrier = 0;  ///< offset in shared memory
  const SourceInstruction* copy = nullptr;
  std::string place;
};

/// A thread block with its state.
struct Block {
  std::uint64_t number = 0;
  Dim3 index{};
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  WrittenBytes shared_written;
  std::unique_ptr<RaceCheck> races;       ///< null unless the launch checks for them
  std::unique_ptr<TensorMemory> tensors;  ///< null before the first allocation
  std::array<BarrierState, num_barriers> barriers{};
  std::vector<PhaseCount> phases;
  std::vector<UnexpectedBytes> unexpected;  ///< only the first for each mbarrier
  bool done = false;
  bool is_recorded = true;  ///< it is one of Execution::recorded
  std::uint64_t cycle = 0;  ///< of the warp that ran last, where blocks run in the order of time

  /// "(0, 1, 0)"
  [[nodiscard]] std::string text() const;
};

/// A running launch: the state that the parts of the engine share.
struct Execution {
  Execution(Device& device, const KernelProgram& program, std::span<const std::byte> parameters,
            const LaunchOptions& options, std::span<const std::uint64_t> bound_textures)
      : device(device),
        program(program),
        options(options),
        parameters(parameters.begin(), parameters.end()),
        bound_textures(bound_textures),
        cluster(cluster_of(program, options)),
        recorded(blocks_to_record(program, options)),
        num_blocks(options.run_others ? recorded.num_blocks() : recorded.size()),
        num_threads(
            static_cast<std::uint32_t>(options.block[0] * options.block[1] * options.block[2])),
        num_warps((num_threads + warp_size - 1) / warp_size),
        local_bytes(local_bytes_of(program, options)) {}

  /// The index of a lane's thread in its block: x, y, z.
  [[nodiscard]] std::array<std::uint64_t, 3> thread_index(const Warp& warp,
                                                          std::uint32_t lane) const {
    const std::uint64_t thread = warp.number * warp_size + lane;
    return {thread % options.block[0], thread / options.block[0] % options.block[1],
            thread / options.block[0] / options.block[1]};
  }

  /// The number in the grid of the block that runs at a place in the order of the launch.
  [[nodiscard]] std::uint64_t block_at(std::uint64_t place) const {
    return options.run_others ? place : recorded.block(place);
  }

  /// The time that clocks show: a warp instruction takes one tick.
  [[nodiscard]] std::uint64_t time() const { return warp_instructions + skipped_time; }
  void skip_time_to(std::uint64_t later) {
    if (later > time()) skipped_time = later - warp_instructions;
  }

  /// Called before an operation whose outcome depends on the progress of the launch, or that others
  /// see at once. Throws NeedsItsTurn in a block that runs ahead of its turn.
  void need_turn() const {
    if (view != nullptr) throw NeedsItsTurn{};
  }

  Device& device;
  const KernelProgram& program;
  const LaunchOptions& options;
  const std::vector<std::byte> parameters;
  const std::span<const std::uint64_t> bound_textures;
  const Dim3 cluster;                   ///< blocks of a cluster
  const trace::BlockSample recorded;    ///< the blocks in the trace
  const std::uint64_t num_blocks;       ///< that run
  const std::uint32_t num_threads;      ///< of a block
  const std::uint32_t num_warps;        ///< of a block
  std::uint64_t local_bytes;            ///< of a thread
  std::uint64_t workspace_address = 0;  ///< of a cooperative launch that synchronizes
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;
  std::uint64_t skipped_time = 0;      ///< while warps only slept or watched the clock
  trace::AwaitedTicks awaited_cycles;  ///< of the blocks that have ended
  trace::AwaitedTicks awaited_ns;
  /// Whether a branch depends on the time that a step has read, of steps that have been asked for.
  std::unordered_map<const Step*, bool> decides_branches;
  MemoryView* view = nullptr;  ///< of blocks that run ahead of their turn; null for others
  bool in_turns = false;       ///< several resident blocks wait for each other
  Sightings sightings;         ///< of warps that are watched
  /// How often each access of the program has counted (MemoryAccess::counts), where some blocks do
  /// not run.
  std::vector<std::uint64_t> counts_taken;
  std::uint64_t async_events = 0;         ///< number of events that may let a held warp go on
  std::deque<Block>* resident = nullptr;  ///< the blocks that take turns
  BlockClock* clock = nullptr;            ///< where blocks run in the order of time
  RaceBudget race_budget;
  std::vector<std::vector<std::byte>> constant_banks;  ///< of the launch, see constant_banks.h
  std::vector<std::byte> first_frame;                  ///< of a warp that begins
  Block block;                                         ///< the running one
};

}  // namespace warpstack::simt
