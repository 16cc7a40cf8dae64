// Tiles of a tensor, clusters and barriers in shared memory by CUDA's own headers; prints what
// test_host_hopper.py expects.

#include <cooperative_groups.h>
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cuda/barrier>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      std::exit(1);                                            \
    }                                                          \
  } while (0)

constexpr int rows = 8;
constexpr int columns = 32;

/// Doubles the tile of 4 x 16 at (x, y) and puts it back.
__global__ void twice(const __grid_constant__ CUtensorMap map, int x, int y) {
  __shared__ alignas(128) int tile[4][16];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  const int place[2] = {x, y};
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, place,
                              cuda::device::barrier_native_handle(barrier));
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof tile);
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  tile[threadIdx.x / 16][threadIdx.x % 16] *= 2;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, place, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

/// Each block adds up the ranks that the others of its cluster have in shared memory.
__global__ void meet(int* sums) {
  __shared__ int own;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) own = 1 + static_cast<int>(cluster.block_rank());
  cluster.sync();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) {
      sum += *cluster.map_shared_rank(&own, rank);
    }
    sums[blockIdx.x] = 100 * static_cast<int>(cluster.num_blocks()) + sum;
  }
  cluster.sync();
}

static int tiles() {
  int host[rows][columns];
  for (int i = 0; i < rows * columns; ++i) host[i / columns][i % columns] = i;
  int* data;
  CHECK(cudaMalloc(&data, sizeof host));
  CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                         cudaEnableDefault, &result));
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  const cuuint64_t sizes[] = {columns, rows};
  const cuuint64_t strides[] = {columns * sizeof(int)};
  const cuuint32_t box[] = {16, 4};
  const cuuint32_t steps[] = {1, 1};
  const cuuint32_t wrong[] = {3, 4};
  CUtensorMap map;
  const auto make = [&](const cuuint32_t* shape) {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, data, sizes, strides, shape, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  std::printf("%d %d\n", static_cast<int>(make(wrong)), static_cast<int>(make(box)));
  twice<<<1, 64>>>(map, 24, 6);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  // Of the tile only two rows of eight columns lie in the tensor.
  std::printf("%d %d %d %d\n", host[5][24], host[6][23], host[6][24], host[7][31]);
  return 0;
}

static int clusters() {
  int* sums;
  int host[8];
  CHECK(cudaMalloc(&sums, sizeof host));
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(8);
  configuration.blockDim = dim3(32);
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&configuration, meet, sums));
  CHECK(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", host[0], host[7]);  // 400 + 1 + 2 + 3 + 4
  configuration.gridDim = dim3(6);
  std::printf("%s\n", cudaGetErrorName(cudaLaunchKernelEx(&configuration, meet, sums)));
  return 0;
}

int main(int, char** arguments) { return arguments[1][0] == 't' ? tiles() : clusters(); }
