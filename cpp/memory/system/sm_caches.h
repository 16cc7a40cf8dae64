#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "memory/cache/cache.h"
#include "memory/cache/count.h"
#include "memory/cache/counters.h"
#include "memory/cache/line_parts.h"
#include "memory/cache/request.h"
#include "memory/cache/store_turns.h"
#include "memory/order/line_grouper.h"
#include "memory/order/schedule.h"
#include "memory/order/timed_schedule.h"
#include "memory/system/followers.h"
#include "memory/system/memory_system.h"
#include "memory/system/order_recording.h"
#include "memory/system/worker.h"

namespace warpstack::memory {

/// One warp instruction of a batch. Its requests follow those of the one before.
struct IssuedAccess {
  std::uint32_t row;
  std::uint32_t first_request;
  bool is_observed;
  bool goes_on = false;  ///< is continued in the next batch
};

using Schedule = std::variant<SmSchedule, GreedySchedule, TimedSchedule>;

inline Schedule schedule_of(const trace::KernelTrace& trace, const RowFlags& flags,
                            const Paces& paces, std::vector<std::uint32_t> blocks,
                            std::uint32_t blocks_per_sm, const MemoryConfig& config,
                            const CacheConfig& l1) {
  switch (config.access_order) {
    case AccessOrder::round_robin:
      return SmSchedule(trace, flags, std::move(blocks), blocks_per_sm);
    case AccessOrder::greedy:
      return GreedySchedule(trace, flags, std::move(blocks), blocks_per_sm, config.l1_mshrs);
    case AccessOrder::timed:
      break;
  }
  return TimedSchedule(
      trace, flags, paces, std::move(blocks), blocks_per_sm,
      {config.scheduler, config.issue_width, config.lsu_queue_entries, config.l1_mshrs,
       // Lines that take their place with their data reserve none before.
       config.reserves_lines && l1.allocation == Allocation::on_miss},
      l1.num_sets(), l1.ways);
}

/// An SM: its warps, its L1, and what leaves it in the running batch of turns.
class alignas(128) SmCaches {
 public:
  SmCaches(const trace::KernelTrace& trace, const RowFlags& flags, const Paces& paces,
           std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm,
           const MemoryConfig& config, Cache l1, const Cache& l2, std::size_t num_threads)
      : instructions_(trace.instructions()),
        config_(config),
        schedule_(schedule_of(trace, flags, paces, std::move(blocks), blocks_per_sm, config,
                              l1.config())),
        timed_(std::get_if<TimedSchedule>(&schedule_)),
        l1_(std::move(l1)),
        l2_(l2),
        l1_sectors_(l1_.config().line_bytes / trace::sector_bytes),
        l2_sectors_(l2.config().line_bytes / trace::sector_bytes),
        first_local_line_(trace::local_region_sector / l1_sectors_),
        keeps_bytes_(l2.config().write_miss == WriteMiss::write_validate ||
                     l2.config().write_miss == WriteMiss::fetch_on_partial_write ||
                     config.partial_write_turns > 0),
        atomics_{config.atomics_per_lane, config.atomic_lane_turns, config.atomic_words_at_once},
        stores_{config.partial_write_turns},
        sets_per_thread_((l2.config().num_sets() + num_threads - 1) / num_threads),
        outcomes_(num_threads) {
    accesses_.reserve(usual_requests);
    requests_.reserve(usual_requests);
    for (Outcomes& mine : outcomes_) mine.by_request.reserve(usual_requests);
    if (timed_) issued_.reserve(usual_requests);
  }

  // `timed_` points into `schedule_`, so an SmCaches cannot move.
  SmCaches(const SmCaches&) = delete;
  SmCaches& operator=(const SmCaches&) = delete;

