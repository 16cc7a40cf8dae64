#include "tensor_gemm.cuh"

WARPSTACK_TENSOR_GEMMS(ws_gemm_bf16, __nv_bfloat16)
