// Registration of fat binaries, and launches: the functions that nvcc's code calls, and public
// ones.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "simt/state/cluster.h"
#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/kernel_attributes.h"
#include "stand_ins/state/recording.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

/// Launch configurations between <<<>>> and the call of the host stub, per thread.
std::vector<Runtime::Call>& configurations() {
  static thread_local std::vector<Runtime::Call> stack;
  return stack;
}

}  // namespace

namespace warpstack::cudart {

LaunchAttributes launch_attributes(Runtime& runtime, const void* attributes, unsigned count) {
  constexpr int cooperative = 2;
  constexpr int clusters = 4;
  constexpr int programmatic_serialization = 6;
  constexpr int programmatic_event = 7;
  constexpr std::size_t attribute_bytes = 72;
  LaunchAttributes result;
  if (count > 0) runtime.check_host(address_of(attributes), count * attribute_bytes, false);
  for (unsigned i = 0; i < count; ++i) {
    const auto* attribute = static_cast<const std::byte*>(attributes) + i * attribute_bytes;
    int id = 0;
    int value = 0;
    std::memcpy(&id, attribute, sizeof id);
    std::memcpy(&value, attribute + 8, sizeof value);
    if (id == cooperative) result.cooperative = value != 0;
    if (id == programmatic_serialization) result.programmatic = value != 0;
    if (id == programmatic_event) std::memcpy(&result.event, attribute + 8, sizeof result.event);
    if (id == clusters) result.cluster = cluster_dimension(attribute + 8);
  }
  return result;
}

Dim3 cluster_dimension(const void* value) {
  Dim3 result;
  std::memcpy(&result, value, sizeof result);
  require(result.x > 0 && result.y > 0 && result.z > 0, "a dimension of a cluster is 0",
          Error::invalid_cluster_size);
  return result;
}

FunctionAttributes attributes_of(Runtime& runtime, KernelEntry& kernel) {
  const ProgramModule& module = runtime.load(*kernel.module);
  const simt::KernelProgram& program = runtime.program(kernel);
  const std::uint64_t shared = program.shared_bytes;
  FunctionAttributes attributes{};
  attributes.shared_bytes = shared;
  attributes.max_threads_per_block = static_cast<int>(program.max_threads);
  attributes.local_bytes = program.local_bytes;
  attributes.registers = static_cast<int>(program.registers_per_thread);
  attributes.ptx_version = static_cast<int>(program.binary_version);
  attributes.binary_version = module.is_machine_code()
                                  ? attributes.ptx_version
                                  : static_cast<int>(DeviceDescription::newest_target);
  const std::uint64_t bound = kernel.max_dynamic_shared_bytes > 0
                                  ? kernel.max_dynamic_shared_bytes
                                  : DeviceDescription::shared_bytes_per_block;
  attributes.max_dynamic_shared_bytes = static_cast<int>(bound - std::min(bound, shared));
  attributes.preferred_shared_carveout = -1;
  return attributes;
}

ClusterAttributes cluster_attributes_of(Runtime& runtime, KernelEntry& kernel) {
  const auto& required = runtime.program(kernel).required_cluster;
  ClusterAttributes attributes{};
  attributes.must_be_set = required[0] != 0 ? 1 : 0;
  attributes.width = static_cast<int>(required[0]);
  attributes.height = static_cast<int>(required[1]);
  attributes.depth = static_cast<int>(required[2]);
  attributes.allows_large = kernel.allows_large_clusters ? 1 : 0;
  return attributes;
}

int active_clusters(Runtime& runtime, KernelEntry& kernel, const Runtime::Call& call) {
  runtime.check_launch(kernel, call);
  simt::LaunchOptions options;
  options.cluster = {call.cluster.x, call.cluster.y, call.cluster.z};
  const std::uint64_t blocks =
      simt::cluster_blocks(simt::cluster_of(runtime.program(kernel), options));
  const auto threads = static_cast<int>(call.block.x * call.block.y * call.block.z);
  const auto resident =
      static_cast<std::uint64_t>(runtime.blocks_per_sm(kernel, threads, call.dynamic_shared_bytes));
  return static_cast<int>(resident * runtime.description().num_sms / blocks);
}

int largest_cluster(const KernelEntry& kernel) {
  return static_cast<int>(kernel.allows_large_clusters ? simt::max_cluster_blocks
                                                       : Runtime::portable_cluster_blocks);
}

}  // namespace warpstack::cudart

