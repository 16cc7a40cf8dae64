#include "simt/program/device_runtime.h"

#include <algorithm>
#include <array>
#include <utility>

namespace warpstack::simt {
namespace {

/// Names without the prefix "cuda" or "__cudaCDP2" and without the suffix of the variants for
/// per-thread default streams.
constexpr std::array<std::pair<std::string_view, RuntimeFunction>, 28> names{{
    {"GetParameterBuffer", RuntimeFunction::get_parameter_buffer},
    {"GetParameterBufferV2", RuntimeFunction::get_parameter_buffer_v2},
    {"LaunchDevice", RuntimeFunction::launch},
    {"LaunchDeviceV2", RuntimeFunction::launch_v2},
    {"GetLastError", RuntimeFunction::get_last_error},
    {"PeekAtLastError", RuntimeFunction::peek_at_last_error},
    {"GetErrorName", RuntimeFunction::get_error_name},
    {"GetErrorString", RuntimeFunction::get_error_string},
    {"GetDevice", RuntimeFunction::get_device},
    {"GetDeviceCount", RuntimeFunction::get_device_count},
    {"DeviceGetAttribute", RuntimeFunction::device_get_attribute},
    {"DeviceGetLimit", RuntimeFunction::device_get_limit},
    {"RuntimeGetVersion", RuntimeFunction::runtime_get_version},
    {"OccupancyMaxActiveBlocksPerMultiprocessor", RuntimeFunction::occupancy},
    {"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", RuntimeFunction::occupancy},
    {"StreamCreateWithFlags", RuntimeFunction::stream_create},
    {"StreamDestroy", RuntimeFunction::stream_destroy},
    {"StreamWaitEvent", RuntimeFunction::stream_wait_event},
    {"EventCreateWithFlags", RuntimeFunction::event_create},
    {"EventRecord", RuntimeFunction::event_record},
    {"EventRecordWithFlags", RuntimeFunction::event_record},
    {"EventDestroy", RuntimeFunction::event_destroy},
    {"Malloc", RuntimeFunction::allocate},
    {"Free", RuntimeFunction::release},
    {"MemcpyAsync", RuntimeFunction::copy},
    {"Memcpy2DAsync", RuntimeFunction::copy_2d},
    {"MemsetAsync", RuntimeFunction::fill},
    {"Memset2DAsync", RuntimeFunction::fill_2d},
}};

}  // namespace

std::optional<RuntimeFunction> runtime_function_named(std::string_view name) {
  constexpr std::string_view second = "__cudaCDP2";
  constexpr std::string_view first = "cuda";
  constexpr std::string_view per_thread = "_ptsz";
  if (name.starts_with(second)) {
    name.remove_prefix(second.size());
  } else if (name.starts_with(first)) {
    name.remove_prefix(first.size());
  } else {
    return std::nullopt;
  }
  if (name.ends_with(per_thread)) name.remove_suffix(per_thread.size());
  const auto found = std::ranges::find(names, name, [](const auto& entry) { return entry.first; });
  if (found == names.end()) return std::nullopt;
  return found->second;
}

}  // namespace warpstack::simt
