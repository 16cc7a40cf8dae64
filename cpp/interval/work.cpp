#include "interval/work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "common/error.h"
#include "common/sum.h"
#include "gpu/reference_machine.h"
#include "interval/sm_play.h"
#include "trace/columns/launch_features.h"

namespace warpstack::interval {
namespace {

/// Populations at which a launch is described: the largest that the GPU holds, its halves, 1, and
/// the largest of the launch, which it has most of the time. What lies between two of them is
/// divided over both, so that whatever grows with the population does so here, too.
class Levels {
 public:
  explicit Levels(double most, double reached) {
    for (double level = most; level > 1; level /= 2) levels_.push_back(level);
    levels_.push_back(1);
    const auto below =
        std::ranges::find_if(levels_, [&](double level) { return level <= reached; });
    if (below != levels_.end() && *below < reached) levels_.insert(below, reached);
  }

  struct Place {
    std::size_t upper = 0;
    double share_of_upper = 1;  ///< the next one has the rest
  };
  [[nodiscard]] Place place(double count) const {
    const auto upper = static_cast<std::size_t>(
        std::ranges::partition_point(levels_, [&](double level) { return level >= count; }) -
        levels_.begin());
    // The first level below `count`; the one before it is the upper one.
    if (upper == 0) return {0, 1};
    if (upper == levels_.size() || levels_[upper - 1] == count) return {upper - 1, 1};
    const double above = levels_[upper - 1];
    const double below = levels_[upper];
    return {upper - 1, (count - below) / (above - below)};
  }
  /// Calls `add(level, share)` for the level of a count, or for both beside it.
  template <typename Add>
  void divide(double count, const Add& add) const {
    const auto [upper, share] = place(count);
    add(upper, share);
    if (share < 1) add(upper + 1, 1 - share);
  }
  [[nodiscard]] std::size_t size() const { return levels_.size(); }
  double operator[](std::size_t i) const { return levels_[i]; }

 private:
  std::vector<double> levels_;
};

/// A change of the warps of an SM.
struct Change {
  double time;
  std::uint32_t sm;
  double warps;
};

/// Slots that blocks take one after the other, each for as long as the block takes alone.
class Slots {
 public:
  explicit Slots(std::uint64_t slots) {
    for (std::uint64_t slot = 0; slot < slots; ++slot) free_.push(0);
  }
  /// Gives the slot that is free first to a block that takes so long.
  void take(double cycles) {
    const double end = free_.top() + cycles;
    free_.pop();
    free_.push(end);
    last_ = std::max(last_, end);
  }
  [[nodiscard]] double last() const { return last_; }

 private:
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;
  double last_ = 0;
};

/// Which slot gets the next block: the one that is free first while blocks of an SM share its issue
/// slots, the oldest block before the others, as greedy schedulers do. An SM with more to issue is
/// slower then and gets fewer blocks.
class SharedSlots {
 public:
  SharedSlots(std::uint32_t num_sms, std::uint32_t per_sm, std::uint64_t num_blocks)
      : sms_(num_sms) {
    std::uint64_t free = 0;
    for (std::uint32_t slot = 0; slot < per_sm; ++slot) {
      for (std::uint32_t sm = 0; sm < num_sms && free < num_blocks; ++sm, ++free) {
        events_.push({0, slot, sm, no_block});
      }
    }
  }
  /// The slot and the SM that a block gets which takes so long alone and issues as much.
  std::pair<std::uint32_t, std::uint32_t> take(double cycles, double instructions) {
    while (!is_valid(events_.top())) events_.pop();
    const Event event = events_.top();
    events_.pop();
    RunningSm& sm = sms_[event.sm];
    sm.run_until(event.time);
    if (event.version != no_block) {
      std::erase_if(sm.blocks, [&](const Block& block) { return block.slot == event.slot; });
    }
    sm.blocks.push_back({cycles, instructions / cycles, 0, event.slot});
    sm.share();
    const auto [time, slot] = sm.next_end();
    events_.push({time, slot, event.sm, ++sm.version});
    return {event.slot, event.sm};
  }

 private:
  static constexpr std::uint64_t no_block = 0;

  struct Block {
    double left;   ///< cycles, alone
    double issue;  ///< instructions per cycle, alone
    double speed;  ///< of what it has alone
    std::uint32_t slot;
  };
  struct RunningSm {
    std::vector<Block> blocks;  ///< by age
    double now = 0;
    std::uint64_t version = no_block;