// --- hooks of nvcc's host code ------------------------------------------------------------------

CUDART_EXPORT void** __cudaRegisterFatBinary(const FatBinaryWrapper* wrapper) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  return reinterpret_cast<void**>(runtime.add_module(wrapper));
}

CUDART_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

CUDART_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  runtime.remove_module(reinterpret_cast<FatModule*>(handle));
}

CUDART_EXPORT void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name,
                                          int, void*, void*, void*, void*, int*) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  runtime.add_kernel(stub, reinterpret_cast<FatModule*>(handle), name);
}

CUDART_EXPORT void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int,
                                     std::size_t, int, int) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  runtime.add_variable(shadow, reinterpret_cast<FatModule*>(handle), name);
}

CUDART_EXPORT void __cudaRegisterHostVar(void** handle, const char* name, char* shadow,
                                         std::size_t) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  runtime.add_variable(shadow, reinterpret_cast<FatModule*>(handle), name);
}

CUDART_EXPORT void __cudaRegisterManagedVar(void** handle, void** pointer, char*, const char* name,
                                            int, std::size_t, int, int) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  auto* module = reinterpret_cast<FatModule*>(handle);
  module->managed.emplace_back(pointer, name);
  // cudaMemcpyToSymbol and the like get either address.
  runtime.add_variable(pointer, module, name);
}

CUDART_EXPORT void __cudaRegisterTexture(void** handle, const void* reference, const void**,
                                         const char* name, int, int, int) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  runtime.texture_references[reference] = {reinterpret_cast<FatModule*>(handle), name};
}

CUDART_EXPORT void __cudaRegisterSurface(void** handle, const void* reference, const void**,
                                         const char* name, int, int) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  runtime.texture_references[reference] = {reinterpret_cast<FatModule*>(handle), name};
}

/// Gives managed variables their addresses. Programs call it before they touch one.
CUDART_EXPORT char __cudaInitModule(void** handle) {
  return call(__func__,
              [&](Runtime& runtime) { runtime.load(*reinterpret_cast<FatModule*>(handle)); }) ==
                 Error::success
             ? 1
             : 0;
}

CUDART_EXPORT unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared_bytes,
                                                   StreamHandle stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

CUDART_EXPORT Error __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared_bytes,
                                               StreamHandle* stream) {
  if (configurations().empty()) return last_error() = Error::missing_configuration;
  const Runtime::Call top = configurations().back();
  configurations().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.dynamic_shared_bytes;
  *stream = top.stream;
  return Error::success;
}

/// CUDA 13: a kernel's handle is the address of its stub here.
CUDART_EXPORT Error __cudaGetKernel(const void** kernel, const void* stub) {
  return call(__func__, [&](Runtime& runtime) {
    require(kernel != nullptr, "nowhere to put the kernel");
    runtime.kernel(stub);
    *kernel = stub;
  });
}
CUDART_ALIAS(cudaGetKernel, __cudaGetKernel);
CUDART_ALIAS(cudaGetFuncBySymbol, __cudaGetKernel);

// --- launches -----------------------------------------------------------------------------------

