#include "simt/async/async_unit.h"

#include <bit>

#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {
namespace {

/// Looks of a held warp after which a test of an mbarrier fails: others may wait for that.
constexpr std::uint32_t most_held_rounds = 1u << 12;

/// Negative answers without any event in between, after which other lanes of the warp go ahead.
constexpr std::uint64_t few_fruitless = 16;

}  // namespace

bool AsyncUnit::execute(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  switch (step.action) {
    case Action::bulk_copy:
      copies_.copy(warp, step, registers, mask);
      return true;
    case Action::tensor_copy:
      tensors_.copy(warp, step, registers, mask);
      return true;
    case Action::tensor_map:
      tensors_.change_map(warp, step, registers, mask);
      return true;
    case Action::tensor_map_copy:
      tensors_.copy_map(warp, step, registers, mask);
      return true;
    case Action::warpgroup_multiply:
      products_.multiply(warp, step, registers, mask);
      return true;
    case Action::warpgroup_commit:
      products_.commit(warp);
      return true;
    case Action::tensor_product:
      tensor_memory_.multiply(warp, step, registers, mask);
      return true;
    case Action::tensor_transfer:
      tensor_memory_.transfer(warp, step, registers, mask);
      return true;
    case Action::tensor_fill:
      tensor_memory_.fill(warp, step, registers, mask);
      return true;
    case Action::tensor_shift:
      tensor_memory_.shift(warp, step, registers, mask);
      return true;
    case Action::tensor_commit:
      tensor_memory_.commit(warp, step, registers, mask);
      return true;
    case Action::cluster_arrive:
      arrive_at_cluster(warp, mask);
      ++execution_.async_events;
      return true;
    case Action::cluster_rank:
      for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const std::uint32_t bytes = step.operands.immediate;
        std::uint64_t address = read_lane(registers, step.operands.source[0], bytes, lane);
        if (bytes == 8) address -= shared_window;
        write_lane(registers, step.operands.target, 4, lane,
                   in_cluster(address) ? rank_of_address(address)
                                       : rank_in_cluster(execution_.block, execution_.cluster));
      }
      return true;
    default:
      break;
  }
  if (is_over(warp, step, registers, mask)) return true;
  if (warp.detector != nullptr) warp.detector->meet();
  warp.state = Warp::State::held;
  warp.async.held_mask = mask;
  warp.async.held_rounds = 0;
  warp.turns = 0;
  warp.pauses = 0;
  return false;
}

bool AsyncUnit::is_over(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  switch (step.action) {
    case Action::async_barrier:
      return barriers_.execute(warp, step, registers, mask);
    case Action::warpgroup_wait:
      return products_.wait(warp, step);
    case Action::tensor_allocate:
      return tensor_memory_.allocate(warp, step, registers, mask);
    default:
      return cluster_has_come(execution_, warp, mask);
  }
}

bool AsyncUnit::try_again(Warp& warp) {
  const Step& step = warp.next_step();
  const bool over = is_over(warp, step, warp.registers(), warp.async.held_mask);
  if (!over && ++warp.async.held_rounds < most_held_rounds) return false;
  if (!over) return give_up(warp, 0);
  warp.state = Warp::State::ready;
  warp.spins = 0;
  ++warp.paths.back().pc;
  return true;
}

bool AsyncUnit::give_up(Warp& warp, std::uint64_t fruitless) {
  const Step& step = warp.next_step();
  warp.async.held_rounds = 0;
  if (step.action == Action::async_barrier) {
    barriers_.give_up(warp, step, warp.registers(), warp.async.held_mask);
    warp.state = Warp::State::ready;
    ++warp.paths.back().pc;
    // It may wait for other lanes of the warp.
    if (fruitless >= few_fruitless) warp.rotate();
    return true;
  }
  if (!warp.let_others_go()) return false;
  warp.state = Warp::State::ready;
  return true;
}

std::string AsyncUnit::text(Warp& warp) {
  const Step& step = warp.next_step();
  switch (step.action) {
    case Action::async_barrier:
      return barriers_.text(warp, step, warp.async.held_mask);
    case Action::warpgroup_wait:
      return products_.text(warp, step);
    case Action::tensor_allocate:
      return tensor_memory_.text(warp, step);
    default:
      return "the barrier of its cluster";
  }
}

}  // namespace warpstack::simt
