// Numbers of all distributions, in memory of the device or of the host.

#include <cmath>
#include <vector>

#include "stand_ins/curand/context.h"
#include "stand_ins/curand/distributions.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::curand;

namespace {

constexpr double largest_poisson_mean = 400000;

/// Hands `count` numbers, which make(out, generator) makes, to the program.
template <typename T, typename Make>
void deliver(Context& context, T* target, std::size_t count, Make make) {
  if (count == 0) return;
  require(target != nullptr, Status::launch_failure, "the memory for the results is null");
  const Settings& settings = context.settings;
  require(!is_quasi(settings.kind) || count % settings.dimensions == 0, Status::length_not_multiple,
          "num = " + std::to_string(count) + " is no multiple of the " +
              std::to_string(settings.dimensions) + " dimensions");
  if (context.on_host) {
    make(target, generator_of(context));
    return;
  }
  const warpstack::library::WorkOfTheGpu work("cuRAND");
  Generator& generator = generator_of(context);
  std::vector<T> numbers(count);
  make(numbers.data(), generator);
  const std::size_t bytes = count * sizeof(T);
  require_success(
      warpstack_cudart_write("cuRAND", target, numbers.data(), bytes, bytes, {}, context.stream));
}

template <typename T>
Status uniform(const char* function, Context* handle, T* target, std::size_t count) {
  return call(function, handle, [&](Context& context) {
    deliver(context, target, count,
            [&](T* out, Generator& generator) { generator.uniform(out, count); });
  });
}

template <typename T>
Status normal(const char* function, Context* handle, T* target, std::size_t count, T mean,
              T deviation, bool logarithmic) {
  return call(function, handle, [&](Context& context) {
    require(!makes_pairs(context.settings.kind) || count % 2 == 0, Status::length_not_multiple,
            "n = " + std::to_string(count) +
                " is odd: XORWOW and MRG32k3a make normal numbers in pairs");
    deliver(context, target, count, [&](T* out, Generator& generator) {
      generator.normal(out, count);
      for (std::size_t i = 0; i < count; ++i) {
        const T number = out[i] * deviation + mean;
        out[i] = logarithmic ? std::exp(number) : number;
      }
    });
  });
}

Status poisson(const char* function, Context* handle, std::uint32_t* target, std::size_t count,
               double mean) {
  return call(function, handle, [&](Context& context) {
    require(mean > 0 && mean <= largest_poisson_mean, Status::out_of_range,
            "lambda = " + std::to_string(mean) + " is not above 0 and at most 400000");
    deliver(context, target, count, [&](std::uint32_t* out, Generator& generator) {
      const Poisson distribution(mean);
      std::vector<double> uniforms(count);
      generator.open_uniform(uniforms.data(), count);
      for (std::size_t i = 0; i < count; ++i) out[i] = distribution(uniforms[i]);
    });
  });
}

}  // namespace

CURAND_EXPORT Status curandGenerate(Context* handle, unsigned* target, std::size_t count) {
  return call(__func__, handle, [&](Context& context) {
    require(!has_bits64(context.settings.kind), Status::type_error,
            "Sobol64 has results of 64 bits: curandGenerateLongLong gives them");
    deliver(context, target, count,
            [&](unsigned* out, Generator& generator) { generator.bits(out, count); });
  });
}

CURAND_EXPORT Status curandGenerateLongLong(Context* handle, unsigned long long* target,
                                            std::size_t count) {
  return call(__func__, handle, [&](Context& context) {
    require(has_bits64(context.settings.kind), Status::type_error,
            "only Sobol64 has results of 64 bits");
    deliver(context, reinterpret_cast<std::uint64_t*>(target), count,
            [&](std::uint64_t* out, Generator& generator) { generator.bits64(out, count); });
  });
}

CURAND_EXPORT Status curandGenerateUniform(Context* handle, float* target, std::size_t count) {
  return uniform(__func__, handle, target, count);
}

CURAND_EXPORT Status curandGenerateUniformDouble(Context* handle, double* target,
                                                 std::size_t count) {
  return uniform(__func__, handle, target, count);
}

CURAND_EXPORT Status curandGenerateNormal(Context* handle, float* target, std::size_t count,
                                          float mean, float deviation) {
  return normal(__func__, handle, target, count, mean, deviation, false);
}

CURAND_EXPORT Status curandGenerateNormalDouble(Context* handle, double* target, std::size_t count,
                                                double mean, double deviation) {
  return normal(__func__, handle, target, count, mean, deviation, false);
}

CURAND_EXPORT Status curandGenerateLogNormal(Context* handle, float* target, std::size_t count,
                                             float mean, float deviation) {
  return normal(__func__, handle, target, count, mean, deviation, true);
}

CURAND_EXPORT Status curandGenerateLogNormalDouble(Context* handle, double* target,
                                                   std::size_t count, double mean,
                                                   double deviation) {
  return normal(__func__, handle, target, count, mean, deviation, true);
}

CURAND_EXPORT Status curandGeneratePoisson(Context* handle, unsigned* target, std::size_t count,
                                           double mean) {
  return poisson(__func__, handle, target, count, mean);
}

/// All methods have the same distribution.
CURAND_EXPORT Status curandGeneratePoissonMethod(Context* handle, unsigned* target,
                                                 std::size_t count, double mean, int) {
  return poisson(__func__, handle, target, count, mean);
}
