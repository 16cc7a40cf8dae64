#include "interval/control_clock.h"

#include <algorithm>
#include <functional>

namespace warpstack::interval {

ControlClock::ControlClock(const trace::KernelTrace& trace) {
  const std::vector<trace::StaticInstruction>& instructions = trace.instructions();
  const std::vector<trace::Effects>& effects = trace.effects();
  has_control_ = !instructions.empty() && instructions.front().control.has_value();
  if (!has_control_) {
    has_phases_ = std::ranges::any_of(effects, [](const trace::Effects& one) {
      return one.phase.kind == trace::PhaseStep::Kind::wait;
    });
    const bool has_groups = std::ranges::any_of(effects, [](const trace::Effects& one) {
      return one.groups.kind != trace::CopyGroupStep::Kind::none;
    });
    if (!has_groups && !has_phases_) return;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      rows_.push_back(row_of(effects[i]));
    }
    return;
  }
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const trace::StaticInstruction& instruction = instructions[i];
    Row& row = rows_.emplace_back();
    row.control = *instruction.control;
    row.distance = row.control.issue_distance();
    row.returns = !instruction.is_memory() || instruction.reads_memory() ||
                  instruction.kind == trace::MemoryKind::atomic;
    if (effects[i].awaits_copies) row.awaits = Of::copies;
    row.phase = effects[i].phase;
    has_phases_ = has_phases_ || row.phase.kind == trace::PhaseStep::Kind::wait;
    // Groups of products and of bulk stores, which control fields do not name.
    const Row waits = row_of(effects[i]);
    row.is_one_of = waits.is_one_of;
    row.group = waits.control;
    if (waits.returns) row.commits = waits.awaits;
  }
}

ControlClock::Row ControlClock::row_of(const trace::Effects& effects) {
  using Kind = trace::CopyGroupStep::Kind;
  const trace::CopyGroupStep& step = effects.groups;
  // All groups of copies hold one barrier, those of products and of bulk stores others.
  const auto barrier = static_cast<std::uint8_t>(step.of);
  Row row;
  row.distance = 0;
  row.phase = effects.phase;
  if (effects.is_grouped_copy) {
    row.is_one_of = Of::copies;
  } else if (effects.is_async_product) {
    row.is_one_of = Of::products;
  } else if (effects.is_bulk_store) {
    row.is_one_of = Of::bulk_stores;  // what it stores is read at once
  }
  row.returns = step.kind == Kind::commit;
  row.awaits_all = step.kind == Kind::wait_all;
  if (row.returns) {
    row.awaits = step.of;
    row.control.write_barrier = barrier;
  }
  if (step.kind == Kind::wait && !step.for_reading) {
    row.control.counted_barrier = barrier;
    row.control.counted_most = static_cast<std::uint8_t>(std::min(step.most, 255u));
  }
  return row;
}

void ControlClock::reset() {
  stalls_until_ = 0;
  last_ = {};
  own_.clear();
  awaited_.clear();
  for (std::vector<Hold>& holds : holds_) holds.clear();
  for (std::vector<Hold>& holds : groups_) holds.clear();
}

ControlClock::Ready ControlClock::ready(std::uint32_t row) {
  const trace::Control& control = rows_[row].control;
  Ready result{stalls_until_, -1};
  const auto consider = [&result](const Hold& hold) {
    if (hold.end > result.time) result = {hold.end, hold.row};
  };
  for (std::uint32_t barrier = 0; barrier < holds_.size(); ++barrier) {
    if ((control.wait_mask >> barrier & 1) == 0) continue;
    for (const Hold& hold : holds_[barrier]) consider(hold);
  }
  if (control.counted_barrier != trace::no_control_barrier) {
    by_end_ = holds_[control.counted_barrier];
    std::ranges::stable_sort(by_end_, std::greater<>(), &Hold::end);
    if (control.counted_most < by_end_.size()) consider(by_end_[control.counted_most]);
  }
  if (const trace::Control& group = rows_[row].group;
      group.counted_barrier != trace::no_control_barrier) {
    by_end_ = groups_[group.counted_barrier];
    std::ranges::stable_sort(by_end_, std::greater<>(), &Hold::end);
    if (group.counted_most < by_end_.size()) consider(by_end_[group.counted_most]);
  }
  if (rows_[row].awaits_all) consider(last(Of::copies));
  const trace::PhaseStep& phase = rows_[row].phase;
  if (phase.kind == trace::PhaseStep::Kind::wait) {
    const PhaseTimes::Completion* const last =
        phases().last_of(phase.barrier, awaited(phase.barrier) + std::size_t{phase.count});
    if (last != nullptr) consider({last->end, last->row});
  }
  return result;
}

bool ControlClock::is_known(std::uint32_t row) const {
  const trace::PhaseStep& phase = rows_[row].phase;
  return phase.kind != trace::PhaseStep::Kind::wait ||
         phases().count(phase.barrier) >= awaited(phase.barrier) + std::size_t{phase.count};
}

std::uint32_t ControlClock::awaited(std::uint32_t barrier) const {
  const auto found =
      std::ranges::find(awaited_, barrier, [](const auto& entry) { return entry[0]; });
  return found == awaited_.end() ? 0 : (*found)[1];
}

void ControlClock::take_phase_step(std::uint32_t row, double done) {
  const trace::PhaseStep& phase = rows_[row].phase;
  if (phase.kind == trace::PhaseStep::Kind::wait) {
    const auto found =
        std::ranges::find(awaited_, phase.barrier, [](const auto& entry) { return entry[0]; });
    if (found == awaited_.end()) {
      awaited_.push_back({phase.barrier, phase.count});
    } else {
      (*found)[1] += phase.count;
    }
  } else if (phase.kind == trace::PhaseStep::Kind::complete && known_ == nullptr) {
    PhaseTimes& phases = shared_ != nullptr ? *shared_ : own_;
    const Hold& others = last(phase.is_after_products ? Of::products : Of::copies);
    const bool waits = phase.is_after_products || phase.is_after_copies;
    phases.add(phase.barrier, waits && others.end > done
                                  ? PhaseTimes::Completion{others.end, others.row}
                                  : PhaseTimes::Completion{done, row});
  }
}

void ControlClock::issue(std::uint32_t row, double time, double latency, bool is_active) {
  const Row& issued = rows_[row];
  stalls_until_ = time + issued.distance;
  if (!is_active) return;
  // As for registers (GPUMech, Eq. 4), an instruction that waits issues a cycle later.
  const double done = time + latency + (has_control_ ? 0 : 1);
  if (issued.is_one_of && done > last(*issued.is_one_of).end) last(*issued.is_one_of) = {done, row};
  if (has_phases_) take_phase_step(row, done);
  if (issued.commits) {
    std::vector<Hold>& holds = groups_[static_cast<std::size_t>(*issued.commits)];
    std::erase_if(holds, [time](const Hold& hold) { return hold.end <= time; });
    holds.push_back(last(*issued.commits));
  }
  const std::uint8_t barrier = issued.control.write_barrier;
  if (barrier == trace::no_control_barrier || !issued.returns) return;
  std::vector<Hold>& holds = holds_[barrier];
  std::erase_if(holds, [time](const Hold& hold) { return hold.end <= time; });
  holds.push_back(issued.awaits ? last(*issued.awaits) : Hold{done, row});
}

void ControlClock::read_sources(std::uint32_t row, double time) {
  const std::uint8_t barrier = rows_[row].control.read_barrier;
  if (has_control_ && barrier != trace::no_control_barrier) {
    holds_[barrier].push_back({time, row});
  }
}

}  // namespace warpstack::interval
