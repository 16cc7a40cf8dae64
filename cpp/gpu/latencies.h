#pragma once

#include <array>
#include <optional>

#include "gpu/gpu.h"
#include "gpu/tensor_unit.h"
#include "trace/instructions/opcode.h"

namespace warpstack::gpu {

/// Latencies that do not depend on the caches, in SM cycles.
struct ClassLatencies {
  std::array<double, trace::num_op_classes> of_class{};
  double shared_memory = 0;          ///< one wavefront
  double more_shared_wavefront = 1;  ///< of each further one
  TensorUnit tensor;

  static ClassLatencies of(const Gpu& gpu);

  [[nodiscard]] double of(trace::OpClass op_class) const {
    return of_class[static_cast<std::size_t>(op_class)];
  }
  /// The latency of an instruction that is not a memory access, in cycles.
  [[nodiscard]] double of(trace::OpClass op_class,
                          const std::optional<trace::TensorOperation>& operation) const {
    return tensor.latency(operation, of(op_class));
  }
};

/// Round trips of the three miss events, in SM cycles, without contention.
struct MemoryLatencies {
  double l1 = 0;
  double l2 = 0;
  double dram = 0;  ///< beyond L2

  static MemoryLatencies of(const Gpu& gpu) {
    return {gpu.l1_latency, gpu.l2_latency, gpu.dram_latency};
  }
};

/// What warps wait for that none of their instructions reads.
struct WarpWaits {
  bool for_stores = false;               ///< before they end
  bool launch_waits_for_stores = false;  ///< before it ends; warps and blocks do not
  bool for_atomics = false;              ///< of global memory, before they issue anything else

  static WarpWaits of(const Gpu& gpu) {
    return {.for_stores = gpu.store_acknowledgement == StoreAcknowledgement::awaited,
            .launch_waits_for_stores = gpu.kernel_end == KernelEnd::last_acknowledgement,
            .for_atomics = gpu.atomic_wait == AtomicWait::until_done};
  }
};

/// Cycles from one instruction of a scheduler to the next, by class of operations; 0: no limit.
std::array<std::uint32_t, trace::num_op_classes> class_intervals(const Gpu& gpu);
/// Whether a GPU may have such a limit for a class.
[[nodiscard]] bool has_interval(trace::OpClass op_class);

}  // namespace warpstack::gpu
