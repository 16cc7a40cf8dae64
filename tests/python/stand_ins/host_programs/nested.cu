// Dynamic parallelism. Usage: nested SCENARIO.
#include <cstdio>
#include <cstring>

__device__ int order[16];
__device__ int next;

__global__ void note(int what) { order[next++] = what; }

__global__ void parent_of_note(int what) {
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(what + 1);
  note<<<1, 1>>>(what);
}

// In the order in which they run: what is launched into tail streams comes last.
__global__ void streams() {
  cudaStream_t own;
  if (cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess) __trap();
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(7);
  parent_of_note<<<1, 1>>>(1);
  parent_of_note<<<1, 1, 0, cudaStreamFireAndForget>>>(3);
  note<<<1, 1, 0, own>>>(5);
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(8);
  order[next++] = 0;
  if (cudaStreamDestroy(own) != cudaSuccess) __trap();
}

__global__ void wide(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 1;
}

// Each block launches a kernel for its part, with structures and shared memory of its own.
struct Part {
  const int* in;
  int* out;
  short first;
  short count;
};

__global__ void part_kernel(Part part, double factor) {
  extern __shared__ int staged[];
  if (threadIdx.x < part.count) staged[threadIdx.x] = part.in[part.first + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < part.count) {
    part.out[part.first + threadIdx.x] =
        static_cast<int>(factor * staged[part.count - 1 - threadIdx.x]);
  }
}

__global__ void parts(const int* in, int* out, int each) {
  if (threadIdx.x != 0) return;
  const Part part{in, out, static_cast<short>(blockIdx.x * each), static_cast<short>(each)};
  part_kernel<<<1, 32, each * sizeof(int)>>>(part, 2.0);
}

__global__ void mistakes(int* pointer) {
  const auto show = [](const char* what) {
    const cudaError_t error = cudaPeekAtLastError();
    printf("%s %s %d\n", what, cudaGetErrorName(error), cudaGetLastError() == error);
  };
  note<<<1, 2048>>>(0);
  show("threads");
  note<<<0, 1>>>(0);
  show("grid");
  note<<<1, 1, 1 << 20>>>(0);
  show("shared");
  note<<<1, 1, 0, reinterpret_cast<cudaStream_t>(0x123450)>>>(0);
  show("stream");
  cudaStream_t stream;
  printf("%d\n", cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
  int local = 0;
  printf("%d\n", cudaMemcpyAsync(pointer, &local, 4, cudaMemcpyDeviceToDevice, 0));
  show("copy");
  show("none");
  printf("%s\n", cudaGetErrorString(cudaErrorInvalidConfiguration));
}

__global__ void store(int* out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }

// The first version of the functions, with a buffer of this size for the arguments.
__global__ void by_hand(int* out, int bytes) {
  void* const buffer = cudaGetParameterBuffer(8, bytes);
  *static_cast<int**>(buffer) = out;
  if (bytes >= 12) static_cast<int*>(buffer)[2] = 5;
  void* const kernel = reinterpret_cast<void*>(&store);
  printf("%d\n", cudaLaunchDevice(kernel, buffer, dim3(2), dim3(3), 0, nullptr));
}

__global__ void deeper(int level, int* deepest) {
  *deepest = level;
  deeper<<<1, 1>>>(level + 1, deepest);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) printf("%d %s\n", level, cudaGetErrorName(error));
}

__global__ void repeated(int left, int* count) {
  ++*count;
  if (left > 0) repeated<<<1, 1, 0, cudaStreamTailLaunch>>>(left - 1, count);
}

__global__ void many(int* count, int launches) {
  for (int i = 0; i < launches; ++i) {
    note<<<1, 1>>>(0);
    if (cudaGetLastError() != cudaSuccess) ++*count;
    next = 0;
  }
}

__global__ void memory(int* a, int* b) {
  int device = -1, sms = 0, version = 0;
  size_t pending = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaRuntimeGetVersion(&version);
  cudaDeviceGetLimit(&pending, cudaLimitDevRuntimePendingLaunchCount);
  printf("%d %d %d %d\n", device, sms > 0, version >= 11000, static_cast<int>(pending));
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaMemsetAsync(a, 1, 64, 0);
  cudaEventRecord(event, 0);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamWaitEvent(stream, event, 0);
  cudaMemcpyAsync(b, a, 32, cudaMemcpyDeviceToDevice, stream);
  wide<<<1, 32, 0, stream>>>(b, a, 4);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  int* own = nullptr;
  if (cudaMalloc(&own, 64) == cudaSuccess) own[3] = 9;
  printf("%d %d\n", own[3], cudaFree(own));
}

__global__ void bad(int* pointer) { pointer[threadIdx.x] = 1; }
__global__ void launches_bad() { bad<<<1, 32>>>(reinterpret_cast<int*>(64)); }

__global__ void three_dimensional(int* a) {
  const cudaPitchedPtr pitched{a, 64, 64, 1};
  const cudaExtent extent{64, 1, 1};
  cudaMemset3DAsync(pitched, 0, extent, 0);
}

int main(int, char** arguments) {
  const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
  int* data;
  cudaMallocManaged(&data, 4096);
  std::memset(data, 0, 4096);
  if (is("streams")) {
    streams<<<1, 1>>>();
    int seen[16];
    cudaMemcpyFromSymbol(seen, order, sizeof seen);
    for (int i = 0; i < 8; ++i) std::printf("%d ", seen[i]);
  } else if (is("parts")) {
    for (int i = 0; i < 64; ++i) data[i] = i;
    parts<<<4, 32>>>(data, data + 64, 16);
    for (int i = 64; i < 128; i += 9) std::printf("%d ", data[i]);
  } else if (is("mistakes")) {
    mistakes<<<1, 1>>>(data);
  } else if (is("by_hand")) {
    by_hand<<<1, 1>>>(data, 8);
    by_hand<<<1, 1>>>(data, 16);
    std::printf("%d %d %d ", data[0], data[5], data[6]);
  } else if (is("depth")) {
    deeper<<<1, 1>>>(0, data);
    std::printf("%d ", *data);
  } else if (is("tail")) {
    repeated<<<1, 1>>>(100, data);
    std::printf("%d ", *data);
  } else if (is("pending")) {
    std::printf("%s ",
                cudaGetErrorName(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 5)));
    many<<<2, 1>>>(data, 8);
    std::printf("%d ", *data);
  } else if (is("memory")) {
    memory<<<1, 1>>>(data, data + 16);
    cudaDeviceSynchronize();
    std::printf("%#x %#x %#x ", data[0], data[4], data[16]);
  } else if (is("fault")) {
    launches_bad<<<1, 1>>>();
  } else if (is("unsupported")) {
    three_dimensional<<<1, 1>>>(data);
  }
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
