// Generators and their settings, and versions.

#include <array>

#include "stand_ins/curand/context.h"
#include "stand_ins/curand/direction_vectors.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::curand;
using warpstack::cudart::StreamHandle;

namespace {

/// Major, minor and patch of the cuRAND of CUDA 13.0.
constexpr std::array<int, 3> library_version{10, 4, 0};

Kind kind_of(int type) {
  if (type == pseudo_default) return Kind::xorwow;
  if (type == quasi_default) return Kind::sobol32;
  for (const Kind kind :
       {Kind::xorwow, Kind::mrg32k3a, Kind::mtgp32, Kind::mt19937, Kind::philox, Kind::sobol32,
        Kind::scrambled_sobol32, Kind::sobol64, Kind::scrambled_sobol64}) {
    if (type == static_cast<int>(kind)) return kind;
  }
  throw Failure(Status::type_error,
                "rng_type = " + std::to_string(type) + " is no generator of curandRngType_t");
}

void create(Context** handle, int type, bool on_host) {
  require(handle != nullptr, Status::not_initialized, "nowhere to put the generator");
  Settings settings;
  settings.kind = kind_of(type);
  if (is_quasi(settings.kind)) settings.ordering = Ordering::quasi_default;
  *handle = Handles::add();
  (*handle)->settings = settings;
  (*handle)->on_host = on_host;
}

/// Whether cuRAND's generator of this kind has this ordering. Generators on the host have no best
/// or dynamic one where these depend on the GPU.
bool has_ordering(const Context& context, int ordering) {
  const Kind kind = context.settings.kind;
  if (is_quasi(kind)) return ordering == static_cast<int>(Ordering::quasi_default);
  switch (static_cast<Ordering>(ordering)) {
    case Ordering::pseudo_default:
    case Ordering::pseudo_legacy:
      return true;
    case Ordering::pseudo_best:
      return kind != Kind::mt19937 || !context.on_host;
    case Ordering::pseudo_seeded:
      return kind == Kind::xorwow;
    case Ordering::pseudo_dynamic:
      return !context.on_host;
    default:
      return false;
  }
}

}  // namespace

CURAND_EXPORT Status curandCreateGenerator(Context** handle, int type) {
  return call(__func__, [&] { create(handle, type, false); });
}

CURAND_EXPORT Status curandCreateGeneratorHost(Context** handle, int type) {
  return call(__func__, [&] { create(handle, type, true); });
}

CURAND_EXPORT Status curandDestroyGenerator(Context* handle) {
  return call(__func__, handle, [&](Context&) { Handles::remove(handle); });
}

CURAND_EXPORT Status curandSetStream(Context* handle, StreamHandle stream) {
  return call(__func__, handle, [&](Context& context) { context.stream = stream; });
}

CURAND_EXPORT Status curandSetPseudoRandomGeneratorSeed(Context* handle, unsigned long long seed) {
  return call(__func__, handle, [&](Context& context) {
    require(!is_quasi(context.settings.kind), Status::type_error,
            "quasirandom generators have no seed");
    context.settings.seed = seed;
    context.generator.reset();
  });
}

CURAND_EXPORT Status curandSetGeneratorOffset(Context* handle, unsigned long long offset) {
  return call(__func__, handle, [&](Context& context) {
    const Kind kind = context.settings.kind;
    require(kind != Kind::mtgp32 && kind != Kind::mt19937, Status::type_error,
            "MTGP32 and MT19937 have no offset: they cannot skip numbers");
    context.settings.offset = offset;
    context.generator.reset();
  });
}

CURAND_EXPORT Status curandSetGeneratorOrdering(Context* handle, int ordering) {
  return call(__func__, handle, [&](Context& context) {
    require(has_ordering(context, ordering), Status::out_of_range,
            "the generator has no ordering " + std::to_string(ordering) + " of curandOrdering_t");
    context.settings.ordering = static_cast<Ordering>(ordering);
    context.generator.reset();
  });
}

CURAND_EXPORT Status curandSetQuasiRandomGeneratorDimensions(Context* handle, unsigned dimensions) {
  return call(__func__, handle, [&](Context& context) {
    require(is_quasi(context.settings.kind), Status::type_error,
            "only quasirandom generators have dimensions");
    require(dimensions >= 1 && dimensions <= most_dimensions, Status::out_of_range,
            "num_dimensions = " + std::to_string(dimensions) + " is not from 1 to 20000");
    context.settings.dimensions = dimensions;
    context.generator.reset();
  });
}

/// What is set up here is made when numbers are.
CURAND_EXPORT Status curandGenerateSeeds(Context* handle) {
  return call(__func__, handle, [](Context& context) { generator_of(context); });
}

CURAND_EXPORT Status curandGetVersion(int* version) {
  return call(__func__, [&] {
    require(version != nullptr, Status::out_of_range, "nowhere to put the version");
    *version = library_version[0] * 1000 + library_version[1] * 100 + library_version[2];
  });
}

CURAND_EXPORT Status curandGetProperty(int property, int* value) {
  return call(__func__, [&] {
    require(value != nullptr && property >= 0 && property <= 2, Status::out_of_range,
            "the property is not MAJOR_VERSION, MINOR_VERSION or PATCH_LEVEL, or its value has no "
            "place");
    *value = library_version[static_cast<std::size_t>(property)];
  });
}
