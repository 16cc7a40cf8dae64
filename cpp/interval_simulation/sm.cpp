#include "interval_simulation/sm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "memory/cache/count.h"
#include "memory/cache/line_parts.h"

namespace warpstack::interval_simulation {
namespace {

/// std::ceil() is a call in portable builds.
Cycle ceil_of(double time) {
  const double exact = time - 1e-6;
  const auto cycle = static_cast<Cycle>(exact);
  return cycle + (exact > static_cast<double>(cycle) ? 1 : 0);
}

}  // namespace

Sm::Sm(const Machine& machine, const trace::KernelTrace& trace, const memory::RowFlags& flags,
       const memory::CodeLines& code, const memory::CacheConfig& l1, const memory::Cache& l2,
       std::uint32_t blocks, std::uint32_t warps_per_block, Fifo<Reply>& arrivals)
    : machine_(machine),
      trace_(trace),
      flags_(flags),
      code_(code),
      l1_(l1),
      l2_(l2),
      l1_sectors_(l1.line_bytes / trace::sector_bytes),
      l2_sectors_(l2.config().line_bytes / trace::sector_bytes),
      first_local_line_(trace::local_region_sector / l1_sectors_),
      reserves_(machine.reserves && !machine.fills_late),
      atomics_{machine.memory.atomics_per_lane, machine.memory.atomic_lane_turns,
               machine.memory.atomic_words_at_once},
      grouper_(l1.line_bytes),
      lines_under_way_(machine.mshrs, machine.gpu.l1_mshr_targets),
      warps_(std::size_t{blocks} * warps_per_block),
      blocks_(blocks),
      warps_per_block_(warps_per_block),
      first_slots_(machine.schedulers),
      schedulers_(machine.schedulers, Scheduler(machine.scheduler_rate, machine.gpu.scheduler)),
      queue_(machine.gpu.lsu_queue_entries),
      arrivals_(arrivals),
      departures_(machine.noc_queue_entries),
      most_queued_(machine.noc_queue_entries + static_cast<std::size_t>(machine.pipeline)) {
  if (!code.is_all_there()) instruction_cache_.emplace(code);
  for (std::uint32_t b = blocks; b > 0; --b) free_blocks_.push_back(b - 1);
  for (const trace::Effects& effects : trace.effects()) {
    const trace::CopyGroupStep& step = effects.groups;
    awaits_bulk_stores_ = awaits_bulk_stores_ ||
                          (step.kind == trace::CopyGroupStep::Kind::wait &&
                           step.of == trace::CopyGroupStep::Of::bulk_stores && !step.for_reading);
  }
}

void Sm::start_block(std::uint32_t number, Cycle now, KindSteps& steps, std::uint64_t offset) {
  const std::uint32_t slot = free_blocks_.back();
  free_blocks_.pop_back();
  Block& block = blocks_[slot];
  block = {};
  std::uint32_t id = slot * warps_per_block_;
  const auto count = static_cast<std::uint32_t>(trace_.blocks().warps(number).size());
  block.is_whole = count == trace_.header().warps_per_block();
  next_warp_start_ = std::max(next_warp_start_, static_cast<double>(now));
  for (std::uint32_t w = 0; w < count; ++w) {
    if (trace_.blocks().warps(number)[w].instructions == 0) {
      block.is_whole = false;
      continue;
    }
    Warp& warp = warps_[id];
    warp.scheduler = id % static_cast<std::uint32_t>(schedulers_.size());
    // The first instructions of the warps of a scheduler take a slot each.
    double& first_slot = first_slots_[warp.scheduler];
    first_slot = std::max(first_slot, next_warp_start_);
    const Cycle start = ceil_of(first_slot);
    first_slot += 1 / machine_.scheduler_rate;
    next_warp_start_ += machine_.gpu.warp_start_cycles;
    warp.steps = steps.steps_of({number, w});
    warp.stream.emplace(trace_, flags_, trace::WarpPosition{number, w}, true);
    warp.accesses.assign(std::bit_ceil(std::size_t{warp.steps->most_behind} + 1), {});
    warp.next_access = warp.step = warp.outstanding = 0;
    warp.block = slot;
    warp.offset = offset / l1_.config().line_bytes;
    schedulers_[warp.scheduler].enter(id);
    warp.all_done = start;
    // As if an instruction before its first one had issued a step before the start.
    warp.head = warp.head_before = static_cast<double>(start) - machine_.issue_step;
    warp.is_blocked = warp.is_at_barrier = false;
    warp.passed.clear();
    num_instructions_ += warp.steps->instructions;
    block.warps.push_back(id);
    ++num_warps_;
    warp.is_starting = true;
    wakes_.add(static_cast<std::uint64_t>(start), id);
    ++id;
  }
  block.resident = block.unfinished = static_cast<std::uint32_t>(block.warps.size());
}

bool Sm::departed(Time now) {
  --queued_;
  if (!waits_for_noc_) return false;
  waits_for_noc_ = false;
  const Cycle until = std::max(unit_time_, ceil_of(now));
  waited_for_noc_ += static_cast<double>(until - unit_time_);
  if (until > unit_time_) looked_up_ = 0;
  unit_time_ = until;
  run(window_end_, stops_at_places_);
  return true;
}

void Sm::end_window() {
  if (!waits_for_noc_) return;
  is_catching_up_ = true;
  run(window_end_, stops_at_places_);
  is_catching_up_ = false;
}

void Sm::run(Cycle end, bool stops_at_places) {
  window_end_ = end;
  stops_at_places_ = stops_at_places;
  if (is_interrupted_ && !waits_for_noc_) is_interrupted_ = !continue_access();
  while (true) {
    if (stops_at_places && !freed_.empty()) return;
    if (waits_for_noc_ && !is_catching_up_) return;
    Cycle turn = 0;
    if (num_ready_ > 0 && !is_interrupted_) {
      turn = first_turn();
      if (turn <= now_) {
        issue_access(choose(turn), turn);
        continue;
      }
    }
    Cycle next = wakes_.empty() ? end
                                : static_cast<Cycle>(std::min<std::uint64_t>(
                                      wakes_.first(), static_cast<std::uint64_t>(end)));
    if (!arrivals_.empty()) next = std::min(next, ceil_of(arrivals_.front().time));
    double issued = Scheduler::never;
    for (Scheduler& scheduler : schedulers_) issued = std::min(issued, scheduler.next());
    if (issued < static_cast<double>(next)) next = std::min(next, ceil_of(issued));
    if (num_ready_ > 0 && !is_interrupted_ && turn < next) {
      now_ = turn;
      issue_access(choose(turn), turn);
      continue;
    }
    if (next >= end) return;
    now_ = std::max(now_, next);
    take_arrivals(now_);
    for (Scheduler& scheduler : schedulers_) {
      while (scheduler.next() <= static_cast<double>(now_) + 1e-6) {
        const double time = scheduler.next();
        for (const std::uint32_t id : scheduler.finish()) end_step(id, time);
      }
    }
    woken_.clear();
    wakes_.advance(static_cast<std::uint64_t>(now_),
                   [this](std::uint32_t id) { woken_.push_back(id); });
    for (const std::uint32_t id : woken_) head_is_ready(id, now_);
  }
}

std::uint64_t Sm::next(Cycle end) {
  std::uint64_t first = wakes_.first();
  // What the load-store unit waits for comes with a reply, or when the NoC has room.
  if (is_interrupted_ && !waits_for_data_ && !waits_for_noc_ && !asks_in_vain_) {
    first = std::min(first, static_cast<std::uint64_t>(std::max(end, unit_time_)));
  }
  for (Scheduler& scheduler : schedulers_) {
    if (scheduler.next() < Scheduler::never) {
      first = std::min(first, static_cast<std::uint64_t>(ceil_of(scheduler.next())));
    }
  }
  if (num_ready_ > 0 && !is_interrupted_) first = static_cast<std::uint64_t>(end);
  if (!arrivals_.empty()) {
    first = std::min(first, static_cast<std::uint64_t>(ceil_of(arrivals_.front().time)));
  }
  return first;
}

void Sm::begin_step(std::uint32_t id) {
  Warp& warp = warps_[id];
  const Step& step = warp.steps->steps[warp.step];
  double own = warp.head + step.fresh;
  if (step.carried > 0) own = std::max(own, warp.head_before + step.carried);
  const double span = own - warp.head;
  waited_[StackComponent::dep] += std::max(span - step.instructions * machine_.issue_step, 0.0);
  warp.is_blocked = false;
  schedulers_[warp.scheduler].begin_step(
      id, span, step.instructions,
      std::span(warp.steps->uses).subspan(step.first_use, step.num_uses), warp.head);
}

void Sm::end_step(std::uint32_t id, double now) {
  Warp& warp = warps_[id];
  warp.ready = now;
  look_at_waits(id, now_);
}

void Sm::look_at_waits(std::uint32_t id, Cycle now) {
  Warp& warp = warps_[id];
  const Step& step = warp.steps->steps[warp.step];
  double ready = warp.ready;
  const Access* last = nullptr;
  warp.is_blocked = false;
  for (std::uint16_t w = 0; w < step.num_waits && !warp.is_blocked; ++w) {
    const Wait& wait = warp.steps->waits[step.first_wait + w];
    const Access& access = access_of(warp, wait.access);
    if (wait.until_sent) {
      if (access.sent < 0) {
        warp.is_blocked = true;
      } else {
        ready = std::max(ready, static_cast<double>(access.sent + 1));
      }
      continue;
    }
    if (access.pending > 0) {
      warp.is_blocked = true;
    } else if (static_cast<double>(access.done) > ready) {
      ready = static_cast<double>(access.done);
      last = &access;
    }
  }
  if (step.steps_phase) {
    const std::optional<Cycle> made = phase_is_made(warp);
    if (!made) {
      warp.is_blocked = true;
    } else {
      ready = std::max(ready, static_cast<double>(*made));
    }
  }
  if (step.action == Step::Action::end) {
    warp.is_blocked = warp.outstanding > 0;
    if (static_cast<double>(warp.all_done) > ready) {
      ready = static_cast<double>(warp.all_done);
      last = &warp.last_done;
    }
  }
  if (warp.is_blocked) return;
  if (last != nullptr) lose(*last, ready - warp.ready);
  Cycle head = std::max(ceil_of(ready), now);
  if (step.comes_to_code) {
    const Cycle there = instruction_cache_->come_to(code_.of_row(step.row), now_);
    waited_[StackComponent::dep] += static_cast<double>(std::max(there - head, Cycle{0}));
    head = std::max(head, there);
  }
  if (head <= now_) return head_is_ready(id, now_);
  wakes_.add(static_cast<std::uint64_t>(head), id);
}

void Sm::lose(const Access& access, double cycles) {
  if (!access.has_missed) {
    waited_[access.is_shared ? StackComponent::dep : StackComponent::l1] += cycles;
    return;
  }
  const Waited& waited = access.waited;
  const double sum =
      double{waited.l1} + waited.mshr + waited.noc + waited.l2 + waited.queue + waited.dram;
  const double share = cycles / std::max(sum, 1e-9);
  waited_[StackComponent::l1] += waited.l1 * share;
  waited_[StackComponent::mshr] += waited.mshr * share;
  waited_[StackComponent::noc] += waited.noc * share;
  waited_[StackComponent::l2] += waited.l2 * share;
  waited_[StackComponent::queue] += waited.queue * share;
  waited_[StackComponent::dram] += waited.dram * share;
}

void Sm::head_is_ready(std::uint32_t id, Cycle now) {
  Warp& warp = warps_[id];
  if (warp.is_starting) {
    warp.is_starting = false;
    return begin_step(id);
  }
  switch (warp.steps->steps[warp.step].action) {
    case Step::Action::access:
    case Step::Action::shared:
      schedulers_[warp.scheduler].set_ready(id, now);
      ++num_ready_;
      warp.waits_since = now;
      warp.mshr_mark = waited_for_mshr_;
      warp.noc_mark = waited_for_noc_;
      warp.stream->prefetch();
      __builtin_prefetch(&access_of(warp, warp.next_access));
      return;
    case Step::Action::barrier:
      return reach_barrier(id, now);
    case Step::Action::arrive:
      return pass_barrier(id, now);
    case Step::Action::end:
      return end_warp(id, now);
    case Step::Action::none:
      return head_issued(id, now);
  }
}

std::optional<Cycle> Sm::phase_is_made(const Warp& warp) const {
  const trace::PhaseStep& phase = trace_.effects()[warp.steps->steps[warp.step].row].phase;
  if (phase.kind != trace::PhaseStep::Kind::wait) return Cycle{0};
  std::size_t count = phase.count;
  for (const auto& [barrier, passed] : warp.passed) {
    if (barrier == phase.barrier) count += passed;
  }
  return blocks_[warp.block].phases.made(phase.barrier, count);
}

void Sm::take_phase_step(std::uint32_t id, std::uint32_t row, Cycle now) {
  Warp& warp = warps_[id];
  const trace::PhaseStep& phase = trace_.effects()[row].phase;
  if (phase.kind == trace::PhaseStep::Kind::wait) {
    const auto passed =
        std::ranges::find(warp.passed, phase.barrier, [](const auto& one) { return one.first; });
    if (passed == warp.passed.end()) {
      warp.passed.emplace_back(phase.barrier, phase.count);
    } else {
      passed->second += phase.count;
    }
    return;
  }
  const trace::StaticInstruction& instruction = trace_.instructions()[row];
  const Cycle latency =
      instruction.is_memory()
          ? 1
          : std::max<Cycle>(ceil_of(machine_.latency.of(instruction.op_class)), 1);
  Cycle earliest = now + latency;
  // What it waits for: its own access, and the copies of its warp.
  const bool is_access = warp.steps->steps[warp.step].action == Step::Action::access;
  std::vector<Access*> pending;
  const auto number = warp.next_access;
  for (std::uint32_t back = 1; back <= warp.accesses.size() && back <= number; ++back) {
    Access& access = access_of(warp, number - back);
    const bool counts = (is_access && back == 1) || (phase.is_after_copies && access.is_copy);
    if (counts && access.pending > 0 && access.completion == none) pending.push_back(&access);
    if (counts && access.pending == 0) earliest = std::max(earliest, access.done);
    if (!phase.is_after_copies) break;
  }
  const std::uint32_t completion = blocks_[warp.block].phases.complete(
      phase.barrier, static_cast<std::uint32_t>(pending.size()), earliest);
  for (Access* access : pending) access->completion = completion;
  if (pending.empty()) look_at_phases(warp.block);
}

void Sm::look_at_phases(std::uint32_t block) {
  for (const std::uint32_t id : blocks_[block].warps) {
    const Warp& warp = warps_[id];
    if (warp.is_blocked && warp.steps->steps[warp.step].steps_phase) look_at_waits(id, now_);
  }
}

CpiStack<double> Sm::waited() const {
  CpiStack<double> waited = waited_;
  for (const Scheduler& scheduler : schedulers_) {
    waited[StackComponent::dep] += scheduler.waited_for_units();
  }
  return waited;
}

void Sm::head_issued(std::uint32_t id, Cycle now) {
  Warp& warp = warps_[id];
  const Step& step = warp.steps->steps[warp.step];
  if (step.steps_phase) take_phase_step(id, step.row, now);
  warp.head_before = warp.head;
  warp.head = static_cast<double>(now);
  ++warp.step;
  begin_step(id);
}

void Sm::reach_barrier(std::uint32_t id, Cycle now) {
  Warp& warp = warps_[id];
  Block& block = blocks_[warp.block];
  const trace::BarrierStep step =
      block.is_whole ? barrier_step(warp) : trace::BarrierStep{trace::BarrierStep::Kind::wait};
  warp.is_at_barrier = true;
  warp.barrier = step.number;
  block.barriers.arrive(step);
  check_barrier(warp.block, step.number, now);
}

void Sm::pass_barrier(std::uint32_t id, Cycle now) {
  const std::uint32_t b = warps_[id].block;
  const trace::BarrierStep step = barrier_step(warps_[id]);
  if (blocks_[b].is_whole) blocks_[b].barriers.arrive(step);
  head_issued(id, now);
  check_barrier(b, step.number, now);
}

std::string Sm::explain_barrier() const {
  for (const Block& block : blocks_) {
    for (const std::uint32_t id : block.warps) {
      const Warp& warp = warps_[id];
      if (!warp.is_at_barrier) continue;
      return "block " + std::to_string(warp.stream->position().block) + ": warp " +
             std::to_string(warp.stream->position().warp) + " waits at " +
             block.barriers.describe(warp.barrier, block.unfinished);
    }
  }
  return {};
}

void Sm::check_barrier(std::uint32_t b, std::uint32_t number, Cycle now) {
  Block& block = blocks_[b];
  if (!block.barriers.is_complete(number, block.unfinished)) return;
  block.barriers.clear(number);
  for (const std::uint32_t id : block.warps) {
    Warp& warp = warps_[id];
    if (!warp.is_at_barrier || warp.barrier != number) continue;
    warp.is_at_barrier = false;
    head_issued(id, now);
  }
}

void Sm::end_warp(std::uint32_t id, Cycle now) {
  Warp& warp = warps_[id];
  Block& block = blocks_[warp.block];
  end_ = std::max(end_, now);
  schedulers_[warp.scheduler].leave(id);
  --num_warps_;
  warp.steps.reset();
  warp.stream.reset();
  std::erase(block.warps, id);
  --block.unfinished;
  if (--block.resident == 0) {
    free_blocks_.push_back(warp.block);
    std::ranges::sort(free_blocks_, std::greater<>());
    freed_.push_back(now);
  } else {
    for (std::uint32_t number = 0; number < trace::num_block_barriers; ++number) {
      check_barrier(warp.block, number, now);
    }
  }
}

void Sm::take_arrivals(Cycle until) {
  while (!arrivals_.empty() && ceil_of(arrivals_.front().time) <= until) {
    const Reply reply = arrivals_.front();
    arrivals_.pop();
    prefetch_arrivals();
    arrive(reply);
  }
}

void Sm::prefetch_arrivals() const {
  if (arrivals_.size() > 2) __builtin_prefetch(&fetches_[arrivals_[2].owner]);
  if (arrivals_.size() > 1) {
    const Fetch& fetch = fetches_[arrivals_[1].owner];
    if (fetch.line != none) lines_under_way_.prefetch(fetch.line);
  }
}

void Sm::arrive(const Reply& reply) {
  Fetch& fetch = fetches_[reply.owner];
  if (--fetch.packets > 0) return;
  const Cycle now = ceil_of(reply.time);
  const auto reach = [&](const Target& target) {
    if (target.warp == none) return;
    Waited waited{target.before.l1,
                  target.before.mshr,
                  target.before.noc + reply.noc,
                  static_cast<float>(machine_.gpu.l2_latency),
                  reply.queue,
                  reply.dram};
    // As in the papers (GPUMech, Table III): a load that DRAM serves waits for DRAM alone.
    if (reply.dram > 0) {
      waited.dram += waited.l2;
      waited.l2 = 0;
    }
    part_is_done(target.warp, target.access, now, &waited);
  };
  if (fetch.line == none) {
    reach(fetch.target);
  } else {
    const std::uint64_t line = lines_under_way_.line(fetch.line);
    if (reserves_) l1_.release(l1_.set_of(line), line);
    if (machine_.fills_late) {
      memory::Cache::Eviction eviction;
      l1_.read(l1_.set_of(line), line, lines_under_way_.mask(fetch.line), fetch.evict_first,
               eviction);
      write_back(eviction, now);
    }
    lines_under_way_.for_each_target(fetch.line, reach);
    lines_under_way_.release(fetch.line);
  }
  free_fetches_.push_back(reply.owner);
}

void Sm::part_is_done(std::uint32_t id, std::uint32_t number, Cycle done, const Waited* waited) {
  Warp& warp = warps_[id];
  Access& access = access_of(warp, number);
  if (done >= access.done) {
    access.done = done;
    if (waited != nullptr) {
      access.waited = *waited;
      access.has_missed = true;
    }
  }
  if (--access.pending > 0) return;
  --warp.outstanding;
  const std::uint32_t completion = std::exchange(access.completion, none);
  if (access.done >= warp.all_done) {
    warp.all_done = access.done;
    warp.last_done = access;
  }
  if (warp.is_blocked) look_at_waits(id, now_);
  if (completion == none) return;
  const std::uint32_t block = warp.block;
  if (blocks_[block].phases.access_is_done(completion, done)) look_at_phases(block);
}

Cycle Sm::first_turn() const {
  const Cycle turn = std::max(queue_[queue_head_], accepted_ + 1);
  if (turn >= now_) return turn;
  // It was held up, while warps went on that did not need it.
  Cycle first = now_;
  for (const Scheduler& scheduler : schedulers_) first = scheduler.ready_since(first);
  return std::max(turn, first);
}

std::uint32_t Sm::choose(Cycle turn) const {
  const std::size_t count = schedulers_.size();
  auto scheduler = static_cast<std::size_t>(turn) % count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t warp = schedulers_[scheduler].first_ready(turn);
    if (warp != Scheduler::nobody) return warp;
    scheduler = scheduler + 1 == count ? 0 : scheduler + 1;
  }
  return none;
}