    void run_until(double time) {
      for (Block& block : blocks) block.left -= block.speed * (time - now);
      now = time;
    }
    void share() {
      double left = 1;  // issue slots of a cycle of the reference machine
      for (Block& block : blocks) {
        block.speed = std::min(left / block.issue, 1.0);
        left = std::max(left - block.issue * block.speed, 0.0);
      }
    }
    /// When the first block ends, in whole cycles, so that rounding makes no order.
    [[nodiscard]] std::pair<double, std::uint32_t> next_end() const {
      std::pair first{std::numeric_limits<double>::infinity(), 0U};
      constexpr double rounding = 1e-6;
      for (const Block& block : blocks) {
        if (block.speed == 0) continue;
        const double end = std::ceil(now + std::max(block.left, 0.0) / block.speed - rounding);
        first = std::min(first, {end, block.slot});
      }
      return first;
    }
  };
  struct Event {
    double time;
    std::uint32_t slot;
    std::uint32_t sm;
    std::uint64_t version;  ///< of the SM when it was foreseen, or no block is in the slot
    auto operator<=>(const Event&) const = default;
  };
  [[nodiscard]] bool is_valid(const Event& event) const {
    return event.version == no_block || event.version == sms_[event.sm].version;
  }

  std::vector<RunningSm> sms_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

/// A traced block in sum.
struct BlockWork {
  double instructions = 0;
  double cycles = 0;                            ///< of its longest warp
  double reference_cycles = 0;                  ///< of its longest warp
  double most_instructions = 0;                 ///< of a warp
  std::vector<std::pair<double, double>> ends;  ///< reference cycles, warps that take them
};

BlockWork block_of(const std::vector<WarpWork>& warps) {
  BlockWork block;
  std::map<double, double> ends;
  for (const WarpWork& warp : warps) {
    block.instructions += warp.instructions;
    block.cycles = std::max(block.cycles, warp.cycles);
    block.most_instructions = std::max(block.most_instructions, warp.instructions);
    block.reference_cycles = std::max(block.reference_cycles, warp.reference_cycles);
    ends[warp.reference_cycles] += 1;
  }
  block.ends.assign(ends.begin(), ends.end());
  return block;
}

/// Sums up how long each SM has how many warps beside how many on how many SMs.
class Populations {
 public:
  struct Warps {
    double on_sm = 0;
    double of_all = 0;
  };

  /// `most` are the warps that an SM holds, and all SMs; `reached` those that they have at a time.
  Populations(const Warps& most, const Warps& reached, std::size_t num_sms)
      : on_sm_(most.on_sm, reached.on_sm),
        of_all_(most.of_all, reached.of_all),
        of_busy_(static_cast<double>(num_sms), static_cast<double>(num_sms)),
        passed_(of_all_.size() * of_busy_.size()),
        sms_(num_sms, SmProgress{std::vector<double>(passed_.size()), {}}) {}

  /// Changes in the order of time.
  void add(const Change& change) {
    if (const double cycles = change.time - now_; cycles > 0 && all_ > 0) {
      of_all_.divide(all_, [&](std::size_t all, double share) {
        of_busy_.divide(busy_, [&](std::size_t busy, double other_share) {
          passed_[all * of_busy_.size() + busy] += share * other_share * cycles;
        });
      });
    }
    now_ = change.time;
    SmProgress& sm = sms_[change.sm];
    settle(sm);
    busy_ -= sm.warps > 0;
    sm.warps += change.warps;
    busy_ += sm.warps > 0;
    all_ += change.warps;
  }

  /// The phases in which there was any time, and the time of each SM in each; and those of the
  /// start, when so many SMs were busy.
  void take(double scale, double first_busy, PhaseList& launch) {
    std::map<std::size_t, std::size_t> phase_of;
    for (const SmProgress& sm : sms_) {
      for (const auto& [key, cycles] : sm.cycles) phase_of.try_emplace(key, 0);
    }
    for (auto& [key, phase] : phase_of) {
      phase = launch.phases.size();
      const double warps = on_sm_[key % on_sm_.size()];
      const std::size_t others = key / on_sm_.size();
      launch.phases.push_back({warps, std::max(of_all_[others / of_busy_.size()], warps),
                               of_busy_[others % of_busy_.size()]});
    }
    for (std::size_t i = 0; i < sms_.size(); ++i) {
      launch.sms[i].depth.assign(launch.phases.size(), 0);
      for (const auto& [key, cycles] : sms_[i].cycles) {
        launch.sms[i].depth[phase_of[key]] = scale * cycles;
      }
    }
    launch.at_start.assign(launch.phases.size(), 0);
    of_all_.divide(launch.first_all_warps, [&](std::size_t all, double of_all) {
      of_busy_.divide(first_busy, [&](std::size_t busy, double of_busy) {
        const std::size_t own = on_sm_.place(launch.first_warps).upper;
        const std::size_t key = (all * of_busy_.size() + busy) * on_sm_.size() + own;
        launch.at_start[phase_of.at(key)] += of_all * of_busy;
      });
    });
  }

 private:
  struct SmProgress {
    std::vector<double> passed;  ///< until its last change
    std::vector<std::pair<std::size_t, double>> cycles;
    double warps = 0;
  };

