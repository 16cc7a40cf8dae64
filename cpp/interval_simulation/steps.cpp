#include "interval_simulation/steps.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace warpstack::interval_simulation {

StepBuilder::StepBuilder(const trace::KernelTrace& trace, const Machine& machine,
                         const memory::CodeLines& code)
    : trace_(trace),
      machine_(machine),
      code_(code),
      has_control_(trace.has_control()),
      has_groups_(false) {
  const bool has_product_waits = trace::has_product_waits(trace.effects());
  for (std::size_t r = 0; r < trace.instructions().size(); ++r) {
    const trace::StaticInstruction& instruction = trace.instructions()[r];
    const trace::Effects& effects = trace.effects()[r];
    Row& row = rows_.emplace_back();
    row.latency = std::ceil(machine.latency.of(instruction.op_class, effects.tensor));
    row.unit = static_cast<std::uint8_t>(effects.unit);
    row.is_memory = instruction.is_memory();
    row.uses_caches = instruction.uses_caches();
    row.interval = row.is_memory ? 0 : machine.interval[row.unit];
    if (instruction.op_class == trace::OpClass::tensor) {
      row.interval = machine.latency.tensor.cycles(effects.tensor);
    }
    row.returns = instruction.reads_memory() || instruction.kind == trace::MemoryKind::atomic;
    row.stops_warp = machine.atomics_stop_warps && instruction.is_cached_atomic();
    row.is_answered = row.returns || row.stops_warp || (machine.awaits_stores && row.uses_caches);
    row.is_block_barrier = effects.is_block_barrier;
    row.arrives_at_barrier = effects.barrier.kind == trace::BarrierStep::Kind::arrive;
    row.is_grouped_copy = effects.is_grouped_copy;
    row.is_async_product = has_product_waits && effects.is_async_product;
    row.is_bulk_store = effects.is_bulk_store;
    row.steps_phase = effects.phase.kind != trace::PhaseStep::Kind::none;
    has_phases_ =
        has_phases_ || (row.steps_phase && effects.phase.kind == trace::PhaseStep::Kind::wait);
    has_groups_ = has_groups_ || effects.groups.kind != trace::CopyGroupStep::Kind::none;
    row.has_result = row.is_async_product || !instruction.destinations.empty();
    row.registers = static_cast<std::uint32_t>(registers_.size());
    if (has_control_) continue;
    const std::vector<std::uint16_t> sources =
        row.is_async_product ? trace::awaited_by_product(instruction) : instruction.sources;
    row.num_sources = static_cast<std::uint16_t>(sources.size());
    registers_.insert(registers_.end(), sources.begin(), sources.end());
    if (row.is_async_product) continue;
    row.num_destinations = static_cast<std::uint16_t>(instruction.destinations.size());
    registers_.insert(registers_.end(), instruction.destinations.begin(),
                      instruction.destinations.end());
  }
  register_ready_.resize(std::max(trace.num_registers(), 1u));
}

void StepBuilder::begin_warp() {
  made_ = {};
  std::ranges::fill(register_ready_, Ready{});
  position_.assign(1, 0);
  here_ = earliest_ = 0;
  before_ = never;
  instructions_ = num_accesses_ = 0;
  is_waited_.clear();
  pending_.clear();
  used_ = {};
  unit_free_ = {};
  for (std::vector<Hold>& held : held_) held.clear();
  copies_.clear();
  copy_groups_.clear();
  product_groups_.clear();
  products_.clear();
  bulk_stores_.clear();
  bulk_groups_.clear();
  stopping_ = last_ = stall_ = {};
}

StepBuilder::Ready StepBuilder::now_plus(double cycles) const {
  Ready ready;
  ready.step = static_cast<std::uint32_t>(made_.steps.size());
  ready.here = here_ + cycles;
  ready.before = before_ > never / 2 ? before_ + cycles : never;
  return ready;
}

void StepBuilder::wait_for(const Ready& ready) {
  if (ready.access != Ready::no_access) {
    const auto access = static_cast<std::size_t>(ready.access);
    const char bit = ready.until_sent ? 1 : 2;
    if (is_waited_[access] >= bit) return;
    is_waited_[access] = bit;
    pending_.push_back({static_cast<std::uint32_t>(access), ready.until_sent});
    made_.most_behind =
        std::max(made_.most_behind, num_accesses_ - static_cast<std::uint32_t>(access));
    return;
  }
  const auto step = static_cast<std::uint32_t>(made_.steps.size());
  if (ready.step == step) {
    here_ = std::max(here_, ready.here);
    before_ = std::max(before_, ready.before);
    return;
  }
  // From an earlier head: as if nothing had held the warp up since, but for the last step.
  const double before = from_head_before(ready, step);
  if (before > 0) before_ = std::max(before_, before);
}

