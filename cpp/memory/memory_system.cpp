#include "memory/memory_system.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/error.h"
#include "common/meeting.h"
#include "common/threads.h"
#include "memory/line_grouper.h"
#include "memory/line_parts.h"
#include "memory/timed_schedule.h"

namespace warpstack::memory {
namespace {

/// What an SM asks of one L2 line.
struct Request {
  enum class Kind : std::uint8_t { read, write, atomic, write_back };

  std::uint64_t line;    ///< of L2
  std::uint32_t set;     ///< of L2
  std::uint32_t writer;  ///< of a write-back: the row that it counts for; of an atomic: its row
  std::uint32_t bytes;   ///< position of the byte masks of a write
  SectorMask mask;
  std::uint8_t owner;  ///< the thread that has the set
  Kind kind;
  bool continues : 1;    ///< belongs to the L1 line of the request before it
  bool evict_first : 1;  ///< L2 shall replace the line next
  bool is_awaited : 1;   ///< in the timed order, by a warp
};

/// What L2 says about a request.
struct Outcome {
  bool missed : 1;                ///< a sector was not in L2
  std::uint8_t dram_sectors : 7;  ///< fetched, or for a write miss without a fetch, written
};

/// One warp instruction of a batch: its requests follow those of the one before.
struct IssuedAccess {
  std::uint32_t row;
  std::uint32_t first_request;
  bool is_observed;
  bool goes_on = false;  ///< in the next batch
};

/// What a thread works with, and what it counts: the sum over the threads is the profile.
struct alignas(128) Worker {
  Worker(std::size_t rows, std::uint32_t l1_line_bytes, std::size_t l2_sets)
      : per_row(rows), of_sets(l2_sets), grouper(l1_line_bytes) {}

  MemoryTotals totals;
  std::vector<InstructionCounters> per_row;
  std::vector<double> of_sets;  ///< requests by set of L2
  LineGrouper grouper;
};

void add(InstructionCounters& counters, const ObservedAccess& seen) {
  counters.l2_requests += seen.l2_requests;
  counters.l2_request_sectors += seen.l2_request_sectors;
  counters.dram_requests += seen.dram_requests;
  counters.dram_sectors += seen.dram_sectors;
}

/// L2 and DRAM as one thread serves them: the requests for a range of sets.
class L2Port {
 public:
  L2Port(Cache& cache, MemoryTotals& totals) : cache_(cache), totals_(totals) {}

  Outcome serve(const Request& request, const ByteMasks& bytes) {
    switch (request.kind) {
      case Request::Kind::read:
        return read(request);
      case Request::Kind::atomic:
        return read_modify_write(request, bytes);
      case Request::Kind::write:
      case Request::Kind::write_back:
        break;
    }
    return write(request, bytes);
  }

 private:
  static constexpr std::uint32_t no_writer = 0;  // nobody asks whose sectors L2 writes back

  Outcome read(const Request& request) {
    Cache::Eviction eviction;
    const Cache::ReadResult result =
        cache_.read(request.set, request.line, request.mask, request.evict_first, eviction);
    ++totals_[Total::l2_read_requests];
    totals_[Total::l2_read_request_hits] += result.hit == request.mask;
    totals_[Total::l2_read_sectors] += count_sectors(request.mask);
    totals_[Total::l2_read_sector_hits] += count_sectors(result.hit);
    settle(result.fetch, eviction);
    return outcome(result.hit != request.mask, result.fetch);
  }

  Outcome write(const Request& request, const ByteMasks& bytes) {
    Cache::Eviction eviction;
    const Cache::WriteResult result = cache_.write(request.set, request.line, request.mask, bytes,
                                                   no_writer, request.evict_first, eviction);
    ++totals_[Total::l2_write_requests];
    totals_[Total::l2_write_sectors] += count_sectors(request.mask);
    totals_[Total::l2_write_sector_hits] += count_sectors(result.hit);
    totals_[Total::dram_write_sectors] += count_sectors(result.forward);
    settle(result.fetch, eviction);
    return outcome(
        result.hit != request.mask,
        result.fetch ? result.fetch : static_cast<SectorMask>(request.mask & ~result.hit));
  }

  /// Atomics read the old value, so that a miss always fetches.
  Outcome read_modify_write(const Request& request, const ByteMasks& bytes) {
    Cache::Eviction eviction;
    const Cache::ReadResult read =
        cache_.read(request.set, request.line, request.mask, request.evict_first, eviction);
    const Cache::WriteResult write = cache_.write(request.set, request.line, request.mask, bytes,
                                                  no_writer, request.evict_first, eviction);
    totals_[Total::l2_atomic_sectors] += count_sectors(request.mask);
    totals_[Total::l2_atomic_sector_hits] += count_sectors(read.hit);
    totals_[Total::dram_write_sectors] += count_sectors(write.forward);
    settle(read.fetch, eviction);
    return outcome(read.hit != request.mask, read.fetch);
  }

