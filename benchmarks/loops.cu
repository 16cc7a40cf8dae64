// Loops in which few lanes of a warp go on, for benchmarks/run.py;
// loops.ptx: nvcc -ptx -O3 -arch=sm_75 -lineinfo loops.cu

// The first `lanes` threads of each warp count the steps until z * z + c leaves the circle of 2.
extern "C" __global__ void escape(int* steps, int width, int limit, int lanes) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 >= lanes) return;
  const float x = -2.0f + 3.0f * (i % width) / width;
  const float y = -1.5f + 3.0f * (i / width) / width;
  float u = 0;
  float v = 0;
  int k = 0;
  while (k < limit && u * u + v * v < 4) {
    const float next = u * u - v * v + x;
    v = 2 * u * v + y;
    u = next;
    ++k;
  }
  steps[i] = k;
}

// They follow a list.
extern "C" __global__ void follow(const int* next, int* last, int steps, int lanes) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 >= lanes) return;
  int at = i;
  for (int k = 0; k < steps; ++k) at = next[at];
  last[i] = at;
}

// A row of a sparse matrix per thread.
extern "C" __global__ void spmv(const int* first, const int* column, const float* value,
                                const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = first[row]; k < first[row + 1]; ++k) sum += value[k] * x[column[k]];
  y[row] = sum;
}

// One thread, in double precision.
extern "C" __global__ void iterate(double* out, int steps) {
  double x = 0.2;
  double y = 0.3;
  for (int k = 0; k < steps; ++k) {
    const double t = x * x - y * y + 0.1;
    y = 2 * x * y + 0.2;
    x = t / (1.0 + t * t);
  }
  out[0] = x + y;
}

// One thread sorts numbers in its local memory, again and again.
extern "C" __global__ void sort_local(int* medians, int rounds) {
  int x[64];
  unsigned seed = 7;
  for (int r = 0; r < rounds; ++r) {
    for (int i = 0; i < 64; ++i) {
      seed = seed * 1664525u + 1013904223u;
      x[i] = seed >> 8;
    }
    for (int i = 1; i < 64; ++i) {
      const int value = x[i];
      int j = i;
      for (; j > 0 && x[j - 1] > value; --j) x[j] = x[j - 1];
      x[j] = value;
    }
    medians[r] = x[32];
  }
}

// 2 n elements that nobody has written before, n of them of a neighbour's; n: a multiple of 32.
extern "C" __global__ void fill(int* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  a[i] = i * i;
  __syncwarp();
  a[n + i] = a[i ^ 1];
}
