// Functions that the stand-in lacks. They report this and return a status, whatever their
// arguments.

#include "stand_ins/cublas/context.h"

using namespace warpstack::cublas;

namespace {

Status unsupported(const char* function) {
  return call(function, [] {
    throw Failure(
        Status::not_supported,
        "not supported by warpstack's stand-in for cuBLAS (see docs/how-to/host-programs.md)",
        true);
  });
}

}  // namespace

#define UNSUPPORTED(function) \
  CUBLAS_EXPORT Status function() { return unsupported(#function); }
#include "stand_ins/cublas/unsupported.inc"
#include "stand_ins/cublas/unsupported_lt.inc"
