#include "interval/phase_times.h"

#include <algorithm>
#include <utility>

namespace warpstack::interval {

void PhaseTimes::add(std::uint32_t barrier, const Completion& completion) {
  auto found = std::ranges::find(barriers_, barrier, &Barrier::address);
  if (found == barriers_.end()) {
    found = barriers_.insert(barriers_.end(), Barrier{barrier, {}});
  }
  std::vector<Completion>& all = found->completions;
  const auto key = [](const Completion& one) { return std::pair(one.end, one.row); };
  all.insert(std::ranges::upper_bound(all, key(completion), {}, key), completion);
}

const PhaseTimes::Completion* PhaseTimes::last_of(std::uint32_t barrier, std::size_t count) const {
  const std::vector<Completion>& all = of(barrier);
  const std::size_t known = std::min(count, all.size());
  return known == 0 ? nullptr : &all[known - 1];
}

const std::vector<PhaseTimes::Completion>& PhaseTimes::of(std::uint32_t barrier) const {
  static const std::vector<Completion> none;
  const auto found = std::ranges::find(barriers_, barrier, &Barrier::address);
  return found == barriers_.end() ? none : found->completions;
}

}  // namespace warpstack::interval
