#include "interval/work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "common/error.h"
#include "common/sum.h"

namespace warpstack {
namespace {

/// The SMs while a launch runs. Time is that of warps without contention for memory.
class Launcher {
 public:
  Launcher(const std::vector<std::vector<WarpWork>>& blocks, std::uint64_t num_blocks,
           double issue_rate, const KernelWork::Launch& launch)
      : blocks_(blocks),
        num_blocks_(num_blocks),
        issue_rate_(issue_rate),
        oldest_first_(launch.oldest_first),
        sms_(launch.num_sms) {
    for (std::uint32_t slot = 0; slot < launch.blocks_per_sm; ++slot) {
      for (Sm& sm : sms_) take_block(sm);
    }
  }

  PhaseList run(const InterruptCheck& interrupt) {
    using Event = std::pair<double, std::size_t>;  // time, SM
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    double warps = 0;
    for (std::size_t i = 0; i < sms_.size(); ++i) {
      if (sms_[i].warps.empty()) continue;
      ++active_sms_;
      warps += static_cast<double>(sms_[i].warps.size());
      events.emplace(plan(sms_[i]), i);
    }
    PhaseList result;
    result.first_sms = static_cast<double>(active_sms_);
    result.first_warps = active_sms_ > 0 ? warps / result.first_sms : 0;
    for (std::uint64_t event = 0; !events.empty(); ++event) {
      if (interrupt && event % 4096 == 0) interrupt();
      const auto [now, i] = events.top();
      events.pop();
      Sm& sm = sms_[i];
      advance(sm, now);
      sm.warps[sm.next_done].left = 0;  // whatever rounding left
      remove_finished(sm);
      if (!sm.warps.empty()) {
        events.emplace(plan(sm), i);
        continue;
      }
      for (Sm& other : sms_) advance(other, now);
      --active_sms_;
    }
    for (const auto& [key, sum] : sums_) {
      // A mean over the time of SMs.
      Phase phase = sum.phase;
      phase.warps /= sum.time;
      phase.active_sms /= sum.time;
      result.phases.push_back(phase);
    }
    return result;
  }

 private:
  struct Warp {
    double left;        ///< instructions
    double alone_rate;  ///< instructions per cycle
    double rate;
    std::uint64_t block;
  };
  struct Sm {
    std::vector<Warp> warps;    ///< oldest first
    std::size_t next_done = 0;  ///< position of the warp that will be done first
    double now = 0;
  };
  struct Sum {
    Phase phase{.warps = 0, .active_sms = 0};
    double time = 0;  ///< of SMs
  };

  void take_block(Sm& sm) {
    while (next_block_ < num_blocks_) {
      const std::uint64_t block = next_block_++;
      const std::vector<WarpWork>& warps = blocks_[block % blocks_.size()];
      for (const WarpWork& warp : warps) {
        sm.warps.push_back({warp.instructions, warp.instructions / warp.cycles, 0, block});
      }
      if (!warps.empty()) return;
    }
  }

  /// Shares the issue slots out; returns when the first warp will be done.
  double plan(Sm& sm) const {
    double wanted = 0;
    for (const Warp& warp : sm.warps) wanted += warp.alone_rate;
    double slots = issue_rate_;
    const double share = std::min(slots / wanted, 1.0);
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < sm.warps.size(); ++i) {
      Warp& warp = sm.warps[i];
      warp.rate = oldest_first_ ? std::min(warp.alone_rate, slots) : warp.alone_rate * share;
      slots -= warp.rate;
      // What rounding leaves of the slots is none.
      if (warp.rate < negligible * warp.alone_rate) warp.rate = 0;
      if (warp.rate > 0 && warp.left / warp.rate < next) {
        next = warp.left / warp.rate;
        sm.next_done = i;
      }
    }
    return sm.now + next;
  }

  void advance(Sm& sm, double now) {
    const double cycles = now - sm.now;
    sm.now = now;
    if (cycles <= 0 || sm.warps.empty()) return;
    const auto warps = static_cast<double>(sm.warps.size());
    const auto active = static_cast<double>(active_sms_);
    auto& [phase, time] = sums_[{level(active, 1), level(warps, 2)}];
    time += cycles;
    phase.warps += cycles * warps;
    phase.active_sms += cycles * active;
    for (Warp& warp : sm.warps) {
      const double done = std::min(warp.rate * cycles, warp.left);
      warp.left -= done;
      phase.instructions += done;
      phase.warp_cycles += done / warp.alone_rate;
    }
  }

  void remove_finished(Sm& sm) {
    std::vector<std::uint64_t> finished;
    std::erase_if(sm.warps, [&](const Warp& warp) {
      if (warp.left > negligible) return false;
      finished.push_back(warp.block);
      return true;
    });
    std::ranges::sort(finished);
    const auto repeated = std::ranges::unique(finished);
    finished.erase(repeated.begin(), repeated.end());
    for (const std::uint64_t block : finished) {
      if (std::ranges::find(sm.warps, block, &Warp::block) == sm.warps.end()) take_block(sm);
    }
  }

  /// Counts that differ by less than an octave / `per_octave` are nearly the same.
  static int level(double count, int per_octave) {
    return static_cast<int>(std::lround(per_octave * std::log2(count)));
  }

  static constexpr double negligible = 1e-9;

