// Functions that the stand-in lacks. They report this and return an error, whatever their
// arguments.

#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

Error unsupported(const char* function) {
  return call(function, [](Runtime&) {
    throw Failure(
        Error::not_supported,
        "not supported by warpstack's stand-in for libcudart (see docs/how-to/host-programs.md)",
        true);
  });
}

}  // namespace

#define UNSUPPORTED(function) \
  CUDART_EXPORT Error function() { return unsupported(#function); }
#include "stand_ins/cudart/unsupported.inc"
