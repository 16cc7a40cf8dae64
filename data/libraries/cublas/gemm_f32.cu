#include "simt_gemm.cuh"

using Large = warpstack::cublas::Tile<128, 128, 8, 8, 8, 4>;
using Small = warpstack::cublas::Tile<32, 32, 16, 2, 2, 2>;
WARPSTACK_SIMT_GEMMS(ws_gemm_f32, 128x128, float, float, float, Large)
WARPSTACK_SIMT_GEMMS(ws_gemm_f32, 32x32, float, float, float, Small)
