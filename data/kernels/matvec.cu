// Products of a square matrix and a vector, as a library that nobody tuned has them, and better.

#include <cstdio>
#include <cstdlib>
#include <vector>

// y = A x: each lane takes a row, so that a warp reads 32 words that are a row apart.
__global__ void rows(const float* a, const float* x, float* y, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  for (int k = 0; k < n; ++k) y[row] += a[row * n + k] * x[k];
}

// y = A^T x: each lane takes a column, so that a warp reads 32 words side by side.
__global__ void columns(const float* a, const float* x, float* y, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  for (int k = 0; k < n; ++k) y[column] += a[k * n + column] * x[k];
}

// y = A x: each warp takes a row, and adds up in registers.
__global__ void warp_per_row(const float* a, const float* x, float* y, int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0;
  for (int k = lane; k < n; k += 32) sum += a[row * n + k] * x[k];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  if (lane == 0) y[row] = sum;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 512;
  const size_t bytes = n * sizeof(float);
  std::vector<float> matrix(n * n), vector(n);
  for (int i = 0; i < n * n; ++i) matrix[i] = i % 7;
  for (int i = 0; i < n; ++i) vector[i] = i % 3;

  float *a, *x, *y[3];
  cudaMalloc(&a, n * bytes);
  cudaMalloc(&x, bytes);
  cudaMemcpy(a, matrix.data(), n * bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(x, vector.data(), bytes, cudaMemcpyHostToDevice);
  for (float*& result : y) {
    cudaMalloc(&result, bytes);
    cudaMemset(result, 0, bytes);
  }
  rows<<<(n + 31) / 32, 32>>>(a, x, y[0], n);
  columns<<<(n + 31) / 32, 32>>>(a, x, y[1], n);
  warp_per_row<<<(n + 7) / 8, 256>>>(a, x, y[2], n);

  std::vector<float> results[3];
  for (int i = 0; i < 3; ++i) {
    results[i].resize(n);
    cudaMemcpy(results[i].data(), y[i], bytes, cudaMemcpyDeviceToHost);
  }
  for (int i = 0; i < n; ++i) {
    float by_row = 0, by_column = 0;
    for (int k = 0; k < n; ++k) {
      by_row += matrix[i * n + k] * vector[k];
      by_column += matrix[k * n + i] * vector[k];
    }
    if (results[0][i] != by_row || results[1][i] != by_column || results[2][i] != by_row) {
      std::printf("element %d is wrong\n", i);
      return 1;
    }
  }
}
