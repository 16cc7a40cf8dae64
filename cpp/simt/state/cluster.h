#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/state/execution.h"

namespace warpstack::simt {

/// Most blocks of a cluster, with what CUDA calls non-portable sizes.
inline constexpr std::uint64_t max_cluster_blocks = 16;

/// Addresses of the shared memory of a cluster (`shared::cluster`): those below the first of these
/// are the block's own, as those of `shared::cta` are; above it each rank of the cluster has a
/// window. Behind the window of generic addresses of shared memory they lie in the same order.
inline constexpr std::uint64_t cluster_offset = 2 * trace::window_bytes;

[[nodiscard]] constexpr bool in_cluster(std::uint64_t shared_address) {
  return shared_address - cluster_offset < max_cluster_blocks * trace::window_bytes;
}
/// What mapa gives for an address of the block's own shared memory.
[[nodiscard]] constexpr std::uint64_t cluster_address(std::uint64_t offset, std::uint64_t rank) {
  return cluster_offset + rank * trace::window_bytes + offset;
}
[[nodiscard]] constexpr std::uint32_t rank_of_address(std::uint64_t shared_address) {
  return static_cast<std::uint32_t>((shared_address - cluster_offset) / trace::window_bytes);
}
/// Where an address lies in the shared memory of its block, whichever that is.
[[nodiscard]] constexpr std::uint64_t offset_in_block(std::uint64_t shared_address) {
  return in_cluster(shared_address) ? (shared_address - cluster_offset) % trace::window_bytes
                                    : shared_address;
}

/// Blocks of the launch's clusters; 1 without clusters.
[[nodiscard]] std::uint64_t cluster_blocks(const Dim3& cluster);
/// Consecutive blocks of the grid that consist of whole clusters.
[[nodiscard]] std::uint64_t consecutive_blocks(const Dim3& grid, const Dim3& cluster);
/// Throws InputError when the grid does not consist of such clusters, or they are too large.
void check_cluster(const Dim3& grid, const Dim3& cluster);

/// Position of a block in its cluster.
[[nodiscard]] Dim3 index_in_cluster(const Block& block, const Dim3& cluster);
[[nodiscard]] std::uint32_t rank_in_cluster(const Block& block, const Dim3& cluster);

/// The block of a rank in the cluster of the block that runs; null when it is over.
[[nodiscard]] Block* block_of_rank(Execution& execution, std::uint64_t rank);

/// A warp, or a part of it, comes to the barrier of its cluster.
void arrive_at_cluster(Warp& warp, std::uint32_t mask);
/// Whether all other warps of the cluster that are not done have come as often as this one.
[[nodiscard]] bool cluster_has_come(Execution& execution, const Warp& warp, std::uint32_t mask);

}  // namespace warpstack::simt
