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

std::string with_number(const char* name, long long value) {
  return std::string(name) + " = " + std::to_string(value);
}

void check_choice(const char* name, int value, int first, int last) {
  require(value >= first && value <= last, with_number(name, value) + " is not between " +
                                               std::to_string(first) + " and " +
                                               std::to_string(last));
}

}  // namespace warpstack::cusparse

/// Called by the library that the program is linked with.
CUSPARSE_EXPORT void warpstack_cusparse_set_abi(int abi) { warpstack::cusparse::version = abi; }
