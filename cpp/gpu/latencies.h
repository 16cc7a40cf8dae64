#pragma once

#include <array>

#include "trace/opcode.h"

namespace warpstack::gpu {

/// Latencies that do not depend on the caches, in SM cycles.
struct ClassLatencies {
  std::array<double, trace::num_op_classes> of_class{};
  double shared_memory = 0;  ///< one wavefront

  [[nodiscard]] double of(trace::OpClass op_class) const {
    return of_class[static_cast<std::size_t>(op_class)];
  }
};

/// Round trips of the three miss events, in SM cycles, without contention.
struct MemoryLatencies {
  double l1 = 0;
  double l2 = 0;
  double dram = 0;  ///< beyond L2
};

}  // namespace warpstack::gpu
