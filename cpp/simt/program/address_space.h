#pragma once

#include <cstdint>

#include "simt/program/operand.h"
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
/// The same windows once more, for generic addresses of machine code: its lower words have the rank
/// in bits 24 and up, where the window of local memory would follow that of shared memory.
inline constexpr std::uint64_t ranked_offset = std::uint64_t{2} << 32;

[[nodiscard]] constexpr bool in_cluster(std::uint64_t shared_address) {
  constexpr std::uint64_t windows = max_cluster_blocks * trace::window_bytes;
  return shared_address - cluster_offset < windows || shared_address - ranked_offset < windows;
}
/// What mapa gives for an address of the block's own shared memory.
[[nodiscard]] constexpr std::uint64_t cluster_address(std::uint64_t offset, std::uint64_t rank) {
  return cluster_offset + rank * trace::window_bytes + offset;
}
[[nodiscard]] constexpr std::uint32_t rank_of_address(std::uint64_t shared_address) {
  const std::uint64_t first = shared_address < ranked_offset ? cluster_offset : ranked_offset;
  return static_cast<std::uint32_t>((shared_address - first) / trace::window_bytes);
}
/// The offset of an address in the shared memory of its block, whichever block that is.
[[nodiscard]] constexpr std::uint64_t offset_in_block(std::uint64_t shared_address) {
  static_assert(cluster_offset % trace::window_bytes == 0);
  static_assert(ranked_offset % trace::window_bytes == 0);
  return in_cluster(shared_address) ? shared_address % trace::window_bytes : shared_address;
}

/// Of a register of machine code with an address in the shared memory of the cluster, whose rank is
/// in bits 24 and up.
[[nodiscard]] constexpr AddressOperand ranked_address(std::uint32_t slot, std::int64_t offset = 0) {
  return {.space = AddressSpace::shared,
          .slot = slot,
          .is_64_bits = false,
          .offset = offset + static_cast<std::int64_t>(cluster_offset)};
}

}  // namespace warpstack::simt
