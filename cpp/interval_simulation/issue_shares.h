#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gpu/choices.h"
#include "interval_simulation/machine.h"
#include "interval_simulation/steps.h"

namespace warpstack::interval_simulation {

/// How the warps of a scheduler share its issue slots, and the units behind it: as fluids. A step
/// that takes `span` cycles alone needs its instructions' share of the slots, and its shares of
/// units, to go on at that speed. Who goes first has what it needs, and who comes later the rest;
/// with loose round robin all go on alike. Whenever a step begins or ends, the shares are dealt
/// anew.
class IssueShares {
 public:
  /// `rate`: instructions per cycle.
  IssueShares(double rate, gpu::Scheduler order) : rate_(rate), order_(order) {}

  /// A step of a warp begins at `now`. Warps with lower `age` are older. `span` is positive.
  void add(std::uint32_t warp, std::uint64_t age, double span, double instructions,
           std::span<const UnitUse> uses, Time now);
  /// When the next step ends.
  [[nodiscard]] Time next() {
    if (is_dirty_) deal();
    return next_;
  }
  /// Takes out the steps that end at next(), and returns their warps, in order; valid until the
  /// next call.
  const std::vector<std::uint32_t>& finish();
  /// Cycles for which steps that are running have been held up by units that others had.
  [[nodiscard]] double waited_for_units() const { return waited_for_units_; }

  static constexpr Time never = std::numeric_limits<Time>::infinity();

 private:
  struct Running {
    std::uint64_t age = 0;
    std::uint32_t warp = 0;
    std::uint16_t num_uses = 0;
    bool waits_for_unit = false;
    double left = 0;   ///< cycles alone
    double speed = 0;  ///< of them per cycle
    double slots = 0;  ///< that it needs per cycle alone
    std::array<UnitUse, 2> uses{};  ///< cycles of units per cycle alone
  };

  void advance(Time now);
  void deal();

  double rate_;
  gpu::Scheduler order_;
  std::vector<Running> running_;  ///< who goes first comes first
  std::size_t served_ = 0;        ///< nobody from here on goes on
  Time now_ = 0;
  Time next_ = never;
  bool is_dirty_ = false;
  double waited_for_units_ = 0;
  std::vector<std::uint32_t> finished_;
};

}  // namespace warpstack::interval_simulation
