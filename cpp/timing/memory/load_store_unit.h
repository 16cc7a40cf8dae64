#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/fifo.h"
#include "memory/cache/cache.h"
#include "memory/cache/totals.h"
#include "memory/order/line_grouper.h"
#include "timing/base/wait_details.h"
#include "timing/memory/mshr.h"
#include "timing/memory/packet.h"

namespace warpstack::timing {

/// A memory instruction that a warp waits for: one that returns data, or stores that are to be
/// acknowledged before the warp is done.
struct Load {
  std::uint32_t warp = 0;  ///< slot
  std::uint32_t row = 0;
  std::uint32_t fetches = 0;  ///< lines to look up, and replies under way
  bool returns_data = true;
  Cycle issued = 0;
  Cycle done = 0;                  ///< of what has arrived
  std::int64_t lost_parts = 0;     ///< parts of issue slots that were lost to it
  Ticks critical_before = 0;       ///< the SM's critical path of loads when it was issued
  CpiStack<std::int64_t> latency;  ///< ticks, of what arrived last
};

/// What the L1 misses of a run waited for, from issue to the data's arrival.
struct MissLatency {
  std::uint64_t misses = 0;
  CpiStack<std::int64_t> ticks;  ///< l1: turns at the L1 port; mshr, noc, l2, queue (of DRAM), dram
};

/// The load-store unit of an SM with its L1: instructions wait in a short queue; the first one
/// sends one request (the sectors of one line) or one shared-memory wavefront per cycle, to the
/// tags of L1 or into the pipeline before them. Where a request finds no MSHR, no free target of
/// one, no line that can make room, or a full NoC queue, everything behind it waits. An instruction
/// and a wavefront may take more cycles (`lsu_interval`, `shared_wavefront_cycles`), as may the
/// passes of a load or store over the banks of L1, of which several lines are looked up per cycle
/// (`l1_tags_per_cycle`).
class LoadStoreUnit {
 public:
  LoadStoreUnit(const TimingConfig& config, const memory::CacheConfig& l1, const memory::Cache& l2,
                std::uint32_t sm);

  static constexpr std::uint32_t no_load = ~std::uint32_t{0};

  /// Whether it takes an instruction in this cycle.
  [[nodiscard]] bool accepts(Cycle now) const {
    return queue_.size() < config_.gpu.lsu_queue_entries && accepted_ < now;
  }
  /// Why an instruction that it does not accept has to wait.
  [[nodiscard]] StackDetail cause_of_waiting() const;
  /// Takes an access to the caches. Returns the load that the warp waits for, or
  /// no_load.
  std::uint32_t issue(const trace::StaticInstruction& instruction,
                      const memory::MemoryAccess& access, std::uint32_t warp, Cycle now,
                      bool awaits);
  /// Takes an access of some lanes to shared memory, of a number of wavefronts.
  std::uint32_t issue_shared(const trace::StaticInstruction& instruction, std::uint32_t row,
                             std::uint32_t wavefronts, int lanes, std::uint32_t warp, Cycle now);

  /// Instructions that it has taken and not sent as a whole.
  [[nodiscard]] std::size_t queued_instructions() const { return queue_.size(); }
  [[nodiscard]] bool is_idle() const { return queue_.empty() && pipeline_.empty(); }
  /// The first cycle from `now` on in which step() would do more than wait for something else.
  [[nodiscard]] Cycle next(Cycle now) const {
    Cycle first = never;
    if (!queue_.empty() && (dispatch_waits_for_ == nothing || retry_) &&
        (!goes_to_pipeline(queue_.front()) || pipeline_.size() < pipeline_entries_)) {
      first = std::max(now, free_at_);
    }
    if (!pipeline_.empty() && (tags_wait_for_ == nothing || retry_)) {
      first = std::min(first, std::max(now, pipeline_.front().ready));
    }
    return first;
  }
  /// One cycle.
  void step(Cycle now);
  /// A reply has arrived.
  void deliver(const Reply& reply, Cycle now);
  /// Brings what waits for a reply that arrives soon close.
  void prefetch(std::uint32_t owner) const {
    if (owner == Packet::nobody) return;
    const auto* first = reinterpret_cast<const char*>(&fetches_[owner]);
    for (std::size_t i = 0; i < sizeof(Fetch); i += 64) __builtin_prefetch(first + i);
  }
  /// A packet left the queue to the NoC.
  void take_room() {
    if (awaits_room()) retry_ = true;
  }
  /// Whether it matters when packets leave the queue to the NoC. What waits for an MSHR finds the
  /// same again, whatever has left.
  [[nodiscard]] bool awaits_room() const {
    if (!is_blocked()) return false;
    if (tags_wait_for_ == room || dispatch_waits_for_ == room) return true;
    // The first turn of an instruction counts, even where there is no room before the tags.
    return !queue_.empty() && queue_.front().begun < 0 && goes_to_pipeline(queue_.front()) &&
           pipeline_.size() == pipeline_entries_;
  }
  /// Whether each request of a step finds room in the queue to the NoC even if nothing leaves it
  /// before. `arrivals`: replies that it may take before.
  [[nodiscard]] bool has_room_for_step(std::size_t arrivals) const {
    const std::size_t before = most_sent_before_last_ + arrivals * most_sent_by_arrival_;
    return outbox_.size() + before < noc_queue_entries_;
  }

