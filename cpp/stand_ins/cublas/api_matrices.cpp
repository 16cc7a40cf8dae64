// BLAS level 2, and level 3 except products, in f32 and f64.

#include "stand_ins/cublas/context.h"
#include "stand_ins/cublas/kernels.h"

using namespace warpstack::cublas;

namespace {

constexpr int row_threads = 256;
constexpr int plane_size = 32;
constexpr int plane_rows = 8;

std::uint64_t pieces(long long n, long long size) {
  return static_cast<std::uint64_t>((n + size - 1) / size);
}

void check_sizes(int m, int n) { require(m >= 0 && n >= 0, "a size is negative"); }

template <typename T>
Status gemv(const char* function, Context* handle, int operation, int m, int n, const T* alpha,
            const T* a, int lda, const T* x, int x_step, const T* beta, T* y, int y_step) {
  return call(function, handle, [&](Context& context) {
    const bool transpose = transposes(operation, "trans");
    check_sizes(m, n);
    check_ld("lda", lda, m);
    require(x_step != 0 && y_step != 0, "an increment is 0");
    GemvArguments<T> arguments{};
    arguments.alpha = scalar_of<T>(context, alpha, "alpha");
    arguments.beta = scalar_of<T>(context, beta, "beta");
    if (m == 0 || n == 0) return;
    arguments.a = a;
    arguments.m = m;
    arguments.n = n;
    arguments.lda = lda;
    arguments.x = start_of(x, transpose ? m : n, x_step);
    arguments.y = start_of(y, transpose ? n : m, y_step);
    arguments.x_step = x_step;
    arguments.y_step = y_step;
    launch_on<T>(transpose ? "ws_gemv_t" : "ws_gemv_n",
                 transpose ? static_cast<std::uint64_t>(n) : pieces(m, row_threads),
                 {row_threads, 1, 1}, arguments, context.stream);
  });
}

template <typename T>
Status ger(const char* function, Context* handle, int m, int n, const T* alpha, const T* x,
           int x_step, const T* y, int y_step, T* a, int lda) {
  return call(function, handle, [&](Context& context) {
    check_sizes(m, n);
    check_ld("lda", lda, m);
    require(x_step != 0 && y_step != 0, "an increment is 0");
    const auto factor = scalar_of<T>(context, alpha, "alpha");
    if (m == 0 || n == 0) return;
    const GerArguments<T> arguments{
        start_of(x, m, x_step), start_of(y, n, y_step), a, m, n, lda, x_step, y_step, factor};
    launch_on<T>("ws_ger", pieces(m, plane_size) * pieces(n, plane_size),
                 {plane_size, plane_rows, 1}, arguments, context.stream);
  });
}

template <typename T>
Status geam(const char* function, Context* handle, int operation_a, int operation_b, int m, int n,
            const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c,
            int ldc) {
  return call(function, handle, [&](Context& context) {
    const bool transpose_a = transposes(operation_a, "transa");
    const bool transpose_b = transposes(operation_b, "transb");
    check_sizes(m, n);
    check_ld("lda", lda, transpose_a ? n : m);
    check_ld("ldb", ldb, transpose_b ? n : m);
    check_ld("ldc", ldc, m);
    require(c != a || (!transpose_a && lda == ldc),
            "C is A, which must not be transposed then and have the same leading dimension");
    require(c != b || (!transpose_b && ldb == ldc),
            "C is B, which must not be transposed then and have the same leading dimension");
    const auto factor_a = scalar_of<T>(context, alpha, "alpha");
    const auto factor_b = scalar_of<T>(context, beta, "beta");
    if (m == 0 || n == 0) return;
    const GeamArguments<T> arguments{a,   b,   c,           m,           n,        lda,
                                     ldb, ldc, transpose_a, transpose_b, factor_a, factor_b};
    launch_on<T>("ws_geam", pieces(m, plane_size) * pieces(n, plane_size),
                 {plane_size, plane_rows, 1}, arguments, context.stream);
  });
}

/// A complex number is `parts` = 2 of T.
template <typename T>
Status dgmm(const char* function, Context* handle, int parts, int side, int m, int n, const T* a,
            int lda, const T* x, int x_step, T* c, int ldc) {
  return call(function, handle, [&](Context& context) {
    require(side == side_left || side == side_right, "mode is neither left nor right");
    check_sizes(m, n);
    check_ld("lda", lda, m);
    check_ld("ldc", ldc, m);
    require(c != a || lda == ldc, "C is A, which must have the same leading dimension then");
    if (m == 0 || n == 0) return;
    const bool left = side == side_left;
    const DgmmArguments<T> arguments{
        a, start_of(x, left ? m : n, parts * x_step), c, m, n, lda, ldc, x_step, left, parts == 2};
    launch_on<T>("ws_dgmm", pieces(m, plane_size) * pieces(n, plane_size),
                 {plane_size, plane_rows, 1}, arguments, context.stream);
  });
}

template <typename T>
Status trsm(const char* function, Context* handle, int side, int fill, int operation, int diagonal,
            int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb) {
  return call(function, handle, [&](Context& context) {
    require(side == side_left || side == side_right, "side is neither left nor right");
    require(fill == fill_lower || fill == fill_upper, "uplo is neither lower nor upper");
    require(diagonal == diagonal_any || diagonal == diagonal_unit,
            "diag is neither CUBLAS_DIAG_NON_UNIT nor CUBLAS_DIAG_UNIT");
    const bool transpose = transposes(operation, "trans");
    const bool left = side == side_left;
    check_sizes(m, n);
    check_ld("lda", lda, left ? m : n);
    check_ld("ldb", ldb, m);
    TrsmArguments<T> arguments{};
    arguments.alpha = scalar_of<T>(context, alpha, "alpha");
    if (m == 0 || n == 0) return;
    // X op(A) = alpha B is op(A)^T X^T = alpha B^T.
    const bool flipped = transpose == left;
    arguments.a = a;
    arguments.b = b;
    arguments.n = left ? m : n;
    arguments.sides = left ? n : m;
    arguments.row_step = flipped ? lda : 1;
    arguments.column_step = flipped ? 1 : lda;
    arguments.element_step = left ? 1 : ldb;
    arguments.side_step = left ? ldb : 1;
    arguments.lower = (fill == fill_lower) != flipped;
    arguments.unit_diagonal = diagonal == diagonal_unit;
    launch_on<T>("ws_trsm", static_cast<std::uint64_t>(arguments.sides), {row_threads, 1, 1},
                 arguments, context.stream);
  });
}

}  // namespace

