#include "vectors.cuh"

WARPSTACK_VECTOR_KERNELS(f32, float)
