// Calls of the runtime with wrong arguments. Prints each that does not return what CUDA returns,
// and at the end how many there were.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

static int calls = 0;

static void expect(const char* text, cudaError_t got, cudaError_t wanted) {
  ++calls;
  cudaGetLastError();
  if (got == wanted) return;
  printf("%s: %s instead of %s\n", text, cudaGetErrorName(got), cudaGetErrorName(wanted));
}

#define EXPECT(wanted, call) expect(#call, call, wanted)
#define INVALID(call) expect(#call, call, cudaErrorInvalidValue)
#define OK(call) expect(#call, call, cudaSuccess)

__device__ int variable[16];
__constant__ float table[16];
__global__ void kernel(int* data, int value) { data[threadIdx.x] = value; }

static const size_t page = sysconf(_SC_PAGESIZE);

static char* pages(size_t number) {
  return static_cast<char*>(
      mmap(nullptr, number * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void copies(int* device) {
  char host[64] = {};
  char* const hole = pages(4);
  munmap(hole + page, page);                   // begins mapped, runs into nothing
  mprotect(hole + 2 * page, page, PROT_NONE);  // a guard page
  mprotect(hole + 3 * page, page, PROT_READ);
  char* const edge = hole + page - 32;
  char* const guard = hole + 2 * page;
  char* const constant = hole + 3 * page;
  char* const wild = reinterpret_cast<char*>(0xdead000000000000);
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  for (char* bad : {static_cast<char*>(nullptr), edge, guard, wild, reinterpret_cast<char*>(-8)}) {
    INVALID(cudaMemcpy(device, bad, 64, cudaMemcpyHostToDevice));
    INVALID(cudaMemcpy(bad, device, 64, cudaMemcpyDeviceToHost));
    INVALID(cudaMemcpy(device, bad, 64, cudaMemcpyDefault));
    INVALID(cudaMemcpy(bad, device, 64, cudaMemcpyDefault));
    INVALID(cudaMemcpy(bad, host, 64, cudaMemcpyHostToHost));
    INVALID(cudaMemcpy(host, bad, 64, cudaMemcpyHostToHost));
    INVALID(cudaMemcpy(device, bad, 64, cudaMemcpyDeviceToDevice));
    INVALID(cudaMemcpyAsync(device, bad, 64, cudaMemcpyHostToDevice, stream));
    INVALID(cudaMemcpyAsync(bad, device, 64, cudaMemcpyDeviceToHost, stream));
    INVALID(cudaMemcpyPeer(device, 0, bad, 0, 64));
    INVALID(cudaMemcpyPeerAsync(bad, 0, device, 0, 64, stream));
    INVALID(cudaMemcpy2D(device, 16, bad, 16, 16, 4, cudaMemcpyHostToDevice));
    INVALID(cudaMemcpy2D(bad, 16, device, 16, 16, 4, cudaMemcpyDeviceToHost));
    INVALID(cudaMemcpy2DAsync(bad, 16, device, 16, 16, 4, cudaMemcpyDeviceToHost, stream));
    INVALID(cudaMemcpyToSymbol(variable, bad, 64));
    INVALID(cudaMemcpyToSymbol(table, bad, 64));
    INVALID(cudaMemcpyFromSymbol(bad, variable, 64));
    INVALID(cudaMemcpyToSymbolAsync(variable, bad, 64, 0, cudaMemcpyHostToDevice, stream));
    INVALID(cudaMemcpyFromSymbolAsync(bad, variable, 64, 0, cudaMemcpyDeviceToHost, stream));
    cudaMemcpy3DParms box = {};
    box.srcPtr = make_cudaPitchedPtr(bad, 16, 16, 2);
    box.dstPtr = make_cudaPitchedPtr(device, 16, 16, 2);
    box.extent = make_cudaExtent(16, 2, 2);
    box.kind = cudaMemcpyHostToDevice;
    INVALID(cudaMemcpy3D(&box));
    INVALID(cudaMemcpy3DAsync(&box, stream));
    box.srcPtr.ptr = device;
    box.dstPtr.ptr = bad;
    box.kind = cudaMemcpyDeviceToHost;
    INVALID(cudaMemcpy3D(&box));
    INVALID(cudaMemset(bad, 0, 64));
    INVALID(cudaMemsetAsync(bad, 0, 64, stream));
    INVALID(cudaMemset2D(bad, 16, 0, 16, 4));
    INVALID(cudaMemset3D(make_cudaPitchedPtr(bad, 16, 16, 2), 0, make_cudaExtent(16, 2, 2)));
  }
  INVALID(cudaMemcpy(constant, device, 64, cudaMemcpyDeviceToHost));
  OK(cudaMemcpy(device, constant, 64, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(device, edge, 32, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(edge, device, 32, cudaMemcpyDeviceToHost));
  // Rows on both sides of a hole: what is between them does not matter.
  OK(cudaMemcpy2D(device, 16, edge + 16, page * 3, 16, 2, cudaMemcpyHostToDevice));
  munmap(hole + 2 * page, page);
  OK(cudaMemcpy2D(device, 16, hole, page * 3, 16, 2, cudaMemcpyHostToDevice));
  INVALID(cudaMemcpy2D(device, 16, hole, page, 16, 2, cudaMemcpyHostToDevice));
  INVALID(cudaMemset(host, 0, 64));
  INVALID(cudaMemcpy(device, host, ~size_t{0}, cudaMemcpyHostToDevice));
  INVALID(cudaMemcpy(host, device, ~size_t{0}, cudaMemcpyDeviceToHost));
  INVALID(cudaMemcpy(host, host, ~size_t{0}, cudaMemcpyHostToHost));
  INVALID(cudaMemset(device, 0, ~size_t{0}));
  INVALID(cudaMemcpy2D(device, ~size_t{0}, host, ~size_t{0}, 16, 4, cudaMemcpyHostToDevice));
  INVALID(cudaMemcpy2D(device, 16, host, 16, 16, size_t{1} << 60, cudaMemcpyHostToDevice));
  INVALID(cudaMemset2D(device, size_t{1} << 40, 0, 16, size_t{1} << 40));
  OK(cudaMemset2D(device, 16, 0, 0, ~size_t{0}));
  OK(cudaMemset2D(nullptr, 16, 0, 16, 0));
  OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2D(nullptr, 0, nullptr, 0, 0, ~size_t{0}, cudaMemcpyHostToDevice));
  EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, host, 64, cudaMemcpyKind(9)));
  EXPECT(cudaErrorInvalidMemcpyDirection,
         cudaMemcpyToSymbol(variable, host, 64, 0, cudaMemcpyDeviceToHost));
  EXPECT(cudaErrorInvalidMemcpyDirection,
         cudaMemcpyFromSymbol(host, variable, 64, 0, cudaMemcpyHostToDevice));
  EXPECT(cudaErrorInvalidPitchValue,
         cudaMemcpy2D(device, 8, host, 16, 16, 4, cudaMemcpyHostToDevice));
  INVALID(cudaMemcpyToSymbol(variable, host, 64, 32));
  INVALID(cudaMemcpyToSymbol(variable, host, 64, ~size_t{0}));
  EXPECT(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(static_cast<const void*>(host), host, 4));
  INVALID(cudaMemcpy3D(nullptr));
  cudaMemcpy3DParms box = {};
  box.srcPtr = make_cudaPitchedPtr(host, ~size_t{0}, 16, ~size_t{0});
  box.srcPos = make_cudaPos(0, ~size_t{0}, ~size_t{0});
  box.dstPtr = make_cudaPitchedPtr(device, 16, 16, 2);
  box.extent = make_cudaExtent(16, 2, 2);
  box.kind = cudaMemcpyHostToDevice;
  INVALID(cudaMemcpy3D(&box));
  OK(cudaStreamDestroy(stream));
  munmap(hole, page);
}

static void arrays(int* device) {
  char host[256] = {};
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  INVALID(cudaMallocArray(nullptr, &format, 16, 4));
  INVALID(cudaMallocArray(&array, nullptr, 16, 4));
  INVALID(cudaMalloc3DArray(nullptr, &format, make_cudaExtent(4, 4, 4)));
  INVALID(cudaMallocArray(&array, &format, 0, 4));
  EXPECT(cudaErrorMemoryAllocation, cudaMallocArray(&array, &format, 1 << 30, 1 << 30));
  OK(cudaMallocArray(&array, &format, 16, 4));
  INVALID(cudaMemcpy2DToArray(array, 0, 0, nullptr, 64, 64, 4, cudaMemcpyHostToDevice));
  INVALID(cudaMemcpy2DFromArray(nullptr, 64, array, 0, 0, 64, 4, cudaMemcpyDeviceToHost));
  INVALID(cudaMemcpy2DToArrayAsync(array, 0, 0, nullptr, 64, 64, 4, cudaMemcpyHostToDevice, 0));
  INVALID(cudaMemcpy2DFromArrayAsync(nullptr, 64, array, 0, 0, 64, 4, cudaMemcpyDeviceToHost, 0));
  INVALID(cudaMemcpy2DToArray(array, 0, 2, host, 64, 64, 4, cudaMemcpyHostToDevice));
  EXPECT(cudaErrorInvalidMemcpyDirection,
         cudaMemcpy2DToArray(array, 0, 0, host, 64, 64, 4, cudaMemcpyDeviceToHost));
  EXPECT(cudaErrorInvalidResourceHandle,
         cudaMemcpy2DToArray(nullptr, 0, 0, host, 64, 64, 4, cudaMemcpyHostToDevice));
  INVALID(cudaMemcpy2DArrayToArray(array, 0, 0, array, 0, 2, 64, 4));
  OK(cudaMemcpy2DToArray(array, 0, 0, host, 64, 64, 4, cudaMemcpyHostToDevice));
  INVALID(cudaGetChannelDesc(nullptr, array));
  EXPECT(cudaErrorInvalidResourceHandle, cudaArrayGetInfo(nullptr, nullptr, nullptr, nullptr));
  cudaResourceDesc resource = {};
  cudaTextureDesc sampling = {};
  cudaTextureObject_t object = 0;
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  INVALID(cudaCreateTextureObject(nullptr, &resource, &sampling, nullptr));
  INVALID(cudaCreateTextureObject(&object, nullptr, &sampling, nullptr));
  INVALID(cudaCreateTextureObject(&object, &resource, nullptr, nullptr));
  OK(cudaCreateTextureObject(&object, &resource, &sampling, nullptr));
  OK(cudaDestroyTextureObject(object));
  INVALID(cudaDestroyTextureObject(object));
  INVALID(cudaGetTextureObjectResourceDesc(nullptr, object));
  INVALID(cudaCreateSurfaceObject(nullptr, &resource));
  INVALID(cudaCreateSurfaceObject(&object, nullptr));
  resource.res.array.array = nullptr;
  EXPECT(cudaErrorInvalidResourceHandle,
         cudaCreateTextureObject(&object, &resource, &sampling, nullptr));
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {nullptr, format, 64};
  INVALID(cudaCreateTextureObject(&object, &resource, &sampling, nullptr));
  resource.res.linear = {device, format, 0};
  INVALID(cudaCreateTextureObject(&object, &resource, &sampling, nullptr));
  OK(cudaFreeArray(array));
  EXPECT(cudaErrorInvalidResourceHandle, cudaFreeArray(array));
  OK(cudaFreeArray(nullptr));
}

static void allocation(int* device) {
  void* pointer = nullptr;
  size_t size = 0;
  unsigned flags = 0;
  INVALID(cudaMalloc(static_cast<void**>(nullptr), 64));
  INVALID(cudaMallocAsync(static_cast<void**>(nullptr), 64, 0));
  INVALID(cudaMallocManaged(static_cast<void**>(nullptr), 64));
  INVALID(cudaMallocManaged(&pointer, 0));
  INVALID(cudaMallocHost(static_cast<void**>(nullptr), 64));
  INVALID(cudaHostAlloc(static_cast<void**>(nullptr), 64, 0));
  INVALID(cudaMallocPitch(static_cast<void**>(nullptr), &size, 64, 4));
  INVALID(cudaMallocPitch(&pointer, nullptr, 64, 4));
  INVALID(cudaMalloc3D(nullptr, make_cudaExtent(16, 4, 4)));
  cudaPitchedPtr pitched;
  EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&pointer, ~size_t{0}));
  EXPECT(cudaErrorMemoryAllocation, cudaMallocHost(&pointer, ~size_t{0}));
  EXPECT(cudaErrorMemoryAllocation, cudaMallocPitch(&pointer, &size, ~size_t{0}, 4));
  EXPECT(cudaErrorMemoryAllocation, cudaMallocPitch(&pointer, &size, size_t{1} << 40, ~size_t{0}));
  EXPECT(cudaErrorMemoryAllocation, cudaMalloc3D(&pitched, make_cudaExtent(~size_t{0}, 4, 4)));
  EXPECT(cudaErrorMemoryAllocation,
         cudaMalloc3D(&pitched, make_cudaExtent(16, size_t{1} << 40, size_t{1} << 40)));
  OK(cudaMalloc(&pointer, 64));
  OK(cudaFree(pointer));
  INVALID(cudaFree(pointer));
  INVALID(cudaFree(&size));
  INVALID(cudaFree(device + 1));
  INVALID(cudaFreeHost(&size));
  OK(cudaFree(nullptr));
  OK(cudaFreeHost(nullptr));
  OK(cudaGetSymbolAddress(&pointer, variable));
  INVALID(cudaFree(pointer));  // the module frees it at the end of the program
  INVALID(cudaHostRegister(nullptr, 64, 0));
  INVALID(cudaHostRegister(&size, 0, 0));
  INVALID(cudaHostUnregister(nullptr));
  INVALID(cudaHostGetDevicePointer(static_cast<void**>(nullptr), device, 0));
  INVALID(cudaHostGetDevicePointer(&pointer, nullptr, 0));
  INVALID(cudaHostGetFlags(nullptr, device));
  INVALID(cudaHostGetFlags(&flags, nullptr));
  INVALID(cudaMemGetInfo(nullptr, &size));
  INVALID(cudaMemGetInfo(&size, nullptr));
  INVALID(cudaPointerGetAttributes(nullptr, device));
  INVALID(cudaGetSymbolAddress(static_cast<void**>(nullptr), variable));
  EXPECT(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&pointer, static_cast<const void*>(nullptr)));
  INVALID(cudaGetSymbolSize(nullptr, variable));
}

