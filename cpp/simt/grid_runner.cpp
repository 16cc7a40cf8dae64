#include "simt/grid_runner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "common/error.h"
#include "common/text.h"
#include "simt/cluster.h"
#include "simt/registers.h"

namespace warpstack::simt {
namespace {

// Rounds are turns of all warps of a block. A block that runs alone is watched for a sixteenth of
// the rounds that it has run without, so that what does not spin costs nothing.
constexpr std::uint32_t most_patience = turns_in_a_row;
/// Once a block of the launch has been found to spin.
constexpr std::uint32_t short_patience = 64;
constexpr std::uint32_t fewest_watched_rounds = 64;
constexpr std::uint32_t most_watched_rounds = 256;
/// Long stretches of a block that looks at memory of others, after which these get turns although
/// it is not known to spin.
constexpr std::uint32_t most_doubts = 16;
/// Rounds of a block before the others get their turns, if it does not wait earlier.
constexpr std::uint32_t rounds_in_turns = 256;
/// Rounds of a loop of a warp whose whole state is compared while its block runs alone.
constexpr std::uint32_t few_states = 32;

constexpr std::uint64_t most_quiet_turns = std::uint64_t{1} << 16;
constexpr std::uint64_t watched_quiet_turns = 256;
/// Rounds of a loop in the same state, for each path of the warp, that count as a proof.
constexpr std::uint32_t circles_of_proof = 64;
/// Warp instructions without news of any block after which a launch is given up without one.
constexpr std::uint64_t most_circling = std::uint64_t{1} << 24;
/// How far clocks go on in the meantime: 18 minutes, so that time-outs end.
constexpr std::uint64_t most_skipped_time = std::uint64_t{1} << 40;

/// Times that waits of held warps are given up, one after the other and without any arrival at a
/// barrier in between, after which they count as a deadlock.
constexpr std::uint64_t most_fruitless = 1024;

/// Warps of the GPUs that hold most: 144 SMs of 64 (GH100).
constexpr std::uint64_t most_resident_warps = 144 * 64;

/// A block that has ended keeps what it gives to the trace.
void let_go(Block& block) {
  for (Warp& warp : block.warps) {
    warp.file = {};
    warp.frames = {};
    warp.paths = {};
    warp.local = {};
    warp.local_written = {};
    warp.watch.reset();
  }
  block.shared = {};
  block.shared_written = {};
  block.races.reset();
}

}  // namespace

GridRunner::~GridRunner() {
  if (execution_.workspace_address != 0)
    execution_.device.memory.free(execution_.workspace_address);
}

std::optional<KernelTrace> GridRunner::run() {
  if (options_.cooperative) {
    if (program_.synchronizes_grid) make_workspace();
    execution_.in_turns = true;
    start_blocks(num_blocks_);
  }
  const bool has_clusters = cluster_blocks(execution_.cluster) > 1;
  if (has_clusters) execution_.in_turns = true;
  while (stored_ < num_blocks_) {
    if (resident_.empty() && has_clusters) {
      start_blocks(1);
    } else if (resident_.empty()) {
      run_alone();
    } else {
      run_in_turns();
    }
  }
  return recorder_.finish();
}

void GridRunner::make_workspace() {
  // A count of arrivals, behind four bytes that are not used here.
  const std::array<std::byte, 64> zeros{};
  execution_.workspace_address =
      execution_.device.memory.allocate(zeros.size(), "(workspace of the cooperative launch)");
  execution_.device.memory.write(execution_.workspace_address, zeros.data(), zeros.size());
  spaces_.forget_allocation();
}

std::uint64_t GridRunner::most_blocks() const {
  if (options_.cooperative) return num_blocks_;
  std::uint64_t most = options_.resident_blocks;
  if (most == 0) most = std::min(most_resident_warps / execution_.num_warps, max_resident_blocks);
  // Each has local memory of its own.
  if (const std::uint64_t local = resident_local_bytes(program_, options_); local > 0) {
    const DeviceMemory& memory = execution_.device.memory;
    most = std::min(most, (memory.capacity() - memory.used()) / local);
  }
  return std::max<std::uint64_t>(most, 1);
}

void GridRunner::start_blocks(std::uint64_t wanted) {
  const auto there = static_cast<std::uint64_t>(
      std::ranges::count_if(resident_, [](const Block& block) { return !block.done; }));
  wanted = std::min(wanted, most_blocks());
  // Only whole clusters begin.
  const std::uint64_t whole = consecutive_blocks(options_.grid, execution_.cluster);
  if (whole > 1 && wanted > 0) {
    const std::uint64_t missing = wanted > there ? (wanted - there) / whole * whole : 0;
    wanted = there + (there == 0 ? std::max(missing, whole) : missing);
  }
  for (std::uint64_t count = there; count < wanted && started_ < num_blocks_; ++count) {
    start_block(started_++);
    resident_.push_back(std::exchange(block_, {}));
  }
}

void GridRunner::run_alone() {
  start_block(started_++);
  std::uint32_t rounds = patience_;
  while (!block_.done) {
    run_block(rounds);
    if (block_.done) break;
    if (is_spinning(std::clamp(rounds / 16, fewest_watched_rounds, most_watched_rounds))) {
      patience_ = short_patience;
      execution_.in_turns = true;
      resident_.push_back(std::exchange(block_, {}));
      start_blocks(2);
      return;
    }
    // What others do is seldom worth another look.
    rounds = std::min(2 * rounds, most_patience);
    patience_ = std::max(patience_, rounds);
  }
  store_block();
}

bool GridRunner::is_spinning(std::uint32_t rounds) {
  execution_.sightings = {};
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::done) continue;
    warp.watch = std::make_unique<Watch>(execution_.sightings, few_states);
  }
  run_block(rounds);
  bool spins = false;
  bool works = block_.done;
  bool has_looked = false;
  for (Warp& warp : block_.warps) {
    const std::unique_ptr<Watch> watch = std::exchange(warp.watch, nullptr);
    if (watch == nullptr) continue;
    if (warp.state == Warp::State::ready && !watch->circles()) works = true;
    if (warp.state != Warp::State::done && watch->spins()) spins = true;
    has_looked |= watch->has_looked();
  }
  if (block_.done) return false;
  if (has_looked && patience_ == most_patience && ++doubts_ >= most_doubts) return true;
  return spins && !works;
}

