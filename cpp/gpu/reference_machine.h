#pragma once

#include <array>

namespace warpstack::gpu {

/// Latencies of one machine, in SM cycles, for what shall not depend on the GPU: which blocks run
/// at the same time, and in which order warps access memory. Those of GPUMech's Table I, and of
/// MDM's Table III beyond L2.
struct ReferenceMachine {
  static constexpr unsigned normal = 25;  ///< arithmetic, shared memory and L1
  static constexpr unsigned l2 = 120;
  static constexpr unsigned dram = 220;  ///< beyond L2
  /// The round trips of what L1, L2 and DRAM serve.
  static constexpr std::array<unsigned, 3> round_trips = {normal, l2, l2 + dram};
};

}  // namespace warpstack::gpu
