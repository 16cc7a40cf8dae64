#pragma once

#include <array>
#include <cstdint>

#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// Counts of a launch's work, without caches. Launches with similar counts take about as long.
/// Covers traced blocks; reads no dynamic column.
struct LaunchFeatures {
  /// Warp instructions by the unit that executes them, memory instructions left out.
  std::array<std::uint64_t, num_op_classes> units{};
  std::uint64_t loads = 0;              ///< of global, local and generic memory, with active lanes
  std::uint64_t stores = 0;             ///< the same for stores
  std::uint64_t atomics = 0;            ///< the same for atomics and reductions
  std::uint64_t shared_wavefronts = 0;  ///< passes through shared memory
  std::uint64_t read_sectors = 0;       ///< touched by loads
  std::uint64_t written_sectors = 0;    ///< touched by stores and atomics

  bool operator==(const LaunchFeatures&) const = default;
};

LaunchFeatures launch_features(const KernelTrace& trace);

}  // namespace warpstack::trace