  // The NoC queue:
  /// What the NoC asks of a packet again and again until it can move: the packets themselves are
  /// large.
  struct Outgoing {
    std::uint32_t slice = 0;
    std::uint32_t data_sectors = 0;  ///< that it carries
    bool has_data = false;
  };
  [[nodiscard]] const Outgoing& first_request() const { return outbox_.front(); }
  [[nodiscard]] const Packet& first_packet() const { return packets_.front(); }
  void pop_request() {
    outbox_.pop();
    packets_.pop();
  }
  [[nodiscard]] std::size_t queued_requests() const { return outbox_.size(); }
  /// When packets entered the queue of which the NoC has not been told yet; the caller clears it.
  [[nodiscard]] std::vector<Cycle>& entered() { return entered_; }
  [[nodiscard]] std::uint32_t misses_in_flight() const { return mshrs_.size(); }

  [[nodiscard]] Load& load(std::uint32_t id) { return loads_[id]; }
  [[nodiscard]] const Load& load(std::uint32_t id) const { return loads_[id]; }
  /// Loads whose data are there or will be at `Load::done`; the caller releases them.
  [[nodiscard]] std::vector<std::uint32_t>& completed() { return completed_; }
  void release(std::uint32_t load) { free_loads_.push_back(load); }

  /// What it has counted: totals of L1, and read hits on sectors still on their way.
  [[nodiscard]] const memory::MemoryTotals& totals() const { return totals_; }
  [[nodiscard]] std::uint64_t pending_sector_hits() const { return pending_sector_hits_; }
  [[nodiscard]] const MissLatency& miss_latency() const { return miss_latency_; }
  /// Memory time on the longest chain of loads of which each was issued after the one before had
  /// its data (CRISP: the load critical path). The time that follows the SM clock is left out.
  [[nodiscard]] Ticks critical_path() const { return critical_path_; }
  /// How long it was busy with what, and waited for what.
  [[nodiscard]] WaitedFor waited_for() const {
    WaitedFor ticks = waited_for_;
    for (Ticks& time : ticks) time *= ticks_per_cycle;
    return ticks;
  }
  /// Whether a store waits for an MSHR or the NoC, and all else behind it.
  [[nodiscard]] bool is_blocked_by_store() const {
    if (!is_blocked()) return false;
    return (tags_wait_for_ != nothing ? pipeline_.front().origin : queue_.front().origin)
        .is_write();
  }
  /// To be flushed when the kernel is done.
  [[nodiscard]] memory::Cache& l1() { return l1_; }

 private:
  /// The instruction that a request belongs to.
  struct Origin {
    std::uint32_t load = no_load;
    std::uint32_t row = 0;
    trace::MemoryKind kind = trace::MemoryKind::none;
    bool bypasses = false;   ///< L1
    bool read_only = false;  ///< L1 keeps it even if it keeps no other global loads
    bool evict_first = false;
    Cycle issued = 0;
    Cycle mshr_mark = 0;  ///< how long the unit had waited when it came
    Cycle noc_mark = 0;

