// The simple kernels of the set kernel-performance-prediction. What they only read is restricted,
// so that Maxwell's L1 may hold it.

extern "C" __global__ void add(const float* __restrict__ a, const float* __restrict__ b, float* c,
                               int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy(const float* __restrict__ a, const float* __restrict__ b, float* c,
                                 float alpha, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = alpha * a[i] + b[i];
}

extern "C" __global__ void strided_copy(const float* __restrict__ in, float* out, int n,
                                        int stride) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
  if (i < n) out[i] = in[i];
}

extern "C" __global__ void gather(const float* __restrict__ in, const int* __restrict__ index,
                                  float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[index[i]];
}

extern "C" __global__ void reduce_sum(const float* __restrict__ in, float* out, int n) {
  extern __shared__ float part[];
  unsigned t = threadIdx.x;
  unsigned i = blockIdx.x * blockDim.x * 2 + t;
  float sum = 0;
  if (i < n) sum += in[i];
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  part[t] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

extern "C" __global__ void dot(const float* __restrict__ a, const float* __restrict__ b, float* out,
                               int n) {
  extern __shared__ float part[];
  unsigned t = threadIdx.x;
  unsigned i = blockIdx.x * blockDim.x * 2 + t;
  float sum = 0;
  if (i < n) sum += a[i] * b[i];
  if (i + blockDim.x < n) sum += a[i + blockDim.x] * b[i + blockDim.x];
  part[t] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

extern "C" __global__ void histogram(const unsigned* __restrict__ in, unsigned* bins, int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&own[in[i] & 255], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void product_naive(const float* __restrict__ a, const float* __restrict__ b,
                                         float* c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && column < n) {
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
  }
}

extern "C" __global__ void product_tiled(const float* __restrict__ a, const float* __restrict__ b,
                                         float* c, int n) {
  __shared__ float tile_a[32][32];
  __shared__ float tile_b[32][32];
  int row = blockIdx.y * 32 + threadIdx.y;
  int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += 32) {
    tile_a[threadIdx.y][threadIdx.x] =
        row < n && t + threadIdx.x < n ? a[row * n + t + threadIdx.x] : 0;
    tile_b[threadIdx.y][threadIdx.x] =
        t + threadIdx.y < n && column < n ? b[(t + threadIdx.y) * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

extern "C" __global__ void transpose_direct(const float* __restrict__ in, float* out, int rows,
                                            int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}

extern "C" __global__ void transpose_shared(const float* __restrict__ in, float* out, int rows,
                                            int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

template <int K>
__device__ void convolve(const float* __restrict__ in, const float* __restrict__ weights,
                         float* out, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width - K + 1 || y >= height - K + 1) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < K; ++i) {
#pragma unroll
    for (int j = 0; j < K; ++j) sum += in[(y + i) * width + x + j] * weights[i * K + j];
  }
  out[y * (width - K + 1) + x] = sum;
}

extern "C" __global__ void convolve_3(const float* __restrict__ in,
                                      const float* __restrict__ weights, float* out, int height,
                                      int width) {
  convolve<3>(in, weights, out, height, width);
}

extern "C" __global__ void convolve_7(const float* __restrict__ in,
                                      const float* __restrict__ weights, float* out, int height,
                                      int width) {
  convolve<7>(in, weights, out, height, width);
}

extern "C" __global__ void hot_counter(unsigned* counter, int iterations) {
  for (int i = 0; i < iterations; ++i) atomicAdd(counter, 1u);
}

extern "C" __global__ void add_divergent(const float* __restrict__ a, const float* __restrict__ b,
                                         float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (threadIdx.x % 2 == 0) {
    float sum = 0;
    // The times show that the loop was not folded into a constant.
#pragma unroll 4
    for (int t = 0; t < 128; ++t) sum += 0.0001f * t;
    c[i] = a[i] + b[i] + sum;
  } else {
    c[i] = a[i] + b[i];
  }
}