  /// Counts the time since the last change of an SM.
  void settle(SmProgress& sm) {
    for (std::size_t others = 0; others < passed_.size(); ++others) {
      const double cycles = passed_[others] - sm.passed[others];
      sm.passed[others] = passed_[others];
      if (cycles == 0 || sm.warps == 0) continue;
      on_sm_.divide(sm.warps, [&](std::size_t own, double share) {
        at(sm, others * on_sm_.size() + own) += share * cycles;
      });
    }
  }
  static double& at(SmProgress& sm, std::size_t key) {
    const auto found = std::ranges::find(sm.cycles, key, &std::pair<std::size_t, double>::first);
    if (found != sm.cycles.end()) return found->second;
    return sm.cycles.emplace_back(key, 0.0).second;
  }

  Levels on_sm_;
  Levels of_all_;
  Levels of_busy_;
  std::vector<double> passed_;  ///< cycles so far at each level of all warps and of busy SMs
  std::vector<SmProgress> sms_;
  double now_ = 0;
  double all_ = 0;   ///< warps
  double busy_ = 0;  ///< SMs that have some
};

bool at_least(const SmWork& a, const SmWork& b) {
  return a.instructions >= b.instructions && a.drain_cycles >= b.drain_cycles &&
         a.drain_instructions >= b.drain_instructions && a.rounds >= b.rounds &&
         a.round_instructions >= b.round_instructions &&
         std::ranges::equal(a.depth, b.depth, std::greater_equal<>());
}

/// Leaves out SMs that cannot be the last: another one has at least as much of everything.
void leave_out_dominated(std::vector<SmWork>& sms) {
  std::vector<SmWork> kept;
  for (SmWork& sm : sms) {
    if (std::ranges::any_of(kept, [&](const SmWork& other) { return at_least(other, sm); })) {
      continue;
    }
    std::erase_if(kept, [&](const SmWork& other) { return at_least(sm, other); });
    kept.push_back(std::move(sm));
  }
  sms = std::move(kept);
}

/// Cycles of a scheduler's tensor cores per warp instruction.
double tensor_cycles_of(const trace::KernelTrace& trace, const gpu::TensorUnit& tensor) {
  double cycles = 0;
  double instructions = 0;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const auto issued = static_cast<double>(trace.row_counts()[row].issued);
    instructions += issued;
    if (trace.instructions()[row].op_class != trace::OpClass::tensor) continue;
    cycles += issued * tensor.cycles(trace.effects()[row].tensor);
  }
  return instructions > 0 ? cycles / instructions : 0;
}

/// Cycles until the warp's next matrix instruction may issue after that of `row` if nothing but
/// control fields holds it up; `most` if no fewer.
double distance_to_product(const trace::KernelTrace& trace, std::size_t row, double most) {
  double distance = 0;
  do {
    const std::optional<trace::Control>& control = trace.instructions()[row].control;
    if (!control) return 0;
    distance += control->issue_distance();
    ++row;
  } while (distance < most && row < trace.instructions().size() &&
           trace.instructions()[row].op_class != trace::OpClass::tensor);
  return std::min(distance, most);
}

/// Of the cycles of `tensor_cycles_of`, those that the control fields of machine code keep a warp
/// from its next matrix instruction anyway: the compiler spaces these as the tensor cores take
/// them.
double spaced_tensor_cycles_of(const trace::KernelTrace& trace, const gpu::TensorUnit& tensor) {
  if (!trace.has_control()) return 0;
  double cycles = 0;
  double instructions = 0;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const auto issued = static_cast<double>(trace.row_counts()[row].issued);
    instructions += issued;
    if (issued == 0 || trace.instructions()[row].op_class != trace::OpClass::tensor) continue;
    const double busy = tensor.cycles(trace.effects()[row].tensor);
    cycles += issued * distance_to_product(trace, row, busy);
  }
  return instructions > 0 ? cycles / instructions : 0;
}

/// Instructions of each unit per warp instruction.
std::array<double, trace::num_op_classes> unit_instructions_of(const trace::KernelTrace& trace) {
  std::array<double, trace::num_op_classes> counts{};
  double instructions = 0;
  for (const trace::RowCounts& row : trace.row_counts()) {
    instructions += static_cast<double>(row.issued);
  }
  std::ranges::copy(trace::launch_features(trace).units, counts.begin());
  for (double& count : counts) count /= std::max(instructions, 1.0);
  return counts;
}

/// The share of a block's warps that wait for each other at a barrier, in the mean over the waits;
/// 1 where all barriers are of all warps.
double share_at_barriers(const trace::KernelTrace& trace) {
  const double warps = std::max(static_cast<double>(trace.header().warps_per_block()), 1.0);
  double waits = 0;
  double shares = 0;
  bool has_parts = false;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const trace::BarrierStep& step = trace.effects()[row].barrier;
    if (step.kind != trace::BarrierStep::Kind::wait) continue;
    const auto issued = static_cast<double>(trace.row_counts()[row].issued);
    const double share =
        step.threads == 0 ? 1 : std::min(std::ceil(step.threads / 32.0) / warps, 1.0);
    waits += issued;
    shares += issued * share;
    has_parts = has_parts || (issued > 0 && share < 1);
  }
  return has_parts ? shares / waits : 1;
}

