// Kernels of NVIDIA's samples and of Rodinia, in the shapes whose counters the measurements on the
// Quadro GV100 give.

// ---- fast Walsh transform ----

// Two steps of the Walsh transform on four elements.
__device__ __forceinline__ void butterfly(float* to, const float* from, int i0, int i1, int i2,
                                          int i3) {
  float d0 = from[i0];
  float d1 = from[i1];
  float d2 = from[i2];
  float d3 = from[i3];
  float t = d0;
  d0 = d0 + d2;
  d2 = t - d2;
  t = d1;
  d1 = d1 + d3;
  d3 = t - d3;
  t = d0;
  to[i0] = d0 + d1;
  to[i1] = t - d1;
  t = d2;
  to[i2] = d2 + d3;
  to[i3] = t - d3;
}

extern "C" __global__ void walsh_global(float* out, const float* in, int stride) {
  const int position = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = blockDim.x * gridDim.x * 4;
  const float* from = in + blockIdx.y * n;
  float* to = out + blockIdx.y * n;
  const int low = position & (stride - 1);
  const int i0 = ((position - low) << 2) + low;
  const int i1 = i0 + stride;
  const int i2 = i1 + stride;
  const int i3 = i2 + stride;
  butterfly(to, from, i0, i1, i2, i3);
}

extern "C" __global__ void walsh_shared(float* out, const float* in, int log2_n) {
  extern __shared__ float data[];
  const int n = 1 << log2_n;
  const int base = blockIdx.x << log2_n;
  const float* from = in + base;
  float* to = out + base;
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = from[i];
  const int position = threadIdx.x;
  for (int stride = n >> 2; stride > 0; stride >>= 2) {
    const int low = position & (stride - 1);
    const int i0 = ((position - low) << 2) + low;
    const int i1 = i0 + stride;
    const int i2 = i1 + stride;
    const int i3 = i2 + stride;
    __syncthreads();
    butterfly(data, data, i0, i1, i2, i3);
  }
  if (log2_n & 1) {
    __syncthreads();
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
      const int i0 = i << 1;
      const int i1 = i0 + 1;
      const float d0 = data[i0];
      const float d1 = data[i1];
      data[i0] = d0 + d1;
      data[i1] = d0 - d1;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = data[i];
}

// ---- cosine transform of tiles of 8 x 8: a thread takes a column, then a row ----

#define STRIDE 33

__device__ void transform(float* v, int step) {
  const float a = 1.387039845322148f;
  const float b = 1.306562964876377f;
  const float c = 1.175875602419359f;
  const float d = 0.785694958387102f;
  const float e = 0.541196100146197f;
  const float f = 0.275899379282943f;
  const float norm = 0.3535533905932737f;
  const float s07 = v[0] + v[7 * step];
  const float s16 = v[step] + v[6 * step];
  const float s25 = v[2 * step] + v[5 * step];
  const float s34 = v[3 * step] + v[4 * step];
  const float d07 = v[0] - v[7 * step];
  const float d61 = v[6 * step] - v[step];
  const float d25 = v[2 * step] - v[5 * step];
  const float d43 = v[4 * step] - v[3 * step];
  const float s0734 = s07 + s34;
  const float d0734 = s07 - s34;
  const float s1625 = s16 + s25;
  const float d1625 = s16 - s25;
  v[0] = norm * (s0734 + s1625);
  v[2 * step] = norm * (b * d0734 + e * d1625);
  v[4 * step] = norm * (s0734 - s1625);
  v[6 * step] = norm * (e * d0734 - b * d1625);
  v[step] = norm * (a * d07 - c * d61 + d * d25 - f * d43);
  v[3 * step] = norm * (c * d07 + f * d61 - a * d25 + d * d43);
  v[5 * step] = norm * (d * d07 + a * d61 + f * d25 - c * d43);
  v[7 * step] = norm * (f * d07 + d * d61 + c * d25 + a * d43);
}

extern "C" __global__ void cosine(float* out, const float* in, int width) {
  __shared__ float tile[16 * STRIDE];
  const int column = threadIdx.y * 8 + threadIdx.x;
  const int row = threadIdx.z * 8;
  const int at = (blockIdx.y * 16 + row) * width + blockIdx.x * 32 + column;
  float* own = tile + row * STRIDE + column;
#pragma unroll
  for (int i = 0; i < 8; ++i) own[i * STRIDE] = in[at + i * width];
  __syncthreads();
  transform(own, STRIDE);
  __syncthreads();
  transform(tile + (row + threadIdx.x) * STRIDE + column - threadIdx.x, 1);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 8; ++i) out[at + i * width] = own[i * STRIDE];
}

