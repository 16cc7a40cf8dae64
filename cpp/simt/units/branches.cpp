#include "simt/units/branches.h"

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "common/text.h"
#include "simt/program/registers.h"

namespace warpstack::simt {
namespace {

/// Compare-and-swap or exchange operations that a warp repeats without divergence before lanes that
/// wait for the spinning ones go ahead.
constexpr std::uint32_t spin_patience = 256;
/// The same for pauses in which other blocks had a turn.
constexpr std::uint32_t pauses_in_a_row = 32;

}  // namespace

void Branches::branch(Warp& warp, const Step& step, std::uint32_t taken) {
  PathEntry& path = warp.paths.back();
  if ((warp.may_wait || warp.detector != nullptr) && taken != 0 && step.jump <= path.pc) {
    if (warp.detector != nullptr) warp.detector->circle(warp, step.jump);
    if (warp.may_wait) {
      // The loop may wait for another block, which now goes on.
      warp.may_wait = false;
      warp.turns = 0;
      warp.state = Warp::State::paused;
      // It may also wait for lanes of this warp.
      if (++warp.pauses % pauses_in_a_row == 0) warp.spins = spin_patience + 1;
    }
  }
  if (taken == path.mask) {
    if (step.jump <= path.pc && warp.spins > spin_patience) {
      path.pc = step.jump;
      warp.rotate();
      return;
    }
    path.pc = step.jump;
    return;
  }
  if (taken == 0) {
    ++path.pc;
    return;
  }
  std::pair<std::uint32_t, std::uint32_t> ways[] = {{path.pc + 1, path.mask & ~taken},
                                                    {step.jump, taken}};
  // The last runs first. It is the way out of the loop, so that others need not wait for it at
  // barriers.
  const auto& steps = warp.frames.back().function->steps;
  if (path.pc + 1 < steps.size() && steps[path.pc + 1].action == Action::exit) {
    std::swap(ways[0], ways[1]);
  }
  warp.diverge(step.reconvergence, ways);
}

void Branches::indexed_branch(Warp& warp, const Step& step, const std::byte* registers,
                              std::uint32_t mask) {
  PathEntry& path = warp.paths.back();
  const IndexedBranch& targets = program_.indexed_branches[step.detail];
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;  // target, lanes
  const auto add = [&ways](std::uint32_t target, std::uint32_t lanes) {
    for (auto& [known, members] : ways) {
      if (known == target) {
        members |= lanes;
        return;
      }
    }
    ways.emplace_back(target, lanes);
  };
  if (mask != path.mask) add(path.pc + 1, path.mask & ~mask);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto place =
        (lane_u32(registers, targets.index, lane) + static_cast<std::uint64_t>(targets.offset)) &
        0xffffffffu;
    const std::uint64_t index = place >> targets.shift;
    if (index >= targets.targets.size() || index << targets.shift != place) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(lane),
                   targets.shift == 0
                       ? "branch index " + std::to_string(index) + " of a list of " +
                             std::to_string(targets.targets.size()) + " targets"
                       : "branch to " + hexadecimal(place) + ", where there is no instruction");
    }
    add(targets.targets[index], 1u << lane);
  }
  if (ways.size() == 1) {
    path.pc = ways[0].first;
    return;
  }
  warp.diverge(step.reconvergence, ways);
}

void Branches::separate(Warp& warp, const Step& step, const std::byte* registers,
                        std::uint32_t mask) {
  PathEntry& path = warp.paths.back();
  const std::uint32_t members = program_.collectives[step.detail].members;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;  // target, lanes
  if (mask != path.mask) ways.emplace_back(path.pc + 1, path.mask & ~mask);
  for (std::uint32_t rest = mask; rest != 0;) {
    const std::uint32_t same = alike(registers, members, rest);
    ways.emplace_back(path.pc + 1, same);
    rest &= ~same;
  }
  if (ways.size() == 1) {
    ++path.pc;
    return;
  }
  warp.diverge(none, ways);
}

void Branches::leave(Warp& warp, std::uint32_t mask, bool exits) {
  warp.spins = 0;
  const std::size_t first = exits ? 0 : warp.frames.back().first_path;
  for (std::size_t i = first; i < warp.paths.size(); ++i) warp.paths[i].mask &= ~mask;
  if (exits) warp.live &= ~mask;
  while (true) {
    const std::size_t bottom = warp.frames.back().first_path;
    if (warp.out_of_order) warp.drop_empty_paths();
    while (warp.paths.size() > bottom && warp.paths.back().mask == 0) warp.paths.pop_back();
    if (warp.paths.size() > bottom) return;
    if (warp.frames.size() == 1) {
      warp.state = Warp::State::done;
      if (block_.races != nullptr) block_.races->end_warp(warp.number);
      barriers_.release();
      return;
    }
    calls_.finish_call(warp);
  }
}

}  // namespace warpstack::simt