/// Kernels with matrix instructions fill shared memory and multiply in turn, with barriers between.
double warps_in_step_of(const trace::KernelTrace& trace) {
  if (!keeps_step(trace)) return 1;
  return std::max(trace.working_warps_per_block() * share_at_barriers(trace), 1.0);
}

/// Whether a load goes past L1. What a generic load finds in local memory L1 keeps, too; it counts
/// as what such loads mostly find.
bool passes_l1(const trace::StaticInstruction& load, gpu::GlobalLoads global_loads) {
  if (load.cache_operator == trace::CacheOperator::bypass_l1) return true;
  return global_loads == gpu::GlobalLoads::bypassed &&
         load.cache_operator != trace::CacheOperator::read_only &&
         load.space != trace::MemorySpace::local;
}

/// What the channel moves that moves most, over the mean of all; neighbouring slices share one.
double imbalance_of(std::span<const std::uint64_t> slice_sectors, std::uint32_t channels) {
  if (channels == 0 || slice_sectors.size() % channels != 0) return 1;
  const std::size_t sharers = slice_sectors.size() / channels;
  std::uint64_t all = 0;
  std::uint64_t most = 0;
  for (std::size_t first = 0; first < slice_sectors.size(); first += sharers) {
    std::uint64_t here = 0;
    for (const std::uint64_t sectors : slice_sectors.subspan(first, sharers)) here += sectors;
    all += here;
    most = std::max(most, here);
  }
  return all == 0 ? 1 : static_cast<double>(most) * channels / static_cast<double>(all);
}

/// Cycles of the load-store unit by what takes them.
struct UnitCycles {
  double all = 0;
  double tags = 0;       ///< of further lines, and of passes over the banks of L1
  double shared = 0;     ///< of shared memory, without bank conflicts
  double conflicts = 0;  ///< of further turns through it
};

/// Turns of an instruction through shared memory that it needs whatever the banks: these move 128
/// bytes, 4 of each of 32 lanes.
double turns_without_conflicts(const trace::StaticInstruction& instruction,
                               const memory::InstructionCounters& counters) {
  constexpr double bytes_of_bank = 4;
  const double of_access = std::max(std::ceil(instruction.width / bytes_of_bank), 1.0);
  return std::min(of_access * static_cast<double>(counters.active_executions),
                  static_cast<double>(counters.shared_wavefronts));
}

/// Cycles of the load-store unit for all executions of an instruction. What takes an execution
/// longest, the interval, the tags, or the banks of L1, is known by their means.
double lsu_cycles_of(const trace::StaticInstruction& instruction,
                     const memory::InstructionCounters& counters, double per_sector,
                     const DemandOptions& options) {
  const double lines = per_sector > 0 ? per_sector * static_cast<double>(counters.sectors)
                                      : static_cast<double>(counters.requests);
  const auto passes = static_cast<double>(counters.shared_wavefronts);
  double cycles = lines + passes * options.shared_wavefront_cycles;
  if (passes > 0 && instruction.is_atomic()) return cycles;
  if (options.l1_tags_per_cycle > 0 && instruction.uses_caches() && !instruction.is_atomic()) {
    cycles = std::max(static_cast<double>(counters.l1_passes), lines / options.l1_tags_per_cycle);
  }
  return std::max(cycles, options.lsu_interval * static_cast<double>(counters.active_executions));
}

/// The same by what takes them.
UnitCycles unit_cycles_of(const trace::StaticInstruction& instruction,
                          const memory::InstructionCounters& counters, double per_sector,
                          const DemandOptions& options) {
  UnitCycles cycles{.all = lsu_cycles_of(instruction, counters, per_sector, options)};
  const auto passes = static_cast<double>(counters.shared_wavefronts);
  if (passes > 0) {
    const double further = passes - turns_without_conflicts(instruction, counters);
    cycles.conflicts = std::min(further * options.shared_wavefront_cycles, cycles.all);
    cycles.shared = cycles.all - cycles.conflicts;
  } else {
    const double turns = options.lsu_interval * static_cast<double>(counters.active_executions);
    cycles.tags = std::max(cycles.all - turns, 0.0);
  }
  return cycles;
}

RowWait row_wait_of(const trace::StaticInstruction& instruction, const trace::Effects& effects,
                    const memory::InstructionCounters& counters, const DemandOptions& options) {
  RowWait wait{.is_shared = instruction.is_memory() && !instruction.uses_caches(),
               .is_barrier = effects.is_block_barrier};
  if (wait.is_shared && counters.active_executions > 0) {
    const auto executions = static_cast<double>(counters.active_executions);
    const auto passes = static_cast<double>(counters.shared_wavefronts);
    const double further = (passes - turns_without_conflicts(instruction, counters)) / executions;
    const double latency =
        options.shared_latency + (passes / executions - 1) * options.shared_wavefront_cycles;
    wait.conflicts = std::clamp(further * options.shared_wavefront_cycles / latency, 0.0, 1.0);
  }
  return wait;
}

}  // namespace