#define CUBLAS_MATRICES(S, T)                                                                     \
  CUBLAS_EXPORT Status cublas##S##gemv_v2(Context* handle, int operation, int m, int n,           \
                                          const T* alpha, const T* a, int lda, const T* x,        \
                                          int x_step, const T* beta, T* y, int y_step) {          \
    return gemv<T>(__func__, handle, operation, m, n, alpha, a, lda, x, x_step, beta, y, y_step); \
  }                                                                                               \
  CUBLAS_EXPORT Status cublas##S##ger_v2(Context* handle, int m, int n, const T* alpha,           \
                                         const T* x, int x_step, const T* y, int y_step, T* a,    \
                                         int lda) {                                               \
    return ger<T>(__func__, handle, m, n, alpha, x, x_step, y, y_step, a, lda);                   \
  }                                                                                               \
  CUBLAS_EXPORT Status cublas##S##geam(Context* handle, int operation_a, int operation_b, int m,  \
                                       int n, const T* alpha, const T* a, int lda, const T* beta, \
                                       const T* b, int ldb, T* c, int ldc) {                      \
    return geam<T>(__func__, handle, operation_a, operation_b, m, n, alpha, a, lda, beta, b, ldb, \
                   c, ldc);                                                                       \
  }                                                                                               \
  CUBLAS_EXPORT Status cublas##S##trsm_v2(Context* handle, int side, int fill, int operation,     \
                                          int diagonal, int m, int n, const T* alpha, const T* a, \
                                          int lda, T* b, int ldb) {                               \
    return trsm<T>(__func__, handle, side, fill, operation, diagonal, m, n, alpha, a, lda, b,     \
                   ldb);                                                                          \
  }
CUBLAS_MATRICES(S, float)
CUBLAS_MATRICES(D, double)

#define CUBLAS_DGMM(S, T, parts)                                                            \
  CUBLAS_EXPORT Status cublas##S##dgmm(Context* handle, int side, int m, int n, const T* a, \
                                       int lda, const T* x, int x_step, T* c, int ldc) {    \
    return dgmm<T>(__func__, handle, parts, side, m, n, a, lda, x, x_step, c, ldc);         \
  }
CUBLAS_DGMM(S, float, 1)
CUBLAS_DGMM(D, double, 1)
CUBLAS_DGMM(C, float, 2)
CUBLAS_DGMM(Z, double, 2)
