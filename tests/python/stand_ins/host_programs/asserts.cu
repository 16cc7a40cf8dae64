// A launch whose assertion fails, as the program expects: after one that ends well, and alone.
#include <cassert>
#include <cstdio>

__global__ void numbers(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void few(int most) { assert(threadIdx.x < most); }

int main(int argc, char**) {
  if (argc < 2) {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    numbers<<<1, 32>>>(out);
  }
  few<<<1, 32>>>(5);
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(error));
  return error == cudaErrorAssert ? 0 : 1;
}
