// Kernels: attributes, occupancy, launches.

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/cudriver/runtime_calls.h"
#include "stand_ins/state/host_memory.h"
#include "stand_ins/state/kernel_attributes.h"

using namespace warpstack::cudriver;
using warpstack::cudart::attributes_of;
using warpstack::cudart::cluster_attributes_of;
using warpstack::cudart::ClusterAttributes;
using warpstack::cudart::Dim3;
using warpstack::cudart::FunctionAttributes;
using warpstack::cudart::host_readable;
using warpstack::cudart::KernelEntry;
using warpstack::cudart::launch_attributes;
using warpstack::cudart::LaunchAttributes;
using warpstack::cudart::ProgramModule;

namespace {

std::vector<ProgramModule::Argument> parameters_of(Runtime& runtime, Function function) {
  KernelEntry& kernel = runtime.kernel(function);
  return runtime.load(*kernel.module).arguments(kernel.name);
}

/// CU_LAUNCH_PARAM_...: a buffer that a program may pass instead of pointers to arguments.
struct Buffer {
  std::byte* bytes = nullptr;
  std::size_t size = 0;
};

Buffer buffer_of(void** extra) {
  constexpr std::uintptr_t end = 0, pointer = 1, size = 2;
  Buffer buffer;
  for (;; extra += 2) {
    require(host_readable(address_of(extra), sizeof *extra), "the extra options cannot be read");
    const std::uintptr_t option = address_of(extra[0]);
    if (option == end) return buffer;
    require(option == pointer || option == size, "unknown extra option of a launch");
    require(host_readable(address_of(extra), 2 * sizeof *extra),
            "the extra options cannot be read");
    if (option == pointer) {
      buffer.bytes = static_cast<std::byte*>(extra[1]);
    } else {
      require(host_readable(address_of(extra[1]), sizeof buffer.size),
              "the size of the arguments cannot be read");
      std::memcpy(&buffer.size, extra[1], sizeof buffer.size);
    }
  }
}

Error launch(const char* name, Function function, const Runtime::Call& call, void** arguments,
             void** extra, bool cooperative) {
  return drive(name, [&](Runtime& runtime) {
    require(arguments == nullptr || extra == nullptr,
            "arguments come as pointers or in a buffer, not both");
    std::vector<void*> pointers;
    if (extra != nullptr) {
      const Buffer buffer = buffer_of(extra);
      for (const ProgramModule::Argument& one : parameters_of(runtime, function)) {
        require(one.offset + one.bytes <= buffer.size,
                "the buffer is shorter than the kernel's arguments");
        pointers.push_back(buffer.bytes + one.offset);
      }
      arguments = pointers.data();
    }
    if (cooperative) {
      runtime.launch_cooperative(function, call, arguments);
    } else {
      runtime.launch(function, call, arguments);
    }
  });
}

/// The call that a configuration describes.
Runtime::Call call_of(Runtime& runtime, const LaunchConfiguration* given, bool& cooperative) {
  require(given != nullptr, "no configuration");
  const LaunchAttributes attributes =
      launch_attributes(runtime, given->attributes, given->num_attributes);
  cooperative = attributes.cooperative;
  return {.grid = {given->grid[0], given->grid[1], given->grid[2]},
          .block = {given->block[0], given->block[1], given->block[2]},
          .dynamic_shared_bytes = given->dynamic_shared_bytes,
          .stream = given->stream,
          .cluster = attributes.cluster,
          .programmatic = attributes.programmatic,
          .event = attributes.event};
}

int attribute_of(const FunctionAttributes& all, const ClusterAttributes& clusters, int attribute) {
  switch (attribute) {
    case 0:
      return all.max_threads_per_block;
    case 1:
      return static_cast<int>(all.shared_bytes);
    case 2:
      return static_cast<int>(all.constant_bytes);
    case 3:
      return static_cast<int>(all.local_bytes);
    case 4:
      return all.registers;
    case 5:
      return all.ptx_version;
    case 6:
      return all.binary_version;
    case 7:
      return all.cache_mode;
    case 8:
      return all.max_dynamic_shared_bytes;
    case 9:
      return all.preferred_shared_carveout;
    case 10:
      return clusters.must_be_set;
    case 11:
      return clusters.width;
    case 12:
      return clusters.height;
    case 13:
      return clusters.depth;
    case 14:
      return clusters.allows_large;
    case 15:
      return clusters.scheduling_policy;
    default:
      require(false, "a kernel has no such attribute");
      return 0;
  }
}

Error get_attribute(const char* name, int* value, int attribute, Function function, Needs needs) {
  return drive(
      name,
      [&](Runtime& runtime) {
        require(value != nullptr, "nowhere to put the value");
        KernelEntry& kernel = runtime.kernel(function);
        *value = attribute_of(attributes_of(runtime, kernel),
                              cluster_attributes_of(runtime, kernel), attribute);
      },
      needs);
}

Error parameter(const char* name, Function function, std::size_t index, std::size_t* offset,
                std::size_t* bytes) {
  return drive(
      name,
      [&](Runtime& runtime) {
        require(offset != nullptr, "nowhere to put the offset");
        const auto all = parameters_of(runtime, function);
        require(index < all.size(), "the kernel has no such parameter");
        *offset = all[index].offset;
        if (bytes != nullptr) *bytes = all[index].bytes;
      },
      Needs::initialization);
}

}  // namespace

