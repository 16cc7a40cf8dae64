// Pairs that were written before the costs of changes were priced: the third part of the study.
// Reductions of two words per thread (Harris's 4), unrolled without the barriers of the last warp
// (6), and of many words per thread (7).
extern "C" __global__ void reduce_one(float* out, const float* in, int n) {
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
extern "C" __global__ void reduce_two(float* out, const float* in, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 512 + t] + in[blockIdx.x * 512 + 256 + t];
  __syncthreads();
#pragma unroll 1
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__device__ void end_of_sum(float* out, volatile float* s, int t) {
  if (t < 128) s[t] += s[t + 128];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void reduce_unrolled(float* out, const float* in, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 512 + t] + in[blockIdx.x * 512 + 256 + t];
  __syncthreads();
  end_of_sum(out, s, t);
}
extern "C" __global__ void reduce_many(float* out, const float* in, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  float v = 0;
  for (int i = blockIdx.x * 512 + t; i < n; i += gridDim.x * 512) v += in[i] + in[i + 256];
  s[t] = v;
  __syncthreads();
  end_of_sum(out, s, t);
}
// A transpose whose blocks go along diagonals.
extern "C" __global__ void transpose_straight(float* out, const float* in, int pitch) {
  __shared__ float t[32][33];
  int bx = blockIdx.x, by = blockIdx.y;
  int x = bx * 32 + threadIdx.x, y = by * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * pitch + x];
  __syncthreads();
  x = by * 32 + threadIdx.x;
  y = bx * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * pitch + x] = t[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void transpose_diagonal(float* out, const float* in, int pitch) {
  __shared__ float t[32][33];
  int by = blockIdx.x, bx = (blockIdx.x + blockIdx.y) % gridDim.x;
  int x = bx * 32 + threadIdx.x, y = by * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * pitch + x];
  __syncthreads();
  x = by * 32 + threadIdx.x;
  y = bx * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * pitch + x] = t[threadIdx.x][threadIdx.y + j];
}
// Four neighbouring words of a thread, loaded and stored one by one and together.
extern "C" __global__ void words_each(float* out, const float* in) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  for (int k = 0; k < 4; ++k) out[i + k] = in[i + k] * 2.0f + 1.0f;
}
extern "C" __global__ void words_four(float4* out, const float4* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = in[i];
  out[i] = make_float4(v.x * 2.0f + 1.0f, v.y * 2.0f + 1.0f, v.z * 2.0f + 1.0f, v.w * 2.0f + 1.0f);
}
// Softmax of rows of 1024 words, a warp each: in three passes, and with greatest value and sum in
// one.
__device__ float warp_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}
extern "C" __global__ void softmax_passes(float* out, const float* in) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float most = -1e30f, sum = 0;
  for (int k = lane; k < 1024; k += 32) most = fmaxf(most, in[row * 1024 + k]);
  most = warp_max(most);
  for (int k = lane; k < 1024; k += 32) sum += __expf(in[row * 1024 + k] - most);
  sum = warp_sum(sum);
  for (int k = lane; k < 1024; k += 32)
    out[row * 1024 + k] = __expf(in[row * 1024 + k] - most) / sum;
}
extern "C" __global__ void softmax_online(float* out, const float* in) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float most = -1e30f, sum = 0;
  for (int k = lane; k < 1024; k += 32) {
    float v = in[row * 1024 + k], more = fmaxf(most, v);
    sum = sum * __expf(most - more) + __expf(v - more);
    most = more;
  }
  float all = warp_max(most);
  sum = warp_sum(sum * __expf(most - all));
  for (int k = lane; k < 1024; k += 32)
    out[row * 1024 + k] = __expf(in[row * 1024 + k] - all) / sum;
}
// Histograms of 64 bins in shared memory: one of the block, and one of each warp.
extern "C" __global__ void bins_of_block(unsigned* bins, const unsigned* in, int n) {
  __shared__ unsigned s[64];
  if (threadIdx.x < 64) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&s[in[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
extern "C" __global__ void bins_of_warps(unsigned* bins, const unsigned* in, int n) {
  __shared__ unsigned s[8 * 64];
  for (int i = threadIdx.x; i < 8 * 64; i += 256) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&s[threadIdx.x / 32 * 64 + in[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64) {
    unsigned sum = 0;
    for (int c = 0; c < 8; ++c) sum += s[c * 64 + threadIdx.x];
    atomicAdd(&bins[threadIdx.x], sum);
  }
}
// Seven points in three dimensions: planes one after the other, with the column of a thread in
// memory and in registers.
extern "C" __global__ void space_memory(float* out, const float* in, int n, int planes) {
  int i = (blockIdx.y * 8 + threadIdx.y + 1) * n + blockIdx.x * 32 + threadIdx.x + 1, p = n * n;
#pragma unroll 1
  for (int z = 1; z + 1 < planes; ++z) {
    int j = z * p + i;
    out[j] = in[j] * 0.5f + in[j - p] + in[j + p] + in[j - n] + in[j + n] + in[j - 1] + in[j + 1];
  }
}
extern "C" __global__ void space_registers(float* out, const float* in, int n, int planes) {
  int i = (blockIdx.y * 8 + threadIdx.y + 1) * n + blockIdx.x * 32 + threadIdx.x + 1, p = n * n;
  float below = in[i], here = in[i + p];
#pragma unroll 1
  for (int z = 1; z + 1 < planes; ++z) {
    int j = z * p + i;
    float above = in[j + p];
    out[j] = here * 0.5f + below + above + in[j - n] + in[j + n] + in[j - 1] + in[j + 1];
    below = here;
    here = above;
  }
}
// A matrix in ELL whose entries lie row by row, and column by column.
extern "C" __global__ void ell_rows(float* y, const float* values, const int* columns, int rows,
                                    int entries, const float* x) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int e = 0; e < entries; ++e)
    sum += values[row * entries + e] * x[columns[row * entries + e]];
  y[row] = sum;
}
extern "C" __global__ void ell_columns(float* y, const float* values, const int* columns, int rows,
                                       int entries, const float* x) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int e = 0; e < entries; ++e) sum += values[e * rows + row] * x[columns[e * rows + row]];
  y[row] = sum;
}
// Structures of eight words in shared memory, and their fields apart.
extern "C" __global__ void fields_together(float* out, const float* in) {
  __shared__ float s[256 * 8];
  int t = threadIdx.x;
  for (int k = 0; k < 8; ++k) s[8 * t + k] = in[k * gridDim.x * 256 + blockIdx.x * 256 + t];
  __syncthreads();
  float v = 0;
  int u = 255 - t;
#pragma unroll 4
  for (int r = 0; r < 16; ++r) v = v * s[8 * u + r % 8] + s[8 * u + (r + 3) % 8];
  out[blockIdx.x * 256 + t] = v;
}
extern "C" __global__ void fields_apart(float* out, const float* in) {
  __shared__ float s[256 * 8];
  int t = threadIdx.x;
  for (int k = 0; k < 8; ++k) s[256 * k + t] = in[k * gridDim.x * 256 + blockIdx.x * 256 + t];
  __syncthreads();
  float v = 0;
  int u = 255 - t;
#pragma unroll 4
  for (int r = 0; r < 16; ++r) v = v * s[256 * (r % 8) + u] + s[256 * ((r + 3) % 8) + u];
  out[blockIdx.x * 256 + t] = v;
}
// A ring of words: places by remainder, and by counting along.
extern "C" __global__ void ring_modulo(float* out, const float* in, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
#pragma unroll 1
  for (unsigned k = 0; k < 32; ++k) v += in[(i + k * 32) % n];
  out[i] = v;
}
extern "C" __global__ void ring_counted(float* out, const float* in, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, j = i % n;
  float v = 0;
#pragma unroll 1
  for (unsigned k = 0; k < 32; ++k) {
    v += in[j];
    j += 32;
    if (j >= n) j -= n;
  }
  out[i] = v;
}
// Sums of columns: a thread per column with all rows, and a private sum of each block's rows.
extern "C" __global__ void columns_atomic(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) atomicAdd(out + i % n, in[k * gridDim.x * blockDim.x + i]);
}
extern "C" __global__ void columns_summed(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) v += in[k * gridDim.x * blockDim.x + i];
  atomicAdd(out + i % n, v);
}
