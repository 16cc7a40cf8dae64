// What the warps of an SM wait for, and who takes the issue slots that nobody used: sets of warps
// that change only when something happens to one of them, so that a cycle costs the same whatever
// the number of warps.

#include <bit>

#include "timing/sm/sm.h"

namespace warpstack::timing {

void Sm::settle(std::uint32_t slot) {
  ResidentWarp& warp = warps_[slot];
  if (warp.place == Place::at_data) count_lost(warp);
  if (warp.lost == 0) return;
  if (warp.cause >= first_load_cause) {
    lsu_.load(warp.cause - first_load_cause).lost_parts += warp.lost;
    if (row_slots_) row_slots_->wait_for_load(warp.cause - first_load_cause, warp.row, warp.lost);
  } else {
    const auto detail = static_cast<StackDetail>(warp.cause);
    slots_.known[detail] += warp.lost;
    if (row_slots_) row_slots_->add(warp.row, component_of(detail), warp.lost);
  }
  warp.lost = 0;
}

[[gnu::always_inline]] inline void Sm::leave_place(ResidentWarp& warp, std::uint32_t slot) {
  const std::uint64_t others = ~bit_of(warp.age);
  switch (warp.place) {
    case Place::nowhere:
      return;
    case Place::at_data:
      waiting(warp.age).at_data &= others;
      --num_at_data_;
      if (warp.ready != never) wheel_.remove(slot);
      return;
    case Place::at_load_store_unit:
      waiting(warp.age).at_load_store_unit &= others;
      --num_at_load_store_unit_;
      if (warp.ready != never) wheel_.remove(slot);
      return;
    case Place::before_access:
      waiting(warp.age).before_access &= others;
      turns(warp).before_access &= others;
      --num_before_access_;
      return;
    case Place::before_unit: {
      turns(warp).before_unit[warp.unit] &= others;
      --num_before_unit_;
      Units& units = units_[warp.scheduler];
      if (--units.num_waiting[warp.unit] == 0) units.wanted &= ~(1u << warp.unit);
      return;
    }
    case Place::before_turn:
      turns(warp).before_turn &= others;
      --num_before_turn_;
      return;
  }
}

[[gnu::always_inline]] inline void Sm::be_ready(ResidentWarp& warp) {
  const std::uint64_t bit = bit_of(warp.age);
  Ready& ready = turns(warp);
  switch (warp.need) {
    case Need::load_store_unit:
      warp.place = Place::before_access;
      waiting(warp.age).before_access |= bit;
      ready.before_access |= bit;
      ++num_before_access_;
      return;
    case Need::unit: {
      warp.place = Place::before_unit;
      ready.before_unit[warp.unit] |= bit;
      ++num_before_unit_;
      Units& units = units_[warp.scheduler];
      ++units.num_waiting[warp.unit];
      units.wanted |= 1u << warp.unit;
      return;
    }
    case Need::nothing:
      warp.place = Place::before_turn;
      ready.before_turn |= bit;
      ++num_before_turn_;
      return;
  }
}

[[gnu::always_inline]] inline void Sm::wait_for(ResidentWarp& warp, std::uint32_t slot,
                                                std::uint32_t cause, Cycle until, Need need,
                                                std::uint8_t unit) {
  if (warp.place == Place::at_data || warp.lost != 0) settle(slot);
  leave_place(warp, slot);
  warp.cause = cause;
  warp.ready = until;
  warp.need = need;
  warp.unit = unit;
  if (until <= wheel_.now()) return be_ready(warp);
  if (until != never) wheel_.add(slot, until);
  if ((has_control_ || has_bulk_groups_) && cause == load_store_unit_cause) {
    warp.place = Place::at_load_store_unit;
    waiting(warp.age).at_load_store_unit |= bit_of(warp.age);
    ++num_at_load_store_unit_;
    return;
  }
  warp.place = Place::at_data;
  waiting(warp.age).at_data |= bit_of(warp.age);
  ++num_at_data_;
  warp.mark = lost_per_warp_;
}

void Sm::drain(std::uint32_t slot) {
  ResidentWarp& warp = warps_[slot];
  const auto results = static_cast<std::uint32_t>(StackDetail::arithmetic);
  wait_for(warp, slot, warp.loads.empty() ? results : first_load_cause + warp.loads.front(), never,
           Need::nothing, 0);
}

void Sm::wait_for_others(ResidentWarp& warp, std::uint32_t slot) {
  settle(slot);
  leave_place(warp, slot);
  warp.place = Place::nowhere;
  warp.ready = never;
  warp.need = Need::nothing;
}

void Sm::come_to(Cycle cycle) {
  wheel_.advance(cycle, [this](std::uint32_t slot) {
    ResidentWarp& warp = warps_[slot];
    if (warp.place == Place::at_data) {
      count_lost(warp);
      waiting(warp.age).at_data &= ~bit_of(warp.age);
      --num_at_data_;
    } else {
      waiting(warp.age).at_load_store_unit &= ~bit_of(warp.age);
      --num_at_load_store_unit_;
    }
    be_ready(warp);
    if (prefetches_) prefetch(warp, slot);
  });
}

void Sm::renumber() {
  std::vector<std::uint32_t> ages;
  ages.reserve(by_age_.size());
  for (const std::uint32_t slot : by_age_) ages.push_back(warps_[slot].age);
  for (WarpScheduler& scheduler : schedulers_) scheduler.renumber(ages);
  std::ranges::fill(waiting_, Waiting{});
  std::ranges::fill(turns_, Ready{});
  for (std::uint32_t age = 0; age < by_age_.size(); ++age) {
    const std::uint32_t slot = by_age_[age];
    ResidentWarp& warp = warps_[slot];
    warp.age = age;
    slot_of_[age] = slot;
    const std::uint64_t bit = bit_of(age);
    switch (warp.place) {
      case Place::nowhere:
        break;
      case Place::at_data:
        waiting(age).at_data |= bit;
        break;
      case Place::at_load_store_unit:
        waiting(age).at_load_store_unit |= bit;
        break;
      case Place::before_access:
        waiting(age).before_access |= bit;
        turns(warp).before_access |= bit;
        break;
      case Place::before_unit:
        turns(warp).before_unit[warp.unit] |= bit;
        break;
      case Place::before_turn:
        turns(warp).before_turn |= bit;
        break;
    }
  }
  next_age_ = static_cast<std::uint32_t>(by_age_.size());
}

std::uint32_t Sm::missed_units(std::uint32_t scheduler, Cycle cycle) {
  Units& units = units_[scheduler];
  std::uint32_t missed = units.wanted & units.busy;
  for (std::uint32_t rest = missed; rest != 0; rest &= rest - 1) {
    const auto unit = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (units.free[unit] > cycle) continue;
    units.busy &= ~(1u << unit);
    missed &= ~(1u << unit);
  }
  return missed;
}

[[gnu::always_inline]] inline std::uint32_t Sm::pick(std::uint32_t scheduler, bool accepts,
                                                     Cycle now) {
  const std::uint32_t wanted = units_[scheduler].wanted;
  const Ready* ready = &turns_[scheduler * words_];
  std::uint64_t any = wanted;
  for (std::size_t w = 0; w < words_; ++w) {
    candidates_[w] = ready[w].before_turn | (accepts ? ready[w].before_access : 0);
    any |= candidates_[w];
  }
  if (any == 0) return WarpScheduler::nobody;
  if (wanted != 0) {
    const std::uint32_t units = wanted & ~missed_units(scheduler, now);
    for (std::uint32_t rest = units; rest != 0; rest &= rest - 1) {
      const auto unit = static_cast<std::size_t>(std::countr_zero(rest));
      for (std::size_t w = 0; w < words_; ++w) candidates_[w] |= ready[w].before_unit[unit];
    }
  }
  const std::uint32_t age = schedulers_[scheduler].pick(candidates_);
  return age == WarpScheduler::nobody ? age : slot_of_[age];
}

void Sm::issue(Cycle now) {
  const std::int64_t available = issue_slots_.in(now);
  std::int64_t left = available;
  const auto count = static_cast<std::uint32_t>(schedulers_.size());
  bool accepts = num_before_access_ > 0 && lsu_.accepts(now);
  if (num_before_turn_ == 0 && num_before_unit_ == 0 && !accepts) return lose(left, now);
  // When the SM has fewer slots than its schedulers, these take turns.
  auto scheduler = (count & (count - 1)) == 0 ? static_cast<std::uint32_t>(now) & (count - 1)
                                              : static_cast<std::uint32_t>(now % count);
  for (std::uint32_t i = 0; i < count && left > 0; ++i) {
    for (std::uint32_t k = 0; k < slots_per_scheduler_ && left > 0; ++k) {
      const std::uint32_t slot = pick(scheduler, accepts, now);
      if (slot == WarpScheduler::nobody) break;
      if (row_slots_) row_slots_->add(warps_[slot].row, StackComponent::base, parts_per_slot);
      issue_from(slot, scheduler, now);
      accepts = num_before_access_ > 0 && lsu_.accepts(now);
      --left;
    }
    scheduler = scheduler + 1 == count ? 0 : scheduler + 1;
  }
  slots_.known[StackDetail::issue] += (available - left) * parts_per_slot;
  if (left > 0) lose(left, now);
}

void Sm::lose(std::int64_t slots, Cycle cycle) {
  if (slots == 0) return;
  come_to(cycle);
  const bool accepts = lsu_.accepts(cycle);
  const std::int64_t for_load_store_unit =
      std::int64_t{num_at_load_store_unit_} + (accepts ? 0 : num_before_access_);
  std::int64_t for_unit = 0;
  for (std::uint32_t s = 0; num_before_unit_ > 0 && s < units_.size(); ++s) {
    for (std::uint32_t rest = missed_units(s, cycle); rest != 0; rest &= rest - 1) {
      for_unit += units_[s].num_waiting[static_cast<std::size_t>(std::countr_zero(rest))];
    }
  }
  const std::int64_t count = num_at_data_ + for_load_store_unit + for_unit;
  if (count == 0) {
    slots_.known[StackDetail::idle] += slots * parts_per_slot;
    if (row_slots_) lose_at_rows(slots, 0, 0, cycle);
    return;
  }
  const auto& share = shares_[static_cast<std::size_t>(count)];
  const std::int64_t each = slots * share.first;
  lost_per_warp_ += each;
  if (for_load_store_unit > 0) lose_at_load_store_unit(each * for_load_store_unit);
  slots_.known[StackDetail::units] += each * for_unit;
  // The oldest that waits takes what division leaves.
  const std::int64_t rest = slots * share.second;
  if (row_slots_) lose_at_rows(slots, each, rest, cycle);
  if (rest == 0) return;
  ResidentWarp& oldest = warps_[oldest_waiting(accepts, for_unit > 0, cycle)];
  if (oldest.place == Place::at_data) {
    oldest.lost += rest;
  } else if (oldest.place == Place::before_unit) {
    slots_.known[StackDetail::units] += rest;
  } else {
    lose_at_load_store_unit(rest);
  }
}

std::uint32_t Sm::oldest_waiting(bool accepts, bool with_units, Cycle cycle) {
  for (std::size_t w = 0; w < words_; ++w) {
    const Waiting& waiting = waiting_[w];
    std::uint64_t bits =
        waiting.at_data | waiting.at_load_store_unit | (accepts ? 0 : waiting.before_access);
    for (std::uint32_t s = 0; with_units && s < units_.size(); ++s) {
      for (std::uint32_t rest = missed_units(s, cycle); rest != 0; rest &= rest - 1) {
        bits |=
            turns_[s * words_ + w].before_unit[static_cast<std::size_t>(std::countr_zero(rest))];
      }
    }
    if (bits != 0) return slot_of_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
  }
  return WarpScheduler::nobody;  // never: somebody waits
}

void Sm::lose_at_load_store_unit(std::int64_t parts) {
  const StackDetail detail = lsu_.cause_of_waiting();
  const StackComponent component = component_of(detail);
  (component == StackComponent::noc ? slots_.of_requests : slots_.known[detail]) += parts;
  if ((component == StackComponent::mshr || component == StackComponent::noc) &&
      lsu_.is_blocked_by_store()) {
    store_slots_ += parts;
  }
}

Cycle Sm::next_issue(Cycle now) {
  come_to(now + 1);
  if (num_before_turn_ > 0) return now + 1;
  if (num_before_access_ > 0 && lsu_.accepts(now + 1)) return now + 1;
  Cycle next = wheel_.next();
  if (num_before_unit_ == 0) return next;
  for (const Units& units : units_) {
    for (std::uint32_t rest = units.wanted; rest != 0; rest &= rest - 1) {
      const Cycle free = units.free[static_cast<std::size_t>(std::countr_zero(rest))];
      if (free <= now + 1) return now + 1;
      next = std::min(next, free);
    }
  }
  return next;
}

void Sm::look_ahead(std::uint32_t slot) {
  ResidentWarp& warp = warps_[slot];
  const RowTable::Row& row = rows_[warp.stream.row()];
  Cycle ready = -1;
  std::uint32_t cause = static_cast<std::uint32_t>(StackDetail::arithmetic);
  if (has_control_) {
    const ControlBarriers::Wait wait =
        control_barriers_.wait(slot, rows_.control(warp.stream.row()).control);
    ready = wait.until;
    cause = wait.cause;
    if (warp.stalls_until > ready) {
      ready = warp.stalls_until;
      cause = static_cast<std::uint32_t>(StackDetail::arithmetic);
    }
  } else {
    const RegisterState* registers = &registers_[slot * num_registers_];
    RegisterState last = ready_at(-1);
    for (const std::uint16_t reg : rows_.registers(row)) {
      // The first of those that are ready last.
      const RegisterState state = registers[reg];
      if ((state | register_details) > (last | register_details) && last < pending) last = state;
    }
    ready = register_ready(last);
    cause = register_cause(last);
  }
  const auto consider = [&](const ControlBarriers::Wait& wait) {
    if (wait.until <= ready) return;
    ready = wait.until;
    cause = wait.cause;
  };
  if (has_copy_groups_) consider(copy_wait(slot, warp.stream.row()));
  if (has_phases_) {
    const trace::PhaseStep& step = rows_.phase_step(warp.stream.row());
    if (step.kind == trace::PhaseStep::Kind::wait) {
      consider(phases_.wait(warp.block, slot, step.barrier, step.count));
    }
  }
  if (has_dependents_ && warp.stream.mask() != 0 &&
      rows_.grid_step(warp.stream.row()) == trace::GridStep::wait) {
    consider(
        {released_[blocks_[warp.block].grid], static_cast<std::uint32_t>(StackDetail::starts)});
  }
  if (warp.barrier_until > ready) {
    ready = warp.barrier_until;
    cause = static_cast<std::uint32_t>(warp.barrier_detail);
  }
  if (warp.code_ready > ready) {
    ready = warp.code_ready;
    cause = static_cast<std::uint32_t>(StackDetail::instruction_fetch);
  }
  if (warp.atomic != LoadStoreUnit::no_load) {
    ready = never;
    cause = first_load_cause + warp.atomic;
  }
  const bool accesses = row.is_memory && warp.stream.memory_count() > 0 && warp.stream.mask() != 0;
  const Need need = accesses           ? Need::load_store_unit
                    : row.interval > 0 ? Need::unit
                                       : Need::nothing;
  wait_for(warp, slot, cause, ready, need, row.unit);
  warp.row = warp.stream.row();  // what was lost so far was lost at the one before
}

}  // namespace warpstack::timing
