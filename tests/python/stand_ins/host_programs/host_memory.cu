// What the runtime and the driver say of host memory, symbols and handles: used twice, unknown,
// freed, null. Prints each answer that is not CUDA's, and at the end how many there were.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

static int calls = 0;

static void expect(const char* text, int got, int wanted) {
  ++calls;
  cudaGetLastError();
  if (got != wanted) printf("%s: %d instead of %d\n", text, got, wanted);
}

#define EXPECT(wanted, call) expect(#call, static_cast<int>(call), wanted)

enum { ok = 0, invalid = 1, no_symbol = 13, no_function = 98, twice = 712, not_registered = 713 };

__device__ int variable[16];
__managed__ int managed_variable[16];
__global__ void kernel() {}
static void host_function() {}
static int host_variable;

template <class F>
static F* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F*>(dlsym(library, name));
}
#define DRIVER(name, symbol) auto* const name = driver<decltype(::name)>(symbol)

static void pointer(const char* what, const void* at, int type, bool device, bool host) {
  cudaPointerAttributes a{};
  expect(what, cudaPointerGetAttributes(&a, at), ok);
  expect(what, a.type, type);
  expect(what, a.devicePointer == (device ? at : nullptr), 1);
  expect(what, a.hostPointer == (host || type == 0 ? at : nullptr), 1);
  expect(what, a.device, type == 0 ? -2 : 0);
}

static void attributes(char* registered) {
  char *device, *managed, *pinned, *pooled;
  int local = 0;
  cudaMalloc(&device, 4096);
  cudaMallocManaged(&managed, 4096);
  cudaMallocHost(&pinned, 4096);
  cudaMallocAsync(&pooled, 4096, 0);
  pointer("device", device, 2, true, false);
  pointer("within device", device + 4095, 2, true, false);
  pointer("beyond device", device + 4096, 0, false, false);
  pointer("pooled", pooled + 1, 2, true, false);
  pointer("managed", managed + 8, 3, true, true);
  pointer("pinned", pinned + 8, 1, true, true);
  pointer("registered", registered, 1, true, true);
  pointer("within registered", registered + 65535, 1, true, true);
  pointer("the neighbour", registered + 65536, 1, true, true);
  pointer("beyond registered", registered + 65536 + 4096, 0, false, false);
  pointer("stack", &local, 0, false, false);
  void* symbol;
  cudaGetSymbolAddress(&symbol, variable);
  pointer("variable", symbol, 2, true, false);
  pointer("managed variable", managed_variable + 1, 3, true, true);
  EXPECT(invalid, cudaPointerGetAttributes(nullptr, device));
  // Each is freed by its own function, once.
  EXPECT(invalid, cudaFree(pinned));
  EXPECT(invalid, cudaFree(registered));
  EXPECT(invalid, cudaFreeHost(registered));
  EXPECT(invalid, cudaFreeHost(device));
  EXPECT(invalid, cudaFreeHost(managed));
  EXPECT(invalid, cudaFreeHost(pinned + 1));
  EXPECT(invalid, cudaFreeAsync(pinned, 0));
  EXPECT(ok, cudaFreeHost(pinned));
  EXPECT(invalid, cudaFreeHost(pinned));
  EXPECT(ok, cudaFree(managed));
  EXPECT(invalid, cudaFree(managed));
  EXPECT(ok, cudaFree(device));
  EXPECT(ok, cudaFreeAsync(pooled, 0));
  EXPECT(invalid, cudaFreeAsync(pooled, 0));
  pointer("freed", device, 0, false, false);
  pointer("freed pinned", pinned, 0, false, false);
}

