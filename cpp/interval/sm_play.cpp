#include "interval/sm_play.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "gpu/latencies.h"
#include "interval/control_clock.h"
#include "interval/phase_times.h"
#include "interval/scoreboard.h"
#include "memory/order/progress.h"
#include "trace/instructions/barrier_steps.h"

namespace warpstack::interval {
namespace {

class Player {
 public:
  Player(const trace::KernelTrace& trace, const WarpLatencies& latencies, const SmUnits& units,
         const gpu::WarpWaits& waits)
      : trace_(trace),
        latencies_(latencies),
        units_(units),
        registers_(trace, waits),
        clock_(trace),
        schedulers_(units.schedulers),
        youngest_first_(units.policy == gpu::Scheduler::gty ? ~std::uint32_t{0} : 0),
        sent_(units.queue_entries) {
    for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
      const trace::StaticInstruction& instruction = trace.instructions()[row];
      const trace::Effects& effects = trace.effects()[row];
      rows_.push_back({.cycles = units.cycles[row],
                       .unit = static_cast<std::uint8_t>(effects.unit),
                       .is_memory = instruction.is_memory(),
                       .uses_caches = instruction.uses_caches(),
                       .ends = !instruction.destinations.empty() ||
                               instruction.kind == trace::MemoryKind::async_copy ||
                               (waits.for_stores && instruction.writes_memory()),
                       .is_at_mbarrier = effects.phase.kind != trace::PhaseStep::Kind::none,
                       .barrier = effects.barrier});
    }
  }