// ---- numbers that fill an interval evenly ----

#define BITS 31

__constant__ unsigned table[3][BITS];

extern "C" __global__ void quasirandom(float* out, unsigned seed, unsigned n) {
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * gridDim.x;
  for (unsigned i = first; i < n; i += threads) {
    unsigned result = 0;
    unsigned data = seed + i;
    for (int bit = 0; bit < BITS; ++bit, data >>= 1) {
      if (data & 1) result ^= table[threadIdx.y][bit];
    }
    out[threadIdx.y * n + i] = (float)(result + 1) * (1.0f / (float)0x80000001u);
  }
}

__device__ float inverse_normal(unsigned x) {
  bool negative = false;
  if (x >= 0x80000000u) {
    x = 0xffffffffu - x;
    negative = true;
  }
  const float scale = 1.0f / static_cast<float>(0xffffffffu);
  const float p1 = x * scale + scale / 2;
  const float p2 = p1 - 0.5f;
  float z;
  if (p1 > 0.08f) {
    z = p2 * p2;
    z = p2 *
        (((-25.44106049637f * z + 41.39119773534f) * z + -18.61500062529f) * z + 2.50662823884f) /
        ((((3.13082909833f * z + -21.06224101826f) * z + 23.08336743743f) * z + -8.4735109309f) *
             z +
         1.0f);
  } else {
    z = __logf(-__logf(p1));
    z = -(0.3374754822726147f +
          z * (0.9761690190917186f +
               z * (0.1607979714918209f +
                    z * (2.76438810333863e-2f +
                         z * (3.8405729373609e-3f +
                              z * (3.951896511919e-4f +
                                   z * (3.21767881768e-5f +
                                        z * (2.888167364e-7f + z * 3.960315187e-7f))))))));
  }
  return negative ? -z : z;
}

extern "C" __global__ void normal(float* out, unsigned n) {
  const unsigned distance = 0xffffffffu / (n + 1);
  const unsigned threads = blockDim.x * gridDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
    out[i] = inverse_normal((i + 1) * distance);
  }
}

extern "C" __global__ void sobol(unsigned vectors, unsigned dimensions, const unsigned* directions,
                                 float* out) {
  __shared__ unsigned v[32];
  directions += 32 * blockIdx.y;
  out += vectors * blockIdx.y;
  if (threadIdx.x < 32) v[threadIdx.x] = directions[threadIdx.x];
  __syncthreads();
  const int first = threadIdx.x + blockIdx.x * blockDim.x;
  const int stride = gridDim.x * blockDim.x;
  unsigned gray = first ^ (first >> 1);
  unsigned x = 0;
  for (unsigned k = 0; k < __ffs(stride) - 1; ++k) {
    x ^= -(gray & 1) & v[k];
    gray >>= 1;
  }
  const float scale = 2.3283064e-10f;
  if (first < vectors) out[first] = x * scale;
  const unsigned next = v[__ffs(stride) - 2];
  for (unsigned i = first + stride; i < vectors; i += stride) {
    x ^= next ^ v[__ffs(~((i - stride) | (stride - 1))) - 1];
    out[i] = x * scale;
  }
}

// ---- histogram of 64 bins, with bytes in shared memory for each thread ----