  void settle(SectorMask fetch, const Cache::Eviction& eviction) {
    totals_[Total::dram_read_sectors] += count_sectors(fetch);
    totals_[Total::dram_write_sectors] += count_sectors(eviction.dirty);
  }
  static Outcome outcome(bool missed, SectorMask moved) {
    return {missed, static_cast<std::uint8_t>(count_sectors(moved) & 127)};
  }

  Cache& cache_;
  MemoryTotals& totals_;
};

using Schedule = std::variant<SmSchedule, GreedySchedule, TimedSchedule>;

Schedule schedule_of(const trace::KernelTrace& trace, const RowFlags& flags, const Paces& paces,
                     std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm,
                     const MemoryConfig& config, const CacheConfig& l1) {
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
       // Where lines take their places with their data, none is taken before.
       config.reserves_lines && l1.allocation == Allocation::on_miss},
      l1.num_sets(), l1.ways);
}

/// Accesses of the timed order that are so many cycles apart reach L2 in the order of SMs.
constexpr ReferenceCycle cycles_of_turn = 8;
constexpr std::size_t turns_of_window = TimedSchedule::window / cycles_of_turn;

/// An SM: its warps, its L1, and what leaves it in the running batch of turns.
class alignas(128) Sm {
 public:
  Sm(const trace::KernelTrace& trace, const RowFlags& flags, const Paces& paces,
     std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm, const MemoryConfig& config,
     const CacheConfig& l1, const Cache& l2, std::size_t num_threads)
      : instructions_(trace.instructions()),
        config_(config),
        schedule_(schedule_of(trace, flags, paces, std::move(blocks), blocks_per_sm, config, l1)),
        timed_(std::get_if<TimedSchedule>(&schedule_)),
        l1_(l1),
        l2_(l2),
        l1_sectors_(l1.line_bytes / trace::sector_bytes),
        l2_sectors_(l2.config().line_bytes / trace::sector_bytes),
        first_local_line_(trace::local_region_sector / l1_sectors_),
        keeps_bytes_(l2.config().write_miss == WriteMiss::write_validate ||
                     l2.config().write_miss == WriteMiss::fetch_on_partial_write),
        sets_per_thread_((l2.config().num_sets() + num_threads - 1) / num_threads),
        outcomes_(num_threads) {}

  // `schedule_` and `timed_`, which points into it, stay where they are.
  Sm(const Sm&) = delete;
  Sm& operator=(const Sm&) = delete;

  /// Runs up to `turns` turns, one warp instruction each; or in the timed order until `end`.
  void run(std::size_t turns, ReferenceCycle end,
           const std::optional<trace::WarpPosition>& observed, Worker& worker) {
    accesses_.clear();
    requests_.clear();
    bytes_.resize(1);
    if (timed_) return run_until(end, observed, worker);
    if (auto* in_turn = std::get_if<SmSchedule>(&schedule_)) {
      return run(*in_turn, turns, observed, worker);
    }
    run(std::get<GreedySchedule>(schedule_), turns, observed, worker);
  }
  [[nodiscard]] const TimedSchedule* timed() const { return timed_; }
  /// In the timed order: when something may happen next; see TimedSchedule.
  [[nodiscard]] ReferenceCycle next_event(ReferenceCycle end) const {
    return timed_->next_event(end);
  }
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
  [[nodiscard]] const std::vector<ObservedAccess>& observed() const { return observed_; }
  // Of the batch:
  [[nodiscard]] std::size_t num_turns() const {
    return timed_ && !accesses_.empty() ? turns_of_window : accesses_.size();
  }
  [[nodiscard]] std::size_t num_requests() const { return requests_.size(); }
  /// Position of a turn's first request; those of the next turn follow.
  [[nodiscard]] std::size_t first_request(std::size_t turn) const {
    if (timed_ && !accesses_.empty()) {
      return turn < turns_of_window ? first_of_turn_[turn] : requests_.size();
    }
    return first_request_of(turn);
  }
  [[nodiscard]] const Request& request(std::size_t i) const { return requests_[i]; }
  /// Where a thread notes the outcomes of the requests that it owns. Each thread has its own place:
  /// neighbouring requests have different owners.
  [[nodiscard]] std::vector<Outcome>& outcomes(std::size_t thread) { return outcomes_[thread]; }
  [[nodiscard]] std::vector<std::vector<Outcome>>& outcomes() { return outcomes_; }
  [[nodiscard]] const ByteMasks& bytes(const Request& request) const {
    return bytes_[request.bytes];
  }

