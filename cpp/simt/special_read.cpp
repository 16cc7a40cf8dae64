#include "simt/special_read.h"

#include <bit>

#include "simt/registers.h"

namespace warpstack::simt {

void read_special(const Execution& execution, const Warp& warp, const Step& step,
                  std::byte* registers, std::uint32_t mask) {
  const SpecialRead& read = execution.program.specials[step.detail];
  const std::uint32_t c = read.component;
  const std::uint32_t bytes = step.operands.immediate;
  const auto per_lane = [&](auto f) {
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      write_lane(registers, step.operands.target, bytes, lane, f(static_cast<std::uint32_t>(lane)));
    }
  };
  const auto uniform = [&](std::uint64_t value) {
    broadcast(registers, step.operands.target, bytes, mask, value);
  };
  switch (read.special) {
    case Special::tid:
      per_lane(
          [&](std::uint32_t lane) { return c < 3 ? execution.thread_index(warp, lane)[c] : 0; });
      break;
    case Special::ntid:
      uniform(c < 3 ? execution.options.block[c] : 0);
      break;
    case Special::ctaid:
      uniform(c < 3 ? execution.block.index[c] : 0);
      break;
    case Special::nctaid:
      uniform(c < 3 ? execution.options.grid[c] : 0);
      break;
    case Special::laneid:
      per_lane([](std::uint32_t lane) { return std::uint64_t{lane}; });
      break;
    case Special::warpid:
      uniform(warp.number);
      break;
    case Special::nwarpid:
      uniform(execution.num_warps);
      break;
    case Special::smid:
      uniform(0);
      break;
    case Special::nsmid:
      uniform(1);
      break;
    case Special::gridid:
      uniform(execution.options.launch_id);
      break;
    case Special::lanemask_eq:
      per_lane([](std::uint32_t lane) { return std::uint64_t{1} << lane; });
      break;
    case Special::lanemask_le:
      per_lane([](std::uint32_t lane) { return (std::uint64_t{2} << lane) - 1; });
      break;
    case Special::lanemask_lt:
      per_lane([](std::uint32_t lane) { return (std::uint64_t{1} << lane) - 1; });
      break;
    case Special::lanemask_ge:
      per_lane([](std::uint32_t lane) { return 0xffffffffu & ~((std::uint64_t{1} << lane) - 1); });
      break;
    case Special::lanemask_gt:
      per_lane([](std::uint32_t lane) { return 0xffffffffu & ~((std::uint64_t{2} << lane) - 1); });
      break;
    // Time is the number of executed warp instructions: it grows, and is the same in every run.
    case Special::clock:
    case Special::clock64:
    case Special::globaltimer:
    case Special::globaltimer_lo:
      uniform(execution.warp_instructions);
      break;
    case Special::clock_hi:
    case Special::globaltimer_hi:
      uniform(execution.warp_instructions >> 32);
      break;
    case Special::dynamic_smem_size:
      uniform(execution.options.dynamic_shared_bytes);
      break;
    case Special::total_smem_size:
      uniform(execution.block.shared.size());
      break;
    case Special::envreg:
      uniform(c == 1 ? execution.workspace_address >> 32
                     : execution.workspace_address & 0xffffffffu);
      break;
    default:
      uniform(0);
      break;
  }
}

}  // namespace warpstack::simt