  /// Runs up to `turns` turns, one warp instruction each; or in the timed order until `end`.
  void run(std::size_t turns, ReferenceCycle end,
           const std::optional<trace::WarpPosition>& observed, Worker& worker) {
    accesses_.clear();
    requests_.clear();
    bytes_.resize(1);
    ++batches_;
    if (timed_) return run_until(end, observed, worker);
    if (auto* in_turn = std::get_if<SmSchedule>(&schedule_)) {
      return run(*in_turn, turns, observed, worker);
    }
    run(std::get<GreedySchedule>(schedule_), turns, observed, worker);
  }
  [[nodiscard]] const TimedSchedule* timed() const { return timed_; }
  /// In the timed order: `followers` follow the SM from now on.
  void lead(Followers* followers) { followers_ = followers; }
  /// `recorder` notes its accesses from now on.
  void record(SmRecorder* recorder) { recorder_ = recorder; }
  /// In the timed order: when something may happen next; see TimedSchedule.
  [[nodiscard]] ReferenceCycle next_event(ReferenceCycle end) const {
    return timed_->next_event(end);
  }
  /// The same after run(), which may then be left out as long as sleeps_until() says.
  ReferenceCycle end_run(ReferenceCycle end) {
    const ReferenceCycle event = next_event(end);
    sleeps_until_ = accesses_.empty() && recorder_ == nullptr ? event : 0;
    return event;
  }
  /// In the timed order: until when run() finds nothing to do, and nothing is to be settled.
  [[nodiscard]] ReferenceCycle sleeps_until() const { return sleeps_until_; }
  /// Writes back what L1 holds, as the only turn of a last batch.
  void flush(Worker& worker) {
    accesses_.clear();
    requests_.clear();
    bytes_.resize(1);
    accesses_.push_back({0, 0, false});
    is_flushing_ = true;
    l1_.flush([&](const Cache::Eviction& line) {
      worker.totals[Total::l1_flush_sectors] += count_sectors(line.dirty);
      write_back(line);
    });
  }
  /// After flush(): its L1, which is empty.
  [[nodiscard]] Cache take_l1() { return std::move(l1_); }
  [[nodiscard]] const std::vector<ObservedAccess>& observed() const { return observed_; }
  [[nodiscard]] std::uint64_t read_sectors() const { return read_sectors_; }
  // The batch:
  [[nodiscard]] std::size_t num_turns() const {
    return timed_ && !accesses_.empty() ? turns_of_window : accesses_.size();
  }
  [[nodiscard]] std::size_t num_requests() const { return requests_.size(); }
  [[nodiscard]] const Request& request(std::size_t i) const { return requests_[i]; }
  /// Position of a turn's first request; those of the next turn follow.
  [[nodiscard]] std::size_t first_request(std::size_t turn) const {
    if (timed_ && !accesses_.empty()) {
      return turn < turns_of_window ? first_of_turn_[turn] : requests_.size();
    }
    return first_request_of(turn);
  }
  /// In the timed order: calls `visit(turn, first, last)` for each turn with requests, which are
  /// those from `first` until `last`.
  template <typename Visit>
  void for_each_turn(const Visit& visit) const {
    for (std::size_t turn = 0; turn < turns_of_window; ++turn) {
      const std::size_t first = first_of_turn_[turn];
      const std::size_t last = first_request(turn + 1);
      if (first < last) visit(turn, first, last);
    }
  }
  /// Turns of the slice that serves a request.
  [[nodiscard]] double turns(const Request& request) const {
    if (request.kind == Request::Kind::atomic) {
      return atomics_.counts_lanes() ? turns_[request.bytes] : 1;
    }
    return stores_.counts_bytes() && request.bytes != 0
               ? stores_.turns(request.mask, bytes_[request.bytes])
               : 1;
  }
  [[nodiscard]] const ByteMasks& bytes(const Request& request) const {
    return bytes_[request.bytes];
  }
  [[nodiscard]] std::vector<Outcome>& outcomes(std::size_t thread) {
    return outcomes_[thread].by_request;
  }
  /// Makes room for the outcomes of the requests that a thread owns. Each thread has its own place:
  /// neighbouring requests have different owners.
  void prepare_outcomes(std::size_t thread) { outcomes(thread).resize(requests_.size()); }

