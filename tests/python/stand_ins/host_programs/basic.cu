// Host programs for the stand-in: the first argument chooses one. Each prints what test_host.py
// expects, computed on the host where it is not obvious.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      std::exit(1);                                            \
    }                                                          \
  } while (0)

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

template <typename T>
__global__ void scale(T* data, T factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}

static int vector_add() {
  const int n = 1000;
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(2 * i);
  }
  float *da, *db, *dc;
  CHECK(cudaMalloc(&da, n * sizeof(float)));
  CHECK(cudaMalloc(&db, n * sizeof(float)));
  CHECK(cudaMalloc(&dc, n * sizeof(float)));
  CHECK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  add<<<(n + 127) / 128, 128>>>(da, db, dc, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += c[i] != static_cast<float>(3 * i);
  std::printf("wrong %d\n", wrong);
  CHECK(cudaFree(da));
  CHECK(cudaFree(db));
  CHECK(cudaFree(dc));
  return 0;
}

static int two_launches() {
  const int n = 256;
  double* data;
  CHECK(cudaMalloc(&data, n * sizeof(double)));
  std::vector<double> host(n, 1.5);
  CHECK(cudaMemcpy(data, host.data(), n * sizeof(double), cudaMemcpyHostToDevice));
  scale<double><<<2, 128>>>(data, 2.0, n);
  float* floats;
  CHECK(cudaMalloc(&floats, n * sizeof(float)));
  CHECK(cudaMemset(floats, 0, n * sizeof(float)));
  add<<<2, 128>>>(floats, floats, floats, n);
  scale<double><<<1, dim3(64, 1, 1)>>>(data, 3.0, 64);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), data, n * sizeof(double), cudaMemcpyDeviceToHost));
  std::printf("%g %g\n", host[0], host[255]);
  return 0;
}

__constant__ float coefficients[4];
__device__ int counter = 5;
__device__ float table[8];

__global__ void polynomial(const float* x, float* y) {
  const int i = threadIdx.x;
  float sum = 0;
  for (int k = 3; k >= 0; --k) sum = sum * x[i] + coefficients[k];
  y[i] = sum;
  table[i & 7] = static_cast<float>(i & 7);
  atomicAdd(&counter, 1);
}

static int symbols() {
  const float host[4] = {1, 2, 3, 4};
  CHECK(cudaMemcpyToSymbol(coefficients, host, sizeof host));
  const float changed = 5;
  CHECK(cudaMemcpyToSymbol(coefficients, &changed, sizeof changed, 3 * sizeof(float)));
  std::vector<float> x(32), y(32);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i);
  float *dx, *dy;
  CHECK(cudaMalloc(&dx, 128));
  CHECK(cudaMalloc(&dy, 128));
  CHECK(cudaMemcpy(dx, x.data(), 128, cudaMemcpyHostToDevice));
  polynomial<<<1, 32>>>(dx, dy);
  CHECK(cudaMemcpy(y.data(), dy, 128, cudaMemcpyDeviceToHost));
  int count = 0;
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  float* address = nullptr;
  std::size_t size = 0;
  CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), table));
  CHECK(cudaGetSymbolSize(&size, table));
  float last = 0;
  CHECK(cudaMemcpy(&last, address + 7, sizeof last, cudaMemcpyDeviceToHost));
  // 1 + 2 * 2 + 3 * 4 + 5 * 8 = 57
  std::printf("%g %d %zu %g\n", y[2], count, size, last);
  return 0;
}

static void called_back(void* data) { ++*static_cast<int*>(data); }

static int streams() {
  const int n = 4096;
  cudaStream_t first, second;
  cudaEvent_t start, end;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreateWithFlags(&end, cudaEventDefault));
  float *host, *data;
  CHECK(cudaMallocHost(&host, n * sizeof(float)));
  CHECK(cudaMalloc(&data, n * sizeof(float)));
  for (int i = 0; i < n; ++i) host[i] = 1;
  CHECK(cudaEventRecord(start, first));
  CHECK(cudaMemcpyAsync(data, host, n * sizeof(float), cudaMemcpyHostToDevice, first));
  scale<float><<<n / 256, 256, 0, first>>>(data, 3.0f, n);
  CHECK(cudaEventRecord(end, first));
  CHECK(cudaStreamWaitEvent(second, end, 0));
  scale<float><<<n / 256, 256, 0, second>>>(data, 5.0f, n);
  CHECK(cudaMemcpyAsync(host, data, n * sizeof(float), cudaMemcpyDeviceToHost, second));
  int calls = 0;
  CHECK(cudaLaunchHostFunc(second, called_back, &calls));
  CHECK(cudaStreamSynchronize(second));
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaEventQuery(end));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  std::printf("%g %d %d\n", host[n - 1], calls, milliseconds > 0);
  CHECK(cudaEventDestroy(start));
  CHECK(cudaStreamDestroy(first));
  std::printf("%s\n", cudaGetErrorName(cudaStreamSynchronize(first)));
  return 0;
}

