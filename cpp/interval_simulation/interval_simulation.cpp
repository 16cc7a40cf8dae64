#include "interval_simulation/interval_simulation.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/spin_barrier.h"
#include "common/threads.h"
#include "interval_simulation/kind_steps.h"
#include "interval_simulation/sm.h"
#include "memory/cache/kernel_end.h"

namespace warpstack::interval_simulation {
namespace {

/// One run of a kernel.
class Run {
 public:
  Run(const trace::KernelTrace& trace, const Machine& machine, memory::Cache& l2,
      unsigned num_threads, const InterruptCheck& interrupt)
      : trace_(trace),
        machine_(machine),
        l2_(l2),
        interrupt_(interrupt),
        flags_(trace.instructions()),
        code_(trace, memory::CodeStorage::of(machine.gpu)),
        steps_(trace, machine, code_, interrupt),
        num_sms_(static_cast<std::uint32_t>(
            std::min<std::uint64_t>(machine.memory.num_sms, trace.header().num_blocks()))),
        memory_(machine, l2, num_sms_, [this](std::uint32_t s, Time now) {
          if (sms_[s]->departed(now)) send_requests(s);
        }) {
    result_.occupancy = memory::occupancy(trace.header(), machine.memory.sm);
    const memory::CacheConfig l1 =
        l1_of(machine.memory, trace.header(), result_.occupancy.blocks_per_sm);
    const auto places = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(result_.occupancy.blocks_per_sm, trace.header().num_blocks()));
    for (std::uint32_t s = 0; s < num_sms_; ++s) {
      sms_.push_back(std::make_unique<Sm>(machine, trace, flags_, code_, l1, l2, places,
                                          result_.occupancy.warps_per_block, memory_.replies(s)));
    }
    // A thread needs enough work to be worth the others' waits for it.
    constexpr std::uint64_t sectors_per_thread = 100'000;
    constexpr std::uint64_t sms_per_thread = 8;
    num_threads_ = std::clamp<std::size_t>(
        std::min(trace.totals().sectors / sectors_per_thread, num_sms_ / sms_per_thread), 1,
        num_threads);
    barrier_.shrink(static_cast<std::uint32_t>(num_threads_));
    // Of very many that were not traced, some stand for all.
    constexpr std::uint64_t rounds_of_places = 8;
    num_blocks_ = std::clamp<std::uint64_t>(rounds_of_places * places * num_sms_,
                                            trace.blocks().size(), trace.header().num_blocks());
    skip_idle_blocks();
    // The SMs take one block each in turn until they are full.
    for (std::uint32_t place = 0; place < places; ++place) {
      for (std::uint32_t s = 0; s < num_sms_; ++s) start_next(s, 0);
    }
  }

  Result run() {
    std::vector<std::jthread> helpers;
    for (std::size_t id = 1; id < num_threads_; ++id) {
      helpers.emplace_back([this, id] {
        while (true) {
          barrier_.wait([] {});
          if (is_done_) return;
          run_share(id);
          barrier_.wait([] {});
        }
      });
    }
    try {
      run_windows();
    } catch (...) {
      release_helpers();
      throw;
    }
    release_helpers();
    helpers.clear();
    finish();
    return std::move(result_);
  }

 private:
  void release_helpers() {
    is_done_ = true;
    if (num_threads_ > 1) barrier_.wait([] {});
  }

  void run_windows() {
    Cycle now = 0;
    std::uint64_t windows = 0;
    while (true) {
      if (interrupt_ && windows++ % 256 == 0) interrupt_();
      const Cycle end = now + machine_.window;
      for (std::uint32_t s = 0; s < num_sms_; ++s) sms_[s]->begin_window(memory_.queued(s));
      run_sms(end);
      for (std::uint32_t s = 0; s < num_sms_; ++s) send_requests(s);
      memory_.run(end);
      for (const auto& sm : sms_) sm->end_window();
      std::uint64_t next = memory::never;
      if (memory_.next() != Timeline<int>::no_cycle)
        next = static_cast<std::uint64_t>(memory_.next());
      for (std::uint32_t s = 0; s < num_sms_; ++s) {
        next = std::min(next, sms_[s]->next(end));
      }
      if (next == memory::never) break;
      const Cycle first = std::max(end, static_cast<Cycle>(next));
      // Windows begin where they would if those in between were played.
      const bool keeps_pace =
          std::ranges::any_of(sms_, [](const auto& sm) { return sm->asks_in_vain(); });
      now = keeps_pace ? end + (first - end) / machine_.window * machine_.window : first;
    }
  }

  void send_requests(std::uint32_t s) {
    if (!sms_[s]->requests().requests.empty()) memory_.take(s, sms_[s]->requests());
  }
  /// The block of the trace that a block of the launch is like: those that were not traced are as
  /// the traced ones, in turn.
  [[nodiscard]] std::uint32_t traced(std::uint64_t block) const {
    return static_cast<std::uint32_t>(block % trace_.blocks().size());
  }
  void skip_idle_blocks() {
    while (has_blocks() && trace_.blocks().counts(traced(next_block_)).instructions == 0) {
      ++next_block_;
    }
  }
  [[nodiscard]] bool has_blocks() const { return next_block_ < num_blocks_; }

