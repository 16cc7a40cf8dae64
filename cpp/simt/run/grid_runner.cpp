#include "simt/run/grid_runner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "common/error.h"
#include "common/text.h"
#include "simt/program/registers.h"

namespace warpstack::simt {
namespace {

/// Rounds of a block before others get a turn, unless it waits earlier.
constexpr std::uint32_t rounds_in_turns = 256;

constexpr std::uint64_t most_quiet_turns = std::uint64_t{1} << 16;
constexpr std::uint64_t watched_quiet_turns = 256;
/// Rounds of a loop in the same state, per path of the warp, that prove an endless wait.
constexpr std::uint32_t circles_of_proof = 64;
/// Warp instructions without news of any block after which a launch is given up without proof.
constexpr std::uint64_t most_circling = std::uint64_t{1} << 24;
/// How far clocks are set forward meanwhile: 18 minutes, so that time-outs end.
constexpr std::uint64_t most_skipped_time = std::uint64_t{1} << 40;

/// Shares from which on a traced launch is long enough for a team: starting threads and first
/// touching their memory take time.
constexpr std::uint64_t least_shares = 32;
/// Most threads that run blocks ahead of their turn: each is compared with all before it.
constexpr std::uint64_t most_members = 16;

/// Warps of the largest GPU: 144 SMs of 64 (GH100).
constexpr std::uint64_t most_resident_warps = 144 * 64;

// The largest GPU, GH100, where no other is named. Its SM:
constexpr std::uint64_t most_sms = 144;
constexpr std::uint64_t warps_of_sm = 64;
constexpr std::uint64_t blocks_of_sm = 32;
constexpr std::uint64_t registers_of_sm = 65536;
constexpr std::uint64_t shared_bytes_of_sm = 228 << 10;
constexpr std::uint64_t reserved_shared_bytes = 1 << 10;  ///< of each block

/// Passes without the end of a block before the blocks are watched, where these are turns in the
/// order of time: such blocks may well run for as long as the launch.
constexpr std::uint64_t quiet_passes_in_time = 1024;

/// A finished block keeps only what goes into the trace.
void let_go(Block& block) {
  for (Warp& warp : block.warps) {
    warp.file = {};
    warp.frames = {};
    warp.paths = {};
    warp.local = {};
    warp.local_written = {};
    warp.detector.reset();
  }
  block.shared = {};
  block.shared_written = {};
  block.races.reset();
  block.tensors.reset();
}

}  // namespace

GridRunner::~GridRunner() {}

std::optional<KernelTrace> GridRunner::run() {
  if (is_timed_) {
    begin_time();
    while (stored_ < num_blocks_) run_in_time();
    return runner_.recorder().finish();
  }
  if (options_.cooperative) {
    execution_.in_turns = true;
    start_blocks(num_blocks_);
  }
  if (has_clusters_) execution_.in_turns = true;
  while (stored_ < num_blocks_) {
    if (resident_.empty() && has_clusters_) start_blocks(1);
    if (!resident_.empty()) {
      run_in_turns();
    } else if (is_worth_a_team()) {
      run_as_team();
    } else {
      run_alone();
    }
  }
  if (team_ != nullptr) team_->store_records();
  return runner_.recorder().finish();
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
  const std::uint64_t whole = trace::consecutive_blocks(options_.grid, execution_.cluster);
  if (whole > 1 && wanted > 0) {
    const std::uint64_t missing = wanted > there ? (wanted - there) / whole * whole : 0;
    wanted = there + (there == 0 ? std::max(missing, whole) : missing);
  }
  for (std::uint64_t count = there; count < wanted && started_ < num_blocks_; ++count) {
    runner_.start(started_++);
    resident_.push_back(std::exchange(block_, {}));
  }
}

bool GridRunner::is_worth_a_team() const {
  if (num_threads_ < 2 || started_ < alone_until_ || num_blocks_ - started_ < 2) return false;
  if (execution_.warp_instructions > options_.step_limit) return false;  // the next block says so
  const std::uint64_t left = num_blocks_ - started_;
  if (team_ != nullptr) return left >= blocks_at_a_time() / 2;
  return left * instructions_per_block() >= least_shares * options_.instructions_ahead;
}

bool GridRunner::records_next() const {
  return options_.trace && started_ < num_blocks_ &&
         execution_.recorded.has(execution_.block_at(started_));
}

std::uint64_t GridRunner::blocks_at_a_time() const {
  const std::uint64_t instructions = (records_next() ? 1 : 4) * options_.instructions_ahead;
  return instructions / instructions_per_block();
}

std::uint64_t GridRunner::instructions_per_block() const {
  return std::max<std::uint64_t>(execution_.warp_instructions / started_, 1);
}

void GridRunner::run_as_team() {
  if (team_ == nullptr) {
    const std::uint64_t most = std::min<std::uint64_t>(num_threads_, most_members);
    try {
      team_ = std::make_unique<BlockTeam>(
          execution_, runner_.recorder(),
          static_cast<std::uint32_t>(std::min(most, num_blocks_ - started_)));
    } catch (const std::bad_alloc&) {
      alone_until_ = num_blocks_;
    } catch (const std::system_error&) {
      alone_until_ = num_blocks_;
    }
    if (team_ == nullptr) return;
  }
  const std::uint64_t left = num_blocks_ - started_;
  const std::uint64_t per_member = std::clamp<std::uint64_t>(
      blocks_at_a_time(), 1, std::max<std::uint64_t>(left / num_threads_, 1));
  const BlockTeam::Outcome outcome =
      team_->run({.first = started_,
                  .per_member = per_member,
                  .most = std::min(left, (num_threads_ + 3) * per_member)},
                 runner_.patience());
  started_ += outcome.blocks;
  stored_ += outcome.blocks;
  // Blocks of a team read no clock.
  if (outcome.blocks > 0) execution_.awaited_cycles.least = execution_.awaited_ns.least = 0;
  if (outcome.blocks > 0) show_progress();
  if (outcome.all) {
    most_alone_ = per_member;
  } else if (outcome.is_hopeless) {
    alone_until_ = num_blocks_;
  } else {
    // Blocks of a launch often depend on each other in the same way as earlier ones.
    alone_until_ = started_ + most_alone_;
    most_alone_ = std::min(2 * most_alone_, num_blocks_);
  }
}

void GridRunner::run_alone() {
  if (team_ != nullptr) team_->store_records();
  runner_.start(started_++);
  if (runner_.run_to_end()) {
    store_block();
    return;
  }
  execution_.in_turns = true;
  resident_.push_back(std::exchange(block_, {}));
  start_blocks(2);
}

void GridRunner::run_in_turns() {
  std::uint64_t unfinished = 0;
  std::uint64_t ended = 0;
  std::uint64_t wake = ~std::uint64_t{0};
  bool has_run = false;
  for (Block& block : resident_) {
    if (block.done) continue;
    std::swap(block_, block);
    has_run |= runner_.run(rounds_in_turns);
    std::swap(block_, block);
    ++(block.done ? ended : unfinished);
    wake = std::min(wake, BlockRunner::first_wake(block));
  }
  // All have had a turn while these slept.
  if (wake != ~std::uint64_t{0}) execution_.skip_time_to(wake);
  if (!has_run && ended == 0 && wake == ~std::uint64_t{0} && !give_up_all_waits()) {
    for (Block& block : resident_) {
      if (block.done) continue;
      std::swap(block_, block);
      runner_.report_deadlock();
    }
  }
  const std::uint64_t before = started_;
  if (ended > 0) {
    for (Block& block : resident_) {
      if (block.done) let_go(block);
    }
    store_finished();
    block_ = {};
  }
  start_blocks(ended > 0 ? unfinished + ended : 2 * unfinished);
  if (resident_.empty()) execution_.in_turns = options_.cooperative || has_clusters_;
  if (ended > 0 || started_ > before) {
    detect_all(false);
    quiet_turns_ = 0;
  } else {
    look_for_standstill();
  }
}

std::uint64_t GridRunner::blocks_per_sm() const {
  const std::uint64_t warps = execution_.num_warps;
  const std::uint64_t registers =
      std::max(options_.registers_per_thread, std::uint64_t{program_.registers_per_thread});
  const std::uint64_t shared = shared_bytes_of(program_, options_) + reserved_shared_bytes;
  const std::uint64_t most =
      std::min({blocks_of_sm, warps_of_sm / warps, shared_bytes_of_sm / shared,
                registers_of_sm / std::max<std::uint64_t>(registers * warp_size * warps, 1)});
  return std::max<std::uint64_t>(most, 1);
}

void GridRunner::begin_time() {
  const std::uint64_t all_blocks = execution_.recorded.num_blocks();
  const std::uint64_t all_sms = options_.num_sms > 0 ? options_.num_sms : most_sms;
  // Blocks that do not run would be on the others.
  const std::uint64_t sms = std::max<std::uint64_t>(all_sms * num_blocks_ / all_blocks, 1);
  most_in_time_ = std::max<std::uint64_t>(most_blocks() * num_blocks_ / all_blocks, 1);
  if (!options_.cooperative && options_.resident_blocks == 0) {
    most_in_time_ = std::min(most_in_time_, sms * blocks_per_sm());
  }
  const std::uint64_t there = std::min(most_in_time_, num_blocks_);
  clock_.pace = issue_pace((there + sms - 1) / sms * execution_.num_warps);
  execution_.clock = &clock_;
  execution_.in_turns = true;
  quiet_limit_ = quiet_passes_in_time;
  start_blocks_in_time();
}

void GridRunner::start_blocks_in_time() {
  const std::uint64_t whole = trace::consecutive_blocks(options_.grid, execution_.cluster);
  while (started_ < num_blocks_ && (turns_.empty() || turns_.size() + whole <= most_in_time_)) {
    for (std::uint64_t i = 0; i < whole; ++i) {
      turns_.push({clock_.now, started_});
      runner_.start(started_++);
      resident_.push_back(std::exchange(block_, {}));
    }
  }
}

void GridRunner::run_in_time() {
  const Turn turn = turns_.top();
  turns_.pop();
  clock_.others = ~std::uint64_t{0};
  if (!turns_.empty()) {
    // Where both are at the same cycle, the first in the grid comes first.
    clock_.others = turns_.top().cycle - (turns_.top().place < turn.place ? 1 : 0);
  }
  execution_.skip_time_to(turn.cycle);
  const std::uint64_t before = execution_.warp_instructions;
  Block& block = resident_[turn.place - stored_];  // finished blocks stay until earlier ones end
  std::swap(block_, block);
  const std::uint64_t next = runner_.run_in_time();
  std::swap(block_, block);
  if (block.done) {
    clock_.now = block.cycle;
    if (turn.place != stored_) let_go(block);
    store_finished();
    start_blocks_in_time();  // the first in the memory of the block that was stored last
    block_ = {};
    if (watched_turns_ > 0) detect_all(false);
    turns_of_pass_ = quiet_turns_ = idle_turns_ = 0;
    return;
  }
  turns_.push({next, turn.place});
  idle_turns_ = execution_.warp_instructions == before ? idle_turns_ + 1 : 0;
  if (idle_turns_ > turns_.size() && !give_up_all_waits()) {
    std::swap(block_, block);
    runner_.report_deadlock();
  }
  if (++turns_of_pass_ < turns_.size()) return;
  turns_of_pass_ = 0;
  look_for_standstill();
}

void GridRunner::store_finished() {
  for (; !resident_.empty() && resident_.front().done; resident_.pop_front()) {
    std::swap(block_, resident_.front());
    store_block();
  }
}

void GridRunner::count_awaited() {
  std::uint64_t cycles = 0;
  std::uint64_t ns = 0;
  for (const Warp& warp : block_.warps) {
    cycles = std::max(cycles, warp.awaited_cycles);
    ns = std::max(ns, warp.awaited_ns);
  }
  const auto add = [this](trace::AwaitedTicks& ticks, std::uint64_t of_block) {
    ticks.least = stored_ == 0 ? of_block : std::min(ticks.least, of_block);
    ticks.most = std::max(ticks.most, of_block);
    ticks.total += of_block;
  };
  add(execution_.awaited_cycles, cycles);
  add(execution_.awaited_ns, ns);
}

void GridRunner::store_block() {
  count_awaited();
  runner_.recorder().store_block();
  ++stored_;
  show_progress();
}

void GridRunner::show_progress() {
  if (options_.progress) options_.progress(stored_, num_blocks_);
}

bool GridRunner::give_up_all_waits() {
  if (!runner_.may_give_up()) return false;
  bool goes_on = false;
  for (Block& block : resident_) {
    if (block.done) continue;
    std::swap(block_, block);
    goes_on |= runner_.give_up_waits();
    std::swap(block_, block);
  }
  return goes_on;
}

void GridRunner::detect_all(bool on) {
  watched_turns_ = on ? 1 : 0;
  circling_since_ = execution_.warp_instructions;
  execution_.sightings = {};
  for (Block& block : resident_) {
    for (Warp& warp : block.warps) {
      warp.detector.reset();
      if (!on || warp.state == Warp::State::done) continue;
      warp.detector = std::make_unique<SpinDetector>(execution_.sightings, ~std::uint32_t{0});
    }
  }
}

void GridRunner::look_for_standstill() {
  if (execution_.async_events != events_seen_) {  // an arrival at a barrier that holds others
    events_seen_ = execution_.async_events;
    detect_all(false);
    quiet_turns_ = 0;
    return;
  }
  if (watched_turns_ == 0) {
    if (++quiet_turns_ >= quiet_limit_) detect_all(true);
    return;
  }
  ++watched_turns_;
  bool all_circle = !execution_.sightings.news;
  bool all_recur = !execution_.sightings.changes;
  for (const Block& block : resident_) {
    for (const Warp& warp : block.warps) {
      if (warp.detector == nullptr || warp.state == Warp::State::done ||
          warp.state == Warp::State::waiting || warp.state == Warp::State::held) {
        continue;
      }
      all_circle &= warp.detector->circles();
      all_recur &= warp.detector->recurs_for(circles_of_proof *
                                             static_cast<std::uint32_t>(warp.paths.size()));
    }
  }
  if (all_circle && all_recur) report_standstill(true);
  if (execution_.sightings.news || execution_.sightings.changes) {
    circling_since_ = execution_.warp_instructions;
    for (Block& block : resident_) {
      for (Warp& warp : block.warps) {
        if (warp.detector != nullptr) warp.detector->begin_again();
      }
    }
  }
  execution_.sightings = {};
  if (all_circle) {
    if (execution_.warp_instructions - circling_since_ > most_circling) report_standstill(false);
    const std::uint64_t now = execution_.time();
    if (now < most_skipped_time) execution_.skip_time_to(now + now / 8);
  } else if (watched_turns_ > watched_quiet_turns) {
    detect_all(false);
    quiet_turns_ = 0;
    quiet_limit_ = std::min(2 * quiet_limit_, most_quiet_turns);
  }
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
      continue;
    }
    std::swap(block_, block);
    where +=
        (where.empty() ? "block " : "; block ") + block_.text() + ": " + runner_.waits_of(true);
    std::swap(block_, block);
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
  if (const std::uint64_t others = execution_.recorded.num_blocks() - num_blocks_; others > 0) {
    what += ". " + std::to_string(others) +
            " blocks that are not in the sample do not run and may be what is waited for: launch "
            "with run_others on";
  }
  throw InputError("kernel " + program_.name + ": " + what + ": " + where);
}

}  // namespace warpstack::simt
