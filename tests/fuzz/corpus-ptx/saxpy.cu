__device__ float scaled(float a, float x) { return a * x; }
__device__ float sum(float a, float x, float y) { return scaled(a, x) + y; }
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sum(a, x[i], y[i]);
}
