#include "simt_gemm.cuh"

using Large = warpstack::cublas::Tile<64, 64, 8, 4, 4, 2>;
using Small = warpstack::cublas::Tile<32, 32, 16, 2, 2, 2>;
WARPSTACK_SIMT_GEMMS(ws_gemm_f64, 64x64, double, double, double, Large)
WARPSTACK_SIMT_GEMMS(ws_gemm_f64, 32x32, double, double, double, Small)
