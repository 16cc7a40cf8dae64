#include "simt/run/block_runner.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "common/error.h"
#include "common/text.h"
#include "simt/async/async_barriers.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {
namespace {

// Rounds are turns of all warps of a block. A block that runs alone is watched for a sixteenth of
// the rounds that it has run unwatched, so that blocks which do not spin cost nothing.
constexpr std::uint32_t most_patience = turns_in_a_row;
/// The same once a block of the launch has been found to spin.
constexpr std::uint32_t short_patience = 64;
constexpr std::uint32_t fewest_watched_rounds = 64;
constexpr std::uint32_t most_watched_rounds = 256;
/// Long stretches in which a block looks at other blocks' memory, after which those get turns
/// although it is not known to spin.
constexpr std::uint32_t most_doubts = 16;
/// Rounds of a loop of a warp whose whole state is compared while its block runs alone.
constexpr std::uint32_t few_states = 32;

/// Times that waits of held warps are given up in a row, without any arrival at a barrier in
/// between, before they count as a deadlock.
constexpr std::uint64_t most_fruitless = 1024;

}  // namespace

bool BlockRunner::run_to_end() {
  std::uint32_t rounds = patience_.rounds;
  while (!block_.done) {
    run(rounds);
    if (block_.done) break;
    if (is_spinning(std::clamp(rounds / 16, fewest_watched_rounds, most_watched_rounds))) {
      patience_.rounds = short_patience;
      return false;
    }
    // Watching again rarely helps, so it is done less often.
    rounds = std::min(2 * rounds, most_patience);
    patience_.rounds = std::max(patience_.rounds, rounds);
  }
  return true;
}

bool BlockRunner::is_spinning(std::uint32_t rounds) {
  execution_.sightings = {};
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::done) continue;
    warp.detector = std::make_unique<SpinDetector>(execution_.sightings, few_states);
  }
  run(rounds);
  bool spins = false;
  bool works = block_.done;
  bool has_looked = false;
  for (Warp& warp : block_.warps) {
    const std::unique_ptr<SpinDetector> detector = std::exchange(warp.detector, nullptr);
    if (detector == nullptr) continue;
    if (warp.state == Warp::State::ready && !detector->circles()) works = true;
    if (warp.state != Warp::State::done && detector->spins()) spins = true;
    has_looked |= detector->has_looked();
  }
  if (block_.done) return false;
  if (has_looked && patience_.rounds == most_patience && ++patience_.doubts >= most_doubts)
    return true;
  return spins && !works;
}

void BlockRunner::start(std::uint64_t place) {
  const std::uint64_t number = execution_.block_at(place);
  block_.number = number;
  block_.done = false;
  block_.cycle = execution_.clock == nullptr ? 0 : execution_.clock->now;
  block_.is_recorded = execution_.recorded.has(number);
  block_.index = {number % options_.grid[0], number / options_.grid[0] % options_.grid[1],
                  number / options_.grid[0] / options_.grid[1]};
  block_.shared.assign(program_.uses_dynamic_shared
                           ? program_.dynamic_shared_offset + options_.dynamic_shared_bytes
                           : program_.shared_bytes,
                       std::byte{0});
  if (program_.has_pair_allocations) prepare_pair_allocations();
  start_checks();
  block_.barriers = {};
  block_.phases.clear();
  block_.tensors.reset();
  block_.unexpected.clear();
  fruitless_ = 0;
  block_.warps.resize(execution_.num_warps);
  for (std::uint32_t w = 0; w < execution_.num_warps; ++w) start_warp(block_.warps[w], w);
}

/// What machine code finds at 0x48 and 0x50: an mbarrier of one arrival, by which the even block of
/// a pair tells the odd one what it has allocated for both, and the odd one that it has read it,
/// and the parity of the phase that the block waits for next. The even one need not wait at first.
void BlockRunner::prepare_pair_allocations() {
  constexpr std::size_t barrier_at = 0x48;
  constexpr std::size_t parity_at = 0x50;
  if (block_.shared.size() < parity_at + sizeof(std::uint32_t)) return;
  const std::uint64_t barrier = BarrierWord{.pending = 1, .expected = 1, .valid = true}.pack();
  std::memcpy(block_.shared.data() + barrier_at, &barrier, sizeof barrier);
  const std::uint32_t parity = 1 - rank_in_cluster(block_, execution_.cluster) % 2;
  std::memcpy(block_.shared.data() + parity_at, &parity, sizeof parity);
}

