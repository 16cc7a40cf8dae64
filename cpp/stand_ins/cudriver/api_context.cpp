// The device and contexts.

#include <algorithm>
#include <cstring>

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/cudriver/runtime_calls.h"

using namespace warpstack::cudriver;

namespace {

void check_device(int device) {
  require(device == 0, "there is one device, number 0", Error::invalid_device);
}

Error create_context(const char* function, Context** context, unsigned flags, int device) {
  return manage(function, [&](Driver& driver) {
    require(context != nullptr, "nowhere to put the context");
    check_device(device);
    *context = driver.create(flags);
    driver.push(*context);
  });
}

}  // namespace

CUDART_EXPORT Error cuInit(unsigned flags) {
  return manage(
      __func__,
      [&](Driver& driver) {
        require(flags == 0, "no flags are defined");
        driver.initialized = true;
      },
      Needs::nothing);
}

CUDART_EXPORT Error cuDriverGetVersion(int* number) {
  return forward(__func__, [&] { return cudaDriverGetVersion(number); }, Needs::nothing);
}

// --- devices ------------------------------------------------------------------------------------

CUDART_EXPORT Error cuDeviceGet(int* device, int number) {
  return manage(__func__, [&](Driver&) {
    require(device != nullptr, "nowhere to put the device");
    check_device(number);
    *device = number;
  });
}

CUDART_EXPORT Error cuDeviceGetCount(int* count) {
  return forward(__func__, [&] { return cudaGetDeviceCount(count); }, Needs::initialization);
}

CUDART_EXPORT Error cuDeviceGetName(char* text, int bytes, int device) {
  return manage(__func__, [&](Driver&) {
    check_device(device);
    require(text != nullptr && bytes > 0, "nowhere to put the name");
    const std::string& name = Runtime::get().description().name;
    text[name.copy(text, static_cast<std::size_t>(bytes) - 1)] = '\0';
  });
}

CUDART_EXPORT Error cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  return manage(__func__, [&](Driver&) {
    check_device(device);
    require(bytes != nullptr, "nowhere to put the size");
    *bytes = Runtime::get().description().memory_bytes;
  });
}

CUDART_EXPORT Error cuDeviceGetAttribute(int* value, int number, int device) {
  return forward(
      __func__, [&] { return cudaDeviceGetAttribute(value, number, device); },
      Needs::initialization);
}

/// CUdevprop has the first attributes in their order.
CUDART_EXPORT Error cuDeviceGetProperties(int* properties, int device) {
  return forward(
      __func__,
      [&] {
        if (properties == nullptr) return mistake("nowhere to put the properties");
        Error error = Error::success;
        for (int i = 0; i < 14 && error == Error::success; ++i) {
          error = cudaDeviceGetAttribute(properties + i, i + 1, device);
        }
        return error;
      },
      Needs::initialization);
}

CUDART_EXPORT Error cuDeviceComputeCapability(int* major, int* minor, int device) {
  return manage(__func__, [&](Driver&) {
    check_device(device);
    require(major != nullptr && minor != nullptr, "nowhere to put the numbers");
    const std::uint32_t capability = Runtime::get().description().capability;
    *major = static_cast<int>(capability / 10);
    *minor = static_cast<int>(capability % 10);
  });
}

CUDART_EXPORT Error cuDeviceGetUuid(void* uuid, int device) {
  return manage(__func__, [&](Driver&) {
    check_device(device);
    require(uuid != nullptr, "nowhere to put the number");
    constexpr char bytes[16] = "warpstack";
    std::memcpy(uuid, bytes, sizeof bytes);
  });
}
CUDART_ALIAS(cuDeviceGetUuid_v2, cuDeviceGetUuid);

CUDART_EXPORT Error cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  return forward(
      __func__, [&] { return cudaDeviceGetPCIBusId(text, bytes, device); }, Needs::initialization);
}

CUDART_EXPORT Error cuDeviceGetByPCIBusId(int* device, const char* text) {
  return forward(
      __func__, [&] { return cudaDeviceGetByPCIBusId(device, text); }, Needs::initialization);
}

CUDART_EXPORT Error cuDeviceCanAccessPeer(int* can, int device, int other) {
  return forward(
      __func__, [&] { return cudaDeviceCanAccessPeer(can, device, other); }, Needs::initialization);
}

// --- the primary context ------------------------------------------------------------------------

CUDART_EXPORT Error cuDevicePrimaryCtxRetain(Context** context, int device) {
  return manage(__func__, [&](Driver& driver) {
    check_device(device);
    require(context != nullptr, "nowhere to put the context");
    ++driver.primary.users;
    *context = &driver.primary;
  });
}

CUDART_EXPORT Error cuDevicePrimaryCtxRelease_v2(int device) {
  return manage(__func__, [&](Driver& driver) {
    check_device(device);
    driver.release_primary();
  });
}
CUDART_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

CUDART_EXPORT Error cuDevicePrimaryCtxReset_v2(int device) {
  return manage(__func__, [&](Driver& driver) {
    check_device(device);
    driver.reset_primary();
  });
}
CUDART_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

CUDART_EXPORT Error cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  return manage(__func__, [&](Driver& driver) {
    check_device(device);
    driver.primary.flags = flags;
  });
}
CUDART_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

CUDART_EXPORT Error cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return manage(__func__, [&](Driver& driver) {
    check_device(device);
    require(flags != nullptr && active != nullptr, "nowhere to put the state");
    *flags = driver.primary.flags;
    *active = driver.is_primary_active() ? 1 : 0;
  });
}

// --- contexts -----------------------------------------------------------------------------------

