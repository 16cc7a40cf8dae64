// Functions that the stand-in lacks. They report this and return a status, whatever their
// arguments.

#include "stand_ins/cusolver/context.h"

using namespace warpstack::cusolver;

namespace {

Status unsupported(const char* function) {
  return call(function, [] { warpstack::library::refuse(Status::not_supported, "cuSOLVER"); });
}

}  // namespace

#define UNSUPPORTED(function) \
  CUSOLVER_EXPORT Status function() { return unsupported(#function); }
#include "stand_ins/cusolver/unsupported.inc"