__managed__ int managed_total = 7;

__global__ void accumulate(const int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&managed_total, values[i]);
}

static int managed() {
  const int n = 100;
  int* values;
  CHECK(cudaMallocManaged(&values, n * sizeof(int)));
  for (int i = 0; i < n; ++i) values[i] = i;
  managed_total += 1;
  accumulate<<<1, 128>>>(values, n);
  CHECK(cudaDeviceSynchronize());
  std::printf("%d\n", managed_total);  // 7 + 1 + 4950
  int* mapped;
  CHECK(cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped));
  for (int i = 0; i < n; ++i) mapped[i] = 1;
  int* device_pointer;
  CHECK(cudaHostGetDevicePointer(&device_pointer, mapped, 0));
  accumulate<<<1, 128>>>(device_pointer, n);
  CHECK(cudaDeviceSynchronize());
  std::printf("%d\n", managed_total);
  void* symbol;
  CHECK(cudaGetSymbolAddress(&symbol, managed_total));
  CHECK(cudaMemcpyToSymbol(managed_total, &n, sizeof n));
  std::printf("%d %d\n", symbol == &managed_total, managed_total);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, values));
  std::printf("%d ", attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaPointerGetAttributes(&attributes, mapped));
  std::printf("%d ", attributes.type == cudaMemoryTypeHost);
  CHECK(cudaPointerGetAttributes(&attributes, &attributes));
  std::printf("%d\n", attributes.type == cudaMemoryTypeUnregistered);
  return 0;
}

__global__ void hello(double value) {
  if (threadIdx.x < 2) std::printf("thread %d of %s: %.2f\n", threadIdx.x, "hello", value);
}

static int prints() {
  std::printf("before\n");
  hello<<<1, 32>>>(2.5);
  CHECK(cudaDeviceSynchronize());
  std::printf("after\n");
  return 0;
}

__global__ void store(float* data, int index) { data[index] = 1; }

static int fault() {
  float* data;
  CHECK(cudaMalloc(&data, 100 * sizeof(float)));
  store<<<1, 1>>>(data, 3);
  CHECK(cudaDeviceSynchronize());
  store<<<1, 1>>>(data, 100);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf("%s\n", cudaGetErrorName(cudaMemset(data, 0, 4)));  // a fault stays
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  return 0;
}

static int mistakes() {
  float* data;
  CHECK(cudaMalloc(&data, 4));
  const auto name = [](cudaError_t error) { std::printf("%s\n", cudaGetErrorName(error)); };
  store<<<1, 2048>>>(data, 0);
  name(cudaGetLastError());
  name(cudaGetLastError());
  store<<<0, 1>>>(data, 0);
  name(cudaPeekAtLastError());
  name(cudaGetLastError());
  store<<<1, 1, 100000>>>(data, 0);
  name(cudaGetLastError());
  CHECK(cudaFuncSetAttribute(store, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  store<<<1, 1, 100000>>>(data, 0);
  name(cudaGetLastError());
  char host[8] = {};
  name(cudaMemcpy(data, host, 8, cudaMemcpyHostToDevice));
  name(cudaMemcpy(host, host, 8, cudaMemcpyHostToDevice));
  void* large;
  name(cudaMalloc(&large, std::size_t{1} << 50));
  name(cudaFree(host));
  name(cudaSetDevice(1));
  name(cudaMemcpyToSymbol(host, host, 4));
  return 0;
}

static int device() {
  int count, number, sms, runtime;
  CHECK(cudaGetDeviceCount(&count));
  CHECK(cudaGetDevice(&number));
  cudaDeviceProp properties;
  std::memset(&properties, 0xff, sizeof properties);
  CHECK(cudaGetDeviceProperties(&properties, 0));
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaRuntimeGetVersion(&runtime));
  std::printf("%d %d %s\n", count, number, properties.name);
  std::printf("%d %d %d %d %zu\n", properties.multiProcessorCount, sms, properties.major,
              properties.warpSize, properties.sharedMemPerBlock);
  std::printf("%d %d %d %d\n", properties.maxThreadsPerMultiProcessor, properties.regsPerBlock,
              properties.l2CacheSize, properties.maxThreadsDim[2]);
  std::printf("%d %d %d\n", properties.managedMemory, properties.unifiedAddressing,
              runtime / 1000 == CUDART_VERSION / 1000);
  std::size_t free, total;
  void* some;
  CHECK(cudaMalloc(&some, 1 << 20));
  CHECK(cudaMemGetInfo(&free, &total));
  std::printf("%d %zu\n", total - free >= (1 << 20), total);
  int blocks;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 256, 0));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, store));
  std::printf("%d %d %zu\n", blocks, attributes.maxThreadsPerBlock, attributes.sharedSizeBytes);
  return 0;
}

