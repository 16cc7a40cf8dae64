#include "tensor_gemm.cuh"

WARPSTACK_TENSOR_GEMMS(ws_gemm_f16, __half)
