// What programs for compute capability 9.0 do on the host: clusters as an attribute of a launch,
// tensor maps. Prints what test_host_hopper expects.

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace groups = cooperative_groups;

// Each block writes the sum of a number of its own and of the next block of its cluster.
__global__ void neighbours(int* out) {
  __shared__ int own;
  groups::cluster_group cluster = groups::this_cluster();
  if (threadIdx.x == 0) own = 10 * blockIdx.x;
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  if (threadIdx.x == 0) out[blockIdx.x] = own + *cluster.map_shared_rank(&own, next);
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) pairs(int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = groups::this_cluster().num_blocks();
}

constexpr int rows = 4, columns = 8;

// Copies a tile at (x, y) of a tensor into shared memory, and out as it lies there.
__global__ void tile(const __grid_constant__ CUtensorMap map, int x, int y, float* out) {
  __shared__ alignas(128) float data[rows][columns];
  __shared__ std::uint64_t barrier;
  const auto place = [](void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(&barrier)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place(&barrier)),
                 "n"(sizeof data));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(place(data)),
        "l"(&map), "r"(x), "r"(y), "r"(place(&barrier))
        : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(place(&barrier))
        : "memory");
  }
  out[threadIdx.x] = data[threadIdx.x / columns][threadIdx.x % columns];
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

template <typename Function>
Function driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status);
#else
  cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &status);
#endif
  return reinterpret_cast<Function>(found);
}

cudaError_t launch(void (*kernel)(int*), int blocks, dim3 cluster, int* out) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, out);
  return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

void clusters() {
  int* out;
  cudaMallocManaged(&out, 64 * sizeof(int));
  std::printf("%s:", cudaGetErrorName(launch(neighbours, 8, 4, out)));
  for (int i = 0; i < 8; ++i) std::printf(" %d", out[i]);
  std::printf("\n%s\n", cudaGetErrorName(launch(neighbours, 6, 4, out)));
  std::printf("%s\n", cudaGetErrorName(launch(neighbours, 16, 16, out)));
  std::printf("%s\n", cudaGetErrorName(launch(neighbours, 8, dim3(2, 0, 1), out)));
  cudaFuncSetAttribute(neighbours, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  std::printf("%s:", cudaGetErrorName(launch(neighbours, 16, 16, out)));
  std::printf(" %d %d\n", out[0], out[15]);
  std::printf("%s\n", cudaGetErrorName(launch(neighbours, 34, 17, out)));
  pairs<<<4, 32>>>(out);
  std::printf("%s: ", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf("%d\n%s\n", out[3], cudaGetErrorName(launch(pairs, 4, 4, out)));
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, pairs);
  std::printf("%d %d %d\n", attributes.requiredClusterWidth, attributes.requiredClusterHeight,
              attributes.requiredClusterDepth);
  cudaLaunchConfig_t config = {};
  config.gridDim = 4;
  config.blockDim = 1024;
  int held = 0, largest = 0, launches = 0;
  cudaOccupancyMaxActiveClusters(&held, pairs, &config);
  cudaOccupancyMaxPotentialClusterSize(&largest, pairs, &config);
  cudaDeviceGetAttribute(&launches, cudaDevAttrClusterLaunch, 0);
  std::printf("%d %d %d\n", held, largest, launches);
}

void graph() {
  int* out;
  cudaMallocManaged(&out, 8 * sizeof(int));
  cudaGraph_t graph;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t node;
  void* arguments[] = {&out};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(neighbours);
  parameters.gridDim = 4;
  parameters.blockDim = 32;
  parameters.kernelParams = arguments;
  cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters);
  cudaKernelNodeAttrValue value = {};
  value.clusterDim.x = 3;
  value.clusterDim.y = value.clusterDim.z = 1;
  constexpr auto attribute = static_cast<cudaLaunchAttributeID>(4);
  std::printf("%s\n", cudaGetErrorName(cudaGraphKernelNodeSetAttribute(node, attribute, &value)));
  value.clusterDim.x = 2;
  std::printf("%s:", cudaGetErrorName(cudaGraphKernelNodeSetAttribute(node, attribute, &value)));
  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, nullptr);
  cudaDeviceSynchronize();
  for (int i = 0; i < 4; ++i) std::printf(" %d", out[i]);
  std::printf("\n");
}

void tensors() {
  constexpr int height = 6, width = 20;
  float *source, *out;
  cudaMallocManaged(&source, height * width * sizeof(float));
  cudaMallocManaged(&out, rows * columns * sizeof(float));
  for (int i = 0; i < height * width; ++i) source[i] = i;
  const auto encode = driver<Encode>("cuTensorMapEncodeTiled");
  CUtensorMap map;
  const cuuint64_t sizes[] = {width, height};
  cuuint64_t strides[] = {width * sizeof(float)};
  const cuuint32_t box[] = {columns, rows};
  const cuuint32_t steps[] = {1, 1};
  const auto make = [&](int type, CUtensorMapInterleave interleave, CUtensorMapFloatOOBfill fill) {
    return encode(&map, static_cast<CUtensorMapDataType>(type), 2, source, sizes, strides, box,
                  steps, interleave, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  fill);
  };
  const auto show = [&](int x, int y) {
    tile<<<1, rows * columns>>>(map, x, y, out);
    std::printf("%s:", cudaGetErrorName(cudaDeviceSynchronize()));
    for (const int i : {0, 1, 7, 8, 31}) std::printf(" %g", out[i]);
    std::printf("\n");
  };
  constexpr int f32 = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const auto plain = CU_TENSOR_MAP_INTERLEAVE_NONE;
  const auto zeros = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  const auto nan = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  std::printf("%d\n", make(f32, plain, zeros));
  show(4, 1);
  show(-1, 4);
  std::printf("%d\n", make(f32, plain, nan));
  show(13, 2);
  // The same tensor one row further on.
  using Replace = CUresult (*)(CUtensorMap*, void*);
  std::printf("%d\n", driver<Replace>("cuTensorMapReplaceAddress")(&map, source + width));
  show(0, 0);
  std::printf("%d ", make(CU_TENSOR_MAP_DATA_TYPE_INT32, plain, nan));
  std::printf("%d ", make(f32, CU_TENSOR_MAP_INTERLEAVE_16B, zeros));
  std::printf("%d ", make(99, plain, zeros));
  strides[0] = 12;
  std::printf("%d ", make(f32, plain, zeros));
  std::printf("%d\n", driver<CUresult (*)()>("cuTensorMapEncodeIm2col")());
}

int main(int, char** arguments) {
  if (std::strcmp(arguments[1], "clusters") == 0) clusters();
  if (std::strcmp(arguments[1], "graph") == 0) graph();
  if (std::strcmp(arguments[1], "tensors") == 0) tensors();
}
