#include "stand_ins/cublas/context.h"

#include <algorithm>
#include <cmath>

#include "stand_ins/library/runtime_calls.h"

namespace warpstack::cublas {
namespace {

int version = 12;

/// The attributes, with room for what cudaPointerGetAttributes of CUDA 13 also writes.
struct Attributes {
  cudart::PointerAttributes read;
  std::byte rest[64];
};

cudart::PointerAttributes::Kind kind_of(const void* pointer) {
  Attributes attributes{};
  require_success(cudaPointerGetAttributes(&attributes.read, pointer), Status::internal_error);
  return attributes.read.kind;
}

/// Throws Failure if a pointer is null or impossible in the pointer mode.
void check_mode(const Context& context, const void* pointer, const char* name) {
  using Kind = cudart::PointerAttributes::Kind;
  require(pointer != nullptr, std::string(name) + " is a null pointer");
  const Kind kind = kind_of(pointer);
  const std::string where = std::string(name) + " lies in ";
  if (context.pointer_mode == PointerMode::host) {
    require(kind != Kind::device, where +
                                      "device memory, but the pointer mode is "
                                      "CUBLAS_POINTER_MODE_HOST (cublasSetPointerMode changes it)");
  } else {
    require(kind != Kind::unregistered,
            where +
                "host memory, but the pointer mode is "
                "CUBLAS_POINTER_MODE_DEVICE (cublasSetPointerMode changes it)");
  }
}

float float_of(Half half) {
  const int exponent = half.bits >> 10 & 31;
  const int fraction = half.bits & 1023;
  float size = 0;
  if (exponent == 31) {
    size = fraction == 0 ? INFINITY : NAN;
  } else {
    size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                         : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  return (half.bits & 0x8000) != 0 ? -size : size;
}

}  // namespace

int abi_version() { return version; }

Context& Library::context_of(Context* handle) {
  if (!Handles::has(handle)) {
    throw Failure(Status::not_initialized,
                  handle == nullptr
                      ? "the handle is null: cublasCreate makes one (cublasInit, without handles)"
                      : "cublasCreate has made no such handle");
  }
  return *handle;
}

template <typename T>
Scalar<T> scalar_of(const Context& context, const void* pointer, const char* name) {
  check_mode(context, pointer, name);
  if (context.pointer_mode == PointerMode::device) return {pointer, T(0), 0};
  return {nullptr, *static_cast<const T*>(pointer), 0};
}
template Scalar<float> scalar_of<float>(const Context&, const void*, const char*);
template Scalar<double> scalar_of<double>(const Context&, const void*, const char*);
template Scalar<int> scalar_of<int>(const Context&, const void*, const char*);

Scalar<float> half_scalar_of(const Context& context, const void* pointer, const char* name) {
  check_mode(context, pointer, name);
  if (context.pointer_mode == PointerMode::device) return {pointer, 0, 1};
  return {nullptr, float_of(*static_cast<const Half*>(pointer)), 0};
}

void check_result(const Context& context, const void* pointer) {
  check_mode(context, pointer, "the result");
}

void check_ld(const char* name, int ld, int rows) {
  require(ld >= std::max(1, rows), std::string(name) + " = " + std::to_string(ld) +
                                       " is less than max(1, " + std::to_string(rows) + ")");
}

bool transposes(int operation, const char* name) {
  require(operation == operation_none || operation == operation_transpose ||
              operation == operation_adjoint,
          std::string(name) + " = " + std::to_string(operation) +
              " is not CUBLAS_OP_N, CUBLAS_OP_T or CUBLAS_OP_C");
  return operation != operation_none;
}

}  // namespace warpstack::cublas

/// Called by the library that the program is linked with.
CUBLAS_EXPORT void warpstack_cublas_set_abi(int abi) { warpstack::cublas::version = abi; }
