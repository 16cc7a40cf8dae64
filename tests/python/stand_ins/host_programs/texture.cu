// Arrays, textures and surfaces; prints what test_host.py expects.

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      std::exit(1);                                            \
    }                                                          \
  } while (0)

__global__ void fetch_linear(cudaTextureObject_t texture, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(texture, static_cast<int>(threadIdx.x) * 3);
}

__global__ void sample(cudaTextureObject_t texture, float* out, float x, float y) {
  out[threadIdx.x] = tex2D<float>(texture, x + threadIdx.x, y);
}

int main() {
  // Linear memory: texel 3 i of 0, 7, 14, ...
  int values[64];
  for (int i = 0; i < 64; ++i) values[i] = 7 * i;
  int *data, *out;
  CHECK(cudaMalloc(&data, sizeof values));
  CHECK(cudaMalloc(&out, 32 * sizeof(int)));
  CHECK(cudaMemcpy(data, values, sizeof values, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = data;
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  resource.res.linear.sizeInBytes = sizeof values;
  cudaTextureDesc sampling = {};
  sampling.readMode = cudaReadModeElementType;
  cudaTextureObject_t linear = 0;
  CHECK(cudaCreateTextureObject(&linear, &resource, &sampling, nullptr));
  fetch_linear<<<1, 20>>>(linear, out);
  int fetched[20];
  CHECK(cudaMemcpy(fetched, out, sizeof fetched, cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", fetched[1], fetched[19]);  // 21, 399
  CHECK(cudaDestroyTextureObject(linear));

  // An array of 8 by 4 texels, value 10 y + x, filtered linearly: at (2, 1.5) lies the middle
  // between texels 1 and 2 of row 1, so 11.5; beyond the edge the last texel of a row.
  float image[4][8];
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 8; ++x) image[y][x] = static_cast<float>(10 * y + x);
  }
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, 8, 4));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, image, sizeof image[0], sizeof image[0], 4,
                            cudaMemcpyHostToDevice));
  resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  sampling = {};
  sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
  sampling.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t plane = 0;
  CHECK(cudaCreateTextureObject(&plane, &resource, &sampling, nullptr));
  float* sampled;
  CHECK(cudaMalloc(&sampled, 32 * sizeof(float)));
  sample<<<1, 16>>>(plane, sampled, 2.0f, 1.5f);
  float result[16];
  CHECK(cudaMemcpy(result, sampled, sizeof result, cudaMemcpyDeviceToHost));
  std::printf("%g %g\n", result[0], result[15]);  // 11.5, 17

  // Back from the array, a part of it.
  float part[2][3];
  CHECK(cudaMemcpy2DFromArray(part, sizeof part[0], array, 2 * sizeof(float), 1, sizeof part[0], 2,
                              cudaMemcpyDeviceToHost));
  std::printf("%g %g\n", part[0][0], part[1][2]);  // 12, 24
  std::printf("%s\n",
              cudaGetErrorName(cudaMemcpy2DFromArray(part, sizeof part[0], array, 0, 3,
                                                     sizeof part[0], 2, cudaMemcpyDeviceToHost)));
  CHECK(cudaDestroyTextureObject(plane));
  CHECK(cudaFreeArray(array));
  return 0;
}
