// The device and its properties; errors; versions.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/capture.h"
#include "stand_ins/state/error_names.h"
#include "stand_ins/state/memory_pool.h"
#include "stand_ins/state/recording.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

int version = 13;

/// Fills the fields that both layouts of the properties have; the rest is 0.
template <typename Properties>
Properties describe(const DeviceDescription& device) {
  Properties p;
  std::memset(&p, 0, sizeof p);
  device.name.copy(p.name, sizeof p.name - 1);
  std::memcpy(p.uuid, "warpstack", 9);
  p.total_global_memory = device.memory_bytes;
  p.shared_memory_per_block = DeviceDescription::shared_bytes_per_block;
  p.registers_per_block = static_cast<int>(device.registers_per_sm);
  p.warp_size = warpstack::trace::warp_size;
  p.memory_pitch = 0x7fffffff;
  p.max_threads_per_block = DeviceDescription::max_threads_per_block;
  const int threads[] = {1024, 1024, 64};
  const int blocks[] = {0x7fffffff, 65535, 65535};
  std::copy_n(threads, 3, p.max_threads_dim);
  std::copy_n(blocks, 3, p.max_grid_size);
  p.total_constant_memory = 64 << 10;
  p.major = static_cast<int>(device.capability / 10);
  p.minor = static_cast<int>(device.capability % 10);
  p.texture_alignment = 512;
  p.texture_pitch_alignment = 32;
  p.num_sms = static_cast<int>(device.num_sms);
  p.can_map_host_memory = 1;
  p.max_texture_1d = 131072;
  p.max_texture_2d[0] = 131072;
  p.max_texture_2d[1] = 65536;
  p.max_texture_2d_linear[0] = 131072;
  p.max_texture_2d_linear[1] = 65000;
  p.max_texture_2d_linear[2] = 2097120;
  std::fill_n(p.max_texture_3d, 3, 16384);
  p.max_surface_1d = 32768;
  p.max_surface_2d[0] = 131072;
  p.max_surface_2d[1] = 65536;
  std::fill_n(p.max_surface_3d, 3, 16384);
  p.surface_alignment = 512;
  p.concurrent_kernels = 1;
  p.async_engines = static_cast<int>(device.copy_engines);
  p.unified_addressing = 1;
  p.memory_bus_bits = 256;
  p.l2_bytes = static_cast<int>(device.l2_bytes);
  p.max_threads_per_sm = static_cast<int>(device.threads_per_sm);
  p.global_l1_cache = 1;
  p.local_l1_cache = 1;
  p.shared_memory_per_sm = device.shared_bytes_per_sm;
  p.registers_per_sm = static_cast<int>(device.registers_per_sm);
  p.managed_memory = 1;
  p.host_native_atomics = 1;
  p.concurrent_managed_access = 1;
  p.compute_preemption = 1;
  p.cooperative_launch = 1;
  p.shared_memory_per_block_optin = DeviceDescription::shared_bytes_per_block_optin;
  p.direct_managed_access_from_host = 1;
  p.max_blocks_per_sm = static_cast<int>(device.blocks_per_sm);
  p.host_register_supported = 1;
  p.memory_pools_supported = 1;
  p.cluster_launch = device.capability >= 90 ? 1 : 0;
  if constexpr (requires { p.clock_khz; }) {
    p.clock_khz = static_cast<int>(device.clock_khz);
    p.device_overlap = 1;
    p.max_texture_1d_linear = 1 << 28;
    p.memory_clock_khz = 2'500'000;
    p.single_to_double_ratio = 2;
  }
  return p;
}

