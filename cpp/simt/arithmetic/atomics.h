#pragma once

#include <array>
#include <string_view>

#include "simt/program/program.h"

namespace warpstack::simt {

/// The function of an atomic, reduction or warp-wide reduction ("add", "cas", "inc", …) on values
/// of a type, or null when PTX has none. Values are the bits, zero-extended. With `flush`, an
/// addition of f32 flushes subnormal values, as the units of global memory do and those of shared
/// memory do not.
AtomicFunction find_atomic(std::string_view operation, Type type, bool flush);

/// The least or the greatest f32 of a warp, where -0 is below +0. A NaN gives way to a number, or
/// with `keeps_nan` the result is a NaN.
AtomicFunction find_float_extreme(bool is_least, bool keeps_nan);

/// Those of global memory on the values of a tensor, by TensorElement.
std::array<AtomicFunction, num_tensor_elements> tensor_reductions(std::string_view operation);

}  // namespace warpstack::simt
