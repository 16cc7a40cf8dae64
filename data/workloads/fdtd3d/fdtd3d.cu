// Finite differences in time on a volume: a symmetric stencil of radius 4 in three dimensions. A
// block owns a 32 x 16 column of the volume and marches through its planes: z neighbours are in
// registers, those in the plane in a shared tile.

#define RADIUS 4
#define TILE_X 32
#define TILE_Y 16

__constant__ float stencil[RADIUS + 1];

// The volume has a border of RADIUS values on every side. `padding` values before it put the first
// inner value of a row at the start of a line, if the outer width is a number of lines.
extern "C" __global__ void fdtd3d(const float* __restrict__ input, float* __restrict__ output,
                                  int width, int height, int depth, int padding) {
  __shared__ float tile[TILE_Y + 2 * RADIUS][TILE_X + 2 * RADIUS];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int x = blockIdx.x * TILE_X + tx;
  const int y = blockIdx.y * TILE_Y + ty;
  const int row_stride = width + 2 * RADIUS;
  const int plane_stride = row_stride * (height + 2 * RADIUS);
  // Whether the value is in the volume with its border, and whether it is computed.
  const bool outer = x < width + RADIUS && y < height + RADIUS;
  const bool inner = x < width && y < height;
  int here = padding + (y + RADIUS) * row_stride + x + RADIUS;

  float behind[RADIUS];
  float ahead[RADIUS];
  float current = 0.0f;
#pragma unroll
  for (int i = RADIUS - 1; i >= 0; --i) {
    behind[i] = outer ? input[here] : 0.0f;
    here += plane_stride;
  }
  current = outer ? input[here] : 0.0f;
#pragma unroll
  for (int i = 0; i < RADIUS; ++i) {
    ahead[i] = outer ? input[here + (i + 1) * plane_stride] : 0.0f;
  }

  for (int z = 0; z < depth; ++z) {
    if (outer) {
      tile[ty + RADIUS][tx + RADIUS] = current;
      if (ty < RADIUS) tile[ty][tx + RADIUS] = input[here - RADIUS * row_stride];
      if (tx < RADIUS) tile[ty + RADIUS][tx] = input[here - RADIUS];
      if (ty >= TILE_Y - RADIUS && y + RADIUS < height + RADIUS) {
        tile[ty + 2 * RADIUS][tx + RADIUS] = input[here + RADIUS * row_stride];
      }
      if (tx >= TILE_X - RADIUS && x + RADIUS < width + RADIUS) {
        tile[ty + RADIUS][tx + 2 * RADIUS] = input[here + RADIUS];
      }
    }
    __syncthreads();
    if (inner) {
      float value = stencil[0] * current;
#pragma unroll
      for (int i = 1; i <= RADIUS; ++i) {
        value +=
            stencil[i] * (ahead[i - 1] + behind[i - 1] + tile[ty + RADIUS - i][tx + RADIUS] +
                          tile[ty + RADIUS + i][tx + RADIUS] + tile[ty + RADIUS][tx + RADIUS - i] +
                          tile[ty + RADIUS][tx + RADIUS + i]);
      }
      output[here] = value;
    }
    __syncthreads();

    if (z + 1 < depth) {
#pragma unroll
      for (int i = RADIUS - 1; i > 0; --i) behind[i] = behind[i - 1];
      behind[0] = current;
      current = ahead[0];
#pragma unroll
      for (int i = 0; i < RADIUS - 1; ++i) ahead[i] = ahead[i + 1];
      here += plane_stride;
      ahead[RADIUS - 1] = outer ? input[here + RADIUS * plane_stride] : 0.0f;
    }
  }
}
