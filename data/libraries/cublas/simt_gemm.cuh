#pragma once

#include "scalar.cuh"

namespace warpstack::cublas {

/// Shape of the tile of C that a block of threads makes, and of what each thread makes of it.
template <int M, int N, int K, int ThreadM, int ThreadN, int Vector>
struct Tile {
  static constexpr int m = M, n = N, k = K;
  static constexpr int thread_m = ThreadM, thread_n = ThreadN;
  static constexpr int vector =
      Vector;  ///< neighbouring elements that one load of shared memory gets
  static constexpr int threads_m = M / ThreadM;
  static constexpr int threads = threads_m * (N / ThreadN);
};

/// The elements of a tile of op(A) or op(B) that one thread brings from global to shared memory.
/// `Outer` is the tile's size along m or n; `OuterFirst` says that neighbours in memory differ in m
/// or n, not in k.
template <typename In, typename Acc, typename Shape, int Outer, bool OuterFirst>
struct TileLoader {
  static constexpr int count = Outer * Shape::k / Shape::threads;
  static constexpr int row = Outer + Shape::vector;  // the padding spreads columns over banks

  Acc held[count];

  static __device__ int outer(int i) {
    const int e = threadIdx.x + i * Shape::threads;
    return OuterFirst ? e % Outer : e / Shape::k;
  }
  static __device__ int inner(int i) {
    const int e = threadIdx.x + i * Shape::threads;
    return OuterFirst ? e / Outer : e % Shape::k;
  }
  __device__ void load(const In* matrix, int ld, int first, int size, int k, int depth) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int o = first + outer(i), q = k + inner(i);
      const long long at =
          OuterFirst ? static_cast<long long>(q) * ld + o : static_cast<long long>(o) * ld + q;
      held[i] = o < size && q < depth ? static_cast<Acc>(matrix[at]) : Acc(0);
    }
  }
  __device__ void store(Acc (*tile)[row]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) tile[inner(i)][outer(i)] = held[i];
  }
};

template <typename T, int Count>
struct alignas(Count * sizeof(T)) Vector {
  T values[Count];
};

/// Reads the part of a row of a shared tile that belongs to one thread.
template <int Parts, int VectorSize, typename T>
__device__ void read_row(T* target, const T* row, int first, int step) {
#pragma unroll
  for (int part = 0; part < Parts; ++part) {
    const auto got = *reinterpret_cast<const Vector<T, VectorSize>*>(row + first + part * step);
#pragma unroll
    for (int v = 0; v < VectorSize; ++v) target[part * VectorSize + v] = got.values[v];
  }
}

/// C = alpha op(A) op(B) + beta C, with C of the type Scale. Tiles of C are numbered along m, then
/// n; blockIdx.z goes through the batch. The next tiles of A and B are on their way while the
/// present ones are multiplied.
template <typename In, typename Acc, typename Scale, bool TransposeA, bool TransposeB,
          typename Shape>
