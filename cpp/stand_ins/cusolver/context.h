#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "stand_ins/cusolver/abi.h"
#include "stand_ins/library/arguments.h"
#include "stand_ins/library/calls.h"
#include "stand_ins/library/deferral.h"
#include "stand_ins/library/handles.h"
#include "stand_ins/library/operation.h"
#include "stand_ins/state/abi.h"

namespace warpstack::cusolver {

using Failure = library::Failure<Status>;
using library::Bytes;
using library::require;
using library::with_number;

/// What a cusolverDnHandle_t points to.
struct Context {
  cudart::StreamHandle stream = 0;
  int deterministic_mode = 1;
};

/// What a cusolverSpHandle_t points to.
struct SparseContext {
  cudart::StreamHandle stream = 0;
};

/// What a cusolverRfHandle_t points to.
struct Refactorisation;

/// Major version of the libcusolver that the program was linked with: 11 or 12.
int abi_version();

/// What the functions of cuSOLVER have of their own.
struct Library {
  using Status = cusolver::Status;
  static constexpr const char* title = "cuSOLVER";
  static constexpr Status allocation_failed = Status::alloc_failed;
  static constexpr Status internal_error = Status::internal_error;
  static constexpr Status invalid_value = Status::invalid_value;
  static constexpr Status execution_failed = Status::execution_failed;
  /// Throws Failure(not_initialized) unless the program has created this handle.
  static Context& context_of(Context* handle);
  static SparseContext& context_of(SparseContext* handle);
  static Refactorisation& context_of(Refactorisation* handle);
};
inline constexpr library::Call<Library> call;
inline constexpr library::StreamCall<Library> call_in_stream;
inline constexpr library::CheckChoice<Library> check_choice;
inline constexpr library::Give<Library> give;
inline constexpr library::Create<Library> create;
using Operation = library::Operation<Library>;

/// Throws Failure(invalid_value) unless `holds`.
inline void require(bool holds, const std::string& what) {
  require(holds, Status::invalid_value, what);
}

/// What a pointer of the program's stands for. Throws Failure(invalid_value) if it is nothing that
/// a function of cuSOLVER has created.
template <typename T>
T& described(T* pointer, const char* name) {
  return library::taken([&]() -> T& {
    require(
        library::Handles<T>::has(pointer),
        std::string(name) + (pointer == nullptr ? " is null" : " was destroyed, or never created"));
    return *pointer;
  });
}

}  // namespace warpstack::cusolver