// --- launches -----------------------------------------------------------------------------------

CUDART_EXPORT Error cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, StreamHandle stream,
                                   void** arguments, void** extra) {
  return launch(__func__, function,
                {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream},
                arguments, extra, false);
}
CUDART_PER_THREAD(cuLaunchKernel_ptsz, cuLaunchKernel);

CUDART_EXPORT Error cuLaunchCooperativeKernel(Function function, unsigned grid_x, unsigned grid_y,
                                              unsigned grid_z, unsigned block_x, unsigned block_y,
                                              unsigned block_z, unsigned shared_bytes,
                                              StreamHandle stream, void** arguments) {
  return launch(__func__, function,
                {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream},
                arguments, nullptr, true);
}
CUDART_PER_THREAD(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel);

CUDART_EXPORT Error cuLaunchKernelEx(const LaunchConfiguration* given, Function function,
                                     void** arguments, void** extra) {
  Runtime::Call call;
  bool cooperative = false;
  const Error error =
      drive(__func__, [&](Runtime& runtime) { call = call_of(runtime, given, cooperative); });
  if (error != Error::success) return error;
  return launch(__func__, function, call, arguments, extra, cooperative);
}
CUDART_PER_THREAD(cuLaunchKernelEx_ptsz, cuLaunchKernelEx);

// --- kernels ------------------------------------------------------------------------------------

CUDART_EXPORT Error cuFuncGetAttribute(int* value, int attribute, Function function) {
  return get_attribute(__func__, value, attribute, function, Needs::context);
}

CUDART_EXPORT Error cuKernelGetAttribute(int* value, int attribute, Function kernel, int) {
  return get_attribute(__func__, value, attribute, kernel, Needs::initialization);
}

CUDART_EXPORT Error cuFuncSetAttribute(Function function, int attribute, int value) {
  return forward(__func__, [&] { return cudaFuncSetAttribute(function, attribute, value); });
}

CUDART_EXPORT Error cuKernelSetAttribute(int attribute, int value, Function kernel, int) {
  return forward(
      __func__, [&] { return cudaFuncSetAttribute(kernel, attribute, value); },
      Needs::initialization);
}

/// Preferences change nothing.
CUDART_EXPORT Error cuFuncSetCacheConfig(Function function, int) {
  return drive(__func__, [&](Runtime& runtime) { runtime.kernel(function); });
}
CUDART_ALIAS(cuFuncSetSharedMemConfig, cuFuncSetCacheConfig);

CUDART_EXPORT Error cuKernelSetCacheConfig(Function kernel, int, int) {
  return drive(__func__, [&](Runtime& runtime) { runtime.kernel(kernel); }, Needs::initialization);
}

CUDART_EXPORT Error cuFuncLoad(Function function) {
  return drive(__func__, [&](Runtime& runtime) { runtime.program(runtime.kernel(function)); });
}

CUDART_EXPORT Error cuFuncIsLoaded(int* state, Function function) {
  return drive(__func__, [&](Runtime& runtime) {
    require(state != nullptr, "nowhere to put the state");
    runtime.kernel(function);
    *state = 1;  // CU_FUNCTION_LOADING_STATE_LOADED
  });
}

