// 128 multiply-adds per iteration, each of which waits for the one before.
extern "C" __global__ void ffma(float* out, float factor, int iterations) {
  float r = static_cast<float>(threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int k = 0; k < 128; ++k) {
      r = r * factor + r;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = r;
}
