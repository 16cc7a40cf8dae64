#include "simt/state/cluster.h"

#include <algorithm>
#include <bit>
#include <string>

#include "common/error.h"
#include "simt/program/registers.h"

namespace warpstack::simt {

std::uint64_t cluster_blocks(const Dim3& cluster) { return cluster[0] * cluster[1] * cluster[2]; }

void check_cluster(const Dim3& grid, const Dim3& cluster) {
  static constexpr const char* names[] = {"x", "y", "z"};
  const bool is_long =
      std::ranges::any_of(cluster, [](std::uint64_t size) { return size > max_cluster_blocks; });
  if (is_long || cluster_blocks(cluster) > max_cluster_blocks) {
    throw InputError("a cluster of " + std::to_string(cluster[0]) + " x " +
                     std::to_string(cluster[1]) + " x " + std::to_string(cluster[2]) +
                     " blocks is too large: at most 8 run on every GPU that has clusters, and " +
                     std::to_string(max_cluster_blocks) +
                     " where a program allows it (cudaFuncAttributeNonPortableClusterSizeAllowed)");
  }
  for (std::size_t d = 0; d < 3; ++d) {
    if (cluster[d] == 0 || grid[d] % cluster[d] != 0) {
      throw InputError("the grid has " + std::to_string(grid[d]) + " blocks along " + names[d] +
                       ", which is not a multiple of the cluster's " + std::to_string(cluster[d]));
    }
  }
}

Dim3 index_in_cluster(const Block& block, const Dim3& cluster) {
  return {block.index[0] % cluster[0], block.index[1] % cluster[1], block.index[2] % cluster[2]};
}

std::uint32_t rank_in_cluster(const Block& block, const Dim3& cluster) {
  const Dim3 at = index_in_cluster(block, cluster);
  return static_cast<std::uint32_t>(at[0] + cluster[0] * (at[1] + cluster[1] * at[2]));
}

bool has_ranks_in_addresses(const Execution& execution) {
  const KernelProgram& program = execution.program;
  return (program.has_ranks_in_addresses || program.has_pairs) &&
         cluster_blocks(execution.cluster) > 1;
}

std::uint64_t without_own_rank(const Execution& execution, AddressSpace space,
                               std::uint64_t address) {
  const bool is_generic = space == AddressSpace::generic;
  if (!is_generic && space != AddressSpace::shared) return address;
  std::uint64_t first = is_generic ? shared_window + ranked_offset : 0;
  if (execution.program.has_pairs) first = (is_generic ? shared_window : 0) + cluster_offset;
  const std::uint64_t own = rank_in_cluster(execution.block, execution.cluster);
  const std::uint64_t offset = address - first - own * trace::window_bytes;
  if (offset >= trace::window_bytes) return address;
  return is_generic ? shared_window + offset : offset;
}

void drop_own_ranks(const Execution& execution, AddressSpace space, LaneAddresses& lanes) {
  if (!has_ranks_in_addresses(execution)) return;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    std::uint64_t& address = lanes.address[std::countr_zero(rest)];
    address = without_own_rank(execution, space, address);
  }
}

void add_own_rank(const Execution& execution, const ProgramFunction& function, std::byte* frame) {
  if (!execution.program.has_pairs || cluster_blocks(execution.cluster) < 2) return;
  const std::uint64_t window =
      cluster_address(0, rank_in_cluster(execution.block, execution.cluster));
  for (const SharedAddress& one : function.shared_addresses) {
    const std::uint64_t address = read_lane(frame, one.slot, one.bytes, 0);
    broadcast(frame, one.slot, one.bytes, all_lanes, address + window);
  }
}

Block* block_of_rank(Execution& execution, std::uint64_t rank) {
  const Dim3& cluster = execution.cluster;
  const Dim3& grid = execution.options.grid;
  if (rank >= cluster_blocks(cluster)) return nullptr;
  const Dim3 own = index_in_cluster(execution.block, cluster);
  const Dim3 there = {rank % cluster[0], rank / cluster[0] % cluster[1],
                      rank / cluster[0] / cluster[1]};
  std::uint64_t number = 0;
  for (std::size_t d = 3; d-- > 0;) {
    number = number * grid[d] + execution.block.index[d] - own[d] + there[d];
  }
  if (number == execution.block.number) return &execution.block;
  if (execution.resident == nullptr) return nullptr;
  for (Block& block : *execution.resident) {
    // The place of the block that runs is empty.
    if (block.number == number && !block.warps.empty()) return block.done ? nullptr : &block;
  }
  return nullptr;
}

void arrive_at_cluster(Warp& warp, std::uint32_t mask) {
  warp.async.cluster_lanes |= mask;
  if ((warp.live & ~warp.async.cluster_lanes) != 0) return;
  warp.async.cluster_lanes = 0;
  ++warp.async.cluster_arrivals;
}

bool cluster_has_come(Execution& execution, const Warp& warp, std::uint32_t mask) {
  // Lanes that arrive alone also wait for the rest of their warp.
  const std::uint64_t needed =
      warp.async.cluster_arrivals + ((warp.async.cluster_lanes & mask) != 0 ? 1 : 0);
  for (std::uint64_t rank = 0; rank < cluster_blocks(execution.cluster); ++rank) {
    const Block* const block = block_of_rank(execution, rank);
    if (block == nullptr) continue;
    for (const Warp& other : block->warps) {
      if (other.state != Warp::State::done && other.async.cluster_arrivals < needed) return false;
    }
  }
  return true;
}

}  // namespace warpstack::simt
