// Eight lanes add values by shuffles from absent lanes, which give 0; with an argument, then trap.
#include <cstdio>

__global__ void sum_of_eight(int* result, bool traps) {
  int value = threadIdx.x + 1;
  if (threadIdx.x < 8) {
    for (int distance = 16; distance > 0; distance /= 2) {
      value += __shfl_down_sync(0xff, value, distance);
    }
    if (traps) __trap();
    if (threadIdx.x == 0) *result = value;
  }
}

int main(int count, char**) {
  int* device = nullptr;
  int host = 0;
  cudaMalloc(&device, sizeof host);
  sum_of_eight<<<1, 32>>>(device, count > 1);
  cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d\n", host);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
