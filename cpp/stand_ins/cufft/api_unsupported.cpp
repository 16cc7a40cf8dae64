// Functions that the stand-in lacks. They report this and return a status, whatever their
// arguments.

#include "stand_ins/cufft/plan.h"

using namespace warpstack::cufft;

namespace {

Status unsupported(const char* function) {
  return call(function, [] { warpstack::library::refuse(Status::not_supported, "cuFFT"); });
}

}  // namespace

#define UNSUPPORTED(function) \
  CUFFT_EXPORT Status function() { return unsupported(#function); }
#include "stand_ins/cufft/unsupported.inc"
