// Programs whose calls test_operations.py compares with their table, one per argument.
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                 \
  do {                                                              \
    const cudaError_t error = (call);                               \
    if (error != cudaSuccess) {                                     \
      std::printf("%d: %s\n", __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                 \
    }                                                               \
  } while (false)

constexpr int count = 1 << 18;
constexpr size_t bytes = count * sizeof(float);  // 1 MiB

__global__ void first(float* x) { x[threadIdx.x] = threadIdx.x; }
__global__ void second(float* x) { x[threadIdx.x] += 1; }
__device__ float symbol[32];

static void host_function(void* seen) { *static_cast<int*>(seen) += 1; }

static void streams() {
  cudaStream_t a, b, apart;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithPriority(&b, cudaStreamDefault, -1));
  float *device, *pinned;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaHostAlloc((void**)&pinned, bytes, cudaHostAllocDefault));
  std::memset(pinned, 0, bytes);
  cudaEvent_t done, end;
  CHECK(cudaEventCreate(&done));
  CHECK(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  CHECK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, a));
  first<<<1, 32, 0, a>>>(device);
  CHECK(cudaEventRecord(done, a));
  CHECK(cudaStreamWaitEvent(b, done, 0));
  second<<<1, 32, 0, b>>>(device);
  int seen = 0;
  CHECK(cudaLaunchHostFunc(b, host_function, &seen));
  CHECK(cudaMemsetAsync(device, 0, 64, apart));
  CHECK(cudaEventRecord(end, b));
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaEventQuery(done));
  CHECK(cudaStreamSynchronize(a));
  second<<<1, 32>>>(device);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamDestroy(b));
  usleep(20'000);
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(pinned));
  std::printf("%d\n", seen);
}

