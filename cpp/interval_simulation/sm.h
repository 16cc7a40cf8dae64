#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/cpi_stack.h"
#include "interval_simulation/kind_steps.h"
#include "interval_simulation/machine.h"
#include "interval_simulation/memory_side.h"
#include "interval_simulation/phases.h"
#include "interval_simulation/scheduler.h"
#include "interval_simulation/steps.h"
#include "interval_simulation/under_way.h"
#include "memory/cache/cache.h"
#include "memory/cache/instruction_cache.h"
#include "memory/cache/totals.h"
#include "memory/order/line_grouper.h"
#include "memory/order/wake_times.h"
#include "memory/order/warp_stream.h"

namespace warpstack::interval_simulation {

/// A streaming multiprocessor: its warps go from step to step, its load-store unit and L1 serve
/// their accesses in order. It runs on its own for a window of time; what it asks of the memory
/// side is not back before the window ends.
class Sm {
 public:
  Sm(const Machine& machine, const trace::KernelTrace& trace, const memory::RowFlags& flags,
     const memory::CodeLines& code, const memory::CacheConfig& l1, const memory::Cache& l2,
     std::uint32_t blocks, std::uint32_t warps_per_block, Fifo<Reply>& arrivals);

  /// A block starts at `now`, which is not before what the SM has done.
  /// Its data are `offset` bytes behind those of the trace.
  void start_block(std::uint32_t block, Cycle now, KindSteps& steps, std::uint64_t offset);
  /// Begins a window. `queued`: requests that have not left the queue to the NoC.
  void begin_window(std::size_t queued) {
    queued_ = queued;
    is_held_up_ = queued > 0;
  }
  /// The NoC has taken a request of this SM at `now`. Returns whether the SM has gone on, so that
  /// it may have further requests.
  bool departed(Time now);
  /// The memory side has come to the end of the window.
  void end_window();
  /// Runs until `end`, or until a block has ended while `stops_at_places`.
  void run(Cycle end, bool stops_at_places);
  /// Places of blocks that have ended, and when; the caller empties it.
  [[nodiscard]] std::vector<Cycle>& freed() { return freed_; }
  [[nodiscard]] Requests& requests() { return requests_; }
  /// When it has something to do next, whatever the memory side says; WakeTimes' `never` if
  /// nothing.
  [[nodiscard]] std::uint64_t next(Cycle end);
  /// Whether its load-store unit would ask again at the begin of each window until next(), and get
  /// the same answer.
  [[nodiscard]] bool asks_in_vain() const {
    return is_interrupted_ && asks_in_vain_ && !waits_for_noc_;
  }

  [[nodiscard]] std::size_t resident_warps() const { return num_warps_; }
  /// The first barrier at which a warp waits, with its warps; empty without one.
  [[nodiscard]] std::string explain_barrier() const;
  [[nodiscard]] Cycle end() const { return end_; }
  [[nodiscard]] std::uint64_t instructions() const { return num_instructions_; }
  /// Cycles of warps, by what they waited for.
  [[nodiscard]] CpiStack<double> waited() const;
  [[nodiscard]] memory::MemoryTotals& totals() { return totals_; }
  [[nodiscard]] memory::Cache& l1() { return l1_; }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// What the data of an access waited for, from its issue on.
  struct Waited {
    float l1 = 0;
    float mshr = 0;
    float noc = 0;
    float l2 = 0;
    float queue = 0;  ///< of DRAM
    float dram = 0;
  };
  /// The part before a request leaves L1.
  struct WaitedBefore {
    float l1 = 0;
    float mshr = 0;
    float noc = 0;
  };
  /// An access that a warp may wait for.
  struct Access {
    Cycle sent = -1;  ///< by the load-store unit; -1: not yet
    Cycle done = 0;   ///< of what has arrived
    Cycle issued = 0;
    std::uint32_t pending = 0;        ///< parts on their way, and lines that are to be looked up
    std::uint32_t completion = none;  ///< of a phase, that waits for it
    bool is_shared = false;
    bool is_copy = false;     ///< in a group
    bool has_missed = false;  ///< `waited` is known
    Waited waited;            ///< of what arrived last
  };
  struct Warp {
    std::shared_ptr<const WarpSteps> steps;
    std::optional<memory::WarpStream> stream;
    std::vector<Access> accesses;  ///< a ring
    std::uint32_t next_access = 0;
    std::uint32_t step = 0;    ///< whose head issues next
    std::uint32_t block = 0;   ///< slot
    std::uint64_t offset = 0;  ///< of its data, in lines of L1
    std::uint32_t scheduler = 0;
    std::uint32_t outstanding = 0;  ///< accesses that are not done
    Cycle all_done = 0;             ///< of those that are
    Access last_done;
    double head = 0;  ///< when the last head issued
    double head_before = 0;
    double ready = 0;  ///< of the next head, without what it waits for
    bool is_starting = false;
    bool is_blocked = false;  ///< until something arrives
    bool is_at_barrier = false;
    std::uint8_t barrier = 0;  ///< of its block, where it waits
    /// Completions that it has waited for, by mbarrier.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> passed;
    Cycle waits_since = 0;  ///< for the load-store unit
    double mshr_mark = 0;
    double noc_mark = 0;
  };
  struct Block {
    std::uint32_t resident = 0;
    std::uint32_t unfinished = 0;
    bool is_whole = true;  ///< the trace has all its warps
    trace::BlockBarriers barriers;
    std::vector<std::uint32_t> warps;
    Phases phases;
  };
  /// Who waits for a line.
  struct Target {
    std::uint32_t warp = none;  ///< none: a store's line
    std::uint32_t access = 0;
    WaitedBefore before;
  };
  /// What comes back: in one packet, or several where L2 has shorter lines.
  struct Fetch {
    Target target;              ///< of one that is no line of L1
    std::uint32_t line = none;  ///< in lines_under_way_
    std::uint32_t packets = 0;
    bool evict_first = false;
  };
  enum class Cause : std::uint8_t { nothing, mshr, noc };

