#pragma once

#include <cstdint>

#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

/// First byte of device memory. Addresses start here in every run, so traces do too.
inline constexpr std::uint64_t device_base = 0x0000'7000'0000'0000;
/// Windows of generic addresses, outside device memory (see KernelHeader).
inline constexpr std::uint64_t shared_window = 0x0000'6f00'0000'0000;
inline constexpr std::uint64_t local_window = 0x0000'6f00'0100'0000;

/// The most blocks of a cluster, including what CUDA calls non-portable sizes.
inline constexpr std::uint64_t max_cluster_blocks = 16;

/// Addresses of the shared memory of a cluster (`shared::cluster`). Those below cluster_offset are
/// the block's own, like those of `shared::cta`; from there on, each rank of the cluster has a
/// window. Generic addresses have the same order behind the window of shared memory.
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
/// The offset of an address in the shared memory of its block, whichever block that is.
[[nodiscard]] constexpr std::uint64_t offset_in_block(std::uint64_t shared_address) {
  return in_cluster(shared_address) ? (shared_address - cluster_offset) % trace::window_bytes
                                    : shared_address;
}

}  // namespace warpstack::simt