CUDART_EXPORT Error cuCtxCreate_v2(Context** context, unsigned flags, int device) {
  return create_context(__func__, context, flags, device);
}
CUDART_ALIAS(cuCtxCreate, cuCtxCreate_v2);

CUDART_EXPORT Error cuCtxCreate_v3(Context** context, const void*, int, unsigned flags,
                                   int device) {
  return create_context(__func__, context, flags, device);
}

CUDART_EXPORT Error cuCtxCreate_v4(Context** context, const void*, unsigned flags, int device) {
  return create_context(__func__, context, flags, device);
}

CUDART_EXPORT Error cuCtxDestroy_v2(Context* context) {
  return manage(__func__, [&](Driver& driver) { driver.destroy(driver.checked(context)); });
}
CUDART_ALIAS(cuCtxDestroy, cuCtxDestroy_v2);

CUDART_EXPORT Error cuCtxAttach(Context** context, unsigned flags) {
  return manage(
      __func__,
      [&](Driver& driver) {
        require(context != nullptr && flags == 0, "nowhere to put the context, or flags");
        *context = driver.current();
        ++(*context)->users;
      },
      Needs::context);
}

CUDART_EXPORT Error cuCtxDetach(Context* context) {
  return manage(__func__, [&](Driver& driver) {
    if (&driver.checked(context) == &driver.primary) return driver.release_primary();
    if (--context->users == 0) driver.destroy(*context);
  });
}

CUDART_EXPORT Error cuCtxPushCurrent_v2(Context* context) {
  return manage(__func__, [&](Driver& driver) { driver.push(context); });
}
CUDART_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

CUDART_EXPORT Error cuCtxPopCurrent_v2(Context** context) {
  return manage(__func__, [&](Driver& driver) {
    Context* const top = driver.pop();
    if (context != nullptr) *context = top;
  });
}
CUDART_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

CUDART_EXPORT Error cuCtxSetCurrent(Context* context) {
  return manage(__func__, [&](Driver& driver) { driver.set_current(context); });
}

CUDART_EXPORT Error cuCtxGetCurrent(Context** context) {
  return manage(__func__, [&](Driver& driver) {
    require(context != nullptr, "nowhere to put the context");
    *context = driver.current();
  });
}

CUDART_EXPORT Error cuCtxGetDevice(int* device) {
  return manage(
      __func__,
      [&](Driver&) {
        require(device != nullptr, "nowhere to put the device");
        *device = 0;
      },
      Needs::context);
}

/// The form of CUDA 13.
CUDART_EXPORT Error cuCtxGetDevice_v2(int* device, Context* context) {
  return manage(__func__, [&](Driver& driver) {
    require(device != nullptr, "nowhere to put the device");
    if (context != nullptr) driver.checked(context);
    *device = 0;
  });
}

CUDART_EXPORT Error cuCtxGetFlags(unsigned* flags) {
  return manage(
      __func__,
      [&](Driver& driver) {
        require(flags != nullptr, "nowhere to put the flags");
        *flags = driver.current()->flags;
      },
      Needs::context);
}

CUDART_EXPORT Error cuCtxGetId(Context* context, unsigned long long* number) {
  return manage(
      __func__,
      [&](Driver& driver) {
        require(number != nullptr, "nowhere to put the number");
        *number = (context == nullptr ? *driver.current() : driver.checked(context)).number;
      },
      Needs::context);
}

CUDART_EXPORT Error cuCtxGetApiVersion(Context* context, unsigned* version) {
  return manage(__func__, [&](Driver& driver) {
    require(version != nullptr, "nowhere to put the version");
    if (context != nullptr) driver.checked(context);
    *version = 3020;  // the version since which contexts are as they are
  });
}

CUDART_EXPORT Error cuCtxSynchronize() {
  return forward(__func__, [] { return cudaDeviceSynchronize(); });
}

CUDART_EXPORT Error cuCtxSynchronize_v2(Context* context) {
  return forward(
      __func__,
      [&] {
        if (context != nullptr) {
          const Error error = manage(__func__, [&](Driver& driver) { driver.checked(context); });
          if (error != Error::success) return error;
        }
        return cudaDeviceSynchronize();
      },
      context == nullptr ? Needs::context : Needs::initialization);
}

CUDART_EXPORT Error cuCtxSetLimit(int limit, std::size_t value) {
  return forward(__func__, [&] { return cudaDeviceSetLimit(limit, value); });
}

CUDART_EXPORT Error cuCtxGetLimit(std::size_t* value, int limit) {
  return forward(__func__, [&] { return cudaDeviceGetLimit(value, limit); });
}

CUDART_EXPORT Error cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return forward(__func__, [&] { return cudaDeviceGetStreamPriorityRange(least, greatest); });
}

/// Preferences change nothing.
CUDART_EXPORT Error cuCtxSetCacheConfig(int) {
  return drive(__func__, [](Runtime&) {});
}
CUDART_ALIAS(cuCtxSetSharedMemConfig, cuCtxSetCacheConfig);
CUDART_ALIAS(cuCtxSetFlags, cuCtxSetCacheConfig);

CUDART_EXPORT Error cuCtxGetCacheConfig(int* configuration) {
  return forward(__func__, [&] { return cudaDeviceGetCacheConfig(configuration); });
}
CUDART_ALIAS(cuCtxGetSharedMemConfig, cuCtxGetCacheConfig);

CUDART_EXPORT Error cuCtxResetPersistingL2Cache() {
  return drive(__func__, [](Runtime&) {});
}
CUDART_ALIAS(cuProfilerStart, cuCtxResetPersistingL2Cache);
CUDART_ALIAS(cuProfilerStop, cuCtxResetPersistingL2Cache);
