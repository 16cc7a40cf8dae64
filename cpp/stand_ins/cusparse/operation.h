#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stand_ins/cusparse/context.h"
#include "stand_ins/cusparse/values.h"

namespace warpstack::cusparse {

using Bytes = std::vector<std::byte>;
using Indices = std::vector<std::int64_t>;

/// What one call does on the GPU: reads from its memory, then writes to it. It is one operation of
/// the stream, with the bytes of all arrays that NVIDIA's kernels have to read and write.
class Operation {
 public:
  explicit Operation(const Context& context) : context_(context), work_("cuSPARSE") {}

  /// Throws Failure if the memory is not the device's. `name` is the argument's. What does not count
  /// is read for the stand-in's own sake.
  Bytes read(const void* place, std::size_t bytes, const char* name, bool counts = true);
  /// Indices from 0, of an array from `base`. Throws Failure(invalid_value) if one is below 0 or,
  /// with a limit, not less than it; `least` may allow another number than 0.
  Indices read_indices(const void* place, std::int64_t count, int type, int base,
                       std::int64_t limit, const char* name, std::int64_t least = 0);
  /// Offsets of `count` rows from 0: they ascend from 0 to `most`.
  Indices read_offsets(const void* place, std::int64_t count, int type, int base,
                       std::int64_t most, const char* name);

  /// Writes when the operation finishes. `counted` are bytes that kernels write, if not all.
  void write(void* place, Bytes bytes, const char* name);
  void write(void* place, Bytes bytes, const char* name, std::size_t counted);
  void write_indices(void* place, const Indices& indices, int type, int base, const char* name);
  void finish();

  /// alpha, beta or another number that the call is given, in the pointer mode's memory.
  Complex scalar(const void* pointer, int type, const char* name);
  /// Puts a number there.
  void give_scalar(void* pointer, int type, Complex value, const char* name);

 private:
  struct Write {
    void* place;
    Bytes bytes;
  };
  const Context& context_;
  library::WorkOfTheGpu work_;
  std::vector<Write> writes_;
  const void* known_ = nullptr;  ///< a place of the device's
  std::size_t moved_ = 0;
};

}  // namespace warpstack::cusparse
