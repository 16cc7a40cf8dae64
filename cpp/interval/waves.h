#pragma once

#include <cstdint>
#include <vector>

namespace warpstack::interval {

/// A set of thread blocks that run at the same time: `count` times the representative warp passes
/// with `warps` warps on the fullest SM and `active_sms` SMs at work.
struct Wave {
  double count = 1;
  double warps = 1;        ///< W: on the fullest SM; a mean, when blocks differ
  double active_sms = 1;   ///< S
  double total_warps = 1;  ///< over all SMs
};

/// Waves of a launch: whole ones that fill every SM, then the rest (fewer blocks per SM, perhaps
/// fewer SMs). `warps_per_block` is a mean.
std::vector<Wave> waves_of(std::uint64_t num_blocks, double warps_per_block,
                           std::uint32_t blocks_per_sm, std::uint32_t num_sms);

}  // namespace warpstack::interval
