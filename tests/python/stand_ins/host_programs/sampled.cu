// Launches of which a sample of the blocks may run alone, and one of which it may not.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void plain(float* out) { out[blockIdx.x * 32 + threadIdx.x] = 1; }

__global__ void queue(int* next, float* out, int tiles) {
  __shared__ int tile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int t = tile;
    __syncthreads();
    if (t >= tiles) return;
    out[t * 32 + threadIdx.x] = t;
  }
}

// Each block waits for the one that came before it.
__global__ void chain(int* next, volatile int* sums) {
  __shared__ int mine;
  if (threadIdx.x == 0) mine = atomicAdd(next, 1);
  __syncthreads();
  if (threadIdx.x != 0) return;
  int before = 0;
  while (mine > 0 && (before = sums[mine - 1]) == 0) {
  }
  __threadfence();
  sums[mine] = before + 1;
}

int main() {
  int *next, *sums;
  float* out;
  cudaMalloc(&next, 2 * sizeof(int));
  cudaMemset(next, 0, 2 * sizeof(int));
  cudaMalloc(&sums, 300 * sizeof(int));
  cudaMemset(sums, 0, 300 * sizeof(int));
  cudaMalloc(&out, 2000 * 32 * sizeof(float));
  plain<<<400, 32>>>(out);
  queue<<<132, 32>>>(next, out, 2000);
  chain<<<300, 32>>>(next + 1, sums);
  int last = 0;
  cudaMemcpy(&last, sums + 299, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("%s %d\n", cudaGetErrorString(cudaDeviceSynchronize()), last);
}
