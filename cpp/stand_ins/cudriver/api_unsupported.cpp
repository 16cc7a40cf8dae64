// Functions of the driver that the stand-in lacks. They report this and return an error, whatever
// their arguments.

#include "stand_ins/cudriver/driver.h"

using namespace warpstack::cudriver;

namespace {

Error unsupported(const char* function) {
  return manage(
      function,
      [](Driver&) {
        throw Failure(Error::not_supported,
                      "not supported by warpstack's stand-in for libcuda (see "
                      "docs/how-to/host-programs.md)",
                      true);
      },
      Needs::nothing);
}

}  // namespace

#define UNSUPPORTED(function) \
  CUDART_EXPORT Error function() { return unsupported(#function); }
#include "stand_ins/cudriver/unsupported.inc"
