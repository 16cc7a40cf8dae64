#pragma once

#include <cuda_bf16.h>
#include <mma.h>

#include "scalar.cuh"

namespace warpstack::cublas {

/// Shape of the tile of C that a block makes, and of the part of it that a warp makes, in elements.
template <int M, int N, int K, int WarpM, int WarpN>
struct TensorTile {
  static constexpr int m = M, n = N, k = K;
  static constexpr int warp_m = WarpM, warp_n = WarpN;
  static constexpr int warps_m = M / WarpM;
  static constexpr int threads = 32 * warps_m * (N / WarpN);
};

/// Rows and columns of the matrices that the tensor cores multiply.
inline constexpr int fragment_size = 16;
/// Elements of two bytes that one load gets.
inline constexpr int chunk = 8;

template <typename T>
struct alignas(16) Chunk {
  T values[chunk];
};

/// Brings a tile to shared memory in the order in which it lies in global memory: `Lines` lines of
/// `Length` elements. What is beyond the matrix (lines, length) is zero. Chunks are loaded whole
/// where they are aligned and inside.
template <typename T, int Lines, int Length, int Threads>
__device__ void load_tile(T (*tile)[Length + chunk], const T* matrix, int ld, int line, int at,
                          int lines, int length, bool aligned) {
  constexpr int chunks = Lines * Length / chunk;
#pragma unroll
  for (int i = 0; i < (chunks + Threads - 1) / Threads; ++i) {
    const int e = static_cast<int>(threadIdx.x) + i * Threads;
    if (chunks % Threads != 0 && e >= chunks) break;
    const int l = e / (Length / chunk), p = e % (Length / chunk) * chunk;
    const T* source = matrix + static_cast<long long>(line + l) * ld + at + p;
    Chunk<T> got{};
    if (line + l < lines) {
      if (aligned && at + p + chunk <= length) {
        got = *reinterpret_cast<const Chunk<T>*>(source);
      } else {
#pragma unroll 1
        for (int v = 0; v < chunk && at + p + v < length; ++v) got.values[v] = source[v];
      }
    }
    *reinterpret_cast<Chunk<T>*>(&tile[l][p]) = got;
  }
}

template <typename T>
__device__ bool is_aligned(const T* matrix, int ld) {
  return (reinterpret_cast<unsigned long long>(matrix) % 16 | ld % chunk) == 0;
}

/// C = alpha op(A) op(B) + beta C on tensor cores, with sums in f32. Tiles of C are numbered along
/// m, then n; blockIdx.z goes through the batch.
template <typename T, bool TransposeA, bool TransposeB, typename Shape>
__device__ void tensor_gemm(const GemmArguments<float>& g) {
  namespace wmma = nvcuda::wmma;
  // Lines of A in memory run along m, or along k when it is transposed; those of B the other way.
  constexpr int a_lines = TransposeA ? Shape::m : Shape::k;
  constexpr int a_length = TransposeA ? Shape::k : Shape::m;
  constexpr int b_lines = TransposeB ? Shape::k : Shape::n;
  constexpr int b_length = TransposeB ? Shape::n : Shape::k;
  using LayoutA = std::conditional_t<TransposeA, wmma::row_major, wmma::col_major>;
  using LayoutB = std::conditional_t<TransposeB, wmma::row_major, wmma::col_major>;
  constexpr int size = fragment_size;
  constexpr int across = Shape::warp_m / size, down = Shape::warp_n / size;
  __shared__ alignas(32) T a_tile[a_lines][a_length + chunk];
  __shared__ alignas(32) T b_tile[b_lines][b_length + chunk];
  __shared__ alignas(32) float finished[Shape::threads / 32][size * size];

  const int tiles_m = (g.m + Shape::m - 1) / Shape::m;
  const int first_m = static_cast<int>(blockIdx.x % tiles_m) * Shape::m;
  const int first_n = static_cast<int>(blockIdx.x / tiles_m) * Shape::n;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_m = warp % Shape::warps_m * Shape::warp_m;
  const int warp_n = warp / Shape::warps_m * Shape::warp_n;
  const float alpha = value_of(g.alpha), beta = value_of(g.beta);
  const int depth = alpha == 0 ? 0 : g.k;  // A and B are not read then

  for (int batch = blockIdx.z; batch < g.batches; batch += gridDim.z) {
    wmma::fragment<wmma::accumulator, size, size, size, float> sums[down][across];
    for (auto& row : sums) {
      for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
    }
    if (depth > 0) {
      const T* a = g.pointers ? static_cast<const T* const*>(g.a)[batch]
                              : static_cast<const T*>(g.a) + batch * g.a_stride;
      const T* b = g.pointers ? static_cast<const T* const*>(g.b)[batch]
                              : static_cast<const T*>(g.b) + batch * g.b_stride;
      const bool a_aligned = is_aligned(a, g.lda), b_aligned = is_aligned(b, g.ldb);
      for (int k = 0; k < depth; k += Shape::k) {
        load_tile<T, a_lines, a_length, Shape::threads>(
            a_tile, a, g.lda, TransposeA ? first_m : k, TransposeA ? k : first_m,
            TransposeA ? g.m : depth, TransposeA ? depth : g.m, a_aligned);
        load_tile<T, b_lines, b_length, Shape::threads>(
            b_tile, b, g.ldb, TransposeB ? k : first_n, TransposeB ? first_n : k,
            TransposeB ? depth : g.n, TransposeB ? g.n : depth, b_aligned);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < Shape::k; q += size) {
          wmma::fragment<wmma::matrix_a, size, size, size, T, LayoutA> of_a[across];
          wmma::fragment<wmma::matrix_b, size, size, size, T, LayoutB> of_b[down];
#pragma unroll
          for (int i = 0; i < across; ++i) {
            const int m = warp_m + i * size;
            const T* at = TransposeA ? &a_tile[m][q] : &a_tile[q][m];
            wmma::load_matrix_sync(of_a[i], at, a_length + chunk);
          }
#pragma unroll
          for (int j = 0; j < down; ++j) {
            const int n = warp_n + j * size;
            const T* at = TransposeB ? &b_tile[q][n] : &b_tile[n][q];
            wmma::load_matrix_sync(of_b[j], at, b_length + chunk);
#pragma unroll
            for (int i = 0; i < across; ++i) {
              wmma::mma_sync(sums[j][i], of_a[i], of_b[j], sums[j][i]);
            }
          }
        }
        __syncthreads();
      }
    }
    const auto finish = [&](auto* start) {
      using Out = std::remove_pointer_t<decltype(start)>;
      Out* c = g.pointers ? static_cast<Out* const*>(g.c)[batch] : start + batch * g.c_stride;
#pragma unroll
      for (int j = 0; j < down; ++j) {
#pragma unroll
        for (int i = 0; i < across; ++i) {
          wmma::store_matrix_sync(finished[warp], sums[j][i], size, wmma::mem_col_major);
          __syncwarp();
#pragma unroll 1
          for (int e = lane; e < size * size; e += 32) {
            const int m = first_m + warp_m + i * size + e % size;
            const int n = first_n + warp_n + j * size + e / size;
            if (m >= g.m || n >= g.n) continue;
            Out& place = c[static_cast<long long>(n) * g.ldc + m];
            float value = alpha * finished[warp][e];
            if (beta != 0) value += beta * static_cast<float>(place);
            place = static_cast<Out>(value);
          }
          __syncwarp();
        }
      }
    };
    if (g.c_is_f32) {
      finish(static_cast<float*>(g.c));
    } else {
      finish(static_cast<T*>(g.c));
    }
  }
}