static void registration(char* memory) {
  char *device, *managed, *pinned;
  unsigned flags = 0;
  void* mapped;
  cudaMalloc(&device, 4096);
  cudaMallocManaged(&managed, 4096);
  EXPECT(invalid, cudaMallocManaged(&mapped, 64, 0));
  EXPECT(invalid, cudaHostAlloc(&mapped, 64, 8));
  cudaHostAlloc(reinterpret_cast<void**>(&pinned), 4096, cudaHostAllocPortable);
  EXPECT(not_registered, cudaHostUnregister(memory));
  EXPECT(invalid, cudaHostRegister(memory, 65536, 64));
  EXPECT(ok, cudaHostRegister(memory, 65536, cudaHostRegisterDefault));
  EXPECT(twice, cudaHostRegister(memory, 65536, cudaHostRegisterDefault));
  EXPECT(twice, cudaHostRegister(memory + 4096, 4096, 0));
  EXPECT(twice, cudaHostRegister(memory - 4096, 8192, 0));
  EXPECT(twice, cudaHostRegister(memory - 4096, 131072 - 8192, 0));
  EXPECT(twice, cudaHostRegister(pinned, 4096, 0));
  EXPECT(invalid, cudaHostRegister(device, 4096, 0));
  EXPECT(invalid, cudaHostRegister(managed, 4096, 0));
  EXPECT(ok, cudaHostRegister(memory + 65536, 4096, cudaHostRegisterPortable));  // the neighbour
  attributes(memory);
  EXPECT(ok, cudaHostUnregister(memory + 65536));
  EXPECT(not_registered, cudaHostUnregister(memory + 65536));
  EXPECT(not_registered, cudaHostUnregister(memory + 4096));
  EXPECT(not_registered, cudaHostUnregister(pinned));
  EXPECT(not_registered, cudaHostUnregister(&flags));
  EXPECT(ok, cudaHostGetFlags(&flags, pinned + 100));
  EXPECT(cudaHostAllocPortable | cudaHostAllocMapped, flags);
  EXPECT(invalid, cudaHostGetFlags(&flags, memory));
  EXPECT(invalid, cudaHostGetFlags(&flags, device));
  EXPECT(invalid, cudaHostGetFlags(&flags, managed));
  EXPECT(ok, cudaHostGetDevicePointer(&mapped, pinned + 8, 0));
  EXPECT(1, mapped == pinned + 8);
  EXPECT(invalid, cudaHostGetDevicePointer(&mapped, pinned, 1));
  EXPECT(invalid, cudaHostGetDevicePointer(&mapped, &flags, 0));
  EXPECT(invalid, cudaHostGetDevicePointer(&mapped, device, 0));
  // Hints and their kin are of managed memory.
  EXPECT(ok, cudaStreamAttachMemAsync(0, managed, 0, cudaMemAttachGlobal));
  EXPECT(invalid, cudaStreamAttachMemAsync(0, device, 0, cudaMemAttachGlobal));
#if CUDART_VERSION >= 13000
  const cudaMemLocation place{cudaMemLocationTypeDevice, 0};
#define PLACE place, 0
#else
  const int place = 0;
#define PLACE place
#endif
  EXPECT(ok, cudaMemPrefetchAsync(managed, 4096, PLACE, 0));
  EXPECT(ok, cudaMemPrefetchAsync(managed_variable, 64, PLACE, 0));
  EXPECT(invalid, cudaMemPrefetchAsync(managed, 4097, PLACE, 0));
  EXPECT(invalid, cudaMemPrefetchAsync(managed, 0, PLACE, 0));
  EXPECT(invalid, cudaMemPrefetchAsync(device, 4096, PLACE, 0));
  EXPECT(invalid, cudaMemPrefetchAsync(pinned, 4096, PLACE, 0));
  EXPECT(ok, cudaMemAdvise(managed + 96, 4000, cudaMemAdviseSetReadMostly, place));
  EXPECT(invalid, cudaMemAdvise(memory, 4096, cudaMemAdviseSetReadMostly, place));
  EXPECT(ok, cudaHostUnregister(memory));
  pointer("no longer registered", memory, 0, false, false);
  EXPECT(ok, cudaHostRegister(memory + 4096, 4096, cudaHostRegisterMapped));  // a part, again
  EXPECT(ok, cudaHostUnregister(memory + 4096));
  cudaFree(device);
  cudaFree(managed);
  cudaFreeHost(pinned);
}

