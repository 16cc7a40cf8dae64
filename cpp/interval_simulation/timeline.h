#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "interval_simulation/machine.h"

namespace warpstack::interval_simulation {

/// Events in the order of their times, those of one cycle in the order in which they were added: a
/// wheel with a list for each of the next cycles, and a heap for later ones.
template <typename Event>
class Timeline {
 public:
  static constexpr Time never = std::numeric_limits<Time>::infinity();

  void add(Time time, const Event& event) {
    const Cycle cycle = std::max(static_cast<Cycle>(time), now_);
    if (cycle - now_ >= horizon) {
      later_.push_back({time, added_++, event});
      std::ranges::push_heap(later_, is_after);
      return;
    }
    std::uint32_t node = free_;
    if (node == none) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].next;
    }
    nodes_[node] = {time, event, none};
    const auto slot = static_cast<std::size_t>(cycle) % horizon;
    const std::uint64_t bit = std::uint64_t{1} << slot % 64;
    if ((filled_[slot / 64] & bit) == 0) {
      filled_[slot / 64] |= bit;
      slots_[slot].first = node;
    } else {
      nodes_[slots_[slot].last].next = node;
    }
    slots_[slot].last = node;
  }
  /// Calls `happen(time, event)` for each event before `end`, those that it adds included, and
  /// `prepare(event)` shortly before for most of them.
  template <typename Happen, typename Prepare>
  void run(Cycle end, const Happen& happen, const Prepare& prepare) {
    while (true) {
      const Cycle cycle = first();
      if (cycle >= end) break;
      now_ = cycle;
      take_later();
      const auto slot = static_cast<std::size_t>(cycle) % horizon;
      for (std::uint32_t node = slots_[slot].first; node != none;) {
        if (const std::uint32_t next = nodes_[node].next; next != none) prepare(nodes_[next].event);
        const Time time = nodes_[node].time;
        const Event event = nodes_[node].event;
        happen(time, event);
        const std::uint32_t next = nodes_[node].next;
        nodes_[node].next = free_;
        free_ = node;
        node = next;
      }
      filled_[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
    }
    now_ = std::max(now_, end);
    take_later();
  }
  /// The cycle of the first event.
  [[nodiscard]] Cycle first() const {
    const Cycle of_wheel = first_of_wheel();
    return later_.empty()
               ? of_wheel
               : std::min(of_wheel, std::max(static_cast<Cycle>(later_.front().time), now_));
  }
  static constexpr Cycle no_cycle = std::numeric_limits<Cycle>::max();

 private:
  static constexpr Cycle horizon = 1024;  // a power of 2, more than most latencies
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  // One pool, whose few nodes stay in the caches of the processor.
  struct Node {
    Time time = 0;
    Event event{};
    std::uint32_t next = none;
  };
  struct Slot {
    std::uint32_t first = none;  ///< with `last`, unset in a slot that is not filled
    std::uint32_t last = none;
  };
  struct Later {
    Time time;
    std::uint64_t number;
    Event event;
  };
  static bool is_after(const Later& a, const Later& b) {
    return std::pair(a.time, a.number) > std::pair(b.time, b.number);
  }
  void take_later() {
    while (!later_.empty() && static_cast<Cycle>(later_.front().time) - now_ < horizon) {
      std::ranges::pop_heap(later_, is_after);
      const Later one = later_.back();
      later_.pop_back();
      add(one.time, one.event);
    }
  }
  [[nodiscard]] Cycle first_of_wheel() const {
    const auto begin = static_cast<std::size_t>(now_ % horizon);
    std::size_t word = begin / 64;
    std::uint64_t bits = filled_[word] & ~std::uint64_t{0} << begin % 64;
    for (std::size_t words = 0; words <= filled_.size(); ++words) {
      if (bits != 0) {
        const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        return now_ + static_cast<Cycle>((slot - begin) % static_cast<std::size_t>(horizon));
      }
      word = (word + 1) % filled_.size();
      bits = filled_[word];
    }
    return no_cycle;
  }

  Cycle now_ = 0;  ///< the wheel holds the `horizon` cycles from here
  std::uint64_t added_ = 0;
  std::array<Slot, static_cast<std::size_t>(horizon)> slots_;
  std::vector<Node> nodes_;
  std::uint32_t free_ = none;  ///< nodes, linked
  std::array<std::uint64_t, static_cast<std::size_t>(horizon) / 64> filled_{};
  std::vector<Later> later_;
};

}  // namespace warpstack::interval_simulation
