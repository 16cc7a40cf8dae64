#include "memory/order/timed_schedule.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "memory/cache/request.h"

namespace warpstack::memory {
TimedSchedule::TimedSchedule(const trace::KernelTrace& trace, const RowFlags& flags,
                             const Paces& paces, std::vector<std::uint32_t> blocks,
                             std::uint32_t blocks_per_sm, const TimedOrder& order,
                             std::uint64_t sets, std::uint32_t ways)
    : trace_(&trace),
      flags_(&flags),
      paces_(&paces),
      blocks_(std::move(blocks)),
      order_(order),
      ways_(ways),
      left_(std::min<std::size_t>(blocks_per_sm, blocks_.size())),
      queue_(std::max<std::size_t>(order.queue_entries, 1)),
      under_way_in_(order.reserves_lines ? sets : 0),
      reserved_(order.reserves_lines ? sets * ways : 0) {
  std::size_t warps = left_.size();
  if (!blocks_.empty()) warps *= trace.blocks().warps(blocks_.front()).size();
  warps_.reserve(warps);
  places_.reserve(warps);
  ages_.reserve(warps);
  waiting_.reserve(warps);
  waiting_rows_.reserve(warps);
  flights_.reserve(usual_requests);
  for (std::uint32_t slot = 0; slot < left_.size(); ++slot) fill(slot, 0);
}

void TimedSchedule::fill(std::uint32_t slot, ReferenceCycle now) {
  while (left_[slot] == 0 && next_block_ < blocks_.size()) {
    const std::uint32_t block = blocks_[next_block_++];
    const std::size_t num_warps = trace_->blocks().warps(block).size();
    for (std::uint32_t w = 0; w < num_warps; ++w) {
      WarpStream stream(*trace_, *flags_, {block, w});
      if (stream.done()) continue;
      TimedWarp warp{.pace = paces_->before_first,
                     .issue = now,
                     .data = {now, MissEvent::l1_hit},
                     .slot = slot,
                     .stream = std::move(stream)};
      auto place = static_cast<std::uint32_t>(warps_.size());
      if (free_.empty()) {
        warps_.push_back(std::move(warp));
        places_.emplace_back();
      } else {
        place = free_.back();
        free_.pop_back();
        warps_[place] = std::move(warp);
      }
      places_[place] = static_cast<std::uint32_t>(ages_.size());
      ages_.push_back(place);
      ++resident_;
      if (ready_.size() * 64 < ages_.size()) ready_.push_back(0);
      make_ready(place, nullptr);
      ++left_[slot];
    }
  }
}

void TimedSchedule::make_ready(std::uint32_t id, std::vector<InstructionCounters>* per_row) {
  TimedWarp& warp = warps_[id];
  // A warp is done when its data are there.
  const bool ends = warp.stream.done();
  const bool waits = warp.pace.waits || ends;
  num_blocked_ -= warp.is_blocked;
  warp.is_blocked = waits && warp.unknown + (ends ? warp.unknown_unread : 0) > 0;
  num_blocked_ += warp.is_blocked;
  if (warp.is_blocked) return;
  warp.begin = waits ? std::max(warp.issue, warp.data.time()) : warp.issue;
  if (ends) warp.begin = std::max(warp.begin, warp.unread.time());
  if (waits) {
    const auto source = static_cast<std::size_t>(warp.data.source());
    while (warp.rows != none) {
      WaitingRow& waiting = waiting_rows_[warp.rows];
      InstructionCounters& counters = (*per_row)[waiting.row];
      const std::uint64_t cycles =
          std::min(warp.data.time() - std::min(warp.data.time(), waiting.sent),
                   ReferenceCycle{gpu::ReferenceMachine::round_trips[source]});
      ++counters.waits[source];
      counters.wait_cycles[source] += cycles;
      if (waiting.is_repeat) {
        ++counters.repeats;
        counters.repeat_cycles[source] += cycles;
      }
      // It becomes the first of those that are free.
      free_rows_ = std::exchange(warp.rows, std::exchange(waiting.next, free_rows_));
    }
    warp.data = {warp.data.time(), MissEvent::l1_hit};
  }
  waiting_.add(warp.begin + static_cast<ReferenceCycle>(warp.pace.cycles), id);
}

inline std::size_t TimedSchedule::first_ready_from(std::size_t place) const {
  std::size_t word = place / 64;
  if (word >= ready_.size()) return nobody;
  std::uint64_t bits = ready_[word] & ~std::uint64_t{0} << place % 64;
  while (bits == 0) {
    if (++word == ready_.size()) return nobody;
    bits = ready_[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

std::size_t TimedSchedule::last_ready() const {
  for (std::size_t word = ready_.size(); word-- > 0;) {
    if (ready_[word] == 0) continue;
    return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(ready_[word]));
  }
  return nobody;
}

inline std::size_t TimedSchedule::choose() const {
  if (has_issued_ && order_.scheduler != gpu::Scheduler::oldest) {
    const std::size_t last = places_[issued_];
    if (order_.scheduler != gpu::Scheduler::lrr) {
      if (ready_[last / 64] >> last % 64 & 1) return last;
    } else if (const std::size_t found = first_ready_from(last + 1); found != nobody) {
      return found;
    }
  }
  return order_.scheduler == gpu::Scheduler::gty ? last_ready() : first_ready_from(0);
}

const MemoryAccess* TimedSchedule::next(ReferenceCycle end) {
  if (interrupted_) return time_ < end ? &warps_[issued_].stream.current() : nullptr;
  while (resident_ > 0) {
    ReferenceCycle now = std::max(now_, queue_[queue_head_]);
    wake_until(now);
    std::size_t chosen = choose();
    if (chosen == nobody) {
      if (waiting_.empty()) return nullptr;
      now = waiting_.first();
      if (now >= end) return nullptr;
      wake_until(now);
      chosen = choose();
    }
    now_ = now;  // even if no warp issues: warps that become ready were not so before
    if (std::max(now, time_) >= end) return nullptr;
    const std::uint32_t id = ages_[chosen];
    TimedWarp& warp = warps_[id];
    ready_[chosen / 64] &= ~(std::uint64_t{1} << chosen % 64);
    // Its instructions since the last access take issue slots, once.
    if (warp.pace.instructions > 0) {
      issue_slots_ = std::max(issue_slots_, static_cast<double>(warp.begin)) +
                     warp.pace.instructions / order_.issue_width;
      warp.pace.instructions = 0;
      if (issue_slots_ > static_cast<double>(now + 1)) {
        const auto ready = static_cast<ReferenceCycle>(issue_slots_);
        now = std::max(ready, queue_[queue_head_]);
        if (now >= std::min(end, waiting_.first()) || first_ready_from(0) != nobody) {
          waiting_.add(ready, id);
          continue;
        }
        // No other warp becomes ready before it.
        waiting_.advance(now, [](std::uint32_t) {});
        now_ = now;
        if (std::max(now, time_) >= end) {
          set_ready(id);
          return nullptr;
        }
      }
    }
    if (warp.stream.done()) {
      remove(chosen, now);
      continue;
    }
    time_ = std::max(time_, now);
    issued_ = id;
    has_issued_ = true;
    own_ = joined_ = 0;
    data_ = {};
    waited_for_ = false;
    return &warp.stream.current();
  }
  return nullptr;
}

ReferenceCycle TimedSchedule::next_event(ReferenceCycle end) const {
  if (interrupted_) return std::max(end, time_);
  if (first_ready_from(0) != nobody) return std::max({end, now_, time_, queue_[queue_head_]});
  ReferenceCycle first = waiting_.first();
  // Unanswered requests may come back at any time after the window.
  if (num_blocked_ > 0) first = std::min(first, end);
  return first == never ? never : std::max({first, now_, time_, queue_[queue_head_]});
}

bool TimedSchedule::wait_until_free(std::uint64_t line, std::uint32_t set, ReferenceCycle end) {
  while (time_ < end) {
    // Data that this window asked for come later.
    const ReferenceCycle until = std::max(time_, std::min(first_back_, end));
    // While the port is busy with earlier data, the load waits for the port.
    if (mshrs_in_use_ < order_.mshrs)
      place_wait_ += until - std::min(until, std::max(time_, port_));
    time_ = until;
    if (first_back_ > time_) continue;
    const bool from_dram = release_first();
    if (is_full(line, set)) continue;
    place_wait_cycles_[from_dram] += place_wait_;
    place_wait_ = 0;
    return time_ < end;
  }
  return false;
}

inline void TimedSchedule::note_row(TimedWarp& warp) {
  if (free_rows_ == none) {
    free_rows_ = static_cast<std::uint32_t>(waiting_rows_.size());
    waiting_rows_.push_back({0, 0, 0, none});
  }
  const std::uint32_t place = free_rows_;
  WaitingRow& waiting = waiting_rows_[place];
  free_rows_ = waiting.next;
  waiting = {time_, warp.stream.current().row, is_repeat(), warp.rows};
  warp.rows = place;
}

TimedSchedule::Issued TimedSchedule::end_access(bool interrupted,
                                                std::vector<InstructionCounters>& per_row) {
  TimedWarp& warp = warps_[issued_];
  const Issued issued{issued_, own_, joined_, is_read()};
  Arrival& data = issued.is_read ? warp.data : warp.unread;
  data = std::max(data, data_);
  if (own_ > 0 || joined_ > 0) ++(issued.is_read ? warp.unknown : warp.unknown_unread);
  own_ = joined_ = 0;
  interrupted_ = interrupted;
  if (interrupted) return issued;
  queue_[queue_head_] = time_;
  queue_head_ = queue_head_ + 1 == queue_.size() ? 0 : queue_head_ + 1;
  warp.issue = now_;
  if (is_waited_for()) note_row(warp);
  warp.progress.access(warp.stream.current().row);
  warp.pace = paces_->after[warp.stream.current().row];
  warp.stream.advance();
  if (!warp.stream.done()) warp.stream.prefetch();
  make_ready(issued_, &per_row);
  return issued;
}

void TimedSchedule::remove(std::size_t place, ReferenceCycle now) {
  const std::uint32_t gone = ages_[place];
  const std::uint32_t slot = warps_[gone].slot;
  if (issued_ == gone) has_issued_ = false;
  free_.push_back(gone);
  ages_[place] = none;
  --resident_;
  if (ages_.size() >= 2 * resident_ + 64) close_gaps();
  if (--left_[slot] == 0) fill(slot, now);
}

void TimedSchedule::close_gaps() {
  std::vector<std::uint64_t> ready(ready_.size());
  std::uint32_t last = 0;
  for (std::size_t place = 0; place < ages_.size(); ++place) {
    if (ages_[place] == none) continue;
    ready[last / 64] |= (ready_[place / 64] >> place % 64 & 1) << last % 64;
    places_[ages_[place]] = last;
    ages_[last++] = ages_[place];
  }
  ages_.resize(last);
  ready_ = std::move(ready);
}

}  // namespace warpstack::memory
