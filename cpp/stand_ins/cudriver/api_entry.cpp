// Functions by name, and names of errors.

#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/error_names.h"

using namespace warpstack::cudriver;

namespace {

/// CUdriverProcAddressQueryResult
enum class Found : int { yes, no };

/// A function whose arguments have changed after CUDA 4: the form that its plain name means from a
/// version on.
struct Form {
  const char* name;
  int since;
  const char* suffix;
};
/// Later forms of a function come first. Functions without a row mean `_v2`.
constexpr Form forms[] = {
    {"cuCtxCreate", 12050, "_v4"},
    {"cuCtxCreate", 11040, "_v3"},
    {"cuCtxCreate", 0, "_v2"},
    {"cuCtxGetDevice", 13000, "_v2"},
    {"cuCtxGetDevice", 0, ""},
    {"cuCtxSynchronize", 13000, "_v2"},
    {"cuCtxSynchronize", 0, ""},
    {"cuGetProcAddress", 12000, "_v2"},
    {"cuGetProcAddress", 0, ""},
    {"cuStreamGetCaptureInfo", 12030, "_v3"},
    {"cuStreamGetCaptureInfo", 0, "_v2"},
    {"cuStreamGetCtx", 12050, "_v2"},
    {"cuStreamGetCtx", 0, ""},
};

/// The library that contains this function, whoever has loaded it.
void* own_library() {
  static void* const library = [] {
    Dl_info place{};
    return ::dladdr(reinterpret_cast<const void*>(&own_library), &place) == 0
               ? nullptr
               : ::dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return library;
}

void* exported(const std::string& name) {
  return own_library() == nullptr ? nullptr : ::dlsym(own_library(), name.c_str());
}

/// The function that this name means to programs of a CUDA version, or null.
void* function_named(const std::string& name, int version, bool per_thread_stream) {
  if (!name.starts_with("cu") || name.starts_with("cuda")) return nullptr;
  std::string form = exported(name + "_v2") != nullptr ? name + "_v2" : name;
  for (const Form& one : forms) {
    if (name != one.name || version < one.since) continue;
    form = name + one.suffix;
    break;
  }
  if (per_thread_stream) {
    for (const char* const ending : {"_ptsz", "_ptds"}) {
      if (void* const pointer = exported(form + ending)) return pointer;
    }
  }
  return exported(form);
}

Error get_function(const char* caller, const char* name, void** function, int version,
                   unsigned long long flags, Found* status) {
  bool is_found = false;
  const Error error = manage(
      caller,
      [&](Driver&) {
        require(name != nullptr && function != nullptr, "a pointer is null");
        constexpr unsigned long long known = 3, per_thread = 2;
        require(flags <= known, "unknown flags");
        *function = function_named(name, version, (flags & per_thread) != 0);
        is_found = *function != nullptr;
        if (status != nullptr) *status = is_found ? Found::yes : Found::no;
      },
      Needs::nothing);
  // If the status is asked for, a missing function is no error. Nothing is reported, because
  // programs ask for many functions that they never call.
  if (error != Error::success || is_found || status != nullptr) return error;
  return Error::symbol_not_found;
}

/// The same for the runtime, which remembers its last error.
Error get_entry_point(const char* caller, const char* name, void** function, int version,
                      unsigned long long flags, Found* status) {
  Found found = Found::no;
  const Error error = get_function(caller, name, function, version, flags, &found);
  if (error != Error::success) return warpstack::cudart::last_error() = error;
  if (status != nullptr) {
    *status = found;
  } else if (*function == nullptr) {
    return warpstack::cudart::last_error() = Error::symbol_not_found;
  }
  return Error::success;
}

struct ErrorName {
  int number;
  const char* name;
};
constexpr ErrorName error_names[] = {
#define CU_ERROR(number, name) {number, #name},
#include "stand_ins/cudriver/error_names.inc"
#undef CU_ERROR
};

const char* result_name_of(Error error) {
  const auto found = std::ranges::find(error_names, static_cast<int>(error), &ErrorName::number);
  return found == std::end(error_names) ? nullptr : found->name;
}

}  // namespace

CUDART_EXPORT Error cuGetProcAddress_v2(const char* name, void** function, int version,
                                        unsigned long long flags, Found* status) {
  return get_function(__func__, name, function, version, flags, status);
}

CUDART_EXPORT Error cuGetProcAddress(const char* name, void** function, int version,
                                     unsigned long long flags) {
  return get_function(__func__, name, function, version, flags, nullptr);
}

CUDART_EXPORT Error cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                                     unsigned version, unsigned long long flags,
                                                     Found* status) {
  return get_entry_point(__func__, name, function, static_cast<int>(version), flags, status);
}

CUDART_EXPORT Error cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function,
                                                          unsigned version,
                                                          unsigned long long flags, Found* status) {
  return get_entry_point(__func__, name, function, static_cast<int>(version),
                         flags == 0 ? 2 : flags, status);
}

/// CUDA 11 only passes three arguments; programs want the form of their own version.
CUDART_EXPORT Error cudaGetDriverEntryPoint(const char* name, void** function,
                                            unsigned long long flags, Found* status) {
  const int abi = warpstack::cudart::abi_version();
  return get_entry_point(__func__, name, function, abi == 11 ? 11080 : abi * 1000, flags,
                         abi == 11 ? nullptr : status);
}

CUDART_EXPORT Error cudaGetDriverEntryPoint_ptsz(const char* name, void** function,
                                                 unsigned long long flags, Found* status) {
  return cudaGetDriverEntryPoint(name, function, flags == 0 ? 2 : flags, status);
}

/// The first call of the runtime that is linked into programs and libraries (libcudart_static).
/// Some that contain it, such as NVRTC, work without.
CUDART_EXPORT Error cuGetExportTable(const void** table, const void*) {
  return manage(
      __func__,
      [&](Driver&) {
        if (table != nullptr) *table = nullptr;
        throw Failure(
            Error::symbol_not_found,
            "the program, or a library of it, contains the CUDA runtime (libcudart_static), "
            "which needs functions of NVIDIA's driver that are not documented: all that is "
            "called of it fails; where results depend on it, link libcudart as a shared "
            "library (nvcc -cudart shared)");
      },
      Needs::nothing);
}

CUDART_EXPORT Error cuGetErrorName(Error error, const char** text) {
  if (text == nullptr) return Error::invalid_value;
  *text = result_name_of(error);
  return *text == nullptr ? Error::invalid_value : Error::success;
}

CUDART_EXPORT Error cuGetErrorString(Error error, const char** text) {
  if (text == nullptr) return Error::invalid_value;
  *text = result_name_of(error) == nullptr ? nullptr : warpstack::cudart::description_of(error);
  return *text == nullptr ? Error::invalid_value : Error::success;
}