  Access& access_of(Warp& warp, std::uint32_t number) {
    return warp.accesses[number & (warp.accesses.size() - 1)];
  }
  void begin_step(std::uint32_t id);
  /// The instructions of the step have issued, but for what its head waits for.
  void end_step(std::uint32_t id, double now);
  void look_at_waits(std::uint32_t id, Cycle now);
  void head_is_ready(std::uint32_t id, Cycle now);
  void head_issued(std::uint32_t id, Cycle now);
  /// When what the next head waits for at an mbarrier is done; nothing while that is not known.
  [[nodiscard]] std::optional<Cycle> phase_is_made(const Warp& warp) const;
  void take_phase_step(std::uint32_t id, std::uint32_t row, Cycle now);
  /// Something was completed at an mbarrier: warps of the block look again.
  void look_at_phases(std::uint32_t block);
  void reach_barrier(std::uint32_t id, Cycle now);
  /// A warp comes to a barrier of its block, and goes on at once. Where the trace has only some of
  /// the warps, nobody waits for that.
  void pass_barrier(std::uint32_t id, Cycle now);
  /// What the next head does at a barrier.
  [[nodiscard]] const trace::BarrierStep& barrier_step(const Warp& warp) const {
    return trace_.effects()[warp.steps->steps[warp.step].row].barrier;
  }
  void check_barrier(std::uint32_t block, std::uint32_t number, Cycle now);
  void end_warp(std::uint32_t id, Cycle now);
  void take_arrivals(Cycle until);
  /// What is there next is far away, in the caches of the processor.
  void prefetch_arrivals() const;
  void arrive(const Reply& reply);
  void part_is_done(std::uint32_t warp, std::uint32_t access, Cycle done, const Waited* waited);
  [[nodiscard]] Cycle first_turn() const;
  [[nodiscard]] std::uint32_t choose(Cycle turn) const;
  void issue_access(std::uint32_t id, Cycle now);
  /// Sends the rest of the access at hand; returns whether it is done before the window ends.
  bool continue_access();
  /// The access at hand has been sent: its place in the queue is free from now on.
  /// The access has its last turn, and the load-store unit is free for the next one.
  void leave_queue(Cycle last_turn, Cycle free);
  Cause look_up(const memory::LineAccess& line, std::size_t index, Cycle now);
  Cause look_up_load(const memory::LineAccess& line, Cycle now);
  Cause look_up_store(const memory::LineAccess& line, std::size_t index, Cycle now);
  Cause look_up_atomic(const memory::LineAccess& line, std::size_t index, Cycle now);
  std::uint32_t start_fetch(std::uint32_t line, const Target& target);
  void send(std::uint64_t l1_line, memory::SectorMask mask, Request::Kind kind,
            const memory::ByteMasks* bytes, std::uint32_t fetch, Cycle now,
            const memory::SectorLanes* lanes, bool looked_up);
  void write_back(const memory::Cache::Eviction& eviction, Cycle now);
  [[nodiscard]] Target target(Cycle now) const;
  void lose(const Access& access, double cycles);
  [[nodiscard]] bool noc_has_room(Cycle now) const {
    return is_held_up_ ? queued_ < most_queued_
                       : departures_[num_sent_ % departures_.size()] <= static_cast<double>(now);
  }
  [[nodiscard]] bool can_take(std::uint32_t set, std::uint64_t line) {
    asked_for_place_ = true;
    return !reserves_ || l1_.make_room(set, line);
  }
  [[nodiscard]] bool can_take(std::uint32_t set, std::uint64_t line,
                              memory::Cache::Finding& found) {
    asked_for_place_ = true;
    return !reserves_ || l1_.make_room(set, line, found);
  }
  [[nodiscard]] bool reaches_l1(std::uint64_t line) const;

