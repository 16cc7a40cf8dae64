// Warp operations, atomics, vectors, textures, asynchronous copies, matrix units, inline PTX, a
// switch, local arrays.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

__global__ void __launch_bounds__(256, 2) warps(int* a, double* d, long long* t) {
  const unsigned active = __activemask();
  unsigned m = __ballot_sync(active, a[2]) + __match_any_sync(active, a[1]);
  int all = 0;
  m += __match_all_sync(active, a[3], &all) + all;
  a[threadIdx.x] = __shfl_xor_sync(~0u, a[threadIdx.x], 1) + __popc(m) + __brev(m);
  unsigned lower;
  asm volatile(
      "{ .reg .pred p; mov.u32 %0, %%lanemask_lt; setp.ne.u32 p, %0, 0; @p add.u32 %0, %0, 1; }"
      : "=r"(lower));
  a[7] = lower + atomicCAS(a, 1, 2) + atomicAdd(a + 1, 5);
  d[0] = fma(sqrt(d[1]), d[2], d[3]) / d[4];
  float4 v = reinterpret_cast<float4*>(d)[2];
  v.x += v.y;
  reinterpret_cast<float4*>(d)[3] = v;
  t[0] = clock64();
}
__global__ void matrices(half* a, half* b, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
__global__ void textures(cudaTextureObject_t t, cudaTextureObject_t u, cudaSurfaceObject_t s,
                         float* o) {
  const float4 q = tex2D<float4>(u, 0.5f, threadIdx.x);
  surf2Dwrite(3.0f, s, 4, 5);
  o[0] = tex1Dfetch<float>(t, threadIdx.x) + q.x + q.w + tex3D<float>(t, 1, 2, 3);
}
__global__ void copies(int* g) {
  __shared__ int s[64];
  __pipeline_memcpy_async(s + threadIdx.x * 4, g + threadIdx.x * 4, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  int order[20];
  for (int i = 0; i < 20; ++i) order[i * 7 % 20] = g[i];
  switch (g[0]) {
    case 0:
      g[1] = 1;
      break;
    case 1:
      g[2] *= 3;
      break;
    case 2:
      g[3] = g[4] / g[5];
      break;
    case 3:
      g[4] = g[5] % g[6];
      break;
    case 4:
      g[5] = __clz(g[6]);
      break;
    default:
      g[6] = s[g[7]] + order[g[8]];
  }
}
