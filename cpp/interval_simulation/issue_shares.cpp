#include "interval_simulation/issue_shares.h"

#include <algorithm>

namespace warpstack::interval_simulation {
namespace {

constexpr double rounding = 1e-9;

}  // namespace

void IssueShares::add(std::uint32_t warp, std::uint64_t age, double span, double instructions,
                      std::span<const UnitUse> uses, Time now) {
  advance(now);
  Running one;
  one.age = age;
  one.warp = warp;
  // What came late has gone on in the meantime.
  one.left = span - std::max(now_ - now, 0.0);
  one.slots = instructions / span;
  for (const UnitUse& use : uses.first(std::min(uses.size(), one.uses.size()))) {
    one.uses[one.num_uses++] = {use.unit, static_cast<float>(use.cycles / span)};
  }
  const bool youngest_first = order_ == gpu::Scheduler::gty;
  const auto place = std::ranges::find_if(running_, [&](const Running& other) {
    return youngest_first ? other.age < age : other.age > age;
  });
  const auto index = static_cast<std::size_t>(place - running_.begin());
  running_.insert(place, one);
  if (index < served_) ++served_;
  is_dirty_ = true;
}

void IssueShares::advance(Time now) {
  if (now <= now_) return;
  const double passed = now - now_;
  now_ = now;
  if (is_dirty_) {
    now_ -= passed;
    deal();
    now_ = now;
  }
  for (std::size_t i = 0; i < served_; ++i) {
    running_[i].left -= passed * running_[i].speed;
    if (running_[i].waits_for_unit) waited_for_units_ += passed * (1 - running_[i].speed);
  }
}

void IssueShares::deal() {
  is_dirty_ = false;
  next_ = never;
  std::array<double, trace::num_op_classes> unit_left;
  unit_left.fill(1);
  double slots_left = rate_;
  double fair = 1;
  if (order_ == gpu::Scheduler::lrr) {
    double slots = 0;
    std::array<double, trace::num_op_classes> units{};
    for (const Running& one : running_) {
      slots += one.slots;
      for (std::uint16_t u = 0; u < one.num_uses; ++u) units[one.uses[u].unit] += one.uses[u].cycles;
    }
    fair = std::min(1.0, rate_ / std::max(slots, rounding));
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      // Those that use it have it in turn.
      unit_left[unit] = units[unit] > 1 ? 1 / units[unit] : 1;
    }
  }
  std::size_t i = 0;
  for (; i < running_.size(); ++i) {
    Running& one = running_[i];
    if (slots_left <= rounding) break;
    double speed = 1;
    double unit_speed = 1;
    if (order_ == gpu::Scheduler::lrr) {
      speed = fair;
      for (std::uint16_t u = 0; u < one.num_uses; ++u) {
        unit_speed = std::min(unit_speed, unit_left[one.uses[u].unit]);
      }
    } else {
      speed = std::min(1.0, slots_left / one.slots);
      for (std::uint16_t u = 0; u < one.num_uses; ++u) {
        const UnitUse& use = one.uses[u];
        if (use.cycles > 0) unit_speed = std::min(unit_speed, unit_left[use.unit] / use.cycles);
      }
    }
    one.waits_for_unit = unit_speed < speed;
    one.speed = std::min(speed, unit_speed);
    if (order_ != gpu::Scheduler::lrr) {
      slots_left -= one.speed * one.slots;
      for (std::uint16_t u = 0; u < one.num_uses; ++u) {
        unit_left[one.uses[u].unit] -= one.speed * one.uses[u].cycles;
      }
    }
    if (one.speed > rounding) next_ = std::min(next_, now_ + std::max(one.left, 0.0) / one.speed);
  }
  for (std::size_t k = i; k < served_; ++k) running_[k].speed = 0;
  served_ = i;
}

const std::vector<std::uint32_t>& IssueShares::finish() {
  const Time now = next();
  advance(now);
  finished_.clear();
  std::size_t kept = 0;
  std::size_t gone_of_served = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (i < served_ && running_[i].left <= 1e-6) {
      finished_.push_back(running_[i].warp);
      ++gone_of_served;
      continue;
    }
    if (kept != i) running_[kept] = running_[i];
    ++kept;
  }
  running_.resize(kept);
  served_ -= gone_of_served;
  is_dirty_ = true;
  return finished_;
}

}  // namespace warpstack::interval_simulation
