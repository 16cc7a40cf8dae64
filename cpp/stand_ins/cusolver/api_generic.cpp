// Functions of all types of numbers, with sizes of 64 bits.

#include "stand_ins/cusolver/dense.h"
#include "stand_ins/cusolver/parameters.h"

using namespace warpstack::cusolver;

namespace {

/// LAPACK's letter of a cudaDataType, which has to be that of the computation too.
Letter letter_of(int type, int compute) {
  require(type == compute, Status::not_supported,
          with_number("dataTypeA", type) + " is not " + with_number("computeType", compute));
  switch (type) {
    case data_f32:
      return 's';
    case data_f64:
      return 'd';
    case data_c32:
      return 'c';
    case data_c64:
      return 'z';
    default:
      throw Failure(Status::not_supported,
                    with_number("dataTypeA", type) +
                        " is not CUDA_R_32F, CUDA_R_64F, CUDA_C_32F or CUDA_C_64F");
  }
}

void check_type(const char* name, int type, int wanted) {
  require(type == wanted, Status::not_supported,
          with_number(name, type) + " does not go with dataTypeA: it has to be " +
              std::to_string(wanted));
}

/// The type of the real numbers that go with a type.
int real_type(int type) {
  return type == data_c32   ? static_cast<int>(data_f32)
         : type == data_c64 ? static_cast<int>(data_f64)
                            : type;
}

/// Bytes of the work areas. Nothing is written to them; NVIDIA's sizes are not published.
constexpr std::size_t device_bytes = 256, host_bytes = 0;

Status give_sizes(const char* function, Context* handle, int type, int compute,
                  std::size_t* on_device, std::size_t* on_host) {
  return call(function, handle, [&](Context&) {
    letter_of(type, compute);
    give(on_device, device_bytes, "workspaceInBytesOnDevice");
    give(on_host, host_bytes, "workspaceInBytesOnHost");
  });
}

template <typename Run>
Status run_generic(const char* function, Context* handle, Parameters* parameters, int type,
                   int compute, int* info, Run body) {
  return call_in_stream(function, handle, [=](Context& context) {
    // Null stands for the default.
    if (parameters != nullptr) described(parameters, "params");
    require(info != nullptr, "info is null");
    body(context, letter_of(type, compute));
  });
}

}  // namespace

CUSOLVER_EXPORT Status cusolverDnXgetrf_bufferSize(Context* handle, Parameters*, std::int64_t,
                                                   std::int64_t, int type, const void*,
                                                   std::int64_t, int compute,
                                                   std::size_t* on_device, std::size_t* on_host) {
  return give_sizes(__func__, handle, type, compute, on_device, on_host);
}

CUSOLVER_EXPORT Status cusolverDnXgetrf(Context* handle, Parameters* parameters, std::int64_t m,
                                        std::int64_t n, int type, void* a, std::int64_t lda,
                                        std::int64_t* pivots, int compute, void*, std::size_t,
                                        void*, std::size_t, int* info) {
  return run_generic(__func__, handle, parameters, type, compute, info,
                     [=](Context& context, Letter letter) {
                       factor_lu(context, letter, m, n, a, lda, {pivots, true}, info);
                     });
}

CUSOLVER_EXPORT Status cusolverDnXgetrs(Context* handle, Parameters* parameters, int transpose,
                                        std::int64_t n, std::int64_t nrhs, int type, const void* a,
                                        std::int64_t lda, const std::int64_t* pivots, int type_b,
                                        void* b, std::int64_t ldb, int* info) {
  return run_generic(__func__, handle, parameters, type, type_b, info,
                     [=](Context& context, Letter letter) {
                       solve_lu(context, letter, transpose, n, nrhs, a, lda,
                                {const_cast<std::int64_t*>(pivots), true}, b, ldb, info);
                     });
}

CUSOLVER_EXPORT Status cusolverDnXpotrf_bufferSize(Context* handle, Parameters*, int, std::int64_t,
                                                   int type, const void*, std::int64_t, int compute,
                                                   std::size_t* on_device, std::size_t* on_host) {
  return give_sizes(__func__, handle, type, compute, on_device, on_host);
}

