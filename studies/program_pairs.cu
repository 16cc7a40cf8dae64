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
