#include "stand_ins/state/error_names.h"

namespace warpstack::cudart {
namespace {

constexpr char unknown[] = "unrecognized error code";

struct ErrorText {
  int number;
  const char* text;
};
/// NVIDIA's texts for the errors that the stand-in returns; programs and their tests print them.
constexpr ErrorText error_texts[] = {
    {0, "no error"},
    {1, "invalid argument"},
    {2, "out of memory"},
    {3, "initialization error"},
    {9, "invalid configuration argument"},
    {12, "invalid pitch argument"},
    {13, "invalid device symbol"},
    {18, "invalid texture reference"},
    {20, "invalid channel descriptor"},
    {21, "invalid copy direction for memcpy"},
    {26, "linear filtering not supported for non-float type"},
    {52, "__global__ function call is not configured"},
    {98, "invalid device function"},
    {101, "invalid device ordinal"},
    {200, "device kernel image is invalid"},
    {201, "invalid device context"},
    {209, "no kernel image is available for execution on the device"},
    {218, "a PTX JIT compilation failed"},
    {301, "file not found"},
    {400, "invalid resource handle"},
    {401, "the operation cannot be performed in the present state"},
    {402, "attempted introspection would be semantically lossy"},
    {500, "named symbol not found"},
    {600, "device not ready"},
    {700, "an illegal memory access was encountered"},
    {701, "too many resources requested for launch"},
    {702, "the launch timed out and was terminated"},
    {709, "context is destroyed"},
    {710, "device-side assert triggered"},
    {714, "hardware stack error"},
    {715, "an illegal instruction was encountered"},
    {716, "misaligned address"},
    {719, "unspecified launch failure"},
    {720, "too many blocks in cooperative launch"},
    {801, "operation not supported"},
    {900, "operation not permitted when stream is capturing"},
    {901, "operation failed due to a previous error during capture"},
    {902, "operation would result in a merge of separate capture sequences"},
    {903, "capture was not ended in the same stream as it began"},
    {904, "capturing stream has unjoined work"},
    {905, "dependency created on uncaptured work in another stream"},
    {906, "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "operation not permitted on an event last recorded in a capturing stream"},
    {908, "attempt to terminate a thread-local capture sequence from another thread"},
    {910,
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
};

}  // namespace

const char* name_of(Error error) {
  switch (static_cast<int>(error)) {
#define CUDA_ERROR(number, name) \
  case number:                   \
    return #name;
#include "stand_ins/state/error_names.inc"
#undef CUDA_ERROR
    default:
      return unknown;
  }
}

const char* description_of(Error error) {
  for (const ErrorText& one : error_texts) {
    if (one.number == static_cast<int>(error)) return one.text;
  }
  return name_of(error);
}

}  // namespace warpstack::cudart