CUDART_EXPORT Error cudaLaunchKernel(const void* stub, Dim3 grid, Dim3 block, void** arguments,
                                     std::size_t shared_bytes, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.launch(stub, {grid, block, shared_bytes, stream}, arguments);
  });
}
CUDART_PER_THREAD(cudaLaunchKernel_ptsz, cudaLaunchKernel);
CUDART_ALIAS(__cudaLaunchKernel, cudaLaunchKernel);
CUDART_PER_THREAD(__cudaLaunchKernel_ptsz, cudaLaunchKernel);

CUDART_EXPORT Error cudaLaunchCooperativeKernel(const void* stub, Dim3 grid, Dim3 block,
                                                void** arguments, std::size_t shared_bytes,
                                                StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.launch_cooperative(stub, {grid, block, shared_bytes, stream}, arguments);
  });
}
CUDART_PER_THREAD(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel);

CUDART_EXPORT Error cudaLaunchKernelExC(const LaunchConfiguration* configuration, const void* stub,
                                        void** arguments) {
  return call(__func__, [&](Runtime& runtime) {
    require(configuration != nullptr, "no configuration");
    const LaunchAttributes attributes =
        launch_attributes(runtime, configuration->attributes, configuration->num_attributes);
    const Runtime::Call launch{.grid = configuration->grid,
                               .block = configuration->block,
                               .dynamic_shared_bytes = configuration->dynamic_shared_bytes,
                               .stream = configuration->stream,
                               .cluster = attributes.cluster,
                               .programmatic = attributes.programmatic,
                               .event = attributes.event};
    if (attributes.cooperative) {
      runtime.launch_cooperative(stub, launch, arguments);
    } else {
      runtime.launch(stub, launch, arguments);
    }
  });
}
CUDART_PER_THREAD(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC);

/// All earlier work is done, so the function runs at once.
CUDART_EXPORT Error cudaLaunchHostFunc(StreamHandle stream, void (*function)(void*), void* data) {
  const ApiCall api_call(__func__);  // the function is not part of the program's own thread
  bool captured = false;
  const Error error = call(__func__, [&](Runtime& runtime) {
    require(function != nullptr, "there is no function to call");
    captured = capture(runtime, stream, HostWork{{function, data}});
    if (!captured) record_stream(runtime, OperationKind::host_function, stream);
  });
  if (error == Error::success && !captured) {
    const HostFunctionTime time(Runtime::get().log());
    function(data);
  }
  return error;
}
CUDART_PER_THREAD(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc);

CUDART_EXPORT Error cudaStreamAddCallback(StreamHandle stream,
                                          void (*function)(StreamHandle, Error, void*), void* data,
                                          unsigned flags) {
  const ApiCall api_call(__func__);
  // The function also gets the error of a failed kernel.
  const Error sticky = Runtime::get().sticky();
  const Error error =
      sticky != Error::success ? Error::success : call(__func__, [&](Runtime& runtime) {
        refuse_callback_while_capturing(runtime, stream);
        require(flags == 0, "no flags are defined");
        record_stream(runtime, OperationKind::host_function, stream);
      });
  if (error != Error::success) return error;
  if (function == nullptr) return last_error() = Error::invalid_value;
  if (sticky != Error::success) {  // it has no row
    function(stream, sticky, data);
    return Error::success;
  }
  const HostFunctionTime time(Runtime::get().log());
  function(stream, sticky, data);
  return Error::success;
}
CUDART_PER_THREAD(cudaStreamAddCallback_ptsz, cudaStreamAddCallback);

// --- kernels ------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaFuncGetAttributes(FunctionAttributes* attributes, const void* stub) {
  return call(__func__, [&](Runtime& runtime) {
    require(attributes != nullptr, "nowhere to put the attributes");
    const FunctionAttributes found = attributes_of(runtime, runtime.kernel(stub));
    *attributes = found;
    if (abi_version() >= 12) {
      // They begin right after the last number, in the structure's padding.
      constexpr std::size_t end =
          offsetof(FunctionAttributes, preferred_shared_carveout) + sizeof(int);
      const ClusterAttributes clusters = cluster_attributes_of(runtime, runtime.kernel(stub));
      std::memcpy(reinterpret_cast<std::byte*>(attributes) + end, &clusters, sizeof clusters);
    }
  });
}