void StepBuilder::close(Step::Action action, std::uint32_t row, bool steps_phase) {
  Step& step = made_.steps.emplace_back();
  const double fresh = std::max(here_, 0.0);
  step.fresh = static_cast<float>(fresh);
  step.carried = before_ > 0 ? static_cast<float>(before_) : 0;
  step.instructions = instructions_;
  step.row = row;
  step.action = action;
  step.steps_phase = steps_phase;
  step.first_wait = static_cast<std::uint32_t>(made_.waits.size());
  step.num_waits = static_cast<std::uint16_t>(pending_.size());
  made_.waits.insert(made_.waits.end(), pending_.begin(), pending_.end());
  step.first_use = static_cast<std::uint32_t>(made_.uses.size());
  for (std::size_t unit = 0; unit < used_.size(); ++unit) {
    if (used_[unit] == 0) continue;
    made_.uses.push_back({static_cast<std::uint8_t>(unit), static_cast<float>(used_[unit])});
    ++step.num_uses;
  }
  // The scheduler looks at the largest.
  std::ranges::stable_sort(made_.uses.end() - step.num_uses, made_.uses.end(), std::greater<>(),
                           &UnitUse::cycles);
  double position = position_.back() + fresh;
  if (step.carried > 0 && position_.size() > 1) {
    position = std::max(position, position_[position_.size() - 2] + before_);
  }
  position_.push_back(position);
  pending_.clear();
  used_ = {};
  instructions_ = 0;
  here_ = 0;
  // After a barrier the next instruction issues no earlier than its latency says.
  earliest_ = action == Step::Action::barrier ? static_cast<double>(machine_.barrier_latency) : 0;
  before_ = never;
}

void StepBuilder::wait_for_control(std::uint32_t row) {
  const trace::Control& control = *trace_.instructions()[row].control;
  wait_for(stall_);
  for (std::uint32_t barrier = 0; barrier < held_.size(); ++barrier) {
    if ((control.wait_mask >> barrier & 1) == 0) continue;
    for (const Hold& hold : held_[barrier]) wait_for(hold);
    held_[barrier].clear();
  }
  if (control.counted_barrier != trace::no_control_barrier) {
    std::vector<Hold>& held = held_[control.counted_barrier];
    while (held.size() > control.counted_most) {
      wait_for(held.front());
      held.erase(held.begin());
    }
  }
}

void StepBuilder::wait_for_groups(std::uint32_t row) {
  using Kind = trace::CopyGroupStep::Kind;
  const trace::CopyGroupStep& step = trace_.effects()[row].groups;
  if (step.kind == Kind::wait_all) {
    for (const Hold& group : copy_groups_) wait_for(group);
    wait_for(copies_);
    copy_groups_.clear();
    copies_.clear();
    return;
  }
  if (step.kind != Kind::wait) return;
  using Of = trace::CopyGroupStep::Of;
  std::vector<Hold>& groups = step.of == Of::products      ? product_groups_
                              : step.of == Of::bulk_stores ? bulk_groups_
                                                           : copy_groups_;
  while (groups.size() > step.most) {
    for (Ready& ready : groups.front()) ready.until_sent = step.for_reading;
    wait_for(groups.front());
    groups.erase(groups.begin());
  }
}

void StepBuilder::take_group_step(std::uint32_t row, bool is_active) {
  if (!is_active) return;
  const trace::CopyGroupStep& step = trace_.effects()[row].groups;
  if (step.kind != trace::CopyGroupStep::Kind::commit) return;
  switch (step.of) {
    case trace::CopyGroupStep::Of::copies:
      copy_groups_.push_back(std::move(copies_));
      copies_.clear();
      break;
    case trace::CopyGroupStep::Of::products:
      product_groups_.push_back(std::move(products_));
      products_.clear();
      break;
    case trace::CopyGroupStep::Of::bulk_stores:
      bulk_groups_.push_back(std::move(bulk_stores_));
      bulk_stores_.clear();
      break;
  }
}

void StepBuilder::hold_barriers(std::uint32_t row_number, bool is_active) {
  const trace::Control& control = *trace_.instructions()[row_number].control;
  const Row& row = rows_[row_number];
  stall_ = now_plus(control.issue_distance());
  if (!is_active) return;
  const bool awaits_copies = trace_.effects()[row_number].awaits_copies;
  const auto barrier_of = [&](std::uint8_t barrier) -> std::vector<Hold>* {
    return barrier == trace::no_control_barrier ? nullptr : &held_[barrier];
  };
  if (auto* held = barrier_of(control.write_barrier)) {
    if (awaits_copies) {
      held->push_back(std::move(copies_));
      copies_.clear();
    } else if (!row.is_memory) {
      held->push_back({now_plus(row.latency)});
    }
  }
  if (auto* held = barrier_of(control.read_barrier); held && !row.is_memory) {
    held->push_back({now_plus(row.interval)});
  }
}

