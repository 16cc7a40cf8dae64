// Eight lanes add their values by shuffles that read lanes outside their mask, which absent are 0.
#include <cstdio>

__global__ void sum_of_eight(int* result) {
  int value = threadIdx.x + 1;
  if (threadIdx.x < 8) {
    for (int distance = 16; distance > 0; distance /= 2) {
      value += __shfl_down_sync(0xff, value, distance);
    }
    if (threadIdx.x == 0) *result = value;
  }
}

int main() {
  int* device = nullptr;
  int host = 0;
  cudaMalloc(&device, sizeof host);
  sum_of_eight<<<1, 32>>>(device);
  cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d\n", host);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
