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
// Reductions: a mask for the modulo; shuffles for barriers; two words a thread.
extern "C" __global__ void reduce_mask(float* out, const float* in) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 1; k < 256; k *= 2) {
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
// Products of matrices, n x n.
extern "C" __global__ void sgemm_naive(float* c, const float* a, const float* b, int n) {
  int row = blockIdx.x * 32 + threadIdx.x % 32, col = blockIdx.y * 8 + threadIdx.x / 32;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}
extern "C" __global__ void sgemm_coalesced(float* c, const float* a, const float* b, int n) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, col = blockIdx.y * 32 + threadIdx.x % 32;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}
extern "C" __global__ void sgemm_global_sum(float* c, const float* a, const float* b, int n) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, col = blockIdx.y * 32 + threadIdx.x % 32;
  for (int k = 0; k < n; ++k) c[row * n + col] += a[row * n + k] * b[k * n + col];
}
extern "C" __global__ void sgemm_shared(float* c, const float* a, const float* b, int n) {
  __shared__ float as[32][32], bs[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  int row = blockIdx.x * 32 + y, col = blockIdx.y * 32 + x;
  float sum[4] = {};
  for (int k = 0; k < n; k += 32) {
    for (int j = 0; j < 32; j += 8) {
      as[y + j][x] = a[(row + j) * n + k + x];
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
extern "C" __global__ void sgemm_column(float* c, const float* a, const float* b, int n) {
  __shared__ float as[32][32], bs[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  int row = blockIdx.x * 32, col = blockIdx.y * 32 + x;
  float sum[4] = {};
  for (int k = 0; k < n; k += 32) {
    for (int j = 0; j < 32; j += 8) {
      as[y + j][x] = a[(row + y + j) * n + k + x];
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
extern "C" __global__ void sgemm_tile(float* c, const float* a, const float* b, int n) {
  __shared__ float as[16][65], bs[16][64];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  int row = blockIdx.x * 64, col = blockIdx.y * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int j = 0; j < 4; ++j) {
      as[threadIdx.x % 16][threadIdx.x / 16 + 16 * j] =
          a[(row + threadIdx.x / 16 + 16 * j) * n + k + threadIdx.x % 16];
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
