#pragma once

#include <array>
#include <cstdint>

#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// What a launch does, counted without caches: launches that are alike in these numbers take about
/// as long. Of traced blocks; reads no dynamic column.
struct LaunchFeatures {
  /// Warp instructions by the unit that executes them, memory instructions left out.
  std::array<std::uint64_t, num_op_classes> units{};
  std::uint64_t loads = 0;              ///< of global, local and generic memory, with active lanes
  std::uint64_t stores = 0;             ///< the same of stores
  std::uint64_t atomics = 0;            ///< the same of atomics and reductions
  std::uint64_t shared_wavefronts = 0;  ///< passes through shared memory
  std::uint64_t read_sectors = 0;       ///< that loads touch
  std::uint64_t written_sectors = 0;    ///< that stores and atomics touch

  bool operator==(const LaunchFeatures&) const = default;
};

LaunchFeatures launch_features(const KernelTrace& trace);

}  // namespace warpstack::trace
