#include "interval/interval.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "common/error.h"
#include "gpu/latencies.h"
#include "gpu/reference_machine.h"
#include "interval/control_clock.h"
#include "interval/phase_times.h"
#include "interval/scoreboard.h"
#include "memory/order/progress.h"

namespace warpstack::interval {
namespace {

/// Issue steps such as 1/3 accumulate rounding errors, which are not stalls.
constexpr double rounding = 1e-6;

/// Cycles of a warp alone on an SM.
struct WarpCycles {
  double all = 0;
  double for_stores = 0;  ///< at the end; of the launch, where warps do not wait
};

/// Runs warps alone on an SM.
class LoneWarp {
 public:
  LoneWarp(const trace::KernelTrace& trace, const RegisterTable& registers,
           const WarpLatencies& latencies, double issue_step, const VisitOptions& options)
      : registers_(registers),
        latencies_(latencies),
        issue_step_(issue_step),
        scoreboard_(registers.num_registers()),
        control_(trace),
        ends_with_stores_(options.waits.for_stores) {
    const bool awaits = options.waits.for_stores || options.waits.launch_waits_for_stores;
    for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
      const trace::StaticInstruction& instruction = trace.instructions()[row];
      rows_.push_back({.is_awaited = awaits && instruction.writes_memory(),
                       .has_result = options.awaits_results &&
                                     (!instruction.destinations.empty() ||
                                      instruction.kind == trace::MemoryKind::async_copy),
                       .is_access = instruction.is_memory(),
                       .is_cached = instruction.uses_caches(),
                       .is_barrier = trace.effects()[row].is_block_barrier,
                       .unit = instruction.is_memory()
                                   ? 0
                                   : 1 + static_cast<std::size_t>(trace.effects()[row].unit)});
      if (trace.row_counts()[row].issued == 0) continue;
      units_[rows_.back().unit] =
          instruction.is_memory() || gpu::has_interval(trace.effects()[row].unit);
    }
  }

  WarpCycles run(const trace::ColumnView& warp) {
    find_repeats(warp);
    const Stretch whole = run(warp, 0, warp.instruction.size());
    const double done = std::max(whole.last_issue + issue_step_, whole.results);
    return {end_of(whole), std::max(whole.stored - done, 0.0)};
  }

  /// By unit, after run() of the same warp.
  TimesOffUnits off_units(const trace::ColumnView& warp) {
    TimesOffUnits off;
    for (std::size_t unit = 0; unit < off.size(); ++unit) {
      if (units_[unit]) off[unit] = off_unit(warp, unit);
    }
    return off;
  }

 private:
  struct Row {
    bool is_awaited;
    bool has_result;
    bool is_access;
    bool is_cached;
    bool is_barrier;
    std::size_t unit;  ///< as in TimesOffUnits
  };
  struct Stretch {
    double last_issue = 0;
    // When the last one is there that the warp waits for at its end:
    double results = 0;
    double stored = 0;
  };

  /// Whether an instruction keeps a unit busy; the load-store unit only with active lanes.
  [[nodiscard]] bool is_at(std::size_t unit, const trace::ColumnView& warp, std::size_t k) const {
    const Row& row = rows_[warp.instruction[k]];
    return row.unit == unit && (!row.is_access || warp.active_mask[k] != 0);
  }

  TimeOffUnit off_unit(const trace::ColumnView& warp, std::size_t unit) {
    TimeOffUnit off;
    const std::size_t size = warp.instruction.size();
    std::size_t last = size;  // instruction of the unit
    while (last > 0 && !is_at(unit, warp, last - 1)) --last;
    if (last-- == 0) return off;
    off.warps = 1;
    const Stretch to_end = run(warp, last, size);
    off.after = end_of(to_end);
    off.for_stores = std::max(to_end.stored - off.after, 0.0);
    std::size_t begin = 0;  // of the stretch
    bool is_first = true;   // of the part
    bool is_known = false;  // the first of all
    for (std::size_t k = 0; k < size; ++k) {
      if (rows_[warp.instruction[k]].is_barrier) {
        off.of_parts += run(warp, begin, k + 1).last_issue;
        begin = k;
        is_first = true;
      }
      if (!is_at(unit, warp, k)) continue;
      if (is_first) {
        const double before = run(warp, begin, k + 1).last_issue;
        off.of_parts += before;
        // Barriers before it are part of the way there.
        if (!is_known) off.before = begin == 0 ? before : run(warp, 0, k + 1).last_issue;
        is_known = true;
      }
      begin = k;
      is_first = false;
    }
    off.of_parts += begin == last ? off.after : end_of(run(warp, begin, size));
    return off;
  }
  [[nodiscard]] double end_of(const Stretch& stretch) const {
    const double done = std::max(stretch.last_issue + issue_step_, stretch.results);
    return ends_with_stores_ ? std::max(done, stretch.stored) : done;
  }