  /// Counts what L2 said about the batch.
  void settle(Worker& worker) {
    for (std::size_t a = 0; a < accesses_.size(); ++a) {
      const IssuedAccess& access = accesses_[a];
      constexpr std::size_t accesses_ahead = 4;
      if (a + accesses_ahead < issued_.size()) {
        timed_->prefetch(issued_[a + accesses_ahead]);
      }
      const std::size_t last = first_request_of(a + 1);
      if (timed_ && !is_flushing_ && access.first_request == last && !access.goes_on &&
          !access.is_observed && !was_interrupted_) {
        // All of it hit L1.
        timed_->settle(issued_[a], worker.per_row);
        ++worker.per_row[access.row].events[static_cast<std::size_t>(MissEvent::l1_hit)];
        continue;
      }
      ObservedAccess seen = std::exchange(seen_before_, {});
      was_interrupted_ = access.goes_on;
      seen.row = access.row;
      for (std::size_t i = access.first_request; i < last;) {
        ObservedAccess one;
        bool asks_dram = false;
        bool waits_for_dram = false;
        const Request& first = requests_[i];
        one.l2_requests = 1;
        do {
          const Outcome outcome = outcomes_[requests_[i].owner].by_request[i];
          one.l2_request_sectors += count_sectors(requests_[i].mask);
          one.dram_requests |= outcome.missed;
          asks_dram |= outcome.asks_dram;
          waits_for_dram |= outcome.missed || outcome.waits_for_dram;
          one.dram_sectors += outcome.dram_sectors;
          ++i;
        } while (i < last && requests_[i].continues);
        if (first.kind == Request::Kind::read) read_sectors_ += one.l2_request_sectors;
        if (first.kind == Request::Kind::write_back) {
          add(worker.per_row[first.writer], one);
          continue;
        }
        if (first.is_awaited) {
          timed_->come_back(waits_for_dram, one.l2_request_sectors * trace::sector_bytes);
        }
        seen.l2_requests += one.l2_requests;
        seen.l2_request_sectors += one.l2_request_sectors;
        seen.dram_requests += one.dram_requests;
        seen.dram_sectors += one.dram_sectors;
        seen.event = std::max(seen.event, asks_dram ? MissEvent::dram : MissEvent::l2_hit);
      }
      if (is_flushing_) continue;
      if (timed_) timed_->settle(issued_[a], worker.per_row);
      if (access.goes_on) {
        seen_before_ = seen;
        continue;
      }
      InstructionCounters& counters = worker.per_row[access.row];
      add(counters, seen);
      ++counters.events[static_cast<std::size_t>(seen.event)];
      if (access.is_observed) observed_.push_back(seen);
    }
  }

 private:
  template <typename Order>
  void run(Order& schedule, std::size_t turns, const std::optional<trace::WarpPosition>& observed,
           Worker& worker) {
    while (accesses_.size() < turns) {
      const MemoryAccess* access = schedule.next();
      if (access == nullptr) break;
      accesses_.push_back({access->row, static_cast<std::uint32_t>(requests_.size()),
                           observed && schedule.warp() == *observed});
      misses_ = 0;
      look_up(*access, worker);
      if (recorder_) {
        recorder_->end_access(access->row, schedule.warp(), 0, false, true, false);
        ++recorded_turn_;
      }
      if constexpr (std::is_same_v<Order, GreedySchedule>) {
        if (misses_ > 0) schedule.missed(misses_);
      }
    }
  }

  void run_until(ReferenceCycle end, const std::optional<trace::WarpPosition>& observed,
                 Worker& worker) {
    issued_.clear();
    timed_->begin_window();
    if (followers_) followers_->begin_batch();
    turn_ = 0;
    next_turn_ = 0;
    end_ = end;
    if (l1_.is_list()) prefetch_accesses();
    while (const MemoryAccess* access = timed_->next(end)) {
      accesses_.push_back({access->row, static_cast<std::uint32_t>(requests_.size()),
                           observed && timed_->warp() == *observed});
      if (lines_left_.empty()) {
        look_up(*access, worker);
      } else {
        load_lines_left(worker.totals);
      }
      accesses_.back().goes_on = !lines_left_.empty();
      if (recorder_ || followers_) {
        end_noted_access(worker.per_row);
      } else {
        issued_.push_back(timed_->end_access(accesses_.back().goes_on, worker.per_row));
      }
    }
    begin_turns_until(turns_of_window);
    if (!followers_) return;
    followers_->begin_turns_until(turns_of_window);
    if (timed_->done()) followers_->finish();
  }

