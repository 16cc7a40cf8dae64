#pragma once

#include <string>

#include "stand_ins/cusparse/abi.h"
#include "stand_ins/library/arguments.h"
#include "stand_ins/library/calls.h"
#include "stand_ins/library/deferral.h"
#include "stand_ins/library/handles.h"
#include "stand_ins/state/abi.h"

namespace warpstack::cusparse {

using Failure = library::Failure<Status>;
using library::require;
using library::with_number;

/// What a cusparseHandle_t points to.
struct Context {
  cudart::StreamHandle stream = 0;
  int pointer_mode = pointers_to_host;
};

/// Major version of the libcusparse that the program was linked with: 11 or 12.
int abi_version();

/// What the functions of cuSPARSE have of their own.
struct Library {
  using Status = cusparse::Status;
  static constexpr const char* title = "cuSPARSE";
  static constexpr Status allocation_failed = Status::alloc_failed;
  static constexpr Status internal_error = Status::internal_error;
  static constexpr Status invalid_value = Status::invalid_value;
  static constexpr Status execution_failed = Status::execution_failed;
  /// Throws Failure(not_initialized) unless the program has created this handle.
  static Context& context_of(Context* handle);
};
inline constexpr library::Call<Library> call;
inline constexpr library::StreamCall<Library> call_in_stream;
inline constexpr library::CheckChoice<Library> check_choice;
inline constexpr library::Give<Library> give;
inline constexpr library::Create<Library> create;

/// Throws Failure(invalid_value) unless `holds`.
inline void require(bool holds, const std::string& what) {
  require(holds, Status::invalid_value, what);
}

/// What a pointer of the program's stands for, which cuSPARSE or the stand-in has created. Throws
/// Failure(invalid_value) if it is none.
template <typename T>
T& described(const T* pointer, const char* name) {
  return library::taken([&]() -> T& {
    T* const found = const_cast<T*>(pointer);
    require(library::Handles<T>::has(found),
            std::string(name) + (found == nullptr
                                     ? " is null"
                                     : " is not a descriptor: it was destroyed, or never created"));
    return *found;
  });
}

/// Bytes of a work area. Nothing is written to it; NVIDIA's sizes are not published. Programs take
/// a size of 0 for a failure.
inline constexpr std::size_t work_bytes = 256;

}  // namespace warpstack::cusparse