  /// Notes where the warp goes back.
  void find_repeats(const trace::ColumnView& warp) {
    repeats_.assign(warp.instruction.size(), 0);
    memory::Progress progress;
    for (std::size_t k = 0; k < warp.instruction.size(); ++k) {
      const std::uint32_t row = warp.instruction[k];
      repeats_[k] = progress.goes_back_to(row);
      if (rows_[row].is_cached && warp.active_mask[k] != 0) progress.access(row);
    }
  }

  /// The instructions [first, last), with nothing under way.
  Stretch run(const trace::ColumnView& warp, std::size_t first, std::size_t last) {
    const bool says = !control_.empty();
    scoreboard_.reset();
    control_.reset();
    Stretch stretch;
    double& issue = stretch.last_issue;
    for (std::size_t k = first; k < last; ++k) {
      const std::uint32_t row = warp.instruction[k];
      if (k > first) issue += issue_step_;
      // Without a threshold, so that no latency makes it shorter.
      if (says) issue = std::max(issue, control_.ready(row).time);
      issue = std::max(issue, scoreboard_.ready(registers_.awaited(row)));
      const double latency = (repeats_[k] ? latencies_.again : latencies_.first)[row];
      const double done = issue + latency;
      if (says) control_.issue(row, issue, latency, warp.active_mask[k] != 0);
      if (warp.active_mask[k] != 0) {
        scoreboard_.write(registers_.destinations(row), done);
        if (rows_[row].has_result) stretch.results = std::max(stretch.results, done);
        if (rows_[row].is_awaited) stretch.stored = std::max(stretch.stored, done);
      }
    }
    return stretch;
  }

  const RegisterTable& registers_;
  const WarpLatencies& latencies_;
  double issue_step_;
  Scoreboard scoreboard_;
  ControlClock control_;
  bool ends_with_stores_;
  std::vector<Row> rows_;
  std::vector<std::uint8_t> repeats_;                           ///< by instruction of the warp
  std::array<bool, std::tuple_size_v<TimesOffUnits>> units_{};  ///< that the kernel has
};

/// Groups warps by instructions and cycles.
class WarpGrouper {
 public:
  void add(const WarpGroup& group) {
    const auto [entry, inserted] =
        index_.try_emplace({group.instructions, group.cycles}, groups_.size());
    if (inserted) {
      groups_.push_back(group);
      return;
    }
    WarpGroup& known = groups_[entry->second];
    if (before(group.first, known.first)) known.first = group.first;
    known.count += group.count;
  }
  /// The groups in the order of their first warps.
  std::vector<WarpGroup> take_sorted() {
    std::ranges::sort(groups_, before, &WarpGroup::first);
    return std::move(groups_);
  }

 private:
  using Key = std::pair<std::uint64_t, double>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>{}(key.first) * 31 + std::hash<double>{}(key.second);
    }
  };
  static bool before(const trace::WarpPosition& a, const trace::WarpPosition& b) {
    return std::pair(a.block, a.warp) < std::pair(b.block, b.warp);
  }
  std::unordered_map<Key, std::size_t, Hash> index_;
  std::vector<WarpGroup> groups_;
};

double all_of(const std::array<std::uint64_t, memory::num_miss_events>& counts) {
  return static_cast<double>(counts[0] + counts[1] + counts[2]);
}

}  // namespace

std::array<double, memory::num_miss_events> wait_shares(const memory::InstructionCounters& row) {
  const auto& counts = all_of(row.waits) > 0 ? row.waits : row.events;
  std::array<double, memory::num_miss_events> shares{};
  const double all = all_of(counts);
  for (std::size_t e = 0; all > 0 && e < shares.size(); ++e) {
    shares[e] = static_cast<double>(counts[e]) / all;
  }
  return shares;
}

Latencies nominal_latencies(const trace::KernelTrace& trace) {
  Latencies result;
  for (const trace::StaticInstruction& instruction : trace.instructions()) {
    result.push_back(instruction.uses_caches() ? gpu::ReferenceMachine::l2
                                               : gpu::ReferenceMachine::normal);
  }
  return result;
}