  /// Counts what L2 said about the batch.
  void settle(Worker& worker) {
    for (std::size_t a = 0; a < accesses_.size(); ++a) {
      const IssuedAccess& access = accesses_[a];
      ObservedAccess seen = std::exchange(seen_before_, {});
      seen.row = access.row;
      const std::size_t last = first_request_of(a + 1);
      for (std::size_t i = access.first_request; i < last;) {
        ObservedAccess one;
        const Request& first = requests_[i];
        one.l2_requests = 1;
        do {
          const Outcome outcome = outcomes_[requests_[i].owner][i];
          one.l2_request_sectors += count_sectors(requests_[i].mask);
          one.dram_requests |= outcome.missed;
          one.dram_sectors += outcome.dram_sectors;
          ++i;
        } while (i < last && requests_[i].continues);
        if (first.kind == Request::Kind::write_back) {
          add(worker.per_row[first.writer], one);
          continue;
        }
        if (first.is_awaited) {
          timed_->come_back(one.dram_requests > 0, one.l2_request_sectors * trace::sector_bytes);
        }
        seen.l2_requests += one.l2_requests;
        seen.l2_request_sectors += one.l2_request_sectors;
        seen.dram_requests += one.dram_requests;
        seen.dram_sectors += one.dram_sectors;
        seen.event = std::max(seen.event, one.dram_requests ? MissEvent::dram : MissEvent::l2_hit);
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
      if constexpr (std::is_same_v<Order, GreedySchedule>) {
        if (misses_ > 0) schedule.missed(misses_);
      }
    }
  }

  void run_until(ReferenceCycle end, const std::optional<trace::WarpPosition>& observed,
                 Worker& worker) {
    issued_.clear();
    timed_->begin_window();
    turn_ = 0;
    end_ = end;
    while (const MemoryAccess* access = timed_->next(end)) {
      accesses_.push_back({access->row, static_cast<std::uint32_t>(requests_.size()),
                           observed && timed_->warp() == *observed});
      if (lines_left_.empty()) {
        look_up(*access, worker);
      } else {
        load_lines_left(worker.totals);
      }
      accesses_.back().goes_on = !lines_left_.empty();
      issued_.push_back(timed_->end_access(accesses_.back().goes_on, worker.per_row));
    }
    begin_turns_until(turns_of_window);
  }

  /// What follows leaves in a turn before this one at the latest.
  void begin_turns_until(std::size_t turn) {
    while (turn_ < turn) first_of_turn_[turn_++] = static_cast<std::uint32_t>(requests_.size());
  }
  void begin_turn_of(ReferenceCycle now) {
    const ReferenceCycle begin = end_ - TimedSchedule::window;
    begin_turns_until(now < begin ? 1
                                  : std::min((now - begin) / cycles_of_turn + 1, turns_of_window));
  }

  /// In the timed order: the lines of a load, of which some may be left for the next batch.
  void load_in_time(std::span<const LineAccess> lines, MemoryTotals& totals) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::uint32_t set = l1_.set_of(lines[i].line);
      const bool can_go_on = timed_->takes_line(end_) &&
                             (!timed_->is_full(lines[i].line, set) || bypasses_l1(lines[i].line) ||
                              l1_.missing(set, lines[i].line, lines[i].mask) == 0 ||
                              timed_->takes_miss(lines[i].line, set, end_));
      if (!can_go_on) {
        lines_left_.assign(lines.begin() + static_cast<std::ptrdiff_t>(i), lines.end());
        return;
      }
      begin_turn_of(timed_->now());
      load(lines[i], set, evict_first_, totals);
    }
    lines_left_.clear();
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

