// Grid-wide synchronization, layered arrays and launch bounds; prints what test_host.py expects.

#include <cooperative_groups.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cg = cooperative_groups;

#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      std::exit(1);                                            \
    }                                                          \
  } while (0)

/// Sums by halving: every step needs what all blocks wrote in the one before.
__global__ void halve(int* values, int n) {
  const cg::grid_group grid = cg::this_grid();
  for (int half = n / 2; half > 0; half /= 2) {
    for (int i = static_cast<int>(grid.thread_rank()); i < half;
         i += static_cast<int>(grid.size())) {
      values[i] += values[i + half];
    }
    grid.sync();
  }
}

__global__ void __launch_bounds__(64) narrow(int* values) { values[threadIdx.x] = 1; }

__global__ void look(cudaTextureObject_t layers, cudaTextureObject_t cube, float* out) {
  out[0] = tex2DLayered<float>(layers, 1.5f, 0.5f, 2);
  out[1] = texCubemap<float>(cube, 0.0f, 0.0f, -1.0f);
}

static int grid_sync() {
  int host[1024];
  for (int i = 0; i < 1024; ++i) host[i] = i;
  int* data;
  CHECK(cudaMalloc(&data, sizeof host));
  CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
  int n = 1024;
  void* arguments[] = {&data, &n};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(halve), 4, 64, arguments));
  CHECK(cudaMemcpy(host, data, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[0]);  // 0 + 1 + … + 1023
  const auto error =
      cudaLaunchCooperativeKernel(reinterpret_cast<void*>(halve), 4000, 64, arguments);
  std::printf("%s\n", cudaGetErrorName(error));
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  int supported = 0;
  CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
  std::printf("%d\n", supported);
  return 0;
}

static int plain_launch() {
  int* data;
  CHECK(cudaMalloc(&data, 1024 * sizeof(int)));
  CHECK(cudaMemset(data, 0, 1024 * sizeof(int)));
  halve<<<4, 64>>>(data, 1024);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

static int launch_bounds() {
  int* data;
  CHECK(cudaMalloc(&data, 128 * sizeof(int)));
  narrow<<<1, 65>>>(data);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  narrow<<<1, 64>>>(data);  // nothing sticks
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

/// A texture over an array whose texel x of row y of layer z is 100 z + 10 y + x.
static cudaTextureObject_t numbered(cudaExtent extent, unsigned flags) {
  float* values =
      static_cast<float*>(std::malloc(extent.width * extent.height * extent.depth * sizeof(float)));
  for (std::size_t z = 0, i = 0; z < extent.depth; ++z) {
    for (std::size_t y = 0; y < extent.height; ++y) {
      for (std::size_t x = 0; x < extent.width; ++x) values[i++] = 100.0f * z + 10.0f * y + x;
    }
  }
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr =
      make_cudaPitchedPtr(values, extent.width * sizeof(float), extent.width, extent.height);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  std::free(values);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc sampling = {};
  sampling.normalizedCoords = (flags & cudaArrayCubemap) != 0;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
  return texture;
}

static int layers() {
  const auto layered = numbered(make_cudaExtent(4, 2, 3), cudaArrayLayered);
  const auto cube = numbered(make_cudaExtent(3, 3, 6), cudaArrayCubemap);
  float *out, host[2];
  CHECK(cudaMalloc(&out, sizeof host));
  look<<<1, 1>>>(layered, cube, out);
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("%g %g\n", host[0], host[1]);  // layer 2, texel 1; face 5, its middle
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  std::printf("%s\n", cudaGetErrorName(cudaMalloc3DArray(&array, &format, make_cudaExtent(3, 4, 6),
                                                         cudaArrayCubemap)));
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (std::strcmp(argv[1], "grid_sync") == 0) return grid_sync();
  if (std::strcmp(argv[1], "plain_launch") == 0) return plain_launch();
  if (std::strcmp(argv[1], "launch_bounds") == 0) return launch_bounds();
  return layers();
}