    [[nodiscard]] bool is_write() const {
      return kind == trace::MemoryKind::store || kind == trace::MemoryKind::reduction;
    }
    [[nodiscard]] bool is_atomic() const {
      return kind == trace::MemoryKind::atomic || kind == trace::MemoryKind::reduction;
    }
  };
  /// An instruction in the queue; its vectors keep their memory for the next one.
  struct Entry {
    Origin origin;
    std::uint32_t wavefronts = 0;  ///< of shared memory; 0: an access to the caches
    std::uint32_t needed = 0;      ///< of them, without bank conflicts
    std::uint32_t passes = 0;      ///< over the banks of L1; 0: they do not count
    std::size_t next = 0;          ///< line or wavefront
    Cycle begun = -1;              ///< of its first turn
    std::vector<memory::LineAccess> lines;
    std::vector<memory::ByteMasks> bytes;    ///< of writes
    std::vector<memory::SectorLanes> lanes;  ///< of atomics
  };
  /// A request on its way to the tags.
  struct Request {
    Origin origin;
    memory::LineAccess access;
    memory::ByteMasks bytes;
    Cycle ready = 0;  ///< for the look-up
  };
  /// Cycles from issue until a request got so far, by what it waited for.
  struct Before {
    Cycle l1 = 0;
    Cycle l2 = 0;  ///< the latency of L1, which is part of that of an L2 hit
    Cycle mshr = 0;
    Cycle noc = 0;

    /// Adds them, in ticks.
    void add_to(CpiStack<std::int64_t>& stack) const {
      stack[StackComponent::l1] += l1 * ticks_per_cycle;
      stack[StackComponent::l2] += l2 * ticks_per_cycle;
      stack[StackComponent::mshr] += mshr * ticks_per_cycle;
      stack[StackComponent::noc] += noc * ticks_per_cycle;
    }
  };
  /// Who waits for an MSHR.
  struct Target {
    std::uint32_t load = 0;
    Before before;
  };
  /// One L1 line on its way: in one packet, or several where L2 has shorter lines.
  struct Fetch {
    std::uint32_t load = no_load;  ///< who waits; no_load for a store's line
    std::uint32_t mshr = no_mshr;
    std::uint32_t packets = 0;
    bool evict_first = false;
    Before before;
  };
  static constexpr std::uint32_t no_mshr = ~std::uint32_t{0};

