// Products of a square matrix and vectors, a row or a column per thread. Sums stay in memory, where
// every step reads and writes them.

extern "C" __global__ void rows(int n, const float* matrix, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    for (int j = 0; j < n; ++j) {
      y[i] += matrix[i * n + j] * x[j];
    }
  }
}

extern "C" __global__ void columns(int n, const float* matrix, const float* x, float* y) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < n) {
    for (int i = 0; i < n; ++i) {
      y[j] += matrix[i * n + j] * x[i];
    }
  }
}
