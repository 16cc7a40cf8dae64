// The old interface without handles (cublas.h): scalars by value, results returned, statuses kept.

#include <utility>

#include "stand_ins/cublas/context.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::cublas;
using warpstack::cudart::StreamHandle;

extern "C" {
Status cublasCreate_v2(Context** handle);
Status cublasDestroy_v2(Context* handle);
Status cublasGetVersion_v2(Context* handle, int* version);
Status cublasSetStream_v2(Context* handle, StreamHandle stream);
#define CUBLAS_LEGACY_NEEDS(S, s, T)                                                              \
  Status cublas##S##axpy_v2(Context*, int, const T*, const T*, int, T*, int);                     \
  Status cublas##S##scal_v2(Context*, int, const T*, T*, int);                                    \
  Status cublas##S##copy_v2(Context*, int, const T*, int, T*, int);                               \
  Status cublas##S##swap_v2(Context*, int, T*, int, T*, int);                                     \
  Status cublas##S##rot_v2(Context*, int, T*, int, T*, int, const T*, const T*);                  \
  Status cublas##S##dot_v2(Context*, int, const T*, int, const T*, int, T*);                      \
  Status cublas##S##asum_v2(Context*, int, const T*, int, T*);                                    \
  Status cublas##S##nrm2_v2(Context*, int, const T*, int, T*);                                    \
  Status cublasI##s##amax_v2(Context*, int, const T*, int, int*);                                 \
  Status cublasI##s##amin_v2(Context*, int, const T*, int, int*);                                 \
  Status cublas##S##gemv_v2(Context*, int, int, int, const T*, const T*, int, const T*, int,      \
                            const T*, T*, int);                                                   \
  Status cublas##S##ger_v2(Context*, int, int, const T*, const T*, int, const T*, int, T*, int);  \
  Status cublas##S##gemm_v2(Context*, int, int, int, int, int, const T*, const T*, int, const T*, \
                            int, const T*, T*, int);                                              \
  Status cublas##S##trsm_v2(Context*, int, int, int, int, int, int, const T*, const T*, int, T*,  \
                            int);
CUBLAS_LEGACY_NEEDS(S, s, float)
CUBLAS_LEGACY_NEEDS(D, d, double)
}

namespace {

Context* legacy_handle = nullptr;
Status legacy_status = Status::success;

void keep(Status status) {
  if (status != Status::success) legacy_status = status;
}

/// cuBLAS accepts letters in either case; other letters give no valid operation.
int among(char letter, const char* letters) {
  for (int i = 0; letters[i] != '\0'; ++i) {
    if ((letter | 0x20) == letters[i]) return i;
  }
  return -1;
}
int operation_of(char letter) { return among(letter, "ntc"); }
int side_of(char letter) { return among(letter, "lr"); }
int fill_of(char letter) { return among(letter, "lu"); }
int diagonal_of(char letter) { return among(letter, "nu"); }

}  // namespace

CUBLAS_EXPORT Status cublasInit() {
  return legacy_handle != nullptr ? Status::success : cublasCreate_v2(&legacy_handle);
}

CUBLAS_EXPORT Status cublasShutdown() {
  return legacy_handle == nullptr ? Status::not_initialized
                                  : cublasDestroy_v2(std::exchange(legacy_handle, nullptr));
}

CUBLAS_EXPORT Status cublasGetError() { return std::exchange(legacy_status, Status::success); }

CUBLAS_EXPORT Status cublasGetVersion(int* version) {
  return cublasGetVersion_v2(legacy_handle, version);
}

CUBLAS_EXPORT Status cublasSetKernelStream(StreamHandle stream) {
  return cublasSetStream_v2(legacy_handle, stream);
}

CUBLAS_EXPORT Status cublasAlloc(int n, int element_bytes, void** pointer) {
  return call(__func__, legacy_handle, [&](Context&) {
    require(n > 0 && element_bytes > 0 && pointer != nullptr,
            "the number or the size of elements is not positive, or the pointer has no place");
    require_success(
        cudaMalloc(pointer, static_cast<std::size_t>(n) * static_cast<std::size_t>(element_bytes)),
        Status::alloc_failed);
  });
}

