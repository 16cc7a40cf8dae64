#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/program/address_space.h"
#include "simt/state/execution.h"

namespace warpstack::simt {

/// Blocks of the launch's clusters; 1 without clusters.
[[nodiscard]] std::uint64_t cluster_blocks(const Dim3& cluster);
/// Throws InputError if the grid does not consist of such clusters, or they are too large.
void check_cluster(const Dim3& grid, const Dim3& cluster);

/// Position of a block in its cluster.
[[nodiscard]] Dim3 index_in_cluster(const Block& block, const Dim3& cluster);
[[nodiscard]] std::uint32_t rank_in_cluster(const Block& block, const Dim3& cluster);

/// Whether addresses of shared memory have the rank of a block in bits 24 and up.
[[nodiscard]] bool has_ranks_in_addresses(const Execution& execution);
/// Takes the own rank away. In shared memory, other ranks stay, which are out of bounds for what
/// only reaches the own block.
[[nodiscard]] std::uint64_t without_own_rank(const Execution& execution, AddressSpace space,
                                             std::uint64_t address);
void drop_own_ranks(const Execution& execution, AddressSpace space, LaneAddresses& lanes);

/// Puts the own rank into the addresses of shared variables among the constants of a frame.
void add_own_rank(const Execution& execution, const ProgramFunction& function, std::byte* frame);

/// The block of a rank in the cluster of the running block; null if it has ended.
[[nodiscard]] Block* block_of_rank(Execution& execution, std::uint64_t rank);

/// A warp, or a part of it, arrives at the barrier of its cluster.
void arrive_at_cluster(Warp& warp, std::uint32_t mask);
/// Whether all unfinished warps of the cluster have arrived as often as this one.
[[nodiscard]] bool cluster_has_come(Execution& execution, const Warp& warp, std::uint32_t mask);

}  // namespace warpstack::simt