bool Sm::reaches_l1(std::uint64_t line) const {
  const trace::StaticInstruction& instruction = trace_.instructions()[row_];
  if (instruction.is_atomic()) return false;
  if (instruction.kind == trace::MemoryKind::store) return true;
  if (instruction.cache_operator == trace::CacheOperator::bypass_l1) return false;
  return instruction.cache_operator == trace::CacheOperator::read_only ||
         machine_.memory.l1_caches_global || line >= first_local_line_;
}

void Sm::issue_access(std::uint32_t id, Cycle now) {
  Warp& warp = warps_[id];
  schedulers_[warp.scheduler].clear_ready(id);
  --num_ready_;
  accepted_ = now;
  const double for_mshr = waited_for_mshr_ - warp.mshr_mark;
  const double for_noc = waited_for_noc_ - warp.noc_mark;
  const auto waited = static_cast<double>(std::max<Cycle>(now - warp.waits_since, 0));
  const double shown_mshr = std::clamp(for_mshr, 0.0, waited);
  const double shown_noc = std::clamp(for_noc, 0.0, waited - shown_mshr);
  waited_[StackComponent::mshr] += shown_mshr;
  waited_[StackComponent::noc] += shown_noc;
  waited_[StackComponent::l1] += waited - shown_mshr - shown_noc;

  const memory::MemoryAccess& access = warp.stream->current();
  issuing_ = id;
  access_ = warp.next_access++;
  row_ = access.row;
  mshr_mark_ = waited_for_mshr_;
  noc_mark_ = waited_for_noc_;
  unit_time_ = std::max(unit_time_, now);
  // Accesses that nobody waits for may be on their way for long.
  while (access_of(warp, access_).pending > 0) {
    std::vector<Access> larger(2 * warp.accesses.size());
    for (std::size_t i = 1; i <= warp.accesses.size() && i <= access_; ++i) {
      const std::size_t number = access_ - i;
      larger[number & (larger.size() - 1)] = warp.accesses[number & (warp.accesses.size() - 1)];
    }
    warp.accesses = std::move(larger);
  }
  Access& state = access_of(warp, access_);
  state = {};
  state.issued = now;
  const trace::StaticInstruction& instruction = trace_.instructions()[row_];
  const bool returns = instruction.reads_memory() || instruction.kind == trace::MemoryKind::atomic;
  const trace::Effects& effects = trace_.effects()[row_];
  state.is_copy = effects.is_grouped_copy;
  is_awaited_ = returns || machine_.awaits_stores ||
                (awaits_bulk_stores_ && effects.is_bulk_store) ||
                (machine_.atomics_stop_warps && instruction.is_atomic());
  lines_.clear();
  next_line_ = 0;
  if (access.wavefronts > 0) {
    state.is_shared = true;
    const Cycle per_pass = machine_.gpu.shared_wavefront_cycles;
    state.sent = unit_time_ + per_pass * (static_cast<Cycle>(access.wavefronts) - 1);
    if (returns) {
      state.done = state.sent + machine_.shared_latency;
      if (state.done >= warp.all_done) {
        warp.all_done = state.done;
        warp.last_done = state;
      }
    }
    const Cycle interval = instruction.is_atomic() ? 1 : machine_.gpu.lsu_interval;
    leave_queue(state.sent, std::max(state.sent + per_pass, unit_time_ + interval));
    warp.stream->advance();
  } else {
    const std::span<const memory::LineAccess> lines = grouper_.group(access);
    lines_.assign(lines.begin(), lines.end());
    bytes_.clear();
    lanes_.clear();
    for (std::size_t i = 0; !access.store_bytes.empty() && i < lines.size(); ++i) {
      bytes_.push_back(grouper_.bytes(i));
    }
    if (instruction.is_atomic()) {
      for (std::size_t i = 0; i < lines.size(); ++i) lanes_.push_back(grouper_.lanes(i));
      if (atomics_.per_lane) memory::split_by_lanes(lines_, bytes_, lanes_);
    }
    for (memory::LineAccess& line : lines_) {
      if (line.line < first_local_line_) line.line += warp.offset;
      line.set = l1_.set_of(line.line);
    }
    // Each line counts until it has been looked up.
    if (is_awaited_) {
      state.pending = static_cast<std::uint32_t>(lines_.size());
      ++warp.outstanding;
    }
    begun_ = unit_time_;
    const bool has_passes = machine_.gpu.l1_tags_per_cycle > 0 && !instruction.is_atomic();
    passes_ = has_passes ? access.l1_passes() : 0;
    lines_per_turn_ = has_passes ? machine_.gpu.l1_tags_per_cycle : 1;
    // The last pass of a load brings the last of its data.
    if (has_passes && returns) state.done = begun_ + passes_ - 1 + machine_.l1_latency;
    warp.stream->advance();
    is_interrupted_ = !continue_access();
  }
  head_issued(id, now);
}