static void symbols() {
  cudaFunction_t function = nullptr;
  cudaFuncAttributes attributes;
  const void* const unknown = reinterpret_cast<const void*>(host_function);
  void* address;
  size_t size;
  int number;
  EXPECT(ok, cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel)));
  EXPECT(1, function != nullptr);
  for (const void* wrong :
       {unknown, static_cast<const void*>(nullptr), static_cast<const void*>(variable)}) {
    EXPECT(no_function, cudaGetFuncBySymbol(&function, wrong));
    EXPECT(no_function, cudaFuncGetAttributes(&attributes, wrong));
    EXPECT(no_function,
           cudaFuncSetAttribute(wrong, cudaFuncAttributeMaxDynamicSharedMemorySize, 64));
    EXPECT(no_function, cudaFuncSetCacheConfig(wrong, cudaFuncCachePreferL1));
    EXPECT(no_function, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, wrong, 32, 0));
    EXPECT(no_function, cudaLaunchKernel(wrong, 1, 1, nullptr, 0, 0));
  }
  EXPECT(invalid, cudaGetFuncBySymbol(nullptr, reinterpret_cast<const void*>(kernel)));
  for (const void* wrong :
       {unknown, static_cast<const void*>(nullptr), static_cast<const void*>(&host_variable),
        reinterpret_cast<const void*>(kernel)}) {
    EXPECT(no_symbol, cudaGetSymbolAddress(&address, wrong));
    EXPECT(no_symbol, cudaGetSymbolSize(&size, wrong));
    EXPECT(no_symbol, cudaMemcpyToSymbol(wrong, &number, 4));
    EXPECT(no_symbol, cudaMemcpyFromSymbol(&number, wrong, 4));
  }
}

static void of_driver(char* memory) {
  DRIVER(cuMemHostRegister, "cuMemHostRegister_v2");
  DRIVER(cuMemHostUnregister, "cuMemHostUnregister");
  DRIVER(cuMemHostGetFlags, "cuMemHostGetFlags");
  DRIVER(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
  DRIVER(cuMemHostAlloc, "cuMemHostAlloc");
  DRIVER(cuMemFreeHost, "cuMemFreeHost");
  DRIVER(cuMemFree, "cuMemFree_v2");
  DRIVER(cuPointerGetAttribute, "cuPointerGetAttribute");
  DRIVER(cuPointerGetAttributes, "cuPointerGetAttributes");
  const auto at = [](const void* p) { return reinterpret_cast<CUdeviceptr>(p); };
  EXPECT(not_registered, cuMemHostUnregister(memory));
  EXPECT(invalid, cuMemHostUnregister(nullptr));
  EXPECT(invalid, cuMemHostRegister(nullptr, 64, 0));
  EXPECT(invalid, cuMemHostRegister(memory, 0, 0));
  EXPECT(ok, cuMemHostRegister(memory, 8192, 0));
  EXPECT(twice, cuMemHostRegister(memory, 8192, 0));
  EXPECT(twice, cuMemHostRegister(memory + 4096, 8192, 0));
  unsigned type = 0, is_managed = 7;
  int device = -1;
  void* begin = nullptr;
  CUdeviceptr mapped = 0;
  size_t bytes = 0;
  EXPECT(ok, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(memory + 5)));
  EXPECT(CU_MEMORYTYPE_HOST, type);
  EXPECT(ok, cuPointerGetAttribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at(memory + 5)));
  EXPECT(1, begin == memory);
  EXPECT(ok, cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at(memory + 5)));
  EXPECT(8192, bytes);
  EXPECT(invalid,
         cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(memory + 8192)));
  EXPECT(invalid, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
  EXPECT(invalid, cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(memory)));
  EXPECT(invalid, cuPointerGetAttribute(&type, static_cast<CUpointer_attribute>(999), at(memory)));
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* places[] = {&type, &is_managed, &device, &begin};
  EXPECT(ok, cuPointerGetAttributes(4, which, places, at(memory + 5)));
  EXPECT(1, type == CU_MEMORYTYPE_HOST && is_managed == 0 && device == 0 && begin == memory + 5);
  EXPECT(ok, cuPointerGetAttributes(4, which, places, at(&host_variable)));
  EXPECT(1, type == 0 && is_managed == 0 && device == -2 && begin == nullptr);
  EXPECT(invalid, cuMemFreeHost(memory));
  EXPECT(invalid, cuMemFree(at(memory)));
  unsigned flags = 0;
  void* pinned = nullptr;
  EXPECT(invalid, cuMemHostGetFlags(&flags, memory));
  EXPECT(invalid, cuMemHostAlloc(&pinned, 64, 64));
  EXPECT(ok, cuMemHostAlloc(&pinned, 64, CU_MEMHOSTALLOC_WRITECOMBINED));
  EXPECT(ok, cuMemHostGetFlags(&flags, pinned));
  EXPECT(CU_MEMHOSTALLOC_WRITECOMBINED | CU_MEMHOSTALLOC_DEVICEMAP, flags);
  EXPECT(twice, cuMemHostRegister(pinned, 64, 0));
  EXPECT(ok, cuMemHostGetDevicePointer(&mapped, pinned, 0));
  EXPECT(1, mapped == at(pinned));
  EXPECT(invalid, cuMemHostGetDevicePointer(&mapped, &host_variable, 0));
  EXPECT(invalid, cuMemFree(at(pinned)));
  EXPECT(ok, cuMemFreeHost(pinned));
  EXPECT(invalid, cuMemFreeHost(pinned));
  EXPECT(ok, cuMemHostUnregister(memory));
  EXPECT(not_registered, cuMemHostUnregister(memory));
}

