#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace warpstack::memory {

/// A time on the reference machine.
using ReferenceCycle = std::uint64_t;
inline constexpr ReferenceCycle never = std::numeric_limits<ReferenceCycle>::max();

/// A queue of numbered events: a timing wheel with a list for each of the next cycles, and a heap
/// for later events. Time does not go back.
class WakeTimes {
 public:
  [[nodiscard]] bool empty() const { return first_ == never; }
  /// The time of the first event; `never` if there is none.
  [[nodiscard]] ReferenceCycle first() const { return first_; }

  /// Makes room for events with numbers below this.
  void reserve(std::size_t things) { next_.reserve(things); }
  /// An event whose time is over happens now.
  void add(ReferenceCycle time, std::uint32_t id) {
    time = std::max(time, now_);
    first_ = std::min(first_, time);
    if (time - now_ >= horizon) {
      later_.push_back({time, id});
      std::ranges::push_heap(later_, std::greater<>());
      return;
    }
    if (id >= next_.size()) next_.resize(id + 1);
    const std::size_t slot = time % horizon;
    next_[id] = heads_[slot];
    heads_[slot] = id + 1;
    filled_[slot / 64] |= std::uint64_t{1} << slot % 64;
  }
  /// Calls `happen(id)` for each event until `now`, inclusive.
  template <typename Happen>
  void advance(ReferenceCycle now, const Happen& happen) {
    while (first_ <= now) {
      const std::size_t slot = first_ % horizon;
      for (std::uint32_t link = heads_[slot]; link != 0; link = next_[link - 1]) happen(link - 1);
      heads_[slot] = 0;
      filled_[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
      while (!later_.empty() && later_.front().time <= first_) {
        happen(later_.front().id);
        std::ranges::pop_heap(later_, std::greater<>());
        later_.pop_back();
      }
      now_ = first_;
      first_ = std::min(first_of_wheel(), later_.empty() ? never : later_.front().time);
    }
    now_ = std::max(now_, now);
  }

  /// Calls `visit(id)` for the events before `end` that are near.
  template <typename Visit>
  void for_each_until(ReferenceCycle end, const Visit& visit) const {
    const ReferenceCycle last = std::min(end, now_ + horizon);
    for (ReferenceCycle time = std::max(first_, now_); time < last;) {
      const std::size_t slot = time % horizon;
      const std::uint64_t bits = filled_[slot / 64] >> slot % 64;
      if (bits == 0) {
        time += 64 - slot % 64;  // the next word
        continue;
      }
      const auto gap = static_cast<ReferenceCycle>(std::countr_zero(bits));
      if (time + gap >= last) return;
      time += gap;
      for (std::uint32_t link = heads_[time % horizon]; link != 0; link = next_[link - 1]) {
        visit(link - 1);
      }
      ++time;
    }
  }

 private:
  /// Cycles of the wheel, a power of two: more than most instructions take.
  static constexpr std::size_t horizon = 512;
  struct Later {
    ReferenceCycle time;
    std::uint32_t id;
    bool operator>(const Later& other) const { return time > other.time; }
  };

  [[nodiscard]] ReferenceCycle first_of_wheel() const {
    const std::size_t begin = now_ % horizon;
    std::size_t word = begin / 64;
    std::uint64_t bits = filled_[word] & ~std::uint64_t{0} << begin % 64;
    // The last pass looks at the first word again, at the slots before `begin`.
    for (std::size_t words = 0; words <= filled_.size(); ++words) {
      if (bits != 0) {
        const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        return now_ + (slot - begin) % horizon;
      }
      word = (word + 1) % filled_.size();
      bits = filled_[word];
    }
    return never;
  }

  ReferenceCycle now_ = 0;  ///< the wheel holds the `horizon` cycles from here
  ReferenceCycle first_ = never;
  std::array<std::uint64_t, horizon / 64> filled_{};  ///< a bit for each slot
  std::array<std::uint32_t, horizon>
      heads_{};                      ///< of the lists, by slot: number + 1; 0 ends a list
  std::vector<std::uint32_t> next_;  ///< by number
  std::vector<Later> later_;         ///< a heap, the first one on top
};

}  // namespace warpstack::memory