using LargeTensorTile = TensorTile<128, 128, 32, 64, 32>;
using SmallTensorTile = TensorTile<32, 32, 32, 16, 16>;

}  // namespace warpstack::cublas

/// The kernels of one element type: NAME_nn, NAME_nt, NAME_tn and NAME_tt of both shapes.
#define WARPSTACK_TENSOR_GEMMS(name, T)                                      \
  WARPSTACK_TENSOR_GEMM(name##_nn_128x128, T, false, false, LargeTensorTile) \
  WARPSTACK_TENSOR_GEMM(name##_nt_128x128, T, false, true, LargeTensorTile)  \
  WARPSTACK_TENSOR_GEMM(name##_tn_128x128, T, true, false, LargeTensorTile)  \
  WARPSTACK_TENSOR_GEMM(name##_tt_128x128, T, true, true, LargeTensorTile)   \
  WARPSTACK_TENSOR_GEMM(name##_nn_32x32, T, false, false, SmallTensorTile)   \
  WARPSTACK_TENSOR_GEMM(name##_nt_32x32, T, false, true, SmallTensorTile)    \
  WARPSTACK_TENSOR_GEMM(name##_tn_32x32, T, true, false, SmallTensorTile)    \
  WARPSTACK_TENSOR_GEMM(name##_tt_32x32, T, true, true, SmallTensorTile)
#define WARPSTACK_TENSOR_GEMM(name, T, ta, tb, Shape)                                   \
  extern "C" __global__ void __launch_bounds__(warpstack::cublas::Shape::threads)       \
      name(const __grid_constant__ warpstack::cublas::GemmArguments<float> arguments) { \
    warpstack::cublas::tensor_gemm<T, ta, tb, warpstack::cublas::Shape>(arguments);     \
  }
