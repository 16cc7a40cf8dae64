#pragma once

#include <cstdint>

#include "stand_ins/cusolver/lapack.h"

/// What the functions of one type and the generic ones compute alike. `letter` is LAPACK's of the
/// numbers. They throw Failure if arguments are impossible.
namespace warpstack::cusolver {

/// Pivots have 64 bits in the generic functions, otherwise 32. None: no rows are exchanged.
struct Pivots {
  void* place;
  bool wide;
};

void factor_lu(Context& context, Letter letter, std::int64_t rows, std::int64_t columns, void* a,
               std::int64_t lda, Pivots pivots, int* info);
void solve_lu(Context& context, Letter letter, int transpose, std::int64_t size,
              std::int64_t columns, const void* a, std::int64_t lda, Pivots pivots, void* b,
              std::int64_t ldb, int* info);
void factor_cholesky(Context& context, Letter letter, int fill, std::int64_t size, void* a,
                     std::int64_t lda, int* info);
void solve_cholesky(Context& context, Letter letter, int fill, std::int64_t size,
                    std::int64_t columns, const void* a, std::int64_t lda, void* b,
                    std::int64_t ldb, int* info);
void invert_cholesky(Context& context, Letter letter, int fill, std::int64_t size, void* a,
                     std::int64_t lda, int* info);
void factor_qr(Context& context, Letter letter, std::int64_t rows, std::int64_t columns, void* a,
               std::int64_t lda, void* tau, int* info);
/// The first `columns` of Q, in place of the reflectors.
void make_q(Context& context, Letter letter, int rows, int columns, int reflectors, void* a,
            int lda, const void* tau, int* info);
/// C becomes op(Q) C or C op(Q).
void multiply_by_q(Context& context, Letter letter, int side, int transpose, int rows, int columns,
                   int reflectors, const void* a, int lda, const void* tau, void* c, int ldc,
                   int* info);

void decompose_symmetric(Context& context, Letter letter, int mode, int fill, std::int64_t size,
                         void* a, std::int64_t lda, void* w, int* info);
void decompose_pair(Context& context, Letter letter, int type, int mode, int fill, int size,
                    void* a, int lda, void* b, int ldb, void* w, int* info);

/// U and V^H of a decomposition into singular values, or nothing.
struct SingularVectors {
  signed char job_u, job_v;
  void* u;
  std::int64_t ldu;
  void* v;
  std::int64_t ldv;
};
void decompose_singular(Context& context, Letter letter, const SingularVectors& wanted,
                        std::int64_t rows, std::int64_t columns, void* a, std::int64_t lda, void* s,
                        int* info);
/// The same with V itself, as gesvdj has it.
void decompose_singular_v(Context& context, Letter letter, int mode, int econ, int rows,
                          int columns, void* a, int lda, void* s, void* u, int ldu, void* v,
                          int ldv, int* info);

/// Cholesky's factors of several matrices, and solutions with them; `a` and `b` are arrays of
/// pointers in the device's memory.
void factor_cholesky_batch(Context& context, Letter letter, int fill, int size, void** a, int lda,
                           int* infos, int count);
void solve_cholesky_batch(Context& context, Letter letter, int fill, int size, int columns,
                          void** a, int lda, void** b, int ldb, int* info, int count);

}  // namespace warpstack::cusolver