CUBLAS_EXPORT Status cublasFree(void* pointer) {
  return call(__func__, legacy_handle,
              [&](Context&) { require_success(cudaFree(pointer), Status::internal_error); });
}

#define CUBLAS_LEGACY(S, s, T)                                                                     \
  CUBLAS_EXPORT void cublas##S##axpy(int n, T alpha, const T* x, int x_step, T* y, int y_step) {   \
    keep(cublas##S##axpy_v2(legacy_handle, n, &alpha, x, x_step, y, y_step));                      \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##scal(int n, T alpha, T* x, int x_step) {                           \
    keep(cublas##S##scal_v2(legacy_handle, n, &alpha, x, x_step));                                 \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##copy(int n, const T* x, int x_step, T* y, int y_step) {            \
    keep(cublas##S##copy_v2(legacy_handle, n, x, x_step, y, y_step));                              \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##swap(int n, T* x, int x_step, T* y, int y_step) {                  \
    keep(cublas##S##swap_v2(legacy_handle, n, x, x_step, y, y_step));                              \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##rot(int n, T* x, int x_step, T* y, int y_step, T cosine, T sine) { \
    keep(cublas##S##rot_v2(legacy_handle, n, x, x_step, y, y_step, &cosine, &sine));               \
  }                                                                                                \
  CUBLAS_EXPORT T cublas##S##dot(int n, const T* x, int x_step, const T* y, int y_step) {          \
    T result = 0;                                                                                  \
    keep(cublas##S##dot_v2(legacy_handle, n, x, x_step, y, y_step, &result));                      \
    return result;                                                                                 \
  }                                                                                                \
  CUBLAS_EXPORT T cublas##S##asum(int n, const T* x, int x_step) {                                 \
    T result = 0;                                                                                  \
    keep(cublas##S##asum_v2(legacy_handle, n, x, x_step, &result));                                \
    return result;                                                                                 \
  }                                                                                                \
  CUBLAS_EXPORT T cublas##S##nrm2(int n, const T* x, int x_step) {                                 \
    T result = 0;                                                                                  \
    keep(cublas##S##nrm2_v2(legacy_handle, n, x, x_step, &result));                                \
    return result;                                                                                 \
  }                                                                                                \
  CUBLAS_EXPORT int cublasI##s##amax(int n, const T* x, int x_step) {                              \
    int result = 0;                                                                                \
    keep(cublasI##s##amax_v2(legacy_handle, n, x, x_step, &result));                               \
    return result;                                                                                 \
  }                                                                                                \
  CUBLAS_EXPORT int cublasI##s##amin(int n, const T* x, int x_step) {                              \
    int result = 0;                                                                                \
    keep(cublasI##s##amin_v2(legacy_handle, n, x, x_step, &result));                               \
    return result;                                                                                 \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##gemv(char operation, int m, int n, T alpha, const T* a, int lda,   \
                                     const T* x, int x_step, T beta, T* y, int y_step) {           \
    keep(cublas##S##gemv_v2(legacy_handle, operation_of(operation), m, n, &alpha, a, lda, x,       \
                            x_step, &beta, y, y_step));                                            \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##ger(int m, int n, T alpha, const T* x, int x_step, const T* y,     \
                                    int y_step, T* a, int lda) {                                   \
    keep(cublas##S##ger_v2(legacy_handle, m, n, &alpha, x, x_step, y, y_step, a, lda));            \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##gemm(char operation_a, char operation_b, int m, int n, int k,      \
                                     T alpha, const T* a, int lda, const T* b, int ldb, T beta,    \
                                     T* c, int ldc) {                                              \
    keep(cublas##S##gemm_v2(legacy_handle, operation_of(operation_a), operation_of(operation_b),   \
                            m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc));                      \
  }                                                                                                \
  CUBLAS_EXPORT void cublas##S##trsm(char side, char fill, char operation, char diagonal, int m,   \
                                     int n, T alpha, const T* a, int lda, T* b, int ldb) {         \
    keep(cublas##S##trsm_v2(legacy_handle, side_of(side), fill_of(fill), operation_of(operation),  \
                            diagonal_of(diagonal), m, n, &alpha, a, lda, b, ldb));                 \
  }
CUBLAS_LEGACY(S, s, float)
CUBLAS_LEGACY(D, d, double)
