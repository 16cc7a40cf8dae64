#include "simt/run/warp_runner.h"

#include <algorithm>
#include <bit>

#include "common/error.h"
#include "simt/program/registers.h"
#include "simt/units/constant_banks.h"
#include "simt/units/special_read.h"

namespace warpstack::simt {
namespace {

/// Warp instructions between checks of the step limit and for an interruption.
constexpr std::uint64_t check_interval = std::uint64_t{1} << 18;
/// nanosleep takes at most a millisecond (PTX ISA, Section 9.7.12.17).
constexpr std::uint32_t longest_sleep = 1'000'000;

}  // namespace

WarpRunner::WarpRunner(Execution& execution, Faults& faults, Recorder& recorder,
                       AddressSpaces& spaces)
    : execution_(execution),
      program_(execution.program),
      options_(execution.options),
      block_(execution.block),
      faults_(faults),
      recorder_(recorder),
      races_(execution, faults),
      load_store_(execution, recorder, spaces, races_),
      matrices_(execution, faults, recorder, spaces, races_),
      textures_(execution, faults, spaces, races_, recorder_),
      parameters_(execution, faults, spaces),
      built_ins_(execution, faults, spaces),
      calls_(execution, faults, built_ins_),
      barriers_(execution, faults, recorder),
      branches_(execution, faults, calls_, barriers_),
      exchange_(execution, faults),
      operations_(execution, faults, exchange_, barriers_),
      async_(execution, faults, recorder, spaces, races_) {}

void WarpRunner::settle(Warp& warp) {
  const std::uint64_t issued = execution_.warp_instructions - settled_;
  settled_ = execution_.warp_instructions;
  warp.issued += issued;
  warp.cycle += issued * execution_.clock->pace;
}

bool WarpRunner::awaits_turn(Warp& warp, const Step& step) {
  if (!watches_others(program_.memory[step.detail])) return false;
  settle(warp);
  warp.awaits_turn = warp.cycle > execution_.clock->others;
  return warp.awaits_turn;
}

void WarpRunner::take_turn(Warp& warp) {
  if (execution_.warp_instructions >= next_check_) {
    if (options_.interrupt) options_.interrupt();
    next_check_ = execution_.warp_instructions + check_interval;
  }
  if (execution_.warp_instructions > options_.step_limit) report_step_limit(warp);
  // Turns are shorter near the limit.
  const std::uint64_t rest = options_.step_limit - execution_.warp_instructions;
  std::uint64_t left = rest < turn_steps ? rest + 1 : turn_steps;
  while (warp.state == Warp::State::ready) {
    if (left-- == 0) {
      if (++warp.turns >= turns_in_a_row) {
        warp.turns = 0;
        warp.rotate();
      }
      return;
    }
    PathEntry& path = warp.paths.back();
    const ProgramFunction& function = *warp.frames.back().function;
    if (path.pc == parked) {
      operations_.let_others_come(warp);
      continue;
    }
    if (path.pc >= function.steps.size()) {  // falls off the end
      branches_.leave(warp, path.mask, warp.frames.size() == 1);
      continue;
    }
    const Step& step = function.steps[path.pc];
    if (step.reconverges && path.pc == path.reconvergence) {
      warp.paths.pop_back();
      warp.spins = 0;
      continue;
    }
    std::byte* const registers = warp.registers();
    if (step.stretch > 1) {
      const std::uint64_t count = std::min<std::uint64_t>(step.stretch, left + 1);
      compute(warp, {&step, count}, registers);
      left -= count - 1;
      continue;
    }
    std::uint32_t mask = path.mask;
    if (step.guard != none) {
      const std::uint32_t guard = predicate_bits(registers + step.guard);
      mask &= step.guard_negated ? ~guard : guard;
    }
    if (step.action == Action::atomic && execution_.clock != nullptr && mask != 0 &&
        awaits_turn(warp, step)) {
      return;
    }
    if (step.begins) {
      ++execution_.warp_instructions;
      execution_.thread_instructions += lanes_in(mask);
    }
    if (step.action == Action::lanes) {
      recorder_.record(warp, step, mask);
      if (mask != 0) {
        set_mask(mask, warp.live);
        step.function(registers, step.operands, lanes_);
      }
      ++path.pc;
      continue;
    }
    act(warp, step, registers, mask);
  }
}

void WarpRunner::compute(Warp& warp, std::span<const Step> steps, std::byte* registers) {
  PathEntry& path = warp.paths.back();
  std::uint32_t row = none;
  std::uint32_t num_rows = 0;
  std::uint64_t instructions = 0;
  set_mask(path.mask, warp.live);
  for (const Step& step : steps) {
    if (num_rows == 0) row = step.first_row;
    num_rows += step.num_rows;
    instructions += step.begins ? 1 : 0;
    step.function(registers, step.operands, lanes_);
  }
  execution_.warp_instructions += instructions;
  execution_.thread_instructions += instructions * lanes_in(path.mask);
  recorder_.record_rows(warp, row, num_rows, path.mask);
  path.pc += static_cast<std::uint32_t>(steps.size());
}

void WarpRunner::act(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  PathEntry& path = warp.paths.back();
  const bool access = is_access(step.action);
  const bool records_itself =
      access || ((step.action == Action::async_barrier || step.action == Action::tensor_commit ||
                  step.action == Action::barrier) &&
                 mask != 0);
  if (!records_itself) recorder_.record(warp, step, mask);
  if (execution_.clock != nullptr) {
    settle(warp);
    if (mask != 0) warp.cycle += cycles_of(program_, step, warp, execution_.clock->pace);
  }
  switch (step.action) {
    case Action::branch:
      branches_.branch(warp, step, mask);
      return;
    case Action::indexed_branch:
      branches_.indexed_branch(warp, step, registers, mask);
      return;
    case Action::separate:
      branches_.separate(warp, step, registers, mask);
      return;
    case Action::exit:
      ++path.pc;
      if (mask != 0) branches_.leave(warp, mask, true);
      return;
    case Action::function_return:
      ++path.pc;
      if (mask != 0) branches_.leave(warp, mask, false);
      return;
    case Action::trap:
      if (mask != 0) {
        faults_.stop(
            warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
            program_.synchronizes_grid && !options_.cooperative
                ? "the kernel executed a trap: to synchronize its grid it needs a cooperative "
                  "launch"
                : "the kernel executed a trap");
      }
      break;
    case Action::barrier:
      barriers_.arrive(warp, step, registers, mask);
      return;
    case Action::shuffle:
    case Action::vote:
    case Action::match:
    case Action::reduce:
    case Action::elect:
    case Action::warp_sync:
      operations_.meet(warp, step, registers, mask);
      return;
    case Action::converge:
      operations_.converge(warp, step, registers, mask);
      return;
    case Action::async_barrier:
    case Action::warpgroup_wait:
    case Action::tensor_allocate:
    case Action::cluster_wait:
      if (mask != 0 && !async_.execute(warp, step, registers, mask)) return;
      break;
    case Action::call:
    case Action::indirect_call:
      ++path.pc;
      if (mask != 0) calls_.call(warp, step, registers, mask);
      return;
    default:
      if (access && mask == 0) recorder_.record_idle_access(warp, step);
      if (mask != 0) perform(warp, step, registers, mask);
      break;
  }
  ++warp.paths.back().pc;
}

void WarpRunner::perform(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  switch (step.action) {
    case Action::nothing:
      break;
    case Action::sleep:
      sleep(warp, step, registers, mask);
      break;
    case Action::fence:
      if (block_.races != nullptr) block_.races->fence(warp.number);
      break;
    case Action::special:
      read_special(execution_, warp, step, registers, mask);
      break;
    case Action::local_address:
      broadcast(registers, step.operands.target, step.operands.immediate, mask,
                warp.frames.back().local_base + program_.local_offsets[step.detail]);
      break;
    case Action::parameter_base:
      broadcast(registers, step.operands.target, 8, mask, parameters_.parameter_address());
      break;
    case Action::kernel_parameter:
      parameters_.load_kernel_parameter(warp, step, registers, mask);
      break;
    case Action::parameter_load:
      parameters_.access_parameter(warp, step, registers, mask, true);
      break;
    case Action::parameter_store:
      parameters_.access_parameter(warp, step, registers, mask, false);
      break;
    case Action::bank_load:
      load_from_bank(execution_, faults_, warp, step, registers, mask);
      break;
    case Action::begin_convergence:
      broadcast(registers, program_.convergences[step.detail].members, 4, mask, mask);
      break;
    case Action::divergence_test: {
      const Collective& c = program_.collectives[step.detail];
      const std::uint32_t members = lane_u32(registers, c.members, std::countr_zero(mask));
      std::uint32_t there = warp.paths.back().mask;
      if (c.a != none) there &= predicate_bits(registers + c.a);
      broadcast(registers, c.result, 4, mask,
                (members & warp.live) == there ? 0 : ~std::uint64_t{0});
      break;
    }
    case Action::leave_convergence:
      operations_.leave_convergence(warp, step, registers, mask);
      break;
    case Action::load:
    case Action::store:
    case Action::atomic:
    case Action::async_copy:
      load_store_.access(warp, step, registers, mask);
      break;
    case Action::address_query:
      query_address(execution_, step, registers, mask);
      break;
    case Action::texture:
    case Action::surface_load:
    case Action::surface_store:
    case Action::texture_query:
      if (warp.detector != nullptr) warp.detector->work();
      textures_.access(warp, step, registers, mask);
      break;
    case Action::active_mask:
      broadcast(registers, program_.collectives[step.detail].result, 4, mask, mask);
      break;
    case Action::matrix_multiply:
      matrices_.multiply(warp, step, registers, mask);
      break;
    case Action::matrix_transpose:
      matrices_.transpose(warp, step, registers, mask);
      break;
    case Action::matrix_load:
    case Action::matrix_store:
      if (warp.detector != nullptr) warp.detector->work();
      matrices_.access_matrices(warp, step, registers, mask);
      break;
    case Action::fragment_load:
    case Action::fragment_store:
      if (warp.detector != nullptr) warp.detector->work();
      matrices_.access_fragment(warp, step, registers, mask);
      break;
    case Action::bulk_copy:
    case Action::tensor_copy:
    case Action::tensor_map:
    case Action::tensor_map_copy:
    case Action::warpgroup_multiply:
    case Action::warpgroup_commit:
    case Action::tensor_product:
    case Action::tensor_transfer:
    case Action::tensor_fill:
    case Action::tensor_shift:
    case Action::tensor_commit:
    case Action::cluster_arrive:
    case Action::cluster_rank:
      async_.execute(warp, step, registers, mask);
      break;
    default:
      break;
  }
}

void WarpRunner::sleep(Warp& warp, const Step& step, const std::byte* registers,
                       std::uint32_t mask) {
  std::uint32_t longest = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    longest =
        std::max(longest, lane_u32(registers, step.operands.source[0], std::countr_zero(rest)));
  }
  if (longest == 0) return;
  if (execution_.clock != nullptr) {
    warp.cycle += std::min(longest, longest_sleep);
    return;
  }
  execution_.need_turn();
  warp.wake = execution_.time() + std::min(longest, longest_sleep);
  warp.state = Warp::State::asleep;
}

void WarpRunner::set_mask(std::uint32_t mask, std::uint32_t live) {
  if (lanes_.bits != mask) lanes_.set(mask);
  lanes_.all = mask == live;  // nobody reads the registers of lanes that have exited
}

std::uint64_t WarpRunner::lanes_in(std::uint32_t mask) {
  if (mask != counted_mask_) {
    counted_mask_ = mask;
    counted_lanes_ = static_cast<std::uint64_t>(std::popcount(mask));
  }
  return counted_lanes_;
}

void WarpRunner::report_step_limit(const Warp& warp) const {
  throw InputError("kernel " + program_.name + " (" + Faults::place_of(warp, warp.next_step()) +
                   "), block " + block_.text() + ": the launch has executed more than " +
                   std::to_string(options_.step_limit) +
                   " warp instructions; raise step_limit if it is not an endless loop");
}

}  // namespace warpstack::simt
