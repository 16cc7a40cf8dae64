// BLAS level 1 in f32 and f64.

#include <algorithm>

#include "stand_ins/cublas/context.h"
#include "stand_ins/cublas/kernels.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::cublas;
using warpstack::cudart::MemcpyKind;

namespace {

constexpr std::uint32_t vector_threads = 256;

std::uint64_t blocks_for(long long n, long long most) {
  return static_cast<std::uint64_t>(std::min((n + vector_threads - 1) / vector_threads, most));
}

template <typename T>
VectorArguments<T> arguments_of(int n, const T* x, int x_step, const T* y = nullptr,
                                int y_step = 1) {
  VectorArguments<T> arguments{};
  arguments.n = n;
  arguments.x = const_cast<T*>(start_of(x, n, x_step));
  arguments.x_step = x_step;
  arguments.y = const_cast<T*>(start_of(y, n, y_step));
  arguments.y_step = y_step;
  return arguments;
}

/// Throws Failure if all written elements would have the same address.
void check_step(const char* name, int n, int step) {
  if (n > 1 && step == 0) {
    throw Failure(Status::not_supported,
                  std::string(name) + " = 0: the result would depend on the order of threads",
                  true);
  }
}

/// A kernel that writes one vector, or two.
template <typename T>
void run_elementwise(const Context& context, const char* kernel,
                     const VectorArguments<T>& arguments) {
  constexpr long long most_blocks = 1 << 16;
  launch_on<T>(kernel, blocks_for(arguments.n, most_blocks), {vector_threads, 1, 1}, arguments,
               context.stream);
}

/// A result in host memory must be waited for, which a capturing stream does not allow.
void check_waiting(const Context& context) {
  int capturing = 0;
  require_success(cudaStreamIsCapturing(context.stream, &capturing), Status::mapping_error);
  if (capturing == 0) return;
  cudaStreamSynchronize(context.stream);  // the capture is invalid, as with CUDA
  throw Failure(Status::mapping_error,
                "the stream captures, and a result in host memory would have to be waited for; "
                "CUBLAS_POINTER_MODE_DEVICE leaves it on the device");
}

/// A reduction: a partial result per block, which one block then reduces. The pointer mode says
/// where the result goes.
template <typename T, typename Result>
void reduce(const Context& context, const char* first, const char* last,
            VectorArguments<T> arguments, Result* result) {
  const bool on_device = context.pointer_mode == PointerMode::device;
  if (!on_device) check_waiting(context);
  void* const held = static_cast<std::byte*>(context.scratch) + partials_bytes;
  arguments.partials = context.scratch;
  arguments.result = on_device ? static_cast<void*>(result) : held;
  const std::uint64_t blocks = blocks_for(arguments.n, max_partials);
  launch_on<T>(first, blocks, {vector_threads, 1, 1}, arguments, context.stream);
  arguments.n = static_cast<long long>(blocks);
  launch_on<T>(last, 1, {vector_threads, 1, 1}, arguments, context.stream);
  if (!on_device) {
    require_success(cudaMemcpy(result, held, sizeof(Result), MemcpyKind::device_to_host),
                    Status::mapping_error);
  }
}

/// Writes the result of an empty reduction.
template <typename Result>
void store_zero(const Context& context, Result* result) {
  if (context.pointer_mode == PointerMode::device) {
    require_success(cudaMemset(result, 0, sizeof(Result)), Status::mapping_error);
  } else {
    *result = 0;
  }
}

template <typename T>
Status axpy(const char* function, Context* handle, int n, const T* alpha, const T* x, int x_step,
            T* y, int y_step) {
  return call(function, handle, [&](Context& context) {
    const auto factor = scalar_of<T>(context, alpha, "alpha");
    if (n <= 0) return;
    check_step("incy", n, y_step);
    auto arguments = arguments_of<T>(n, x, x_step, y, y_step);
    arguments.alpha = factor;
    run_elementwise(context, "ws_axpy", arguments);
  });
}

template <typename T>
Status scal(const char* function, Context* handle, int n, const T* alpha, T* x, int x_step) {
  return call(function, handle, [&](Context& context) {
    const auto factor = scalar_of<T>(context, alpha, "alpha");
    if (n <= 0 || x_step <= 0) return;
    auto arguments = arguments_of<T>(n, x, x_step);
    arguments.alpha = factor;
    run_elementwise(context, "ws_scal", arguments);
  });
}

/// copy and swap.
template <typename T>
Status move(const char* function, const char* kernel, bool both, Context* handle, int n, const T* x,
            int x_step, T* y, int y_step) {
  return call(function, handle, [&](Context& context) {
    if (n <= 0) return;
    check_step("incy", n, y_step);
    if (both) check_step("incx", n, x_step);
    run_elementwise(context, kernel, arguments_of<T>(n, x, x_step, y, y_step));
  });
}

template <typename T>
Status rot(const char* function, Context* handle, int n, T* x, int x_step, T* y, int y_step,
           const T* cosine, const T* sine) {
  return call(function, handle, [&](Context& context) {
    const auto c = scalar_of<T>(context, cosine, "c");
    const auto s = scalar_of<T>(context, sine, "s");
    if (n <= 0) return;
    check_step("incx", n, x_step);
    check_step("incy", n, y_step);
    auto arguments = arguments_of<T>(n, x, x_step, y, y_step);
    arguments.alpha = c;
    arguments.beta = s;
    run_elementwise(context, "ws_rot", arguments);
  });
}

template <typename T>
Status dot(const char* function, Context* handle, int n, const T* x, int x_step, const T* y,
           int y_step, T* result) {
  return call(function, handle, [&](Context& context) {
    check_result(context, result);
    if (n <= 0) return store_zero(context, result);
    reduce(context, "ws_dot", "ws_sum_last", arguments_of<T>(n, x, x_step, y, y_step), result);
  });
}

/// asum, nrm2, amax and amin.
template <typename T, typename Result>
Status reduce_one(const char* function, const char* first, const char* last, Context* handle, int n,
                  const T* x, int x_step, Result* result) {
  return call(function, handle, [&](Context& context) {
    check_result(context, result);
    if (n <= 0 || x_step <= 0) return store_zero(context, result);
    reduce(context, first, last, arguments_of<T>(n, x, x_step), result);
  });
}

}  // namespace

