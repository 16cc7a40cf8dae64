#pragma once

#include <string>

#include "cublas/arguments.h"
#include "stand_ins/cublas/abi.h"
#include "stand_ins/library/calls.h"
#include "stand_ins/library/handles.h"
#include "stand_ins/state/abi.h"

namespace warpstack::cublas {

using Failure = library::Failure<Status>;
using library::require;

/// What a cublasHandle_t points to.
struct Context {
  cudart::StreamHandle stream = 0;
  PointerMode pointer_mode = PointerMode::host;
  int atomics_mode = 0;
  int math_mode = 0;
  int sm_count_target = 0;
  void* scratch = nullptr;  ///< device memory for reductions
};

/// Blocks of a reduction, at most.
inline constexpr long long max_partials = 240;
/// Bytes of a reduction's partial results at the start of scratch memory; its result follows.
inline constexpr std::size_t partials_bytes = max_partials * sizeof(NormPartial<double>);
inline constexpr std::size_t scratch_bytes = partials_bytes + sizeof(double);

/// Major version of the cuBLAS that the program was linked with: 11, 12 or 13.
int abi_version();

using Handles = library::Handles<Context>;

/// What the functions of cuBLAS have of their own.
struct Library {
  using Status = cublas::Status;
  static constexpr Status allocation_failed = Status::alloc_failed;
  static constexpr Status internal_error = Status::internal_error;
  /// Throws Failure(not_initialized) unless the program has created this handle.
  static Context& context_of(Context* handle);
};
inline constexpr library::Call<Library> call;

/// Throws Failure(invalid_value) unless `holds`.
inline void require(bool holds, const std::string& what) {
  require(holds, Status::invalid_value, what);
}

/// Throws Failure unless this call of the runtime, which has told the user, was successful.
inline void require_success(cudart::Error error, Status otherwise) {
  library::require_success<Library>(error, otherwise);
}

/// alpha or beta of a call, according to the pointer mode. Throws Failure if the pointer is null or
/// of the other mode.
template <typename T>
Scalar<T> scalar_of(const Context& context, const void* pointer, const char* name);
/// The same for alpha and beta in f16, which the kernels take as f32.
Scalar<float> half_scalar_of(const Context& context, const void* pointer, const char* name);

/// Throws Failure unless a result may be written to this pointer in the pointer mode.
void check_result(const Context& context, const void* pointer);

/// Throws Failure unless columns of `rows` elements fit, `ld` apart.
void check_ld(const char* name, int ld, int rows);

/// The address of element 0 of a vector of n; with a negative increment, the other end.
template <typename T>
T* start_of(T* vector, int n, int step) {
  return step < 0 ? vector - static_cast<long long>(n - 1) * step : vector;
}

/// Whether op() transposes. Throws Failure unless it is an operation on real matrices.
bool transposes(int operation, const char* name);

}  // namespace warpstack::cublas