bool keeps_step(const trace::KernelTrace& trace) {
  bool has_barriers = false;
  bool multiplies = false;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    if (trace.row_counts()[row].issued == 0) continue;
    const trace::StaticInstruction& instruction = trace.instructions()[row];
    has_barriers = has_barriers || trace.effects()[row].is_block_barrier;
    multiplies = multiplies || instruction.op_class == trace::OpClass::tensor;
  }
  return has_barriers && multiplies;
}

SmUnits SmUnits::of(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                    const gpu::Gpu& gpu) {
  const DemandOptions options = DemandOptions::of(gpu);
  const auto intervals = gpu::class_intervals(gpu);
  SmUnits units;
  units.schedulers = gpu.num_schedulers();
  units.issue_interval = units.schedulers / static_cast<double>(gpu.issue_width);
  units.queue_entries = gpu.lsu_queue_entries;
  units.policy = gpu.scheduler;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const trace::StaticInstruction& instruction = trace.instructions()[row];
    double cycles = 0;
    if (instruction.is_memory()) {
      const memory::InstructionCounters& counters = memory.per_row[row];
      const double per_sector =
          instruction.is_atomic() && !memory.atomic_lanes.empty() ? memory.atomic_lanes[row] : 0;
      const auto executions = static_cast<double>(counters.active_executions);
      if (executions > 0) {
        cycles = lsu_cycles_of(instruction, counters, per_sector, options) / executions;
      }
    } else if (instruction.op_class == trace::OpClass::tensor) {
      cycles = options.tensor.cycles(trace.effects()[row].tensor);
    } else {
      cycles = intervals[static_cast<std::size_t>(trace.effects()[row].unit)];
    }
    units.cycles.push_back(cycles);
  }
  return units;
}

ResourceDemands demands_of(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                           const DemandOptions& options) {
  if (memory.per_row.size() != trace.instructions().size()) {
    throw InputError("the memory profile is of another kernel");
  }
  ResourceDemands demands;
  double missing_lines = 0;
  bool has_atomics = false;
  std::vector<RowWait> row_waits;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const trace::StaticInstruction& instruction = trace.instructions()[row];
    const memory::InstructionCounters& counters = memory.per_row[row];
    // An atomic's sectors may have requests of their own, a line of others has one.
    const double per_sector =
        instruction.is_atomic() && !memory.atomic_lanes.empty() ? memory.atomic_lanes[row] : 0;
    const auto sectors = static_cast<double>(counters.l2_request_sectors);
    const double requests =
        per_sector > 0 ? per_sector * sectors : static_cast<double>(counters.l2_requests);
    const double bytes = (per_sector > 0 ? requests : sectors) * trace::sector_bytes;
    const UnitCycles unit = unit_cycles_of(instruction, counters, per_sector, options);
    demands.lsu_cycles += unit.all;
    demands.tag_cycles += unit.tags;
    demands.shared_cycles += unit.shared;
    demands.conflict_cycles += unit.conflicts;
    row_waits.push_back(row_wait_of(instruction, trace.effects()[row], counters, options));
    has_atomics = has_atomics || (instruction.is_atomic() && counters.l2_requests > 0);
    if (instruction.reads_memory()) {
      if (instruction.uses_caches()) {
        demands.loads += static_cast<double>(counters.active_executions);
      }
      demands.read_misses += requests;
      if (passes_l1(instruction, options.global_loads)) demands.misses_past_l1 += requests;
      demands.read_bytes += bytes;
      demands.dram_read_requests += static_cast<double>(counters.dram_requests);
    } else {
      demands.write_requests += requests;
      demands.write_bytes += bytes;
      if (instruction.kind != trace::MemoryKind::atomic &&
          !(options.waits.for_atomics && instruction.is_atomic())) {
        demands.posted_requests += requests;
        demands.posted_bytes += bytes;
      }
    }
    if (instruction.reads_memory() || instruction.kind == trace::MemoryKind::atomic) {
      demands.missing_loads += static_cast<double>(counters.events[1] + counters.events[2]);
      missing_lines += requests;
    }
  }
  if (demands.missing_loads > 0) missing_lines /= demands.missing_loads;
  // What L2 writes back is on no instruction's account.
  const auto bytes_of = [&memory](memory::Total sectors) {
    return static_cast<double>(memory.totals[sectors] * trace::sector_bytes);
  };
  demands.dram_write_bytes = bytes_of(memory::Total::dram_write_sectors);
  demands.dram_bytes = bytes_of(memory::Total::dram_read_sectors) + demands.dram_write_bytes;
  demands.hit_bytes = bytes_of(memory::Total::l2_read_sector_hits) +
                      bytes_of(memory::Total::l2_write_sector_hits) +
                      bytes_of(memory::Total::l2_atomic_sector_hits);
  for (const double turns : memory.slice_turns) demands.slice_turns += turns;
  if (has_atomics) {
    const double requests = demands.read_misses + demands.write_requests;
    demands.atomic_turns = std::max(demands.slice_turns - requests, 0.0);
  }
  demands.row_waits = std::make_shared<const std::vector<RowWait>>(std::move(row_waits));
  if (!memory.slice_turns.empty()) {
    demands.hottest_slice_turns =
        std::ranges::max(memory.slice_turns) * static_cast<double>(memory.slice_turns.size());
  }
  demands.crowded_slice_turns = demands.slice_turns * memory.slice_crowding;
  demands.dram_imbalance = imbalance_of(memory.slice_dram_sectors, options.dram_channels);
  demands.most_read_bytes = static_cast<double>(memory.most_read_sectors * trace::sector_bytes);
  demands.place_wait_l2 = static_cast<double>(memory.place_wait_cycles[0]);
  demands.place_wait_dram = static_cast<double>(memory.place_wait_cycles[1]);
  demands = demands.per(static_cast<double>(memory.simulated_instructions));
  demands.tensor_cycles = tensor_cycles_of(trace, options.tensor);
  demands.spaced_tensor_cycles = spaced_tensor_cycles_of(trace, options.tensor);
  demands.unit_instructions = unit_instructions_of(trace);
  demands.warps_in_step = warps_in_step_of(trace);
  demands.missing_lines = std::max(missing_lines, 1.0);
  demands.code = memory::longest_walk(trace, options.code);
  return demands;
}

