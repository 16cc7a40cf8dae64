// Blocks that draw tiles from a queue until it is empty.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void work(int* next, float* out, int tiles) {
  __shared__ int tile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int t = tile;
    __syncthreads();
    if (t >= tiles) return;
    float r = t;
    for (int i = 0; i < 300; ++i) r = r * 0.5f + 1;
    out[t * 32 + threadIdx.x] = r;
  }
}

int main() {
  int* next;
  float* out;
  cudaMalloc(&next, sizeof(int));
  cudaMemset(next, 0, sizeof(int));
  cudaMalloc(&out, 80 * 32 * sizeof(float));
  work<<<16, 32>>>(next, out, 80);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
