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