static void streams_and_events() {
  cudaStream_t stream;
  cudaEvent_t timed, untimed;
  float time;
  enum { no_handle = 400, no_device = 101 };
  EXPECT(ok, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT(ok, cudaStreamDestroy(stream));
  EXPECT(invalid, cudaStreamCreateWithFlags(&stream, 77));
  EXPECT(invalid, cudaEventCreateWithFlags(&timed, 0xf00));
  EXPECT(invalid, cudaEventCreateWithFlags(&timed, cudaEventInterprocess));
  EXPECT(invalid, cudaEventCreateWithFlags(nullptr, 0));
  EXPECT(ok, cudaEventCreateWithFlags(&timed, cudaEventBlockingSync));
  EXPECT(ok, cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  EXPECT(ok, cudaEventRecord(timed));
  EXPECT(ok, cudaEventRecord(untimed));
  EXPECT(ok, cudaEventElapsedTime(&time, timed, timed));
  EXPECT(no_handle, cudaEventElapsedTime(&time, timed, untimed));
  EXPECT(no_handle, cudaEventElapsedTime(&time, untimed, timed));
  EXPECT(ok, cudaEventDestroy(untimed));
  DRIVER(cuEventCreate, "cuEventCreate");
  CUevent event;
  EXPECT(invalid, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
  EXPECT(ok, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  char* memory = nullptr;
  EXPECT(ok, cudaMalloc(&memory, 64));
  EXPECT(ok, cudaMemcpyPeer(memory, 0, memory + 32, 0, 32));
  EXPECT(no_device, cudaMemcpyPeer(memory, 0, memory + 32, 3, 32));
  EXPECT(no_device, cudaMemcpyPeerAsync(memory, 1, memory + 32, 0, 32, 0));
  EXPECT(ok, cudaFree(memory));
}

int main() {
  kernel<<<1, 1>>>();
  char* const memory = static_cast<char*>(aligned_alloc(4096, 1 << 18)) + 4096;
  registration(memory);
  symbols();
  of_driver(memory);
  streams_and_events();
  EXPECT(ok, cudaDeviceSynchronize());
  printf("%d calls\n", calls);
}
