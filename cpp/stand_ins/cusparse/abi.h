#pragma once

/// Marks the functions that programs call.
#define CUSPARSE_EXPORT extern "C" __attribute__((visibility("default")))

/// The types of cuSPARSE's interface that the stand-in reads or writes. Enumerations are integers
/// if the program may pass values outside them. CUDA's headers are not needed to build warpstack.
/// The values are the same in cuSPARSE 11 and 12.
namespace warpstack::cusparse {

/// cusparseStatus_t
enum class Status : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 2,
  invalid_value = 3,
  arch_mismatch = 4,
  mapping_error = 5,
  execution_failed = 6,
  internal_error = 7,
  matrix_type_not_supported = 8,
  zero_pivot = 9,
  not_supported = 10,
  insufficient_resources = 11,
};

/// cusparsePointerMode_t
inline constexpr int pointers_to_host = 0, pointers_to_device = 1;
/// cusparseOperation_t
inline constexpr int operation_none = 0, operation_transpose = 1, operation_adjoint = 2;
/// cusparseFillMode_t and cusparseDiagType_t
inline constexpr int fill_lower = 0, fill_upper = 1, diagonal_stored = 0, diagonal_of_ones = 1;
/// cusparseSpMatAttribute_t
inline constexpr int attribute_fill = 0, attribute_diagonal = 1;
/// cusparseOrder_t
inline constexpr int order_column = 1, order_row = 2;
/// cusparseIndexType_t
inline constexpr int index_u16 = 1, index_i32 = 2, index_i64 = 3;
/// cusparseFormat_t
inline constexpr int format_csr = 1, format_csc = 2, format_coo = 3, format_blocked_ell = 5,
                     format_bsr = 6, format_sliced_ell = 7;
/// cudaDataType
inline constexpr int data_f32 = 0, data_f64 = 1, data_f16 = 2, data_i8 = 3, data_c32 = 4,
                     data_c64 = 5, data_c16 = 6, data_i32 = 10, data_bf16 = 14, data_cbf16 = 15;

}  // namespace warpstack::cusparse
