#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stand_ins/cusparse/context.h"
#include "stand_ins/cusparse/values.h"
#include "stand_ins/library/operation.h"

namespace warpstack::cusparse {

using library::Bytes;
using Indices = std::vector<std::int64_t>;

/// What one call does on the GPU, with arrays of indices and with numbers of a cudaDataType.
class Operation : public library::Operation<Library> {
 public:
  explicit Operation(const Context& context)
      : library::Operation<Library>(context.stream), context_(context) {}

  /// Indices from 0, of an array from `base`. Throws Failure(invalid_value) if one is below 0 or,
  /// with a limit, not less than it; `least` may allow another number than 0.
  Indices read_indices(const void* place, std::int64_t count, int type, int base,
                       std::int64_t limit, const char* name, std::int64_t least = 0);
  /// Offsets of `count` rows from 0: they ascend from 0 to `most`.
  Indices read_offsets(const void* place, std::int64_t count, int type, int base, std::int64_t most,
                       const char* name);

  void write_indices(void* place, const Indices& indices, int type, int base, const char* name);

  /// alpha, beta or another number that the call is given, in the pointer mode's memory.
  Complex scalar(const void* pointer, int type, const char* name);
  /// Counts multiplications, each with an addition, of numbers of a cudaDataType; those of tensor
  /// cores have an arithmetic of their own.
  void multiply_add(int type, double count,
                    cudart::Arithmetic of_tensor_cores = cudart::Arithmetic::none);
  /// Puts a number there.
  void give_scalar(void* pointer, int type, Complex value, const char* name);

 private:
  const Context& context_;
};

}  // namespace warpstack::cusparse
