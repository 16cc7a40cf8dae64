// Handles, parameters of the functions, and versions.

#include <array>

#include "stand_ins/cusolver/context.h"
#include "stand_ins/cusolver/parameters.h"

using namespace warpstack::cusolver;
using warpstack::cudart::StreamHandle;
using warpstack::library::Handles;

namespace {

/// Major, minor and patch of the last cuSOLVER of CUDA 12, and of the first of CUDA 13.
std::array<int, 3> library_version() {
  if (abi_version() == 11) return {11, 7, 3};
  return {12, 0, 4};
}

template <typename T>
Status create_object(const char* function, T** place) {
  return call(function, [&] { create(place, "the place of the new object"); });
}

template <typename T>
Status destroy(const char* function, T* object) {
  return call(function, [&] { Handles<T>::remove(&described(object, "the object")); });
}

/// A setting of Jacobi's method, which the stand-in does not use.
template <typename T>
Status accept(const char* function, T* parameters) {
  return call(function, [&] { described(parameters, "info"); });
}

/// What Jacobi's method would have said. It is not used: no sweep was made.
template <typename T, typename N>
Status give_none(const char* function, Context* handle, T* parameters, N* place) {
  return call(function, handle, [&](Context&) {
    described(parameters, "info");
    give(place, 0, "the place of the answer");
  });
}

}  // namespace

CUSOLVER_EXPORT Status cusolverDnCreate(Context** handle) {
  return create_object(__func__, handle);
}

CUSOLVER_EXPORT Status cusolverDnDestroy(Context* handle) {
  return call(__func__, handle, [&](Context& context) { Handles<Context>::remove(&context); });
}

CUSOLVER_EXPORT Status cusolverDnSetStream(Context* handle, StreamHandle stream) {
  return call(__func__, handle, [&](Context& context) { context.stream = stream; });
}

CUSOLVER_EXPORT Status cusolverDnGetStream(Context* handle, StreamHandle* stream) {
  return call(__func__, handle,
              [&](Context& context) { give(stream, context.stream, "streamId"); });
}

/// Results are the same each time in both modes.
CUSOLVER_EXPORT Status cusolverDnSetDeterministicMode(Context* handle, int mode) {
  return call(__func__, handle, [&](Context& context) {
    check_choice("mode", mode, 1, 2);
    context.deterministic_mode = mode;
  });
}

CUSOLVER_EXPORT Status cusolverDnGetDeterministicMode(Context* handle, int* mode) {
  return call(__func__, handle,
              [&](Context& context) { give(mode, context.deterministic_mode, "mode"); });
}

CUSOLVER_EXPORT Status cusolverGetVersion(int* version) {
  return call(__func__, [&] {
    const auto [major, minor, patch] = library_version();
    give(version, major * 1000 + minor * 100 + patch, "version");
  });
}

CUSOLVER_EXPORT Status cusolverGetProperty(int property, int* value) {
  return call(__func__, [&] {
    check_choice("type", property, 0, 2);
    give(value, library_version()[static_cast<std::size_t>(property)], "value");
  });
}

CUSOLVER_EXPORT Status cusolverDnCreateParams(Parameters** parameters) {
  return create_object(__func__, parameters);
}
CUSOLVER_EXPORT Status cusolverDnDestroyParams(Parameters* parameters) {
  return destroy(__func__, parameters);
}
/// There is one algorithm of each.
CUSOLVER_EXPORT Status cusolverDnSetAdvOptions(Parameters* parameters, int, int algorithm) {
  return call(__func__, [&] {
    described(parameters, "params");
    check_choice("algo", algorithm, 0, 2);
  });
}

CUSOLVER_EXPORT Status cusolverDnCreateSyevjInfo(JacobiEigen** info) {
  return create_object(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnDestroySyevjInfo(JacobiEigen* info) {
  return destroy(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXsyevjSetTolerance(JacobiEigen* info, double) {
  return accept(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXsyevjSetMaxSweeps(JacobiEigen* info, int) {
  return accept(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXsyevjSetSortEig(JacobiEigen* info, int) {
  return accept(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXsyevjGetResidual(Context* handle, JacobiEigen* info,
                                                   double* residual) {
  return give_none(__func__, handle, info, residual);
}
CUSOLVER_EXPORT Status cusolverDnXsyevjGetSweeps(Context* handle, JacobiEigen* info, int* sweeps) {
  return give_none(__func__, handle, info, sweeps);
}

CUSOLVER_EXPORT Status cusolverDnCreateGesvdjInfo(JacobiSingular** info) {
  return create_object(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnDestroyGesvdjInfo(JacobiSingular* info) {
  return destroy(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXgesvdjSetTolerance(JacobiSingular* info, double) {
  return accept(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXgesvdjSetMaxSweeps(JacobiSingular* info, int) {
  return accept(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXgesvdjSetSortEig(JacobiSingular* info, int) {
  return accept(__func__, info);
}
CUSOLVER_EXPORT Status cusolverDnXgesvdjGetResidual(Context* handle, JacobiSingular* info,
                                                    double* residual) {
  return give_none(__func__, handle, info, residual);
}
CUSOLVER_EXPORT Status cusolverDnXgesvdjGetSweeps(Context* handle, JacobiSingular* info,
                                                  int* sweeps) {
  return give_none(__func__, handle, info, sweeps);
}
