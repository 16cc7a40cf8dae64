// Sums of vectors with one, two and four elements a thread; products of a matrix of few columns
// with a vector, a warp for a row or for two; reads of a large array.

extern "C" __global__ void add_1(const float* a, const float* b, float* c) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  c[i] = a[i] + b[i];
}

extern "C" __global__ void add_2(const float2* a, const float2* b, float2* c) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  const float2 x = a[i];
  const float2 y = b[i];
  c[i] = make_float2(x.x + y.x, x.y + y.y);
}

extern "C" __global__ void add_4(const float4* a, const float4* b, float4* c) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  const float4 x = a[i];
  const float4 y = b[i];
  c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

template <int WIDTH>
__device__ float add_lanes(float value) {
#pragma unroll
  for (int half = WIDTH / 2; half > 0; half /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, half);
  }
  return value;
}

// Columns a lane at a time.
extern "C" __global__ void matvec_0(const float* __restrict__ a, const float* __restrict__ x,
                                    float* __restrict__ y, int rows, int columns) {
  const int lane = threadIdx.x % 32;
  const int row = blockDim.y * blockIdx.x + threadIdx.y;
  if (row >= rows) return;
  float sum = 0;
  const int steps = max(columns / 32, 1);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int column = step * 32 + lane;
    sum += a[row * columns + column] * x[column];
  }
  sum = add_lanes<32>(sum);
  if (lane == 0) y[row] = sum;
}

// Four columns a lane.
extern "C" __global__ void matvec_1(const float* __restrict__ a, const float* __restrict__ x,
                                    float* __restrict__ y, int rows, int columns) {
  const int lane = threadIdx.x % 32;
  const int row = blockDim.y * blockIdx.x + threadIdx.y;
  if (row >= rows) return;
  const float4* line = reinterpret_cast<const float4*>(a + row * columns);
  const float4* given = reinterpret_cast<const float4*>(x);
  float sum = 0;
  const int steps = max(columns / 128, 1);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const float4 p = line[step * 32 + lane];
    const float4 q = given[step * 32 + lane];
    sum += p.x * q.x;
    sum += p.y * q.y;
    sum += p.z * q.z;
    sum += p.w * q.w;
  }
  sum = add_lanes<32>(sum);
  if (lane == 0) y[row] = sum;
}

// Two rows of 16 columns a warp.
extern "C" __global__ void matvec_2(const float* __restrict__ a, const float* __restrict__ x,
                                    float* __restrict__ y, int rows, int columns) {
  const int lane = threadIdx.x % 32;
  const int column = lane % 16;
  const int row = (blockDim.y * blockIdx.x + threadIdx.y) * 2 + lane / 16;
  if (row >= rows) return;
  const float sum = add_lanes<16>(a[row * columns + column] * x[column]);
  if (column == 0) y[row] = sum;
}

// A whole array, by blocks that stay.
extern "C" __global__ void read_all(const uint4* in, uint4* out, unsigned n) {
  uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 4
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    const uint4 value = in[i];
    sum.x ^= value.x;
    sum.y ^= value.y;
    sum.z ^= value.z;
    sum.w ^= value.w;
  }
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x12345678u) out[threadIdx.x] = sum;
}
