#include "simt/grid_runner.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "common/error.h"
#include "simt/registers.h"

namespace warpstack::simt {

GridRunner::~GridRunner() {
  if (execution_.workspace_address != 0)
    execution_.device.memory.free(execution_.workspace_address);
}

std::optional<KernelTrace> GridRunner::run() {
  const std::uint64_t num_blocks = options_.grid[0] * options_.grid[1] * options_.grid[2];
  if (options_.cooperative) {
    run_in_turns(num_blocks);
  } else {
    for (std::uint64_t number = 0; number < num_blocks; ++number) {
      start_block(number);
      while (!block_.done) run_block();
      recorder_.store_block();
      if (options_.progress) options_.progress(number + 1, num_blocks);
    }
  }
  return recorder_.finish();
}

void GridRunner::run_in_turns(std::uint64_t num_blocks) {
  if (program_.synchronizes_grid) {
    // A count of arrivals, behind four bytes that are not used here.
    const std::array<std::byte, 64> zeros{};
    execution_.workspace_address =
        execution_.device.memory.allocate(zeros.size(), "(workspace of the cooperative launch)");
    execution_.device.memory.write(execution_.workspace_address, zeros.data(), zeros.size());
    spaces_.forget_allocation();
  }
  std::vector<Block> blocks(num_blocks);
  for (std::uint64_t number = 0; number < num_blocks; ++number) {
    start_block(number);
    std::swap(block_, blocks[number]);
  }
  std::uint64_t stored = 0;
  while (stored < num_blocks) {
    for (std::uint64_t number = stored; number < num_blocks; ++number) {
      if (blocks[number].done) continue;
      std::swap(block_, blocks[number]);
      run_block();
      std::swap(block_, blocks[number]);
    }
    for (; stored < num_blocks && blocks[stored].done; ++stored) {
      std::swap(block_, blocks[stored]);
      recorder_.store_block();
      block_ = {};
      if (options_.progress) options_.progress(stored + 1, num_blocks);
    }
  }
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
  warp.may_wait = false;
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

void GridRunner::run_block() {
  for (Warp& warp : block_.warps) {
    if (warp.state == Warp::State::paused) warp.state = Warp::State::ready;
  }
  std::uint32_t rounds = 0;
  bool progress = true;
  for (; progress && rounds <= turns_in_a_row; ++rounds) {
    progress = false;
    for (Warp& warp : block_.warps) {
      if (warp.state != Warp::State::ready) continue;
      warps_.run(warp);
      progress = true;
    }
  }
  block_.done = std::ranges::all_of(
      block_.warps, [](const Warp& warp) { return warp.state == Warp::State::done; });
  if (rounds == 1 && !progress && !block_.done) report_deadlock();
}
void GridRunner::report_deadlock() const {
  std::string where;
  for (const Warp& warp : block_.warps) {
    if (warp.state != Warp::State::waiting || where.size() > 200) continue;
    // The warp goes on behind the barrier.
    const PathEntry& path = warp.paths.back();
    const Step& step =
        warp.frames.back().function->steps[path.pc == parked ? path.resume : path.pc - 1];
    where += (where.empty() ? "warp " : ", warp ") + std::to_string(warp.number) + " at barrier " +
             std::to_string(warp.barrier) + " (" + Faults::place_of(warp, step) + ")";
  }
  throw InputError("kernel " + program_.name + ", block " + block_.text() +
                   ": deadlock: all warps that have not finished wait: " + where);
}
}  // namespace warpstack::simt