Latencies latencies(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                    const gpu::ClassLatencies& classes, const gpu::MemoryLatencies& levels) {
  if (memory.per_row.size() != trace.instructions().size()) {
    throw InputError("the memory profile is of another kernel");
  }
  Latencies result;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const trace::StaticInstruction& instruction = trace.instructions()[row];
    const memory::InstructionCounters& counters = memory.per_row[row];
    if (!instruction.is_memory()) {
      result.push_back(classes.of(instruction.op_class, trace.effects()[row].tensor));
    } else if (!instruction.uses_caches()) {
      const double wavefronts = counters.active_executions == 0
                                    ? 1.0
                                    : static_cast<double>(counters.shared_wavefronts) /
                                          static_cast<double>(counters.active_executions);
      result.push_back(classes.shared_memory + (wavefronts - 1) * classes.more_shared_wavefront);
    } else {
      const std::array<double, memory::num_miss_events> of_level = {levels.l1, levels.l2,
                                                                    levels.l2 + levels.dram};
      double cycles = 0;
      const double waits = all_of(counters.waits);
      if (waits > 0) {
        for (std::size_t e = 0; e < of_level.size(); ++e) {
          cycles += static_cast<double>(counters.wait_cycles[e]) /
                    gpu::ReferenceMachine::round_trips[e] * of_level[e];
        }
        result.push_back(cycles / waits);
        continue;
      }
      const double events = all_of(counters.events);
      for (std::size_t e = 0; e < of_level.size(); ++e) {
        cycles += static_cast<double>(counters.events[e]) * of_level[e];
      }
      result.push_back(events == 0 ? levels.l1 : cycles / events);
    }
  }
  return result;
}

WarpLatencies warp_latencies(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                             const Latencies& mean, const gpu::MemoryLatencies& levels) {
  if (memory.per_row.size() != trace.instructions().size() ||
      mean.size() != memory.per_row.size()) {
    throw InputError("the memory profile is of another kernel");
  }
  WarpLatencies result(mean);
  const std::array<double, memory::num_miss_events> of_level = {levels.l1, levels.l2,
                                                                levels.l2 + levels.dram};
  for (std::size_t row = 0; row < mean.size(); ++row) {
    const memory::InstructionCounters& counters = memory.per_row[row];
    const double waits = all_of(counters.waits);
    const auto repeats = static_cast<double>(counters.repeats);
    if (repeats == 0 || repeats >= waits) continue;
    double all = 0;
    double again = 0;
    for (std::size_t e = 0; e < of_level.size(); ++e) {
      const double per_cycle = of_level[e] / gpu::ReferenceMachine::round_trips[e];
      all += static_cast<double>(counters.wait_cycles[e]) * per_cycle;
      again += static_cast<double>(counters.repeat_cycles[e]) * per_cycle;
    }
    // The mean may be of another way to count latencies; both keep what it differs by.
    const double offset = mean[row] - all / waits;
    result.first[row] = std::max((all - again) / (waits - repeats) + offset, 0.0);
    result.again[row] = std::max(again / repeats + offset, 0.0);
  }
  return result;
}

TimeOffUnit& TimeOffUnit::operator+=(const TimeOffUnit& other) {
  warps += other.warps;
  before += other.before;
  after += other.after;
  for_stores += other.for_stores;
  of_parts += other.of_parts;
  return *this;
}

TimeOffUnit TimeOffUnit::mean(double instructions) const {
  const double count = std::max(warps, 1.0);
  return {warps / instructions, before / count, after / count, for_stores / count,
          of_parts / count};
}

