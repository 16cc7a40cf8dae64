// Vector addition, tiled matrix product, transposes and streams, in the shapes whose counters the
// measurements give.

extern "C" __global__ void vector_add_double(const double* a, const double* b, double* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

#define SIDE 32  // of a tile of the product

extern "C" __global__ void matrix_product(float* c, const float* a, const float* b, int width_a,
                                          int width_b) {
  __shared__ float tile_a[SIDE][SIDE];
  __shared__ float tile_b[SIDE][SIDE];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int first = width_a * SIDE * blockIdx.y;
  float sum = 0;
  int at_b = SIDE * blockIdx.x;
  for (int at_a = first; at_a < first + width_a; at_a += SIDE) {
    tile_a[ty][tx] = a[at_a + width_a * ty + tx];
    tile_b[ty][tx] = b[at_b + width_b * ty + tx];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
    __syncthreads();
    at_b += SIDE * width_b;
  }
  c[width_b * SIDE * blockIdx.y + SIDE * blockIdx.x + width_b * ty + tx] = sum;
}

#define TILE 16  // side of a tile of the transposes
#define ROWS 16  // rows of it that a block of threads takes at once

extern "C" __global__ void copy(float* out, const float* in, int width, int height) {
  const int at = blockIdx.x * TILE + threadIdx.x + width * (blockIdx.y * TILE + threadIdx.y);
  for (int i = 0; i < TILE; i += ROWS) out[at + i * width] = in[at + i * width];
}

extern "C" __global__ void copy_shared(float* out, const float* in, int width, int height) {
  __shared__ float tile[TILE][TILE];
  const int x = blockIdx.x * TILE + threadIdx.x;
  const int y = blockIdx.y * TILE + threadIdx.y;
  const int at = x + width * y;
  for (int i = 0; i < TILE; i += ROWS) {
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[at];
  }
  __syncthreads();
  for (int i = 0; i < TILE; i += ROWS) {
    if (x < height && y < width) out[at] = tile[threadIdx.y][threadIdx.x];
  }
}

extern "C" __global__ void transpose_naive(float* out, const float* in, int width, int height) {
  const int x = blockIdx.x * TILE + threadIdx.x;
  const int y = blockIdx.y * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) out[x * height + y + i] = in[x + width * y + i * width];
}

// Rows of the tile are `padding` words longer than its columns.
template <int padding>
__device__ __forceinline__ void transpose_through_tile(float* out, const float* in, int width,
                                                       int height) {
  __shared__ float tile[TILE][TILE + padding];
  const int from = blockIdx.x * TILE + threadIdx.x + (blockIdx.y * TILE + threadIdx.y) * width;
  const int to = blockIdx.y * TILE + threadIdx.x + (blockIdx.x * TILE + threadIdx.y) * height;
  for (int i = 0; i < TILE; i += ROWS) tile[threadIdx.y + i][threadIdx.x] = in[from + i * width];
  __syncthreads();
  for (int i = 0; i < TILE; i += ROWS) out[to + i * height] = tile[threadIdx.x][threadIdx.y + i];
}

extern "C" __global__ void transpose_coalesced(float* out, const float* in, int width, int height) {
  transpose_through_tile<0>(out, in, width, height);
}

extern "C" __global__ void transpose_padded(float* out, const float* in, int width, int height) {
  transpose_through_tile<1>(out, in, width, height);
}

// Tiles come in the place of their transposes, whole.
extern "C" __global__ void transpose_coarse(float* out, const float* in, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  const int from = blockIdx.x * TILE + threadIdx.x + (blockIdx.y * TILE + threadIdx.y) * width;
  const int to = blockIdx.y * TILE + threadIdx.x + (blockIdx.x * TILE + threadIdx.y) * height;
  for (int i = 0; i < TILE; i += ROWS) tile[threadIdx.y + i][threadIdx.x] = in[from + i * width];
  __syncthreads();
  for (int i = 0; i < TILE; i += ROWS) out[to + i * height] = tile[threadIdx.y + i][threadIdx.x];
}

// Tiles stay where they are, each transposed.
extern "C" __global__ void transpose_fine(float* out, const float* in, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  const int at = blockIdx.x * TILE + threadIdx.x + (blockIdx.y * TILE + threadIdx.y) * width;
  for (int i = 0; i < TILE; i += ROWS) tile[threadIdx.y + i][threadIdx.x] = in[at + i * width];
  __syncthreads();
  for (int i = 0; i < TILE; i += ROWS) out[at + i * height] = tile[threadIdx.x][threadIdx.y + i];
}

// Blocks take tiles along diagonals.
extern "C" __global__ void transpose_diagonal(float* out, const float* in, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  int bx, by;
  if (width == height) {
    by = blockIdx.x;
    bx = (blockIdx.x + blockIdx.y) % gridDim.x;
  } else {
    const int block = blockIdx.x + gridDim.x * blockIdx.y;
    by = block % gridDim.y;
    bx = (block / gridDim.y + by) % gridDim.x;
  }
  const int from = bx * TILE + threadIdx.x + (by * TILE + threadIdx.y) * width;
  const int to = by * TILE + threadIdx.x + (bx * TILE + threadIdx.y) * height;
  for (int i = 0; i < TILE; i += ROWS) tile[threadIdx.y + i][threadIdx.x] = in[from + i * width];
  __syncthreads();
  for (int i = 0; i < TILE; i += ROWS) out[to + i * height] = tile[threadIdx.x][threadIdx.y + i];
}

#define STREAM 1024  // threads of a block of the streams

extern "C" __global__ void stream_init(double* a, double* b, double* c, double va, double vb,
                                       double vc) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  a[i] = va;
  b[i] = vb;
  c[i] = vc;
}

extern "C" __global__ void stream_copy(const double* a, double* c) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  c[i] = a[i];
}

extern "C" __global__ void stream_mul(double* b, const double* c) {
  const double scalar = 0.4;
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  b[i] = scalar * c[i];
}

extern "C" __global__ void stream_add(const double* a, const double* b, double* c) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  c[i] = a[i] + b[i];
}

extern "C" __global__ void stream_triad(double* a, const double* b, const double* c) {
  const double scalar = 0.4;
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  a[i] = b[i] + scalar * c[i];
}

extern "C" __global__ void stream_dot(const double* a, const double* b, double* sum, int n) {
  __shared__ double part[STREAM];
  const size_t local = threadIdx.x;
  part[local] = 0.0;
  for (int i = blockDim.x * blockIdx.x + local; i < n; i += blockDim.x * gridDim.x) {
    part[local] += a[i] * b[i];
  }
  for (int offset = blockDim.x / 2; offset > 0; offset /= 2) {
    __syncthreads();
    if (local < offset) part[local] += part[local + offset];
  }
  if (local == 0) sum[blockIdx.x] = part[local];
}
