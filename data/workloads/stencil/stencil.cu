// Jacobi step of a 7-point stencil on a volume. A block owns a 32 x 8 column and marches through
// its planes: a thread keeps its z neighbours in registers and finds the others in shared memory,
// or beyond the tile's edge in global memory.

#define TILE_X 32
#define TILE_Y 8

extern "C" __global__ void stencil(const float* __restrict__ input, float* __restrict__ output,
                                   int width, int height, int depth, float c0, float c1) {
  __shared__ float tile[TILE_Y][TILE_X];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int x = blockIdx.x * TILE_X + tx;
  const int y = blockIdx.y * TILE_Y + ty;
  const bool inside = x < width && y < height;
  const bool inner = x > 0 && x < width - 1 && y > 0 && y < height - 1;
  const int plane = width * height;
  int here = y * width + x;

  float below = inside ? input[here] : 0.0f;
  here += plane;
  float current = inside ? input[here] : 0.0f;
  for (int z = 1; z < depth - 1; ++z) {
    const float above = inside ? input[here + plane] : 0.0f;
    tile[ty][tx] = current;
    __syncthreads();
    if (inner) {
      const float west = tx > 0 ? tile[ty][tx - 1] : input[here - 1];
      const float east = tx < TILE_X - 1 ? tile[ty][tx + 1] : input[here + 1];
      const float north = ty > 0 ? tile[ty - 1][tx] : input[here - width];
      const float south = ty < TILE_Y - 1 ? tile[ty + 1][tx] : input[here + width];
      output[here] = c1 * (below + above + west + east + north + south) - c0 * current;
    }
    __syncthreads();
    below = current;
    current = above;
    here += plane;
  }
}