CUDART_EXPORT Error cudaFuncSetAttribute(const void* stub, int attribute, int value) {
  return call(__func__, [&](Runtime& runtime) {
    KernelEntry& entry = runtime.kernel(stub);
    constexpr int max_dynamic_shared = 8;
    constexpr int first_required_cluster = 11, last_required_cluster = 13;
    constexpr int large_clusters = 14;
    if (attribute >= first_required_cluster && attribute <= last_required_cluster) {
      throw Failure(Error::not_supported,
                    "the size of clusters as an attribute of a kernel is not supported; give it to "
                    "the launch",
                    true);
    }
    if (attribute == large_clusters) entry.allows_large_clusters = value != 0;
    if (attribute != max_dynamic_shared) return;  // preferences change nothing
    require(value >= 0 && static_cast<std::uint32_t>(value) <=
                              DeviceDescription::shared_bytes_per_block_optin,
            "no thread block has so much shared memory");
    entry.max_dynamic_shared_bytes = static_cast<std::uint64_t>(value);
  });
}

CUDART_EXPORT Error cudaFuncSetCacheConfig(const void* stub, int) {
  return call(__func__, [&](Runtime& runtime) { runtime.kernel(stub); });
}
CUDART_ALIAS(cudaFuncSetSharedMemConfig, cudaFuncSetCacheConfig);

CUDART_EXPORT Error cudaFuncGetName(const char** name, const void* stub) {
  return call(__func__, [&](Runtime& runtime) {
    require(name != nullptr, "nowhere to put the name");
    *name = runtime.kernel(stub).name.c_str();
  });
}

CUDART_EXPORT Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                                  int threads,
                                                                  std::size_t dynamic_bytes) {
  return call(__func__, [&](Runtime& runtime) {
    require(blocks != nullptr, "nowhere to put the number");
    *blocks = runtime.blocks_per_sm(runtime.kernel(stub), threads, dynamic_bytes);
  });
}

CUDART_EXPORT Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* stub, int threads, std::size_t dynamic_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, stub, threads, dynamic_bytes);
}

CUDART_EXPORT Error cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* stub,
                                                              int blocks, int) {
  return call(__func__, [&](Runtime& runtime) {
    require(bytes != nullptr && blocks > 0, "nowhere to put the number, or no block");
    const std::uint64_t each =
        runtime.description().shared_bytes_per_sm / static_cast<std::uint64_t>(blocks);
    const std::uint64_t bound =
        std::min<std::uint64_t>(each, DeviceDescription::shared_bytes_per_block_optin);
    *bytes = bound - std::min(bound, runtime.program(runtime.kernel(stub)).shared_bytes);
  });
}

CUDART_EXPORT Error cudaOccupancyMaxActiveClusters(int* clusters, const void* stub,
                                                   const LaunchConfiguration* configuration) {
  return call(__func__, [&](Runtime& runtime) {
    require(clusters != nullptr && configuration != nullptr,
            "nowhere to put the number, or no configuration");
    const LaunchAttributes attributes =
        launch_attributes(runtime, configuration->attributes, configuration->num_attributes);
    *clusters = active_clusters(runtime, runtime.kernel(stub),
                                {.grid = configuration->grid,
                                 .block = configuration->block,
                                 .dynamic_shared_bytes = configuration->dynamic_shared_bytes,
                                 .cluster = attributes.cluster});
  });
}

CUDART_EXPORT Error cudaOccupancyMaxPotentialClusterSize(int* blocks, const void* stub,
                                                         const LaunchConfiguration*) {
  return call(__func__, [&](Runtime& runtime) {
    require(blocks != nullptr, "nowhere to put the number");
    *blocks = largest_cluster(runtime.kernel(stub));
  });
}
