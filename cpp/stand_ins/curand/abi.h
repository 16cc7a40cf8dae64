#pragma once

#include <cstddef>
#include <cstdint>

/// Marks the functions that programs call.
#define CURAND_EXPORT extern "C" __attribute__((visibility("default")))

/// The types of cuRAND's interface that the stand-in reads or writes. CUDA's headers are not needed
/// to build warpstack. The values are the same in all releases of libcurand.so.10.
namespace warpstack::curand {

/// curandStatus_t
enum class Status : int {
  success = 0,
  not_initialized = 101,
  allocation_failed = 102,
  type_error = 103,
  out_of_range = 104,
  length_not_multiple = 105,
  launch_failure = 201,
  preexisting_failure = 202,
  initialization_failed = 203,
  internal_error = 999,
};

/// curandRngType_t
enum class Kind : int {
  xorwow = 101,
  mrg32k3a = 121,
  mtgp32 = 141,
  mt19937 = 142,
  philox = 161,
  sobol32 = 201,
  scrambled_sobol32 = 202,
  sobol64 = 203,
  scrambled_sobol64 = 204,
};
/// The kinds that stand for another one.
inline constexpr int pseudo_default = 100, quasi_default = 200;

/// curandOrdering_t
enum class Ordering : int {
  pseudo_best = 100,
  pseudo_default = 101,
  pseudo_seeded = 102,
  pseudo_legacy = 103,
  pseudo_dynamic = 104,
  quasi_default = 201,
};

/// curandDirectionVectorSet_t
enum class VectorSet : int { plain32 = 101, scrambled32 = 102, plain64 = 103, scrambled64 = 104 };

/// What curandDiscreteDistribution_t points to in device memory, as curand_discrete.h declares it:
/// kernels read it.
struct Histogram {
  const double* thresholds;
  const double* host_thresholds;
  const std::uint32_t* others;
  const std::uint32_t* host_others;
  std::uint32_t host_generator;
};
struct ShiftedHistogram {
  const Histogram* histogram;
  const Histogram* host_histogram;
  std::uint32_t shift;
  std::uint32_t length;
  std::uint32_t host_generator;
};
struct DiscreteDistribution {
  const DiscreteDistribution* self;
  const ShiftedHistogram* histogram;
  const ShiftedHistogram* host_histogram;
  double deviation;
  double mean;
  int method;
  std::uint32_t host_generator;
};
/// curandMethod_t
inline constexpr int method_histogram = 5, method_normal = 7;

}  // namespace warpstack::curand
