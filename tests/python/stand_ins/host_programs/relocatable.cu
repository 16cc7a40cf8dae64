// With relocatable_other.cu: device code of two files, linked.
#include <cstdio>

extern __device__ int counter;  // the other file's
extern __constant__ float factors[4];
extern __managed__ int managed;
extern __shared__ int dynamic[];
__device__ int add_one(int x);
__global__ void other(int* out);
void launch_other(int* out);

static __device__ int mine = 5;  // each file has its own
static __device__ __noinline__ int twice(int x) { return 2 * x + mine; }
template <typename T>
__device__ __noinline__ T triple(T x) {  // in both files, equal
  return 3 * x;
}

using Function = int (*)(int);
__device__ Function chosen = add_one;

__global__ void first(int* out) {
  dynamic[threadIdx.x] = add_one(twice(threadIdx.x)) + triple(1);
  __syncthreads();
  out[threadIdx.x] = dynamic[threadIdx.x ^ 1] + counter + static_cast<int>(factors[threadIdx.x]);
  out[threadIdx.x] += chosen(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    ++counter;
    ++managed;
    other<<<1, 4, 16>>>(out);
  }
}

int main() {
  int* out;
  cudaMallocManaged(&out, 4 * sizeof(int));
  first<<<1, 4, 16>>>(out);
  launch_other(out);
  cudaDeviceSynchronize();
  std::printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  int count = 0;
  const cudaError_t error = cudaMemcpyFromSymbol(&count, mine, sizeof count);
  std::printf("%s %d %d\n", cudaGetErrorName(error), count, managed);
  return 0;
}
