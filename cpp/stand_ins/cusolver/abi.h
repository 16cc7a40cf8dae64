#pragma once

/// Marks the functions that programs call.
#define CUSOLVER_EXPORT extern "C" __attribute__((visibility("default")))

/// The types of cuSOLVER's interface that the stand-in reads or writes. Enumerations are integers
/// if the program may pass values outside them. CUDA's headers are not needed to build warpstack.
/// The values are the same in cuSOLVER 11 and 12.
namespace warpstack::cusolver {

/// cusolverStatus_t
enum class Status : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 2,
  invalid_value = 3,
  arch_mismatch = 4,
  execution_failed = 6,
  internal_error = 7,
  matrix_type_not_supported = 8,
  not_supported = 9,
};

/// cublasFillMode_t, cublasOperation_t, cublasSideMode_t
inline constexpr int fill_lower = 0, fill_upper = 1;
inline constexpr int operation_none = 0, operation_transpose = 1, operation_adjoint = 2;
inline constexpr int side_left = 0, side_right = 1;
/// cusolverEigMode_t and cusolverEigType_t
inline constexpr int without_vectors = 0, with_vectors = 1;
inline constexpr int first_eigen_type = 1, last_eigen_type = 3;
/// cudaDataType
inline constexpr int data_f32 = 0, data_f64 = 1, data_c32 = 4, data_c64 = 5;

}  // namespace warpstack::cusolver
