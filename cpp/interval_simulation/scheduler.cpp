#include "interval_simulation/scheduler.h"

#include <algorithm>
#include <bit>

namespace warpstack::interval_simulation {
namespace {

constexpr double rounding = 1e-9;
/// Shares of units are single-precision numbers, and a step has up to 64 others beside it.
constexpr double rounding_of_units = 1e-6;

}  // namespace

template <typename Visit>
bool Scheduler::Places::upwards(std::size_t from, Visit visit) const {
  for (std::size_t word = from / 64; word < bits_.size(); ++word) {
    std::uint64_t bits = bits_[word];
    if (word == from / 64) bits &= ~std::uint64_t{0} << from % 64;
    for (; bits != 0; bits &= bits - 1) {
      if (!visit(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)))) return false;
    }
  }
  return true;
}

template <typename Visit>
bool Scheduler::Places::downwards(Visit visit) const {
  for (std::size_t word = bits_.size(); word > 0; --word) {
    for (std::uint64_t bits = bits_[word - 1]; bits != 0;) {
      const auto bit = static_cast<std::size_t>(63 - std::countl_zero(bits));
      if (!visit((word - 1) * 64 + bit)) return false;
      bits &= ~(std::uint64_t{1} << bit);
    }
  }
  return true;
}

void Scheduler::enter(std::uint32_t warp) {
  if (entries_.size() >= 2 * num_warps_ + 32) close_gaps();
  if (warp >= place_of_.size()) place_of_.resize(warp + 1, nobody);
  place_of_[warp] = static_cast<std::uint32_t>(entries_.size());
  entries_.emplace_back().warp = warp;
  running_.resize(entries_.size());
  ready_.resize(entries_.size());
  ++num_warps_;
}

void Scheduler::leave(std::uint32_t warp) {
  const std::uint32_t place = place_of_[warp];
  entries_[place].warp = nobody;
  if (last_ == place) last_ = nobody;
  --num_warps_;
}

void Scheduler::close_gaps() {
  advance(now_);
  Places running;
  Places ready;
  running.resize(entries_.size());
  ready.resize(entries_.size());
  std::size_t kept = 0;
  std::size_t last = nobody;
  for (std::size_t place = 0; place < entries_.size(); ++place) {
    if (entries_[place].warp == nobody) continue;
    if (running_.has(place)) running.set(kept);
    if (ready_.has(place)) ready.set(kept);
    if (last_ == place) last = kept;
    place_of_[entries_[place].warp] = static_cast<std::uint32_t>(kept);
    entries_[kept++] = entries_[place];
  }
  entries_.resize(kept);
  running_ = std::move(running);
  ready_ = std::move(ready);
  last_ = last;
  served_.clear();
  is_dirty_ = true;
}

void Scheduler::begin_step(std::uint32_t warp, double span, double instructions,
                           std::span<const UnitUse> uses, Time now) {
  advance(now);
  const std::uint32_t place = place_of_[warp];
  Entry& entry = entries_[place];
  // What came late has gone on in the meantime.
  entry.left = span - std::max(now_ - now, 0.0);
  entry.slots = instructions / span;
  entry.speed = 0;
  entry.num_uses = 0;
  for (const UnitUse& use : uses.first(std::min(uses.size(), entry.uses.size()))) {
    entry.uses[entry.num_uses++] = {use.unit, static_cast<float>(use.cycles / span)};
  }
  entry.most_use = entry.num_uses > 0 ? double{entry.uses[0].cycles} : 0;
  running_.set(place);
  if (is_dirty_) return;
  if (is_exhausted_ && order_ != gpu::Scheduler::lrr && is_after(place, served_.back())) return;
  if (is_exhausted_ || is_slowed_ || slots_left_ - entry.slots <= rounding ||
      (entry.num_uses > 0 && entry.most_use > units_left_)) {
    is_dirty_ = true;
    return;
  }
  // There is enough for all.
  slots_left_ -= entry.slots;
  units_left_ -= entry.most_use;
  entry.waits_for_unit = false;
  entry.speed = 1;
  const auto after =
      std::ranges::find_if(served_, [&](std::uint32_t other) { return is_after(other, place); });
  served_.insert(after, place);
  note_end(entry);
}

inline void Scheduler::note_end(const Entry& entry) {
  const double left = std::max(entry.left, 0.0);
  if (entry.speed == 1) {
    next_ = std::min(next_, now_ + left);
  } else {
    is_slowed_ = true;
    if (entry.speed > rounding || left == 0) {
      next_ = std::min(next_, now_ + left / std::max(entry.speed, rounding));
    }
  }
}

void Scheduler::advance(Time now) {
  if (is_dirty_ && now > now_) deal();
  if (now <= now_) return;
  const double passed = now - now_;
  now_ = now;
  for (const std::uint32_t place : served_) {
    Entry& entry = entries_[place];
    entry.left -= passed * entry.speed;
    if (entry.waits_for_unit) waited_for_units_ += passed * (1 - entry.speed);
  }
}

Scheduler::Units Scheduler::left_by_served() const {
  Units left;
  left.fill(1);
  for (const std::uint32_t place : served_) {
    const Entry& entry = entries_[place];
    for (std::uint16_t u = 0; u < entry.num_uses; ++u) {
      left[entry.uses[u].unit] -= entry.speed * entry.uses[u].cycles;
    }
  }
  return left;
}

