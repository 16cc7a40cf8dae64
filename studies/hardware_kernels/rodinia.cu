// Heat on a chip, sequence alignment and a path through a grid, blocked and launched as Rodinia
// does. The literals of double precision in the heat equation are there as well: they decide its
// time.

#define SIDE 16

// A block takes several time steps on a tile whose border is lost, a cell per step.
extern "C" __global__ void heat(int steps, const float* power, const float* in, float* out,
                                int columns, int rows, int border_columns, int border_rows,
                                float capacity, float rx, float ry, float rz, float step) {
  __shared__ float now[SIDE][SIDE];
  __shared__ float source[SIDE][SIDE];
  __shared__ float then[SIDE][SIDE];
  const float ambient = 80.0;
  const float by_capacity = step / capacity;
  const float by_rx = 1 / rx;
  const float by_ry = 1 / ry;
  const float by_rz = 1 / rz;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int inner_rows = SIDE - steps * 2;
  const int inner_columns = SIDE - steps * 2;
  const int top = inner_rows * blockIdx.y - border_rows;
  const int left = inner_columns * blockIdx.x - border_columns;
  const int bottom = top + SIDE - 1;
  const int right = left + SIDE - 1;
  const int y = top + ty;
  const int x = left + tx;
  const int cell = columns * y + x;
  if (y >= 0 && y <= rows - 1 && x >= 0 && x <= columns - 1) {
    now[ty][tx] = in[cell];
    source[ty][tx] = power[cell];
  }
  __syncthreads();

  const int first_y = top < 0 ? -top : 0;
  const int last_y = bottom > rows - 1 ? SIDE - 1 - (bottom - rows + 1) : SIDE - 1;
  const int first_x = left < 0 ? -left : 0;
  const int last_x = right > columns - 1 ? SIDE - 1 - (right - columns + 1) : SIDE - 1;
  int north = ty - 1;
  int south = ty + 1;
  int west = tx - 1;
  int east = tx + 1;
  north = north < first_y ? first_y : north;
  south = south > last_y ? last_y : south;
  west = west < first_x ? first_x : west;
  east = east > last_x ? last_x : east;

  bool computed;
  for (int i = 0; i < steps; ++i) {
    computed = false;
    if (tx >= i + 1 && tx <= SIDE - i - 2 && ty >= i + 1 && ty <= SIDE - i - 2 && tx >= first_x &&
        tx <= last_x && ty >= first_y && ty <= last_y) {
      computed = true;
      then[ty][tx] = now[ty][tx] +
                     by_capacity * (source[ty][tx] +
                                    (now[south][tx] + now[north][tx] - 2.0 * now[ty][tx]) * by_ry +
                                    (now[ty][east] + now[ty][west] - 2.0 * now[ty][tx]) * by_rx +
                                    (ambient - now[ty][tx]) * by_rz);
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (computed) now[ty][tx] = then[ty][tx];
    __syncthreads();
  }
  if (computed) out[cell] = then[ty][tx];
}

__device__ int largest(int a, int b, int c) {
  const int k = a <= b ? b : a;
  return k <= c ? c : k;
}

// A tile of the score matrix: 16 threads walk along its diagonals.
__device__ void align(const int* reference, int* scores, int columns, int penalty, int block_x,
                      int block_y) {
  __shared__ int tile[SIDE + 1][SIDE + 1];
  __shared__ int other[SIDE][SIDE];
  const int tx = threadIdx.x;
  const int base = columns * SIDE * block_y + SIDE * block_x;
  const int here = base + tx + columns + 1;
  const int north = base + tx + 1;
  const int west = base + columns;
  if (tx == 0) tile[tx][0] = scores[base];
  for (int y = 0; y < SIDE; ++y) other[y][tx] = reference[here + columns * y];
  __syncthreads();
  tile[tx + 1][0] = scores[west + columns * tx];
  __syncthreads();
  tile[0][tx + 1] = scores[north];
  __syncthreads();
  for (int m = 0; m < SIDE; ++m) {
    if (tx <= m) {
      const int x = tx + 1;
      const int y = m - tx + 1;
      tile[y][x] = largest(tile[y - 1][x - 1] + other[y - 1][x - 1], tile[y][x - 1] - penalty,
                           tile[y - 1][x] - penalty);
    }
    __syncthreads();
  }
  for (int m = SIDE - 2; m >= 0; --m) {
    if (tx <= m) {
      const int x = tx + SIDE - m;
      const int y = SIDE - tx;
      tile[y][x] = largest(tile[y - 1][x - 1] + other[y - 1][x - 1], tile[y][x - 1] - penalty,
                           tile[y - 1][x] - penalty);
    }
    __syncthreads();
  }
  for (int y = 0; y < SIDE; ++y) scores[here + y * columns] = tile[y + 1][tx + 1];
}

extern "C" __global__ void needle_1(const int* reference, int* scores, int columns, int penalty,
                                    int step, int width) {
  const int bx = blockIdx.x;
  align(reference, scores, columns, penalty, bx, step - 1 - bx);
}

extern "C" __global__ void needle_2(const int* reference, int* scores, int columns, int penalty,
                                    int step, int width) {
  const int bx = blockIdx.x + width - step;
  align(reference, scores, columns, penalty, bx, width - blockIdx.x - 1);
}

#define PATH 256

extern "C" __global__ void path(int steps, const int* wall, const int* from, int* to, int columns,
                                int rows, int start, int border) {
  __shared__ int before[PATH];
  __shared__ int result[PATH];
  const int tx = threadIdx.x;
  const int inner = PATH - steps * 2;
  const int left = inner * blockIdx.x - border;
  const int right = left + PATH - 1;
  const int x = left + tx;
  const int first = left < 0 ? -left : 0;
  const int last = right > columns - 1 ? PATH - 1 - (right - columns + 1) : PATH - 1;
  int west = tx - 1;
  int east = tx + 1;
  west = west < first ? first : west;
  east = east > last ? last : east;
  const bool valid = tx >= first && tx <= last;
  if (x >= 0 && x <= columns - 1) before[tx] = from[x];
  __syncthreads();
  bool computed;
  for (int i = 0; i < steps; ++i) {
    computed = false;
    if (tx >= i + 1 && tx <= PATH - i - 2 && valid) {
      computed = true;
      const int shortest = min(min(before[west], before[tx]), before[east]);
      result[tx] = shortest + wall[columns * (start + i) + x];
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (computed) before[tx] = result[tx];
    __syncthreads();
  }
  if (computed) to[x] = result[tx];
}
