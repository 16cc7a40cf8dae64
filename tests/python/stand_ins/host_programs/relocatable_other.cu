// See relocatable.cu.
__device__ int counter = 100;
__constant__ float factors[4] = {1, 2, 3, 4};
__managed__ int managed = 7;
extern __shared__ int dynamic[];

static __device__ int mine = 50;
static __device__ __noinline__ int twice(int x) { return 2 * x + mine; }
template <typename T>
__device__ __noinline__ T triple(T x) {
  return 3 * x;
}
__device__ int add_one(int x) { return x + 1; }

__global__ void other(int* out) {
  dynamic[threadIdx.x] = twice(1) + triple(static_cast<int>(threadIdx.x));
  out[threadIdx.x] += 1000 * dynamic[threadIdx.x] + counter;
}

void launch_other(int* out) { other<<<1, 4, 16>>>(out); }