bool Sm::continue_access() {
  waits_for_data_ = asks_in_vain_ = false;
  while (next_line_ < lines_.size()) {
    if (unit_time_ >= window_end_) return false;
    take_arrivals(unit_time_);
    asked_for_place_ = false;
    const Cause cause = look_up(lines_[next_line_], next_line_, unit_time_);
    if (cause == Cause::nothing) {
      ++next_line_;
      if (++looked_up_ < lines_per_turn_ && next_line_ < lines_.size()) continue;
      looked_up_ = 0;
      ++unit_time_;
      continue;
    }
    Cycle until = window_end_;
    waits_for_data_ = cause == Cause::mshr && arrivals_.empty();
    // Who asks for a place may change which line makes room next.
    asks_in_vain_ = cause == Cause::mshr && !arrivals_.empty() && !asked_for_place_;
    if (!arrivals_.empty()) until = std::min(until, ceil_of(arrivals_.front().time));
    if (cause == Cause::noc && is_held_up_) {
      // The memory side says when there is room.
      waits_for_noc_ = true;
      return false;
    }
    if (cause == Cause::noc) {
      until = std::min(until, ceil_of(departures_[num_sent_ % departures_.size()]));
    }
    until = std::max(until, unit_time_ + 1);
    (cause == Cause::mshr ? waited_for_mshr_ : waited_for_noc_) +=
        static_cast<double>(until - unit_time_);
    unit_time_ = until;
    looked_up_ = 0;
  }
  Warp& warp = warps_[issuing_];
  Access& access = access_of(warp, access_);
  access.sent = unit_time_ - 1;
  const Cycle interval = std::max(machine_.gpu.lsu_interval, passes_);
  leave_queue(access.sent, std::max(unit_time_, begun_ + interval));
  if (warp.is_blocked) look_at_waits(issuing_, now_);
  return true;
}