void BlockRunner::start_warp(Warp& warp, std::uint32_t number) {
  const ProgramFunction& kernel = program_.functions[0];
  warp.number = number;
  warp.state = Warp::State::ready;
  const std::uint32_t lanes = std::min(execution_.num_threads - number * warp_size, warp_size);
  warp.live = lanes == warp_size ? all_lanes : (1u << lanes) - 1;
  warp.spins = 0;
  warp.turns = 0;
  warp.is_parted = false;
  warp.out_of_order = false;
  warp.may_part = false;
  warp.may_wait = false;
  warp.detector.reset();
  warp.pauses = 0;
  warp.clock = nullptr;
  warp.awaited_cycles = warp.awaited_ns = 0;
  warp.async = {};
  warp.cycle = block_.cycle;
  warp.issued = warp.last_load = 0;
  warp.awaits_turn = false;
  warp.file = execution_.first_frame;
  add_own_rank(execution_, kernel, warp.file.data());
  warp.frames.assign(1, {.function = &kernel, .mask = warp.live});
  warp.paths.assign(1, {0, none, warp.live});
  const std::uint64_t local_bytes = execution_.local_bytes * warp_size;
  assign_zeros(warp.local, local_bytes);
  warp.local_written.reset(options_.check_uninitialized ? local_bytes : 0);
  warp.columns.clear();
}

void BlockRunner::start_checks() {
  block_.shared_written.reset(options_.check_uninitialized ? block_.shared.size() : 0);
  if (!block_.shared_written.whole()) {
    // The gaps between variables are never written.
    std::uint64_t end = 0;
    for (const SharedVariable& variable : program_.shared_variables) {
      block_.shared_written.mark(end, variable.offset - end);
      end = variable.offset + variable.bytes;
    }
    if (program_.uses_dynamic_shared) {
      block_.shared_written.mark(end, program_.dynamic_shared_offset - end);
    }
  }
  if (!options_.check_races) return;
  if (block_.races != nullptr) {
    block_.races->begin_block();
  } else {
    const bool has_async = !program_.bulk_copies.empty() || !program_.tensor_copies.empty() ||
                           !program_.warpgroup_multiplications.empty() ||
                           !program_.tensor_products.empty() || !program_.tensor_fills.empty();
    block_.races =
        std::make_unique<RaceCheck>(execution_.num_warps, has_async, execution_.race_budget);
  }
}

bool BlockRunner::run(std::uint32_t rounds) {
  recorder_.take_block();
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::paused) warp.state = Warp::State::ready;
  }
  bool has_run = false;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    bool runs = false;
    for (Warp& warp : block_.warps) {
      if (warp.state != Warp::State::ready) {
        if (warp.state == Warp::State::held) {
          if (!warps_.held().try_again(warp)) continue;
        } else if (warp.state != Warp::State::asleep || warp.wake > execution_.time()) {
          continue;
        }
        warp.state = Warp::State::ready;
      }
      warps_.run(warp);
      runs = true;
    }
    has_run |= runs;
    if (runs) continue;
    if (execution_.in_turns) break;
    const std::uint64_t wake = first_wake(block_);
    if (wake != ~std::uint64_t{0}) {
      execution_.skip_time_to(wake);
    } else if (!holds() || !may_give_up() || !give_up_waits()) {
      break;
    }
  }
  block_.done = std::ranges::all_of(
      block_.warps, [](const Warp& warp) { return warp.state == Warp::State::done; });
  if (block_.done) warps_.held().check_end();
  const std::uint64_t wake = first_wake(block_);
  // If blocks take turns, others may do what a held warp waits for.
  if (!has_run && !block_.done && wake == ~std::uint64_t{0} && !(execution_.in_turns && holds())) {
    report_deadlock();
  }
  if (wake != ~std::uint64_t{0} && !execution_.in_turns) execution_.skip_time_to(wake);
  return has_run;
}

