#pragma once

#include <cstdint>

#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

/// First byte of device memory. Addresses start here in every run, so traces do too.
inline constexpr std::uint64_t device_base = 0x0000'7000'0000'0000;
/// Windows of generic addresses, outside device memory (see KernelHeader).
inline constexpr std::uint64_t shared_window = 0x0000'6f00'0000'0000;
inline constexpr std::uint64_t local_window = 0x0000'6f00'0100'0000;

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

}  // namespace warpstack::simt