  /// Large L1 caches of many SMs do not fit into a processor's cache, and what an access touches in
  /// one is found step by step. Each step is prefetched for all warps that wake up in the window.
  [[gnu::noinline]] void prefetch_accesses() {
    foreseen_.clear();
    timed_->foresee(end_, foreseen_);
    for (const MemoryAccess* access : foreseen_) {
      if (!access->sectors.empty()) __builtin_prefetch(access->sectors.data());
    }
    places_.clear();
    for (const MemoryAccess* access : foreseen_) {
      if (access->sectors.empty()) continue;
      const std::uint64_t line = by_l1_sectors_.quotient(access->sectors.front());
      const std::uint32_t set = l1_.set_of(line);
      l1_.prefetch(set, line);
      places_.push_back({line, 0, set});
    }
    for (const LineAccess& place : places_) l1_.prefetch_found(place.set, place.line);
  }

  /// Ends an access, and tells the recorder and the followers.
  [[gnu::noinline]] void end_noted_access(std::vector<InstructionCounters>& per_row) {
    const IssuedAccess& access = accesses_.back();
    const trace::WarpPosition warp = timed_->warp();
    const bool waits = timed_->is_waited_for();
    const bool ends_wait = timed_->waits_after_this();
    const bool is_repeat = timed_->is_repeat();
    issued_.push_back(timed_->end_access(access.goes_on, per_row));
    if (access.goes_on) return;
    if (recorder_) {
      recorder_->end_access(access.row, warp, timed_->now(), waits, ends_wait || timed_->was_last(),
                            is_repeat);
    }
    if (followers_) {
      followers_->begin_turns_until(turn_);
      followers_->follow(warp, timed_->was_last());
    }
  }

  /// Begins the turns before this one that have not begun.
  void begin_turns_until(std::size_t turn) {
    while (turn_ < turn) first_of_turn_[turn_++] = static_cast<std::uint32_t>(requests_.size());
  }
  void begin_turn_of(ReferenceCycle now) {
    if (now < next_turn_) return;
    const ReferenceCycle begin = end_ - TimedSchedule::window;
    begin_turns_until(now < begin ? 1
                                  : std::min((now - begin) / cycles_of_turn + 1, turns_of_window));
    next_turn_ = turn_ < turns_of_window ? begin + turn_ * cycles_of_turn : never;
  }

  /// In the timed order: loads lines; some may be left for the next batch.
  void load_in_time(std::span<const LineAccess> lines, MemoryTotals& totals) {
    // Hits are by far the most frequent, and nobody below or beside L1 sees them.
    const bool stays_when_hit =
        config_.filter_l1_hits && recorder_ == nullptr && followers_ == nullptr;
    std::uint64_t hits = 0;
    std::uint64_t hit_sectors = 0;
    std::uint64_t local_sectors = 0;
    std::size_t taken = 0;
    for (; taken < lines.size() && timed_->takes_line(end_); ++taken) {
      const LineAccess& access = lines[taken];
      if (bypasses_l1(access.line)) {
        begin_turn_of(timed_->now());
        load_past_l1(access, evict_first_, totals);
        continue;
      }
      const Cache::Finding found = l1_.look(access.set, access.line);
      if ((access.mask & ~found.valid) == 0 && !evict_first_ && stays_when_hit) {
        l1_.touch(access.set, access.line, found);
        timed_->hit(access.line);
        hit_sectors += count_sectors(access.mask);
        ++hits;
        if (access.line >= first_local_line_) local_sectors += count_sectors(access.mask);
        continue;
      }
      if ((access.mask & ~found.valid) != 0 && timed_->is_full(access.line, access.set) &&
          !timed_->wait_until_free(access.line, access.set, end_)) {
        break;
      }
      begin_turn_of(timed_->now());
      load(access, found, evict_first_, totals);
    }
    // What count_l1_load() counts of lines that hit.
    totals[Total::l1_read_sectors] += hit_sectors;
    totals[Total::l1_read_sector_hits] += hit_sectors;
    totals[Total::l1_read_request_hits] += hits;
    totals[Total::l1_local_read_sectors] += local_sectors;
    totals[Total::l1_local_read_sector_hits] += local_sectors;
    totals[Total::l1_read_requests] += taken;
    lines_left_.clear();
    if (taken == lines.size()) return;
    lines_left_.assign(lines.begin() + static_cast<std::ptrdiff_t>(taken), lines.end());
  }
  void load_lines_left(MemoryTotals& totals) {
    std::swap(lines_left_, resumed_);
    lines_left_.clear();
    load_in_time(resumed_, totals);
  }

