// Kernels of a course on parallel programming: convolutions, histograms, conversions, products.

typedef unsigned int uint;

__constant__ float mask_values[1024];

// The literals are of double precision, so that each result is converted and back.
__device__ float clamped(float value) { return fmin(fmax(static_cast<double>(value), 0.0), 1.0); }

extern "C" __global__ void add_rows(const float* a, const float* b, float* c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && column < n) c[row * n + column] = a[row * n + column] + b[row * n + column];
}

extern "C" __global__ void add_columns(const float* a, const float* b, float* c, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && column < n) c[row * n + column] = a[row * n + column] + b[row * n + column];
}

extern "C" __global__ void convolve_line(const float* in, const float* mask, float* out, int width,
                                         int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int start = i - width / 2;
  float sum = 0;
  for (int j = 0; j < width; ++j) {
    if (start + j >= 0 && start + j < n) sum += in[start + j] * mask[j];
  }
  out[i] = clamped(sum);
}

extern "C" __global__ void convolve_line_constant(const float* in, float* out, int width, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int start = i - width / 2;
  float sum = 0;
  for (int j = 0; j < width; ++j) {
    if (start + j >= 0 && start + j < n) sum += in[start + j] * mask_values[j];
  }
  out[i] = clamped(sum);
}

extern "C" __global__ void convolve_line_tiled(const float* in, float* out, int width, int n) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int half = width / 2;
  int left = (blockIdx.x - 1) * blockDim.x + threadIdx.x;
  if (threadIdx.x >= blockDim.x - half) {
    tile[threadIdx.x - (blockDim.x - half)] = left < 0 ? 0 : in[left];
  }
  tile[half + threadIdx.x] = in[i];
  int right = (blockIdx.x + 1) * blockDim.x + threadIdx.x;
  if (threadIdx.x < half) {
    tile[half + blockDim.x + threadIdx.x] = right >= n ? 0 : in[right];
  }
  __syncthreads();
  float sum = 0;
  for (int j = 0; j < width; ++j) sum += tile[threadIdx.x + j] * mask_values[j];
  out[i] = clamped(sum);
}

extern "C" __global__ void convolve_line_cached(const float* in, float* out, int width, int n) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tile[threadIdx.x] = in[i];
  __syncthreads();
  if (i >= n) return;
  int first = blockIdx.x * blockDim.x;
  int next = (blockIdx.x + 1) * blockDim.x;
  int start = i - width / 2;
  float sum = 0;
  for (int j = 0; j < width; ++j) {
    int k = start + j;
    if (k >= 0 && k < n) {
      if (k >= first && k < next) {
        sum += tile[threadIdx.x + j - width / 2] * mask_values[j];
      } else {
        sum += in[k] * mask_values[j];
      }
    }
  }
  out[i] = clamped(sum);
}

__device__ __forceinline__ void convolve_pixel(const float* in, const float* mask, float* out,
                                               int width, int n, int channels) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  int top = row - width / 2;
  int left = column - width / 2;
  for (int channel = 0; channel < channels; ++channel) {
    float sum = 0;
    for (int i = 0; i < width; ++i) {
      for (int j = 0; j < width; ++j) {
        int y = top + i;
        int x = left + j;
        if (y >= 0 && y < n && x >= 0 && x < n) {
          sum += in[(y * n + x) * channels + channel] * mask[i * width + j];
        }
      }
    }
    out[(row * n + column) * channels + channel] = clamped(sum);
  }
}

extern "C" __global__ void convolve_plane(const float* in, const float* mask, float* out, int width,
                                          int n, int channels) {
  convolve_pixel(in, mask, out, width, n, channels);
}

extern "C" __global__ void convolve_plane_constant(const float* in, float* out, int width, int n,
                                                   int channels) {
  convolve_pixel(in, mask_values, out, width, n, channels);
}

extern "C" __global__ void convolve_plane_tiled(const float* in, float* out, int width, int n,
                                                int channels) {
  extern __shared__ float tile[];
  int side = blockDim.x;
  int inner = side - width + 1;
  int row_out = blockIdx.y * inner + threadIdx.y;
  int column_out = blockIdx.x * inner + threadIdx.x;
  int row = row_out - width / 2;
  int column = column_out - width / 2;
  for (int channel = 0; channel < channels; ++channel) {
    if (row >= 0 && row < n && column >= 0 && column < n) {
      tile[threadIdx.y * side + threadIdx.x] = in[(row * n + column) * channels + channel];
    } else {
      tile[threadIdx.y * side + threadIdx.x] = 0;
    }
    __syncthreads();
    if (threadIdx.y < inner && threadIdx.x < inner && row_out < n && column_out < n) {
      float sum = 0;
      for (int i = 0; i < width; ++i) {
        for (int j = 0; j < width; ++j) {
          sum += tile[(threadIdx.y + i) * side + threadIdx.x + j] * mask_values[i * width + j];
        }
      }
      out[(row_out * n + column_out) * channels + channel] = clamped(sum);
    }
    __syncthreads();
  }
}

