#include "interval/control_clock.h"

#include <algorithm>
#include <functional>

#include "trace/copy_groups.h"

namespace warpstack::interval {

ControlClock::ControlClock(const std::vector<trace::StaticInstruction>& instructions) {
  has_control_ = !instructions.empty() && instructions.front().control.has_value();
  if (!has_control_) {
    using Kind = trace::CopyGroupStep::Kind;
    const auto has_step = [](const trace::StaticInstruction& instruction) {
      return trace::copy_group_step(instruction).kind != Kind::none;
    };
    if (std::ranges::none_of(instructions, has_step)) return;
    for (const trace::StaticInstruction& instruction : instructions) {
      rows_.push_back(row_of(instruction));
    }
    return;
  }
  for (const trace::StaticInstruction& instruction : instructions) {
    Row& row = rows_.emplace_back();
    row.control = *instruction.control;
    row.distance = row.control.issue_distance();
    row.returns = !instruction.is_memory() || instruction.reads_memory() ||
                  instruction.kind == trace::MemoryKind::atomic;
    row.is_copy = instruction.kind == trace::MemoryKind::async_copy;
    row.awaits_copies = instruction.awaits_copies();
  }
}

ControlClock::Row ControlClock::row_of(const trace::StaticInstruction& instruction) {
  using Kind = trace::CopyGroupStep::Kind;
  // All groups hold one barrier.
  constexpr std::uint8_t barrier = 0;
  const trace::CopyGroupStep step = trace::copy_group_step(instruction);
  Row row;
  row.distance = 0;
  row.is_copy = instruction.kind == trace::MemoryKind::async_copy;
  row.returns = row.awaits_copies = step.kind == Kind::commit;
  row.awaits_all = step.kind == Kind::wait_all;
  if (row.awaits_copies) row.control.write_barrier = barrier;
  if (step.kind == Kind::wait) {
    row.control.counted_barrier = barrier;
    row.control.counted_most = static_cast<std::uint8_t>(std::min(step.most, 255u));
  }
  return row;
}

void ControlClock::reset() {
  stalls_until_ = 0;
  copies_ = {};
  for (std::vector<Hold>& holds : holds_) holds.clear();
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
  if (rows_[row].awaits_all) consider(copies_);
  return result;
}

void ControlClock::issue(std::uint32_t row, double time, double latency, bool is_active) {
  const Row& issued = rows_[row];
  stalls_until_ = time + issued.distance;
  if (!is_active) return;
  // As for registers (GPUMech, Eq. 4), an instruction that waits issues a cycle later.
  const double done = time + latency + (has_control_ ? 0 : 1);
  if (issued.is_copy && done > copies_.end) copies_ = {done, row};
  const std::uint8_t barrier = issued.control.write_barrier;
  if (barrier == trace::no_control_barrier || !issued.returns) return;
  std::vector<Hold>& holds = holds_[barrier];
  std::erase_if(holds, [time](const Hold& hold) { return hold.end <= time; });
  holds.push_back(issued.awaits_copies ? copies_ : Hold{done, row});
}

}  // namespace warpstack::interval