  void look_up(const MemoryAccess& access, Worker& worker) {
    const trace::StaticInstruction& instruction = instructions_[access.row];
    const std::span<const LineAccess> lines = worker.grouper.group(access);
    InstructionCounters& counters = worker.per_row[access.row];
    counters.sectors += access.sectors.size();
    counters.requests += lines.size();
    const bool evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
    if (instruction.is_atomic()) {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        l1_.invalidate(l1_.set_of(lines[i].line), lines[i].line, lines[i].mask);
        const bool waits = instruction.kind == trace::MemoryKind::atomic;
        misses_ += waits;
        if (timed_) {
          begin_turn_of(timed_->now());
          waits ? timed_->pass_l1() : timed_->store();
          is_awaited_ = waits;
        }
        leave(lines[i].line, lines[i].mask, Request::Kind::atomic, evict_first,
              &worker.grouper.bytes(i), access.row);
        is_awaited_ = false;
      }
    } else if (instruction.kind == trace::MemoryKind::store) {
      in_order_of_allocation(lines, [&](std::size_t i) {
        store(access.row, lines[i], worker.grouper.bytes(i), evict_first, worker.totals);
      });
    } else {
      bypass_ = instruction.cache_operator == trace::CacheOperator::bypass_l1;
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
      in_order_of_allocation(lines, [&](std::size_t i) {
        load(lines[i], l1_.set_of(lines[i].line), evict_first, worker.totals);
      });
    }
  }

  /// Visits the lines of an instruction as they are; or with allocation on fill, first those that
  /// L1 holds.
  template <typename Visit>
  void in_order_of_allocation(std::span<const LineAccess> lines, Visit visit) {
    if (l1_.config().allocation == Allocation::on_miss || lines.size() == 1) {
      for (std::size_t i = 0; i < lines.size(); ++i) visit(i);
      return;
    }
    absent_.clear();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (l1_.contains(l1_.set_of(lines[i].line), lines[i].line)) {
        visit(i);
      } else {
        absent_.push_back(i);
      }
    }
    for (const std::size_t i : absent_) visit(i);
  }

  [[nodiscard]] bool bypasses_l1(std::uint64_t line) const {
    return bypass_ || (line < first_local_line_ && !config_.l1_caches_global);
  }

  void load(const LineAccess& access, std::uint32_t set, bool evict_first, MemoryTotals& totals) {
    const bool is_local = access.line >= first_local_line_;
    const std::uint32_t sectors = count_sectors(access.mask);
    ++totals[Total::l1_read_requests];
    totals[Total::l1_read_sectors] += sectors;
    if (is_local) totals[Total::l1_local_read_sectors] += sectors;
    if (bypasses_l1(access.line)) {
      ++misses_;
      if (timed_) timed_->pass_l1();
      is_awaited_ = timed_;
      leave(access.line, access.mask, Request::Kind::read, evict_first);
      is_awaited_ = false;
      return;
    }
    Cache::Eviction eviction;
    const Cache::ReadResult result = l1_.read(set, access.line, access.mask, evict_first, eviction);
    const std::uint32_t hits = count_sectors(result.hit);
    totals[Total::l1_read_sector_hits] += hits;
    if (is_local) totals[Total::l1_local_read_sector_hits] += hits;
    totals[Total::l1_read_request_hits] += result.hit == access.mask;
    misses_ += result.hit != access.mask;
    write_back(eviction);
    const SectorMask asked =
        config_.filter_l1_hits ? result.fetch : static_cast<SectorMask>(access.mask | result.fetch);
    if (timed_) {
      is_awaited_ = result.fetch != 0;
      is_awaited_ ? timed_->miss(access.line, set) : timed_->hit(access.line);
    }
    if (asked) leave(access.line, asked, Request::Kind::read, evict_first);
    is_awaited_ = false;
  }

  void store(std::uint32_t row, const LineAccess& access, const ByteMasks& bytes, bool evict_first,
             MemoryTotals& totals) {
    const bool is_local = access.line >= first_local_line_;
    const std::uint32_t sectors = count_sectors(access.mask);
    Cache::Eviction eviction;
    if (timed_) {
      begin_turn_of(timed_->now());
      timed_->store();
    }
    const Cache::WriteResult result = l1_.write(l1_.set_of(access.line), access.line, access.mask,
                                                bytes, row, evict_first, eviction);
    const std::uint32_t hits = count_sectors(result.hit);
    ++totals[Total::l1_write_requests];
    totals[Total::l1_write_sectors] += sectors;
    totals[Total::l1_write_sector_hits] += hits;
    if (is_local) {
      totals[Total::l1_local_write_sectors] += sectors;
      totals[Total::l1_local_write_sector_hits] += hits;
    }
    write_back(eviction);
    if (result.fetch) leave(access.line, result.fetch, Request::Kind::read, evict_first);
    if (result.forward) {
      leave(access.line, result.forward, Request::Kind::write, evict_first, &bytes);
    }
  }

  void write_back(const Cache::Eviction& eviction) {
    if (!eviction.dirty) return;
    leave(eviction.line, eviction.dirty, Request::Kind::write_back, false, &eviction.bytes,
          eviction.writer);
  }

  /// Notes a request for sectors of an L1 line, in parts where L2 has other lines.
  void leave(std::uint64_t l1_line, SectorMask mask, Request::Kind kind, bool evict_first,
             const ByteMasks* bytes = nullptr, std::uint32_t writer = 0) {
    bool continues = false;
    for_each_part(l1_line, mask, bytes, l1_sectors_, l2_sectors_,
                  [&](std::uint64_t line, SectorMask part, const ByteMasks* part_bytes) {
                    note(line, part, kind, evict_first, part_bytes, writer, continues);
                    continues = true;
                  });
  }

  void note(std::uint64_t line, SectorMask mask, Request::Kind kind, bool evict_first,
            const ByteMasks* bytes, std::uint32_t writer, bool continues) {
    std::uint32_t position = 0;
    if (bytes && keeps_bytes_) {
      position = static_cast<std::uint32_t>(bytes_.size());
      bytes_.push_back(*bytes);
    }
    const std::uint32_t set = l2_.set_of(line);
    const auto owner = static_cast<std::uint8_t>(sets_per_thread_.quotient(set));
    requests_.push_back(
        {line, set, writer, position, mask, owner, kind, continues, evict_first, is_awaited_});
  }

  const std::vector<trace::StaticInstruction>& instructions_;
  const MemoryConfig& config_;
  Schedule schedule_;
  TimedSchedule* timed_;  ///< the schedule, in the timed order
  Cache l1_;
  const Cache& l2_;
  std::uint64_t l1_sectors_;
  std::uint64_t l2_sectors_;
  std::uint64_t first_local_line_;
  bool keeps_bytes_;  ///< L2 asks which bytes are written
  Divisor sets_per_thread_;
  bool is_flushing_ = false;
  std::uint32_t misses_ = 0;  ///< of the access being looked up: lines that its warp waits for
  std::vector<IssuedAccess> accesses_;
  std::vector<TimedSchedule::Issued> issued_;  ///< of the accesses, in the timed order
  std::array<std::uint32_t, turns_of_window> first_of_turn_{};  ///< requests
  std::size_t turn_ = 0;
  ReferenceCycle end_ = 0;
  std::vector<LineAccess> lines_left_;  ///< of the access that was interrupted
  std::vector<LineAccess> resumed_;
  bool bypass_ = false;  ///< the load being looked up passes L1
  bool evict_first_ = false;
  bool is_awaited_ = false;     ///< what leaves now, in the timed order
  ObservedAccess seen_before_;  ///< of the access that was interrupted
  std::vector<Request> requests_;
  std::vector<ByteMasks> bytes_;
  std::vector<std::vector<Outcome>> outcomes_;  ///< by thread
  std::vector<std::size_t> absent_;
  std::vector<ObservedAccess> observed_;
};

