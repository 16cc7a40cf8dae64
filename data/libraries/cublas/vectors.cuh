#pragma once

#include "scalar.cuh"

namespace warpstack::cublas {

/// Threads of a block in kernels on vectors.
inline constexpr int vector_threads = 256;
/// Columns and rows of a block in kernels on the elements of a matrix.
inline constexpr int plane_size = 32;
inline constexpr int plane_rows = 8;

/// Calls `body(i)` for the elements of a vector that are this thread's.
template <typename Body>
__device__ void for_elements(long long n, Body body) {
  const long long step = static_cast<long long>(gridDim.x) * vector_threads;
  for (long long i = static_cast<long long>(blockIdx.x) * vector_threads + threadIdx.x; i < n;
       i += step) {
    body(i);
  }
}

/// What the threads of a block hold, combined; thread 0 gets it.
template <typename T, typename Combine>
__device__ T combine_block(T value, Combine combine) {
  __shared__ T held[vector_threads];
  held[threadIdx.x] = value;
  __syncthreads();
  for (int half = vector_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      held[threadIdx.x] = combine(held[threadIdx.x], held[threadIdx.x + half]);
    __syncthreads();
  }
  return held[0];
}

/// Hands on what a block has found.
template <typename T, typename Combine>
__device__ void finish_block(void* partials, T value, Combine combine) {
  const T all = combine_block(value, combine);
  if (threadIdx.x == 0) static_cast<T*>(partials)[blockIdx.x] = all;
}

/// Combines what `blocks` blocks have found, in one block; all threads get it.
template <typename T, typename Combine>
__device__ T combine_partials(const void* partials, long long blocks, T none, Combine combine) {
  T value = none;
  for (long long i = threadIdx.x; i < blocks; i += vector_threads) {
    value = combine(value, static_cast<const T*>(partials)[i]);
  }
  return combine_block(value, combine);
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// Norms in a form that neither overflows nor vanishes.
struct AddNorms {
  template <typename T>
  __device__ NormPartial<T> operator()(NormPartial<T> a, NormPartial<T> b) const {
    const bool more = b.scale > a.scale;
    const NormPartial<T> large = more ? b : a, small = more ? a : b;
    if (small.scale == T(0) && small.squares == T(0)) return large;
    // Equal scales are not divided: both may be infinite.
    const T ratio = small.scale == large.scale ? T(1) : small.scale / large.scale;
    return {large.scale, large.squares + small.squares * ratio * ratio};
  }
};

/// The larger (or smaller) value; of equal ones, the first.
template <bool Largest>
struct Extreme {
  template <typename T>
  __device__ ExtremePartial<T> operator()(ExtremePartial<T> a, ExtremePartial<T> b) const {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool better = Largest ? b.value > a.value : b.value < a.value;
    return better || (b.value == a.value && b.index < a.index) ? b : a;
  }
};

template <typename T>
__device__ T magnitude(T value) {
  return value < T(0) ? -value : value;
}

// --- level 1 ------------------------------------------------------------------------------------

template <typename T>
__device__ void axpy(const VectorArguments<T>& v) {
  const T alpha = value_of(v.alpha);
  if (alpha == T(0)) return;
  for_elements(v.n, [&](long long i) { v.y[i * v.y_step] += alpha * v.x[i * v.x_step]; });
}

template <typename T>
__device__ void scal(const VectorArguments<T>& v) {
  const T alpha = value_of(v.alpha);
  for_elements(v.n, [&](long long i) { v.x[i * v.x_step] *= alpha; });
}

template <typename T>
__device__ void copy(const VectorArguments<T>& v) {
  for_elements(v.n, [&](long long i) { v.y[i * v.y_step] = v.x[i * v.x_step]; });
}

template <typename T>
__device__ void swap(const VectorArguments<T>& v) {
  for_elements(v.n, [&](long long i) {
    T& x = v.x[i * v.x_step];
    T& y = v.y[i * v.y_step];
    const T held = x;
    x = y;
    y = held;
  });
}

template <typename T>
__device__ void rot(const VectorArguments<T>& v) {
  const T cosine = value_of(v.alpha), sine = value_of(v.beta);
  for_elements(v.n, [&](long long i) {
    T& x = v.x[i * v.x_step];
    T& y = v.y[i * v.y_step];
    const T held = x;
    x = cosine * held + sine * y;
    y = cosine * y - sine * held;
  });
}

template <typename T>
__device__ void dot(const VectorArguments<T>& v) {
  T sum = 0;
  for_elements(v.n, [&](long long i) { sum += v.x[i * v.x_step] * v.y[i * v.y_step]; });
  finish_block(v.partials, sum, Sum());
}

template <typename T>
__device__ void asum(const VectorArguments<T>& v) {
  T sum = 0;
  for_elements(v.n, [&](long long i) { sum += magnitude(v.x[i * v.x_step]); });
  finish_block(v.partials, sum, Sum());
}

/// Of dot and asum; `n` is the number of partials.
template <typename T>
__device__ void sum_last(const VectorArguments<T>& v) {
  const T sum = combine_partials(v.partials, v.n, T(0), Sum());
  if (threadIdx.x == 0) *static_cast<T*>(v.result) = sum;
}

template <typename T>
__device__ void nrm2(const VectorArguments<T>& v) {
  NormPartial<T> norm{0, 0};
  for_elements(v.n, [&](long long i) {
    const T value = magnitude(v.x[i * v.x_step]);
    // NaN has no order: as squares it stays.
    norm = AddNorms()(norm, value == value ? NormPartial<T>{value, value == T(0) ? T(0) : T(1)}
                                           : NormPartial<T>{T(1), value});
  });
  finish_block(v.partials, norm, AddNorms());
}

template <typename T>
__device__ void nrm2_last(const VectorArguments<T>& v) {
  const auto norm = combine_partials(v.partials, v.n, NormPartial<T>{0, 0}, AddNorms());
  if (threadIdx.x == 0) *static_cast<T*>(v.result) = norm.scale * sqrt(norm.squares);
}

template <typename T, bool Largest>
__device__ void extreme(const VectorArguments<T>& v) {
  ExtremePartial<T> found{0, -1};
  for_elements(v.n, [&](long long i) {
    found = Extreme<Largest>()(found, ExtremePartial<T>{magnitude(v.x[i * v.x_step]), i});
  });
  finish_block(v.partials, found, Extreme<Largest>());
}

template <typename T, bool Largest>
__device__ void extreme_last(const VectorArguments<T>& v) {
  const auto found =
      combine_partials(v.partials, v.n, ExtremePartial<T>{0, -1}, Extreme<Largest>());
  if (threadIdx.x == 0) *static_cast<int*>(v.result) = static_cast<int>(found.index + 1);
}

// --- level 2 ------------------------------------------------------------------------------------

template <typename T>
__device__ void store_scaled(T& place, T value, T beta) {
  place = beta == T(0) ? value : value + beta * place;
}

/// A row for each thread; the block reads x into shared memory, piece by piece.
template <typename T>
__device__ void gemv_n(const GemvArguments<T>& g) {
  __shared__ T piece[vector_threads];
  const T alpha = value_of(g.alpha), beta = value_of(g.beta);
  const long long row = static_cast<long long>(blockIdx.x) * vector_threads + threadIdx.x;
  T sum = 0;
  for (int first = 0; alpha != T(0) && first < g.n; first += vector_threads) {
    const int column = first + static_cast<int>(threadIdx.x);
    if (column < g.n) piece[threadIdx.x] = g.x[column * g.x_step];
    __syncthreads();
    const int columns = min(vector_threads, g.n - first);
    if (row < g.m) {
      const T* a = g.a + static_cast<long long>(first) * g.lda + row;
      for (int j = 0; j < columns; ++j) sum += a[static_cast<long long>(j) * g.lda] * piece[j];
    }
    __syncthreads();
  }
  if (row < g.m) store_scaled(g.y[row * g.y_step], alpha * sum, beta);
}

/// A column for each block.
template <typename T>
__device__ void gemv_t(const GemvArguments<T>& g) {
  const T alpha = value_of(g.alpha), beta = value_of(g.beta);
  const T* column = g.a + static_cast<long long>(blockIdx.x) * g.lda;
  T sum = 0;
  if (alpha != T(0)) {
    for (int i = threadIdx.x; i < g.m; i += vector_threads) sum += column[i] * g.x[i * g.x_step];
  }
  sum = combine_block(sum, Sum());
  if (threadIdx.x == 0) store_scaled(g.y[blockIdx.x * g.y_step], alpha * sum, beta);
}

/// Calls `body(row, column)` for the elements of one square of a matrix that are this thread's.
template <typename Body>
__device__ void for_square(Body body) {
#pragma unroll
  for (int i = 0; i < plane_size; i += plane_rows) body(threadIdx.x, threadIdx.y + i);
}

template <typename T>
__device__ void ger(const GerArguments<T>& g) {
  const T alpha = value_of(g.alpha);
  if (alpha == T(0)) return;
  const int across = (g.m + plane_size - 1) / plane_size;
  const int row = static_cast<int>(blockIdx.x % across) * plane_size + threadIdx.x;
  const int first = static_cast<int>(blockIdx.x / across) * plane_size;
  if (row >= g.m) return;
  const T x = alpha * g.x[row * g.x_step];
  for_square([&](int, int j) {
    const int column = first + j;
    if (column < g.n) {
      g.a[static_cast<long long>(column) * g.lda + row] += x * g.y[column * g.y_step];
    }
  });
}

// --- level 3 ------------------------------------------------------------------------------------

/// A square of op(A) times `factor`, through shared memory when it is transposed, so that
/// neighbours read neighbours.
template <typename T>
__device__ void read_square(T (&square)[plane_size][plane_size + 1], const T* matrix, int ld,
                            bool transpose, int row, int column, int m, int n) {
  for_square([&](int i, int j) {
    const int r = row + (transpose ? j : i), c = column + (transpose ? i : j);
    if (r >= m || c >= n) return;
    const long long at =
        transpose ? static_cast<long long>(r) * ld + c : static_cast<long long>(c) * ld + r;
    square[r - row][c - column] = matrix[at];
  });
}

template <typename T>
__device__ void geam(const GeamArguments<T>& g) {
  __shared__ T a[plane_size][plane_size + 1], b[plane_size][plane_size + 1];
  const T alpha = value_of(g.alpha), beta = value_of(g.beta);
  const int across = (g.m + plane_size - 1) / plane_size;
  const int row = static_cast<int>(blockIdx.x % across) * plane_size;
  const int column = static_cast<int>(blockIdx.x / across) * plane_size;
  if (alpha != T(0)) read_square(a, g.a, g.lda, g.transpose_a, row, column, g.m, g.n);
  if (beta != T(0)) read_square(b, g.b, g.ldb, g.transpose_b, row, column, g.m, g.n);
  __syncthreads();
  for_square([&](int i, int j) {
    if (row + i >= g.m || column + j >= g.n) return;
    T value = 0;
    if (alpha != T(0)) value = alpha * a[i][j];
    if (beta != T(0)) value += beta * b[i][j];
    g.c[static_cast<long long>(column + j) * g.ldc + row + i] = value;
  });
}

template <typename T>
__device__ void dgmm(const DgmmArguments<T>& d) {
  const int across = (d.m + plane_size - 1) / plane_size;
  const int row = static_cast<int>(blockIdx.x % across) * plane_size + threadIdx.x;
  const int first = static_cast<int>(blockIdx.x / across) * plane_size;
  if (row >= d.m) return;
  for_square([&](int, int j) {
    const int column = first + j;
    if (column >= d.n) return;
    const long long from = static_cast<long long>(column) * d.lda + row;
    const long long to = static_cast<long long>(column) * d.ldc + row;
    const long long at = (d.left ? row : column) * d.x_step;
    if (!d.is_complex) {
      d.c[to] = d.a[from] * d.x[at];
      return;
    }
    const T real = d.a[2 * from], imaginary = d.a[2 * from + 1];
    const T by = d.x[2 * at], across_by = d.x[2 * at + 1];
    d.c[2 * to] = real * by - imaginary * across_by;
    d.c[2 * to + 1] = real * across_by + imaginary * by;
  });
}

/// A right-hand side for each block: once an unknown is known, it leaves all equations that follow.
template <typename T>
__device__ void trsm(const TrsmArguments<T>& t) {
  const T alpha = value_of(t.alpha);
  T* b = t.b + blockIdx.x * t.side_step;
  for (int i = threadIdx.x; i < t.n; i += vector_threads) {
    T& place = b[i * t.element_step];
    place = alpha == T(0) ? T(0) : alpha * place;
  }
  if (alpha == T(0)) return;
  for (int count = 0; count < t.n; ++count) {
    const int known = t.lower ? count : t.n - 1 - count;
    __syncthreads();
    T value = b[known * t.element_step];
    if (!t.unit_diagonal) value /= t.a[known * (t.row_step + t.column_step)];
    __syncthreads();
    if (threadIdx.x == 0) b[known * t.element_step] = value;
    for (int next = count + 1 + static_cast<int>(threadIdx.x); next < t.n; next += vector_threads) {
      const int i = t.lower ? next : t.n - 1 - next;
      b[i * t.element_step] -= t.a[i * t.row_step + known * t.column_step] * value;
    }
  }
}

}  // namespace warpstack::cublas

#define WARPSTACK_KERNEL(name, threads, Arguments, call)                     \
  extern "C" __global__ void __launch_bounds__(threads)                      \
      name(const __grid_constant__ warpstack::cublas::Arguments arguments) { \
    warpstack::cublas::call(arguments);                                      \
  }
/// The kernels of one element type, with its name at the end of theirs.
#define WARPSTACK_VECTOR_KERNELS(suffix, T)                                   \
  WARPSTACK_KERNEL(ws_axpy_##suffix, 256, VectorArguments<T>, axpy)           \
  WARPSTACK_KERNEL(ws_scal_##suffix, 256, VectorArguments<T>, scal)           \
  WARPSTACK_KERNEL(ws_copy_##suffix, 256, VectorArguments<T>, copy)           \
  WARPSTACK_KERNEL(ws_swap_##suffix, 256, VectorArguments<T>, swap)           \
  WARPSTACK_KERNEL(ws_rot_##suffix, 256, VectorArguments<T>, rot)             \
  WARPSTACK_KERNEL(ws_dot_##suffix, 256, VectorArguments<T>, dot)             \
  WARPSTACK_KERNEL(ws_asum_##suffix, 256, VectorArguments<T>, asum)           \
  WARPSTACK_KERNEL(ws_sum_last_##suffix, 256, VectorArguments<T>, sum_last)   \
  WARPSTACK_KERNEL(ws_nrm2_##suffix, 256, VectorArguments<T>, nrm2)           \
  WARPSTACK_KERNEL(ws_nrm2_last_##suffix, 256, VectorArguments<T>, nrm2_last) \
  WARPSTACK_EXTREME(ws_amax_##suffix, T, extreme, true)                       \
  WARPSTACK_EXTREME(ws_amax_last_##suffix, T, extreme_last, true)             \
  WARPSTACK_EXTREME(ws_amin_##suffix, T, extreme, false)                      \
  WARPSTACK_EXTREME(ws_amin_last_##suffix, T, extreme_last, false)            \
  WARPSTACK_KERNEL(ws_gemv_n_##suffix, 256, GemvArguments<T>, gemv_n)         \
  WARPSTACK_KERNEL(ws_gemv_t_##suffix, 256, GemvArguments<T>, gemv_t)         \
  WARPSTACK_KERNEL(ws_ger_##suffix, 256, GerArguments<T>, ger)                \
  WARPSTACK_KERNEL(ws_geam_##suffix, 256, GeamArguments<T>, geam)             \
  WARPSTACK_KERNEL(ws_dgmm_##suffix, 256, DgmmArguments<T>, dgmm)             \
  WARPSTACK_KERNEL(ws_trsm_##suffix, 256, TrsmArguments<T>, trsm)
#define WARPSTACK_EXTREME(name, T, call, largest)                                     \
  extern "C" __global__ void __launch_bounds__(256)                                   \
      name(const __grid_constant__ warpstack::cublas::VectorArguments<T> arguments) { \
    warpstack::cublas::call<T, largest>(arguments);                                   \
  }