  /// Position of an access's first request; those of the next access follow.
  [[nodiscard]] std::size_t first_request_of(std::size_t access) const {
    return access < accesses_.size() ? accesses_[access].first_request : requests_.size();
  }

  /// Finds the sets of L1 for all lines first, so that those of a scattered access are prefetched
  /// together. The SMs take turns so quickly that little of an L1 stays cached in between.
  void find_sets(std::span<LineAccess> lines) const {
    for (LineAccess& access : lines) access.set = l1_.set_of(access.line);
    if (lines.size() < 2) return;
    for (const LineAccess& access : lines) l1_.prefetch(access.set, access.line);
    if (!l1_.is_list()) return;
    for (const LineAccess& access : lines) l1_.prefetch_found(access.set, access.line);
  }

  void look_up(const MemoryAccess& access, Worker& worker) {
    const trace::StaticInstruction& instruction = instructions_[access.row];
    const std::span<LineAccess> lines = worker.grouper.group(access);
    find_sets(lines);
    InstructionCounters& counters = worker.per_row[access.row];
    counters.sectors += access.sectors.size();
    counters.requests += lines.size();
    if (!instruction.is_atomic()) counters.l1_passes += access.l1_passes();
    const bool evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
    if (instruction.is_atomic()) {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        l1_.invalidate(lines[i].set, lines[i].line, lines[i].mask);
        const bool has_data = instruction.kind == trace::MemoryKind::atomic;
        const bool waits = has_data || config_.atomics_stop_warps;
        misses_ += has_data;
        if (timed_) {
          begin_turn_of(timed_->now());
          waits ? timed_->pass_l1() : timed_->store();
        }
        record(lines[i], RecordedLine::Kind::atomic, &worker.grouper.bytes(i));
        atomic_line_ = lines[i].line;
        atomic_lanes_ = &worker.grouper.lanes(i);
        leave(lines[i].line, lines[i].mask, Request::Kind::atomic, evict_first, timed_ && waits,
              &worker.grouper.bytes(i), access.row);
      }
    } else if (instruction.kind == trace::MemoryKind::store) {
      in_order_of_allocation(lines, [&](std::size_t i) {
        store(access.row, lines[i], worker.grouper.bytes(i), evict_first, worker.totals);
      });
    } else {
      bypass_ = instruction.cache_operator == trace::CacheOperator::bypass_l1;
      keeps_global_ =
          config_.l1_caches_global || instruction.cache_operator == trace::CacheOperator::read_only;
      if (timed_) {
        evict_first_ = evict_first;
        if (l1_.config().allocation == Allocation::on_miss) {
          load_in_time(lines, worker.totals);
        } else {
          resumed_.clear();
          in_order_of_allocation(lines, [&](std::size_t i) { resumed_.push_back(lines[i]); });
          load_in_time(resumed_, worker.totals);
        }
        return;
      }
      worker.totals[Total::l1_read_requests] += lines.size();
      in_order_of_allocation(lines, [&](std::size_t i) {
        const LineAccess& line = lines[i];
        if (bypasses_l1(line.line)) return load_past_l1(line, evict_first, worker.totals);
        load(line, l1_.look(line.set, line.line), evict_first, worker.totals);
      });
    }
  }