static void queries() {
  int number = 0;
  size_t size = 0;
  cudaStream_t stream;
  cudaEvent_t event;
  float time = 0;
  INVALID(cudaGetDeviceCount(nullptr));
  INVALID(cudaGetDevice(nullptr));
  INVALID(cudaGetDeviceProperties(nullptr, 0));
  INVALID(cudaChooseDevice(&number, nullptr));
  INVALID(cudaGetDeviceFlags(nullptr));
  INVALID(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  INVALID(cudaDeviceGetAttribute(&number, cudaDeviceAttr(9999), 0));
  EXPECT(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 3));
  EXPECT(cudaErrorInvalidDevice, cudaSetDevice(-1));
  INVALID(cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
  INVALID(cudaDeviceGetLimit(&size, cudaLimit(99)));
  INVALID(cudaDeviceSetLimit(cudaLimit(-1), 1));
  INVALID(cudaDeviceGetCacheConfig(nullptr));
  INVALID(cudaDeviceCanAccessPeer(nullptr, 0, 0));
  INVALID(cudaDeviceGetPCIBusId(nullptr, 13, 0));
  INVALID(cudaDeviceGetByPCIBusId(&number, nullptr));
  INVALID(cudaDeviceGetByPCIBusId(nullptr, "0000:00:00.0"));
  OK(cudaDeviceGetStreamPriorityRange(nullptr, nullptr));
  INVALID(cudaRuntimeGetVersion(nullptr));
  INVALID(cudaDriverGetVersion(nullptr));
  INVALID(cudaStreamCreate(nullptr));
  INVALID(cudaStreamCreateWithFlags(nullptr, 0));
  INVALID(cudaStreamCreateWithPriority(nullptr, 0, 0));
  OK(cudaStreamCreate(&stream));
  INVALID(cudaStreamGetFlags(stream, nullptr));
  INVALID(cudaStreamGetPriority(stream, nullptr));
  INVALID(cudaStreamIsCapturing(stream, nullptr));
  INVALID(cudaEventCreate(nullptr));
  INVALID(cudaEventCreateWithFlags(nullptr, 0));
  OK(cudaEventCreate(&event));
  EXPECT(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, stream));
  EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&time, event, event));
  INVALID(cudaEventElapsedTime(nullptr, event, event));
  EXPECT(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(stream, nullptr, 0));
  EXPECT(cudaErrorInvalidResourceHandle, cudaEventDestroy(nullptr));
  EXPECT(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
  OK(cudaEventDestroy(event));
  EXPECT(cudaErrorInvalidResourceHandle, cudaEventDestroy(event));
  OK(cudaStreamDestroy(stream));
  EXPECT(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
}

static void launches(int* device) {
  cudaFuncAttributes attributes;
  int number = 0;
  int value = 3;
  void* arguments[] = {&device, &value};
  void* broken[] = {&device, nullptr};
  const auto* function = reinterpret_cast<const void*>(kernel);
  OK(cudaLaunchKernel(function, 1, 16, arguments, 0, 0));
  INVALID(cudaLaunchKernel(function, 1, 16, nullptr, 0, 0));
  INVALID(cudaLaunchKernel(function, 1, 16, broken, 0, 0));
  EXPECT(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(nullptr, 1, 16, arguments, 0, 0));
  EXPECT(cudaErrorInvalidConfiguration, cudaLaunchKernel(function, 0, 16, arguments, 0, 0));
  EXPECT(cudaErrorInvalidConfiguration,
         cudaLaunchKernel(function, dim3(~0u, ~0u, ~0u), 16, arguments, 0, 0));
  INVALID(cudaLaunchKernel(function, 1, 16, arguments, ~size_t{0}, 0));
  INVALID(cudaLaunchCooperativeKernel(function, 1, 16, nullptr, 0, 0));
  EXPECT(cudaErrorInvalidDeviceFunction,
         cudaLaunchCooperativeKernel(nullptr, 1, 16, arguments, 0, 0));
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = 1;
  configuration.blockDim = 16;
  INVALID(cudaLaunchKernelExC(nullptr, function, arguments));
  INVALID(cudaLaunchKernelExC(&configuration, function, nullptr));
  configuration.numAttrs = 3;
  INVALID(cudaLaunchKernelExC(&configuration, function, arguments));
  INVALID(cudaLaunchHostFunc(nullptr, nullptr, nullptr));
  INVALID(cudaStreamAddCallback(nullptr, nullptr, nullptr, 0));
  INVALID(cudaFuncGetAttributes(nullptr, function));
  EXPECT(cudaErrorInvalidDeviceFunction,
         cudaFuncGetAttributes(&attributes, static_cast<const void*>(nullptr)));
  INVALID(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30));
  INVALID(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, -5));
  INVALID(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, function, 32, 0));
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 32, ~size_t{0}));
  if (number != 0) printf("%d blocks with all memory there is\n", number);
  int result[16] = {};
  OK(cudaMemcpy(result, device, sizeof result, cudaMemcpyDeviceToHost));
  if (result[15] != 3) printf("the good launch wrote %d\n", result[15]);
}

int main() {
  int* device = nullptr;
  OK(cudaMalloc(&device, 64));
  copies(device);
  arrays(device);
  allocation(device);
  queries();
  launches(device);
  printf("%d calls\n", calls);
}
