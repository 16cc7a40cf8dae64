#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "simt/async/async_unit.h"
#include "simt/program/lane_form.h"
#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/barriers.h"
#include "simt/units/branches.h"
#include "simt/units/built_ins.h"
#include "simt/units/calls.h"
#include "simt/units/exchange.h"
#include "simt/units/load_store.h"
#include "simt/units/matrix_unit.h"
#include "simt/units/parameters.h"
#include "simt/units/race_monitor.h"
#include "simt/units/texture_unit.h"
#include "simt/units/warp_operations.h"

namespace warpstack::simt {

/// Steps of a warp before the others of its block get a turn. Warps stay about as close together as
/// on a GPU, so that a race mostly has the same outcome as there.
inline constexpr std::uint64_t turn_steps = 16;
/// Turns of a warp without a wait after which lanes that wait for spinning ones go ahead, and a
/// block of a cooperative launch makes room for the others.
inline constexpr std::uint32_t turns_in_a_row = (1u << 20) / turn_steps;

/// Runs warps: fetches their steps and hands them to the units of the engine.
class WarpRunner {
 public:
  WarpRunner(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces);

  /// Runs a warp until it waits, is done, or has had its turn.
  void run(Warp& warp) {
    if (execution_.clock == nullptr) return take_turn(warp);
    settled_ = execution_.warp_instructions;
    take_turn(warp);
    settle(warp);
  }
  /// The unit that knows what held warps wait for.
  [[nodiscard]] AsyncUnit& held() { return async_; }

 private:
  void take_turn(Warp& warp);
  /// Adds to a warp's cycles those of the instructions that it has issued since the last call.
  void settle(Warp& warp);
  /// Whether a warp at an atomic leaves it for later, because others issue before it.
  bool awaits_turn(Warp& warp, const Step& step);
  /// Executes a stretch of steps that only compute, for all lanes of the path.
  void compute(Warp& warp, std::span<const Step> steps, std::byte* registers);
  /// All actions but arithmetic. Moves the warp on.
  void act(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  void perform(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// Puts the warp to sleep for the longest of its lanes' times.
  void sleep(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  void set_mask(std::uint32_t mask, std::uint32_t live);
  /// The number of lanes in the mask. The last one is kept, because on plain x86-64 counting takes
  /// a call.
  std::uint64_t lanes_in(std::uint32_t mask);
  [[noreturn]] void report_step_limit(const Warp& warp) const;

  Execution& execution_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  Block& block_;
  Faults& faults_;
  Recorder& recorder_;

  RaceMonitor races_;
  LoadStore load_store_;
  MatrixUnit matrices_;
  TextureUnit textures_;
  Parameters parameters_;
  BuiltIns built_ins_;
  Calls calls_;
  Barriers barriers_;
  Branches branches_;
  WarpExchange exchange_;
  WarpOperations operations_;
  AsyncUnit async_;

  LaneMask lanes_;
  std::uint32_t counted_mask_ = 0;
  std::uint64_t counted_lanes_ = 0;
  std::uint64_t next_check_ = 0;
  std::uint64_t settled_ = 0;  ///< Execution::warp_instructions at the last settle()
};

}  // namespace warpstack::simt