__device__ void simt_gemm(const GemmArguments<Scale>& g) {
  using LoaderA = TileLoader<In, Acc, Shape, Shape::m, !TransposeA>;
  using LoaderB = TileLoader<In, Acc, Shape, Shape::n, TransposeB>;
  __shared__ alignas(16) Acc a_tile[Shape::k][LoaderA::row];
  __shared__ alignas(16) Acc b_tile[Shape::k][LoaderB::row];
  constexpr int vector = Shape::vector;
  constexpr int step_m = Shape::threads_m * vector;
  constexpr int step_n = Shape::n / Shape::thread_n * vector;

  const int tiles_m = (g.m + Shape::m - 1) / Shape::m;
  const int first_m = static_cast<int>(blockIdx.x % tiles_m) * Shape::m;
  const int first_n = static_cast<int>(blockIdx.x / tiles_m) * Shape::n;
  const int in_m = static_cast<int>(threadIdx.x) % Shape::threads_m * vector;
  const int in_n = static_cast<int>(threadIdx.x) / Shape::threads_m * vector;
  const Scale alpha = value_of(g.alpha), beta = value_of(g.beta);
  const int depth = alpha == Scale(0) ? 0 : g.k;  // A and B are not read then

  for (int batch = blockIdx.z; batch < g.batches; batch += gridDim.z) {
    const In* a = nullptr;
    const In* b = nullptr;
    if (depth > 0) {
      a = g.pointers ? static_cast<const In* const*>(g.a)[batch]
                     : static_cast<const In*>(g.a) + batch * g.a_stride;
      b = g.pointers ? static_cast<const In* const*>(g.b)[batch]
                     : static_cast<const In*>(g.b) + batch * g.b_stride;
    }
    Acc sums[Shape::thread_n][Shape::thread_m] = {};
    LoaderA load_a;
    LoaderB load_b;
    load_a.load(a, g.lda, first_m, g.m, 0, depth);
    load_b.load(b, g.ldb, first_n, g.n, 0, depth);
    for (int k = 0; k < depth; k += Shape::k) {
      load_a.store(a_tile);
      load_b.store(b_tile);
      __syncthreads();
      if (k + Shape::k < depth) {
        load_a.load(a, g.lda, first_m, g.m, k + Shape::k, depth);
        load_b.load(b, g.ldb, first_n, g.n, k + Shape::k, depth);
      }
#pragma unroll
      for (int q = 0; q < Shape::k; ++q) {
        Acc of_a[Shape::thread_m], of_b[Shape::thread_n];
        read_row<Shape::thread_m / vector, vector>(of_a, a_tile[q], in_m, step_m);
        read_row<Shape::thread_n / vector, vector>(of_b, b_tile[q], in_n, step_n);
#pragma unroll
        for (int j = 0; j < Shape::thread_n; ++j) {
#pragma unroll
          for (int i = 0; i < Shape::thread_m; ++i) sums[j][i] += of_a[i] * of_b[j];
        }
      }
      __syncthreads();
    }
    Scale* c = g.pointers ? static_cast<Scale* const*>(g.c)[batch]
                          : static_cast<Scale*>(g.c) + batch * g.c_stride;
#pragma unroll
    for (int j = 0; j < Shape::thread_n; ++j) {
      const int n = first_n + j / vector * step_n + in_n + j % vector;
#pragma unroll
      for (int i = 0; i < Shape::thread_m; ++i) {
        const int m = first_m + i / vector * step_m + in_m + i % vector;
        if (m >= g.m || n >= g.n) continue;
        Scale& place = c[static_cast<long long>(n) * g.ldc + m];
        Scale value = alpha * static_cast<Scale>(sums[j][i]);
        if (beta != Scale(0)) value += beta * place;
        place = value;
      }
    }
  }
}

}  // namespace warpstack::cublas

/// The four kernels of one shape: NAME_nn, NAME_nt, NAME_tn and NAME_tt with SUFFIX.
#define WARPSTACK_SIMT_GEMMS(name, suffix, In, Acc, Scale, Shape)              \
  WARPSTACK_SIMT_GEMM(name##_nn_##suffix, In, Acc, Scale, false, false, Shape) \
  WARPSTACK_SIMT_GEMM(name##_nt_##suffix, In, Acc, Scale, false, true, Shape)  \
  WARPSTACK_SIMT_GEMM(name##_tn_##suffix, In, Acc, Scale, true, false, Shape)  \
  WARPSTACK_SIMT_GEMM(name##_tt_##suffix, In, Acc, Scale, true, true, Shape)
#define WARPSTACK_SIMT_GEMM(name, In, Acc, Scale, ta, tb, Shape)                        \
  extern "C" __global__ void __launch_bounds__(Shape::threads)                          \
      name(const __grid_constant__ warpstack::cublas::GemmArguments<Scale> arguments) { \
    warpstack::cublas::simt_gemm<In, Acc, Scale, ta, tb, Shape>(arguments);             \
  }
