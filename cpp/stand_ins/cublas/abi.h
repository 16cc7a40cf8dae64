#pragma once

#include <cstddef>
#include <cstdint>

/// Marks the functions that programs call.
#define CUBLAS_EXPORT extern "C" __attribute__((visibility("default")))

/// The types of cuBLAS's interface that the stand-in reads or writes. Enumerations are integers if
/// the program may pass values outside them. CUDA's headers are not needed to build warpstack. The
/// values are the same in cuBLAS 11, 12 and 13.
namespace warpstack::cublas {

/// cublasStatus_t
enum class Status : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  arch_mismatch = 8,
  mapping_error = 11,
  execution_failed = 13,
  internal_error = 14,
  not_supported = 15,
  license_error = 16,
};

/// cublasPointerMode_t
enum class PointerMode : int { host, device };

/// cublasOperation_t; the adjoint of a real matrix is its transpose.
inline constexpr int operation_none = 0, operation_transpose = 1, operation_adjoint = 2;
/// cublasSideMode_t
inline constexpr int side_left = 0, side_right = 1;
/// cublasFillMode_t
inline constexpr int fill_lower = 0, fill_upper = 1;
/// cublasDiagType_t
inline constexpr int diagonal_any = 0, diagonal_unit = 1;

/// cudaDataType
inline constexpr int type_f32 = 0, type_f64 = 1, type_f16 = 2, type_i8 = 3, type_i32 = 10,
                     type_bf16 = 14;

/// cublasComputeType_t: the plain, fast and pedantic forms.
inline constexpr int compute_f16 = 64, compute_f16_pedantic = 65;
inline constexpr int compute_f32 = 68, compute_f32_pedantic = 69, compute_f32_fast_f16 = 74,
                     compute_f32_fast_bf16 = 75, compute_f32_fast_tf32 = 77,
                     compute_f32_emulated = 78;
inline constexpr int compute_f64 = 70, compute_f64_pedantic = 71, compute_f64_emulated = 79;
inline constexpr int compute_i32 = 72, compute_i32_pedantic = 73;

/// An f16 as its bits.
struct Half {
  std::uint16_t bits;
};

}  // namespace warpstack::cublas