  Entry& append(const trace::StaticInstruction& instruction, std::uint32_t row, std::uint32_t warp,
                std::uint32_t fetches, Cycle now, bool awaits);
  std::uint32_t allocate_load();
  /// Cycles that an instruction takes of the unit, at least.
  [[nodiscard]] Cycle interval_of(const Entry& entry) const {
    if (entry.wavefronts > 0 && entry.origin.is_atomic()) return 1;
    return std::max(config_.gpu.lsu_interval, entry.passes);
  }
  /// The first turn of an instruction.
  void begin(Entry& entry, Cycle now);
  /// Lets the first instruction in the queue do its turn.
  void dispatch(Cycle now);
  [[nodiscard]] bool reaches_l1(const Origin& origin, std::uint64_t line) const {
    if (origin.is_atomic()) return false;
    return origin.kind == trace::MemoryKind::store ||
           (!origin.bypasses &&
            (origin.read_only || config_.memory.l1_caches_global || line >= first_local_line_));
  }
  [[nodiscard]] bool goes_to_pipeline(const Entry& entry) const {
    return pipeline_entries_ > 0 && entry.wavefronts == 0 &&
           reaches_l1(entry.origin, entry.lines[entry.next].line);
  }
  // What a request waits for, beside MSHRs and places: nothing, or room in the queue to the NoC.
  static constexpr StackDetail nothing = StackDetail::issue;
  static constexpr StackDetail room = StackDetail::network;
  [[nodiscard]] bool is_blocked() const {
    return tags_wait_for_ != nothing || dispatch_waits_for_ != nothing;
  }
  /// Sends the request for one line; returns what it waits for. `bytes` are those of a write,
  /// `lanes` those of an atomic.
  StackDetail look_up(const Origin& origin, const memory::LineAccess& access,
                      const memory::ByteMasks* bytes, const memory::SectorLanes* lanes, Cycle now);
  StackDetail look_up_load(const Origin& origin, const memory::LineAccess& access, Cycle now);
  StackDetail look_up_store(const Origin& origin, const memory::LineAccess& access,
                            const memory::ByteMasks& bytes, Cycle now);
  StackDetail look_up_atomic(const Origin& origin, const memory::LineAccess& access,
                             const memory::ByteMasks& bytes, const memory::SectorLanes& lanes,
                             Cycle now);
  [[nodiscard]] bool noc_has_room() const { return outbox_.size() < noc_queue_entries_; }
  /// Whether a line that a request needs is there or can take a place. To be asked last: the order
  /// in which lines make room may change, for good.
  bool can_take(std::uint32_t set, std::uint64_t line) {
    return !reserves_ || l1_.make_room(set, line);
  }
  std::uint32_t start_fetch(const Origin& origin, std::uint32_t load, std::uint32_t mshr,
                            Cycle now);
  void send(std::uint64_t l1_line, memory::SectorMask mask, Packet::Kind kind, bool evict_first,
            const memory::ByteMasks* bytes, std::uint32_t fetch, Cycle now,
            const memory::SectorLanes* lanes = nullptr);
  void write_back(const memory::Cache::Eviction& eviction, Cycle now);
  /// A part of what a load waits for is there at `done`.
  void arrive(std::uint32_t load, Cycle done, const CpiStack<std::int64_t>& latency);
  /// A part of which the latency does not count.
  void arrive(std::uint32_t load, Cycle done);
  /// Cycles since issue, by what the unit waited for.
  [[nodiscard]] Before time_before(const Origin& origin, Cycle now) const {
    const Cycle for_mshr = waited_for_mshr_ - origin.mshr_mark;
    const Cycle for_noc = waited_for_noc_ - origin.noc_mark;
    return {now - origin.issued - for_mshr - for_noc, 0, for_mshr, for_noc};
  }
  /// The same of a request that leaves L1: the latency of L1 is part of that of an L2 hit.
  [[nodiscard]] Before time_before_miss(const Origin& origin, Cycle now) const {
    Before result = time_before(origin, now);
    if (at_tags_) {
      result.l2 = std::min(l1_latency_ - 1, result.l1);
      result.l1 -= result.l2;
    }
    return result;
  }

  const TimingConfig& config_;
  memory::Cache l1_;
  const memory::Cache& l2_;
  std::uint32_t sm_;
  memory::LineGrouper grouper_;
  memory::AtomicRule atomics_;
  std::uint32_t l1_sectors_;
  std::uint32_t l2_sectors_;
  std::uint64_t first_local_line_;
  bool fills_late_;  ///< lines take their place when their data arrive
  bool reserves_;    ///< lines under way keep their place
  bool awaits_stores_;
  std::size_t noc_queue_entries_;
  std::size_t most_sent_before_last_;  ///< packets that a step sends before its last look-up
  std::size_t most_sent_by_arrival_;   ///< packets
  Cycle l1_latency_;
  Cycle shared_latency_;
  std::uint32_t lines_per_turn_;  ///< of loads and stores
  std::size_t pipeline_entries_;  ///< before the tags; 0: none

  Fifo<Entry> queue_;
  Fifo<Request> pipeline_;
  Cycle accepted_ = -1;
  Cycle free_at_ = 0;  ///< for the next turn of the queue
  StackDetail tags_wait_for_ = nothing;
  StackDetail dispatch_waits_for_ = nothing;
  bool retry_ = false;
  bool at_tags_ = false;  ///< a request of the pipeline is being looked up
  Cycle blocked_since_ = 0;
  Cycle waited_for_mshr_ = 0;
  Cycle waited_for_noc_ = 0;
  WaitedFor waited_for_;  ///< in cycles: turns of the queue, and waits for MSHRs and places

  MshrFile<Target> mshrs_;
  std::vector<Load> loads_;
  std::vector<std::uint32_t> free_loads_;
  std::vector<std::uint32_t> completed_;
  std::vector<Fetch> fetches_;
  std::vector<std::uint32_t> free_fetches_;
  Fifo<Outgoing> outbox_;
  Fifo<Packet> packets_;  ///< those of the outbox
  std::vector<Cycle> entered_;
  memory::MemoryTotals totals_;
  std::uint64_t pending_sector_hits_ = 0;
  MissLatency miss_latency_;
  Ticks critical_path_ = 0;
};

}  // namespace warpstack::timing