void visit_warps(const trace::KernelTrace& trace, const WarpKinds& kinds,
                 const WarpLatencies& latencies, double issue_rate, unsigned num_threads,
                 const InterruptCheck& interrupt,
                 const std::function<void(const WarpGroup&)>& visit, VisitOptions options) {
  const trace::BlockStorage& blocks = trace.blocks();
  const RegisterTable registers(trace, options.waits, options.barriers_stop_warps);
  std::vector<WarpCycles> cycles(kinds.size());
  std::vector<TimesOffUnits> off_units(options.off_units ? kinds.size() : 0);
  std::atomic<std::size_t> next_kind{0};
  std::exception_ptr failure;
  std::mutex mutex;  // of `failure`
  const auto work = [&](bool may_interrupt) {
    try {
      LoneWarp lone(trace, registers, latencies, 1 / issue_rate, options);
      std::vector<std::byte> scratch;
      for (std::size_t kind = next_kind++; kind < kinds.size(); kind = next_kind++) {
        if (may_interrupt && interrupt && kind % 512 == 0) interrupt();
        const trace::WarpPosition& first = kinds.first(kind);
        trace::ColumnCounts begin = blocks.begin(first.block, first.warp);
        trace::ColumnCounts end = begin;
        end.instructions += blocks.warps(first.block)[first.warp].instructions;
        if (end == begin) continue;
        const trace::ColumnView warp = blocks.read(first.block, begin, end, scratch);
        cycles[kind] = lone.run(warp);
        if (options.off_units) off_units[kind] = lone.off_units(warp);
      }
    } catch (...) {
      next_kind = kinds.size();
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  if (interrupt) interrupt();
  {
    std::vector<std::jthread> helpers;
    // A thread is worth its start where there is some work.
    constexpr std::size_t kinds_per_thread = 64;
    const std::size_t threads = std::min<std::size_t>(num_threads, kinds.size() / kinds_per_thread);
    for (std::size_t t = 1; t < threads; ++t) helpers.emplace_back(work, false);
    work(true);
  }
  if (failure) std::rethrow_exception(failure);
  std::size_t position = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::uint32_t w = 0; w < blocks.warps(b).size(); ++w, ++position) {
      const std::uint64_t instructions = blocks.warps(b)[w].instructions;
      if (instructions == 0) continue;
      const std::size_t kind = kinds.of_warps()[position];
      const WarpCycles& found = cycles[kind];
      visit({{static_cast<std::uint32_t>(b), w},
             instructions,
             found.all,
             1,
             found.for_stores,
             options.off_units ? &off_units[kind] : nullptr});
    }
  }
}

std::vector<WarpGroup> group_warps(const trace::KernelTrace& trace, const Latencies& latencies,
                                   double issue_rate, unsigned num_threads,
                                   const InterruptCheck& interrupt) {
  WarpGrouper grouper;
  visit_warps(trace, WarpKinds(trace, interrupt), latencies, issue_rate, num_threads, interrupt,
              [&](const WarpGroup& warp) { grouper.add(warp); });
  return grouper.take_sorted();
}

namespace {

/// Means per active execution of one row: what an access of it does on average.
struct AccessMeans {
  double l2_requests = 0;
  double l2_bytes = 0;
  double dram_requests = 0;
  double dram_bytes = 0;
};

/// Sums over the interval that is being built.
struct OpenInterval {
  double instructions = 0;
  double stall_cycles = 0;
  CpiStack<double> stall;
  std::int64_t cause_row = -1;
  double memory_instructions = 0;
  double read_misses = 0;
  double write_requests = 0;
  double dram_read_requests = 0;
  double dram_write_requests = 0;
  double read_bytes = 0;
  double write_bytes = 0;
  double dram_bytes = 0;
};

class IntervalBuilder {
 public:
  IntervalBuilder(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                  const IntervalOptions& options)
      : trace_(trace), memory_(memory), options_(options) {}

  void add_instruction(std::uint32_t row, std::uint32_t active_mask) {
    open_.instructions += 1;
    const trace::StaticInstruction& instruction = trace_.instructions()[row];
    if (!instruction.uses_caches() || active_mask == 0) return;
    const AccessMeans means =
        options_.miss_source == MissSource::observed_warp ? observed(row) : mean_over_warps(row);
    if (instruction.reads_memory()) {
      open_.memory_instructions += 1;
      open_.read_misses += means.l2_requests;
      open_.read_bytes += means.l2_bytes;
      open_.dram_read_requests += means.dram_requests;
    } else {
      open_.write_requests += means.l2_requests;
      open_.write_bytes += means.l2_bytes;
      open_.dram_write_requests += means.dram_requests;
    }
    open_.dram_bytes += means.dram_bytes;
  }