__device__ void count_word(unsigned char* own, unsigned word) {
  own[((word >> 2) & 63) * 64]++;
  own[((word >> 10) & 63) * 64]++;
  own[((word >> 18) & 63) * 64]++;
  own[(word >> 26) * 64]++;
}

extern "C" __global__ void histogram_64(unsigned* out, const uint4* in, unsigned n) {
  __shared__ unsigned counts[64 * 16];
  // Threads next to each other count in different banks.
  const unsigned place =
      (threadIdx.x & ~63) | ((threadIdx.x & 15) << 2) | ((threadIdx.x & 48) >> 4);
  unsigned char* own = reinterpret_cast<unsigned char*>(counts) + place;
#pragma unroll
  for (int i = 0; i < 16; ++i) counts[threadIdx.x + i * 64] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    const uint4 data = in[i];
    count_word(own, data.x);
    count_word(own, data.y);
    count_word(own, data.z);
    count_word(own, data.w);
  }
  __syncthreads();
  const unsigned char* bin = reinterpret_cast<unsigned char*>(counts) + threadIdx.x * 64;
  unsigned sum = 0;
  unsigned position = 4 * (threadIdx.x & 15);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    sum += bin[position] + bin[position + 1] + bin[position + 2] + bin[position + 3];
    position = (position + 4) & 63;
  }
  out[blockIdx.x * 64 + threadIdx.x] = sum;
}

// ---- training step of a neural network; the constants are of double precision ----

#define HIDDEN 16

extern "C" __global__ void forward(const float* input, float* weights, float* sums, int hidden) {
  __shared__ float node[HIDDEN];
  __shared__ float product[HIDDEN][HIDDEN];
  const int by = blockIdx.y;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int index = (hidden + 1) * HIDDEN * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
  if (tx == 0) node[ty] = input[HIDDEN * by + ty + 1];
  __syncthreads();
  product[ty][tx] = weights[index];
  __syncthreads();
  product[ty][tx] = product[ty][tx] * node[ty];
  __syncthreads();
  for (int i = 1; i <= __log2f(HIDDEN); ++i) {
    const int power = __powf(2, i);
    if (ty % power == 0) product[ty][tx] += product[ty + power / 2][tx];
    __syncthreads();
  }
  weights[index] = product[ty][tx];
  __syncthreads();
  if (tx == 0) sums[by * hidden + ty] = product[tx][ty];
}

extern "C" __global__ void adjust(const float* delta, int hidden, const float* layer,
                                  float* weights, float* old) {
  const int by = blockIdx.y;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int index = (hidden + 1) * HIDDEN * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
  const int y = HIDDEN * by + ty + 1;
  const int x = tx + 1;
  weights[index] += (0.3 * delta[x] * layer[y]) + (0.3 * old[index]);
  old[index] = (0.3 * delta[x] * layer[y]) + (0.3 * old[index]);
  __syncthreads();
  if (ty == 0 && by == 0) {
    weights[x] += (0.3 * delta[x]) + (0.3 * old[x]);
    old[x] = (0.3 * delta[x]) + (0.3 * old[x]);
  }
}

// ---- diffusion that reduces speckle: derivatives and coefficient of each pixel ----

