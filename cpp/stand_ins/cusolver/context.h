#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "stand_ins/cusolver/abi.h"
#include "stand_ins/library/calls.h"
#include "stand_ins/library/handles.h"
#include "stand_ins/library/operation.h"
#include "stand_ins/state/abi.h"

namespace warpstack::cusolver {

using Failure = library::Failure<Status>;
using library::Bytes;
using library::require;

/// What a cusolverDnHandle_t points to.
struct Context {
  cudart::StreamHandle stream = 0;
  int deterministic_mode = 1;
};

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
};
inline constexpr library::Call<Library> call;
using Operation = library::Operation<Library>;

/// Throws Failure(invalid_value) unless `holds`.
inline void require(bool holds, const std::string& what) {
  require(holds, Status::invalid_value, what);
}

/// `value`, where the program wants it.
template <typename T, typename V>
void give(T* place, V value, const char* name) {
  require(place != nullptr, std::string(name) + " is null: nowhere to put the answer");
  *place = static_cast<T>(value);
}

/// A new object, whose pointer the program wants; nothing is made if there is nowhere to put it.
template <typename T>
void create(T** place, const char* name) {
  require(place != nullptr, std::string(name) + " is null: nowhere to put the answer");
  *place = library::Handles<T>::add();
}

/// "name = value".
std::string with_number(const char* name, long long value);
/// Throws Failure(invalid_value) unless a value of an enumeration lies in it.
void check_choice(const char* name, int value, int first, int last);

/// What a pointer of the program's stands for. Throws Failure(invalid_value) if it is nothing that
/// a function of cuSOLVER has created.
template <typename T>
T& described(T* pointer, const char* name) {
  require(
      library::Handles<T>::has(pointer),
      std::string(name) + (pointer == nullptr ? " is null" : " was destroyed, or never created"));
  return *pointer;
}

}  // namespace warpstack::cusolver
