// Handles and their settings, versions, and names of statuses.

#include <array>

#include "stand_ins/cublas/context.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::cublas;
using warpstack::cudart::StreamHandle;

namespace {

struct StatusName {
  Status status;
  const char* name;
  const char* text;
};
constexpr std::array<StatusName, 10> status_names{{
    {Status::success, "CUBLAS_STATUS_SUCCESS", "the operation completed successfully"},
    {Status::not_initialized, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {Status::alloc_failed, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {Status::invalid_value, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {Status::arch_mismatch, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires a feature absent from the device"},
    {Status::mapping_error, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {Status::execution_failed, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {Status::internal_error, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {Status::not_supported, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the requested functionality is not supported"},
    {Status::license_error, "CUBLAS_STATUS_LICENSE_ERROR",
     "the requested functionality requires a license"},
}};

/// Major, minor and patch of the last cuBLAS of CUDA 11, 12 and 13 that the stand-in knows.
std::array<int, 3> library_version() {
  switch (abi_version()) {
    case 11:
      return {11, 11, 3};
    case 12:
      return {12, 9, 1};
    default:
      return {13, 1, 0};
  }
}

std::uint32_t version_number() {
  const auto [major, minor, patch] = library_version();
  return static_cast<std::uint32_t>(major * 10000 + minor * 100 + patch);
}

constexpr int device_alignment = 256;

}  // namespace

CUBLAS_EXPORT Status cublasCreate_v2(Context** handle) {
  return call(__func__, [&] {
    require(handle != nullptr, "nowhere to put the handle");
    // Allocated now, because a stream may be capturing when it is first needed.
    void* scratch = nullptr;
    const auto error = cudaMalloc(&scratch, scratch_bytes);
    require_success(error == warpstack::cudart::Error::memory_allocation
                        ? error
                        : warpstack::cudart::Error::success,
                    Status::alloc_failed);
    if (error != warpstack::cudart::Error::success) {
      throw Failure(Status::not_initialized,
                    std::string("the device has failed before: ") + cudaGetErrorName(error));
    }
    *handle = Handles::add();
    (*handle)->scratch = scratch;
  });
}

CUBLAS_EXPORT Status cublasDestroy_v2(Context* handle) {
  return call(__func__, handle, [&](Context& context) {
    cudaFree(context.scratch);
    Handles::remove(handle);
  });
}

CUBLAS_EXPORT Status cublasGetVersion_v2(Context* handle, int* version) {
  return call(__func__, [&] {
    if (handle != nullptr) Library::context_of(handle);
    require(version != nullptr, "nowhere to put the version");
    *version = static_cast<int>(version_number());
  });
}

CUBLAS_EXPORT Status cublasGetProperty(int property, int* value) {
  return call(__func__, [&] {
    require(value != nullptr && property >= 0 && property <= 2,
            "the property is not MAJOR_VERSION, MINOR_VERSION or PATCH_LEVEL, or its value has no "
            "place");
    *value = library_version()[static_cast<std::size_t>(property)];
  });
}

CUBLAS_EXPORT std::size_t cublasGetCudartVersion() {
  return abi_version() == 11 ? 11080 : abi_version() == 12 ? 12090 : 13000;
}

CUBLAS_EXPORT const char* cublasGetStatusName(Status status) {
  for (const StatusName& known : status_names) {
    if (known.status == status) return known.name;
  }
  return "<unknown cublas status>";
}

CUBLAS_EXPORT const char* cublasGetStatusString(Status status) {
  for (const StatusName& known : status_names) {
    if (known.status == status) return known.text;
  }
  return "<unknown cublas status>";
}

CUBLAS_EXPORT Status cublasSetStream_v2(Context* handle, StreamHandle stream) {
  return call(__func__, handle, [&](Context& context) { context.stream = stream; });
}

CUBLAS_EXPORT Status cublasGetStream_v2(Context* handle, StreamHandle* stream) {
  return call(__func__, handle, [&](Context& context) {
    require(stream != nullptr, "nowhere to put the stream");
    *stream = context.stream;
  });
}

/// The kernels do not need the program's workspace.
CUBLAS_EXPORT Status cublasSetWorkspace_v2(Context* handle, void* workspace, std::size_t) {
  return call(__func__, handle, [&](Context&) {
    require(reinterpret_cast<std::uintptr_t>(workspace) % device_alignment == 0,
            "the workspace is not aligned to 256 bytes");
  });
}

CUBLAS_EXPORT Status cublasSetPointerMode_v2(Context* handle, int mode) {
  return call(__func__, handle, [&](Context& context) {
    require(mode == 0 || mode == 1, "there is no such pointer mode");
    context.pointer_mode = static_cast<PointerMode>(mode);
  });
}

CUBLAS_EXPORT Status cublasGetPointerMode_v2(Context* handle, PointerMode* mode) {
  return call(__func__, handle, [&](Context& context) {
    require(mode != nullptr, "nowhere to put the pointer mode");
    *mode = context.pointer_mode;
  });
}

/// The kernels use no atomic operations.
CUBLAS_EXPORT Status cublasSetAtomicsMode(Context* handle, int mode) {
  return call(__func__, handle, [&](Context& context) {
    require(mode == 0 || mode == 1, "there is no such atomics mode");
    context.atomics_mode = mode;
  });
}

CUBLAS_EXPORT Status cublasGetAtomicsMode(Context* handle, int* mode) {
  return call(__func__, handle, [&](Context& context) {
    require(mode != nullptr, "nowhere to put the atomics mode");
    *mode = context.atomics_mode;
  });
}

/// The kernels compute as precisely as any mode asks for.
CUBLAS_EXPORT Status cublasSetMathMode(Context* handle, int mode) {
  return call(__func__, handle, [&](Context& context) {
    constexpr int reduction_flag = 16;
    constexpr int largest = 8;
    require(mode >= 0 && (mode & ~reduction_flag) <= largest, "there is no such math mode");
    context.math_mode = mode;
  });
}

CUBLAS_EXPORT Status cublasGetMathMode(Context* handle, int* mode) {
  return call(__func__, handle, [&](Context& context) {
    require(mode != nullptr, "nowhere to put the math mode");
    *mode = context.math_mode;
  });
}

CUBLAS_EXPORT Status cublasSetSmCountTarget(Context* handle, int count) {
  return call(__func__, handle, [&](Context& context) {
    require(count >= 0, "a number of SMs is negative");
    context.sm_count_target = count;
  });
}

CUBLAS_EXPORT Status cublasGetSmCountTarget(Context* handle, int* count) {
  return call(__func__, handle, [&](Context& context) {
    require(count != nullptr, "nowhere to put the number of SMs");
    *count = context.sm_count_target;
  });
}

/// Nothing is logged: mistakes are reported on standard error.
CUBLAS_EXPORT Status cublasLoggerConfigure(int, int, int, const char*) { return Status::success; }

namespace {

using LogCallback = void (*)(const char*);
LogCallback log_callback = nullptr;

}  // namespace

CUBLAS_EXPORT Status cublasSetLoggerCallback(LogCallback callback) {
  return call(__func__, [&] { log_callback = callback; });
}

CUBLAS_EXPORT Status cublasGetLoggerCallback(LogCallback* callback) {
  return call(__func__, [&] {
    require(callback != nullptr, "nowhere to put the callback");
    *callback = log_callback;
  });
}

// --- cuBLASLt -----------------------------------------------------------------------------------
// Handles and versions, so that programs that make a handle in their set-up run as far as they
// need no product of it.

CUBLAS_EXPORT Status cublasLtCreate(Context** handle) {
  return call(__func__, [&] {
    require(handle != nullptr, "nowhere to put the handle");
    *handle = Handles::add();
  });
}

CUBLAS_EXPORT Status cublasLtDestroy(Context* handle) {
  return call(__func__, handle, [&](Context&) { Handles::remove(handle); });
}

CUBLAS_EXPORT std::size_t cublasLtGetVersion() { return version_number(); }
CUBLAS_EXPORT std::size_t cublasLtGetCudartVersion() { return cublasGetCudartVersion(); }
CUBLAS_EXPORT Status cublasLtGetProperty(int property, int* value) {
  return cublasGetProperty(property, value);
}
CUBLAS_EXPORT const char* cublasLtGetStatusName(Status status) {
  return cublasGetStatusName(status);
}
CUBLAS_EXPORT const char* cublasLtGetStatusString(Status status) {
  return cublasGetStatusString(status);
}