void Sm::leave_queue(Cycle last_turn, Cycle free) {
  queue_[queue_head_] = last_turn + 1;
  unit_time_ = free;
  queue_head_ = queue_head_ + 1 == queue_.size() ? 0 : queue_head_ + 1;
}

Sm::Cause Sm::look_up(const memory::LineAccess& line, std::size_t index, Cycle now) {
  const trace::StaticInstruction& instruction = trace_.instructions()[row_];
  if (instruction.is_atomic()) return look_up_atomic(line, index, now);
  if (instruction.kind == trace::MemoryKind::store) return look_up_store(line, index, now);
  return look_up_load(line, now);
}

Sm::Target Sm::target(Cycle now) const {
  const Warp& warp = warps_[issuing_];
  const Access& access = warp.accesses[access_ & (warp.accesses.size() - 1)];
  Target target{issuing_, access_, {}};
  target.before.mshr = static_cast<float>(std::max(waited_for_mshr_ - mshr_mark_, 0.0));
  target.before.noc = static_cast<float>(std::max(waited_for_noc_ - noc_mark_, 0.0));
  target.before.l1 = std::max(
      static_cast<float>(now - access.issued) - target.before.mshr - target.before.noc, 0.0F);
  return target;
}

Sm::Cause Sm::look_up_load(const memory::LineAccess& line, Cycle now) {
  const bool is_local = line.line >= first_local_line_;
  Warp& warp = warps_[issuing_];
  Access& access = access_of(warp, access_);
  if (!reaches_l1(line.line)) {
    if (!noc_has_room(now)) return Cause::noc;
    ++totals_[memory::Total::l1_read_requests];
    memory::count_l1_bypass(totals_, line.mask, is_local);
    send(line.line, line.mask, Request::Kind::read, nullptr, start_fetch(none, target(now)), now,
         nullptr, false);
    return Cause::nothing;
  }
  memory::Cache::Finding found = l1_.look(line.set, line.line);
  const memory::SectorMask absent = l1_.missing(found, line.mask);
  memory::SectorMask fetched = absent;
  memory::SectorMask under_way = 0;
  std::uint32_t waits_for = 0;
  bool has_targets = true;
  if (lines_under_way_.size() > 0) {
    if (machine_.fills_late && fetched) {
      lines_under_way_.for_each(line.line,
                                [&](std::uint32_t, memory::SectorMask mask) { under_way |= mask; });
      fetched &= static_cast<memory::SectorMask>(~under_way);
    }
    lines_under_way_.for_each(line.line, [&](std::uint32_t id, memory::SectorMask mask) {
      if ((mask & line.mask & ~fetched) == 0) return;
      ++waits_for;
      has_targets = has_targets && lines_under_way_.has_room(id);
    });
  }
  if (!has_targets || (fetched && lines_under_way_.is_full())) return Cause::mshr;
  if (fetched && !noc_has_room(now)) return Cause::noc;
  if (fetched && !can_take(line.set, line.line, found)) return Cause::mshr;

  ++totals_[memory::Total::l1_read_requests];
  memory::count_l1_load(totals_, line.mask, static_cast<memory::SectorMask>(line.mask & ~fetched),
                        is_local);
  if (waits_for > 0) {
    lines_under_way_.for_each(line.line, [&](std::uint32_t id, memory::SectorMask mask) {
      if (mask & line.mask & ~fetched) lines_under_way_.add_target(id, target(now));
    });
  }
  const trace::StaticInstruction& instruction = trace_.instructions()[row_];
  const bool evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
  memory::Cache::Eviction eviction;
  if (!machine_.fills_late) {
    l1_.read(line.set, line.line, line.mask, found, evict_first, eviction);
  } else if (l1_.contains(line.set, line.line)) {
    l1_.read(line.set, line.line, line.mask & ~absent, evict_first, eviction);
  }
  write_back(eviction, now);
  access.pending += waits_for;
  if (fetched) {
    if (reserves_) l1_.reserve(line.set, line.line);
    const std::uint32_t entry = lines_under_way_.allocate(line.line, fetched, target(now));
    send(line.line, fetched, Request::Kind::read, nullptr, start_fetch(entry, {}), now, nullptr,
         true);
    return Cause::nothing;  // the line is done with its data
  }
  // The line itself has been looked up; without anything under way its data are there.
  part_is_done(issuing_, access_, waits_for == 0 ? now + machine_.l1_latency : now, nullptr);
  return Cause::nothing;
}