/// Runs the SMs and L2 in turn, each step on all threads.
class Simulation {
 public:
  using MakeSm = std::function<std::unique_ptr<Sm>(std::size_t)>;

  Simulation(std::size_t num_sms, MakeSm make_sm, bool timed, Cache& l2,
             const std::vector<double>& atomic_lanes, std::vector<Worker>& workers,
             std::optional<trace::WarpPosition> observed, const InterruptCheck& interrupt)
      : make_sm_(std::move(make_sm)),
        timed_(timed),
        atomic_lanes_(atomic_lanes),
        sms_(num_sms),
        l2_(l2),
        workers_(workers),
        observed_(observed),
        interrupt_(interrupt) {}

  void run() {
    Meeting meeting(static_cast<std::uint32_t>(workers_.size()));
    std::vector<std::jthread> helpers;
    for (std::size_t id = 1; id < workers_.size(); ++id) {
      helpers.emplace_back([this, id, &meeting] { work(id, meeting); });
    }
    work(0, meeting);
    helpers.clear();
    if (failure_) std::rethrow_exception(failure_);
    flush();
  }
  /// Of all SMs; see MemoryProfile.
  [[nodiscard]] std::array<std::uint64_t, 2> place_wait_cycles() const {
    std::array<std::uint64_t, 2> sum{};
    for (const auto& sm : sms_) {
      if (!sm->timed()) continue;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sm->timed()->place_wait_cycles()[i];
    }
    return sum;
  }
  /// Accesses of the observed warp.
  [[nodiscard]] std::vector<ObservedAccess> observed() const {
    std::vector<ObservedAccess> all;
    for (const auto& sm : sms_) all.insert(all.end(), sm->observed().begin(), sm->observed().end());
    return all;
  }

 private:
  using Sms = std::vector<std::unique_ptr<Sm>>;

  /// Requests of a batch: enough to make the threads' meetings cheap, and few enough to stay in a
  /// processor's cache between the two steps.
  static constexpr std::size_t most_requests = 32768;
  /// Accesses of a batch: where they suddenly miss, it takes 64 MiB.
  static constexpr std::size_t most_accesses = 65536;
  static constexpr std::size_t least_requests = 8192;
  /// Whether to ask the caller, who may wait for a lock. A batch of the timed order is short.
  bool is_time_to_ask() { return !timed_ || batch_++ % 32 == 0; }

  void work(std::size_t id, Meeting& meeting) {
    bool is_backward = false;
    while (true) {
      guard([&] {
        if (id == 0 && interrupt_ && is_time_to_ask()) interrupt_();
        // A thread keeps its SMs: their state stays in its processor's cache.
        // Those that ran last come first: more of their state is still there.
        is_backward = !is_backward;
        const std::size_t mine = (sms_.size() - id + workers_.size() - 1) / workers_.size();
        for (std::size_t n = 0; n < mine; ++n) {
          const std::size_t i = id + (is_backward ? mine - 1 - n : n) * workers_.size();
          if (!sms_[i]) sms_[i] = make_sm_(i);
          sms_[i]->settle(workers_[id]);
          sms_[i]->run(turns_, end_, observed_, workers_[id]);
        }
      });
      meeting.wait([this] { end_turns(); });
      if (finished_) return;
      guard([&] { serve(id); });
      meeting.wait([] {});
    }
  }

