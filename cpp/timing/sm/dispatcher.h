#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "common/fifo.h"
#include "timing/base/clock.h"
#include "timing/base/timing_config.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::timing {

/// A thread block that starts on an SM; `grid` counts the launches that run together.
struct BlockStart {
  std::uint32_t sm = 0;
  std::uint32_t block = 0;
  std::uint32_t grid = 0;
};

/// What an SM tells of the blocks that end on it.
class BlockSource {
 public:
  /// A block of a grid has ended on an SM; whether it has let those start that wait for that.
  virtual void free_place(std::uint32_t sm, std::uint32_t grid, bool has_triggered, Cycle now) = 0;
  /// A block of a grid lets those start that wait for that; once a block.
  virtual void trigger(std::uint32_t grid, Cycle now) = 0;
  /// The block that starts in this cycle, where only this SM has got room in it.
  virtual std::optional<BlockStart> start_on(std::uint32_t sm, Cycle now) = 0;

 protected:
  ~BlockSource() = default;
};

/// Gives the thread blocks of a launch to the SMs, in trace order; blocks without instructions are
/// passed over. Blocks start in places that are free, those that were free first first, no two
/// of them closer than `block_interval_cycles`; a place is free again `block_replacement_cycles`
/// after its block's end.
class Dispatcher final : public BlockSource {
 public:
  Dispatcher(const trace::KernelTrace& trace, const TimingConfig& config)
      : trace_(trace),
        interval_(to_ticks(config.gpu.block_interval_cycles)),
        replacement_(whole_cycles(config.block_replacement_cycles)),
        places_of_(config.memory.num_sms) {
    skip();
  }

  [[nodiscard]] bool empty() const { return next_block_ == trace_.blocks().size(); }
  /// From `now` on there is a place for a block on an SM.
  void add_place(std::uint32_t sm, Cycle now) {
    places_of_[sm].push({now, number_, sm});
    places_.push({now, number_++, sm});
  }
  void free_place(std::uint32_t sm, std::uint32_t /*grid*/, bool /*has_triggered*/,
                  Cycle now) override {
    add_place(sm, now + replacement_);
  }
  void trigger(std::uint32_t /*grid*/, Cycle /*now*/) override {}  // nobody waits for it
  std::optional<BlockStart> start_on(std::uint32_t /*sm*/, Cycle now) override {
    return start(now);
  }

  /// The cycle in which the next block starts.
  [[nodiscard]] Cycle next() const {
    if (empty() || places_.empty()) return never;
    return std::max(places_.top().cycle, cycle_at_or_after(free_));
  }
  /// No block starts on an SM before this cycle in the places that it has now.
  [[nodiscard]] Cycle earliest_start(std::uint32_t sm) const {
    if (places_of_[sm].empty()) return never;
    // Places are taken in the order of their numbers, because they are added in order of time.
    const Place& first = places_of_[sm].front();
    const std::uint64_t before = first.number - num_started_;
    if (before >= most_left()) return never;
    return std::max(first.cycle, cycle_at_or_after(free_ + static_cast<Ticks>(before) * interval_));
  }
  /// Whether a block may still start in a place that is added from now on.
  [[nodiscard]] bool has_more() const { return !empty() && most_left() > places_.size(); }
  /// The block that starts in this cycle, if one does.
  std::optional<BlockStart> start(Cycle now) {
    if (next() > now) return {};
    const BlockStart start{places_.top().sm, next_block_++};
    places_.pop();
    places_of_[start.sm].pop();
    ++num_started_;
    skip();
    // A start that had to wait for a cycle's edge does not delay the one behind it.
    free_ = std::max(free_, (now - 1) * ticks_per_cycle) + interval_;
    return start;
  }

 private:
  struct Place {
    Cycle cycle;
    std::uint64_t number;  ///< in the order in which they were added
    std::uint32_t sm;
    [[nodiscard]] bool operator>(const Place& other) const {
      return std::pair(cycle, number) > std::pair(other.cycle, other.number);
    }
  };

  /// Blocks that have not started, with those that are passed over.
  [[nodiscard]] std::uint64_t most_left() const { return trace_.blocks().size() - next_block_; }
  void skip() {
    while (!empty() && trace_.blocks().counts(next_block_).instructions == 0) ++next_block_;
  }

  const trace::KernelTrace& trace_;
  Ticks interval_;
  Cycle replacement_;
  std::uint32_t next_block_ = 0;
  std::uint64_t number_ = 0;
  Ticks free_ = 0;  ///< when the next block may start
  std::uint64_t num_started_ = 0;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> places_;
  std::vector<Fifo<Place>> places_of_;  ///< by SM
};

}  // namespace warpstack::timing
