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

/// The `pc` of lanes that wait for others of their warp: behind the end of every function.
inline constexpr std::uint32_t parked = none - 1;

/// Lanes that go on at `pc` until they meet the others at `reconvergence`.
struct PathEntry {
  std::uint32_t pc = 0;
  std::uint32_t reconvergence = none;
  std::uint32_t mask = 0;
  std::uint32_t resume = none;  ///< of parked lanes: the step where they wait
  std::uint32_t members = 0;    ///< of parked lanes: whom their operation names; 0 at a barrier
};

/// A function that a warp is in.
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

/// What a warp does with operations that others finish (async_unit.h).
struct AsyncState {
  std::uint32_t held_mask = 0;         ///< lanes of the step at which the warp is held
  std::uint32_t held_rounds = 0;       ///< looks at what it waits for
  std::uint32_t cluster_lanes = 0;     ///< that have come to the cluster's barrier before others
  std::uint64_t cluster_arrivals = 0;  ///< times that all of them have come there
  std::uint64_t committed_groups = 0;  ///< of wgmma
  /// By address of an mbarrier, the completions there that the warp has waited for.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> awaited_phases;
};

/// The state of a warp: its registers, the functions that it is in, and the stack of paths on which
/// its lanes have come apart. The top path runs.
struct Warp {
  /// `held`: at a step that is tried again until another warp has done what it waits for.
  enum class State : std::uint8_t { ready, paused, asleep, waiting, held, done };

  std::uint32_t number = 0;  ///< in its block
  State state = State::ready;
  std::uint32_t live = 0;  ///< lanes that exist and have not exited
  std::uint32_t barrier = 0;
  std::uint32_t barrier_result = none;  ///< frame offset of a bar.red's result
  BarrierKind barrier_kind = BarrierKind::sync;
  std::uint32_t spins = 0;
  std::uint32_t turns = 0;    ///< since the warp last waited, or since lanes last went ahead
  bool is_parted = false;     ///< its lanes came to the barrier on several paths
  bool out_of_order = false;  ///< lanes have gone ahead of others that wait for them
  /// Its lanes may come to barriers of the block in parts: they leave a loop around one at
  /// different times, or have gone ahead of others that spin.
  bool may_part = false;
  bool may_wait = false;  ///< for another block: it has looked at what that one may change
  std::unique_ptr<SpinDetector> detector;  ///< null as a rule
  std::uint32_t pauses = 0;       ///< in which it made room for other blocks, since a barrier
  std::uint64_t wake = 0;         ///< the time until which it is asleep
  const Step* clock = nullptr;    ///< where it has last read the time
  std::uint32_t clock_turn = 0;   ///< `turns` then
  std::uint32_t clock_reads = 0;  ///< there, one after the other, with next to nothing in between
  std::uint64_t clock_begin = 0;  ///< the time at the first of these
  AsyncState async;
  std::vector<std::byte> file;
  std::vector<Frame> frames;
  std::vector<PathEntry> paths;
  LazyBytes local;  ///< of all lanes, one after the other
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

  /// Lanes of the function that may still come to its other steps.
  [[nodiscard]] std::uint32_t reachable() const;
  /// Live lanes of `members` that are not in the function: they have returned from it or have not
  /// called it.
  [[nodiscard]] std::uint32_t elsewhere(std::uint32_t members) const;

  /// Splits the top path into ways, each a target and its lanes; the last runs first. The entry of
  /// the lanes that wait at the reconvergence point stays below; it is left out when the path
  /// itself ends there, or when the ways meet nowhere.
  void diverge(std::uint32_t reconvergence,
               std::span<const std::pair<std::uint32_t, std::uint32_t>> ways);
  /// Sends lanes of the top path to wait at its step, those with one value of the slot `members`
  /// together.
  void park(std::uint32_t mask, std::uint32_t members);
  /// Lets lanes that wait for a spinning path, or siblings of it, go ahead (a lock's holder may be
  /// among them).
  void rotate();
  /// Puts other lanes than the top path's on top: a path that is not parked, or lanes that wait for
  /// others at a reconvergence point, which they leave without them. Returns false when there are
  /// no such lanes.
  bool let_others_go();
  /// Joins paths of lanes that have waited for each other and go on at the same step.
  void join_paths(std::uint32_t lanes);
  void drop_empty_paths();
};

}  // namespace warpstack::simt