static void copies() {
  float *device, *other;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMalloc(&other, bytes));
  std::vector<float> pageable(count), registered(count);
  CHECK(cudaHostRegister(registered.data(), bytes, cudaHostRegisterDefault));
  CHECK(cudaMemcpy(device, pageable.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device, pageable.data(), 1024, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(pageable.data(), device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(device, registered.data(), bytes, cudaMemcpyDefault));
  CHECK(cudaMemcpyAsync(registered.data(), device, bytes, cudaMemcpyDeviceToHost, nullptr));
  CHECK(cudaMemcpyAsync(pageable.data(), device, bytes, cudaMemcpyDeviceToHost, nullptr));
  CHECK(cudaMemcpy(other, device, bytes, cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpy(pageable.data(), registered.data(), 64, cudaMemcpyHostToHost));
  CHECK(cudaMemcpy2D(device, 512, pageable.data(), 256, 256, 10, cudaMemcpyHostToDevice));
  cudaMemcpy3DParms box{};
  box.srcPtr = make_cudaPitchedPtr(device, 64, 64, 4);
  box.dstPtr = make_cudaPitchedPtr(other, 64, 64, 4);
  box.extent = make_cudaExtent(64, 4, 3);
  box.kind = cudaMemcpyDeviceToDevice;
  CHECK(cudaMemcpy3DAsync(&box, nullptr));
  CHECK(cudaMemcpyPeer(other, 0, device, 0, 4096));
  CHECK(cudaMemcpyToSymbol(symbol, pageable.data(), 128));
  CHECK(cudaMemset2D(device, 512, 0, 100, 7));
  float* ordered;
  CHECK(cudaMallocAsync(&ordered, 4096, nullptr));
  CHECK(cudaFreeAsync(ordered, nullptr));
  float* managed;
  CHECK(cudaMallocManaged(&managed, bytes));
#if CUDART_VERSION >= 13000
  cudaMemLocation to{cudaMemLocationTypeDevice, 0}, back{cudaMemLocationTypeHost, 0};
  CHECK(cudaMemPrefetchAsync(managed, bytes, to, 0, nullptr));
  CHECK(cudaMemPrefetchAsync(managed, 4096, back, 0, nullptr));
#else
  CHECK(cudaMemPrefetchAsync(managed, bytes, 0, nullptr));
  CHECK(cudaMemPrefetchAsync(managed, 4096, cudaCpuDeviceId, nullptr));
#endif
  first<<<1, 32>>>(managed);
  CHECK(cudaHostUnregister(registered.data()));
  CHECK(cudaFree(managed));
  if (cudaMalloc(&other, size_t{1} << 50) == cudaSuccess) std::exit(1);  // and is not in the table
  cudaGetLastError();
}

static void graphs() {
  cudaStream_t a, b;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  float *device, *pinned;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaHostAlloc((void**)&pinned, bytes, cudaHostAllocDefault));
  std::memset(pinned, 0, bytes);
  cudaEvent_t fork, join;
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  static int seen = 0;
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, a));
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork, 0));
  first<<<1, 32, 0, a>>>(device);
  second<<<1, 32, 0, b>>>(device + 1024);
  CHECK(cudaEventRecord(join, b));
  CHECK(cudaStreamWaitEvent(a, join, 0));
  CHECK(cudaLaunchHostFunc(a, host_function, &seen));
  cudaGraph_t graph, outer;
  CHECK(cudaStreamEndCapture(a, &graph));
  cudaGraphNode_t empty, child, fill;
  CHECK(cudaGraphCreate(&outer, 0));
  CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
  CHECK(cudaGraphAddEmptyNode(&empty, outer, &child, 1));
  cudaMemsetParams zeros{};
  zeros.dst = device;
  zeros.elementSize = 4;
  zeros.width = 16;
  zeros.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, outer, &empty, 1, &zeros));
  cudaGraphExec_t inner_run, outer_run;
  CHECK(cudaGraphInstantiateWithFlags(&inner_run, graph, 0));
  CHECK(cudaGraphInstantiateWithFlags(&outer_run, outer, 0));
  CHECK(cudaGraphLaunch(inner_run, b));
  CHECK(cudaGraphLaunch(outer_run, a));
  CHECK(cudaDeviceSynchronize());
  std::printf("%d\n", seen);
}

static void threads() {
  float* device;
  CHECK(cudaMalloc(&device, bytes));
  for (int i = 0; i < 2; ++i) {
    std::thread([=] {
      first<<<1, 32>>>(device);
      CHECK(cudaStreamSynchronize(nullptr));
      CHECK(cudaMemcpy(device + 64, device, 64, cudaMemcpyDeviceToDevice));
      second<<<1, 32, 0, cudaStreamPerThread>>>(device);
    }).join();
  }
  first<<<1, 32, 0, cudaStreamLegacy>>>(device);
}

// The time of a kernel that takes long here, and of the wait for it.
__global__ void slow(float* x, int turns) {
  float r = x[threadIdx.x];
  for (int i = 0; i < turns; ++i) r = r * 0.5f + 1;
  x[threadIdx.x] = r;
}

static long now_us(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000L + time.tv_nsec / 1000;
}

