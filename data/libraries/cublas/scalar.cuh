#pragma once

#include <cuda_fp16.h>

#include "arguments.h"

namespace warpstack::cublas {

template <typename T>
__device__ T value_of(const Scalar<T>& scalar) {
  if (scalar.pointer == nullptr) return scalar.value;
  if (scalar.is_half)
    return static_cast<T>(__half2float(*static_cast<const __half*>(scalar.pointer)));
  return *static_cast<const T*>(scalar.pointer);
}

}  // namespace warpstack::cublas