CUDART_EXPORT Error cuFuncGetName(const char** name, Function function) {
  return forward(__func__, [&] { return cudaFuncGetName(name, function); }, Needs::initialization);
}
CUDART_ALIAS(cuKernelGetName, cuFuncGetName);

CUDART_EXPORT Error cuFuncGetModule(FatModule** module, Function function) {
  return drive(__func__, [&](Runtime& runtime) {
    require(module != nullptr, "nowhere to put the module");
    *module = runtime.kernel(function).module;
  });
}
CUDART_ALIAS(cuKernelGetLibrary, cuFuncGetModule);

/// Kernels and functions have one handle.
CUDART_EXPORT Error cuKernelGetFunction(Function* function, Function kernel) {
  return drive(__func__, [&](Runtime& runtime) {
    require(function != nullptr, "nowhere to put the function");
    runtime.kernel(kernel);
    *function = kernel;
  });
}

CUDART_EXPORT Error cuFuncGetParamInfo(Function function, std::size_t index, std::size_t* offset,
                                       std::size_t* bytes) {
  return parameter(__func__, function, index, offset, bytes);
}

CUDART_EXPORT Error cuKernelGetParamInfo(Function kernel, std::size_t index, std::size_t* offset,
                                         std::size_t* bytes) {
  return parameter(__func__, kernel, index, offset, bytes);
}

// --- occupancy ----------------------------------------------------------------------------------

CUDART_EXPORT Error cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function function,
                                                                int threads,
                                                                std::size_t dynamic_bytes) {
  return forward(__func__, [&] {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic_bytes);
  });
}

CUDART_EXPORT Error cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, Function function, int threads, std::size_t dynamic_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic_bytes);
}

CUDART_EXPORT Error cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, Function function,
                                                            int blocks, int threads) {
  return forward(__func__, [&] {
    return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads);
  });
}

/// The size of blocks with which an SM holds the most threads, and the largest of these.
CUDART_EXPORT Error cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, Function function,
                                                     std::size_t (*dynamic_of)(int),
                                                     std::size_t dynamic_bytes, int limit) {
  return drive(__func__, [&](Runtime& runtime) {
    require(blocks != nullptr && threads != nullptr, "nowhere to put the numbers");
    KernelEntry& kernel = runtime.kernel(function);
    const int largest = attributes_of(runtime, kernel).max_threads_per_block;
    const int most = limit > 0 ? std::min(limit, largest) : largest;
    constexpr int warp = static_cast<int>(warpstack::trace::warp_size);
    int held = 0;
    *blocks = *threads = 0;
    for (int size = most; size > 0; size = (size - 1) / warp * warp) {
      const std::size_t dynamic = dynamic_of != nullptr ? dynamic_of(size) : dynamic_bytes;
      const int resident = runtime.blocks_per_sm(kernel, size, dynamic);
      if (resident * size <= held) continue;
      held = resident * size;
      *threads = size;
      *blocks = resident * static_cast<int>(runtime.description().num_sms);
    }
  });
}

CUDART_EXPORT Error cuOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads,
                                                              Function function,
                                                              std::size_t (*dynamic_of)(int),
                                                              std::size_t dynamic_bytes, int limit,
                                                              unsigned) {
  return cuOccupancyMaxPotentialBlockSize(blocks, threads, function, dynamic_of, dynamic_bytes,
                                          limit);
}

CUDART_EXPORT Error cuOccupancyMaxActiveClusters(int* clusters, Function function,
                                                 const LaunchConfiguration* given) {
  return drive(__func__, [&](Runtime& runtime) {
    require(clusters != nullptr, "nowhere to put the number");
    bool cooperative = false;
    const Runtime::Call call = call_of(runtime, given, cooperative);
    *clusters = warpstack::cudart::active_clusters(runtime, runtime.kernel(function), call);
  });
}

CUDART_EXPORT Error cuOccupancyMaxPotentialClusterSize(int* blocks, Function function,
                                                       const LaunchConfiguration*) {
  return drive(__func__, [&](Runtime& runtime) {
    require(blocks != nullptr, "nowhere to put the number");
    *blocks = warpstack::cudart::largest_cluster(runtime.kernel(function));
  });
}