static void waits() {
  float* device;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMemset(device, 0, bytes));
  const auto work = [=] {
    slow<<<64, 128>>>(device, 20'000);
    CHECK(cudaDeviceSynchronize());
  };
  std::thread first(work);
  const long begin = now_us();
  first.join();
  const long joined = now_us();
  CHECK(cudaMemset(device, 0, 4));  // it waited
  usleep(20'000);
  CHECK(cudaMemset(device, 0, 4));  // it slept
  std::thread second(work);
  const long until = now_us(CLOCK_THREAD_CPUTIME_ID) + 30'000;
  while (now_us(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
  second.join();
  CHECK(cudaMemset(device, 0, 4));  // it computed
  std::printf("%ld\n", joined - begin);
}

static void copies_only() {
  float* device;
  std::vector<float> there(count);
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMemcpy(device, there.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(device, 1, bytes));
  CHECK(cudaMemcpy(there.data(), device, bytes, cudaMemcpyDeviceToHost));
}

static void nap(void*) { usleep(20'000); }
static void nap_after(cudaStream_t, cudaError_t, void*) { usleep(20'000); }

static void functions() {
  float* device;
  CHECK(cudaMalloc(&device, bytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemsetAsync(device, 0, 4, stream));
  CHECK(cudaLaunchHostFunc(stream, nap, nullptr));
  CHECK(cudaStreamAddCallback(stream, nap_after, nullptr, 0));
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaLaunchHostFunc(stream, nap, nullptr));
  CHECK(cudaStreamEndCapture(stream, &graph));
#if CUDART_VERSION >= 12000
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
#else
  CHECK(cudaGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
#endif
  CHECK(cudaGraphLaunch(ready, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFree(device));
}

static void priorities() {
  float* device;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMemset(device, 0, 4));
  int least = 9, greatest = 9;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  std::printf("%d %d\n", least, greatest);
  for (const int asked : {-99, greatest, -2, least, 99}) {
    cudaStream_t stream;
    int got = 9;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, asked));
    CHECK(cudaStreamGetPriority(stream, &got));
    std::printf("%d\n", got);
  }
}

static void connections() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16", 1);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4));
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 1);
  CHECK(cudaMemset(memory, 0, 4));
  CHECK(cudaFree(memory));
}

static void together() {
  float* device;
  CHECK(cudaMalloc(&device, bytes));
  std::atomic<int> turn{-1};  // of the thread that may call
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&turn, device, i] {
      while (turn != i) std::this_thread::yield();
      CHECK(cudaMemset(device, 0, 4));
      CHECK(cudaMemset(device, 0, 4));
      ++turn;
    });
  }
  turn = 0;
  for (std::thread& thread : threads) thread.join();
  std::thread([=] { CHECK(cudaMemset(device, 0, 4)); }).join();
}

// concurrentKernels of NVIDIA's samples.
__global__ void clock_block(clock_t* out, clock_t ticks) {
  const unsigned int start = (unsigned int)clock();
  clock_t passed = 0;
  while (passed < ticks) {
    const unsigned int end = (unsigned int)clock();
    passed = (clock_t)(end - start);
  }
  out[0] = passed;
}

static void spins() {
  clock_t* device;
  CHECK(cudaMalloc(&device, bytes));
  for (int i = 0; i < 4; ++i) {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    clock_block<<<1, 1, 0, stream>>>(device + i, 1'000'000);
  }
  CHECK(cudaDeviceSynchronize());
}

static void processes() {
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      float* device;
      CHECK(cudaMalloc(&device, bytes));
      first<<<1, 32>>>(device);
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
  }
}

static void ranges() {
  nvtxRangePushA("outer");
  nvtxRangePushW(L"gr\u00f6\u00dfer");
  float* device;
  CHECK(cudaMalloc(&device, bytes));
  nvtxRangePop();
  nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
  nvtxEventAttributes_t about{};
  about.version = NVTX_VERSION;
  about.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  about.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  about.message.registered = nvtxDomainRegisterStringA(domain, "step\n1");
  nvtxDomainRangePushEx(domain, &about);
  first<<<1, 32>>>(device);
  nvtxDomainRangePop(domain);
  nvtxRangePop();
}

int main(int, char** words) {
  const std::string what = words[1];
  if (what == "streams") streams();
  if (what == "copies") copies();
  if (what == "graphs") graphs();
  if (what == "threads") threads();
  if (what == "waits") waits();
  if (what == "copies_only") copies_only();
  if (what == "functions") functions();
  if (what == "priorities") priorities();
  if (what == "connections") connections();
  if (what == "together") together();
  if (what == "spins") spins();
  if (what == "processes") processes();
  if (what == "ranges") ranges();
}
