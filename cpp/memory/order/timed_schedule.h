#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "common/fifo.h"
#include "gpu/choices.h"
#include "gpu/reference_machine.h"
#include "memory/cache/counters.h"
#include "memory/order/pace.h"
#include "memory/order/progress.h"
#include "memory/order/wake_times.h"
#include "memory/order/warp_stream.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// When data arrive, and from where. A later arrival is greater; of two at the same time, the one
/// from farther away.
class Arrival {
 public:
  Arrival() = default;
  Arrival(ReferenceCycle time, MissEvent source)
      : bits_(time * 4 + static_cast<std::uint64_t>(source)) {}
  [[nodiscard]] ReferenceCycle time() const { return bits_ / 4; }
  [[nodiscard]] MissEvent source() const { return static_cast<MissEvent>(bits_ % 4); }
  auto operator<=>(const Arrival&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

/// The parameters of an SM in the timed order.
struct TimedOrder {
  gpu::Scheduler scheduler = gpu::Scheduler::gto;
  double issue_width = 1;
  std::uint32_t queue_entries = 2;  ///< memory instructions in front of L1
  std::uint32_t mshrs = 1;
  bool reserves_lines = false;  ///< a line on its way keeps its place in L1
};

/// The order of one SM's accesses in time, on a machine with the latencies of the reference machine
/// and unlimited bandwidth everywhere but at the SM's port. A warp that has its data and has done
/// what its pace says issues its next access, in the scheduler's order, while the queue in front of
/// L1 has room; the queue sends a line per cycle to L1. A miss holds an MSHR, and reserves a place,
/// until its data come from L2 or DRAM, as L2 said.
///
/// L2 answers the accesses of a window of time at its end. Nothing comes back before the latency of
/// L2 is over, so a window of that length loses nothing.
class TimedSchedule {
 public:
  /// Length of a window in cycles.
  static constexpr ReferenceCycle window = gpu::ReferenceMachine::l2;

  /// `blocks`: positions in the trace, in the order in which the SM takes them. `flags` and `paces`
  /// must outlive the schedule. `sets`, `ways`: of L1.
  TimedSchedule(const trace::KernelTrace& trace, const RowFlags& flags, const Paces& paces,
                std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm,
                const TimedOrder& order, std::uint64_t sets, std::uint32_t ways);

  /// Moves to the SM's next access that L1 takes before `end`, or stays at an interrupted one.
  /// Returns null when there is none.
  const MemoryAccess* next(ReferenceCycle end);
  /// The time before which nothing happens, whatever L2 says; `never` if nothing is left.
  [[nodiscard]] ReferenceCycle next_event(ReferenceCycle end) const;
  /// The warp of the access that next() returned last.
  [[nodiscard]] trace::WarpPosition warp() const { return warps_[issued_].stream.position(); }
  [[nodiscard]] ReferenceCycle now() const { return time_; }
  /// Before end_access(): whether the warp waits for data of this access at some time, and whether
  /// it does so before its next access, according to its pace.
  [[nodiscard]] bool is_waited_for() const { return waited_for_ && is_read(); }
  [[nodiscard]] bool waits_after_this() const {
    return paces_->after[warps_[issued_].stream.current().row].waits;
  }
  /// Before end_access(): whether the warp went back to it; see InstructionCounters::repeats.
  [[nodiscard]] bool is_repeat() const {
    const TimedWarp& warp = warps_[issued_];
    return warp.progress.goes_back_to(warp.stream.current().row);
  }
  /// No warp has an access left.
  [[nodiscard]] bool done() const { return resident_ == 0 && !interrupted_; }
  /// After end_access(): its warp has no access left.
  [[nodiscard]] bool was_last() const { return warps_[issued_].stream.done(); }

  /// Begins a window; L2 has answered what was asked before.
  void begin_window() {
    flights_.clear();
    answered_ = 0;
    all_joined_.clear();
    settled_joined_ = 0;
  }

  /// Appends the accesses that will probably issue before `end`, and prefetches them.
  void foresee(ReferenceCycle end, std::vector<const MemoryAccess*>& accesses) const {
    const auto visit = [&](std::uint32_t id) {
      const WarpStream& stream = warps_[id].stream;
      if (stream.done()) return;
      __builtin_prefetch(&warps_[id]);
      __builtin_prefetch(&stream.current());
      accesses.push_back(&stream.current());
    };
    for (std::size_t word = 0; word < ready_.size(); ++word) {
      for (std::uint64_t bits = ready_[word]; bits != 0; bits &= bits - 1) {
        visit(ages_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
      }
    }
    waiting_.for_each_until(end, visit);
  }

  /// Whether L1 can take a line before `end`. If not, the access is interrupted.
  [[nodiscard]] bool takes_line(ReferenceCycle end) const { return time_ < end; }
  /// Whether a line that misses has to wait for an MSHR or a place.
  [[nodiscard]] bool is_full(std::uint64_t line, std::uint32_t set) const {
    return mshrs_in_use_ >= order_.mshrs || (order_.reserves_lines && under_way_in_[set] >= ways_ &&
                                             place_of(line, set) == places_end(set));
  }
  /// Waits while is_full(). Returns whether L1 can take the line before `end`.
  bool wait_until_free(std::uint64_t line, std::uint32_t set, ReferenceCycle end);
  // The lines of the access, one after the other:
  /// A load finds its line in L1.
  void hit(std::uint64_t line) {
    ++time_;
    waited_for_ = true;
    data_ = std::max(data_, Arrival{time_ + gpu::ReferenceMachine::normal, MissEvent::l1_hit});
    const UnderWay& entry = under_way(line);
    if (entry.line != line) return;
    if (entry.flight != none) {
      all_joined_.push_back(entry.flight);
      ++joined_;
    } else {
      data_ = std::max(data_, entry.back);
    }
  }
  /// A load misses L1 and waits for the line.
  void miss(std::uint64_t line, std::uint32_t set) {
    ++time_;
    waited_for_ = true;
    while (first_back_ <= time_) release_first();
    ++mshrs_in_use_;
    if (order_.reserves_lines) keep_place(line, set);
    under_way(line) = {line, {}, static_cast<std::uint32_t>(flights_.size())};
    flights_.push_back({line, time_, {}, set, true});
    ++own_;
  }
  /// A load or atomic goes past L1 and waits for its data.
  void pass_l1() {
    ++time_;
    waited_for_ = true;
    flights_.push_back({~std::uint64_t{0}, time_, {}, 0, false});
    ++own_;
  }
  void store() { ++time_; }  ///< nobody waits

  /// What settle() asks for later.
  struct Issued {
    std::uint32_t warp = 0;  ///< in warps_
    std::uint32_t flights = 0;
    std::uint32_t joined = 0;  ///< flights of other accesses that it waits for, too
    bool is_read = true;       ///< some instruction waits for the data
  };
  /// Ends the access, or the part of it that is not left for the next window.
  Issued end_access(bool interrupted, std::vector<InstructionCounters>& per_row);
  /// Takes L2's answer to the next flight, in the order of accesses and of their flights. `bytes`
  /// is the number of bytes that come back.
  void come_back(bool from_dram, std::uint32_t bytes) {
    Flight& flight = flights_[answered_];
    const ReferenceCycle sent = std::max(flight.sent, port_);
    port_ = sent + (bytes + port_bytes - 1) / port_bytes;
    const MissEvent source = from_dram ? MissEvent::dram : MissEvent::l2_hit;
    const ReferenceCycle back =
        sent + gpu::ReferenceMachine::round_trips[static_cast<std::size_t>(source)];
    flight.back = {back, source};
    if (flight.holds) {
      (from_dram ? from_dram_ : from_l2_).push({back, flight.line, flight.set});
      first_back_ = std::min(first_back_, back);
      UnderWay& entry = under_way(flight.line);
      if (entry.line == flight.line && entry.flight == answered_) {
        entry.back = flight.back;
        entry.flight = none;
      }
    }
    ++answered_;
  }
  /// Prefetches the warp that settle() is about.
  void prefetch(const Issued& access) const { __builtin_prefetch(&warps_[access.warp]); }
  void settle(const Issued& access, std::vector<InstructionCounters>& per_row) {
    if (access.flights == 0 && access.joined == 0) return;
    TimedWarp& warp = warps_[access.warp];
    Arrival data = access.is_read ? warp.data : warp.unread;
    for (std::size_t i = answered_ - access.flights; i < answered_; ++i) {
      data = std::max(data, flights_[i].back);
    }
    for (const std::size_t last = settled_joined_ + access.joined; settled_joined_ < last;) {
      data = std::max(data, flights_[all_joined_[settled_joined_++]].back);
    }
    (access.is_read ? warp.data : warp.unread) = data;
    --(access.is_read ? warp.unknown : warp.unknown_unread);
    if (warp.is_blocked) make_ready(access.warp, &per_row);
  }
  /// Cycles in which a load waited for a place that was freed by data from L2, and from DRAM.
  [[nodiscard]] const std::array<std::uint64_t, 2>& place_wait_cycles() const {
    return place_wait_cycles_;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// An instruction whose data are on their way, and when its last line was sent.
  struct WaitingRow {
    // Divergent warps have dozens, so that two fields share a word.
    ReferenceCycle sent;
    std::uint32_t row : 31;
    std::uint32_t is_repeat : 1;  ///< the warp went back to it
    std::uint32_t next;           ///< of the same warp, in waiting_rows_; or none
  };
  struct alignas(64) TimedWarp {
    Pace pace;  ///< since its last access
    ReferenceCycle issue = 0;
    Arrival data;               ///< arrival of the last of its data, as far as known
    Arrival unread{};           ///< the same of data that it waits for only at its end
    ReferenceCycle begin = 0;   ///< of its work since the last access
    std::uint32_t slot = 0;     ///< of its block
    std::uint32_t unknown = 0;  ///< accesses that L2 has not answered
    std::uint32_t unknown_unread = 0;
    std::uint32_t rows = none;  ///< last row whose data it has not waited for, in waiting_rows_
    Progress progress{};
    bool is_blocked = false;  ///< until L2 answers
    WarpStream stream;
  };
  /// A request that is on its way.
  struct Flight {
    std::uint64_t line;
    ReferenceCycle sent;
    Arrival back;  ///< once L2 has answered
    std::uint32_t set;
    bool holds;  ///< an MSHR and, if lines are reserved, a place
  };
  /// Some instruction reads the result of the access that next() returned last.
  [[nodiscard]] bool is_read() const {
    return flags_->is_read[warps_[issued_].stream.current().row] != 0;
  }
  struct Holding {
    ReferenceCycle back;
    std::uint64_t line;
    std::uint32_t set;
  };
  /// A line that keeps its place.
  struct Reserved {
    std::uint64_t line;
    std::uint32_t flights;
  };
  /// The last miss among the lines that share this entry.
  struct UnderWay {
    std::uint64_t line = ~std::uint64_t{0};
    Arrival back;
    std::uint32_t flight = none;  ///< none: `back` is known
  };

  /// Bytes that the port of an SM takes per cycle.
  static constexpr std::uint32_t port_bytes = 32;
  static constexpr std::size_t nobody = ~std::size_t{0};
  /// Place in ages_ of the ready warp that issues next.
  [[nodiscard]] std::size_t choose() const;
  [[nodiscard]] std::size_t first_ready_from(std::size_t place) const;
  [[nodiscard]] std::size_t last_ready() const;
  void make_ready(std::uint32_t warp, std::vector<InstructionCounters>* per_row);
  void wake_until(ReferenceCycle now) {
    waiting_.advance(now, [this](std::uint32_t warp) { set_ready(warp); });
  }
  void set_ready(std::uint32_t warp) {
    const std::uint32_t place = places_[warp];
    ready_[place / 64] |= std::uint64_t{1} << place % 64;
  }
  /// Notes the row of the access that ends; its warp will wait for its data.
  void note_row(TimedWarp& warp);
  void fill(std::uint32_t slot, ReferenceCycle now);
  void remove(std::size_t place, ReferenceCycle now);
  void close_gaps();
  /// Frees what the flight that comes back first holds. Returns whether it came from DRAM.
  bool release_first() {
    const bool from_dram = from_l2_.empty() ||
                           (!from_dram_.empty() && from_dram_.front().back < from_l2_.front().back);
    Fifo<Holding>& holding = from_dram ? from_dram_ : from_l2_;
    --mshrs_in_use_;
    if (order_.reserves_lines) leave_place(holding.front().line, holding.front().set);
    holding.pop();
    first_back_ = std::min(from_l2_.empty() ? never : from_l2_.front().back,
                           from_dram_.empty() ? never : from_dram_.front().back);
    return from_dram;
  }
  /// Position in reserved_ of a line's place; places_end() if it has none.
  [[nodiscard]] std::size_t place_of(std::uint64_t line, std::uint32_t set) const {
    std::size_t place = std::size_t{set} * ways_;
    const std::size_t end = place + under_way_in_[set];
    while (place < end && reserved_[place].line != line) ++place;
    return place;
  }
  [[nodiscard]] std::size_t places_end(std::uint32_t set) const {
    return std::size_t{set} * ways_ + under_way_in_[set];
  }
  void keep_place(std::uint64_t line, std::uint32_t set) {
    const std::size_t place = place_of(line, set);
    if (place == places_end(set)) {
      reserved_[place] = {line, 0};
      ++under_way_in_[set];
    }
    ++reserved_[place].flights;
  }
  void leave_place(std::uint64_t line, std::uint32_t set) {
    const std::size_t place = place_of(line, set);
    if (--reserved_[place].flights > 0) return;
    reserved_[place] = reserved_[places_end(set) - 1];
    --under_way_in_[set];
  }
  UnderWay& under_way(std::uint64_t line) { return under_way_[line % under_way_.size()]; }

  const trace::KernelTrace* trace_;
  const RowFlags* flags_;
  const Paces* paces_;
  std::vector<std::uint32_t> blocks_;
  TimedOrder order_;
  std::uint32_t ways_;
  std::size_t next_block_ = 0;

  std::vector<TimedWarp> warps_;
  std::vector<std::uint32_t> free_;  ///< places in warps_
  std::vector<WaitingRow> waiting_rows_;
  std::uint32_t free_rows_ = none;     ///< first of the list of free entries of waiting_rows_
  std::vector<std::uint32_t> ages_;    ///< places in warps_, oldest first, with gaps: none
  std::vector<std::uint32_t> places_;  ///< in ages_, by place in warps_
  std::size_t resident_ = 0;           ///< number of warps in ages_, without gaps
  std::vector<std::uint64_t> ready_;   ///< a bit for each entry of ages_
  WakeTimes waiting_;                  ///< places in warps_ of those that will be ready
  std::size_t num_blocked_ = 0;        ///< warps that wait for L2's answer
  std::vector<std::uint32_t> left_;    ///< by slot: unfinished warps of its block
  std::uint32_t issued_ = 0;           ///< place in warps_
  bool has_issued_ = false;            ///< and that warp is still there
  bool interrupted_ = false;           ///< in the middle of its access
  bool waited_for_ = false;            ///< the access has data that its warp waits for

  ReferenceCycle now_ = 0;             ///< until which warps have become ready
  ReferenceCycle time_ = 0;            ///< until which L1 is busy
  double issue_slots_ = 0;             ///< until which the issue slots are busy
  std::vector<ReferenceCycle> queue_;  ///< when each of the last accesses left the queue
  std::size_t queue_head_ = 0;

  std::vector<Flight> flights_;            ///< of this window
  std::size_t answered_ = 0;               ///< of them
  std::uint32_t own_ = 0;                  ///< flights of the access
  std::uint32_t joined_ = 0;               ///< flights of others that the access waits for
  std::vector<std::uint32_t> all_joined_;  ///< of all accesses of the window, in order
  std::size_t settled_joined_ = 0;         ///< of them
  Arrival data_;                           ///< of the access, as far as it is known
  Fifo<Holding> from_l2_;                  ///< in order of time, as from_dram_
  Fifo<Holding> from_dram_;
  ReferenceCycle first_back_ = never;  ///< the earliest of both
  ReferenceCycle port_ = 0;            ///< until which the port of the SM is busy
  std::uint32_t mshrs_in_use_ = 0;
  std::array<std::uint64_t, 2> place_wait_cycles_{};
  std::uint64_t place_wait_ = 0;             ///< cycles that the waiting line has waited so far
  std::vector<std::uint32_t> under_way_in_;  ///< lines, by set of L1; empty unless reserved
  std::vector<Reserved> reserved_;           ///< by set and way
  std::array<UnderWay, 256> under_way_;
};

}  // namespace warpstack::memory