  /// Cycles in which the warp waits for the result of an instruction of `row`; -1: because its last
  /// one said so.
  void add_stall(double cycles, std::int64_t cause) {
    CpiStack<double>& stall = open_.stall;
    open_.cause_row = cause;
    open_.stall_cycles += cycles;
    const auto row = static_cast<std::size_t>(cause);
    if (cause < 0 || !trace_.instructions()[row].uses_caches()) {
      stall[StackComponent::dep] += cycles;
      return;
    }
    // GPUMech, Section VII: the stall is divided as the miss events of the instruction are.
    const auto shares = wait_shares(memory_.per_row[row]);
    if (shares[0] + shares[1] + shares[2] == 0) {
      stall[StackComponent::l1] += cycles;
      return;
    }
    stall[StackComponent::l1] += cycles * shares[0];
    stall[StackComponent::l2] += cycles * shares[1];
    stall[StackComponent::dram] += cycles * shares[2];
  }

  void end_interval() {
    const auto ratio = [](double sum, double count, double otherwise) {
      return count > 0 ? sum / count : otherwise;
    };
    columns_.instructions.push_back(open_.instructions);
    columns_.stall_cycles.push_back(open_.stall_cycles);
    for (std::size_t c = 0; c < num_stall_causes; ++c) {
      columns_.stall_by_cause[c].push_back(open_.stall[stall_causes[c]]);
    }
    columns_.cause_row.push_back(open_.cause_row);
    columns_.memory_instructions.push_back(open_.memory_instructions);
    columns_.read_misses.push_back(open_.read_misses);
    columns_.write_requests.push_back(open_.write_requests);
    const double dram_requests = open_.dram_read_requests + open_.dram_write_requests;
    columns_.dram_read_requests.push_back(open_.dram_read_requests);
    columns_.dram_write_requests.push_back(open_.dram_write_requests);
    columns_.dram_requests.push_back(dram_requests);
    columns_.llc_miss_ratio.push_back(
        ratio(dram_requests, open_.read_misses + open_.write_requests, 0));
    columns_.read_bytes.push_back(ratio(open_.read_bytes, open_.read_misses, trace::sector_bytes));
    columns_.write_bytes.push_back(
        ratio(open_.write_bytes, open_.write_requests, trace::sector_bytes));
    columns_.dram_bytes.push_back(ratio(open_.dram_bytes, dram_requests, trace::sector_bytes));
    open_ = OpenInterval{};
  }

  IntervalColumns take() { return std::move(columns_); }

 private:
  [[nodiscard]] AccessMeans mean_over_warps(std::uint32_t row) const {
    const memory::InstructionCounters& counters = memory_.per_row[row];
    if (counters.active_executions == 0) return {};
    return means(
        static_cast<double>(counters.active_executions), static_cast<double>(counters.l2_requests),
        static_cast<double>(counters.l2_request_sectors),
        static_cast<double>(counters.dram_requests), static_cast<double>(counters.dram_sectors));
  }

  AccessMeans observed(std::uint32_t row) {
    if (next_observed_ == memory_.observed.size() || memory_.observed[next_observed_].row != row) {
      throw InputError(
          "the memory profile did not observe this warp; simulate the caches again with "
          "observe = the warp, or take the misses per instruction");
    }
    const memory::ObservedAccess& access = memory_.observed[next_observed_++];
    return means(1, access.l2_requests, access.l2_request_sectors, access.dram_requests,
                 access.dram_sectors);
  }

  [[nodiscard]] AccessMeans means(double executions, double l2_requests, double l2_sectors,
                                  double dram_requests, double dram_sectors) const {
    const auto bytes = [executions](double unit, double requests, double sectors) {
      return (unit > 0 ? unit * requests : sectors * trace::sector_bytes) / executions;
    };
    return {l2_requests / executions, bytes(options_.l1_unit_bytes, l2_requests, l2_sectors),
            dram_requests / executions, bytes(options_.l2_unit_bytes, dram_requests, dram_sectors)};
  }