void GridRunner::run_in_turns() {
  std::uint64_t unfinished = 0;
  std::uint64_t ended = 0;
  std::uint64_t wake = ~std::uint64_t{0};
  bool has_run = false;
  for (Block& block : resident_) {
    if (block.done) continue;
    std::swap(block_, block);
    has_run |= run_block(rounds_in_turns);
    std::swap(block_, block);
    ++(block.done ? ended : unfinished);
    wake = std::min(wake, first_wake(block));
  }
  // All have had a turn while these slept.
  if (wake != ~std::uint64_t{0}) execution_.skip_time_to(wake);
  if (!has_run && ended == 0 && wake == ~std::uint64_t{0} && !give_up_all_waits()) {
    for (Block& block : resident_) {
      if (!block.done) report_deadlock(block);
    }
  }
  const std::uint64_t before = started_;
  if (ended > 0) store_finished();
  start_blocks(ended > 0 ? unfinished + ended : 2 * unfinished);
  if (resident_.empty()) {
    execution_.in_turns = options_.cooperative || cluster_blocks(execution_.cluster) > 1;
  }
  if (ended > 0 || started_ > before) {
    watch_all(false);
    quiet_turns_ = 0;
  } else {
    look_for_standstill();
  }
}

void GridRunner::store_finished() {
  for (Block& block : resident_) {
    if (block.done) let_go(block);
  }
  for (; !resident_.empty() && resident_.front().done; resident_.pop_front()) {
    std::swap(block_, resident_.front());
    store_block();
    block_ = {};
  }
}

void GridRunner::store_block() {
  recorder_.store_block();
  ++stored_;
  if (options_.progress) options_.progress(stored_, num_blocks_);
}

