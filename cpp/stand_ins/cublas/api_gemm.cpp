// Matrix products, single and batched.

#include <algorithm>

#include "stand_ins/cublas/context.h"
#include "stand_ins/cublas/kernels.h"

using namespace warpstack::cublas;

namespace {

/// A call with any types. Without a batch, `batches` is 1.
struct Product {
  int operation_a, operation_b;
  int m, n, k;
  const void* alpha;
  const void* a;  ///< or an array of pointers to matrices
  int lda;
  long long a_stride;
  const void* b;
  int ldb;
  long long b_stride;
  const void* beta;
  void* c;
  int ldc;
  long long c_stride;
  int batches;
  bool pointers;
};

/// Kernels of one type of elements: tiles of C of `large` rows and columns, or of 32.
struct Kernels {
  KernelFile file;
  const char* name;
  int large;
  std::uint32_t large_threads, small_threads;
};
constexpr Kernels f32_kernels{KernelFile::gemm_f32, "ws_gemm_f32", 128, 256, 256};
constexpr Kernels f64_kernels{KernelFile::gemm_f64, "ws_gemm_f64", 64, 256, 256};
constexpr Kernels f16_kernels{KernelFile::gemm_f16, "ws_gemm_f16", 128, 256, 128};
constexpr Kernels bf16_kernels{KernelFile::gemm_bf16, "ws_gemm_bf16", 128, 256, 128};
constexpr Kernels i8_i32_kernels{KernelFile::gemm_i8, "ws_gemm_i8_i32", 64, 256, 256};
constexpr Kernels i8_f32_kernels{KernelFile::gemm_i8, "ws_gemm_i8_f32", 64, 256, 256};

constexpr int small_tile = 32;
constexpr std::uint32_t max_grid_z = 65535;

template <typename T>
void multiply(const Context& context, const Kernels& kernels, const Product& p,
              const Scalar<T>& alpha, const Scalar<T>& beta, bool c_is_f32) {
  const bool transpose_a = transposes(p.operation_a, "transa");
  const bool transpose_b = transposes(p.operation_b, "transb");
  require(p.m >= 0 && p.n >= 0 && p.k >= 0, "a size is negative");
  require(p.batches >= 0, "the number of matrices is negative");
  check_ld("lda", p.lda, transpose_a ? p.k : p.m);
  check_ld("ldb", p.ldb, transpose_b ? p.n : p.k);
  check_ld("ldc", p.ldc, p.m);
  if (p.m == 0 || p.n == 0 || p.batches == 0) return;
  require(p.c != nullptr, "C is a null pointer");

  GemmArguments<T> arguments{};
  arguments.a = p.a;
  arguments.b = p.b;
  arguments.c = p.c;
  arguments.a_stride = p.a_stride;
  arguments.b_stride = p.b_stride;
  arguments.c_stride = p.c_stride;
  arguments.pointers = p.pointers;
  arguments.m = p.m;
  arguments.n = p.n;
  arguments.k = p.k;
  arguments.lda = p.lda;
  arguments.ldb = p.ldb;
  arguments.ldc = p.ldc;
  arguments.batches = p.batches;
  arguments.c_is_f32 = c_is_f32;
  arguments.alpha = alpha;
  arguments.beta = beta;
  // A large tile mostly outside C would do more work than small ones.
  const bool large = 2 * std::min(p.m, p.n) > kernels.large;
  const int tile = large ? kernels.large : small_tile;
  const auto tiles = [tile](int n) { return (static_cast<std::int64_t>(n) + tile - 1) / tile; };
  const std::string size = std::to_string(tile);
  const std::string name = std::string(kernels.name) + (transpose_a ? "_t" : "_n") +
                           (transpose_b ? "t_" : "n_") + size + "x" + size;
  const std::int64_t blocks = tiles(p.m) * tiles(p.n);
  require(blocks <= INT32_MAX, "C is too large");
  launch(kernels.file, name,
         {static_cast<std::uint32_t>(blocks), 1,
          std::min(static_cast<std::uint32_t>(p.batches), max_grid_z)},
         {large ? kernels.large_threads : kernels.small_threads, 1, 1}, &arguments, context.stream);
}

/// f32 and f64, where all types are the same.
template <typename T>
Status plain(const char* function, Context* handle, const Product& p) {
  return call(function, handle, [&](Context& context) {
    multiply(context, std::is_same_v<T, float> ? f32_kernels : f64_kernels, p,
             scalar_of<T>(context, p.alpha, "alpha"), scalar_of<T>(context, p.beta, "beta"), false);
  });
}

/// f16 with alpha and beta in f16.
void multiply_halves(Context& context, const Product& p) {
  multiply(context, f16_kernels, p, half_scalar_of(context, p.alpha, "alpha"),
           half_scalar_of(context, p.beta, "beta"), false);
}

Status halves(const char* function, Context* handle, const Product& p) {
  return call(function, handle, [&](Context& context) { multiply_halves(context, p); });
}

struct Types {
  int a, b, c;
  int compute;
};

[[noreturn]] void refuse(const Types& types) {
  throw Failure(Status::not_supported,
                "A, B and C of cudaDataType " + std::to_string(types.a) + ", " +
                    std::to_string(types.b) + ", " + std::to_string(types.c) +
                    " with cublasComputeType_t " + std::to_string(types.compute) +
                    " are not supported (see docs/how-to/host-programs.md)",
                true);
}

void multiply_typed(Context& context, const Product& p, const Types& types) {
  const auto all_are = [&](int type) {
    return types.a == type && types.b == type && types.c == type;
  };
  switch (types.compute) {
    case compute_f16:
    case compute_f16_pedantic:
      if (!all_are(type_f16)) refuse(types);
      return multiply_halves(context, p);
    case compute_f64:
    case compute_f64_pedantic:
    case compute_f64_emulated:
      if (!all_are(type_f64)) refuse(types);
      return multiply(context, f64_kernels, p, scalar_of<double>(context, p.alpha, "alpha"),
                      scalar_of<double>(context, p.beta, "beta"), false);
    case compute_i32:
    case compute_i32_pedantic:
      if (types.a != type_i8 || types.b != type_i8 || types.c != type_i32) refuse(types);
      return multiply(context, i8_i32_kernels, p, scalar_of<int>(context, p.alpha, "alpha"),
                      scalar_of<int>(context, p.beta, "beta"), false);
    case compute_f32:
    case compute_f32_pedantic:
    case compute_f32_fast_f16:
    case compute_f32_fast_bf16:
    case compute_f32_fast_tf32:
    case compute_f32_emulated:
      break;
    default:
      refuse(types);
  }
  const bool c_is_f32 = types.c == type_f32;
  const Kernels* kernels = nullptr;
  if (all_are(type_f32)) {
    kernels = &f32_kernels;
  } else if (types.a == types.b && (c_is_f32 || types.c == types.a)) {
    if (types.a == type_f16) kernels = &f16_kernels;
    if (types.a == type_bf16) kernels = &bf16_kernels;
    if (types.a == type_i8 && c_is_f32) kernels = &i8_f32_kernels;
  }
  if (kernels == nullptr) refuse(types);
  multiply(context, *kernels, p, scalar_of<float>(context, p.alpha, "alpha"),
           scalar_of<float>(context, p.beta, "beta"), c_is_f32);
}

Status typed(const char* function, Context* handle, const Product& p, const Types& types) {
  return call(function, handle, [&](Context& context) { multiply_typed(context, p, types); });
}

}  // namespace