ResourceDemands demands_of(const IntervalColumns& intervals, double l1_bytes, double l2_bytes) {
  const auto given_or = [](double bytes, double otherwise) {
    return bytes > 0 ? bytes : otherwise;
  };
  ResourceDemands demands;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const double reads = intervals.read_misses[i];
    const double writes = intervals.write_requests[i];
    demands.loads += intervals.memory_instructions[i];
    demands.lsu_cycles += std::max(reads + writes, intervals.memory_instructions[i]);
    demands.read_misses += reads;
    demands.read_bytes += reads * given_or(intervals.read_bytes[i], l1_bytes);
    demands.write_requests += writes;
    demands.write_bytes += writes * given_or(intervals.write_bytes[i], l1_bytes);
    demands.dram_read_requests += intervals.dram_read_requests[i];
    demands.dram_bytes += intervals.dram_requests[i] * given_or(intervals.dram_bytes[i], l2_bytes);
    demands.missing_loads += std::min(reads, intervals.memory_instructions[i]);
  }
  demands.posted_requests = demands.write_requests;
  demands.posted_bytes = demands.write_bytes;
  demands.hit_bytes = std::max(demands.read_bytes + demands.write_bytes - demands.dram_bytes, 0.0);
  demands.slice_turns = demands.read_misses + demands.write_requests;
  demands.hottest_slice_turns = demands.crowded_slice_turns = demands.slice_turns;
  return demands.per(sum(intervals.instructions));
}

ResourceDemands ResourceDemands::per(double instructions) const {
  if (!(instructions > 0)) return {};
  ResourceDemands result = *this;
  for (double* sum : {&result.loads,
                      &result.lsu_cycles,
                      &result.tag_cycles,
                      &result.shared_cycles,
                      &result.conflict_cycles,
                      &result.atomic_turns,
                      &result.read_misses,
                      &result.misses_past_l1,
                      &result.read_bytes,
                      &result.write_requests,
                      &result.write_bytes,
                      &result.posted_requests,
                      &result.posted_bytes,
                      &result.dram_read_requests,
                      &result.dram_bytes,
                      &result.dram_write_bytes,
                      &result.missing_loads,
                      &result.hit_bytes,
                      &result.slice_turns,
                      &result.hottest_slice_turns,
                      &result.crowded_slice_turns,
                      &result.most_read_bytes,
                      &result.place_wait_l2,
                      &result.place_wait_dram}) {
    *sum /= instructions;
  }
  return result;
}

WarpLatencies reference_latencies(const trace::KernelTrace& trace,
                                  const memory::MemoryProfile& memory) {
  using Reference = gpu::ReferenceMachine;
  constexpr double normal = Reference::normal;
  constexpr gpu::MemoryLatencies levels = {
      .l1 = normal, .l2 = Reference::l2, .dram = Reference::dram};
  gpu::ClassLatencies classes;
  classes.of_class.fill(normal);
  classes.shared_memory = normal;
  return warp_latencies(trace, memory, latencies(trace, memory, classes, levels), levels);
}

