#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace warpstack::timing {

/// A cycle of the SM clock, counted from the launch of the kernel.
using Cycle = std::int64_t;
/// Simulated time in 2^-20 SM cycles. Whole numbers: sums do not depend on their order.
using Ticks = std::int64_t;
inline constexpr Ticks ticks_per_cycle = Ticks{1} << 20;
/// Later than everything, with room to add to it.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 4;

/// SM cycles as ticks, rounded to the nearest.
inline Ticks to_ticks(double cycles) {
  return static_cast<Ticks>(std::floor(cycles * static_cast<double>(ticks_per_cycle) + 0.5));
}
/// Whole SM cycles that a latency takes.
inline Cycle whole_cycles(double cycles) { return static_cast<Cycle>(std::ceil(cycles)); }
/// The first SM cycle that begins at `time` or later.
inline Cycle cycle_at_or_after(Ticks time) {
  return (time + ticks_per_cycle - 1) / ticks_per_cycle;
}
/// The first SM cycle that begins after `time`.
inline Cycle cycle_after(Ticks time) { return time / ticks_per_cycle + 1; }

/// A clock whose edges are the multiples of its period.
class Clock {
 public:
  explicit Clock(Ticks period) : period_(period) {}
  [[nodiscard]] Ticks period() const { return period_; }
  [[nodiscard]] Ticks at_or_after(Ticks time) const {
    return (time + period_ - 1) / period_ * period_;
  }
  [[nodiscard]] Ticks after(Ticks time) const { return (time / period_ + 1) * period_; }

 private:
  Ticks period_;
};

/// A resource that serves one request after the other, each for its own time. It may start a
/// request at a clock edge when it gets free before the next edge: service times that are not whole
/// number of cycles, or shorter than one, cost no bandwidth.
class Server {
 public:
  explicit Server(Clock clock) : clock_(clock) {}
  [[nodiscard]] bool is_free(Ticks edge) const { return busy_until_ < edge + clock_.period(); }
  void take(Ticks edge, Ticks service) { busy_until_ = std::max(busy_until_, edge) + service; }
  /// The first edge after `edge` at which it may start a request.
  [[nodiscard]] Ticks next_edge(Ticks edge) const {
    return std::max(clock_.after(edge), clock_.at_or_after(busy_until_ - clock_.period() + 1));
  }
  [[nodiscard]] Ticks busy_until() const { return busy_until_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

 private:
  Clock clock_;
  Ticks busy_until_ = 0;
};

}  // namespace warpstack::timing
