// Functions that the stand-in lacks. They report this and return a status, whatever their
// arguments.

#include "stand_ins/cusparse/context.h"

using namespace warpstack::cusparse;

namespace {

Status unsupported(const char* function) {
  return call(function, [] { warpstack::library::refuse(Status::not_supported, "cuSPARSE"); });
}

}  // namespace

#define UNSUPPORTED(function) \
  CUSPARSE_EXPORT Status function() { return unsupported(#function); }
#include "stand_ins/cusparse/unsupported.inc"
