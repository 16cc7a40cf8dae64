#pragma once

/// Marks the functions that programs call.
#define CUFFT_EXPORT extern "C" __attribute__((visibility("default")))

/// The types of cuFFT's interface that the stand-in reads or writes. Enumerations are integers if
/// the program may pass values outside them. CUDA's headers are not needed to build warpstack. The
/// values are the same in cuFFT 10, 11 and 12.
namespace warpstack::cufft {

/// cufftResult
enum class Status : int {
  success = 0,
  invalid_plan = 1,
  alloc_failed = 2,
  invalid_type = 3,
  invalid_value = 4,
  internal_error = 5,
  exec_failed = 6,
  setup_failed = 7,
  invalid_size = 8,
  no_workspace = 13,
  not_supported = 16,
};

/// cufftType
inline constexpr int type_c2c = 0x29, type_r2c = 0x2a, type_c2r = 0x2c, type_z2z = 0x69,
                     type_d2z = 0x6a, type_z2d = 0x6c;

/// Directions
inline constexpr int forward = -1, inverse = 1;

/// cudaDataType: the real ones; a complex one is four more, but for bf16.
inline constexpr int data_f32 = 0, data_f64 = 1, data_f16 = 2, data_bf16 = 14;
inline constexpr int data_c32 = 4, data_c64 = 5, data_c16 = 6, data_cbf16 = 15;

/// cufftHandle
using Handle = int;
/// CUFFT_PLAN_NULL, which cufftDestroy takes.
inline constexpr Handle no_plan = -1;

}  // namespace warpstack::cufft
