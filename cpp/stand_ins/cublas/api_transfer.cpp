// Copies of vectors and matrices between host and device.

#include "stand_ins/cublas/context.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::cublas;
using warpstack::cudart::MemcpyKind;
using warpstack::cudart::StreamHandle;

namespace {

/// `lines` lines of `length` bytes each, `source_step` and `target_step` bytes apart.
void copy_lines(const void* source, std::size_t source_step, void* target, std::size_t target_step,
                std::size_t length, std::size_t lines, MemcpyKind kind, StreamHandle stream) {
  if (length == 0 || lines == 0) return;
  require_success(
      cudaMemcpy2DAsync(target, target_step, source, source_step, length, lines, kind, stream),
      Status::mapping_error);
}

Status copy_vector(const char* function, int n, int element_bytes, const void* source,
                   int source_step, void* target, int target_step, MemcpyKind kind,
                   StreamHandle stream) {
  return call(function, [&] {
    require(n >= 0 && element_bytes > 0 && source_step > 0 && target_step > 0,
            "the number of elements is negative, or their size or an increment is not positive");
    const auto bytes = static_cast<std::size_t>(element_bytes);
    copy_lines(source, static_cast<std::size_t>(source_step) * bytes, target,
               static_cast<std::size_t>(target_step) * bytes, bytes, static_cast<std::size_t>(n),
               kind, stream);
  });
}

Status copy_matrix(const char* function, int rows, int columns, int element_bytes,
                   const void* source, int source_ld, void* target, int target_ld, MemcpyKind kind,
                   StreamHandle stream) {
  return call(function, [&] {
    require(rows >= 0 && columns >= 0 && element_bytes > 0,
            "rows or columns are negative, or the size of elements is not positive");
    require(source_ld > 0 && target_ld > 0 && source_ld >= rows && target_ld >= rows,
            "a leading dimension is less than the number of rows");
    const auto bytes = static_cast<std::size_t>(element_bytes);
    copy_lines(source, static_cast<std::size_t>(source_ld) * bytes, target,
               static_cast<std::size_t>(target_ld) * bytes, static_cast<std::size_t>(rows) * bytes,
               static_cast<std::size_t>(columns), kind, stream);
  });
}

}  // namespace

CUBLAS_EXPORT Status cublasSetVector(int n, int element_bytes, const void* x, int x_step, void* y,
                                     int y_step) {
  return copy_vector(__func__, n, element_bytes, x, x_step, y, y_step, MemcpyKind::host_to_device,
                     0);
}

CUBLAS_EXPORT Status cublasGetVector(int n, int element_bytes, const void* x, int x_step, void* y,
                                     int y_step) {
  return copy_vector(__func__, n, element_bytes, x, x_step, y, y_step, MemcpyKind::device_to_host,
                     0);
}

CUBLAS_EXPORT Status cublasSetVectorAsync(int n, int element_bytes, const void* x, int x_step,
                                          void* y, int y_step, StreamHandle stream) {
  return copy_vector(__func__, n, element_bytes, x, x_step, y, y_step, MemcpyKind::host_to_device,
                     stream);
}

CUBLAS_EXPORT Status cublasGetVectorAsync(int n, int element_bytes, const void* x, int x_step,
                                          void* y, int y_step, StreamHandle stream) {
  return copy_vector(__func__, n, element_bytes, x, x_step, y, y_step, MemcpyKind::device_to_host,
                     stream);
}

CUBLAS_EXPORT Status cublasSetMatrix(int rows, int columns, int element_bytes, const void* a,
                                     int lda, void* b, int ldb) {
  return copy_matrix(__func__, rows, columns, element_bytes, a, lda, b, ldb,
                     MemcpyKind::host_to_device, 0);
}

CUBLAS_EXPORT Status cublasGetMatrix(int rows, int columns, int element_bytes, const void* a,
                                     int lda, void* b, int ldb) {
  return copy_matrix(__func__, rows, columns, element_bytes, a, lda, b, ldb,
                     MemcpyKind::device_to_host, 0);
}

CUBLAS_EXPORT Status cublasSetMatrixAsync(int rows, int columns, int element_bytes, const void* a,
                                          int lda, void* b, int ldb, StreamHandle stream) {
  return copy_matrix(__func__, rows, columns, element_bytes, a, lda, b, ldb,
                     MemcpyKind::host_to_device, stream);
}

CUBLAS_EXPORT Status cublasGetMatrixAsync(int rows, int columns, int element_bytes, const void* a,
                                          int lda, void* b, int ldb, StreamHandle stream) {
  return copy_matrix(__func__, rows, columns, element_bytes, a, lda, b, ldb,
                     MemcpyKind::device_to_host, stream);
}
