// Speckle-reducing anisotropic diffusion of an image: one kernel computes the derivatives and the
// diffusion coefficient of each pixel, the other diffuses. Blocks of 32 x 8 pixels work on tiles in
// shared memory.

#define TILE_X 32
#define TILE_Y 8

extern "C" __global__ void srad_coefficient(
    const float* __restrict__ image, float* __restrict__ to_north, float* __restrict__ to_south,
    float* __restrict__ to_west, float* __restrict__ to_east, float* __restrict__ coefficient,
    int width, int height, float q0_squared) {
  __shared__ float tile[TILE_Y + 2][TILE_X + 2];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int x = blockIdx.x * TILE_X + tx;
  const int y = blockIdx.y * TILE_Y + ty;
  const int pixel = y * width + x;
  const bool inside = x < width && y < height;

  // Beyond the border the image repeats its last row or column.
  if (inside) {
    tile[ty + 1][tx + 1] = image[pixel];
    if (ty == 0) tile[0][tx + 1] = image[y > 0 ? pixel - width : pixel];
    if (ty == TILE_Y - 1 || y == height - 1) {
      tile[ty + 2][tx + 1] = image[y < height - 1 ? pixel + width : pixel];
    }
    if (tx == 0) tile[ty + 1][0] = image[x > 0 ? pixel - 1 : pixel];
    if (tx == TILE_X - 1 || x == width - 1) {
      tile[ty + 1][tx + 2] = image[x < width - 1 ? pixel + 1 : pixel];
    }
  }
  __syncthreads();
  if (!inside) return;

  const float here = tile[ty + 1][tx + 1];
  const float north = tile[ty][tx + 1] - here;
  const float south = tile[ty + 2][tx + 1] - here;
  const float west = tile[ty + 1][tx] - here;
  const float east = tile[ty + 1][tx + 2] - here;
  const float gradient =
      (north * north + south * south + west * west + east * east) / (here * here);
  const float laplacian = (north + south + west + east) / here;
  const float numerator = 0.5f * gradient - 0.0625f * laplacian * laplacian;
  const float root = 1.0f + 0.25f * laplacian;
  const float q_squared = numerator / (root * root);
  const float excess = (q_squared - q0_squared) / (q0_squared * (1.0f + q0_squared));
  const float c = 1.0f / (1.0f + excess);

  to_north[pixel] = north;
  to_south[pixel] = south;
  to_west[pixel] = west;
  to_east[pixel] = east;
  coefficient[pixel] = fminf(fmaxf(c, 0.0f), 1.0f);
}

extern "C" __global__ void srad_diffuse(float* __restrict__ image,
                                        const float* __restrict__ to_north,
                                        const float* __restrict__ to_south,
                                        const float* __restrict__ to_west,
                                        const float* __restrict__ to_east,
                                        const float* __restrict__ coefficient, int width,
                                        int height, float rate) {
  __shared__ float tile[TILE_Y + 1][TILE_X + 1];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int x = blockIdx.x * TILE_X + tx;
  const int y = blockIdx.y * TILE_Y + ty;
  const int pixel = y * width + x;
  const bool inside = x < width && y < height;

  if (inside) {
    tile[ty][tx] = coefficient[pixel];
    if (ty == TILE_Y - 1 || y == height - 1) {
      tile[ty + 1][tx] = coefficient[y < height - 1 ? pixel + width : pixel];
    }
    if (tx == TILE_X - 1 || x == width - 1) {
      tile[ty][tx + 1] = coefficient[x < width - 1 ? pixel + 1 : pixel];
    }
  }
  __syncthreads();
  if (!inside) return;

  const float here = tile[ty][tx];
  const float divergence = here * to_north[pixel] + tile[ty + 1][tx] * to_south[pixel] +
                           here * to_west[pixel] + tile[ty][tx + 1] * to_east[pixel];
  image[pixel] += 0.25f * rate * divergence;
}
