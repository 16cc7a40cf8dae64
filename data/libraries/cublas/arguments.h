#pragma once

/// What the kernels of the cuBLAS stand-in are given: host code and nvcc both read this file.
/// Matrices are stored by columns. Every `pointers` is 0 or 1.
namespace warpstack::cublas {

/// alpha or beta: a value, or where in device memory it lies (CUBLAS_POINTER_MODE_DEVICE).
template <typename T>
struct Scalar {
  const void* pointer;  ///< null: `value` holds
  T value;
  int is_half;  ///< what lies at `pointer` is an f16, not a T
};

/// C = alpha op(A) op(B) + beta C for each matrix of a batch. T is the type of alpha and beta.
template <typename T>
struct GemmArguments {
  const void* a;  ///< matrices `*_stride` elements apart, or an array of pointers to matrices
  const void* b;
  void* c;
  long long a_stride, b_stride, c_stride;
  int pointers;
  int m, n, k;
  int lda, ldb, ldc;
  int batches;
  int c_is_f32;  ///< f16 and bf16: C is f32, not of the type of A and B
  Scalar<T> alpha, beta;
};

/// y = alpha op(A) x + beta y, with A of m rows and n columns.
template <typename T>
struct GemvArguments {
  const T* a;
  const T* x;  ///< where element 0 lies, whatever the sign of the increment
  T* y;
  int m, n, lda;
  long long x_step, y_step;
  Scalar<T> alpha, beta;
};

/// Vectors of n elements.
template <typename T>
struct VectorArguments {
  T* x;  ///< where element 0 lies, whatever the sign of the increment
  T* y;
  long long n, x_step, y_step;
  Scalar<T> alpha, beta;  ///< rot: cosine and sine
  void* partials;         ///< of reductions: one for each block
  void* result;
};

/// A += alpha x y^T, with A of m rows and n columns.
template <typename T>
struct GerArguments {
  const T* x;
  const T* y;
  T* a;
  int m, n, lda;
  long long x_step, y_step;
  Scalar<T> alpha;
};

/// C = alpha op(A) + beta op(B), with C of m rows and n columns.
template <typename T>
struct GeamArguments {
  const T* a;
  const T* b;
  T* c;
  int m, n, lda, ldb, ldc;
  int transpose_a, transpose_b;
  Scalar<T> alpha, beta;
};

/// C = X A or A X with the diagonal matrix X, of m rows and n columns. Complex numbers are two of
/// T.
template <typename T>
struct DgmmArguments {
  const T* a;
  const T* x;  ///< where element 0 lies, whatever the sign of the increment
  T* c;
  int m, n, lda, ldc;
  long long x_step;
  int left, is_complex;
};

/// E x = alpha b for each right-hand side, in place; E has n rows and is a triangle.
template <typename T>
struct TrsmArguments {
  const T* a;
  T* b;
  int n, sides;
  long long row_step, column_step;    ///< from E(i, j) to E(i + 1, j) and E(i, j + 1)
  long long element_step, side_step;  ///< of b
  int lower, unit_diagonal;
  Scalar<T> alpha;
};

/// What a block of a reduction hands on.
template <typename T>
struct NormPartial {
  T scale, squares;  ///< the norm is scale sqrt(squares)
};
template <typename T>
struct ExtremePartial {
  T value;
  long long index;  ///< from 0
};

}  // namespace warpstack::cublas