std::uint64_t BlockRunner::run_in_time() {
  recorder_.take_block();
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::paused) warp.state = Warp::State::ready;
  }
  const std::uint64_t others = execution_.clock->others;
  const std::uint64_t end = others > ~turn_cycles ? others : others + turn_cycles;
  const bool is_alone = cluster_blocks(execution_.cluster) == 1;
  std::uint64_t next = ~std::uint64_t{0};
  while (true) {
    bool runs = false;
    for (Warp& warp : block_.warps) {
      if (warp.state == Warp::State::held && warps_.held().try_again(warp)) {
        warp.state = Warp::State::ready;
        warp.cycle = std::max(warp.cycle, block_.cycle);
      }
      if (warp.state != Warp::State::ready) continue;
      if (warp.cycle > (warp.awaits_turn ? others : end)) continue;
      warp.awaits_turn = false;
      warps_.run(warp);
      block_.cycle = warp.cycle;
      runs = true;
    }
    if (runs) continue;
    bool waits = false;
    bool lasts = false;
    for (const Warp& warp : block_.warps) {
      lasts |= warp.state != Warp::State::done;
      if (warp.state != Warp::State::ready && warp.state != Warp::State::paused) continue;
      next = std::min(next, warp.cycle);
      waits = true;
    }
    block_.done = !lasts;
    if (block_.done) warps_.held().check_end();
    if (block_.done || waits) return next;
    if (!holds()) report_deadlock();
    if (!is_alone)
      return std::max(block_.cycle, others == ~std::uint64_t{0} ? 0 : others) + turn_cycles;
    if (!may_give_up() || !give_up_waits()) report_deadlock();
  }
}

bool BlockRunner::give_up_waits() {
  recorder_.take_block();
  bool goes_on = false;
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::held) goes_on |= warps_.held().give_up(warp, fruitless_);
  }
  return goes_on;
}

bool BlockRunner::may_give_up() {
  if (execution_.async_events != events_before_) fruitless_ = 0;
  events_before_ = execution_.async_events;
  return ++fruitless_ <= most_fruitless;
}

bool BlockRunner::holds() const {
  return std::ranges::any_of(block_.warps,
                             [](const Warp& warp) { return warp.state == Warp::State::held; });
}

std::uint64_t BlockRunner::first_wake(const Block& block) {
  std::uint64_t first = ~std::uint64_t{0};
  for (const Warp& warp : block.warps) {
    if (warp.state == Warp::State::asleep) first = std::min(first, warp.wake);
  }
  return first;
}

std::string BlockRunner::waits_of(bool of_spinning) {
  constexpr std::size_t enough = 200;
  std::string text;
  std::string last;
  std::uint32_t alike = 0;
  const auto end_group = [&] {
    if (alike > 0) {
      text += ", and so " + std::string(alike == 1 ? "does 1 more warp" : "do ");
      if (alike > 1) text += std::to_string(alike) + " more warps";
    }
    alike = 0;
  };
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::done || text.size() > enough) continue;
    std::string what;
    if (warp.state == Warp::State::held) {
      what =
          " at " + warps_.held().text(warp) + " (" + Faults::place_of(warp, warp.next_step()) + ")";
    } else if (warp.state == Warp::State::waiting) {
      // The warp goes on behind the barrier.
      const PathEntry& path = warp.paths.back();
      const Step& step =
          warp.frames.back().function->steps[path.pc == parked ? path.resume : path.pc - 1];
      what =
          " at barrier " + std::to_string(warp.barrier) + " (" + Faults::place_of(warp, step) + ")";
    } else if (!of_spinning) {
      continue;
    } else if (warp.detector != nullptr && warp.detector->look() != nullptr) {
      what = " reads " + hexadecimal(warp.detector->look_address()) + " again and again (" +
             Faults::place_of(warp, *warp.detector->look()) + ")";
    } else {
      what = " goes round a loop (" + Faults::place_of(warp, warp.next_step()) + ")";
    }
    if (of_spinning && what == last) {
      ++alike;
      continue;
    }
    end_group();
    text += (text.empty() ? "warp " : ", warp ") + std::to_string(warp.number) + what;
    last = what;
  }
  end_group();
  return text;
}

void BlockRunner::report_deadlock() {
  throw InputError("kernel " + program_.name + ", block " + block_.text() +
                   ": deadlock: all warps that have not finished wait: " + waits_of(false));
}

}  // namespace warpstack::simt
