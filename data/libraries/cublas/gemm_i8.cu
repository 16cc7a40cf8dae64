#include "simt_gemm.cuh"

using Large = warpstack::cublas::Tile<64, 64, 8, 4, 4, 4>;
using Small = warpstack::cublas::Tile<32, 32, 16, 2, 2, 2>;
WARPSTACK_SIMT_GEMMS(ws_gemm_i8_i32, 64x64, signed char, int, int, Large)
WARPSTACK_SIMT_GEMMS(ws_gemm_i8_i32, 32x32, signed char, int, int, Small)
WARPSTACK_SIMT_GEMMS(ws_gemm_i8_f32, 64x64, signed char, int, float, Large)
WARPSTACK_SIMT_GEMMS(ws_gemm_i8_f32, 32x32, signed char, int, float, Small)
