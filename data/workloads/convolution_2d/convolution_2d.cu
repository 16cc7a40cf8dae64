// Convolution of an image with a filter of 3 x 3: one thread per pixel. A warp loads its 32 columns
// of three rows, a line each, and lanes exchange them; the lanes at its ends load what lies beyond.

#define WARP 32

__constant__ float filter[9];

extern "C" __global__ void convolution_2d(const float* __restrict__ image,
                                          float* __restrict__ result, int width, int height) {
  const unsigned all = 0xffffffffu;
  const int lane = threadIdx.x;
  const int x = blockIdx.x * WARP + lane;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  // Every lane takes part in the exchange, so those outside the image load its border.
  const int column = min(x, width - 1);

  float sum = 0.0f;
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    const int row = min(max(y + r - 1, 0), height - 1) * width;
    const float here = image[row + column];
    float west = __shfl_up_sync(all, here, 1);
    float east = __shfl_down_sync(all, here, 1);
    if (lane == 0) west = image[row + max(column - 1, 0)];
    if (lane == WARP - 1) east = image[row + min(column + 1, width - 1)];
    sum += filter[3 * r] * west + filter[3 * r + 1] * here + filter[3 * r + 2] * east;
  }
  if (x > 0 && x < width - 1 && y > 0 && y < height - 1) result[y * width + x] = sum;
}
