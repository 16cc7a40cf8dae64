#define T 32
extern "C" __global__ void transpose_naive(float* out, const float* in, int pitch) {
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  for (int j = 0; j < T; j += 8) out[x * pitch + y + j] = in[(y + j) * pitch + x];
}
extern "C" __global__ void transpose_tiled(float* out, const float* in, int pitch) {
  __shared__ float t[T][T];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  for (int j = 0; j < T; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * pitch + x];
  __syncthreads();
  x = blockIdx.y * T + threadIdx.x;
  y = blockIdx.x * T + threadIdx.y;
  for (int j = 0; j < T; j += 8) out[(y + j) * pitch + x] = t[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void transpose_padded(float* out, const float* in, int pitch) {
  __shared__ float t[T][T + 1];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  for (int j = 0; j < T; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * pitch + x];
  __syncthreads();
  x = blockIdx.y * T + threadIdx.x;
  y = blockIdx.x * T + threadIdx.y;
  for (int j = 0; j < T; j += 8) out[(y + j) * pitch + x] = t[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void reduce_modulo(float* out, const float* in) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 1; k < 256; k *= 2) {
    if (t % (2 * k) == 0) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void reduce_strided(float* out, const float* in) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 1; k < 256; k *= 2) {
    int i = 2 * k * t;
    if (i < 256) s[i] += s[i + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void reduce_sequential(float* out, const float* in) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void branch_lanes(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = in[i];
  if (threadIdx.x & 1) {
    for (int k = 0; k < 64; ++k) v = v * 1.01f + 0.5f;
  } else {
    for (int k = 0; k < 64; ++k) v = sqrtf(v + 1.0f);
  }
  out[i] = v;
}
extern "C" __global__ void branch_warps(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = in[i];
  if (threadIdx.x >= blockDim.x / 2) {
    for (int k = 0; k < 64; ++k) v = v * 1.01f + 0.5f;
  } else {
    for (int k = 0; k < 64; ++k) v = sqrtf(v + 1.0f);
  }
  out[i] = v;
}
extern "C" __global__ void histogram_global(unsigned* bins, const unsigned* in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i]], 1u);
}
extern "C" __global__ void histogram_private(unsigned* bins, const unsigned* in, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&s[in[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
extern "C" __global__ void count_lanes(unsigned* n, const unsigned* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[i] < 128) atomicAdd(n + (blockIdx.x & 63), in[i]);
}
extern "C" __global__ void count_warps(unsigned* n, const unsigned* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = in[i] < 128 ? in[i] : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(n + (blockIdx.x & 63), v);
}
struct P {
  float a[8];
};
extern "C" __global__ void aos(float* out, const P* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int k = 0; k < 8; ++k) v += in[i].a[k];
  out[i] = v;
}
extern "C" __global__ void soa(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int k = 0; k < 8; ++k) v += in[k * n + i];
  out[i] = v;
}
// Reductions of any block: modulo and mask; shuffles for barriers.
extern "C" __global__ void reduce_any_modulo(float* out, const float* in) {
  extern __shared__ float s[];
  unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned k = 1; k < blockDim.x; k *= 2) {
    if (t % (2 * k) == 0) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void reduce_any_mask(float* out, const float* in) {
  extern __shared__ float s[];
  unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned k = 1; k < blockDim.x; k *= 2) {
    if ((t & (2 * k - 1)) == 0) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void reduce_shuffle(float* out, const float* in) {
  __shared__ float s[8];
  int t = threadIdx.x;
  float v = in[blockIdx.x * 256 + t];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (t % 32 == 0) s[t / 32] = v;
  __syncthreads();
  if (t < 32) {
    v = t < 8 ? s[t] : 0;
    for (int d = 4; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (t == 0) out[blockIdx.x] = v;
  }
}
// Products of matrices: n x n results of m products each.
extern "C" __global__ void sgemm_naive(float* c, const float* a, const float* b, int n, int m) {
  int row = blockIdx.x * 32 + threadIdx.x % 32, col = blockIdx.y * 8 + threadIdx.x / 32;
  float sum = 0;
  for (int k = 0; k < m; ++k) sum += a[row * m + k] * b[k * n + col];
  c[row * n + col] = sum;
}
extern "C" __global__ void sgemm_coalesced(float* c, const float* a, const float* b, int n, int m) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, col = blockIdx.y * 32 + threadIdx.x % 32;
  float sum = 0;
  for (int k = 0; k < m; ++k) sum += a[row * m + k] * b[k * n + col];
  c[row * n + col] = sum;
}
extern "C" __global__ void sgemm_global_sum(float* c, const float* a, const float* b, int n,
                                            int m) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, col = blockIdx.y * 32 + threadIdx.x % 32;
  for (int k = 0; k < m; ++k) c[row * n + col] += a[row * m + k] * b[k * n + col];
}
extern "C" __global__ void sgemm_shared(float* c, const float* a, const float* b, int n, int m) {
  __shared__ float as[32][32], bs[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  int row = blockIdx.x * 32 + y, col = blockIdx.y * 32 + x;
  float sum[4] = {};
  for (int k = 0; k < m; k += 32) {
    for (int j = 0; j < 32; j += 8) {
      as[y + j][x] = a[(row + j) * m + k + x];
      bs[y + j][x] = b[(k + y + j) * n + col];
    }
    __syncthreads();
    for (int j = 0; j < 4; ++j) {
#pragma unroll 1
      for (int i = 0; i < 32; ++i) sum[j] += as[y + 8 * j][i] * bs[i][x];
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) c[(row + 8 * j) * n + col] = sum[j];
}
// Four results of a column each, then 4 x 4.
extern "C" __global__ void sgemm_column(float* c, const float* a, const float* b, int n, int m) {
  __shared__ float as[32][32], bs[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  int row = blockIdx.x * 32, col = blockIdx.y * 32 + x;
  float sum[4] = {};
  for (int k = 0; k < m; k += 32) {
    for (int j = 0; j < 32; j += 8) {
      as[y + j][x] = a[(row + y + j) * m + k + x];
      bs[y + j][x] = b[(k + y + j) * n + col];
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
      float v = bs[i][x];
      for (int j = 0; j < 4; ++j) sum[j] += as[4 * y + j][i] * v;
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) c[(row + 4 * y + j) * n + col] = sum[j];
}
extern "C" __global__ void sgemm_tile(float* c, const float* a, const float* b, int n, int m) {
  __shared__ float as[16][65], bs[16][64];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  int row = blockIdx.x * 64, col = blockIdx.y * 64;
  float sum[4][4] = {};
  for (int k = 0; k < m; k += 16) {
    for (int j = 0; j < 4; ++j) {
      as[threadIdx.x % 16][threadIdx.x / 16 + 16 * j] =
          a[(row + threadIdx.x / 16 + 16 * j) * m + k + threadIdx.x % 16];
      bs[threadIdx.x / 64 + 4 * j][threadIdx.x % 64] =
          b[(k + threadIdx.x / 64 + 4 * j) * n + col + threadIdx.x % 64];
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
      float u[4], v[4];
      for (int j = 0; j < 4; ++j) u[j] = as[i][y + 16 * j];
      for (int j = 0; j < 4; ++j) v[j] = bs[i][x + 16 * j];
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] += u[p] * v[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(row + y + 16 * p) * n + col + x + 16 * q] = sum[p][q];
}
// Histograms in shared memory: one, and a copy for each lane.
extern "C" __global__ void histogram_copies(unsigned* bins, const unsigned* in, int n) {
  __shared__ unsigned s[32 * 65];
  for (int i = threadIdx.x; i < 32 * 65; i += 256) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&s[threadIdx.x % 32 * 65 + in[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64) {
    unsigned sum = 0;
    for (int c = 0; c < 32; ++c) sum += s[c * 65 + threadIdx.x];
    atomicAdd(&bins[threadIdx.x], sum);
  }
}
extern "C" __global__ void histogram_one(unsigned* bins, const unsigned* in, int n) {
  __shared__ unsigned s[64];
  if (threadIdx.x < 64) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&s[in[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
// Stencils: radius 8 in one dimension, five points in two.
extern "C" __global__ void stencil_global(float* out, const float* in) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = 0;
  for (int k = 0; k <= 16; ++k) v += in[i + k] * (k + 1);
  out[i] = v;
}
extern "C" __global__ void stencil_shared(float* out, const float* in) {
  __shared__ float s[272];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = in[i];
  if (t < 16) s[t + 256] = in[i + 256];
  __syncthreads();
  float v = 0;
  for (int k = 0; k <= 16; ++k) v += s[t + k] * (k + 1);
  out[i] = v;
}
extern "C" __global__ void plane_global(float* out, const float* in, int n) {
  int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1;
  out[y * n + x] = in[y * n + x] + in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] +
                   in[(y + 1) * n + x];
}
extern "C" __global__ void plane_shared(float* out, const float* in, int n) {
  __shared__ float s[10][34];
  int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1;
  int t = threadIdx.y * 32 + threadIdx.x;
  for (int i = t; i < 340; i += 256)
    s[i / 34][i % 34] = in[(blockIdx.y * 8 + i / 34) * n + blockIdx.x * 32 + i % 34];
  __syncthreads();
  int u = threadIdx.x + 1, v = threadIdx.y + 1;
  out[y * n + x] = s[v][u] + s[v][u - 1] + s[v][u + 1] + s[v - 1][u] + s[v + 1][u];
}
// Sparse matrices: a thread per row, a warp per row, columns of entries.
extern "C" __global__ void spmv_scalar(float* y, const float* values, const int* columns,
                                       const int* first, const float* x) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int e = first[row]; e < first[row + 1]; ++e) sum += values[e] * x[columns[e]];
  y[row] = sum;
}
extern "C" __global__ void spmv_vector(float* y, const float* values, const int* columns,
                                       const int* first, const float* x) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float sum = 0;
  for (int e = first[row] + threadIdx.x % 32; e < first[row + 1]; e += 32)
    sum += values[e] * x[columns[e]];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) y[row] = sum;
}
extern "C" __global__ void spmv_ell(float* y, const float* values, const int* columns, int rows,
                                    int entries, const float* x) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int e = 0; e < entries; ++e) sum += values[e * rows + row] * x[columns[e * rows + row]];
  y[row] = sum;
}
// A matrix by places: rows and columns from a division, by shift and mask.
extern "C" __global__ void place_division(float* out, const float* in, unsigned width) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (unsigned k = 0; k < 8; ++k) {
    unsigned j = i + k * gridDim.x * blockDim.x;
    v += in[j] * float(j % width) + float(j / width);
  }
  out[i] = v;
}
extern "C" __global__ void place_shift(float* out, const float* in, unsigned bits) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (unsigned k = 0; k < 8; ++k) {
    unsigned j = i + k * gridDim.x * blockDim.x;
    v += in[j] * float(j & ((1u << bits) - 1)) + float(j >> bits);
  }
  out[i] = v;
}
// Each thread a chunk of neighbours, or steps of the grid.
extern "C" __global__ void chunk_each(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int k = 0; k < 16; ++k) v += in[i * 16 + k];
  out[i] = v;
}
extern "C" __global__ void chunk_steps(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int k = 0; k < 16; ++k) v += in[k * gridDim.x * blockDim.x + i];
  out[i] = v;
}
// Work of a block, long enough to count waves.
extern "C" __global__ void waves_each(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = in[i];
  for (int k = 0; k < 128; ++k) v = v * 1.01f + 0.5f;
  out[i] = v;
}
extern "C" __global__ void waves_turns(float* out, const float* in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = in[i];
    for (int k = 0; k < 128; ++k) v = v * 1.01f + 0.5f;
    out[i] = v;
  }
}
// A product of matrix and vector, with the sum in memory or in a register.
extern "C" __global__ void product_memory(float* y, const float* a, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 0;
  for (int k = 0; k < n; ++k) y[i] += a[k * gridDim.x * blockDim.x + i] * x[k];
}
extern "C" __global__ void product_register(float* y, const float* a, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[k * gridDim.x * blockDim.x + i] * x[k];
  y[i] = sum;
}
// Lanes that take four ways, and warps that do.
extern "C" __global__ void ways_lanes(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, way = threadIdx.x % 4;
  float v = in[i];
  if (way == 0)
    for (int k = 0; k < 32; ++k) v = v * 1.01f + 0.5f;
  else if (way == 1)
    for (int k = 0; k < 32; ++k) v = sqrtf(v + 1.0f);
  else if (way == 2)
    for (int k = 0; k < 32; ++k) v = __sinf(v) + 0.1f;
  else
    for (int k = 0; k < 32; ++k) v = __expf(-v) + v;
  out[i] = v;
}
extern "C" __global__ void ways_warps(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, way = threadIdx.x / 64;
  float v = in[i];
  if (way == 0)
    for (int k = 0; k < 32; ++k) v = v * 1.01f + 0.5f;
  else if (way == 1)
    for (int k = 0; k < 32; ++k) v = sqrtf(v + 1.0f);
  else if (way == 2)
    for (int k = 0; k < 32; ++k) v = __sinf(v) + 0.1f;
  else
    for (int k = 0; k < 32; ++k) v = __expf(-v) + v;
  out[i] = v;
}
// Rows of 64 words: a thread each, a warp each; sums, softmax, products with a vector.
extern "C" __global__ void rows_thread(float* out, const float* in) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int k = 0; k < 64; ++k) v += in[row * 64 + k];
  out[row] = v;
}
extern "C" __global__ void rows_warp(float* out, const float* in) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float v = in[row * 64 + lane] + in[row * 64 + lane + 32];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  if (lane == 0) out[row] = v;
}
extern "C" __global__ void softmax_thread(float* out, const float* in) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float most = -1e30f, sum = 0;
  for (int k = 0; k < 64; ++k) most = fmaxf(most, in[row * 64 + k]);
  for (int k = 0; k < 64; ++k) sum += __expf(in[row * 64 + k] - most);
  for (int k = 0; k < 64; ++k) out[row * 64 + k] = __expf(in[row * 64 + k] - most) / sum;
}
extern "C" __global__ void softmax_warp(float* out, const float* in) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float a = in[row * 64 + lane], b = in[row * 64 + lane + 32], most = fmaxf(a, b);
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  a = __expf(a - most);
  b = __expf(b - most);
  float sum = a + b;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  out[row * 64 + lane] = a / sum;
  out[row * 64 + lane + 32] = b / sum;
}
extern "C" __global__ void softmax_tree(float* out, const float* in) {
  __shared__ float s[256];
  int t = threadIdx.x;
  float v = in[blockIdx.x * 256 + t];
  s[t] = v;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] = fmaxf(s[t], s[t + k]);
    __syncthreads();
  }
  v = __expf(v - s[0]);
  __syncthreads();
  s[t] = v;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = v / s[0];
}
extern "C" __global__ void softmax_shuffle(float* out, const float* in) {
  __shared__ float s[16];
  int t = threadIdx.x;
  float v = in[blockIdx.x * 256 + t], most = v;
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  if (t % 32 == 0) s[t / 32] = most;
  __syncthreads();
  for (int k = 0; k < 8; ++k) most = fmaxf(most, s[k]);
  v = __expf(v - most);
  float sum = v;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (t % 32 == 0) s[8 + t / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < 8; ++k) sum += s[8 + k];
  out[blockIdx.x * 256 + t] = v / sum;
}
// One field of a structure of sixteen, and the fields apart.
extern "C" __global__ void field_of_many(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i * 16] * 2.0f;
}
extern "C" __global__ void field_apart(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 2.0f;
}
// Scans of a block: in a tree, with and without padding; by steps; by shuffles.
extern "C" __global__ void scan_tree(float* out, const float* in) {
  __shared__ float s[512];
  int t = threadIdx.x;
  s[2 * t] = in[blockIdx.x * 512 + t];
  s[2 * t + 1] = in[blockIdx.x * 512 + 256 + t];
  for (int d = 256, o = 1; d > 0; d /= 2, o *= 2) {
    __syncthreads();
    if (t < d) s[o * (2 * t + 2) - 1] += s[o * (2 * t + 1) - 1];
  }
  for (int d = 1, o = 256; d < 256; d *= 2, o /= 2) {
    __syncthreads();
    if (t < d) s[o * (2 * t + 2) - 1] += s[o * (2 * t + 1) - 1];
  }
  __syncthreads();
  out[blockIdx.x * 512 + t] = s[t];
  out[blockIdx.x * 512 + 256 + t] = s[t + 256];
}
#define P(i) ((i) + (i) / 32)
extern "C" __global__ void scan_padded(float* out, const float* in) {
  __shared__ float s[512 + 16];
  int t = threadIdx.x;
  s[P(2 * t)] = in[blockIdx.x * 512 + t];
  s[P(2 * t + 1)] = in[blockIdx.x * 512 + 256 + t];
  for (int d = 256, o = 1; d > 0; d /= 2, o *= 2) {
    __syncthreads();
    if (t < d) s[P(o * (2 * t + 2) - 1)] += s[P(o * (2 * t + 1) - 1)];
  }
  for (int d = 1, o = 256; d < 256; d *= 2, o /= 2) {
    __syncthreads();
    if (t < d) s[P(o * (2 * t + 2) - 1)] += s[P(o * (2 * t + 1) - 1)];
  }
  __syncthreads();
  out[blockIdx.x * 512 + t] = s[P(t)];
  out[blockIdx.x * 512 + 256 + t] = s[P(t + 256)];
}
#undef P
extern "C" __global__ void scan_steps(float* out, const float* in) {
  __shared__ float s[2][256];
  int t = threadIdx.x, from = 0;
  s[0][t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2, from ^= 1) {
    s[from ^ 1][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = s[from][t];
}
extern "C" __global__ void scan_shuffle(float* out, const float* in) {
  __shared__ float s[8];
  int t = threadIdx.x;
  float v = in[blockIdx.x * 256 + t];
  for (int d = 1; d < 32; d *= 2) {
    float u = __shfl_up_sync(~0u, v, d);
    if (t % 32 >= d) v += u;
  }
  if (t % 32 == 31) s[t / 32] = v;
  __syncthreads();
  for (int k = 0; k < t / 32; ++k) v += s[k];
  out[blockIdx.x * 256 + t] = v;
}
// Columns of a tile in shared memory, read many times.
template <int W>
__device__ void columns(float* out, const float* in) {
  __shared__ float s[32 * W];
  int t = threadIdx.x;
  for (int k = 0; k < 4; ++k)
    s[(t / 32 + 8 * k) * W + t % 32] = in[blockIdx.x * 1024 + 256 * k + t];
  __syncthreads();
  float v = 0;
  for (int k = 0; k < 32; ++k) v = v * 0.5f + s[t % 32 * W + (k + t / 32) % 32];
  out[blockIdx.x * 256 + t] = v;
}
extern "C" __global__ void columns_32(float* out, const float* in) { columns<32>(out, in); }
extern "C" __global__ void columns_33(float* out, const float* in) { columns<33>(out, in); }
// Bodies that attract each other in one dimension.
extern "C" __global__ void bodies_global(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i], v = 0;
  for (int k = 0; k < n; ++k) {
    float d = in[k] - x;
    v += d * rsqrtf(d * d + 0.01f);
  }
  out[i] = v;
}
extern "C" __global__ void bodies_shared(float* out, const float* in, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i], v = 0;
  for (int k = 0; k < n; k += 256) {
    s[threadIdx.x] = in[k + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 256; ++j) {
      float d = s[j] - x;
      v += d * rsqrtf(d * d + 0.01f);
    }
    __syncthreads();
  }
  out[i] = v;
}
// Loops whose lengths the data say; work for some of the threads.
extern "C" __global__ void lengths(float* out, const int* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 1;
#pragma unroll 1
  for (int k = 0; k < in[i]; ++k) v = v * 1.01f + 0.5f;
  out[i] = v;
}
extern "C" __global__ void some_work(float* out, const int* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i;
  if (in[i] < 16)
    for (int k = 0; k < 64; ++k) v = sqrtf(v + 1.0f);
  out[i] = v;
}
// Places in four dimensions, and of a table of hashed keys.
extern "C" __global__ void decode_division(unsigned* out, const unsigned* in, unsigned a,
                                           unsigned b) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    unsigned x = v % a, y = v / a % b, z = v / a / b;
    v += x * 3 + y * 5 + z * 7 + k;
  }
  out[i] = v;
}
extern "C" __global__ void decode_shift(unsigned* out, const unsigned* in, unsigned a, unsigned b) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    unsigned x = v & ((1u << a) - 1), y = (v >> a) & ((1u << b) - 1), z = v >> (a + b);
    v += x * 3 + y * 5 + z * 7 + k;
  }
  out[i] = v;
}
extern "C" __global__ void hash_modulo(unsigned* out, const unsigned* in, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long v = in[i], m = n;
#pragma unroll 1
  for (int k = 0; k < 4; ++k) v = (v * 6364136223846793005ull + 1) % m;
  out[i] = v;
}
extern "C" __global__ void hash_mask(unsigned* out, const unsigned* in, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long v = in[i], m = n;
#pragma unroll 1
  for (int k = 0; k < 4; ++k) v = (v * 6364136223846793005ull + 1) & (m - 1);
  out[i] = v;
}
// A sum of all threads: atomics of each, of each block, of each warp.
extern "C" __global__ void sum_each(unsigned* out, const unsigned* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out + in[i] % 8, in[i] + 1);
}
extern "C" __global__ void sum_block(unsigned* out, const unsigned* in) {
  __shared__ unsigned s[8];
  if (threadIdx.x < 8) s[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(s + in[i] % 8, in[i] + 1);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(out + threadIdx.x, s[threadIdx.x]);
}
extern "C" __global__ void maximum_each(int* out, const int* in) {
  atomicMax(out + blockIdx.x % 16 * 8, in[blockIdx.x * blockDim.x + threadIdx.x]);
}
extern "C" __global__ void maximum_warp(int* out, const int* in) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v = max(v, __shfl_xor_sync(~0u, v, d));
  if (threadIdx.x % 32 == 0) atomicMax(out + blockIdx.x % 16 * 8, v);
}
// Bins that most lanes share, in one copy and a copy for each lane.
extern "C" __global__ void bins_one(unsigned* out, const unsigned* in) {
  __shared__ unsigned s[16];
  unsigned t = threadIdx.x, v = in[blockIdx.x * blockDim.x + t];
  if (t < 16) s[t] = 0;
  __syncthreads();
#pragma unroll 1
  for (unsigned k = 0; k < 64; ++k) {
    v = v * 1664525u + 1013904223u;
    atomicAdd(s + (v >> 31), k);
  }
  __syncthreads();
  if (t < 16) atomicAdd(out + t, s[t]);
}
extern "C" __global__ void bins_copies(unsigned* out, const unsigned* in) {
  __shared__ unsigned s[32 * 16];
  unsigned t = threadIdx.x, v = in[blockIdx.x * blockDim.x + t];
  s[t] = s[t + 256] = 0;
  __syncthreads();
#pragma unroll 1
  for (unsigned k = 0; k < 64; ++k) {
    v = v * 1664525u + 1013904223u;
    atomicAdd(s + t % 32 + 32 * (v >> 31), k);
  }
  __syncthreads();
  if (t < 16) {
    unsigned sum = 0;
    for (int k = 0; k < 32; ++k) sum += s[32 * t + k];
    atomicAdd(out + t, sum);
  }
}
// A chain of loads, with so much shared memory as the launch asks for.
extern "C" __global__ void chain(float* out, const unsigned* in, int n) {
  extern __shared__ float s[];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = 1;
#pragma unroll 1
  for (int k = 0; k < n; ++k) i = in[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = i + s[threadIdx.x];
}
// A value that is loaded for each store, and one that is stored for each sum.
extern "C" __global__ void scale_memory(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) out[i] += in[i] * k;
}
extern "C" __global__ void scale_register(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = in[i], sum = 0;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) sum += v * k;
  out[i] = sum;
}
// Filters of 32 words: a result of a thread from shared memory, and four.
extern "C" __global__ void filter_one(float* out, const float* in) {
  __shared__ float s[256 + 32], f[32];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = in[i];
  if (t < 32) s[256 + t] = in[i + 256], f[t] = t;
  __syncthreads();
  float v = 0;
#pragma unroll 1
  for (int k = 0; k < 32; ++k) v += s[t + k] * f[k];
  out[i] = v;
}
extern "C" __global__ void filter_four(float* out, const float* in) {
  __shared__ float s[256 + 32], f[32];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  for (int j = 0; j < 256; j += 64) s[t + j] = in[i + j];
  if (t < 32) s[256 + t] = in[i + 256], f[t] = t;
  __syncthreads();
  float v[4] = {};
#pragma unroll 1
  for (int k = 0; k < 32; k += 4) {
    float a[4];
    for (int j = 0; j < 4; ++j) a[j] = f[k + j];
    for (int j = 0; j < 7; ++j) {
      float b = s[4 * t + k + j];
      for (int r = 0; r < 4; ++r)
        if (j - r >= 0 && j - r < 4) v[r] += b * a[j - r];
    }
  }
  for (int r = 0; r < 4; ++r) out[blockIdx.x * 256 + 4 * t + r] = v[r];
}
// A copy of a matrix, whose lanes go down the columns or along the rows.
extern "C" __global__ void copy_columns(float* out, const float* in, int n) {
  int x = blockIdx.x * 8 + threadIdx.x / 32, y = blockIdx.y * 32 + threadIdx.x % 32;
  out[y * n + x] = in[y * n + x];
}
extern "C" __global__ void copy_rows(float* out, const float* in, int n) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  out[y * n + x] = in[y * n + x];
}
extern "C" __global__ void gather(float* out, const float* in, const int* place) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[place[i]];
}
extern "C" __global__ void every_eighth(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int k = 0; k < 8; ++k) v += in[i * 8 + k * 8 * gridDim.x * blockDim.x];
  out[i] = v;
}
extern "C" __global__ void each_one(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int k = 0; k < 8; ++k) v += in[i + k * gridDim.x * blockDim.x];
  out[i] = v;
}
