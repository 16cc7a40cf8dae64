#include "simt/units/barriers.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "simt/program/registers.h"

namespace warpstack::simt {

void Barriers::arrive(Warp& warp, const Step& step, const std::byte* registers,
                      std::uint32_t mask) {
  const Barrier& barrier = program_.barriers[step.detail];
  PathEntry& path = warp.paths.back();
  if (mask == 0) {
    ++path.pc;
    return;
  }
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  const bool names = is_named(step, registers, lane);
  if (!names) recorder_.record(warp, step, mask);
  if (mask != warp.live) {
    arrive_divergent(warp, step, mask);
    return;
  }
  join(warp, step, registers, mask);
  if (names) record_named(warp, step, mask, false);
  BarrierState& state = state_of(step, registers, lane);
  ++state.warps;
  state.cycle = std::max(state.cycle, warp.cycle);
  if (block_.races != nullptr) block_.races->arrive(warp.number, warp.barrier);
  ++path.pc;
  if (barrier.kind != BarrierKind::arrive) {
    warp.state = Warp::State::waiting;
    warp.turns = 0;
    warp.pauses = 0;
    if (warp.detector != nullptr) warp.detector->meet();
    warp.barrier_kind = barrier.kind;
    warp.barrier_result = barrier.result;
  }
  warp.spins = 0;
  release();
}

void Barriers::arrive_parted(Warp& warp) {
  std::uint32_t here = 0;
  for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
    if (warp.paths[i].pc == parked) here |= warp.paths[i].mask;
  }
  const PathEntry top = warp.paths.back();
  const auto first = static_cast<std::uint32_t>(std::countr_zero(top.mask));
  if (here != warp.live) {
    faults_.stop(warp, warp.step_of(top), first,
                 "divergent barrier: it waits for " + lanes_text(warp.live & ~here) +
                     " of the warp, which have not called this function or have returned from it");
  }
  const std::byte* const registers = warp.registers();
  BarrierState* state = nullptr;
  std::uint32_t came = 0;
  for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
    const PathEntry& path = warp.paths[i];
    if (path.pc != parked) continue;
    const Step& step = warp.step_of(path);
    join(warp, step, registers, path.mask);
    BarrierState& own =
        state_of(step, registers, static_cast<std::uint32_t>(std::countr_zero(path.mask)));
    if (state != nullptr && state != &own) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(std::countr_zero(path.mask)),
                   "divergent barrier: lanes of the warp wait at different barriers");
    }
    state = &own;
    came |= path.mask;
    if (is_named(step, registers, static_cast<std::uint32_t>(std::countr_zero(path.mask)))) {
      record_named(warp, step, path.mask, came != warp.live);
    }
  }
  ++state->warps;
  state->cycle = std::max(state->cycle, warp.cycle);
  if (block_.races != nullptr) block_.races->arrive(warp.number, warp.barrier);
  warp.state = Warp::State::waiting;
  warp.turns = 0;
  warp.pauses = 0;
  if (warp.detector != nullptr) warp.detector->meet();
  warp.is_parted = true;
  release();
}

void Barriers::release() {
  const auto live = static_cast<std::uint32_t>(std::ranges::count_if(
      block_.warps, [](const Warp& warp) { return warp.state != Warp::State::done; }));
  for (std::uint32_t number = 0; number < num_barriers; ++number) {
    BarrierState& barrier = block_.barriers[number];
    if (barrier.warps == 0) continue;
    const bool complete =
        barrier.threads == 0 ? barrier.warps >= live : barrier.warps * warp_size >= barrier.threads;
    if (!complete) continue;
    for (Warp& warp : block_.warps) {
      if (warp.state != Warp::State::waiting || warp.barrier != number) continue;
      warp.state = Warp::State::ready;
      if (execution_.clock != nullptr) {
        warp.cycle = std::max(warp.cycle, barrier.cycle) + barrier_cycles;
      }
      if (block_.races != nullptr) {
        block_.races->pass(warp.number, number, barrier.threads == 0);
      }
      if (warp.is_parted) {
        leave(warp, barrier);
      } else if (warp.barrier_result != none) {
        broadcast(warp.registers(), warp.barrier_result, 4, warp.live,
                  barrier.value(warp.barrier_kind));
      }
    }
    barrier = {};
    if (block_.races != nullptr) block_.races->reset(number);
  }
}

