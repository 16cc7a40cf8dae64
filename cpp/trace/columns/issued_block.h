#pragma once

#include <cstdint>
#include <span>

#include "trace/columns/trace_builder.h"

namespace warpstack::trace {

/// The issued instructions of one thread block, warp after warp; the first four have one entry per
/// instruction.
struct IssuedBlock {
  std::span<const std::uint32_t> warp;  ///< number in the block; does not decrease
  std::span<const std::uint32_t> row;   ///< in the static table
  std::span<const std::uint32_t> mask;  ///< active lanes
  /// The index of the lanes' 32 entries in `addresses`; `no_access` without an access.
  std::span<const std::uint32_t> access;
  std::span<const std::uint64_t> addresses;

  static constexpr std::uint32_t no_access = ~std::uint32_t{0};
};

/// Appends a block, with the warps that issued nothing. Throws InputError when the arrays
/// contradict each other or the launch.
void append_block(TraceBuilder& builder, std::uint64_t linear_index, const IssuedBlock& block);

}  // namespace warpstack::trace
