#include "simt/units/special_read.h"

#include <algorithm>
#include <bit>
#include <ranges>
#include <vector>

#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {

namespace {

/// Consecutive reads of the clock after which time passes faster for the warp.
constexpr std::uint32_t clock_patience = 16;
/// Turns between two reads in which the warp does almost nothing else.
constexpr std::uint32_t clock_turns = 4;

/// Of what warps have waited, the part that passes between two of their reads.
constexpr std::uint64_t clock_parts = 32;

/// Whether what a step reads decides a branch: the values that come of it, in the order of the
/// text, reach an instruction that neither writes a register nor memory. In PTX that is the branch;
/// rows of machine code do not have predicates, and it is the comparison.
bool decides_branch(const KernelProgram& program, const Step& step) {
  if (step.num_rows == 0) return false;
  std::vector<std::uint16_t> of_clock = program.rows[step.first_row].destinations;
  const auto is_of_clock = [&](std::uint16_t reg) {
    return std::ranges::find(of_clock, reg) != of_clock.end();
  };
  const std::size_t count = program.rows.size();
  for (std::size_t i = 1; i < count; ++i) {  // a loop may begin behind its branch
    const trace::StaticInstruction& row = program.rows[(step.first_row + i) % count];
    if (std::ranges::any_of(row.sources, is_of_clock)) {
      if (row.destinations.empty() && !row.is_memory()) return true;
      of_clock.insert(of_clock.end(), row.destinations.begin(), row.destinations.end());
    } else {
      std::erase_if(of_clock, [&](std::uint16_t reg) {
        return std::ranges::find(row.destinations, reg) != row.destinations.end();
      });
    }
  }
  return false;
}

/// Counts what a warp has waited until its last read, after which it reads once more.
void count_awaited(Execution& execution, Warp& warp, const Step& step, std::uint64_t& awaited) {
  const auto [found, is_new] = execution.decides_branches.try_emplace(&step, false);
  if (is_new) found->second = decides_branch(execution.program, step);
  if (found->second) awaited += warp.clock_last - warp.clock_counted;
  warp.clock_counted = warp.clock_last;
}

/// The time. If warps only watch the clock, about a part of `clock_parts` of what they have waited
/// is added whenever all have looked, so that they need not look a million times. What they have
/// waited is counted in `awaited`, by at most that part too little.
std::uint64_t read_clock(Execution& execution, Warp& warp, const Step& step,
                         std::uint64_t& awaited) {
  execution.need_turn();
  if (warp.clock != &step || warp.turns < warp.clock_turn ||
      warp.turns > warp.clock_turn + clock_turns) {
    warp.clock = &step;
    warp.clock_reads = 0;
    warp.clock_begin = warp.clock_counted = execution.time();
  }
  warp.clock_turn = warp.turns;
  if (++warp.clock_reads > clock_patience) {
    count_awaited(execution, warp, step, awaited);
    const std::uint64_t now = execution.time();
    const std::uint64_t blocks = execution.clock == nullptr ? 1 : execution.resident->size();
    execution.skip_time_to(now +
                           (now - warp.clock_begin) / (clock_parts * execution.num_warps * blocks));
  }
  warp.clock_last = execution.time();
  return warp.clock_last;
}

}  // namespace

void read_special(Execution& execution, Warp& warp, const Step& step, std::byte* registers,
                  std::uint32_t mask) {
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
      if (execution.num_threads == execution.options.block[0]) {  // without divisions
        per_lane([&](std::uint32_t lane) -> std::uint64_t {
          return c == 0 ? warp.number * warp_size + lane : 0;
        });
        break;
      }
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
    // The clock grows, and is the same in every run.
    case Special::clock:
    case Special::clock64:
      uniform(read_clock(execution, warp, step, warp.awaited_cycles));
      break;
    case Special::clock_hi:
      execution.need_turn();
      uniform(execution.time() >> 32);
      break;
    // The device's timer continues from launch to launch.
    case Special::globaltimer:
    case Special::globaltimer_lo:
      uniform(execution.options.begin_time + read_clock(execution, warp, step, warp.awaited_ns));
      break;
    case Special::globaltimer_hi:
      execution.need_turn();
      uniform((execution.options.begin_time + execution.time()) >> 32);
      break;
    case Special::dynamic_smem_size:
      uniform(execution.options.dynamic_shared_bytes);
      break;
    case Special::total_smem_size:
      uniform(execution.block.shared.size());
      break;
    case Special::cluster_ctaid:
      uniform(c < 3 ? index_in_cluster(execution.block, execution.cluster)[c] : 0);
      break;
    case Special::cluster_nctaid:
      uniform(c < 3 ? execution.cluster[c] : 0);
      break;
    case Special::clusterid:
      uniform(c < 3 ? execution.block.index[c] / execution.cluster[c] : 0);
      break;
    case Special::nclusterid:
      uniform(c < 3 ? execution.options.grid[c] / execution.cluster[c] : 0);
      break;
    case Special::cluster_ctarank:
      uniform(rank_in_cluster(execution.block, execution.cluster));
      break;
    case Special::cluster_nctarank:
      uniform(cluster_blocks(execution.cluster));
      break;
    case Special::shared_window_high:
      static_assert((shared_window & 0xffffffff) == 0 && (ranked_offset & 0xffffffff) == 0);
      uniform((has_ranks_in_addresses(execution) ? shared_window + ranked_offset : shared_window) >>
              32);
      break;
    case Special::is_explicit_cluster:
      uniform(cluster_blocks(execution.cluster) > 1 ? ~std::uint32_t{0} : 0);  // a predicate
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
