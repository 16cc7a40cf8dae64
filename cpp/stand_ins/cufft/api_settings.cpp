// Settings of plans, and versions.

#include <array>

#include "stand_ins/cufft/plan.h"

using namespace warpstack::cufft;
using warpstack::cudart::StreamHandle;

namespace {

/// Major, minor and patch of the last cuFFT of CUDA 11 and 12, and of the first of CUDA 13.
std::array<int, 3> library_version() {
  switch (abi_version()) {
    case 10:
      return {10, 9, 0};
    case 11:
      return {11, 4, 1};
    default:
      return {12, 0, 0};
  }
}

void set_work_area(Context& context, void* work_area) {
  context.work_area = work_area;
  context.allocates = context.allocates && work_area == nullptr;
}

/// Values of cufftProperty: patience and threads of a compilation that the stand-in does not need.
constexpr int first_property = 1, last_property = 2;

void check_property(int property) {
  require(property >= first_property && property <= last_property, Status::not_supported,
          "property = " + std::to_string(property) + " is not one of cufftProperty");
}

}  // namespace

CUFFT_EXPORT Status cufftSetStream(Handle plan, StreamHandle stream) {
  return call(__func__, plan, [&](Context& context) { context.stream = stream; });
}

CUFFT_EXPORT Status cufftSetWorkArea(Handle plan, void* work_area) {
  return call(__func__, plan, [&](Context& context) { set_work_area(context, work_area); });
}

/// One area for each GPU, of which there is one.
CUFFT_EXPORT Status cufftXtSetWorkArea(Handle plan, void** work_areas) {
  return call(__func__, plan, [&](Context& context) {
    require(work_areas != nullptr, Status::invalid_value, "workArea is null");
    set_work_area(context, work_areas[0]);
  });
}

CUFFT_EXPORT Status cufftSetAutoAllocation(Handle plan, int automatic) {
  return call(__func__, plan, [&](Context& context) { context.allocates = automatic != 0; });
}

CUFFT_EXPORT Status cufftXtSetWorkAreaPolicy(Handle plan, int policy, std::size_t*) {
  return call(__func__, plan, [&](Context&) {
    constexpr int last_policy = 2;
    require(policy >= 0 && policy <= last_policy, Status::invalid_value,
            "policy = " + std::to_string(policy) + " is not one of cufftXtWorkAreaPolicy");
  });
}

CUFFT_EXPORT Status cufftXtSetGPUs(Handle plan, int count, int* gpus) {
  return call(__func__, plan, [&](Context&) {
    require(count >= 1 && gpus != nullptr, Status::invalid_value,
            "nGPUs = " + std::to_string(count) + " is less than 1, or whichGPUs is null");
    if (count > 1) warpstack::library::refuse(Status::not_supported, "cuFFT");
  });
}

CUFFT_EXPORT Status cufftSetPlanPropertyInt64(Handle plan, int property, long long value) {
  return call(__func__, plan, [&](Context& context) {
    check_property(property);
    context.properties[property] = value;
  });
}

CUFFT_EXPORT Status cufftGetPlanPropertyInt64(Handle plan, int property, long long* value) {
  return call(__func__, plan, [&](Context& context) {
    check_property(property);
    require(value != nullptr, Status::invalid_value, "nowhere to put the value");
    *value = context.properties[property];
  });
}

CUFFT_EXPORT Status cufftResetPlanProperty(Handle plan, int property) {
  return call(__func__, plan, [&](Context& context) {
    check_property(property);
    context.properties.erase(property);
  });
}

CUFFT_EXPORT Status cufftGetVersion(int* version) {
  return call(__func__, [&] {
    require(version != nullptr, Status::invalid_value, "nowhere to put the version");
    const auto [major, minor, patch] = library_version();
    *version = major * 1000 + minor * 100 + patch;
  });
}

CUFFT_EXPORT Status cufftGetProperty(int property, int* value) {
  return call(__func__, [&] {
    require(value != nullptr && property >= 0 && property <= 2, Status::invalid_value,
            "the property is not MAJOR_VERSION, MINOR_VERSION or PATCH_LEVEL, or its value has no "
            "place");
    *value = library_version()[static_cast<std::size_t>(property)];
  });
}
