#include "simt/state/block_clock.h"

#include <algorithm>

#include "simt/state/warp.h"

namespace warpstack::simt {
namespace {

constexpr std::uint64_t schedulers = 4;
constexpr std::uint64_t least_pace = 2;
// Loads of global memory mostly hit L1 or L2. An atomic takes its way to L2 and back.
constexpr std::uint64_t global_load_cycles = 300;
constexpr std::uint64_t shared_load_cycles = 30;
constexpr std::uint64_t global_atomic_cycles = 500;
constexpr std::uint64_t shared_atomic_cycles = 60;
constexpr std::uint64_t fence_cycles = 300;
/// Instructions between two loads that are in flight together.
constexpr std::uint64_t loads_together = 8;
/// Products of f16 that a scheduler's matrix unit adds in a cycle.
constexpr std::uint64_t products_per_cycle = 512;

bool is_shared(AddressSpace space) { return space == AddressSpace::shared; }

bool is_global(AddressSpace space) {
  return space == AddressSpace::global || space == AddressSpace::generic;
}

/// Issue slots of a matrix instruction beyond its first.
std::uint64_t further_slots(std::uint64_t products) {
  return std::max<std::uint64_t>(products / products_per_cycle, 1) - 1;
}

}  // namespace

std::uint64_t issue_pace(std::uint64_t warps_per_sm) {
  return std::max((warps_per_sm + schedulers - 1) / schedulers, least_pace);
}

std::uint64_t cycles_of(const KernelProgram& program, const Step& step, Warp& warp,
                        std::uint64_t pace) {
  switch (step.action) {
    case Action::load:
    case Action::texture:
    case Action::matrix_load:
    case Action::fragment_load: {
      bool is_near = step.action == Action::matrix_load;
      if (step.action == Action::load) {
        const MemoryAccess& access = program.memory[step.detail];
        if (access.constant) return 0;
        is_near = !is_global(access.space);
      }
      const bool is_behind = warp.last_load != 0 && warp.issued - warp.last_load < loads_together;
      warp.last_load = warp.issued;
      if (is_behind) return 0;
      return is_near ? shared_load_cycles : global_load_cycles;
    }
    case Action::atomic: {
      const MemoryAccess& access = program.memory[step.detail];
      if (watches_others(access)) return global_atomic_cycles;
      return is_shared(access.space) && access.result_is_read ? shared_atomic_cycles : 0;
    }
    case Action::fence:
      return fence_cycles;
    case Action::matrix_multiply: {
      const MatrixMultiply& product = program.multiplications[step.detail];
      return pace *
             further_slots(std::uint64_t{product.a.rows} * product.a.columns * product.b.columns);
    }
    case Action::warpgroup_multiply:
      // A warp has a quarter of the 64 rows; a row of A has 32 bytes.
      return pace *
             further_slots(16 * 16 *
                           std::uint64_t{program.warpgroup_multiplications[step.detail].columns});
    default:
      return 0;
  }
}

bool watches_others(const MemoryAccess& access) {
  return access.result_is_read && is_global(access.space) &&
         (access.result != none ||
          std::ranges::any_of(access.more_results, [](std::uint32_t r) { return r != none; }));
}

bool polls_memory(const KernelProgram& program) {
  for (const ProgramFunction& function : program.functions) {
    // Step i is in a loop if a later one jumps to it or before it.
    std::uint32_t loop_begin = none;
    for (std::size_t i = function.steps.size(); i-- > 0;) {
      const Step& step = function.steps[i];
      if (step.action == Action::branch && step.jump <= i) {
        loop_begin = std::min(loop_begin, step.jump);
      }
      if (step.action != Action::load) continue;
      const MemoryAccess& access = program.memory[step.detail];
      if (access.strong && !access.constant && is_global(access.space) && loop_begin != none &&
          loop_begin <= i) {
        return true;
      }
    }
  }
  return false;
}

bool watches_others(const KernelProgram& program) {
  const auto has_atomic = [&](const ProgramFunction& function) {
    return std::ranges::any_of(function.steps, [&](const Step& step) {
      return step.action == Action::atomic && watches_others(program.memory[step.detail]);
    });
  };
  return std::ranges::any_of(program.functions, has_atomic) || polls_memory(program);
}

}  // namespace warpstack::simt