void GridRunner::start_block(std::uint64_t number) {
  block_.number = number;
  block_.done = false;
  block_.index = {number % options_.grid[0], number / options_.grid[0] % options_.grid[1],
                  number / options_.grid[0] / options_.grid[1]};
  block_.shared.assign(program_.uses_dynamic_shared
                           ? program_.dynamic_shared_offset + options_.dynamic_shared_bytes
                           : program_.shared_bytes,
                       std::byte{0});
  start_checks();
  block_.barriers = {};
  fruitless_ = 0;
  block_.warps.resize(execution_.num_warps);
  for (std::uint32_t w = 0; w < execution_.num_warps; ++w) start_warp(block_.warps[w], w);
}

void GridRunner::start_warp(Warp& warp, std::uint32_t number) {
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
  warp.watch.reset();
  warp.pauses = 0;
  warp.clock = nullptr;
  warp.async = {};
  warp.file = execution_.first_frame;
  warp.frames.assign(1, {.function = &kernel, .mask = warp.live});
  warp.paths.assign(1, {0, none, warp.live});
  const std::uint64_t local_bytes = program_.local_bytes * warp_size;
  assign_zeros(warp.local, local_bytes);
  warp.local_written.reset(options_.check_uninitialized ? local_bytes : 0);
  warp.columns.clear();
}

void GridRunner::start_checks() {
  block_.shared_written.reset(options_.check_uninitialized ? block_.shared.size() : 0);
  if (!block_.shared_written.whole()) {
    // Nobody writes the gaps between variables.
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
    block_.races = std::make_unique<RaceCheck>(execution_.num_warps, execution_.race_budget);
  }
}

bool GridRunner::run_block(std::uint32_t rounds) {
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
    } else if (!holds(block_) || !may_give_up() || !give_up_waits()) {
      break;
    }
  }
  block_.done = std::ranges::all_of(
      block_.warps, [](const Warp& warp) { return warp.state == Warp::State::done; });
  const std::uint64_t wake = first_wake(block_);
  if (!has_run && !block_.done && wake == ~std::uint64_t{0} &&
      (!execution_.in_turns || !holds(block_))) {
    report_deadlock(block_);
  }
  if (wake != ~std::uint64_t{0} && !execution_.in_turns) execution_.skip_time_to(wake);
  return has_run;
}

bool GridRunner::give_up_waits() {
  bool goes_on = false;
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::held) goes_on |= warps_.held().give_up(warp, fruitless_);
  }
  return goes_on;
}

bool GridRunner::may_give_up() {
  if (execution_.async_events != events_before_) fruitless_ = 0;
  events_before_ = execution_.async_events;
  return ++fruitless_ <= most_fruitless;
}

bool GridRunner::give_up_all_waits() {
  if (!may_give_up()) return false;
  bool goes_on = false;
  for (Block& block : resident_) {
    if (block.done) continue;
    std::swap(block_, block);
    goes_on |= give_up_waits();
    std::swap(block_, block);
  }
  return goes_on;
}

bool GridRunner::holds(const Block& block) {
  return std::ranges::any_of(block.warps,
                             [](const Warp& warp) { return warp.state == Warp::State::held; });
}

std::uint64_t GridRunner::first_wake(const Block& block) {
  std::uint64_t first = ~std::uint64_t{0};
  for (const Warp& warp : block.warps) {
    if (warp.state == Warp::State::asleep) first = std::min(first, warp.wake);
  }
  return first;
}

void GridRunner::watch_all(bool on) {
  watched_turns_ = on ? 1 : 0;
  circling_since_ = execution_.warp_instructions;
  execution_.sightings = {};
  for (Block& block : resident_) {
    for (Warp& warp : block.warps) {
      warp.watch.reset();
      if (!on || warp.state == Warp::State::done) continue;
      warp.watch = std::make_unique<Watch>(execution_.sightings, ~std::uint32_t{0});
    }
  }
}

