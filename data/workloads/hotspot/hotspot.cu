// Temperature of a chip: explicit time steps of the heat equation on a grid of cells. A block loads
// its tile with a halo as wide as it has time steps and takes them in shared memory (trapezoidal
// tiling).

#define TILE 32       // columns and rows of the tile that a block writes
#define BLOCK_ROWS 8  // threads of a block: TILE x BLOCK_ROWS
#define MOST_STEPS 2  // of one launch
#define SIDE (TILE + 2 * MOST_STEPS)

extern "C" __global__ void hotspot(const float* __restrict__ temperature,
                                   const float* __restrict__ power, float* __restrict__ result,
                                   int width, int height, int steps, float step_by_capacity,
                                   float inverse_rx, float inverse_ry, float inverse_rz,
                                   float ambient) {
  __shared__ float heat[2][SIDE][SIDE];
  __shared__ float source[SIDE][SIDE];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int side = TILE + 2 * steps;
  const int left = blockIdx.x * TILE - steps;
  const int top = blockIdx.y * TILE - steps;

  // The columns of the tile are whole lines; lanes at its edges fetch the halo by loads of their
  // own.
  for (int y = ty; y < side; y += BLOCK_ROWS) {
    const int row = top + y;
    if (row < 0 || row >= height) continue;
    const int x = tx + steps;
    const int cell = row * width + left + x;
    if (left + x < width) {
      heat[0][y][x] = temperature[cell];
      source[y][x] = power[cell];
    }
    if (tx < steps && left + tx >= 0) {
      heat[0][y][tx] = temperature[cell - steps];
      source[y][tx] = power[cell - steps];
    }
    if (tx >= TILE - steps && left + x + steps < width) {
      heat[0][y][x + steps] = temperature[cell + steps];
      source[y][x + steps] = power[cell + steps];
    }
  }
  __syncthreads();

  for (int step = 1; step <= steps; ++step) {
    const float (*now)[SIDE] = heat[(step - 1) % 2];
    float (*next)[SIDE] = heat[step % 2];
    for (int y = step + ty; y < side - step; y += BLOCK_ROWS) {
      const int row = top + y;
      if (row < 0 || row >= height) continue;
      for (int x = step + tx; x < side - step; x += TILE) {
        const int column = left + x;
        if (column < 0 || column >= width) continue;
        const float here = now[y][x];
        // No heat leaves through the chip's sides.
        const float north = row > 0 ? now[y - 1][x] : here;
        const float south = row < height - 1 ? now[y + 1][x] : here;
        const float west = column > 0 ? now[y][x - 1] : here;
        const float east = column < width - 1 ? now[y][x + 1] : here;
        const float flow = source[y][x] + (south + north - 2.0f * here) * inverse_ry +
                           (east + west - 2.0f * here) * inverse_rx + (ambient - here) * inverse_rz;
        const float then = here + step_by_capacity * flow;
        if (step == steps) {
          result[row * width + column] = then;
        } else {
          next[y][x] = then;
        }
      }
    }
    __syncthreads();
  }
}