  double run(std::span<const std::uint32_t> blocks) {
    blocks_.resize(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) start(b, blocks[b]);
    for (std::uint32_t w = 0; w < warps_.size(); ++w) look_at(w);
    do {
      while (issue_next()) {
      }
    } while (force());
    return end_;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  struct Row {
    double cycles;
    std::uint8_t unit;  ///< of the scheduler
    bool is_memory;
    bool uses_caches;
    bool ends;  ///< its warp awaits it at its end
    bool is_at_mbarrier;
    trace::BarrierStep barrier;
  };
  struct Block {
    trace::BlockBarriers barriers;
    std::uint32_t unfinished = 0;  ///< warps
    PhaseTimes phases;
    std::vector<std::uint32_t> at_mbarriers;                      ///< warps that wait there
    std::vector<std::pair<std::uint32_t, std::uint8_t>> stopped;  ///< warps, and at which barrier
  };
  struct Warp {
    std::vector<std::byte> scratch;
    trace::ColumnView columns;
    Scoreboard scoreboard;
    ControlClock clock;
    memory::Progress progress;
    std::uint32_t block = 0;
    std::uint32_t scheduler = 0;
    std::size_t next = 0;
    std::size_t next_memory = 0;  ///< of its memory instructions
    double ready = 0;             ///< of its next instruction, whatever that waits for

    /// Whether its next instruction, of this row, accesses memory. A copy of nothing, which fills
    /// with zeros, does not.
    [[nodiscard]] bool accesses(const Row& row) const {
      return row.is_memory && columns.active_mask[next] != 0 &&
             columns.memory_count[next_memory] > 0;
    }
  };
  /// A warp that issues next when its scheduler and a unit are free.
  struct Candidate {
    double ready = never;
    std::uint32_t warp = 0;
    bool is_access = false;
    std::uint8_t unit = 0;
  };
  struct Scheduler {
    double free = 0;
    std::array<double, trace::num_op_classes> units{};
    std::vector<Candidate> candidates;
    double time = never;                ///< no candidate issues before it
    std::uint32_t greedy_for = nobody;  ///< who comes before all others
    std::uint32_t start = 0;            ///< who comes first of these
  };

  void start(std::size_t b, std::uint32_t block) {
    for (std::uint32_t w = 0; w < trace_.blocks().warps(block).size(); ++w) {
      auto warp =
          std::make_unique<Warp>(Warp{{}, {}, Scoreboard(registers_.num_registers()), clock_});
      warp->columns = trace_.warp({block, w}, warp->scratch);
      if (warp->columns.instruction.empty()) continue;
      warp->scoreboard.reset();
      warp->clock.share(&blocks_[b].phases);
      warp->block = static_cast<std::uint32_t>(b);
      warp->scheduler = static_cast<std::uint32_t>(warps_.size() % schedulers_.size());
      ++blocks_[b].unfinished;
      warps_.push_back(std::move(warp));
    }
  }

  /// A warp comes to its next instruction.
  void look_at(std::uint32_t w, bool is_forced = false) {
    Warp& warp = *warps_[w];
    const std::uint32_t row = warp.columns.instruction[warp.next];
    const bool is_active = warp.columns.active_mask[warp.next] != 0;
    double time = warp.ready;
    if (!warp.clock.empty()) {
      if (!is_forced && is_active && !warp.clock.is_known(row)) {
        blocks_[warp.block].at_mbarriers.push_back(w);
        return;
      }
      time = std::max(time, warp.clock.ready(row).time);
    }
    time = std::max(time, warp.scoreboard.ready(registers_.awaited(row)));
    Scheduler& scheduler = schedulers_[warp.scheduler];
    scheduler.candidates.push_back({time, w, warp.accesses(rows_[row]), rows_[row].unit});
    scheduler.time = std::min(scheduler.time, std::max(time, scheduler.free));
  }

  [[nodiscard]] double possible(const Scheduler& scheduler, const Candidate& candidate) const {
    const double free = candidate.is_access ? std::max(sent_[num_sent_ % sent_.size()], accepts_)
                                            : scheduler.units[candidate.unit];
    return std::max({candidate.ready, scheduler.free, free});
  }

  /// A warp's place in the order in which a scheduler chooses.
  [[nodiscard]] std::uint64_t place(const Scheduler& scheduler, std::uint32_t w) const {
    // From who comes after the last one on, where it starts there: those before are past the end.
    const std::uint32_t others = (w ^ youngest_first_) - scheduler.start;
    return w == scheduler.greedy_for ? 0 : std::uint64_t{others} + 1;
  }

  void has_issued(Scheduler& scheduler, std::uint32_t w) const {
    switch (units_.policy) {
      case gpu::Scheduler::gto:
      case gpu::Scheduler::gty:
        scheduler.greedy_for = w;
        break;
      case gpu::Scheduler::lrr:
        scheduler.start = w + 1;
        break;
      case gpu::Scheduler::oldest:
        break;
    }
  }

  /// The scheduler that issues first, as far as is known. At one time each comes first in turn.
  [[nodiscard]] std::size_t first_scheduler() const {
    const std::size_t count = schedulers_.size();
    std::size_t first = 0;
    for (std::size_t s = 1; s < count; ++s) {
      const double time = schedulers_[s].time;
      if (time > schedulers_[first].time || time == never) continue;
      if (time == schedulers_[first].time) {
        // Of a cycle's number, it is whose turn comes first from there on.
        const std::size_t turn = static_cast<std::uint64_t>(time) % count;
        if (first >= turn || s < turn) continue;
      }
      first = s;
    }
    return first;
  }

  /// Issues what can be issued first. Returns whether there is anything.
  bool issue_next() {
    while (true) {
      Scheduler& first = schedulers_[first_scheduler()];
      if (first.time == never) return false;
      double best = never;
      std::uint64_t best_place = ~std::uint64_t{0};
      std::size_t chosen = 0;
      for (std::size_t c = 0; c < first.candidates.size(); ++c) {
        const double here = possible(first, first.candidates[c]);
        if (here > best) continue;
        const std::uint64_t place_here = place(first, first.candidates[c].warp);
        if (here == best && place_here >= best_place) continue;
        best = here;
        best_place = place_here;
        chosen = c;
      }
      // Units may have become busy since it was looked at.
      const bool is_first = best == first.time;
      first.time = best;
      if (!is_first) continue;
      const std::uint32_t w = first.candidates[chosen].warp;
      first.candidates[chosen] = first.candidates.back();
      first.candidates.pop_back();
      if (first.candidates.empty()) first.time = never;
      has_issued(first, w);
      issue(w, best);
      return true;
    }
  }

  void issue(std::uint32_t w, double time) {
    Warp& warp = *warps_[w];
    Scheduler& scheduler = schedulers_[warp.scheduler];
    const std::uint32_t number = warp.columns.instruction[warp.next];
    const Row& row = rows_[number];
    const bool is_active = warp.columns.active_mask[warp.next] != 0;
    scheduler.free = time + units_.issue_interval;
    scheduler.time = std::max(scheduler.time, scheduler.free);
    warp.ready = scheduler.free;
    double latency =
        (warp.progress.goes_back_to(number) ? latencies_.again : latencies_.first)[number];
    const bool is_access = warp.accesses(row);
    if (is_access) {
      accepts_ = time + 1;
      const double begin = std::max(time, unit_free_);
      unit_free_ = begin + row.cycles;
      sent_[num_sent_++ % sent_.size()] = unit_free_;
      latency += begin - time;
      if (row.uses_caches) warp.progress.access(number);
    } else if (row.is_memory) {
      latency = 1;
    } else {
      scheduler.units[row.unit] = time + row.cycles;
    }
    const double done = time + latency;
    if (!warp.clock.empty()) {
      warp.clock.issue(number, time, latency, is_active);
      if (is_access) warp.clock.read_sources(number, unit_free_);
    }
    end_ = std::max(end_, warp.ready);
    if (is_active) {
      warp.scoreboard.write(registers_.destinations(number), done);
      if (row.ends) end_ = std::max(end_, done);
    }
    ++warp.next;
    if (row.is_memory) ++warp.next_memory;
    const bool has_ended = warp.next == warp.columns.instruction.size();
    if (has_ended) --blocks_[warp.block].unfinished;
    const bool waits = meet(w, row, done + 1, has_ended);
    if (!has_ended && !waits) look_at(w);
  }

  /// A warp has issued an instruction, and maybe its last one: whoever waits for it goes on, at
  /// `time` from a barrier. Returns whether it waits at a barrier itself, or did.
  bool meet(std::uint32_t w, const Row& row, double time, bool has_ended) {
    using Kind = trace::BarrierStep::Kind;
    Block& block = blocks_[warps_[w]->block];
    if (row.is_at_mbarrier) {
      std::vector<std::uint32_t> waiting;
      std::swap(waiting, block.at_mbarriers);
      for (const std::uint32_t one : waiting) look_at(one);
    }
    const trace::BarrierStep& step = row.barrier;
    const bool waits = step.kind == Kind::wait && !has_ended;
    if (waits) block.stopped.emplace_back(w, step.number);
    const bool arrives = step.kind == Kind::wait || step.kind == Kind::arrive;
    // A warp that ends is not awaited at barriers of all.
    if (arrives && (!has_ended || step.threads > 0)) block.barriers.arrive(step);
    if (!arrives && !has_ended) return false;
    for (std::uint32_t number = 0; number < trace::num_block_barriers; ++number) {
      if (!block.barriers.is_complete(number, block.unfinished)) continue;
      block.barriers.clear(number);
      release(block, number, time);
    }
    return waits;
  }

  void release(Block& block, std::uint32_t number, double time) {
    std::vector<std::uint32_t> free;
    std::erase_if(block.stopped, [&](const auto& stopped) {
      if (stopped.second == number) free.push_back(stopped.first);
      return stopped.second == number;
    });
    for (const std::uint32_t w : free) {
      warps_[w]->ready = std::max(warps_[w]->ready, time);
      look_at(w);
    }
  }

  /// Lets a warp go on that waits for what was not traced. Returns whether there is one.
  bool force() {
    for (Block& block : blocks_) {
      if (!block.at_mbarriers.empty()) {
        const std::uint32_t w = block.at_mbarriers.front();
        block.at_mbarriers.erase(block.at_mbarriers.begin());
        look_at(w, true);
        return true;
      }
      if (!block.stopped.empty()) {
        release(block, block.stopped.front().second, 0);
        return true;
      }
    }
    return false;
  }

  const trace::KernelTrace& trace_;
  const WarpLatencies& latencies_;
  const SmUnits& units_;
  RegisterTable registers_;
  ControlClock clock_;
  std::vector<Row> rows_;
  std::vector<Scheduler> schedulers_;
  std::uint32_t youngest_first_;  ///< all bits, or none
  /// When the last instructions left the queue of the load-store unit, a ring.
  std::vector<double> sent_;
  std::size_t num_sent_ = 0;
  double accepts_ = 0;    ///< no access before
  double unit_free_ = 0;  ///< the load-store unit
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<Warp>> warps_;  // columns point into their scratch
  double end_ = 0;
};

}  // namespace

double play_blocks(const trace::KernelTrace& trace, std::span<const std::uint32_t> blocks,
                   const WarpLatencies& latencies, const SmUnits& units,
                   const gpu::WarpWaits& waits) {
  return Player(trace, latencies, units, waits).run(blocks);
}

}  // namespace warpstack::interval
