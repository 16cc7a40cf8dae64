#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpstack::interval_simulation {

/// What a resource of a constant rate has left from now on. Work that is spread over a time takes
/// it there, and what does not fit later: the issue slots of a scheduler, the cycles of a unit.
class Capacity {
 public:
  /// `rate`: work per cycle. With `is_fair`, who was held up catches up as soon as there is time, as
  /// if all had gone on alike; else the first to come has what it needs, and others go on later.
  Capacity(double rate, bool is_fair)
      : rate_(rate), full_(rate * width - rounding), is_fair_(is_fair) {}

  /// Takes `work` that is done evenly over `span` cycles from `begin` on, and no faster where some
  /// of the time is taken. Returns when it is done: at `begin + span`, or later. Nothing
  /// begins before `now` any more, but for what came late.
  double take(double begin, double span, double work, double now) {
    if (work <= 0) return begin + span;
    const double density = work / std::max(span, work / rate_);
    const double last = begin + work / density;
    auto bucket = static_cast<std::int64_t>(begin / width);
    if (bucket - base_ >= static_cast<std::int64_t>(used_.size())) release(now);
    double from = begin;
    if (bucket < first_open_) {  // among them what came late
      bucket = first_open_;
      from = static_cast<double>(bucket) * width;
    }
    double left = work;
    while (true) {
      const double to = static_cast<double>(bucket + 1) * width;
      double& used = at(bucket);
      const double before = used;
      const double room = std::max(std::min(rate_ * width - used, rate_ * (to - from)), 0.0);
      const double due = is_fair_ ? work - std::max(0.0, density * (last - to)) - (work - left)
                                  : density * (to - from);
      const double taken = std::min({left, std::max(due, 0.0), room});
      used += taken;
      left -= taken;
      if (used >= full_ && bucket == first_open_) ++first_open_;
      if (left <= rounding) {
        // Work that is dense comes after what is there, which is taken to be spread evenly over the
        // bucket; other work goes between it.
        const double alone = from + taken / (is_fair_ && from >= last ? rate_ : density);
        const double behind = from + (before * (to - from) / width + taken) / rate_;
        const double late = std::max(std::min(behind, to) - alone, 0.0) * density / rate_;
        return std::max(begin + span, alone + late);
      }
      from = to;
      ++bucket;
    }
  }

 private:
  void release(double now) {
    const auto bucket = static_cast<std::int64_t>(now / width);
    const std::int64_t gone = std::min<std::int64_t>(bucket - base_, static_cast<std::int64_t>(used_.size()));
    for (std::int64_t b = base_; b < base_ + gone; ++b) used_[index(b)] = 0;
    base_ = std::max(base_, bucket);
    first_open_ = std::max(first_open_, base_);
  }
  static constexpr double width = 8;  ///< cycles of a bucket
  static constexpr double rounding = 1e-9;

  [[nodiscard]] std::size_t index(std::int64_t bucket) const {
    return static_cast<std::size_t>(bucket) & (used_.size() - 1);
  }
  double& at(std::int64_t bucket) {
    if (bucket - base_ >= static_cast<std::int64_t>(used_.size())) grow(bucket);
    return used_[index(bucket)];
  }
  void grow(std::int64_t bucket) {
    std::size_t size = used_.size();
    while (bucket - base_ >= static_cast<std::int64_t>(size)) size *= 2;
    std::vector<double> larger(size);
    for (std::int64_t b = base_; b < base_ + static_cast<std::int64_t>(used_.size()); ++b) {
      larger[static_cast<std::size_t>(b) & (size - 1)] = used_[index(b)];
    }
    used_ = std::move(larger);
  }

  double rate_;
  double full_;
  bool is_fair_;
  std::int64_t base_ = 0;        ///< the first bucket that is kept
  std::int64_t first_open_ = 0;  ///< those before it are full
  std::vector<double> used_ = std::vector<double>(64);  ///< a ring; its size is a power of 2
};

}  // namespace warpstack::interval_simulation