/// Value of a cudaDeviceAttr; none for numbers beyond those that CUDA 13.0 defines. Attributes of
/// features that the device lacks are 0.
std::optional<int> attribute(const DeviceDescription& device, int number) {
  constexpr int last = 147;
  if (number < 1 || number > last) return std::nullopt;
  const auto p = describe<DeviceProperties12>(device);
  switch (number) {
    case 1:
      return p.max_threads_per_block;
    case 2:
    case 3:
    case 4:
      return p.max_threads_dim[number - 2];
    case 5:
    case 6:
    case 7:
      return p.max_grid_size[number - 5];
    case 8:
      return static_cast<int>(p.shared_memory_per_block);
    case 9:
      return static_cast<int>(p.total_constant_memory);
    case 10:
      return p.warp_size;
    case 11:
      return static_cast<int>(p.memory_pitch);
    case 12:
      return p.registers_per_block;
    case 13:
      return p.clock_khz;
    case 14:
      return static_cast<int>(p.texture_alignment);
    case 15:
      return p.device_overlap;
    case 16:
      return p.num_sms;
    case 19:
      return p.can_map_host_memory;
    case 21:
      return p.max_texture_1d;
    case 22:
    case 23:
      return p.max_texture_2d[number - 22];
    case 24:
    case 25:
    case 26:
      return p.max_texture_3d[number - 24];
    case 30:
      return static_cast<int>(p.surface_alignment);
    case 31:
      return p.concurrent_kernels;
    case 36:
      return p.memory_clock_khz;
    case 37:
      return p.memory_bus_bits;
    case 38:
      return p.l2_bytes;
    case 39:
      return p.max_threads_per_sm;
    case 40:
      return p.async_engines;
    case 41:
      return p.unified_addressing;
    case 51:
      return static_cast<int>(p.texture_pitch_alignment);
    case 55:
      return p.max_surface_1d;
    case 56:
    case 57:
      return p.max_surface_2d[number - 56];
    case 58:
    case 59:
    case 60:
      return p.max_surface_3d[number - 58];
    case 69:
      return p.max_texture_1d_linear;
    case 70:
    case 71:
    case 72:
      return p.max_texture_2d_linear[number - 70];
    case 75:
      return p.major;
    case 76:
      return p.minor;
    case 79:
      return p.global_l1_cache;
    case 80:
      return p.local_l1_cache;
    case 81:
      return static_cast<int>(p.shared_memory_per_sm);
    case 82:
      return p.registers_per_sm;
    case 83:
      return p.managed_memory;
    case 86:
      return p.host_native_atomics;
    case 87:
      return p.single_to_double_ratio;
    case 89:
      return p.concurrent_managed_access;
    case 90:
      return p.compute_preemption;
    case 95:
      return p.cooperative_launch;
    case 97:
      return static_cast<int>(p.shared_memory_per_block_optin);
    case 99:
      return p.host_register_supported;
    case 101:
      return p.direct_managed_access_from_host;
    case 106:
      return p.max_blocks_per_sm;
    case 115:
      return p.memory_pools_supported;
    case 120:
      return p.cluster_launch;
    default:
      return 0;
  }
}

void check_device(int device) {
  require(device == 0, "there is one device, number 0", Error::invalid_device);
}

std::size_t& limit_of(Runtime& runtime, int limit) {
  constexpr int synchronization_depth = 3;
  require(limit >= 0 && static_cast<std::size_t>(limit) < runtime.limits.size(), "no such limit");
  require(limit != synchronization_depth || runtime.description().capability < 90,
          "cudaLimitDevRuntimeSyncDepth is one of devices below compute capability 9.0 (--gpu "
          "chooses the device)",
          Error::unsupported_limit);
  return runtime.limits[static_cast<std::size_t>(limit)];
}

}  // namespace

int warpstack::cudart::abi_version() { return version; }

/// Called by the library that stands in for one version of libcudart, when it is loaded.
CUDART_EXPORT void warpstack_cudart_set_abi(int abi) { version = abi; }

/// Lets `warpstack trace` know that the program has loaded the stand-in.
__attribute__((constructor)) static void attach() { Runtime::get(); }

// --- device -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaGetDeviceCount(int* count) {
  return call(__func__, [&](Runtime&) {
    require(count != nullptr, "nowhere to put the number");
    *count = 1;
  });
}

CUDART_EXPORT Error cudaGetDevice(int* device) {
  return call(__func__, [&](Runtime&) {
    require(device != nullptr, "nowhere to put the number");
    *device = 0;
  });
}

CUDART_EXPORT Error cudaSetDevice(int device) {
  return call(__func__, [&](Runtime&) { check_device(device); });
}

CUDART_EXPORT Error cudaInitDevice(int device, unsigned, unsigned) {
  return call(__func__, [&](Runtime&) { check_device(device); });
}

CUDART_EXPORT Error cudaChooseDevice(int* device, const void* properties) {
  return call(__func__, [&](Runtime&) {
    require(device != nullptr && properties != nullptr, "a pointer is null");
    *device = 0;
  });
}

CUDART_EXPORT Error cudaSetValidDevices(int*, int) {
  return call(__func__, [](Runtime&) {});
}

CUDART_EXPORT Error cudaSetDeviceFlags(unsigned) {
  return call(__func__, [](Runtime&) {});
}

CUDART_EXPORT Error cudaGetDeviceFlags(unsigned* flags) {
  return call(__func__, [&](Runtime&) {
    require(flags != nullptr, "nowhere to put the flags");
    *flags = 8;  // cudaDeviceMapHost
  });
}

CUDART_EXPORT Error cudaGetDeviceProperties(void* properties, int device) {
  return call(__func__, [&](Runtime& runtime) {
    check_device(device);
    require(properties != nullptr, "nowhere to put the properties");
    if (version >= 13) {
      const auto all = describe<DeviceProperties13>(runtime.description());
      std::memcpy(properties, &all, sizeof all);
    } else {
      // Under this name CUDA 11 and 12 have the layout of CUDA 11.
      const auto all = describe<DeviceProperties12>(runtime.description());
      std::memcpy(properties, &all, offsetof(DeviceProperties12, host_register_supported));
    }
  });
}

CUDART_EXPORT Error cudaGetDeviceProperties_v2(void* properties, int device) {
  return call(__func__, [&](Runtime& runtime) {
    check_device(device);
    require(properties != nullptr, "nowhere to put the properties");
    const auto all = describe<DeviceProperties12>(runtime.description());
    std::memcpy(properties, &all, sizeof all);
  });
}