  const trace::KernelTrace& trace_;
  const memory::MemoryProfile& memory_;
  const IntervalOptions& options_;
  IntervalColumns columns_;
  OpenInterval open_;
  std::size_t next_observed_ = 0;
};

/// A warp on its way through its instructions, beside others of its block.
struct WalkingWarp {
  std::vector<std::byte> scratch;
  trace::ColumnView columns;
  Scoreboard scoreboard;
  ControlClock clock;
  std::size_t next = 0;
  double issue = 0;
};

/// Goes through the instructions of a warp up to a wait for completions that are not known yet.
/// Returns whether it went on. With `is_forced` it does not wait for the first of them.
bool walk(WalkingWarp& warp, const RegisterTable& registers, const Latencies& latencies,
          double issue_step, bool is_forced) {
  const std::size_t first = warp.next;
  for (; warp.next < warp.columns.instruction.size(); ++warp.next) {
    const std::uint32_t row = warp.columns.instruction[warp.next];
    const bool is_active = warp.columns.active_mask[warp.next] != 0;
    if (is_active && !warp.clock.is_known(row)) {
      if (!is_forced) break;
      is_forced = false;
    }
    if (warp.next > 0) {
      warp.issue = std::max({warp.issue + issue_step, warp.clock.ready(row).time,
                             warp.scoreboard.ready(registers.awaited(row))});
    }
    warp.clock.issue(row, warp.issue, latencies[row], is_active);
    if (is_active) {
      warp.scoreboard.write(registers.destinations(row), warp.issue + latencies[row]);
    }
  }
  return warp.next != first;
}

/// When the mbarriers of a block are completed if its warps issue without hindering each other.
PhaseTimes phase_times(const trace::KernelTrace& trace, std::uint32_t block,
                       const RegisterTable& registers, const ControlClock& clock,
                       const Latencies& latencies, double issue_step) {
  PhaseTimes phases;
  std::vector<std::unique_ptr<WalkingWarp>> warps;  // columns point into their scratch
  for (std::uint32_t w = 0; w < trace.blocks().warps(block).size(); ++w) {
    auto warp = std::make_unique<WalkingWarp>(
        WalkingWarp{{}, {}, Scoreboard(registers.num_registers()), clock});
    warp->columns = trace.warp({block, w}, warp->scratch);
    warp->scoreboard.reset();
    warp->clock.share(&phases);
    warps.push_back(std::move(warp));
  }
  const auto is_done = [](const auto& warp) {
    return warp->next == warp->columns.instruction.size();
  };
  while (std::erase_if(warps, is_done), !warps.empty()) {
    bool goes_on = false;
    for (const auto& warp : warps) {
      if (walk(*warp, registers, latencies, issue_step, false)) goes_on = true;
    }
    // What is missing was not traced.
    if (!goes_on) walk(*warps.front(), registers, latencies, issue_step, true);
  }
  return phases;
}

}  // namespace

IntervalColumns build_intervals(const trace::KernelTrace& trace, trace::WarpPosition position,
                                const Latencies& latencies, const memory::MemoryProfile& memory,
                                const IntervalOptions& options) {
  if (position.block >= trace.blocks().size() ||
      position.warp >= trace.blocks().warps(position.block).size()) {
    throw InputError("there is no warp " + std::to_string(position.warp) + " in block " +
                     std::to_string(position.block) + " of the trace");
  }
  if (memory.per_row.size() != trace.instructions().size()) {
    throw InputError("the memory profile is of another kernel");
  }
  const RegisterTable registers(trace, options.waits);
  Scoreboard scoreboard(registers.num_registers());
  scoreboard.reset();
  ControlClock control(trace);
  const double issue_step = 1 / options.issue_rate;
  PhaseTimes phases;
  if (control.has_phases()) {
    phases = phase_times(trace, position.block, registers, control, latencies, issue_step);
    control.know(&phases);
  }
  IntervalBuilder builder(trace, memory, options);
  std::vector<std::byte> scratch;
  const trace::ColumnView warp = trace.warp(position, scratch);
  double issue = 0;
  for (std::size_t k = 0; k < warp.instruction.size(); ++k) {
    const std::uint32_t row = warp.instruction[k];
    if (k > 0) {
      const auto awaited = registers.awaited(row);
      const double next = issue + issue_step;
      const ControlClock::Ready said = control.empty() ? ControlClock::Ready() : control.ready(row);
      const double read = scoreboard.ready(awaited);
      const double ready = std::max(said.time, read);
      issue = next;
      if (ready > next + rounding) {
        issue = ready;
        builder.add_stall(ready - next,
                          read >= said.time ? scoreboard.last_writer(awaited) : said.row);
        if (ready - next > options.merge_threshold) builder.end_interval();
      }
    }
    builder.add_instruction(row, warp.active_mask[k]);
    if (!control.empty()) control.issue(row, issue, latencies[row], warp.active_mask[k] != 0);
    if (warp.active_mask[k] != 0) {
      scoreboard.write(registers.destinations(row), issue + latencies[row], row);
    }
  }
  if (!warp.instruction.empty()) builder.end_interval();
  return builder.take();
}

}  // namespace warpstack::interval
