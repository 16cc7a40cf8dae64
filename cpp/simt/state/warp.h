#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/lazy_bytes.h"
#include "simt/device/written_bytes.h"
#include "simt/program/program.h"
#include "simt/state/spin_detector.h"
#include "trace/columns/trace_builder.h"

namespace warpstack::simt {

/// The `pc` of lanes that wait for others of their warp; it lies behind the end of every function.
inline constexpr std::uint32_t parked = none - 1;

/// Lanes that go on at `pc` until they meet the others at `reconvergence`.
struct PathEntry {
  std::uint32_t pc = 0;
  std::uint32_t reconvergence = none;
  std::uint32_t mask = 0;
  std::uint32_t resume = none;  ///< of parked lanes: the step where they wait
  std::uint32_t members = 0;    ///< of parked lanes: those their operation names; 0 at a barrier
};

/// A function that a warp is executing.
struct Frame {
  const ProgramFunction* function = nullptr;
  std::size_t base = 0;        ///< of its registers in the warp's register file
  std::size_t first_path = 0;  ///< of its entries in the warp's stack
  std::uint32_t mask = 0;      ///< lanes that entered
  std::uint64_t local_base = 0;
  const Call* call = nullptr;

  /// Bytes of a function's registers and parameters in the register file.
  static std::size_t bytes_of(const ProgramFunction& function) {
    return function.register_bytes + std::size_t{function.parameter_bytes} * warp_size;
  }
};

/// The state of a warp's asynchronous operations (async_unit.h).
struct AsyncState {
  std::uint32_t held_mask = 0;         ///< lanes of the step at which the warp is held
  std::uint32_t held_rounds = 0;       ///< how often it has looked again
  std::uint32_t cluster_lanes = 0;     ///< lanes that came to the cluster's barrier early
  std::uint64_t cluster_arrivals = 0;  ///< times that all lanes have come there
  std::uint64_t committed_groups = 0;  ///< of wgmma
  /// By address of an mbarrier: the completions that the warp has waited for.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> awaited_phases;
};

/// The state of a warp: its registers, its call stack, and the stack of paths on which its lanes
/// have diverged. The top path runs.
struct Warp {
  /// A `held` warp tries its step again until another warp has done what it waits for.
  enum class State : std::uint8_t { ready, paused, asleep, waiting, held, done };

  std::uint32_t number = 0;  ///< in its block
  State state = State::ready;
  std::uint32_t live = 0;  ///< lanes that exist and have not exited
  std::uint32_t barrier = 0;
  std::uint32_t barrier_result = none;  ///< frame offset of a bar.red's result
  BarrierKind barrier_kind = BarrierKind::sync;
  std::uint32_t spins = 0;
  std::uint32_t turns = 0;    ///< since the warp last waited, or lanes last went ahead
  bool is_parted = false;     ///< its lanes came to the barrier on several paths
  bool out_of_order = false;  ///< lanes have gone ahead of others
  /// Its lanes may come to barriers of the block in parts, because they leave a loop around one at
  /// different times, or have gone ahead of others that spin.
  bool may_part = false;
  bool may_wait = false;  ///< for another block: it has looked at memory that one may change
  std::unique_ptr<SpinDetector> detector;  ///< mostly null
  std::uint32_t pauses = 0;                ///< since a barrier, to make room for other blocks
  std::uint64_t wake = 0;                  ///< the time until which it is asleep
  const Step* clock = nullptr;             ///< the step that last read the time
  std::uint32_t clock_turn = 0;            ///< `turns` then
  std::uint32_t clock_reads = 0;    ///< consecutive reads there, with almost nothing in between
  std::uint64_t clock_begin = 0;    ///< time of the first of these
  std::uint64_t clock_last = 0;     ///< time of the last one
  std::uint64_t clock_counted = 0;  ///< until when they are counted as awaited
  /// Ticks of the clock and of the timer for which it did nothing but watch them.
  std::uint64_t awaited_cycles = 0;
  std::uint64_t awaited_ns = 0;
  AsyncState async;
  // Where blocks run in the order of time, see BlockClock:
  std::uint64_t cycle = 0;      ///< the estimate of when it issues its next instruction
  std::uint64_t issued = 0;     ///< instructions
  std::uint64_t last_load = 0;  ///< `issued` at its last load
  bool awaits_turn = false;     ///< before an atomic, for warps that issue earlier
  std::vector<std::byte> file;
  std::vector<Frame> frames;
  std::vector<PathEntry> paths;
  LazyBytes local;  ///< of all lanes in turn
  WrittenBytes local_written;
  trace::ColumnBuffers columns;

  /// Registers of the function that the warp is in.
  [[nodiscard]] std::byte* registers() { return file.data() + frames.back().base; }

  /// The step that the top path executes, or the function's last.
  [[nodiscard]] const Step& next_step() const {
    const auto& steps = frames.back().function->steps;
    return steps[std::min<std::size_t>(paths.back().pc, steps.size() - 1)];
  }
  /// The step at which parked lanes wait.
  [[nodiscard]] const Step& step_of(const PathEntry& path) const {
    return frames.back().function->steps[path.resume];
  }
  [[nodiscard]] const SourceInstruction& text_of(const Step& step) const {
    return frames.back().function->instructions[step.instruction];
  }

  /// Lanes that may still reach other steps of the function.
  [[nodiscard]] std::uint32_t reachable() const;
  /// Live lanes of `members` that are not in the function, because they have returned from it or
  /// have not called it.
  [[nodiscard]] std::uint32_t elsewhere(std::uint32_t members) const;

  /// Splits the top path into ways, each a target and its lanes; the last runs first. An entry for
  /// lanes that wait at the reconvergence point stays below, unless the path itself ends there, or
  /// the ways never meet.
  void diverge(std::uint32_t reconvergence,
               std::span<const std::pair<std::uint32_t, std::uint32_t>> ways);
  /// Makes lanes of the top path wait at its step; those with the same value of the slot `members`
  /// wait together.
  void park(std::uint32_t mask, std::uint32_t members);
  /// Lets lanes that wait for a spinning path, or its siblings, go ahead (the holder of a lock may
  /// be among them).
  void rotate();
  /// Puts other lanes on top: a path that is not parked, or lanes that wait at a reconvergence
  /// point, which they then leave without the others. Returns false if there are no such lanes.
  bool let_others_go();
  /// Joins paths of lanes that have waited for each other and continue at the same step.
  void join_paths(std::uint32_t lanes);
  void drop_empty_paths();
};

}  // namespace warpstack::simt