KernelWork::KernelWork(const trace::KernelTrace& trace, const WarpLatencies& latencies,
                       const WarpLatencies& reference, double issue_rate, unsigned num_threads,
                       const InterruptCheck& interrupt, const gpu::WarpWaits& waits)
    : blocks_(trace.blocks().size()),
      num_blocks_(trace.header().num_blocks()),
      warps_wait_for_stores_(waits.for_stores),
      share_at_barriers_(share_at_barriers(trace)) {
  for (const Latencies* given :
       {&latencies.first, &latencies.again, &reference.first, &reference.again}) {
    for (const double latency : *given) {
      if (!std::isfinite(latency)) throw InputError("a latency is not a finite number of cycles");
    }
  }
  if (!(issue_rate > 0) || !std::isfinite(issue_rate)) {
    throw InputError("the issue rate is not a positive number");
  }
  const WarpKinds kinds(trace, interrupt);
  visit_warps(
      trace, kinds, reference, 1, num_threads, interrupt,
      [this](const WarpGroup& warp) {
        blocks_[warp.first.block].push_back({.instructions = static_cast<double>(warp.instructions),
                                             .reference_cycles = warp.cycles});
      },
      {.awaits_results = true, .waits = waits, .barriers_stop_warps = true});
  std::vector<std::size_t> next(blocks_.size());
  visit_warps(
      trace, kinds, latencies, issue_rate, num_threads, interrupt,
      [this, &next](const WarpGroup& warp) {
        const std::size_t block = warp.first.block;
        WarpWork& work = blocks_[block][next[block]++];
        work.cycles = warp.cycles;
        work.store_cycles = warp.store_cycles;
        for (std::size_t unit = 0; unit < off_units_.size(); ++unit) {
          off_units_[unit] += (*warp.off_units)[unit];
        }
      },
      {.awaits_results = true, .waits = waits, .barriers_stop_warps = true, .off_units = true});
}

PhaseList KernelWork::play(std::uint32_t num_sms, std::uint32_t blocks_per_sm,
                           const InterruptCheck& interrupt) const {
  std::vector<BlockWork> blocks;
  double instructions = 0;
  double cycles = 0;
  double reference_cycles = 0;
  double most_warps = 1;
  double num_warps = 0;
  PhaseList launch;
  for (const auto& warps : blocks_) {
    blocks.push_back(block_of(warps));
    for (const WarpWork& warp : warps) {
      ++num_warps;
      instructions += warp.instructions;
      cycles += warp.cycles;
      reference_cycles += warp.reference_cycles;
      if (warps_wait_for_stores_) {
        launch.store_cycles += warp.store_cycles;
      } else {
        launch.after_stores = std::max(launch.after_stores, warp.store_cycles);
      }
    }
    most_warps = std::max(most_warps, static_cast<double>(warps.size()));
  }
  if (!(instructions > 0)) return launch;
  launch.store_cycles /= instructions;
  for (std::size_t unit = 0; unit < off_units_.size(); ++unit) {
    launch.off_units[unit] = off_units_[unit].mean(instructions);
  }
  launch.accessing = off_units_[0].warps / num_warps;
  // Repeats of the traced blocks differ from each other only at the start and at the end.
  constexpr std::uint64_t rounds = 64;
  const std::uint64_t resident = std::uint64_t{num_sms} * blocks_per_sm;
  const std::uint64_t played =
      std::min(num_blocks_, std::max<std::uint64_t>(blocks.size(), rounds * resident));
  const double scale = static_cast<double>(num_blocks_) / static_cast<double>(played);

  launch.alone_cycles = cycles / instructions;
  launch.sms.resize(static_cast<std::size_t>(std::min<std::uint64_t>(num_sms, played)));
  SharedSlots slots(num_sms, blocks_per_sm, played);
  std::vector<double> free_at(resident);
  std::vector<double> rounds_of(resident);
  std::vector<double> in_sm(launch.sms.size());
  std::vector<std::vector<std::uint32_t>> first_blocks(launch.sms.size());
  Slots alone(std::min(resident, played));
  std::vector<Change> changes;
  std::uint64_t in_places = 0;
  double longest = 0;
  for (std::uint64_t b = 0; b < played; ++b) {
    if (interrupt && b % 4096 == 0) interrupt();
    const BlockWork& block = blocks[b % blocks.size()];
    if (block.ends.empty()) continue;
    alone.take(block.cycles);
    ++in_places;
    longest += block.most_instructions;
    const auto [slot, sm] = slots.take(block.reference_cycles, block.instructions);
    const std::size_t place = std::size_t{slot} * num_sms + sm;
    double& free = free_at[place];
    const double start = std::exchange(free, free + block.reference_cycles);
    for (const auto& [after, warps] : block.ends) {
      changes.push_back({start, sm, warps});
      changes.push_back({start + after, sm, -warps});
    }
    if (start == 0) first_blocks[sm].push_back(static_cast<std::uint32_t>(b % blocks.size()));
    SmWork& work = launch.sms[sm];
    work.instructions += scale * block.instructions;
    ++in_sm[sm];
    work.rounds = std::max(work.rounds, scale * ++rounds_of[place]);
    work.drain_cycles = std::max(work.drain_cycles, block.cycles / 2);
    work.drain_instructions = std::max(work.drain_instructions, block.most_instructions / 2);
    launch.instructions += scale * block.instructions;
  }
  launch.span = scale * alone.last();
  if (in_places > resident) {
    launch.replacements = static_cast<double>(in_places - resident) / longest;
  }
  std::ranges::stable_sort(changes, {}, &Change::time);
  const double most_on_sm = most_warps * blocks_per_sm;
  std::vector<double> first(launch.sms.size());
  std::vector<double> there(launch.sms.size());
  std::vector<double> most(launch.sms.size(), 1);
  double all = 0;
  double most_of_all = 0;
  for (const Change& change : changes) {
    if (change.time == 0) {
      first[change.sm] += change.warps;
      launch.first_all_warps += change.warps;
    }
    there[change.sm] += change.warps;
    most[change.sm] = std::max(most[change.sm], there[change.sm]);
    all += change.warps;
    most_of_all = std::max(most_of_all, all);
  }
  Populations populations({most_on_sm, most_on_sm * num_sms}, {std::ranges::max(most), most_of_all},
                          launch.sms.size());
  for (const Change& change : changes) populations.add(change);
  for (std::size_t i = 0; i < most.size(); ++i) {
    launch.sms[i].drain_cycles *= 1 - 1 / most[i];
    launch.sms[i].drain_instructions *= 1 - 1 / most[i];
    const double blocks_of_sm = scale * in_sm[i];
    launch.sms[i].round_instructions =
        blocks_of_sm > 0
            ? launch.sms[i].instructions / blocks_of_sm * launch.sms[i].rounds * share_at_barriers_
            : 0;
  }
  launch.first_warps = std::ranges::max(first);
  // A mean instruction takes so long on the reference machine.
  const auto first_busy = std::ranges::count_if(first, [](double warps) { return warps > 0; });
  populations.take(scale * instructions / reference_cycles, static_cast<double>(first_busy),
                   launch);
  launch.mean_depth.assign(launch.phases.size(), 0);
  for (const SmWork& sm : launch.sms) {
    for (std::size_t p = 0; p < launch.phases.size(); ++p) {
      launch.mean_depth[p] += sm.depth[p] / static_cast<double>(launch.sms.size());
    }
  }
  const auto fullest = std::ranges::max_element(launch.sms, {}, &SmWork::instructions);
  launch.first_blocks = std::move(first_blocks[fullest - launch.sms.begin()]);
  leave_out_dominated(launch.sms);
  return launch;
}