extern "C" __global__ void diffusion(float rate, int rows, int columns, long cells,
                                     const int* north, const int* south, const int* east,
                                     const int* west, float* to_north, float* to_south,
                                     float* to_east, float* to_west, float q0, float* coefficient,
                                     const float* image) {
  const int cell = blockIdx.x * 512 + threadIdx.x;
  int row = (cell + 1) % rows - 1;
  int column = (cell + 1) / rows;
  if ((cell + 1) % rows == 0) {
    row = rows - 1;
    column = column - 1;
  }
  if (cell >= cells) return;
  const float here = image[cell];
  const float n = image[north[row] + rows * column] - here;
  const float s = image[south[row] + rows * column] - here;
  const float w = image[row + rows * west[column]] - here;
  const float e = image[row + rows * east[column]] - here;
  const float gradient = (n * n + s * s + w * w + e * e) / (here * here);
  const float laplacian = (n + s + w + e) / here;
  const float numerator = (0.5 * gradient) - ((1.0 / 16.0) * (laplacian * laplacian));
  float denominator = 1 + (0.25 * laplacian);
  const float q = numerator / (denominator * denominator);
  denominator = (q - q0) / (q0 * (1 + q0));
  float c = 1.0 / (1.0 + denominator);
  if (c < 0) {
    c = 0;
  } else if (c > 1) {
    c = 1;
  }
  to_north[cell] = n;
  to_south[cell] = s;
  to_west[cell] = w;
  to_east[cell] = e;
  coefficient[cell] = c;
}

// ---- cosine transform, a thread per element, with the matrix in constant memory ----

__constant__ float cosines[64];

extern "C" __global__ void cosine_plain(float* out, int width, cudaTextureObject_t image) {
  __shared__ float tile[64];
  __shared__ float half[64];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int x = blockIdx.x * 8 + tx;
  const int y = blockIdx.y * 8 + ty;
  tile[ty * 8 + tx] = tex2D<float>(image, x + 0.5f, y + 0.5f);
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += cosines[i * 8 + ty] * tile[i * 8 + tx];
  half[ty * 8 + tx] = sum;
  __syncthreads();
  sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += half[ty * 8 + i] * cosines[i * 8 + tx];
  __syncthreads();
  tile[ty * 8 + tx] = sum;
  __syncthreads();
  out[y * width + x] = tile[ty * 8 + tx];
}

// ---- searches in a B+ tree: a block per query, a thread per key of a node ----

#define ORDER 256

struct Node {
  int place;
  int children[ORDER + 1];
  int keys[ORDER + 1];
  bool is_leaf;
  int count;
};

extern "C" __global__ void find_key(long height, const Node* nodes, long count, const int* records,
                                    long* current, long* next, const int* keys, int* answers) {
  const int slot = threadIdx.x;
  const int query = blockIdx.x;
  for (int level = 0; level < height; ++level) {
    if (nodes[current[query]].keys[slot] <= keys[query] &&
        nodes[current[query]].keys[slot + 1] > keys[query]) {
      if (nodes[next[query]].children[slot] < count) {
        next[query] = nodes[next[query]].children[slot];
      }
    }
    __syncthreads();
    if (slot == 0) current[query] = next[query];
    __syncthreads();
  }
  if (nodes[current[query]].keys[slot] == keys[query]) {
    answers[query] = records[nodes[current[query]].children[slot]];
  }
}

extern "C" __global__ void find_range(long height, const Node* nodes, long count, long* current,
                                      long* next, long* last, long* next_last, const int* from,
                                      const int* to, int* first, int* length) {
  const int slot = threadIdx.x;
  const int query = blockIdx.x;
  for (int level = 0; level < height; ++level) {
    if (nodes[current[query]].keys[slot] <= from[query] &&
        nodes[current[query]].keys[slot + 1] > from[query]) {
      if (nodes[current[query]].children[slot] < count) {
        next[query] = nodes[current[query]].children[slot];
      }
    }
    if (nodes[last[query]].keys[slot] <= to[query] &&
        nodes[last[query]].keys[slot + 1] > to[query]) {
      if (nodes[last[query]].children[slot] < count) {
        next_last[query] = nodes[last[query]].children[slot];
      }
    }
    __syncthreads();
    if (slot == 0) {
      current[query] = next[query];
      last[query] = next_last[query];
    }
    __syncthreads();
  }
  if (nodes[current[query]].keys[slot] == from[query]) {
    first[query] = nodes[current[query]].children[slot];
  }
  __syncthreads();
  if (nodes[last[query]].keys[slot] == to[query]) {
    length[query] = nodes[last[query]].children[slot] - first[query] + 1;
  }
}
