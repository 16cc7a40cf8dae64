#include "vectors.cuh"

WARPSTACK_VECTOR_KERNELS(f64, double)