extern "C" __global__ void histogram_global(const uint* in, uint* bins, int n, int count) {
  int first = blockIdx.x * blockDim.x + threadIdx.x;
  int step = blockDim.x * gridDim.x;
  for (int i = first; i < count; i += step) bins[i] = 0;
  __syncthreads();
  for (int i = first; i < n; i += step) atomicAdd(&bins[in[i]], 1u);
}

extern "C" __global__ void histogram_blocks(const uint* in, uint* bins, int n, int count) {
  extern __shared__ uint own[];
  for (int i = threadIdx.x; i < count; i += blockDim.x) own[i] = 0;
  __syncthreads();
  int step = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) atomicAdd(&own[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(&bins[i], own[i]);
}

extern "C" __global__ void to_grey(const unsigned char* in, unsigned char* out, int width,
                                   int height) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  int at = row * width + column;
  unsigned char r = in[3 * at];
  unsigned char g = in[3 * at + 1];
  unsigned char b = in[3 * at + 2];
  out[at] = 0.21f * r + 0.71f * g + 0.07f * b;
}

extern "C" __global__ void product(const uint* a, const uint* b, uint* c, int rows, int inner,
                                   int columns) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  uint sum = 0;
  for (int k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * columns + column];
  c[row * columns + column] = sum;
}

extern "C" __global__ void product_of_tiles(const uint* a, const uint* b, uint* c, int rows,
                                            int inner, int columns, int side) {
  extern __shared__ uint tiles[];
  uint* tile_a = tiles;
  uint* tile_b = tiles + side * side;
  int row = blockIdx.y * side + threadIdx.y;
  int column = blockIdx.x * side + threadIdx.x;
  uint sum = 0;
  for (int phase = 0; phase < (inner + side - 1) / side; ++phase) {
    int x = phase * side + threadIdx.x;
    int y = phase * side + threadIdx.y;
    tile_a[threadIdx.y * side + threadIdx.x] = row < rows && x < inner ? a[row * inner + x] : 0;
    tile_b[threadIdx.y * side + threadIdx.x] =
        y < inner && column < columns ? b[y * columns + column] : 0;
    __syncthreads();
    for (int k = 0; k < side; ++k) {
      sum += tile_a[threadIdx.y * side + k] * tile_b[k * side + threadIdx.x];
    }
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = sum;
}

// Two outputs per thread. The second tile's rows overlap, as in the measured kernel.
extern "C" __global__ void product_of_wide_tiles(const uint* a, const uint* b, uint* c, int rows,
                                                 int inner, int columns, int side) {
  extern __shared__ uint tiles[];
  uint* tile_a = tiles;
  uint* tile_b = tiles + side * side;
  int row = blockIdx.y * side + threadIdx.y;
  int column = blockIdx.x * side * 2 + threadIdx.x;
  uint first = 0;
  uint second = 0;
  for (int phase = 0; phase < (inner + side - 1) / side; ++phase) {
    int x = phase * side + threadIdx.x;
    int y = phase * side + threadIdx.y;
    tile_a[threadIdx.y * side + threadIdx.x] = row < rows && x < inner ? a[row * inner + x] : 0;
    tile_b[threadIdx.y * side + threadIdx.x] =
        y < inner && column < columns ? b[y * columns + column] : 0;
    tile_b[threadIdx.y * side + threadIdx.x + side] =
        y < inner && column + side < columns ? b[y * columns + column + side] : 0;
    __syncthreads();
    for (int k = 0; k < side; ++k) {
      first += tile_a[threadIdx.y * side + k] * tile_b[k * side + threadIdx.x];
      second += tile_a[threadIdx.y * side + k] * tile_b[k * side + threadIdx.x + side];
    }
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = first;
  if (row < rows && column + side < columns) c[row * columns + column + side] = second;
}

extern "C" __global__ void product_vector(const uint* a, const uint* x, uint* y, int rows,
                                          int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  uint sum = 0;
  for (int k = 0; k < columns; ++k) sum += a[row * columns + k] * x[k];
  y[row] = sum;
}

extern "C" __global__ void product_vector_shared(const uint* a, const uint* x, uint* y, int rows,
                                                 int columns) {
  extern __shared__ uint part[];
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  uint sum = 0;
  for (int phase = 0; phase < (columns + blockDim.x - 1) / blockDim.x; ++phase) {
    int first = phase * blockDim.x;
    part[threadIdx.x] = first + threadIdx.x < columns ? x[first + threadIdx.x] : 0;
    __syncthreads();
    if (row < rows) {
      for (int k = 0; k < blockDim.x && first + k < columns; ++k) {
        sum += a[row * columns + first + k] * part[k];
      }
    }
    __syncthreads();
  }
  if (row < rows) y[row] = sum;
}