static int boxes() {
  // A 3 by 5 box of floats goes to a pitched place, is doubled there and comes back.
  float host[5][3];
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 3; ++x) host[y][x] = static_cast<float>(10 * y + x);
  }
  float* data;
  std::size_t pitch;
  CHECK(cudaMallocPitch(&data, &pitch, sizeof host[0], 5));
  CHECK(cudaMemset2D(data, pitch, 0, pitch, 5));
  CHECK(cudaMemcpy2D(data, pitch, host, sizeof host[0], sizeof host[0], 5, cudaMemcpyHostToDevice));
  scale<float><<<1, 1024>>>(data, 2.0f, static_cast<int>(5 * pitch / sizeof(float)));
  CHECK(cudaMemcpy2D(host, sizeof host[0], data, pitch, sizeof host[0], 5, cudaMemcpyDeviceToHost));
  std::printf("%zu %g %g\n", pitch, host[4][2], host[1][0]);
  // The same through a 3D copy into the upper corner of a volume.
  cudaPitchedPtr volume;
  const cudaExtent extent = make_cudaExtent(4 * sizeof(float), 4, 4);
  CHECK(cudaMalloc3D(&volume, extent));
  CHECK(cudaMemset3D(volume, 0, extent));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(host, sizeof host[0], 3, 5);
  copy.dstPtr = volume;
  copy.dstPos = make_cudaPos(sizeof(float), 1, 2);
  copy.extent = make_cudaExtent(3 * sizeof(float), 3, 1);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  float row[4];
  const char* third = static_cast<const char*>(volume.ptr) + volume.pitch * (2 * 4 + 1 + 2);
  CHECK(cudaMemcpy(row, third, sizeof row, cudaMemcpyDeviceToHost));
  std::printf("%g %g %g %g\n", row[0], row[1], row[2], row[3]);
  return 0;
}

static int unsupported() {
  cudaIpcMemHandle_t handle;
  std::printf("%s\n", cudaGetErrorName(cudaIpcGetMemHandle(&handle, nullptr)));
  return 0;
}

__global__ void read_timer(unsigned long long* out) {
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(*out));
}

static int timer() {
  unsigned long long* times;
  CHECK(cudaMallocManaged(&times, 3 * sizeof *times));
  for (int i = 0; i < 3; ++i) read_timer<<<1, 1>>>(times + i);
  CHECK(cudaDeviceSynchronize());
  std::printf("%d %d\n", times[0] < times[1], times[1] < times[2]);
  return 0;
}

int main(int argc, char** argv) {
  struct Program {
    const char* name;
    int (*run)();
  };
  const Program programs[] = {
      {"vector_add", vector_add}, {"two_launches", two_launches}, {"symbols", symbols},
      {"streams", streams},       {"managed", managed},           {"prints", prints},
      {"fault", fault},           {"mistakes", mistakes},         {"device", device},
      {"boxes", boxes},           {"unsupported", unsupported},   {"timer", timer},
  };
  for (const Program& program : programs) {
    if (argc > 1 && std::strcmp(argv[1], program.name) == 0) return program.run();
  }
  return argc > 2 ? std::atoi(argv[2]) : 0;
}
