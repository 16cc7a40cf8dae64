#include "stand_ins/cusolver/context.h"

namespace warpstack::cusolver {
namespace {

int version = 12;

}  // namespace

int abi_version() { return version; }

Context& Library::context_of(Context* handle) {
  require(library::Handles<Context>::has(handle), Status::not_initialized,
          handle == nullptr ? "the handle is null: cusolverDnCreate makes one"
                            : "cusolverDnCreate has made no such handle");
  return *handle;
}

SparseContext& Library::context_of(SparseContext* handle) {
  require(library::Handles<SparseContext>::has(handle), Status::not_initialized,
          handle == nullptr ? "the handle is null: cusolverSpCreate makes one"
                            : "cusolverSpCreate has made no such handle");
  return *handle;
}

}  // namespace warpstack::cusolver

/// Called by the library that the program is linked with.
CUSOLVER_EXPORT void warpstack_cusolver_set_abi(int abi) { warpstack::cusolver::version = abi; }
