#pragma once

#include <array>

#include "gpu/tensor_unit.h"
#include "trace/instructions/static_instruction.h"

namespace warpstack::gpu {

/// Latencies that do not depend on the caches, in SM cycles.
struct ClassLatencies {
  std::array<double, trace::num_op_classes> of_class{};
  double shared_memory = 0;  ///< one wavefront
  TensorUnit tensor;

  [[nodiscard]] double of(trace::OpClass op_class) const {
    return of_class[static_cast<std::size_t>(op_class)];
  }
  /// The latency of an instruction that is not a memory access, in cycles.
  [[nodiscard]] double of(const trace::StaticInstruction& instruction) const {
    const double latency = of(instruction.op_class);
    if (instruction.op_class != trace::OpClass::tensor) return latency;
    return tensor.latency(instruction.opcode, latency);
  }
};

/// Round trips of the three miss events, in SM cycles, without contention.
struct MemoryLatencies {
  double l1 = 0;
  double l2 = 0;
  double dram = 0;  ///< beyond L2
};

}  // namespace warpstack::gpu
