#include "timing/sm/async_waits.h"

#include <algorithm>

namespace warpstack::timing {
namespace {

/// Groups of copies hold this barrier, as those of machine code hold the one that they name.
constexpr std::uint32_t copy_barrier = 0;
/// Groups of products hold this one.
constexpr std::uint32_t product_barrier = 1;

}  // namespace

AsyncWaits::AsyncWaits(const RowTable& rows, const LoadStoreUnit& lsu, std::size_t num_blocks,
                       std::uint32_t warps_per_block)
    : RegisterWaits(rows, num_blocks * warps_per_block),
      lsu_(lsu),
      products_done_(num_blocks * warps_per_block, -1),
      groups_(num_blocks * warps_per_block),
      phases_(num_blocks, warps_per_block),
      bulk_groups_(num_blocks * warps_per_block),
      readers_(lsu, num_blocks * warps_per_block) {}

void AsyncWaits::start_warp(std::uint32_t warp, Cycle start) {
  RegisterWaits::start_warp(warp, start);
  products_done_[warp] = -1;
  groups_.clear(warp);
  phases_.clear_warp(warp);
  bulk_groups_.clear(warp);
  readers_.start_warp(warp);
}

Wait AsyncWaits::wait(std::uint32_t warp, std::uint32_t block, std::uint32_t row) {
  Wait result = RegisterWaits::wait(warp, block, row);
  result.take(wait_for_group(warp, rows().copy_step(row)));
  const trace::PhaseStep& phase = rows().phase_step(row);
  if (phase.kind == trace::PhaseStep::Kind::wait) {
    result.take(phases_.wait(block, warp, phase.barrier, phase.count));
  }
  return result;
}

Wait AsyncWaits::wait_for_group(std::uint32_t warp, const trace::CopyGroupStep& step) {
  using Kind = trace::CopyGroupStep::Kind;
  using Of = trace::CopyGroupStep::Of;
  if (step.kind == Kind::wait_all) return groups_.wait_for_copies(warp);
  if (step.kind != Kind::wait) return {};
  if (step.of == Of::bulk_stores) return bulk_groups_.wait(warp, step.most, step.for_reading);
  return groups_.wait_for_most(warp, step.of == Of::products ? product_barrier : copy_barrier,
                               step.most);
}

bool AsyncWaits::issue(const Issue& issue) {
  RegisterWaits::issue(issue);
  if (!issue.is_active) return false;
  const RowTable::Row& row = rows()[issue.row];
  if (issue.accesses) {
    if (row.is_async_copy) groups_.add_copy(issue.warp, issue.load);
    readers_.push(issue.warp, {row.is_bulk_store});
    if (row.is_bulk_store) bulk_groups_.add(issue.warp, issue.load, issue.now);
  }
  if (row.is_async_product) {
    Cycle& done = products_done_[issue.warp];
    done = std::max(done, issue.now + row.latency);
  }
  const trace::CopyGroupStep& group = rows().copy_step(issue.row);
  if (group.kind == trace::CopyGroupStep::Kind::commit) commit(issue.warp, group.of, issue.now);
  return take_phase_step(issue, rows().phase_step(issue.row));
}

void AsyncWaits::commit(std::uint32_t warp, trace::CopyGroupStep::Of of, Cycle now) {
  switch (of) {
    case trace::CopyGroupStep::Of::copies:
      groups_.hold_for_copies(warp, copy_barrier, now);
      break;
    case trace::CopyGroupStep::Of::products:
      groups_.hold(warp, product_barrier, std::max(products_done_[warp], now + 1), now);
      break;
    case trace::CopyGroupStep::Of::bulk_stores:
      bulk_groups_.commit(warp);
      break;
  }
}

bool AsyncWaits::take_phase_step(const Issue& issue, const trace::PhaseStep& step) {
  if (step.kind == trace::PhaseStep::Kind::none) return false;
  if (step.kind == trace::PhaseStep::Kind::wait) {
    phases_.pass(issue.warp, step.barrier, step.count);
    return false;
  }
  std::vector<std::uint32_t> loads;
  if (issue.load != LoadStoreUnit::no_load) loads.push_back(issue.load);
  for (const std::uint32_t other : issue.loads) {
    if (step.is_after_copies && rows()[lsu_.load(other).row].is_async_copy) loads.push_back(other);
  }
  const RowTable::Row& row = rows()[issue.row];
  const Cycle latency = row.is_memory ? 1 : std::max<Cycle>(row.latency, 1);
  phases_.complete(issue.block, step.barrier, loads, issue.now + latency);
  return true;
}

bool AsyncWaits::finish(const Done& load) {
  RegisterWaits::finish(load);
  const RowTable::Row& row = rows()[load.row];
  if (row.is_async_copy) groups_.copy_is_done(load.warp, load.load, load.at, load.cause);
  if (row.is_bulk_store) bulk_groups_.is_written(load.warp, load.load, load.at);
  return phases_.load_is_done(load.block, load.load, load.at);
}

void AsyncWaits::free_readers(Cycle now, std::vector<std::uint32_t>& warps) {
  readers_.pop_sent([&](std::uint32_t warp, const Held& held) {
    if (!held.is_bulk_store) return;
    bulk_groups_.is_read(warp, now + 1);
    warps.push_back(warp);
  });
}

std::string AsyncWaits::describe(std::uint32_t row) const {
  const trace::PhaseStep& phase = rows().phase_step(row);
  if (phase.kind != trace::PhaseStep::Kind::wait) return {};
  return "the mbarrier at " + std::to_string(phase.barrier) + " of shared memory";
}

}  // namespace warpstack::timing