void StepBuilder::note_result(const Ready& ready) {
  Ready latest = ready;
  if (last_.step == ready.step) {
    latest.here = std::max(latest.here, last_.here);
    latest.before = std::max(latest.before, last_.before);
  } else {
    latest.before = std::max(latest.before, from_head_before(last_, ready.step));
  }
  last_ = latest;
}

double StepBuilder::from_head_before(const Ready& ready, std::uint32_t step) const {
  const double before = ready.here - (position_[step - 1] - position_[ready.step]);
  if (ready.before <= never / 2 || ready.step == 0) return before;
  return std::max(before, ready.before - (position_[step - 1] - position_[ready.step - 1]));
}

WarpSteps StepBuilder::steps_of(const trace::ColumnView& warp) {
  begin_warp();
  made_.instructions = warp.instruction.size();
  std::size_t memory = 0;
  for (std::size_t k = 0; k < warp.instruction.size(); ++k) {
    const std::uint32_t number = warp.instruction[k];
    const Row& row = rows_[number];
    const bool is_active = warp.active_mask[k] != 0;
    here_ = std::max(here_ + machine_.issue_step, earliest_);
    if (before_ > never / 2) before_ += machine_.issue_step;
    if (has_control_) {
      wait_for_control(number);
    } else {
      for (const std::uint16_t reg : registers(row)) {
        wait_for(register_ready_[reg]);
        register_ready_[reg] = {};  // later instructions issue after this one
      }
    }
    if (has_groups_) wait_for_groups(number);
    if (row.interval > 0) {
      wait_for(unit_free_[row.unit]);
      used_[row.unit] += row.interval;
    }
    if (stopping_.access != Ready::no_access) wait_for(stopping_);
    stopping_ = {};
    ++instructions_;
    const std::uint32_t count = row.is_memory ? warp.memory_count[memory++] : 0;
    const bool accesses = row.is_memory && is_active && count > 0;
    const bool is_last = k + 1 == warp.instruction.size();
    const bool is_barrier = row.is_block_barrier && is_active && !is_last;
    // Who exits after a barrier of so many threads has arrived there.
    const bool arrives =
        is_active && (row.arrives_at_barrier || (row.is_block_barrier && is_last &&
                                                 trace_.effects()[number].barrier.threads > 0));
    const bool steps_phase = has_phases_ && row.steps_phase && is_active;
    const bool comes_to_code =
        !code_.is_all_there() &&
        (k == 0 || code_.of_row(number) != code_.of_row(warp.instruction[k - 1]));
    if (accesses) {
      close(row.uses_caches ? Step::Action::access : Step::Action::shared, number, steps_phase);
    } else if (steps_phase) {
      close(Step::Action::none, number, true);
    } else if (is_barrier) {
      close(Step::Action::barrier, number);
    } else if (arrives) {
      close(Step::Action::arrive, number);
    } else if (!pending_.empty() || comes_to_code) {
      close(Step::Action::none, number);
    }
    if (comes_to_code) made_.steps.back().comes_to_code = true;
    if (row.interval > 0) unit_free_[row.unit] = now_plus(row.interval);
    if (accesses) {
      Ready ready;
      const auto access = static_cast<std::int64_t>(num_accesses_++);
      is_waited_.push_back(0);
      ready.access = access;
      if (has_control_) {
        const trace::Control& control = *trace_.instructions()[number].control;
        if (control.read_barrier != trace::no_control_barrier) {
          held_[control.read_barrier].push_back({{access, true}});
        }
        if (control.write_barrier != trace::no_control_barrier) {
          held_[control.write_barrier].push_back({{access, !row.is_answered}});
        }
      } else if (row.returns) {
        for (const std::uint16_t reg : registers(row).subspan(row.num_sources)) {
          register_ready_[reg] = ready;
        }
      }
      if (row.is_grouped_copy) copies_.push_back(ready);
      if (row.stops_warp) stopping_ = ready;
      if (row.is_bulk_store) bulk_stores_.push_back(ready);
    } else if (is_active && !row.is_memory) {
      const Ready ready = now_plus(row.latency);
      if (row.is_async_product) products_.push_back(ready);
      for (const std::uint16_t reg : registers(row).subspan(row.num_sources)) {
        register_ready_[reg] = ready;
      }
      if (row.has_result) note_result(ready);
    }
    if (has_control_) hold_barriers(number, is_active);
    if (has_groups_) take_group_step(number, is_active);
  }
  // A warp is done a cycle after its last instruction, and when all results are there.
  here_ += 1;
  if (before_ > never / 2) before_ += 1;
  wait_for(last_);
  close(Step::Action::end, 0);
  return std::move(made_);
}

}  // namespace warpstack::interval_simulation