void Barriers::arrive_divergent(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  // If other lanes wait for these at a warp-wide operation, that is the fault; or the rest is at
  // this very barrier.
  bool awaited = false;
  std::uint32_t here = mask;
  for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
    const PathEntry& other = warp.paths[i];
    if (other.pc != parked) continue;
    if ((other.members & mask) != 0) awaited = true;
    if (&warp.step_of(other) == &step) here |= other.mask;
  }
  // Lanes leave a loop at different times, and wait behind it for the others.
  if (is_in_loop(*warp.frames.back().function, step)) warp.may_part = true;
  const bool may_diverge = program_.barriers[step.detail].may_diverge || warp.may_part;
  if (!may_diverge && !awaited && here != warp.live) {
    faults_.diagnose(warp, step, lane, "divergent barrier", [&] {
      const auto absent = static_cast<std::uint32_t>(std::countr_zero(warp.live & ~mask));
      const auto thread = execution_.thread_index(warp, absent);
      return "divergent barrier: " + std::to_string(std::popcount(mask)) + " of " +
             std::to_string(std::popcount(warp.live)) + " threads of warp " +
             std::to_string(warp.number) + " are here, thread (" + std::to_string(thread[0]) +
             ", " + std::to_string(thread[1]) + ", " + std::to_string(thread[2]) + ") is not";
    });
  }
  if (program_.barriers[step.detail].kind == BarrierKind::arrive) {
    faults_.stop(
        warp, step, lane,
        "divergent barrier: a warp cannot arrive in parts at a barrier for which it does not "
        "wait");
  }
  warp.park(mask, none);
}

bool Barriers::is_in_loop(const ProgramFunction& function, const Step& step) {
  const auto [known, is_new] = in_loops_.try_emplace(&step, false);
  if (!is_new) return known->second;
  const auto start = static_cast<std::uint32_t>(&step - function.steps.data());
  std::vector<bool> seen(function.steps.size());
  std::vector<std::uint32_t> ahead{start + 1};
  while (!ahead.empty() && !known->second) {
    const std::uint32_t pc = ahead.back();
    ahead.pop_back();
    if (pc >= seen.size() || seen[pc]) continue;
    seen[pc] = true;
    const Step& next = function.steps[pc];
    const bool ends = next.action == Action::exit || next.action == Action::function_return;
    if (next.action == Action::branch) ahead.push_back(next.jump);
    if (next.action == Action::indexed_branch) {
      const auto& targets = program_.indexed_branches[next.detail].targets;
      ahead.insert(ahead.end(), targets.begin(), targets.end());
    }
    const bool goes_on = !ends && next.action != Action::branch;
    if (goes_on || next.guard != none) ahead.push_back(pc + 1);
    known->second = seen[start];
  }
  return known->second;
}

bool Barriers::is_named(const Step& step, const std::byte* registers, std::uint32_t lane) const {
  const Barrier& barrier = program_.barriers[step.detail];
  return barrier.threads != none ||
         lane_u32(registers, barrier.number, static_cast<int>(lane)) != 0;
}

void Barriers::record_named(Warp& warp, const Step& step, std::uint32_t mask, bool is_part) {
  using Kind = trace::BarrierStep::Kind;
  const bool arrives = program_.barriers[step.detail].kind == BarrierKind::arrive;
  trace::BarrierStep barrier{.kind = is_part   ? Kind::part
                                     : arrives ? Kind::arrive
                                               : Kind::wait,
                             .number = static_cast<std::uint8_t>(warp.barrier)};
  barrier.threads = block_.barriers[warp.barrier].threads;
  recorder_.record_barrier(warp, step, mask, barrier);
}

BarrierState& Barriers::state_of(const Step& step, const std::byte* registers, std::uint32_t lane) {
  return block_
      .barriers[lane_u32(registers, program_.barriers[step.detail].number, static_cast<int>(lane))];
}

void Barriers::join(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask) {
  const Barrier& barrier = program_.barriers[step.detail];
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  const std::uint32_t number = lane_u32(registers, barrier.number, static_cast<int>(lane));
  if (number >= num_barriers) {
    faults_.stop(warp, step, lane, "barrier " + std::to_string(number) + " of 16");
  }
  BarrierState& state = block_.barriers[number];
  std::uint32_t threads = 0;
  if (barrier.threads != none) {
    threads = lane_u32(registers, barrier.threads, static_cast<int>(lane));
    if (threads == 0 || threads % warp_size != 0) {
      faults_.stop(
          warp, step, lane,
          "barrier for " + std::to_string(threads) + " threads, which is not a multiple of 32");
    }
  }
  if (state.warps > 0 && state.threads != threads) {
    faults_.stop(warp, step, lane,
                 "barrier " + std::to_string(number) + " is used with different thread counts");
  }
  state.threads = threads;
  warp.barrier = number;
  if (barrier.predicate == none) return;
  const std::uint32_t holds = predicate_bits(registers + barrier.predicate) & mask;
  state.count += static_cast<std::uint32_t>(std::popcount(holds));
  state.all = state.all && holds == mask;
}

void Barriers::leave(Warp& warp, const BarrierState& barrier) {
  warp.is_parted = false;
  std::byte* const registers = warp.registers();
  for (std::size_t i = warp.frames.back().first_path; i < warp.paths.size(); ++i) {
    PathEntry& path = warp.paths[i];
    if (path.pc != parked) continue;
    const Barrier& own = program_.barriers[warp.step_of(path).detail];
    if (own.result != none) {
      broadcast(registers, own.result, 4, path.mask, barrier.value(own.kind));
    }
    path = {path.resume + 1, path.reconvergence, path.mask};
  }
  warp.join_paths(warp.live);
}

}  // namespace warpstack::simt