std::uint32_t KernelWork::longest_first(const PhaseList& launch) const {
  return std::ranges::max(launch.first_blocks, {}, [this](std::uint32_t block) {
    return block_of(blocks_[block]).reference_cycles;
  });
}

void KernelWork::put_in_step(PhaseList& launch, double one, double all) const {
  double instructions = 0;
  double reference_cycles = 0;
  double most_warps = 1;
  for (const auto& warps : blocks_) {
    for (const WarpWork& warp : warps) {
      instructions += warp.instructions;
      reference_cycles += warp.reference_cycles;
    }
    most_warps = std::max(most_warps, static_cast<double>(warps.size()));
  }
  const double longest = block_of(blocks_[longest_first(launch)]).reference_cycles;
  const double depth = longest * instructions / reference_cycles;
  const auto count = static_cast<double>(launch.first_blocks.size());
  for (Phase& phase : launch.phases) {
    const double blocks = std::clamp(phase.warps / most_warps, 1.0, count);
    const double share = count > 1 ? (blocks - 1) / (count - 1) : 0;
    phase.in_step = (one + share * (all - one)) / depth;
  }
  // Who waits for whom is not known there.
  launch.has_latest_end = false;
}

PhaseList phases_of(const IntervalColumns& intervals, std::span<const Wave> waves,
                    double issue_rate) {
  const double instructions = sum(intervals.instructions);
  const double cycles = instructions / issue_rate + sum(intervals.stall_cycles);
  PhaseList launch;
  launch.alone_cycles = cycles / instructions;
  SmWork& sm = launch.sms.emplace_back();
  for (const Wave& wave : waves) {
    launch.phases.push_back(
        {wave.warps, std::max(wave.total_warps, wave.warps), std::max(wave.active_sms, 1.0)});
    sm.depth.push_back(wave.count * instructions);
    launch.instructions += wave.count * wave.total_warps * instructions;
    launch.span += wave.count * cycles;
  }
  if (!waves.empty()) {
    launch.first_warps = waves.front().warps;
    launch.first_all_warps = waves.front().total_warps;
  }
  launch.mean_depth = sm.depth;
  launch.at_start.assign(launch.phases.size(), 0);
  if (!waves.empty()) launch.at_start.front() = 1;
  return launch;
}

}  // namespace warpstack::interval