  const std::vector<std::vector<WarpWork>>& blocks_;
  std::uint64_t num_blocks_;
  double issue_rate_;
  bool oldest_first_;
  std::vector<Sm> sms_;
  std::uint64_t next_block_ = 0;
  std::size_t active_sms_ = 0;
  std::map<std::pair<int, int>, Sum> sums_;
};

}  // namespace

Demands demands_of(const KernelTrace& trace, const MemoryProfile& memory) {
  if (memory.per_row.size() != trace.instructions().size()) {
    throw InputError("the memory profile is of another kernel");
  }
  Demands demands;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const InstructionCounters& counters = memory.per_row[row];
    demands.lsu_cycles += static_cast<double>(counters.requests + counters.shared_wavefronts);
    const auto requests = static_cast<double>(counters.l2_requests);
    const auto bytes = static_cast<double>(counters.l2_request_sectors * sector_bytes);
    if (trace.instructions()[row].uses_caches()) {
      demands.memory_instructions += static_cast<double>(counters.active_executions);
    }
    if (trace.instructions()[row].reads_memory()) {
      demands.read_misses += requests;
      demands.read_bytes += bytes;
      demands.dram_read_requests += static_cast<double>(counters.dram_requests);
    } else {
      demands.write_requests += requests;
      demands.write_bytes += bytes;
    }
  }
  // What L2 writes back is on no instruction's account.
  const std::uint64_t dram_sectors =
      memory.totals[Total::dram_read_sectors] + memory.totals[Total::dram_write_sectors];
  demands.dram_bytes = static_cast<double>(dram_sectors * sector_bytes);
  return demands.per(static_cast<double>(memory.simulated_instructions));
}

Demands demands_of(const IntervalColumns& intervals, double l1_bytes, double l2_bytes) {
  const auto given_or = [](double bytes, double otherwise) {
    return bytes > 0 ? bytes : otherwise;
  };
  Demands demands;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const double reads = intervals.read_misses[i];
    const double writes = intervals.write_requests[i];
    demands.memory_instructions += intervals.memory_instructions[i] + (writes > 0 ? 1 : 0);
    demands.lsu_cycles += std::max(reads + writes, intervals.memory_instructions[i]);
    demands.read_misses += reads;
    demands.read_bytes += reads * given_or(intervals.read_bytes[i], l1_bytes);
    demands.write_requests += writes;
    demands.write_bytes += writes * given_or(intervals.write_bytes[i], l1_bytes);
    demands.dram_read_requests += intervals.dram_read_requests[i];
    demands.dram_bytes += intervals.dram_requests[i] * given_or(intervals.dram_bytes[i], l2_bytes);
  }
  return demands.per(sum(intervals.instructions));
}

Demands Demands::per(double instructions) const {
  if (!(instructions > 0)) return {};
  return {memory_instructions / instructions, lsu_cycles / instructions,
          read_misses / instructions,         read_bytes / instructions,
          write_requests / instructions,      write_bytes / instructions,
          dram_read_requests / instructions,  dram_bytes / instructions};
}

KernelWork::KernelWork(const KernelTrace& trace, const Latencies& latencies, double issue_rate,
                       unsigned num_threads, const InterruptCheck& interrupt)
    : blocks_(trace.blocks().size()),
      num_blocks_(trace.header().num_blocks()),
      issue_rate_(issue_rate) {
  for (const double latency : latencies) {
    if (!std::isfinite(latency)) throw InputError("a latency is not a finite number of cycles");
  }
  if (!(issue_rate > 0) || !std::isfinite(issue_rate)) {
    throw InputError("the issue rate is not a positive number");
  }
  // A block's warps are visited in order, by one thread.
  visit_warps(
      trace, latencies, issue_rate, num_threads, interrupt,
      [this](unsigned, const WarpGroup& warp) {
        blocks_[warp.first.block].push_back({static_cast<double>(warp.instructions), warp.cycles});
      });
}

PhaseList KernelWork::play(const Launch& launch, const InterruptCheck& interrupt) const {
  // Repeats of the traced blocks differ from each other only at the start and at the end.
  constexpr std::uint64_t rounds = 64;
  const std::uint64_t resident = std::uint64_t{launch.num_sms} * launch.blocks_per_sm;
  const std::uint64_t played =
      std::min(num_blocks_, std::max<std::uint64_t>(blocks_.size(), rounds * resident));
  PhaseList result = Launcher(blocks_, played, issue_rate_, launch).run(interrupt);
  const double scale = static_cast<double>(num_blocks_) / static_cast<double>(played);
  for (Phase& phase : result.phases) {
    phase.instructions *= scale;
    phase.warp_cycles *= scale;
  }
  return result;
}

PhaseList phases_of(const IntervalColumns& intervals, std::span<const Wave> waves,
                    double issue_rate) {
  const double instructions = sum(intervals.instructions);
  const double cycles = instructions / issue_rate + sum(intervals.stall_cycles);
  PhaseList result;
  for (const Wave& wave : waves) {
    const double warps = wave.count * wave.total_warps;
    result.phases.push_back({warps * instructions, warps * cycles, wave.warps, wave.active_sms});
  }
  if (!waves.empty()) {
    result.first_warps = waves.front().warps;
    result.first_sms = waves.front().active_sms;
  }
  return result;
}

}  // namespace warpstack
