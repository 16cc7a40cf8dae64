// Functions of one type of numbers.

#include "stand_ins/cusolver/dense.h"
#include "stand_ins/cusolver/parameters.h"

using namespace warpstack::cusolver;

namespace {

/// Numbers of a work array. Nothing is written to it; NVIDIA's sizes are not published. Programs
/// take a size of 0 for a failure.
constexpr int work_numbers = 64;

/// The arguments are checked as the call itself does that they belong to.
Status give_work(const char* function, Context* handle, int rows, int columns, int ld, int* size) {
  return call(function, handle, [&](Context&) {
    size_of("m", rows);
    size_of("n", columns);
    require(ld >= rows && ld >= 1,
            with_number("lda", ld) + " is less than max(1, " + std::to_string(rows) + ")");
    give(size, work_numbers, "lwork");
  });
}

template <typename Run>
Status run(const char* function, Context* handle, int* info, Run body) {
  return call_in_stream(function, handle, [=](Context& context) {
    require(info != nullptr, "devInfo is null");
    body(context);
  });
}

}  // namespace

#define FACTORS(T, letter)                                                                        \
  CUSOLVER_EXPORT Status cusolverDn##T##getrf_bufferSize(Context* handle, int m, int n, void*,    \
                                                         int lda, int* lwork) {                   \
    return give_work(__func__, handle, m, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##getrf(Context* handle, int m, int n, void* a, int lda,    \
                                              void*, int* pivots, int* info) {                    \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      factor_lu(context, letter, m, n, a, lda, {pivots, false}, info);                            \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##getrs(Context* handle, int transpose, int n, int nrhs,    \
                                              const void* a, int lda, int* pivots, void* b,       \
                                              int ldb, int* info) {                               \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      solve_lu(context, letter, transpose, n, nrhs, a, lda, {pivots, false}, b, ldb, info);       \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##potrf_bufferSize(Context* handle, int, int n, void*,      \
                                                         int lda, int* lwork) {                   \
    return give_work(__func__, handle, n, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##potrf(Context* handle, int fill, int n, void* a, int lda, \
                                              void*, int, int* info) {                            \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      factor_cholesky(context, letter, fill, n, a, lda, info);                                    \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##potrs(Context* handle, int fill, int n, int nrhs,         \
                                              const void* a, int lda, void* b, int ldb,           \
                                              int* info) {                                        \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      solve_cholesky(context, letter, fill, n, nrhs, a, lda, b, ldb, info);                       \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##potri_bufferSize(Context* handle, int, int n, void*,      \
                                                         int lda, int* lwork) {                   \
    return give_work(__func__, handle, n, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##potri(Context* handle, int fill, int n, void* a, int lda, \
                                              void*, int, int* info) {                            \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      invert_cholesky(context, letter, fill, n, a, lda, info);                                    \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##potrfBatched(Context* handle, int fill, int n, void** a,  \
                                                     int lda, int* infos, int count) {            \
    return run(__func__, handle, infos, [=](Context& context) {                                   \
      factor_cholesky_batch(context, letter, fill, n, a, lda, infos, count);                      \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##potrsBatched(Context* handle, int fill, int n, int nrhs,  \
                                                     void** a, int lda, void** b, int ldb,        \
                                                     int* info, int count) {                      \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      solve_cholesky_batch(context, letter, fill, n, nrhs, a, lda, b, ldb, info, count);          \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##geqrf_bufferSize(Context* handle, int m, int n, void*,    \
                                                         int lda, int* lwork) {                   \
    return give_work(__func__, handle, m, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##geqrf(Context* handle, int m, int n, void* a, int lda,    \
                                              void* tau, void*, int, int* info) {                 \
    return run(__func__, handle, info,                                                            \
               [=](Context& context) { factor_qr(context, letter, m, n, a, lda, tau, info); });   \
  }
FACTORS(S, 's')
FACTORS(D, 'd')
FACTORS(C, 'c')
FACTORS(Z, 'z')
#undef FACTORS

#define REAL_Q(T, letter)                                                                        \
  CUSOLVER_EXPORT Status cusolverDn##T##orgqr_bufferSize(                                        \
      Context* handle, int m, int n, int, const void*, int lda, const void*, int* lwork) {       \
    return give_work(__func__, handle, m, n, lda, lwork);                                        \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverDn##T##orgqr(Context* handle, int m, int n, int k, void* a,     \
                                              int lda, const void* tau, void*, int, int* info) { \
    return run(__func__, handle, info,                                                           \
               [=](Context& context) { make_q(context, letter, m, n, k, a, lda, tau, info); });  \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverDn##T##ormqr_bufferSize(                                        \
      Context* handle, int side, int, int m, int n, int k, const void*, int lda, const void*,    \
      const void*, int, int* lwork) {                                                            \
    return give_work(__func__, handle, side == side_left ? m : n, k, lda, lwork);                \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverDn##T##ormqr(                                                   \
      Context* handle, int side, int transpose, int m, int n, int k, const void* a, int lda,     \
      const void* tau, void* c, int ldc, void*, int, int* info) {                                \
    return run(__func__, handle, info, [=](Context& context) {                                   \
      multiply_by_q(context, letter, side, transpose, m, n, k, a, lda, tau, c, ldc, info);       \
    });                                                                                          \
  }
REAL_Q(S, 's')
REAL_Q(D, 'd')
#undef REAL_Q

#define COMPLEX_Q(T, letter)                                                                     \
  CUSOLVER_EXPORT Status cusolverDn##T##ungqr_bufferSize(                                        \
      Context* handle, int m, int n, int, const void*, int lda, const void*, int* lwork) {       \
    return give_work(__func__, handle, m, n, lda, lwork);                                        \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverDn##T##ungqr(Context* handle, int m, int n, int k, void* a,     \
                                              int lda, const void* tau, void*, int, int* info) { \
    return run(__func__, handle, info,                                                           \
               [=](Context& context) { make_q(context, letter, m, n, k, a, lda, tau, info); });  \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverDn##T##unmqr_bufferSize(                                        \
      Context* handle, int side, int, int m, int n, int k, const void*, int lda, const void*,    \
      const void*, int, int* lwork) {                                                            \
    return give_work(__func__, handle, side == side_left ? m : n, k, lda, lwork);                \
  }                                                                                              \
  CUSOLVER_EXPORT Status cusolverDn##T##unmqr(                                                   \
      Context* handle, int side, int transpose, int m, int n, int k, const void* a, int lda,     \
      const void* tau, void* c, int ldc, void*, int, int* info) {                                \
    return run(__func__, handle, info, [=](Context& context) {                                   \
      multiply_by_q(context, letter, side, transpose, m, n, k, a, lda, tau, c, ldc, info);       \
    });                                                                                          \
  }
COMPLEX_Q(C, 'c')
COMPLEX_Q(Z, 'z')
#undef COMPLEX_Q

// Symmetric matrices are `sy`, Hermitian ones `he`.
#define EIGENVALUES(T, kind, letter)                                                              \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##evd_bufferSize(                                     \
      Context* handle, int, int, int n, const void*, int lda, const void*, int* lwork) {          \
    return give_work(__func__, handle, n, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##evd(Context* handle, int mode, int fill, int n,     \
                                                  void* a, int lda, void* w, void*, int,          \
                                                  int* info) {                                    \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      decompose_symmetric(context, letter, mode, fill, n, a, lda, w, info);                       \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##evj_bufferSize(Context* handle, int, int, int n,    \
                                                             const void*, int lda, const void*,   \
                                                             int* lwork, JacobiEigen*) {          \
    return give_work(__func__, handle, n, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##evj(Context* handle, int mode, int fill, int n,     \
                                                  void* a, int lda, void* w, void*, int,          \
                                                  int* info, JacobiEigen* parameters) {           \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      described(parameters, "params");                                                            \
      decompose_symmetric(context, letter, mode, fill, n, a, lda, w, info);                       \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##gvd_bufferSize(                                     \
      Context* handle, int, int, int, int n, const void*, int lda, const void*, int, const void*, \
      int* lwork) {                                                                               \
    return give_work(__func__, handle, n, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##gvd(Context* handle, int type, int mode, int fill,  \
                                                  int n, void* a, int lda, void* b, int ldb,      \
                                                  void* w, void*, int, int* info) {               \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      decompose_pair(context, letter, type, mode, fill, n, a, lda, b, ldb, w, info);              \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##gvj_bufferSize(                                     \
      Context* handle, int, int, int, int n, const void*, int lda, const void*, int, const void*, \
      int* lwork, JacobiEigen*) {                                                                 \
    return give_work(__func__, handle, n, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##kind##gvj(                                                \
      Context* handle, int type, int mode, int fill, int n, void* a, int lda, void* b, int ldb,   \
      void* w, void*, int, int* info, JacobiEigen* parameters) {                                  \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      described(parameters, "params");                                                            \
      decompose_pair(context, letter, type, mode, fill, n, a, lda, b, ldb, w, info);              \
    });                                                                                           \
  }
EIGENVALUES(S, sy, 's')
EIGENVALUES(D, sy, 'd')
EIGENVALUES(C, he, 'c')
EIGENVALUES(Z, he, 'z')
#undef EIGENVALUES

#define SINGULAR_VALUES(T, letter)                                                                \
  CUSOLVER_EXPORT Status cusolverDn##T##gesvd_bufferSize(Context* handle, int m, int n,           \
                                                         int* lwork) {                            \
    return give_work(__func__, handle, m, n, m < 1 ? 1 : m, lwork);                               \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##gesvd(                                                    \
      Context* handle, signed char job_u, signed char job_v, int m, int n, void* a, int lda,      \
      void* s, void* u, int ldu, void* v, int ldv, void*, int, void*, int* info) {                \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      decompose_singular(context, letter, {job_u, job_v, u, ldu, v, ldv}, m, n, a, lda, s, info); \
    });                                                                                           \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##gesvdj_bufferSize(                                        \
      Context* handle, int, int, int m, int n, const void*, int lda, const void*, const void*,    \
      int, const void*, int, int* lwork, JacobiSingular*) {                                       \
    return give_work(__func__, handle, m, n, lda, lwork);                                         \
  }                                                                                               \
  CUSOLVER_EXPORT Status cusolverDn##T##gesvdj(                                                   \
      Context* handle, int mode, int econ, int m, int n, void* a, int lda, void* s, void* u,      \
      int ldu, void* v, int ldv, void*, int, int* info, JacobiSingular* parameters) {             \
    return run(__func__, handle, info, [=](Context& context) {                                    \
      described(parameters, "params");                                                            \
      decompose_singular_v(context, letter, mode, econ, m, n, a, lda, s, u, ldu, v, ldv, info);   \
    });                                                                                           \
  }
SINGULAR_VALUES(S, 's')
SINGULAR_VALUES(D, 'd')
SINGULAR_VALUES(C, 'c')
SINGULAR_VALUES(Z, 'z')
#undef SINGULAR_VALUES
