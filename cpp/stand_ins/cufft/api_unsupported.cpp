// Functions that the stand-in lacks. They report this and return a status, whatever their
// arguments.

#include "stand_ins/cufft/plan.h"

using namespace warpstack::cufft;

namespace {

Status unsupported(const char* function) {
  return call(function, [] { warpstack::library::refuse(Status::not_supported, "cuFFT"); });
}

/// Programs with callbacks are linked with NVIDIA's static library, or hand over code of the
/// linker.
Status without_callbacks(const char* function) {
  return call(function, [] {
    throw Failure(Status::not_supported,
                  "callbacks are functions of the device, and warpstack's stand-in for cuFFT "
                  "transforms on the host, which cannot call them: load or store the numbers in a "
                  "kernel before or after the transform",
                  true);
  });
}

}  // namespace

CUFFT_EXPORT Status cufftXtSetCallback() { return without_callbacks(__func__); }
CUFFT_EXPORT Status cufftXtSetCallbackSharedSize() { return without_callbacks(__func__); }
CUFFT_EXPORT Status cufftXtSetJITCallback() { return without_callbacks(__func__); }

#define UNSUPPORTED(function) \
  CUFFT_EXPORT Status function() { return unsupported(#function); }
#include "stand_ins/cufft/unsupported.inc"