  template <typename Work>
  void guard(Work work) {
    try {
      work();
    } catch (...) {
      const std::scoped_lock lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void end_turns() {
    finished_ = failure_ != nullptr;
    if (finished_) return;
    most_turns_ = 0;
    std::size_t requests = 0;
    for (const auto& sm : sms_) {
      most_turns_ = std::max(most_turns_, sm->num_turns());
      requests += sm->num_requests();
    }
    if (timed_) {
      ReferenceCycle first = never;
      for (const auto& sm : sms_) first = std::min(first, sm->next_event(end_));
      finished_ = most_turns_ == 0 && first == never;
      // L2 may have to answer, though nothing else is left.
      if (first != never) end_ = std::max(end_, first) + TimedSchedule::window;
      return;
    }
    constexpr std::size_t least_turns = 8;
    if (requests > most_requests) turns_ = std::max(turns_ / 2, least_turns);
    if (requests < least_requests) {
      turns_ = std::min(turns_ * 2, std::max(most_accesses / sms_.size(), least_turns));
    }
    finished_ = most_turns_ == 0;
  }

  /// Serves the requests of the batch whose sets a thread owns: turn by turn, SM by SM.
  void serve(std::size_t id) {
    for (const auto& sm : sms_) sm->outcomes(id).resize(sm->num_requests());
    L2Port port(l2_, workers_[id].totals);
    Order now(sms_, most_turns_);
    Order ahead(sms_, most_turns_);
    Order far_ahead(sms_, most_turns_);
    const auto prefetch_next = [&] {
      if (ahead.done()) return;
      const Sm& sm = ahead.sm();
      for (std::size_t i = ahead.first(); i < ahead.last(); ++i) {
        const Request& request = sm.request(i);
        if (request.owner == id) l2_.prefetch(request.set, request.line);
      }
      ahead.next();
    };
    // Another thread may have noted the requests.
    const auto prefetch_requests = [&] {
      if (far_ahead.done()) return;
      const Sm& sm = far_ahead.sm();
      for (std::size_t i = far_ahead.first(); i < far_ahead.last(); i += 2) {
        __builtin_prefetch(&sm.request(i));
      }
      far_ahead.next();
    };
    for (int i = 0; i < 8; ++i) prefetch_requests();
    for (int i = 0; i < 4; ++i) prefetch_next();
    for (; !now.done(); now.next()) {
      prefetch_requests();
      prefetch_next();
      Sm& sm = now.sm();
      for (std::size_t i = now.first(); i < now.last(); ++i) {
        const Request& request = sm.request(i);
        if (request.owner != id) continue;
        sm.outcomes(id)[i] = port.serve(request, sm.bytes(request));
        workers_[id].of_sets[request.set] +=
            request.kind == Request::Kind::atomic ? atomic_lanes_[request.writer] : 1;
      }
    }
  }

  /// The turns of a batch in the order in which L2 takes their requests.
  class Order {
   public:
    Order(const Sms& sms, std::size_t turns) : sms_(sms), turns_(turns) { skip(); }
    [[nodiscard]] bool done() const { return turn_ == turns_; }
    [[nodiscard]] Sm& sm() const { return *sms_[sm_]; }
    [[nodiscard]] std::size_t first() const { return sm().first_request(turn_); }
    [[nodiscard]] std::size_t last() const { return sm().first_request(turn_ + 1); }
    void next() {
      ++sm_;
      skip();
    }

   private:
    void skip() {
      while (turn_ < turns_) {
        if (sm_ == sms_.size()) {
          sm_ = 0;
          ++turn_;
        } else if (turn_ < sms_[sm_]->num_turns()) {
          return;
        } else {
          ++sm_;
        }
      }
    }
    const Sms& sms_;
    std::size_t turns_;
    std::size_t turn_ = 0;
    std::size_t sm_ = 0;
  };

  /// Writes the L1 caches back, SM by SM.
  void flush() {
    L2Port port(l2_, workers_[0].totals);
    for (const auto& built : sms_) {
      Sm& sm = *built;
      sm.flush(workers_[0]);
      for (std::vector<Outcome>& outcomes : sm.outcomes()) outcomes.resize(sm.num_requests());
      for (std::size_t i = 0; i < sm.num_requests(); ++i) {
        const Request& request = sm.request(i);
        sm.outcomes(request.owner)[i] = port.serve(request, sm.bytes(request));
        ++workers_[request.owner].of_sets[request.set];
      }
      sm.settle(workers_[0]);
    }
  }

  MakeSm make_sm_;
  bool timed_;
  const std::vector<double>& atomic_lanes_;  ///< by row
  Sms sms_;                                  ///< each made by the thread that runs it
  Cache& l2_;
  std::vector<Worker>& workers_;
  std::optional<trace::WarpPosition> observed_;
  const InterruptCheck& interrupt_;
  ReferenceCycle end_ = TimedSchedule::window;  ///< of a batch, in the timed order
  std::size_t turns_ = 64;                      ///< of a batch, in the others
  std::size_t most_turns_ = 0;                  ///< of an SM in the batch
  std::size_t batch_ = 0;                       ///< of the first thread
  bool finished_ = false;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

/// The L1 that a carve-out for shared memory leaves.
CacheConfig l1_beside(const MemoryConfig& config, std::uint64_t carve_out) {
  CacheConfig l1 = config.l1;
  l1.size_bytes = config.unified_bytes - carve_out;
  if (!config.adaptive_keeps_ways) {
    l1.ways = static_cast<std::uint32_t>(l1.num_lines() / config.l1.num_sets());
  }
  return l1;
}

/// Issued and active instructions of each memory row in some blocks.
std::vector<trace::RowCounts> count_rows(
    const trace::KernelTrace& trace, const RowFlags& flags,
    const std::vector<std::vector<std::uint32_t>>& blocks_of_sms) {
  std::vector<trace::RowCounts> counts(trace.instructions().size());
  std::vector<std::byte> scratch;
  for (const std::vector<std::uint32_t>& blocks : blocks_of_sms) {
    for (const std::uint32_t block : blocks) {
      const trace::ColumnView view =
          trace.blocks().read(block, {}, {0, trace.blocks().counts(block).memory, 0, 0}, scratch);
      for (std::size_t i = 0; i < view.memory_static.size(); ++i) {
        trace::RowCounts& row = counts[view.memory_static[i]];
        ++row.issued;
        row.active += view.memory_count[i] > 0;
        if (!flags.uses_caches[view.memory_static[i]])
          row.shared_wavefronts += view.memory_count[i];
      }
    }
  }
  return counts;
}

/// Requests of an atomic's sector: how many of its lanes meet in a word, as far as lanes and
/// touched bytes tell; means by row, weighted with the sectors.
std::vector<double> atomic_lanes_of(const trace::KernelTrace& trace) {
  const std::vector<trace::StaticInstruction>& rows = trace.instructions();
  std::vector<double> lanes(rows.size(), 1.0);
  if (std::ranges::none_of(rows, &trace::StaticInstruction::is_atomic)) return lanes;
  std::vector<double> sectors(rows.size());
  std::vector<double> requests(rows.size());
  std::vector<std::byte> scratch;
  for (std::size_t b = 0; b < trace.blocks().size(); ++b) {
    const trace::ColumnView block = trace.blocks().read(b, {}, trace.blocks().counts(b), scratch);
    std::size_t memory = 0;
    std::size_t store = 0;
    for (std::size_t k = 0; k < block.instruction.size(); ++k) {
      const std::uint32_t row = block.instruction[k];
      const trace::StaticInstruction& instruction = rows[row];
      if (!instruction.is_memory()) continue;
      const std::size_t count = block.memory_count[memory++];
      if (!instruction.writes_memory()) continue;
      const std::size_t first = store;
      store += count;
      if (!instruction.is_atomic() || count == 0) continue;
      unsigned bytes = 0;
      for (std::size_t i = first; i < store; ++i) {
        bytes += static_cast<unsigned>(std::popcount(block.store_bytes[i]));
      }
      const unsigned width = std::max(instruction.width, 1U);
      const unsigned words = std::max((bytes + width - 1) / width, 1U);
      const auto active = static_cast<unsigned>(std::popcount(block.active_mask[k]));
      sectors[row] += static_cast<double>(count);
      requests[row] += static_cast<double>(count * std::max((active + words - 1) / words, 1U));
    }
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (sectors[row] > 0) lanes[row] = requests[row] / sectors[row];
  }
  return lanes;
}

}  // namespace

CacheConfig l1_of(const MemoryConfig& config, const trace::KernelHeader& kernel,
                  std::uint32_t blocks_per_sm) {
  if (config.carve_outs.empty()) return config.l1;
  const std::uint64_t needed = shared_memory_per_block(kernel, config.sm) * blocks_per_sm;
  const auto found = std::ranges::lower_bound(config.carve_outs, needed);
  return l1_beside(config, found == config.carve_outs.end() ? config.carve_outs.back() : *found);
}

Total total_of(const trace::StaticInstruction& instruction) {
  if (instruction.is_atomic()) return Total::atomic_instructions;
  return instruction.kind == trace::MemoryKind::store ? Total::store_instructions
                                                      : Total::load_instructions;
}

InstructionCounters& InstructionCounters::operator+=(const InstructionCounters& other) {
  executions += other.executions;
  active_executions += other.active_executions;
  sectors += other.sectors;
  requests += other.requests;
  l2_requests += other.l2_requests;
  l2_request_sectors += other.l2_request_sectors;
  dram_requests += other.dram_requests;
  dram_sectors += other.dram_sectors;
  shared_wavefronts += other.shared_wavefronts;
  for (std::size_t e = 0; e < num_miss_events; ++e) {
    events[e] += other.events[e];
    waits[e] += other.waits[e];
    wait_cycles[e] += other.wait_cycles[e];
  }
  return *this;
}

void MemoryConfig::validate() const {
  if (num_sms == 0) throw InputError("num_sms = 0; a GPU has at least one SM");
  if (l1_mshrs == 0) throw InputError("l1_mshrs = 0; an SM has at least one MSHR");
  l1.validate("L1 cache");
  l2.validate("L2 cache");
  for (const std::uint64_t carve_out : carve_outs) {
    if (carve_out >= unified_bytes) {
      throw InputError("a carve-out of " + std::to_string(carve_out) +
                       " bytes for shared memory leaves nothing of " +
                       std::to_string(unified_bytes) + " bytes for L1");
    }
    l1_beside(*this, carve_out)
        .validate(
            ("L1 cache beside " + std::to_string(carve_out) + " bytes of shared memory").c_str());
  }
}

MemorySystem::MemorySystem(const MemoryConfig& config, unsigned num_threads)
    : config_((config.validate(), config)),
      num_threads_(threads_asked_for(num_threads)),
      l2_(config.l2) {}

MemoryProfile MemorySystem::run(const trace::KernelTrace& trace,
                                std::optional<trace::WarpPosition> observed,
                                const InterruptCheck& interrupt) {
  const std::scoped_lock lock(mutex_);
  const std::vector<trace::StaticInstruction>& instructions = trace.instructions();
  const RowFlags flags(instructions);
  MemoryProfile profile;
  profile.occupancy = occupancy(trace.header(), config_.sm);
  const std::uint32_t blocks_per_sm = profile.occupancy.blocks_per_sm;
  const CacheConfig l1 = l1_of(config_, trace.header(), blocks_per_sm);
  profile.l1_size_bytes = l1.size_bytes;
  std::vector<std::vector<std::uint32_t>> blocks_of_sms =
      assign_blocks(trace, flags, config_.num_sms, blocks_per_sm, config_.block_order);
  for (const auto& blocks : blocks_of_sms) {
    profile.simulated_blocks += blocks.size();
    for (const std::uint32_t block : blocks) {
      profile.simulated_instructions += trace.blocks().counts(block).instructions;
    }
  }
  const bool is_whole = profile.simulated_blocks == trace.blocks().size();
  const std::vector<trace::RowCounts> counts =
      is_whole ? trace.row_counts() : count_rows(trace, flags, blocks_of_sms);

  std::erase_if(blocks_of_sms, [](const auto& blocks) { return blocks.empty(); });
  // A thread needs some work to be worth its start, and in the timed order, whose windows are
  // short, to be worth that the others wait for it.
  constexpr std::uint64_t sectors_per_thread = 100'000;
  constexpr std::uint64_t sms_per_thread = 8;
  constexpr std::uint64_t most_threads = 255;
  const bool timed = config_.access_order == AccessOrder::timed;
  std::uint64_t worth = trace.totals().sectors / sectors_per_thread;
  if (timed) worth = std::min<std::uint64_t>(worth, blocks_of_sms.size() / sms_per_thread);
  const auto threads =
      std::clamp<std::uint64_t>(worth, 1, std::min<std::uint64_t>(num_threads_, most_threads));
  const Paces paces = timed ? paces_of(trace) : Paces{};
  const auto make_sm = [&](std::size_t i) {
    return std::make_unique<Sm>(trace, flags, paces, std::move(blocks_of_sms[i]), blocks_per_sm,
                                config_, l1, l2_, threads);
  };
  std::vector<Worker> workers(threads,
                              Worker(instructions.size(), l1.line_bytes, l2_.config().num_sets()));
  profile.atomic_lanes = config_.atomics_per_lane ? atomic_lanes_of(trace)
                                                  : std::vector<double>(instructions.size(), 1.0);
  Simulation simulation(blocks_of_sms.size(), make_sm, timed, l2_, profile.atomic_lanes, workers,
                        observed, interrupt);
  simulation.run();

  profile.per_row.resize(instructions.size());
  for (const Worker& worker : workers) {
    profile.totals += worker.totals;
    for (std::size_t row = 0; row < instructions.size(); ++row) {
      profile.per_row[row] += worker.per_row[row];
    }
  }
  for (std::size_t row = 0; row < instructions.size(); ++row) {
    InstructionCounters& counters = profile.per_row[row];
    counters.executions = counts[row].issued;
    counters.active_executions = counts[row].active;
    counters.shared_wavefronts = counts[row].shared_wavefronts;
    if (!flags.uses_caches[row]) continue;
    profile.totals[total_of(instructions[row])] += counts[row].issued;
  }
  profile.totals[Total::l2_dirty_sectors] = l2_.dirty_sectors();
  profile.observed = simulation.observed();
  profile.place_wait_cycles = simulation.place_wait_cycles();
  profile.slice_requests.resize(l2_.config().slices);
  for (const Worker& worker : workers) {
    for (std::size_t set = 0; set < worker.of_sets.size(); ++set) {
      profile.slice_requests[l2_.slice_of(static_cast<std::uint32_t>(set))] += worker.of_sets[set];
    }
  }
  return profile;
}

}  // namespace warpstack::memory
