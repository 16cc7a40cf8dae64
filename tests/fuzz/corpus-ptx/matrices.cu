// Matrix instructions of all types, grid-wide synchronization, layered and cubemap textures.
#include <cooperative_groups.h>
#include <mma.h>

using namespace nvcuda;

template <class A, class B, class C, int M, int N, int K, class Layout>
__device__ void multiply(const void* a, const void* b, void* c, unsigned stride) {
  wmma::fragment<wmma::matrix_a, M, N, K, A, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, B, Layout> fb;
  wmma::fragment<wmma::accumulator, M, N, K, C> fc;
  using Element = typename wmma::fragment<wmma::accumulator, M, N, K, C>::storage_element_type;
  wmma::load_matrix_sync(fc, static_cast<Element*>(c), stride, wmma::mem_row_major);
  wmma::load_matrix_sync(fa, static_cast<const typename decltype(fa)::storage_element_type*>(a),
                         stride);
  wmma::load_matrix_sync(fb, static_cast<const typename decltype(fb)::storage_element_type*>(b),
                         stride);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(static_cast<Element*>(c), fc, stride, wmma::mem_col_major);
}

__global__ void products(const void* a, const void* b, void* c, unsigned stride) {
  using Row = wmma::row_major;
  using Column = wmma::col_major;
  multiply<half, half, half, 16, 16, 16, Row>(a, b, c, stride);
  multiply<half, half, float, 8, 32, 16, Column>(a, b, c, stride);
  multiply<__nv_bfloat16, __nv_bfloat16, float, 32, 8, 16, Row>(a, b, c, stride);
  multiply<wmma::precision::tf32, wmma::precision::tf32, float, 16, 16, 8, Column>(a, b, c, stride);
  multiply<unsigned char, unsigned char, int, 16, 16, 16, Row>(a, b, c, stride);
  multiply<signed char, signed char, int, 32, 8, 16, Column>(a, b, c, stride);
  multiply<double, double, double, 8, 8, 4, Row>(a, b, c, stride);
}

__global__ void tiles(unsigned* x) {
  __shared__ __align__(16) unsigned tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const unsigned at = __cvta_generic_to_shared(&tile[threadIdx.x % 32 * 4]);
  unsigned r[4], d[4] = {0, 0, 0, 0};
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%4, %5}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(d[3]));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(d[0]),
               "r"(d[3]));
  __syncthreads();
  x[threadIdx.x] = tile[threadIdx.x];
  cooperative_groups::this_grid().sync();
  x[threadIdx.x + 256] = tile[threadIdx.x];
}

__global__ void layers(cudaTextureObject_t texture, cudaSurfaceObject_t surface, float* out) {
  out[0] = tex1DLayered<float>(texture, 1.5f, 2) + tex2DLayered<float>(texture, 1.5f, 2.5f, 3);
  out[1] = texCubemap<float>(texture, 1.0f, 2.0f, 3.0f);
  out[2] = texCubemapLayered<float>(texture, 1.0f, 2.0f, 3.0f, 5);
  surf1DLayeredwrite(out[0], surface, 4, 2);
  surf2DLayeredwrite(out[1], surface, 4, 5, 2);
  out[3] = surfCubemapread<float>(surface, 4, 5, 2);
}