  /// Visits the lines of an instruction in order; with allocation on fill, those that L1 holds
  /// first.
  template <typename Visit>
  void in_order_of_allocation(std::span<const LineAccess> lines, Visit visit) {
    if (l1_.config().allocation == Allocation::on_miss || lines.size() == 1) {
      for (std::size_t i = 0; i < lines.size(); ++i) visit(i);
      return;
    }
    absent_.clear();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (l1_.contains(lines[i].set, lines[i].line)) {
        visit(i);
      } else {
        absent_.push_back(i);
      }
    }
    for (const std::size_t i : absent_) visit(i);
  }

  [[nodiscard]] bool bypasses_l1(std::uint64_t line) const {
    return bypass_ || (line < first_local_line_ && !keeps_global_);
  }

  // The caller counts the requests of loads.
  void load_past_l1(const LineAccess& access, bool evict_first, MemoryTotals& totals) {
    count_l1_bypass(totals, access.mask, access.line >= first_local_line_);
    record(access, RecordedLine::Kind::load);
    ++misses_;
    if (timed_) timed_->pass_l1();
    leave(access.line, access.mask, Request::Kind::read, evict_first, timed_ != nullptr);
  }
  [[gnu::always_inline]] void load(const LineAccess& access, const Cache::Finding& found,
                                   bool evict_first, MemoryTotals& totals) {
    record(access, RecordedLine::Kind::load);
    Cache::Eviction eviction;
    const Cache::ReadResult result =
        l1_.read(access.set, access.line, access.mask, found, evict_first, eviction);
    count_l1_load(totals, access.mask, result.hit, access.line >= first_local_line_);
    misses_ += result.hit != access.mask;
    write_back(eviction);
    if (followers_) followers_->note_line(result.hit == access.mask);
    const SectorMask asked =
        config_.filter_l1_hits ? result.fetch : static_cast<SectorMask>(access.mask | result.fetch);
    const bool is_awaited = timed_ && result.fetch != 0;
    if (is_awaited) {
      timed_->miss(access.line, access.set);
    } else if (timed_) {
      timed_->hit(access.line);
    }
    if (asked) leave(access.line, asked, Request::Kind::read, evict_first, is_awaited);
  }

  void store(std::uint32_t row, const LineAccess& access, const ByteMasks& bytes, bool evict_first,
             MemoryTotals& totals) {
    Cache::Eviction eviction;
    if (timed_) {
      begin_turn_of(timed_->now());
      timed_->store();
    }
    record(access, RecordedLine::Kind::store, &bytes);
    const Cache::WriteResult result =
        l1_.write(access.set, access.line, access.mask, bytes, row, evict_first, eviction);
    count_l1_store(totals, access.mask, result.hit, access.line >= first_local_line_);
    write_back(eviction);
    if (result.fetch) leave(access.line, result.fetch, Request::Kind::read, evict_first, false);
    if (result.forward) {
      leave(access.line, result.forward, Request::Kind::write, evict_first, false, &bytes);
    }
  }

  /// Tells the recorder of a line and the time it is sent: after its cycle, which a load has not
  /// taken yet.
  void record(const LineAccess& access, RecordedLine::Kind kind, const ByteMasks* bytes = nullptr) {
    if (recorder_) note_line(access, kind, bytes);
  }
  [[gnu::noinline]] void note_line(const LineAccess& access, RecordedLine::Kind kind,
                                   const ByteMasks* bytes) {
    const std::uint64_t turn =
        timed_ ? std::uint64_t{batches_} * turns_of_window + (turn_ == 0 ? 0 : turn_ - 1)
               : recorded_turn_;
    const std::uint64_t sent =
        timed_ ? timed_->now() + std::uint64_t{kind == RecordedLine::Kind::load} : 0;
    recorder_->line(turn, access.line, access.mask, kind, sent, bytes);
  }
  void write_back(const Cache::Eviction& eviction) {
    if (eviction.dirty) leave_as_written(eviction);
  }
  [[gnu::noinline]] void leave_as_written(const Cache::Eviction& eviction) {
    leave(eviction.line, eviction.dirty, Request::Kind::write_back, false, false, &eviction.bytes,
          eviction.writer);
  }

  /// Notes a request for sectors of an L1 line; in parts if L2's lines have another size.
  [[gnu::always_inline]] void leave(std::uint64_t l1_line, SectorMask mask, Request::Kind kind,
                                    bool evict_first, bool is_awaited,
                                    const ByteMasks* bytes = nullptr, std::uint32_t writer = 0) {
    if (l1_sectors_ == l2_sectors_) {
      return note(l1_line, mask, kind, evict_first, is_awaited, bytes, writer, false);
    }
    leave_in_parts(l1_line, mask, kind, evict_first, is_awaited, bytes, writer);
  }
  [[gnu::noinline]] void leave_in_parts(std::uint64_t l1_line, SectorMask mask, Request::Kind kind,
                                        bool evict_first, bool is_awaited, const ByteMasks* bytes,
                                        std::uint32_t writer) {
    bool continues = false;
    for_each_part(l1_line, mask, bytes, l1_sectors_, l2_sectors_,
                  [&](std::uint64_t line, SectorMask part, const ByteMasks* part_bytes) {
                    note(line, part, kind, evict_first, is_awaited, part_bytes, writer, continues);
                    continues = true;
                  });
  }

  [[gnu::always_inline]] void note(std::uint64_t line, SectorMask mask, Request::Kind kind,
                                   bool evict_first, bool is_awaited, const ByteMasks* bytes,
                                   std::uint32_t writer, bool continues) {
    std::uint32_t position = 0;
    const bool counts_lanes = kind == Request::Kind::atomic && atomics_.counts_lanes();
    if (bytes && (keeps_bytes_ || counts_lanes)) {
      position = static_cast<std::uint32_t>(bytes_.size());
      bytes_.push_back(*bytes);
    }
    if (counts_lanes) {
      turns_.resize(bytes_.size());
      turns_.back() = in_parts(atomics_.turns(
          lanes_of_part(*atomic_lanes_, atomic_line_, l1_sectors_, line, l2_sectors_), mask));
    }
    const std::uint32_t set = l2_.set_of(line);
    const auto owner = outcomes_.size() == 1
                           ? std::uint8_t{0}
                           : static_cast<std::uint8_t>(sets_per_thread_.quotient(set));
    requests_.push_back(
        {line, set, writer, position, mask, owner, kind, continues, evict_first, is_awaited});
    if (recorder_ && kind != Request::Kind::atomic) {
      recorder_->ask(l2_.slice_of(set), turns(requests_.back()));
    }
  }

  const std::vector<trace::StaticInstruction>& instructions_;
  const MemoryConfig& config_;
  Schedule schedule_;
  TimedSchedule* timed_;  ///< the schedule, in the timed order
  Followers* followers_ = nullptr;
  SmRecorder* recorder_ = nullptr;
  std::uint64_t batches_ = 0;
  std::uint64_t recorded_turn_ = 0;  ///< in orders without time
  Cache l1_;
  const Cache& l2_;
  std::uint64_t l1_sectors_;
  std::uint64_t l2_sectors_;
  Divisor by_l1_sectors_{l1_sectors_};
  std::uint64_t first_local_line_;
  bool keeps_bytes_;  ///< somebody asks which bytes are written
  AtomicRule atomics_;
  StoreRule stores_;
  Divisor sets_per_thread_;
  bool is_flushing_ = false;
  std::uint32_t misses_ = 0;  ///< lines of the current access that its warp waits for
  std::vector<IssuedAccess> accesses_;
  std::vector<TimedSchedule::Issued> issued_;  ///< of the accesses, in the timed order
  std::array<std::uint32_t, turns_of_window> first_of_turn_{};  ///< by turn, in requests_
  std::size_t turn_ = 0;
  ReferenceCycle next_turn_ = 0;  ///< when it begins
  ReferenceCycle end_ = 0;
  ReferenceCycle sleeps_until_ = 0;
  std::vector<LineAccess> lines_left_;  ///< of the access that was interrupted
  std::vector<LineAccess> resumed_;
  std::vector<const MemoryAccess*> foreseen_;  ///< in the window, as places_
  std::vector<LineAccess> places_;
  bool bypass_ = false;        ///< the load being looked up passes L1
  bool keeps_global_ = false;  ///< L1 keeps what it loads from global memory
  bool evict_first_ = false;
  ObservedAccess seen_before_;    ///< of the access that was interrupted
  bool was_interrupted_ = false;  ///< it goes on with the next one
  std::vector<Request> requests_;
  std::vector<ByteMasks> bytes_;
  std::vector<double> turns_;  ///< of atomics; parallel to bytes_
  // The atomic that is being looked up:
  std::uint64_t atomic_line_ = 0;
  const SectorLanes* atomic_lanes_ = nullptr;
  struct alignas(128) Outcomes {
    std::vector<Outcome> by_request;
  };
  std::vector<Outcomes> outcomes_;  ///< by thread
  std::vector<std::size_t> absent_;
  std::vector<ObservedAccess> observed_;
  std::uint64_t read_sectors_ = 0;  ///< from L2
};

}  // namespace warpstack::memory