void GridRunner::look_for_standstill() {
  if (execution_.async_events != events_seen_) {  // somebody came to a barrier that holds others
    events_seen_ = execution_.async_events;
    watch_all(false);
    quiet_turns_ = 0;
    return;
  }
  if (watched_turns_ == 0) {
    if (++quiet_turns_ >= quiet_limit_) watch_all(true);
    return;
  }
  ++watched_turns_;
  bool all_circle = !execution_.sightings.news;
  bool all_recur = !execution_.sightings.changes;
  for (const Block& block : resident_) {
    for (const Warp& warp : block.warps) {
      if (warp.watch == nullptr || warp.state == Warp::State::done || waits(warp)) {
        continue;
      }
      all_circle &= warp.watch->circles();
      all_recur &=
          warp.watch->recurs_for(circles_of_proof * static_cast<std::uint32_t>(warp.paths.size()));
    }
  }
  if (all_circle && all_recur) report_standstill(true);
  if (execution_.sightings.news || execution_.sightings.changes) {
    circling_since_ = execution_.warp_instructions;
    for (Block& block : resident_) {
      for (Warp& warp : block.warps) {
        if (warp.watch != nullptr) warp.watch->begin_again();
      }
    }
  }
  execution_.sightings = {};
  if (all_circle) {
    if (execution_.warp_instructions - circling_since_ > most_circling) report_standstill(false);
    const std::uint64_t now = execution_.time();
    if (now < most_skipped_time) execution_.skip_time_to(now + now / 8);
  } else if (watched_turns_ > watched_quiet_turns) {
    watch_all(false);
    quiet_turns_ = 0;
    quiet_limit_ = std::min(2 * quiet_limit_, most_quiet_turns);
  }
}

std::string GridRunner::waits_of(Block& block, bool of_spinning) {
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
  for (Warp& warp : block.warps) {
    if (warp.state == Warp::State::done || text.size() > enough) continue;
    std::string what;
    if (warp.state == Warp::State::held) {
      // What it waits for is found as that of the block that runs.
      const bool runs = &block == &block_;
      if (!runs) std::swap(block_, block);
      what =
          " at " + warps_.held().text(warp) + " (" + Faults::place_of(warp, warp.next_step()) + ")";
      if (!runs) std::swap(block_, block);
    } else if (warp.state == Warp::State::waiting) {
      // The warp goes on behind the barrier.
      const PathEntry& path = warp.paths.back();
      const Step& step =
          warp.frames.back().function->steps[path.pc == parked ? path.resume : path.pc - 1];
      what =
          " at barrier " + std::to_string(warp.barrier) + " (" + Faults::place_of(warp, step) + ")";
    } else if (!of_spinning) {
      continue;
    } else if (warp.watch != nullptr && warp.watch->look() != nullptr) {
      what = " reads " + hexadecimal(warp.watch->look_address()) + " again and again (" +
             Faults::place_of(warp, *warp.watch->look()) + ")";
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

void GridRunner::report_deadlock(Block& block) {
  throw InputError("kernel " + program_.name + ", block " + block.text() +
                   ": deadlock: all warps that have not finished wait: " + waits_of(block, false));
}

void GridRunner::report_standstill(bool is_certain) {
  constexpr std::size_t enough = 600;
  std::string where;
  std::uint64_t blocks = 0;
  std::uint64_t untold = 0;
  for (Block& block : resident_) {
    if (block.done) continue;
    ++blocks;
    if (where.size() > enough) {
      ++untold;
    } else {
      where +=
          (where.empty() ? "block " : "; block ") + block.text() + ": " + waits_of(block, true);
    }
  }
  if (untold > 0) where += "; and " + std::to_string(untold) + " more blocks";
  std::string what = is_certain ? "deadlock: " : "no progress: ";
  what += blocks == 1 ? "the block that is resident waits"
                      : "all " + std::to_string(blocks) + " blocks that are resident wait";
  what += " for memory that nobody change";
  what += is_certain ? "s"
                     : "d for " + std::to_string(execution_.warp_instructions - circling_since_) +
                           " warp instructions";
  if (const std::uint64_t rest = num_blocks_ - started_; rest > 0) {
    what += ", and " + std::to_string(rest) +
            (rest == 1 ? " begins only when another ends" : " begin only when others end") +
            " (this GPU holds " + std::to_string(most_blocks()) + ")";
  }
  throw InputError("kernel " + program_.name + ": " + what + ": " + where);
}

}  // namespace warpstack::simt
