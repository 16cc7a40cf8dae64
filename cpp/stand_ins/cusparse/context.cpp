#include "stand_ins/cusparse/context.h"

namespace warpstack::cusparse {
namespace {

int version = 12;

}  // namespace

int abi_version() { return version; }

Context& Library::context_of(Context* handle) {
  require(library::Handles<Context>::has(handle), Status::not_initialized,
          handle == nullptr ? "the handle is null: cusparseCreate makes one"
                            : "cusparseCreate has made no such handle");
  return *handle;
}

}  // namespace warpstack::cusparse

/// Called by the library that the program is linked with.
CUSPARSE_EXPORT void warpstack_cusparse_set_abi(int abi) { warpstack::cusparse::version = abi; }
