#include "interval/control_clock.h"

#include <algorithm>
#include <functional>

namespace warpstack::interval {

ControlClock::ControlClock(const std::vector<trace::StaticInstruction>& instructions) {
  for (const trace::StaticInstruction& instruction : instructions) {
    if (!instruction.control) return;
    Row& row = rows_.emplace_back();
    row.control = *instruction.control;
    row.distance = row.control.issue_distance();
    row.returns = !instruction.is_memory() || instruction.reads_memory() ||
                  instruction.kind == trace::MemoryKind::atomic;
    row.is_copy = instruction.kind == trace::MemoryKind::async_copy;
    row.awaits_copies = instruction.awaits_copies();
  }
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
  return result;
}

void ControlClock::issue(std::uint32_t row, double time, double latency, bool is_active) {
  const Row& issued = rows_[row];
  stalls_until_ = time + issued.distance;
  if (!is_active) return;
  const double done = time + latency;
  if (issued.is_copy && done > copies_.end) copies_ = {done, row};
  const std::uint8_t barrier = issued.control.write_barrier;
  if (barrier == trace::no_control_barrier || !issued.returns) return;
  std::vector<Hold>& holds = holds_[barrier];
  std::erase_if(holds, [time](const Hold& hold) { return hold.end <= time; });
  holds.push_back(issued.awaits_copies ? copies_ : Hold{done, row});
}

}  // namespace warpstack::interval
