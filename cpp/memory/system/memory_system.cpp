#include "memory/system/memory_system.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/error.h"
#include "common/spin_barrier.h"
#include "common/threads.h"
#include "memory/system/l2_port.h"
#include "memory/system/order_recording.h"
#include "memory/system/sampling.h"
#include "memory/system/sm_caches.h"

namespace warpstack::memory {
namespace {

/// Runs the SMs and L2 in turn, each step on all threads.
class Simulation {
 public:
  using MakeSm = std::function<std::unique_ptr<SmCaches>(std::size_t)>;

  Simulation(std::size_t num_sms, MakeSm make_sm, bool timed, Cache& l2, FetchesUnderWay& under_way,
             std::vector<Worker>& workers, std::optional<trace::WarpPosition> observed,
             const InterruptCheck& interrupt)
      : make_sm_(std::move(make_sm)),
        timed_(timed),
        sms_(num_sms),
        l2_(l2),
        under_way_(under_way),
        workers_(workers),
        observed_(observed),
        interrupt_(interrupt) {
    under_way_.begin_launch();
  }

  void run() {
    std::vector<std::jthread> helpers;
    for (std::size_t id = 1; id < workers_.size(); ++id) {
      helpers.emplace_back([this, id] { work(id); });
    }
    work(0);
    helpers.clear();
    if (failure_) std::rethrow_exception(failure_);
    flush();
  }
  /// The sums over all SMs; see MemoryProfile.
  [[nodiscard]] std::array<std::uint64_t, 2> place_wait_cycles() const {
    std::array<std::uint64_t, 2> sum{};
    for (const auto& sm : sms_) {
      if (!sm->timed()) continue;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sm->timed()->place_wait_cycles()[i];
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t most_read_sectors() const {
    std::uint64_t most = 0;
    for (const auto& sm : sms_) most = std::max(most, sm->read_sectors());
    return most;
  }
  [[nodiscard]] SmCaches& sm(std::size_t i) { return *sms_[i]; }
  /// Accesses of the observed warp.
  [[nodiscard]] std::vector<ObservedAccess> observed() const {
    std::vector<ObservedAccess> all;
    for (const auto& sm : sms_) all.insert(all.end(), sm->observed().begin(), sm->observed().end());
    return all;
  }

 private:
  using Sms = std::vector<std::unique_ptr<SmCaches>>;

  /// Requests of a batch: enough to make synchronization cheap, and few enough to stay in a
  /// processor's cache between the two steps.
  static constexpr std::size_t most_requests = 32768;
  /// Accesses of a batch: if they suddenly miss, it takes 64 MiB.
  static constexpr std::size_t most_accesses = 65536;
  static constexpr std::size_t least_requests = 8192;
  /// Whether to ask the caller, which may wait for a lock. Batches of the timed order are short.
  bool is_time_to_ask() { return !timed_ || batch_++ % 32 == 0; }

  void work(std::size_t id) {
    bool is_backward = false;
    while (true) {
      is_backward = !is_backward;
      guard([&] {
        if (id == 0 && interrupt_ && is_time_to_ask()) interrupt_();
        for (std::size_t part = id; part < workers_.size(); part += num_threads_) {
          run_sms(part, is_backward);
        }
      });
      late_ += barrier_.wait([this] { end_turns(); });
      if (finished_ || id >= num_threads_) return;
      guard([&] {
        for (std::size_t part = id; part < workers_.size(); part += num_threads_) serve(part);
      });
      late_ += barrier_.wait([] {});
    }
  }

  /// Runs the SMs of a part. They stay with their thread, so that their state stays in its
  /// processor's cache. Those that ran last come first: more of their state is still cached.
  void run_sms(std::size_t part, bool is_backward) {
    Batch& batch = workers_[part].batch;
    batch = {};
    const std::size_t mine = (sms_.size() - part + workers_.size() - 1) / workers_.size();
    for (std::size_t n = 0; n < mine; ++n) {
      const std::size_t i = part + (is_backward ? mine - 1 - n : n) * workers_.size();
      if (!sms_[i]) sms_[i] = make_sm_(i);
      SmCaches& sm = *sms_[i];
      if (timed_ && sm.sleeps_until() >= end_) {
        batch.next_event = std::min(batch.next_event, sm.sleeps_until());
        continue;
      }
      sm.settle(workers_[part]);
      sm.run(turns_, end_, observed_, workers_[part]);
      batch.most_turns = std::max(batch.most_turns, sm.num_turns());
      batch.requests += sm.num_requests();
      if (timed_) batch.next_event = std::min(batch.next_event, sm.end_run(end_));
    }
  }

  /// Batches of the timed order are so short that threads cost more than they save if other
  /// programs use the processors, too, and threads wait for one that has lost its processor.
  void give_up_late_threads() {
    ++meetings_;
    constexpr std::uint64_t some = 4;
    constexpr std::uint64_t rarely = 64;
    if (late_ < some || late_ * rarely < meetings_) return;
    num_threads_ = 1;
    barrier_.shrink(1);
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
    ReferenceCycle first = never;
    for (const Worker& worker : workers_) {
      most_turns_ = std::max(most_turns_, worker.batch.most_turns);
      requests += worker.batch.requests;
      first = std::min(first, worker.batch.next_event);
    }
    if (timed_) {
      finished_ = most_turns_ == 0 && first == never;
      begin_ = end_ - TimedSchedule::window;
      // L2 may still have to answer although nothing else is left.
      if (first != never) end_ = std::max(end_, first) + TimedSchedule::window;
      give_up_late_threads();
      return;
    }
    constexpr std::size_t least_turns = 8;
    if (requests > most_requests) turns_ = std::max(turns_ / 2, least_turns);
    if (requests < least_requests) {
      turns_ = std::min(turns_ * 2, std::max(most_accesses / sms_.size(), least_turns));
    }
    finished_ = most_turns_ == 0;
  }

  /// Serves the requests of the batch for the sets of a part: turn by turn, SM by SM.
  void serve(std::size_t part) {
    Worker& worker = workers_[part];
    if (timed_) return serve_in_time(part, worker);
    worker.asking.clear();
    for (const auto& sm : sms_) {
      if (sm->num_requests() == 0) continue;
      sm->prepare_outcomes(part);
      worker.asking.push_back(sm.get());
    }
    for (std::size_t turn = 0; turn < most_turns_; ++turn) {
      // Sets of L2 lie far apart, so what the next turn touches is prefetched.
      for (const SmCaches* sm : worker.asking) prefetch(*sm, turn + 1, part);
      for (SmCaches* sm : worker.asking) {
        serve(*sm, sm->first_request(turn), sm->first_request(turn + 1), part, worker, 0);
      }
    }
  }
  /// The same in the timed order, where most turns of most SMs are empty.
  void serve_in_time(std::size_t part, Worker& worker) {
    for (const auto& sm : sms_) {
      if (sm->num_requests() == 0) continue;
      sm->prepare_outcomes(part);
      sm->for_each_turn([&](std::size_t turn, std::size_t first, std::size_t last) {
        worker.slices_of_turns[turn].push_back({sm.get(), first, last});
      });
    }
    const auto prefetch_turn = [&](std::size_t turn) {
      if (turn >= turns_of_window) return;
      for (const Worker::Slice& slice : worker.slices_of_turns[turn]) {
        prefetch(*slice.sm, slice.first, slice.last, part);
      }
    };
    // A turn may be so short that the next one's sets are not there yet.
    constexpr std::size_t turns_ahead = 2;
    for (std::size_t turn = 0; turn < turns_ahead; ++turn) prefetch_turn(turn);
    for (std::size_t turn = 0; turn < turns_of_window; ++turn) {
      prefetch_turn(turn + turns_ahead);
      std::vector<Worker::Slice>& slices = worker.slices_of_turns[turn];
      for (const Worker::Slice& slice : slices) {
        serve(*slice.sm, slice.first, slice.last, part, worker, begin_ + turn * cycles_of_turn);
      }
      slices.clear();
    }
  }

  void prefetch(const SmCaches& sm, std::size_t turn, std::size_t part) const {
    prefetch(sm, sm.first_request(turn), sm.first_request(turn + 1), part);
  }
  void prefetch(const SmCaches& sm, std::size_t first, std::size_t last, std::size_t part) const {
    for (std::size_t i = first; i < last; ++i) {
      const Request& request = sm.request(i);
      if (request.owner != part) continue;
      l2_.prefetch(request.set, request.line);
      if (timed_) under_way_.prefetch(request.set);
    }
  }

  /// Serves the requests [first, last) of an SM whose sets belong to a part.
  void serve(SmCaches& sm, std::size_t first, std::size_t last, std::size_t part, Worker& worker,
             ReferenceCycle now) {
    L2Port port(l2_, worker.totals, &worker.slice_dram_sectors);
    std::vector<Outcome>& outcomes = sm.outcomes(part);
    for (std::size_t i = first; i < last; ++i) {
      const Request& request = sm.request(i);
      // Every part sees all requests pass, and counts its windows.
      if (!is_flushing_) {
        worker.crowding.pass(
            [&](const auto& add) { add(l2_.slice_of(request.set), sm.turns(request)); });
      }
      if (request.owner != part) continue;
      outcomes[i] = port.serve(request, sm.bytes(request));
      if (timed_) outcomes[i].waits_for_dram = under_way_.is_awaited(request, outcomes[i], now);
      worker.slice_turns[l2_.slice_of(request.set)] += sm.turns(request);
    }
  }

  /// Writes the L1 caches back, SM by SM.
  void flush() {
    Worker& worker = workers_[0];
    is_flushing_ = true;
    for (const auto& built : sms_) {
      SmCaches& sm = *built;
      sm.flush(worker);
      for (std::size_t part = 0; part < workers_.size(); ++part) {
        sm.prepare_outcomes(part);
        serve(sm, 0, sm.num_requests(), part, worker, end_);
      }
      sm.settle(worker);
    }
  }

  MakeSm make_sm_;
  bool timed_;
  Sms sms_;  ///< each is made by the thread that runs it
  Cache& l2_;
  FetchesUnderWay& under_way_;    ///< in the timed order
  std::vector<Worker>& workers_;  ///< of the parts of the SMs and of the sets of L2
  std::size_t num_threads_ = workers_.size();
  SpinBarrier barrier_{static_cast<std::uint32_t>(workers_.size())};
  std::uint64_t meetings_ = 0;           ///< in the timed order
  std::atomic<std::uint64_t> late_ = 0;  ///< times that a thread slept until another one came
  std::optional<trace::WarpPosition> observed_;
  const InterruptCheck& interrupt_;
  ReferenceCycle begin_ = 0;                    ///< of the batch that L2 serves, in the timed order
  ReferenceCycle end_ = TimedSchedule::window;  ///< of a batch, in the timed order
  std::size_t turns_ = 64;                      ///< of a batch, in the other orders
  std::size_t most_turns_ = 0;                  ///< of an SM in the batch
  std::size_t batch_ = 0;                       ///< of the first thread
  bool finished_ = false;
  bool is_flushing_ = false;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

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

/// Mean requests of a sector by row; 0 where the sectors of a line share one.
std::vector<double> requests_per_sector(const trace::KernelTrace& trace,
                                        const MemoryConfig& config) {
  const std::vector<trace::StaticInstruction>& rows = trace.instructions();
  std::vector<double> result(rows.size());
  if (!config.atomics_per_lane || !trace.has_atomics()) return result;
  std::vector<double> sectors(rows.size());
  std::vector<double> requests(rows.size());
  std::vector<std::byte> scratch;
  for (std::size_t b = 0; b < trace.blocks().size(); ++b) {
    trace::ColumnCounts end = trace.blocks().counts(b);
    end.instructions = end.sectors = 0;
    const trace::ColumnView block = trace.blocks().read(b, {}, end, scratch);
    if (block.atomic_lanes.empty()) continue;
    std::size_t store = 0;
    for (std::size_t i = 0; i < block.memory_static.size(); ++i) {
      const std::uint32_t row = block.memory_static[i];
      if (!rows[row].writes_memory()) continue;
      const std::size_t first = store;
      store += block.memory_count[i];
      if (!rows[row].is_atomic()) continue;
      for (const auto& sector : block.atomic_lanes.subspan(first, store - first)) {
        ++sectors[row];
        requests[row] += AtomicRule::requests_of(sector);
      }
    }
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (sectors[row] > 0) result[row] = requests[row] / sectors[row];
  }
  return result;
}

/// A launch with fewer sectors costs little anyway.
constexpr std::uint64_t least_sampled_sectors = 20'000;

std::optional<std::uint32_t> block_of(const std::optional<trace::WarpPosition>& observed) {
  return observed ? std::optional(observed->block) : std::nullopt;
}

/// Whether the leaders execute every load that any SM executes; the hits of other loads would be
/// unknown.
bool have_all_loads(const trace::KernelTrace& trace, const RowFlags& flags,
                    const std::vector<trace::RowCounts>& counts,
                    const std::vector<SampleGroup>& groups,
                    const std::vector<std::vector<std::uint32_t>>& blocks_of_sms) {
  std::vector<std::vector<std::uint32_t>> of_leaders;
  for (const SampleGroup& group : groups) of_leaders.push_back(blocks_of_sms[group.leader]);
  const std::vector<trace::RowCounts> known = count_rows(trace, flags, of_leaders);
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const bool is_store = trace.instructions()[row].kind == trace::MemoryKind::store;
    if (flags.uses_caches[row] && !is_store && counts[row].active > 0 && known[row].active == 0) {
      return false;
    }
  }
  return true;
}

/// Whether L2 asks which bytes are written.
bool keeps_bytes(const CacheConfig& l2) {
  return l2.write_miss == WriteMiss::write_validate ||
         l2.write_miss == WriteMiss::fetch_on_partial_write;
}

bool has_own_policy(const MemoryConfig& config) {
  return gpu::is_own(config.l1.replacement) || gpu::is_own(config.l2.replacement);
}

}  // namespace

MemorySystem::MemorySystem(const MemoryConfig& config, unsigned num_threads)
    : config_((config.validate(), config)),
      // Own policies may share state among sets, whose order of accesses depends on threads.
      num_threads_(has_own_policy(config) ? 1 : threads_asked_for(num_threads)),
      l2_(config.l2),
      under_way_(config.access_order == AccessOrder::timed ? config.l2.num_sets() : 0),
      repeated_(config.l2) {}

MemoryProfile MemorySystem::run(const trace::KernelTrace& trace,
                                std::optional<trace::WarpPosition> observed,
                                const InterruptCheck& interrupt, double share) {
  const std::scoped_lock lock(mutex_);
  before_sampled_.reset();
  const auto run = [&] { return simulate(trace, observed, interrupt, share, nullptr); };
  if (share < 1) return run();
  const std::string settings =
      observed ? std::to_string(observed->block) + ':' + std::to_string(observed->warp) : "";
  return repeated_.result_of(trace, settings, l2_, run);
}

OrderRecording MemorySystem::record(const trace::KernelTrace& trace,
                                    const InterruptCheck& interrupt) {
  const std::scoped_lock lock(mutex_);
  before_sampled_.reset();
  OrderRecorder recorder(trace, config_.l2.slices);
  MemoryProfile profile = simulate(trace, {}, interrupt, 1, &recorder);
  return recorder.take(config_.access_order == AccessOrder::timed, std::move(profile));
}

MemoryProfile MemorySystem::simulate(const trace::KernelTrace& trace,
                                     std::optional<trace::WarpPosition> observed,
                                     const InterruptCheck& interrupt, double share,
                                     OrderRecorder* recorder) {
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
  // A thread needs enough work to be worth its start, and in the timed order, whose windows are
  // short, to be worth the others' waits for it.
  constexpr std::uint64_t sectors_per_thread = 100'000;
  constexpr std::uint64_t sms_per_thread = 8;
  constexpr std::uint64_t most_threads = 255;
  const bool timed = config_.access_order == AccessOrder::timed;
  std::uint64_t worth = trace.totals().sectors / sectors_per_thread;
  if (timed) worth = std::min<std::uint64_t>(worth, blocks_of_sms.size() / sms_per_thread);
  const auto threads = recorder != nullptr
                           ? 1
                           : std::clamp<std::uint64_t>(
                                 worth, 1, std::min<std::uint64_t>(num_threads_, most_threads));
  const Paces paces = timed ? paces_of(trace, config_.atomics_stop_warps) : Paces{};
  profile.per_row.resize(instructions.size());
  const auto finish = [&] {
    profile.atomic_lanes = requests_per_sector(trace, config_);
    for (std::size_t row = 0; row < instructions.size(); ++row) {
      InstructionCounters& counters = profile.per_row[row];
      counters.executions = counts[row].issued;
      counters.active_executions = counts[row].active;
      counters.shared_wavefronts = counts[row].shared_wavefronts;
      if (!flags.uses_caches[row]) continue;
      profile.totals[total_of(instructions[row])] += counts[row].issued;
    }
    profile.totals[Total::l2_dirty_sectors] = l2_.dirty_sectors();
  };
  const bool can_sample =
      timed && config_.filter_l1_hits && trace.totals().sectors >= least_sampled_sectors;
  // Each SM may have a request for each of its MSHRs under way.
  const std::uint64_t under_way = blocks_of_sms.size() * std::uint64_t{config_.l1_mshrs};
  std::vector<SampleGroup> groups;
  if (can_sample) groups = sample_of(blocks_of_sms, share, block_of(observed));
  if (!groups.empty() && have_all_loads(trace, flags, counts, groups, blocks_of_sms)) {
    const auto make_leader = [&](std::size_t i) {
      return std::make_unique<SmCaches>(trace, flags, paces, blocks_of_sms[i], blocks_per_sm,
                                        config_, Cache(l1), l2_, 1);
    };
    const Followers::Launch launch{
        trace,
        flags,
        l1,
        l2_,
        config_.l1_caches_global,
        keeps_bytes(l2_.config()) || config_.partial_write_turns > 0,
        {config_.atomics_per_lane, config_.atomic_lane_turns, config_.atomic_words_at_once},
        {config_.partial_write_turns}};
    SampledSimulation simulation(std::move(groups), make_leader, blocks_of_sms, launch, l2_,
                                 under_way_, under_way);
    before_sampled_.emplace(l2_);
    if (simulation.run(observed, interrupt)) {
      simulation.estimate(counts, profile);
      finish();
      return profile;
    }
    put_back();
  }
  // Own policies may be about more than one cache.
  const bool keeps_l1s = !gpu::is_own(l1.replacement);
  std::erase_if(idle_l1s_, [&](const auto& idle) { return !idle || idle->config() != l1; });
  idle_l1s_.resize(std::max(idle_l1s_.size(), blocks_of_sms.size()));
  const auto l1_for = [&](std::size_t i) {
    if (!idle_l1s_[i]) return Cache(l1);
    Cache idle = std::move(*idle_l1s_[i]);
    idle_l1s_[i].reset();
    return idle;
  };
  const auto make_sm = [&](std::size_t i) {
    auto sm = std::make_unique<SmCaches>(trace, flags, paces, std::move(blocks_of_sms[i]),
                                         blocks_per_sm, config_, l1_for(i), l2_, threads);
    if (recorder != nullptr) sm->record(&recorder->of_sm(i));
    return sm;
  };
  std::vector<Worker> workers(threads,
                              Worker(instructions.size(), l1.line_bytes, l2_.config().slices));
  for (std::size_t part = 0; part < threads; ++part) {
    workers[part].crowding = SliceCrowding(l2_.config().slices, under_way, threads, part);
  }
  Simulation simulation(blocks_of_sms.size(), make_sm, timed, l2_, under_way_, workers, observed,
                        interrupt);
  simulation.run();
  for (const Worker& worker : workers) {
    profile.totals += worker.totals;
    for (std::size_t row = 0; row < instructions.size(); ++row) {
      profile.per_row[row] += worker.per_row[row];
    }
  }
  finish();
  for (std::size_t i = 0; keeps_l1s && i < blocks_of_sms.size(); ++i) {
    idle_l1s_[i].emplace(simulation.sm(i).take_l1());
  }
  profile.observed = simulation.observed();
  profile.place_wait_cycles = simulation.place_wait_cycles();
  profile.most_read_sectors = simulation.most_read_sectors();
  profile.slice_turns.resize(l2_.config().slices);
  profile.slice_dram_sectors.resize(l2_.config().slices);
  double turns = 0;
  double crowded_turns = 0;
  for (Worker& worker : workers) {
    worker.crowding.finish();
    turns += worker.crowding.turns();
    crowded_turns += worker.crowding.crowded_turns();
    for (std::size_t slice = 0; slice < worker.slice_turns.size(); ++slice) {
      profile.slice_turns[slice] += worker.slice_turns[slice];
      profile.slice_dram_sectors[slice] += worker.slice_dram_sectors[slice];
    }
  }
  profile.slice_crowding = crowding_of(turns, crowded_turns);
  return profile;
}

bool MemorySystem::undo_sampled() {
  const std::scoped_lock lock(mutex_);
  return put_back();
}

bool MemorySystem::put_back() {
  if (!before_sampled_) return false;
  l2_ = std::move(*before_sampled_);
  before_sampled_.reset();
  return true;
}

}  // namespace warpstack::memory
