// Sums of an array, in the steps of a well-known course: a block adds up its part in shared memory.

#define BLOCK 256

// The last 64 sums, by one warp without barriers.
__device__ void add_warp(volatile float* sums, int lane) {
#pragma unroll
  for (int half = 32; half > 0; half /= 2) sums[lane] += sums[lane + half];
}

// From half a block down to `last` threads, a barrier after each step.
__device__ void add_halves(float* sums, int last) {
  for (unsigned half = blockDim.x / 2; half > last; half >>= 1) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
}

// The same of 256 threads, in straight code.
__device__ void add_unrolled(float* sums) {
#pragma unroll
  for (int half = BLOCK / 2; half > 32; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
}

__device__ void put(float* out, const float* sums) {
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

// Every second, fourth, ... thread: lanes of a warp part.
extern "C" __global__ void reduce_0(const float* in, float* out) {
  __shared__ float sums[BLOCK];
  sums[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    if (threadIdx.x % (2 * step) == 0) sums[threadIdx.x] += sums[threadIdx.x + step];
    __syncthreads();
  }
  put(out, sums);
}

// Neighbouring threads at strides: banks conflict.
extern "C" __global__ void reduce_1(const float* in, float* out) {
  __shared__ float sums[BLOCK];
  sums[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    const unsigned at = 2 * step * threadIdx.x;
    if (at < blockDim.x) sums[at] += sums[at + step];
    __syncthreads();
  }
  put(out, sums);
}

// Halves.
extern "C" __global__ void reduce_2(const float* in, float* out) {
  __shared__ float sums[BLOCK];
  sums[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  add_halves(sums, 0);
  put(out, sums);
}

// Two loads a thread.
extern "C" __global__ void reduce_3(const float* in, float* out) {
  __shared__ float sums[BLOCK];
  const unsigned at = blockIdx.x * (2 * blockDim.x) + threadIdx.x;
  sums[threadIdx.x] = in[at] + in[at + blockDim.x];
  __syncthreads();
  add_halves(sums, 0);
  put(out, sums);
}

// The last warp without barriers.
extern "C" __global__ void reduce_4(const float* in, float* out) {
  __shared__ float sums[BLOCK];
  const unsigned at = blockIdx.x * (2 * blockDim.x) + threadIdx.x;
  sums[threadIdx.x] = in[at] + in[at + blockDim.x];
  __syncthreads();
  add_halves(sums, 32);
  if (threadIdx.x < 32) add_warp(sums, threadIdx.x);
  put(out, sums);
}

// No loop.
extern "C" __global__ void reduce_5(const float* in, float* out) {
  __shared__ float sums[BLOCK];
  const unsigned at = blockIdx.x * (2 * blockDim.x) + threadIdx.x;
  sums[threadIdx.x] = in[at] + in[at + blockDim.x];
  __syncthreads();
  add_unrolled(sums);
  if (threadIdx.x < 32) add_warp(sums, threadIdx.x);
  put(out, sums);
}

// So many loads a thread, in straight code.
template <int EACH>
__device__ void reduce_many(const float* in, float* out) {
  __shared__ float sums[BLOCK];
  const unsigned at = blockIdx.x * (BLOCK * EACH) + threadIdx.x;
  sums[threadIdx.x] = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i) sums[threadIdx.x] += in[at + i * BLOCK];
  __syncthreads();
  add_unrolled(sums);
  if (threadIdx.x < 32) add_warp(sums, threadIdx.x);
  put(out, sums);
}

template <int WIDTH>
__device__ float add_lanes(float value) {
#pragma unroll
  for (int half = WIDTH / 2; half > 0; half /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, half);
  }
  return value;
}

// The sum of a block of values in registers.
__device__ void reduce_registers(float sum, float* out) {
  __shared__ float of_warp[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  sum = add_lanes<32>(sum);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  sum = threadIdx.x < BLOCK / 32 ? of_warp[lane] : 0;
  if (warp == 0) sum = add_lanes<BLOCK / 32>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// The same with shuffles.
template <int EACH>
__device__ void reduce_shuffles(const float* in, float* out) {
  const unsigned at = blockIdx.x * (BLOCK * EACH) + threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i) sum += in[at + i * BLOCK];
  reduce_registers(sum, out);
}

// 2^25 floats are 128 for each thread of 1024 blocks.
extern "C" __global__ void reduce_6(const float* in, float* out) { reduce_many<128>(in, out); }
extern "C" __global__ void reduce_7(const float* in, float* out) { reduce_shuffles<128>(in, out); }

// Four floats a load, blocks that fill the GPU once.
extern "C" __global__ void reduce_8(const float* in, float* out, unsigned n) {
  float4 sums = make_float4(0, 0, 0, 0);
  const float4* packs = reinterpret_cast<const float4*>(in);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += blockDim.x * gridDim.x) {
    const float4 pack = packs[i];
    sums.x += pack.x;
    sums.y += pack.y;
    sums.z += pack.z;
    sums.w += pack.w;
  }
  reduce_registers(sums.x + sums.y + sums.z + sums.w, out);
}