  const Machine& machine_;
  const trace::KernelTrace& trace_;
  const memory::RowFlags& flags_;
  const memory::CodeLines& code_;
  std::optional<memory::InstructionCache> instruction_cache_;  ///< none: all of the code is there
  memory::Cache l1_;
  const memory::Cache& l2_;
  std::uint32_t l1_sectors_;
  std::uint32_t l2_sectors_;
  std::uint64_t first_local_line_;
  bool reserves_;
  memory::AtomicRule atomics_;
  memory::LineGrouper grouper_;
  LinesUnderWay<Target> lines_under_way_;

  // Warps:
  std::vector<Warp> warps_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_blocks_;
  std::uint32_t warps_per_block_;
  std::size_t num_warps_ = 0;
  bool awaits_bulk_stores_ = false;
  bool waits_for_data_ = false;  ///< the load-store unit, for whatever comes
  bool asks_in_vain_ = false;    ///< until a reply that is on its way arrives
  bool asked_for_place_ = false;
  std::uint32_t num_ready_ = 0;  ///< for the load-store unit
  double next_warp_start_ = 0;
  memory::WakeTimes wakes_;
  std::vector<std::uint32_t> woken_;
  std::vector<double> first_slots_;  ///< of the schedulers, for warps that start
  std::vector<Scheduler> schedulers_;
  Cycle now_ = 0;

  // The load-store unit:
  std::vector<Cycle> queue_;  ///< when the last accesses left it
  std::size_t queue_head_ = 0;
  Cycle accepted_ = -1;
  Cycle unit_time_ = 0;
  Cycle begun_ = 0;                   ///< the access has its first turn
  std::uint32_t passes_ = 0;          ///< of the access over the banks of L1, if they count
  std::uint32_t lines_per_turn_ = 1;  ///< of the access
  std::uint32_t looked_up_ = 0;       ///< of them, in this turn
  bool is_interrupted_ = false;
  std::uint32_t issuing_ = none;  ///< the warp whose access is at hand
  std::uint32_t access_ = 0;
  std::uint32_t row_ = 0;
  bool is_awaited_ = false;  ///< by its warp, now or at its end
  std::vector<memory::LineAccess> lines_;
  std::vector<memory::ByteMasks> bytes_;
  std::vector<memory::SectorLanes> lanes_;
  std::size_t next_line_ = 0;
  double waited_for_mshr_ = 0;
  double waited_for_noc_ = 0;
  double mshr_mark_ = 0;
  double noc_mark_ = 0;
  std::vector<Fetch> fetches_;
  std::vector<std::uint32_t> free_fetches_;

  // The window:
  Cycle window_end_ = 0;
  Fifo<Reply>& arrivals_;
  Requests requests_;
  std::vector<double> departures_;  ///< of the last requests, if only the port held them up
  std::uint64_t num_sent_ = 0;
  double next_departure_ = 0;
  std::size_t queued_ = 0;       ///< requests that have not left the queue
  std::size_t most_queued_;      ///< those in the pipeline before the tags among them
  bool is_held_up_ = false;      ///< some had not at the begin of the window
  bool waits_for_noc_ = false;   ///< for the memory side to say that one has
  bool is_catching_up_ = false;  ///< with what does not need the load-store unit
  bool stops_at_places_ = false;
  std::vector<Cycle> freed_;

  Cycle end_ = 0;
  std::uint64_t num_instructions_ = 0;
  CpiStack<double> waited_;
  memory::MemoryTotals totals_;
};

}  // namespace warpstack::interval_simulation