CUDART_EXPORT Error cudaDeviceGetAttribute(int* value, int number, int device) {
  return call(__func__, [&](Runtime& runtime) {
    check_device(device);
    require(value != nullptr, "nowhere to put the value");
    const std::optional<int> found = attribute(runtime.description(), number);
    require(found.has_value(), "there is no such attribute");
    *value = *found;
  });
}

CUDART_EXPORT Error cudaDeviceSynchronize() {
  return call(__func__, [](Runtime& runtime) {
    refuse_device_while_capturing(runtime);
    runtime.pools().synchronize();
    record_synchronization(runtime);
  });
}
CUDART_ALIAS(cudaThreadSynchronize, cudaDeviceSynchronize);

CUDART_EXPORT Error cudaDeviceReset() {
  const ApiCall api_call(__func__);
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  record_synchronization(runtime);
  runtime.reset();
  return last_error() = Error::success;
}
CUDART_ALIAS(cudaThreadExit, cudaDeviceReset);

CUDART_EXPORT Error cudaDeviceSetLimit(int limit, std::size_t value) {
  return call(__func__, [&](Runtime& runtime) { limit_of(runtime, limit) = value; });
}
CUDART_ALIAS(cudaThreadSetLimit, cudaDeviceSetLimit);

CUDART_EXPORT Error cudaDeviceGetLimit(std::size_t* value, int limit) {
  return call(__func__, [&](Runtime& runtime) {
    require(value != nullptr, "nowhere to put the limit");
    *value = limit_of(runtime, limit);
  });
}
CUDART_ALIAS(cudaThreadGetLimit, cudaDeviceGetLimit);

CUDART_EXPORT Error cudaDeviceSetCacheConfig(int) {
  return call(__func__, [](Runtime&) {});
}
CUDART_ALIAS(cudaThreadSetCacheConfig, cudaDeviceSetCacheConfig);
CUDART_ALIAS(cudaDeviceSetSharedMemConfig, cudaDeviceSetCacheConfig);

CUDART_EXPORT Error cudaDeviceGetCacheConfig(int* configuration) {
  return call(__func__, [&](Runtime&) {
    require(configuration != nullptr, "nowhere to put the configuration");
    *configuration = 0;  // no preference
  });
}
CUDART_ALIAS(cudaThreadGetCacheConfig, cudaDeviceGetCacheConfig);
CUDART_ALIAS(cudaDeviceGetSharedMemConfig, cudaDeviceGetCacheConfig);

CUDART_EXPORT Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call(__func__, [&](Runtime&) {
    if (least != nullptr) *least = Runtime::least_priority;
    if (greatest != nullptr) *greatest = Runtime::greatest_priority;
  });
}

CUDART_EXPORT Error cudaDeviceCanAccessPeer(int* can, int, int) {
  return call(__func__, [&](Runtime&) {
    require(can != nullptr, "nowhere to put the answer");
    *can = 0;
  });
}

CUDART_EXPORT Error cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return call(__func__, [&](Runtime&) {
    check_device(device);
    constexpr char id[] = "0000:00:00.0";
    require(text != nullptr && bytes >= static_cast<int>(sizeof id), "no room for the text");
    std::memcpy(text, id, sizeof id);
  });
}

CUDART_EXPORT Error cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return call(__func__, [&](Runtime&) {
    require(device != nullptr && text != nullptr, "a pointer is null");
    *device = 0;
  });
}

CUDART_EXPORT Error cudaCtxResetPersistingL2Cache() {
  return call(__func__, [](Runtime&) {});
}

CUDART_EXPORT Error cudaProfilerStart() {
  return call(__func__, [](Runtime&) {});
}
CUDART_ALIAS(cudaProfilerStop, cudaProfilerStart);
CUDART_ALIAS(cudaProfilerInitialize, cudaProfilerStart);

// --- errors and versions ------------------------------------------------------------------------

CUDART_EXPORT Error cudaGetLastError() {
  const Error error = last_error();
  // The error of a fault stays.
  last_error() = Runtime::get().sticky();
  return error != Error::success ? error : last_error();
}

CUDART_EXPORT Error cudaPeekAtLastError() {
  const Error error = last_error();
  return error != Error::success ? error : Runtime::get().sticky();
}

CUDART_EXPORT const char* cudaGetErrorName(Error error) { return name_of(error); }

CUDART_EXPORT const char* cudaGetErrorString(Error error) { return description_of(error); }

CUDART_EXPORT Error cudaRuntimeGetVersion(int* number) {
  return call(__func__, [&](Runtime&) {
    require(number != nullptr, "nowhere to put the version");
    // The last version of each that the layouts were taken from.
    *number = version == 11 ? 11080 : version == 12 ? 12090 : 13000;
  });
}

CUDART_EXPORT Error cudaDriverGetVersion(int* number) { return cudaRuntimeGetVersion(number); }