// cublasSgemm and cublasDgemm are exported with the suffix _v2, the third form is not.
#define CUBLAS_GEMMS(S, version, T, run)                                                         \
  CUBLAS_EXPORT Status cublas##S##gemm##version(                                                 \
      Context* handle, int operation_a, int operation_b, int m, int n, int k, const T* alpha,    \
      const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {                  \
    return run(__func__, handle,                                                                 \
               {operation_a, operation_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, \
                1, false});                                                                      \
  }                                                                                              \
  CUBLAS_EXPORT Status cublas##S##gemmStridedBatched(                                            \
      Context* handle, int operation_a, int operation_b, int m, int n, int k, const T* alpha,    \
      const T* a, int lda, long long a_stride, const T* b, int ldb, long long b_stride,          \
      const T* beta, T* c, int ldc, long long c_stride, int batches) {                           \
    return run(__func__, handle,                                                                 \
               {operation_a, operation_b, m, n, k, alpha, a, lda, a_stride, b, ldb, b_stride,    \
                beta, c, ldc, c_stride, batches, false});                                        \
  }                                                                                              \
  CUBLAS_EXPORT Status cublas##S##gemmBatched(                                                   \
      Context* handle, int operation_a, int operation_b, int m, int n, int k, const T* alpha,    \
      const T* const* a, int lda, const T* const* b, int ldb, const T* beta, T** c, int ldc,     \
      int batches) {                                                                             \
    return run(__func__, handle,                                                                 \
               {operation_a, operation_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, \
                batches, true});                                                                 \
  }
CUBLAS_GEMMS(S, _v2, float, plain<float>)
CUBLAS_GEMMS(D, _v2, double, plain<double>)
CUBLAS_GEMMS(H, , Half, halves)

CUBLAS_EXPORT Status cublasGemmEx(Context* handle, int operation_a, int operation_b, int m, int n,
                                  int k, const void* alpha, const void* a, int a_type, int lda,
                                  const void* b, int b_type, int ldb, const void* beta, void* c,
                                  int c_type, int ldc, int compute, int /*algorithm*/) {
  return typed(
      __func__, handle,
      {operation_a, operation_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1, false},
      {a_type, b_type, c_type, compute});
}

CUBLAS_EXPORT Status cublasGemmStridedBatchedEx(Context* handle, int operation_a, int operation_b,
                                                int m, int n, int k, const void* alpha,
                                                const void* a, int a_type, int lda,
                                                long long a_stride, const void* b, int b_type,
                                                int ldb, long long b_stride, const void* beta,
                                                void* c, int c_type, int ldc, long long c_stride,
                                                int batches, int compute, int /*algorithm*/) {
  return typed(__func__, handle,
               {operation_a, operation_b, m, n, k, alpha, a, lda, a_stride, b, ldb, b_stride, beta,
                c, ldc, c_stride, batches, false},
               {a_type, b_type, c_type, compute});
}

CUBLAS_EXPORT Status cublasGemmBatchedEx(Context* handle, int operation_a, int operation_b, int m,
                                         int n, int k, const void* alpha, const void* const* a,
                                         int a_type, int lda, const void* const* b, int b_type,
                                         int ldb, const void* beta, void** c, int c_type, int ldc,
                                         int batches, int compute, int /*algorithm*/) {
  return typed(__func__, handle,
               {operation_a, operation_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0,
                batches, true},
               {a_type, b_type, c_type, compute});
}

CUBLAS_EXPORT Status cublasSgemmEx(Context* handle, int operation_a, int operation_b, int m, int n,
                                   int k, const float* alpha, const void* a, int a_type, int lda,
                                   const void* b, int b_type, int ldb, const float* beta, void* c,
                                   int c_type, int ldc) {
  return typed(
      __func__, handle,
      {operation_a, operation_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1, false},
      {a_type, b_type, c_type, compute_f32});
}