  /// A place of an SM is free from `now` on: the next block starts there.
  void start_next(std::uint32_t sm, Cycle now) {
    if (!has_blocks()) return;
    const Cycle start = std::max(now, static_cast<Cycle>(std::ceil(starts_free_ - 1e-6)));
    starts_free_ =
        std::max(starts_free_, static_cast<double>(start) - 1) + machine_.gpu.block_interval_cycles;
    const std::uint64_t round = next_block_ / trace_.blocks().size();
    sms_[sm]->start_block(traced(next_block_++), start, steps_, round * bytes_of_round);
    skip_idle_blocks();
  }

  /// Runs the SMs of a thread until the end of the window.
  void run_share(std::size_t thread) {
    try {
      for (std::size_t s = thread; s < sms_.size(); s += num_threads_) {
        sms_[s]->run(window_end_, has_blocks());
      }
    } catch (...) {
      const std::scoped_lock lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void run_sms(Cycle end) {
    window_end_ = end;
    if (num_threads_ > 1) barrier_.wait([] {});
    run_share(0);
    if (num_threads_ > 1) barrier_.wait([] {});
    if (failure_) std::rethrow_exception(failure_);
    while (true) {
      std::vector<std::pair<Cycle, std::uint32_t>> places;
      for (std::uint32_t s = 0; s < num_sms_; ++s) {
        for (const Cycle freed : sms_[s]->freed()) places.emplace_back(freed, s);
        sms_[s]->freed().clear();
      }
      if (places.empty()) return;
      std::ranges::sort(places);
      const auto replacement = static_cast<Cycle>(std::ceil(machine_.block_replacement));
      for (const auto& [freed, s] : places) start_next(s, freed + replacement);
      for (const auto& [freed, s] : places) sms_[s]->run(end, has_blocks());
    }
  }

  void finish() {
    for (const auto& sm : sms_) {
      if (sm->resident_warps() == 0) continue;
      if (const std::string barrier = sm->explain_barrier(); !barrier.empty()) {
        throw InputError("interval simulation: kernel " +
                         std::to_string(trace_.header().launch_id) + " (" + trace_.header().name +
                         ") is in a deadlock, because too few warps come to a barrier: " + barrier);
      }
      throw std::logic_error("interval simulation: kernel " +
                             std::to_string(trace_.header().launch_id) + " (" +
                             trace_.header().name + ") stops with warps that wait");
    }
    for (const auto& sm : sms_) memory::flush_into_l2(sm->l1(), l2_, result_.totals);
    double end = 0;
    for (const auto& sm : sms_) {
      const auto cycles = static_cast<double>(sm->end());
      end = std::max(end, cycles);
      if (sm->instructions() == 0) continue;
      ++result_.active_sms;
      result_.sm_cycles += cycles;
      result_.instructions += sm->instructions();
      const double issued = static_cast<double>(sm->instructions()) / machine_.gpu.issue_width;
      result_.stack[StackComponent::base] += std::min(issued, cycles);
      const double lost = std::max(cycles - issued, 0.0);
      const CpiStack<double> causes = sm->waited();
      const double waited = causes.sum();
      if (waited <= 0) result_.stack[StackComponent::base] += lost;
      for (const StackComponent c : values_of<StackComponent>) {
        if (waited > 0) result_.stack[c] += lost * causes[c] / waited;
      }
      result_.totals += sm->totals();
    }
    result_.totals += memory_.totals();
    using gpu::KernelEnd;
    if (machine_.gpu.kernel_end != KernelEnd::last_warp)
      end = std::max(end, memory_.last_write() + 1);
    if (machine_.gpu.kernel_end == KernelEnd::last_transfer) {
      end = std::max(end, memory_.last_transfer() + 1);
    }
    if (machine_.gpu.kernel_end == KernelEnd::last_acknowledgement && memory_.last_write() >= 0) {
      end = std::max(end, memory_.last_write() + 1 + machine_.gpu.l2_latency -
                              static_cast<double>(machine_.pipeline));
    }
    result_.cycles = std::floor(end);
    result_.blocks = num_blocks_;
    memory::count_instructions(trace_, result_.totals);
    result_.totals[memory::Total::l2_dirty_sectors] = l2_.dirty_sectors();
  }

  const trace::KernelTrace& trace_;
  const Machine& machine_;
  memory::Cache& l2_;
  const InterruptCheck& interrupt_;
  memory::RowFlags flags_;
  memory::CodeLines code_;
  KindSteps steps_;
  std::uint32_t num_sms_;
  MemorySide memory_;
  std::vector<std::unique_ptr<Sm>> sms_;
  /// Blocks that were not traced have their own data, so far away from those of the traced ones.
  static constexpr std::uint64_t bytes_of_round = std::uint64_t{1} << 44;
  std::uint64_t num_blocks_;  ///< of the launch that run
  std::uint64_t next_block_ = 0;
  double starts_free_ = 0;
  Cycle window_end_ = 0;
  std::size_t num_threads_ = 1;
  SpinBarrier barrier_{1};
  bool is_done_ = false;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  Result result_;
};

}  // namespace

IntervalSimulator::IntervalSimulator(const gpu::Gpu& gpu, unsigned num_threads,
                                     double written_by_strangers)
    : machine_(Machine::of(gpu, written_by_strangers)),
      num_threads_(threads_asked_for(num_threads)),
      l2_(machine_.memory.l2),
      repeated_(machine_.memory.l2) {}

Result IntervalSimulator::run(const trace::KernelTrace& trace, const InterruptCheck& interrupt) {
  const std::scoped_lock lock(mutex_);
  return repeated_.result_of(
      trace, "", l2_, [&] { return Run(trace, machine_, l2_, num_threads_, interrupt).run(); });
}

}  // namespace warpstack::interval_simulation