CUSOLVER_EXPORT Status cusolverDnXpotrf(Context* handle, Parameters* parameters, int fill,
                                        std::int64_t n, int type, void* a, std::int64_t lda,
                                        int compute, void*, std::size_t, void*, std::size_t,
                                        int* info) {
  return run_generic(__func__, handle, parameters, type, compute, info,
                     [=](Context& context, Letter letter) {
                       factor_cholesky(context, letter, fill, n, a, lda, info);
                     });
}

CUSOLVER_EXPORT Status cusolverDnXpotrs(Context* handle, Parameters* parameters, int fill,
                                        std::int64_t n, std::int64_t nrhs, int type, const void* a,
                                        std::int64_t lda, int type_b, void* b, std::int64_t ldb,
                                        int* info) {
  return run_generic(__func__, handle, parameters, type, type_b, info,
                     [=](Context& context, Letter letter) {
                       solve_cholesky(context, letter, fill, n, nrhs, a, lda, b, ldb, info);
                     });
}

CUSOLVER_EXPORT Status cusolverDnXgeqrf_bufferSize(Context* handle, Parameters*, std::int64_t,
                                                   std::int64_t, int type, const void*,
                                                   std::int64_t, int, const void*, int compute,
                                                   std::size_t* on_device, std::size_t* on_host) {
  return give_sizes(__func__, handle, type, compute, on_device, on_host);
}

CUSOLVER_EXPORT Status cusolverDnXgeqrf(Context* handle, Parameters* parameters, std::int64_t m,
                                        std::int64_t n, int type, void* a, std::int64_t lda,
                                        int type_tau, void* tau, int compute, void*, std::size_t,
                                        void*, std::size_t, int* info) {
  return run_generic(__func__, handle, parameters, type, compute, info,
                     [=](Context& context, Letter letter) {
                       check_type("dataTypeTau", type_tau, type);
                       factor_qr(context, letter, m, n, a, lda, tau, info);
                     });
}

CUSOLVER_EXPORT Status cusolverDnXsyevd_bufferSize(Context* handle, Parameters*, int, int,
                                                   std::int64_t, int type, const void*,
                                                   std::int64_t, int, const void*, int compute,
                                                   std::size_t* on_device, std::size_t* on_host) {
  return give_sizes(__func__, handle, type, compute, on_device, on_host);
}

CUSOLVER_EXPORT Status cusolverDnXsyevd(Context* handle, Parameters* parameters, int mode, int fill,
                                        std::int64_t n, int type, void* a, std::int64_t lda,
                                        int type_w, void* w, int compute, void*, std::size_t, void*,
                                        std::size_t, int* info) {
  return run_generic(__func__, handle, parameters, type, compute, info,
                     [=](Context& context, Letter letter) {
                       check_type("dataTypeW", type_w, real_type(type));
                       decompose_symmetric(context, letter, mode, fill, n, a, lda, w, info);
                     });
}

CUSOLVER_EXPORT Status cusolverDnXgesvd_bufferSize(Context* handle, Parameters*, signed char,
                                                   signed char, std::int64_t, std::int64_t,
                                                   int type, const void*, std::int64_t, int,
                                                   const void*, int, const void*, std::int64_t, int,
                                                   const void*, std::int64_t, int compute,
                                                   std::size_t* on_device, std::size_t* on_host) {
  return give_sizes(__func__, handle, type, compute, on_device, on_host);
}

CUSOLVER_EXPORT Status cusolverDnXgesvd(Context* handle, Parameters* parameters, signed char job_u,
                                        signed char job_v, std::int64_t m, std::int64_t n, int type,
                                        void* a, std::int64_t lda, int type_s, void* s, int type_u,
                                        void* u, std::int64_t ldu, int type_v, void* v,
                                        std::int64_t ldv, int compute, void*, std::size_t, void*,
                                        std::size_t, int* info) {
  return run_generic(
      __func__, handle, parameters, type, compute, info, [=](Context& context, Letter letter) {
        check_type("dataTypeS", type_s, real_type(type));
        check_type("dataTypeU", type_u, type);
        check_type("dataTypeVT", type_v, type);
        decompose_singular(context, letter, {job_u, job_v, u, ldu, v, ldv}, m, n, a, lda, s, info);
      });
}
