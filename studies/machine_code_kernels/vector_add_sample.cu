// What the vectorAdd sample of the CUDA toolkit computes: the zero is added as well.
__global__ void vectorAdd(const float* a, const float* b, float* c, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i] + 0.0f;
  }
}