#define CUBLAS_LEVEL_1(S, s, T)                                                                 \
  CUBLAS_EXPORT Status cublas##S##axpy_v2(Context* handle, int n, const T* alpha, const T* x,   \
                                          int x_step, T* y, int y_step) {                       \
    return axpy<T>(__func__, handle, n, alpha, x, x_step, y, y_step);                           \
  }                                                                                             \
  CUBLAS_EXPORT Status cublas##S##scal_v2(Context* handle, int n, const T* alpha, T* x,         \
                                          int x_step) {                                         \
    return scal<T>(__func__, handle, n, alpha, x, x_step);                                      \
  }                                                                                             \
  CUBLAS_EXPORT Status cublas##S##copy_v2(Context* handle, int n, const T* x, int x_step, T* y, \
                                          int y_step) {                                         \
    return move<T>(__func__, "ws_copy", false, handle, n, x, x_step, y, y_step);                \
  }                                                                                             \
  CUBLAS_EXPORT Status cublas##S##swap_v2(Context* handle, int n, T* x, int x_step, T* y,       \
                                          int y_step) {                                         \
    return move<T>(__func__, "ws_swap", true, handle, n, x, x_step, y, y_step);                 \
  }                                                                                             \
  CUBLAS_EXPORT Status cublas##S##rot_v2(Context* handle, int n, T* x, int x_step, T* y,        \
                                         int y_step, const T* cosine, const T* sine) {          \
    return rot<T>(__func__, handle, n, x, x_step, y, y_step, cosine, sine);                     \
  }                                                                                             \
  CUBLAS_EXPORT Status cublas##S##dot_v2(Context* handle, int n, const T* x, int x_step,        \
                                         const T* y, int y_step, T* result) {                   \
    return dot<T>(__func__, handle, n, x, x_step, y, y_step, result);                           \
  }                                                                                             \
  CUBLAS_EXPORT Status cublas##S##asum_v2(Context* handle, int n, const T* x, int x_step,       \
                                          T* result) {                                          \
    return reduce_one<T>(__func__, "ws_asum", "ws_sum_last", handle, n, x, x_step, result);     \
  }                                                                                             \
  CUBLAS_EXPORT Status cublas##S##nrm2_v2(Context* handle, int n, const T* x, int x_step,       \
                                          T* result) {                                          \
    return reduce_one<T>(__func__, "ws_nrm2", "ws_nrm2_last", handle, n, x, x_step, result);    \
  }                                                                                             \
  CUBLAS_EXPORT Status cublasI##s##amax_v2(Context* handle, int n, const T* x, int x_step,      \
                                           int* result) {                                       \
    return reduce_one<T>(__func__, "ws_amax", "ws_amax_last", handle, n, x, x_step, result);    \
  }                                                                                             \
  CUBLAS_EXPORT Status cublasI##s##amin_v2(Context* handle, int n, const T* x, int x_step,      \
                                           int* result) {                                       \
    return reduce_one<T>(__func__, "ws_amin", "ws_amin_last", handle, n, x, x_step, result);    \
  }
CUBLAS_LEVEL_1(S, s, float)
CUBLAS_LEVEL_1(D, d, double)