Sm::Cause Sm::look_up_store(const memory::LineAccess& line, std::size_t index, Cycle now) {
  if (!noc_has_room(now)) return Cause::noc;
  const memory::ByteMasks& bytes = bytes_[index];
  if (l1_.write_fetch(line.set, line.line, line.mask, bytes) != 0 && lines_under_way_.is_full()) {
    return Cause::mshr;
  }
  if (l1_.config().write_miss != memory::WriteMiss::no_allocate && !can_take(line.set, line.line)) {
    return Cause::mshr;
  }
  const trace::StaticInstruction& instruction = trace_.instructions()[row_];
  const bool evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
  memory::Cache::Eviction eviction;
  const memory::Cache::WriteResult result =
      l1_.write(line.set, line.line, line.mask, bytes, row_, evict_first, eviction);
  memory::count_l1_store(totals_, line.mask, result.hit, line.line >= first_local_line_);
  write_back(eviction, now);
  if (result.fetch) {
    if (reserves_) l1_.reserve(line.set, line.line);
    send(line.line, result.fetch, Request::Kind::read, nullptr,
         start_fetch(lines_under_way_.allocate(line.line, result.fetch, {}), {}), now, nullptr,
         true);
  }
  if (result.forward) {
    send(line.line, result.forward, Request::Kind::write, &bytes,
         is_awaited_ ? start_fetch(none, target(now)) : Request::nobody, now, nullptr, true);
  } else if (is_awaited_) {
    part_is_done(issuing_, access_, now, nullptr);
  }
  return Cause::nothing;
}

