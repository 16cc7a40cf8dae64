// Functions that the stand-in lacks. They report this and return a status, whatever their
// arguments.

#include "stand_ins/cublas/context.h"

using namespace warpstack::cublas;

namespace {

Status unsupported(const char* function) {
  return call(function, [] { warpstack::library::refuse(Status::not_supported, "cuBLAS"); });
}

}  // namespace

#define UNSUPPORTED(function) \
  CUBLAS_EXPORT Status function() { return unsupported(#function); }
#include "stand_ins/cublas/unsupported.inc"
#include "stand_ins/cublas/unsupported_lt.inc"
