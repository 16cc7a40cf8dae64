#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gpu/choices.h"
#include "interval_simulation/machine.h"
#include "interval_simulation/steps.h"

namespace warpstack::interval_simulation {

/// A warp scheduler: how its warps share its issue slots, and the units behind it, and which of
/// them goes to the load-store unit first.
///
/// Slots and units are shared as fluids. A step that takes `span` cycles alone needs its
/// instructions' share of the slots, and its shares of units, to go on at that speed. Who goes
/// first has what it needs, and who comes later the rest; with loose round robin all go on alike.
/// Whenever a step begins or ends, the shares are dealt anew.
class Scheduler {
 public:
  /// `rate`: instructions per cycle.
  Scheduler(double rate, gpu::Scheduler order) : rate_(rate), order_(order) {}

  static constexpr Time never = std::numeric_limits<Time>::infinity();
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  /// A warp starts, younger than all others.
  void enter(std::uint32_t warp);
  /// It is done.
  void leave(std::uint32_t warp);

  /// A step of a warp begins at `now`. `span` is positive.
  void begin_step(std::uint32_t warp, double span, double instructions,
                  std::span<const UnitUse> uses, Time now);
  /// When the next step ends.
  [[nodiscard]] Time next() {
    if (is_dirty_) deal();
    return next_;
  }
  /// Takes out the steps that end at next(), and returns their warps; valid until the next call.
  const std::vector<std::uint32_t>& finish();
  /// Cycles for which steps have been held up by units that others had.
  [[nodiscard]] double waited_for_units() const { return waited_for_units_; }

  /// A warp is ready for the load-store unit since a cycle.
  void set_ready(std::uint32_t warp, Cycle since);
  /// The ready warp that goes there first at a cycle; `nobody` without one.
  [[nodiscard]] std::uint32_t first_ready(Cycle now) const;
  /// It went there.
  void clear_ready(std::uint32_t warp);
  /// Since when the first of the ready warps is ready; at most `otherwise`.
  [[nodiscard]] Cycle ready_since(Cycle otherwise) const;
  /// A warp has issued.
  void note_issue(std::uint32_t warp) { last_ = place_of_[warp]; }

 private:
  struct Entry {
    double left = 0;      ///< cycles alone of its step
    double speed = 0;     ///< of them per cycle
    double slots = 0;     ///< that it needs per cycle alone
    double most_use = 0;  ///< of a unit, per cycle alone
    Cycle ready_since = 0;
    std::uint32_t warp = nobody;  ///< nobody: it is done
    std::uint16_t num_uses = 0;
    bool waits_for_unit = false;
    std::array<UnitUse, 4> uses{};  ///< cycles of units per cycle alone, the largest
  };
  using Units = std::array<double, trace::num_op_classes>;
  /// A set of places.
  class Places {
   public:
    void resize(std::size_t places) { bits_.resize((places + 63) / 64); }
    void set(std::size_t place) { bits_[place / 64] |= std::uint64_t{1} << place % 64; }
    void clear(std::size_t place) { bits_[place / 64] &= ~(std::uint64_t{1} << place % 64); }
    [[nodiscard]] bool has(std::size_t place) const { return bits_[place / 64] >> place % 64 & 1; }
    /// Calls `visit(place)` in order, from a place on, until it returns false.
    template <typename Visit>
    bool upwards(std::size_t from, Visit visit) const;
    template <typename Visit>
    bool downwards(Visit visit) const;

   private:
    std::vector<std::uint64_t> bits_;
  };

  void advance(Time now);
  void deal();
  void deal_alike();
  /// A step goes on at its speed from now on.
  void note_end(const Entry& entry);
  /// Who goes first of two places.
  [[nodiscard]] bool is_after(std::uint32_t place, std::uint32_t other) const {
    return order_ == gpu::Scheduler::gty ? place < other : place > other;
  }
  [[nodiscard]] Units left_by_served() const;
  void close_gaps();

  double rate_;
  gpu::Scheduler order_;
  std::vector<Entry> entries_;           ///< by place, oldest first
  std::vector<std::uint32_t> place_of_;  ///< by warp
  std::size_t num_warps_ = 0;
  std::size_t last_ = nobody;  ///< place of the warp that issued last
  Places running_;
  Places ready_;
  std::vector<std::uint32_t> served_;  ///< places of steps that go on, who goes first first
  Time now_ = 0;
  Time next_ = never;
  bool is_dirty_ = false;  ///< the shares are to be dealt anew
  // Since they were dealt:
  double slots_left_ = 0;      ///< per cycle
  double units_left_ = 0;      ///< at least so much of each, as if all used the same most
  bool is_exhausted_ = false;  ///< there were too few slots for all
  bool is_slowed_ = false;     ///< somebody does not go on at full speed
  double waited_for_units_ = 0;
  std::vector<std::uint32_t> finished_;
};

}  // namespace warpstack::interval_simulation