Sm::Cause Sm::look_up_atomic(const memory::LineAccess& line, std::size_t index, Cycle now) {
  if (!noc_has_room(now)) return Cause::noc;
  const trace::StaticInstruction& instruction = trace_.instructions()[row_];
  const bool returns = instruction.kind == trace::MemoryKind::atomic;
  l1_.invalidate(line.set, line.line, line.mask);
  send(line.line, line.mask, returns ? Request::Kind::atomic : Request::Kind::reduction,
       &bytes_[index], is_awaited_ ? start_fetch(none, target(now)) : Request::nobody, now,
       &lanes_[index], false);
  return Cause::nothing;
}

std::uint32_t Sm::start_fetch(std::uint32_t line, const Target& target) {
  std::uint32_t id = 0;
  if (free_fetches_.empty()) {
    id = static_cast<std::uint32_t>(fetches_.size());
    fetches_.emplace_back();
  } else {
    id = free_fetches_.back();
    free_fetches_.pop_back();
  }
  fetches_[id] = {target, line, 0,
                  trace_.instructions()[row_].cache_operator == trace::CacheOperator::evict_first};
  return id;
}

void Sm::send(std::uint64_t l1_line, memory::SectorMask mask, Request::Kind kind,
              const memory::ByteMasks* bytes, std::uint32_t fetch, Cycle now,
              const memory::SectorLanes* lanes, bool looked_up) {
  const Cycle sent = looked_up ? now + machine_.pipeline : now;
  memory::for_each_part(
      l1_line, mask, bytes, l1_sectors_, l2_sectors_,
      [&](std::uint64_t line, memory::SectorMask part, const memory::ByteMasks* part_bytes) {
        Request& request = requests_.requests.emplace_back();
        request.sent = static_cast<double>(sent);
        request.line = line;
        request.set = l2_.set_of(line);
        request.slice = static_cast<std::uint16_t>(l2_.slice_of(request.set));
        request.owner = fetch;
        request.mask = part;
        request.kind = kind;
        request.evict_first =
            trace_.instructions()[row_].cache_operator == trace::CacheOperator::evict_first;
        if (part_bytes) {
          request.bytes = static_cast<std::uint32_t>(requests_.bytes.size());
          requests_.bytes.push_back(*part_bytes);
        }
        if (lanes) {
          request.lanes = static_cast<float>(atomics_.lanes_of_request(
              memory::lanes_of_part(*lanes, l1_line, l1_sectors_, line, l2_sectors_), part));
        }
        if (fetch != Request::nobody) ++fetches_[fetch].packets;
        // It leaves the queue when the port takes it.
        const double leaves = std::max(next_departure_, static_cast<double>(now));
        departures_[num_sent_++ % departures_.size()] = leaves;
        next_departure_ =
            leaves + request.bytes_there(machine_.gpu) * machine_.port_cycles_per_byte;
        ++queued_;
      });
}

void Sm::write_back(const memory::Cache::Eviction& eviction, Cycle now) {
  if (!eviction.dirty) return;
  send(eviction.line, eviction.dirty, Request::Kind::write, &eviction.bytes, Request::nobody, now,
       nullptr, false);
}

}  // namespace warpstack::interval_simulation
