#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "gpu/gpu.h"
#include "trace/instructions/tensor_operation.h"

namespace warpstack::gpu {

/// The tensor cores of a scheduler.
struct TensorUnit {
  /// Multiply-adds per cycle, of matrices without a structure of zeros; 0: not known.
  std::array<double, trace::num_tensor_types> rates{};
  /// Cycles of an instruction whose rate is not known, and of the one that `ClassLatencies` has the
  /// latency of.
  double interval = 0;
  /// Cycles that an instruction of one warp takes beyond those of its multiply-adds.
  double more_of_warp = 0;

  static TensorUnit of(const Gpu& gpu);

  /// Cycles, whole ones, for which an instruction keeps the unit busy.
  [[nodiscard]] double cycles(const std::optional<trace::TensorOperation>& operation) const {
    return operation ? cycles(*operation) : interval;
  }
  [[nodiscard]] double cycles(const trace::TensorOperation& operation) const {
    const double rate = rates[static_cast<std::size_t>(operation.type)];
    if (!(rate > 0)) return interval;
    const double busy = static_cast<double>(operation.multiply_adds) / rate;
    return std::max(std::ceil(busy + (operation.is_of_group ? 0 : more_of_warp)), 1.0);
  }
  /// Its latency where an instruction of `interval` cycles has `of_interval`: one that keeps the
  /// unit busy longer takes so much longer. Products of a group of warps add to their sums in turn.
  [[nodiscard]] double latency(const std::optional<trace::TensorOperation>& operation,
                               double of_interval) const {
    if (!operation || !(rates[static_cast<std::size_t>(operation->type)] > 0)) return of_interval;
    const double busy = cycles(*operation);
    return std::max(busy, operation->is_of_group ? of_interval : of_interval + busy - interval);
  }
};

}  // namespace warpstack::gpu
