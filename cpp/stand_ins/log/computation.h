#pragma once

#include <cstdint>

namespace warpstack::cudart {

/// Numbers that are computed with: places in NUMBER_KINDS of python/warpstack/traces/operations.py.
enum class Arithmetic : std::uint8_t { none, fp64, fp32, tf32, bf16, fp16, fp8, int8, int32 };

/// What is computed by kernels that are not known.
struct Computation {
  double operations = 0;  ///< a multiply-add is two
  Arithmetic arithmetic = Arithmetic::none;
  bool tensor_cores = false;  ///< they may use them
};

}  // namespace warpstack::cudart