void Scheduler::deal() {
  is_dirty_ = is_exhausted_ = is_slowed_ = false;
  next_ = never;
  served_.clear();
  slots_left_ = rate_;
  units_left_ = 1;
  if (order_ == gpu::Scheduler::lrr) return deal_alike();
  Units unit_left;
  bool looks_at_units = false;
  const auto deal_to = [&](std::size_t place) {
    Entry& entry = entries_[place];
    double speed = slots_left_ >= entry.slots ? 1 : slots_left_ / entry.slots;
    entry.waits_for_unit = false;
    // Usually there is enough of each unit even if all used the same one.
    if (entry.num_uses > 0 && units_left_ + rounding_of_units < speed * entry.most_use) {
      if (!looks_at_units) unit_left = left_by_served();
      looks_at_units = true;
    }
    if (looks_at_units && entry.num_uses > 0) {
      double by_units = 1;
      for (std::uint16_t u = 0; u < entry.num_uses; ++u) {
        const UnitUse& use = entry.uses[u];
        by_units = std::min(by_units, unit_left[use.unit] / use.cycles);
      }
      if (by_units + rounding_of_units < speed) {
        entry.waits_for_unit = true;
        speed = std::max(by_units, 0.0);
      }
      for (std::uint16_t u = 0; u < entry.num_uses; ++u) {
        unit_left[entry.uses[u].unit] -= speed * entry.uses[u].cycles;
      }
    }
    entry.speed = speed;
    slots_left_ -= speed * entry.slots;
    units_left_ -= speed * entry.most_use;
    served_.push_back(static_cast<std::uint32_t>(place));
    note_end(entry);
    is_exhausted_ = slots_left_ <= rounding;
    return !is_exhausted_;
  };
  if (order_ == gpu::Scheduler::gty) {
    running_.downwards(deal_to);
  } else {
    running_.upwards(0, deal_to);
  }
}

void Scheduler::deal_alike() {
  double slots = 0;
  Units units{};
  running_.upwards(0, [&](std::size_t place) {
    const Entry& entry = entries_[place];
    slots += entry.slots;
    units_left_ -= entry.most_use;
    for (std::uint16_t u = 0; u < entry.num_uses; ++u) {
      units[entry.uses[u].unit] += entry.uses[u].cycles;
    }
    return true;
  });
  const double by_slots = slots > rate_ ? rate_ / slots : 1;
  slots_left_ = std::max(rate_ - slots, 0.0);
  is_exhausted_ = slots_left_ <= rounding;
  running_.upwards(0, [&](std::size_t place) {
    Entry& entry = entries_[place];
    double by_units = 1;
    for (std::uint16_t u = 0; u < entry.num_uses; ++u) {
      by_units = std::min(by_units, 1 / units[entry.uses[u].unit]);
    }
    entry.waits_for_unit = by_units < by_slots;
    entry.speed = std::min(by_slots, by_units);
    served_.push_back(static_cast<std::uint32_t>(place));
    note_end(entry);
    return true;
  });
}

const std::vector<std::uint32_t>& Scheduler::finish() {
  advance(next());
  finished_.clear();
  const bool changes_shares = is_exhausted_ || is_slowed_;
  if (!changes_shares) next_ = never;
  std::size_t kept = 0;
  for (const std::uint32_t place : served_) {
    const Entry& entry = entries_[place];
    if (entry.left <= 1e-6) {
      finished_.push_back(entry.warp);
      running_.clear(place);
      slots_left_ += entry.slots;
      units_left_ += entry.most_use;
      continue;
    }
    served_[kept++] = place;
    if (!changes_shares) next_ = std::min(next_, now_ + entry.left);
  }
  served_.resize(kept);
  is_dirty_ = is_dirty_ || changes_shares;
  return finished_;
}

void Scheduler::set_ready(std::uint32_t warp, Cycle since) {
  const std::uint32_t place = place_of_[warp];
  entries_[place].ready_since = since;
  ready_.set(place);
}

void Scheduler::clear_ready(std::uint32_t warp) {
  ready_.clear(place_of_[warp]);
  note_issue(warp);
}

std::uint32_t Scheduler::first_ready(Cycle now) const {
  const bool is_greedy = order_ == gpu::Scheduler::gto || order_ == gpu::Scheduler::gty;
  if (is_greedy && last_ != nobody && ready_.has(last_) && entries_[last_].ready_since <= now) {
    return entries_[last_].warp;
  }
  std::uint32_t found = nobody;
  const auto take = [&](std::size_t place) {
    if (entries_[place].ready_since > now) return true;
    found = entries_[place].warp;
    return false;
  };
  if (order_ == gpu::Scheduler::gty) {
    ready_.downwards(take);
  } else if (order_ == gpu::Scheduler::lrr && last_ != nobody) {
    if (ready_.upwards(last_ + 1, take)) ready_.upwards(0, take);
  } else {
    ready_.upwards(0, take);
  }
  return found;
}

Cycle Scheduler::ready_since(Cycle otherwise) const {
  ready_.upwards(0, [&](std::size_t place) {
    otherwise = std::min(otherwise, entries_[place].ready_since);
    return true;
  });
  return otherwise;
}

}  // namespace warpstack::interval_simulation
