// Graphs and memory pools on the stand-in: the first argument chooses a program. Each prints what
// test_host_graphs.py expects.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      std::exit(1);                                            \
    }                                                          \
  } while (0)

#define SAY(call) std::printf("%s\n", cudaGetErrorName(call))

static const int n = 64;

__device__ int bias = 0;

__global__ void add(int* data, int value) { data[threadIdx.x] += value; }
__global__ void multiply(int* data, int factor) { data[threadIdx.x] *= factor; }
__global__ void add_bias(int* data) { data[threadIdx.x] += bias; }
__global__ void sum_of(const int* a, const int* b, int* c) {
  c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

static int* zeros() {
  int* data;
  CHECK(cudaMalloc(&data, n * sizeof(int)));
  CHECK(cudaMemset(data, 0, n * sizeof(int)));
  return data;
}

/// The value that all elements have, or -1.
static int value_of(const int* data) {
  std::vector<int> host(n);
  CHECK(cudaMemcpy(host.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (const int value : host) {
    if (value != host[0]) return -1;
  }
  return host[0];
}

static cudaStream_t new_stream(unsigned flags = cudaStreamDefault) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

static std::size_t num_nodes(cudaGraph_t graph) {
  std::size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

static cudaGraphExec_t executable(cudaGraph_t graph) {
  cudaGraphExec_t result;
  CHECK(cudaGraphInstantiateWithFlags(&result, graph, 0));
  return result;
}

static void run(cudaGraph_t graph, int times = 1) {
  const cudaGraphExec_t exec = executable(graph);
  for (int i = 0; i < times; ++i) CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(exec));
}

static int capture() {
  int* const data = zeros();
  const cudaStream_t stream = new_stream();
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, n, 0, stream>>>(data, 3);
  multiply<<<1, n, 0, stream>>>(data, 2);
  CHECK(cudaStreamIsCapturing(stream, &status));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  std::printf("%d %zu %d\n", status, num_nodes(graph), value_of(data));  // nothing has run
  run(graph, 3);
  std::printf("%d\n", value_of(data));  // ((0 + 3) 2 + 3) 2 ...
  CHECK(cudaStreamIsCapturing(stream, &status));
  std::printf("%d\n", status);
  CHECK(cudaGraphDestroy(graph));
  SAY(cudaGraphDestroy(graph));
  return 0;
}

static void count_call(void* counter) { ++*static_cast<int*>(counter); }

/// Two streams between fork and join, with copies, fills, a symbol and a function of the host.
static int fork() {
  int *const a = zeros(), *const b = zeros(), *const c = zeros();
  const cudaStream_t first = new_stream(), second = new_stream(cudaStreamNonBlocking);
  cudaEvent_t forked, joined;
  CHECK(cudaEventCreate(&forked));
  CHECK(cudaEventCreate(&joined));
  std::vector<int> host(n, 0);
  int seven = 7, calls = 0;
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyToSymbolAsync(bias, &seven, sizeof seven, 0, cudaMemcpyHostToDevice, first));
  CHECK(cudaEventRecord(forked, first));
  CHECK(cudaStreamWaitEvent(second, forked, 0));
  CHECK(cudaMemsetAsync(a, 0, n * sizeof(int), first));
  add_bias<<<1, n, 0, first>>>(a);
  CHECK(cudaMemset2DAsync(b, n, 1, n, 4, second));  // 0x01010101 in each
  CHECK(cudaEventRecord(joined, second));
  CHECK(cudaStreamWaitEvent(first, joined, 0));
  sum_of<<<1, n, 0, first>>>(a, b, c);
  CHECK(cudaMemcpyAsync(host.data(), c, n * sizeof(int), cudaMemcpyDeviceToHost, first));
  CHECK(cudaLaunchHostFunc(first, count_call, &calls));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(first, &graph));
  std::printf("%zu %d %d\n", num_nodes(graph), host[0], calls);
  seven = 8;  // read when the graph runs
  run(graph, 2);
  std::printf("%d %d\n", host[n - 1] - 0x01010101, calls);
  return 0;
}

static int nodes() {
  int *const data = zeros(), *const copy = zeros();
  std::vector<int> host(n, 5);
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  int one = 1, two = 2, calls = 0;
  int* pointer = data;
  void* add_arguments[] = {&pointer, &one};
  void* multiply_arguments[] = {&pointer, &two};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(n);
  kernel.kernelParams = add_arguments;
  cudaMemsetParams fill{};
  fill.dst = data;
  fill.value = 10;
  fill.elementSize = 4;
  fill.width = n;
  fill.height = 1;
  cudaHostNodeParams call{count_call, &calls};
  // The kernel comes first here and runs second.
  cudaGraphNode_t kernel_node, fill_node, copy_node, back, call_node, empty;
  CHECK(cudaGraphAddKernelNode(&kernel_node, graph, nullptr, 0, &kernel));
  one = 100;  // arguments are copied when the node is made
  CHECK(cudaGraphAddMemsetNode(&fill_node, graph, nullptr, 0, &fill));
  CHECK(cudaGraphAddMemcpyNode1D(&copy_node, graph, &kernel_node, 1, copy, data, n * sizeof(int),
                                 cudaMemcpyDeviceToDevice));
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = make_cudaPitchedPtr(copy, n * sizeof(int), n, 1);
  parameters.dstPtr = make_cudaPitchedPtr(host.data(), n * sizeof(int), n, 1);
  parameters.extent = make_cudaExtent(n * sizeof(int), 1, 1);
  parameters.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaGraphAddMemcpyNode(&back, graph, &copy_node, 1, &parameters));
  const cudaGraphNode_t both[] = {back, fill_node};
  CHECK(cudaGraphAddEmptyNode(&empty, graph, both, 2));
  CHECK(cudaGraphAddHostNode(&call_node, graph, &empty, 1, &call));
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddDependencies(graph, &fill_node, &kernel_node, nullptr, 1));
  SAY(cudaGraphAddDependencies(graph, &fill_node, &kernel_node, nullptr, 1));
#else
  CHECK(cudaGraphAddDependencies(graph, &fill_node, &kernel_node, 1));
  SAY(cudaGraphAddDependencies(graph, &fill_node, &kernel_node, 1));
#endif
  std::size_t roots = 0;
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(call_node, &type));
  std::printf("%zu %zu %d\n", num_nodes(graph), roots, type);
  cudaKernelNodeParams found{};
  CHECK(cudaGraphKernelNodeGetParams(kernel_node, &found));
  std::printf("%u %d\n", found.blockDim.x, *static_cast<int*>(found.kernelParams[1]));
  run(graph);
  std::printf("%d %d %d\n", value_of(data), host[3], calls);  // 10 + 1

  // Parameters of the executable graph, and of the graph itself.
  const cudaGraphExec_t exec = executable(graph);
  kernel.func = reinterpret_cast<void*>(multiply);
  kernel.kernelParams = multiply_arguments;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel_node, &kernel));
  fill.value = 20;
  CHECK(cudaGraphExecMemsetNodeSetParams(exec, fill_node, &fill));
  int more = 40;
  call.userData = &more;
  CHECK(cudaGraphExecHostNodeSetParams(exec, call_node, &call));
  CHECK(cudaGraphLaunch(exec, nullptr));
  std::printf("%d %d %d\n", value_of(data), host[3], more);  // 20 * 2
  CHECK(cudaGraphNodeSetEnabled(exec, kernel_node, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  std::printf("%d\n", value_of(data));
  SAY(cudaGraphNodeSetEnabled(exec, call_node, 0));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, copy_node, host.data(), data, n * sizeof(int),
                                         cudaMemcpyDeviceToHost));  // from device to host memory
  run(graph);
  std::printf("%d\n", value_of(data));  // the graph is as it was: 10 + 1
  CHECK(cudaGraphDestroyNode(kernel_node));
  run(graph);
  std::printf("%d %zu\n", value_of(data), num_nodes(graph));
  SAY(cudaGraphNodeGetType(kernel_node, &type));
  return 0;
}

static int update() {
  int* const data = zeros();
  const cudaStream_t stream = new_stream();
  cudaGraphExec_t exec = nullptr;
  // Four graphs: the same with another argument, a longer one, one with another kind of node.
  for (int i = 0; i < 4; ++i) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add<<<1, n, 0, stream>>>(data, i + 1);
    if (i == 2) add<<<1, n, 0, stream>>>(data, 100);
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph));
    if (i == 3) {
      cudaGraphNode_t node, made;
      std::size_t one = 1;
      CHECK(cudaGraphGetNodes(graph, &node, &one));
      CHECK(cudaGraphDestroyNode(node));
      CHECK(cudaGraphAddEmptyNode(&made, graph, nullptr, 0));
    }
    if (exec == nullptr) {
      exec = executable(graph);
    } else {
#if CUDART_VERSION >= 12000
      cudaGraphExecUpdateResultInfo info{};
      SAY(cudaGraphExecUpdate(exec, graph, &info));
      std::printf("%d %d\n", info.result, info.errorNode != nullptr);
#else
      cudaGraphNode_t node = nullptr;
      cudaGraphExecUpdateResult result;
      SAY(cudaGraphExecUpdate(exec, graph, &node, &result));
      std::printf("%d %d\n", result, node != nullptr);
#endif
    }
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("%d\n", value_of(data));
  }
  return 0;
}

/// Children, clones, a launch into a capture, events, objects of the user's.
static int children() {
  int* const data = zeros();
  const cudaStream_t stream = new_stream();
  cudaGraph_t inner, outer, clone, found;
  cudaGraphNode_t child, second, node, in_clone;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, n, 0, stream>>>(data, 1);
  CHECK(cudaStreamEndCapture(stream, &inner));
  CHECK(cudaGraphCreate(&outer, 0));
  CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
  CHECK(cudaGraphAddChildGraphNode(&second, outer, &child, 1, inner));
  run(outer);
  std::printf("%d\n", value_of(data));
  CHECK(cudaGraphChildGraphNodeGetGraph(child, &found));
  std::size_t one = 1;
  CHECK(cudaGraphGetNodes(found, &node, &one));
  SAY(cudaGraphDestroy(found));
  // The node of the child changes in one executable graph only.
  const cudaGraphExec_t exec = executable(outer);
  int ten = 10;
  int* pointer = data;
  void* arguments[] = {&pointer, &ten};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(n);
  kernel.kernelParams = arguments;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &kernel));
  CHECK(cudaGraphLaunch(exec, stream));
  std::printf("%d\n", value_of(data));
  CHECK(cudaGraphClone(&clone, outer));
  CHECK(cudaGraphNodeFindInClone(&in_clone, second, clone));
  CHECK(cudaGraphDestroy(outer));
  CHECK(cudaGraphDestroyNode(in_clone));
  run(clone);
  std::printf("%d\n", value_of(data));
  // A launch into a capture; the events of the capture; a time between events of the graph.
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecordWithFlags(start, stream, cudaEventRecordExternal));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaEventRecordWithFlags(end, stream, cudaEventRecordExternal));
  CHECK(cudaStreamEndCapture(stream, &found));
  cudaUserObject_t object;
  int calls = 0;
  CHECK(cudaUserObjectCreate(&object, &calls, count_call, 1, cudaUserObjectNoDestructorSync));
  CHECK(cudaGraphRetainUserObject(found, object, 1, cudaGraphUserObjectMove));
  run(found);
  float time = 0;
  CHECK(cudaEventElapsedTime(&time, start, end));
  std::printf("%d %d %d ", value_of(data), time > 0, calls);
  CHECK(cudaGraphDestroy(found));
  std::printf("%d\n", calls);
  return 0;
}

/// Allocation and free nodes.
static int memory_nodes() {
  int* const result = zeros();
  const cudaStream_t stream = new_stream();
  cudaGraph_t graph;
  int *first, *kept;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&first, n * sizeof(int), stream));
  CHECK(cudaMemsetAsync(first, 0, n * sizeof(int), stream));
  add<<<1, n, 0, stream>>>(first, 4);
  CHECK(cudaMallocAsync(&kept, n * sizeof(int), stream));
  sum_of<<<1, n, 0, stream>>>(first, first, kept);
  CHECK(cudaFreeAsync(first, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  const cudaGraphExec_t exec = executable(graph);
  cudaGraphExec_t other;
  SAY(cudaGraphInstantiateWithFlags(&other, graph, 0));  // one at a time
  CHECK(cudaGraphLaunch(exec, stream));
  unsigned long long used = 1;
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  std::printf("%llu %d\n", used >> 20, value_of(kept));
  SAY(cudaGraphLaunch(exec, stream));  // `kept` is allocated still
  CHECK(cudaFreeAsync(kept, stream));
  SAY(cudaFreeAsync(kept, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  std::printf("%d\n", value_of(kept));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphInstantiateWithFlags(&other, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  CHECK(cudaGraphLaunch(other, stream));
  CHECK(cudaGraphLaunch(other, stream));
  SAY(cudaGraphClone(&graph, graph));
  CHECK(cudaFree(kept));

  // By hand: an allocation, a kernel that writes to it, a copy, the free.
  cudaGraph_t manual;
  CHECK(cudaGraphCreate(&manual, 0));
  cudaMemAllocNodeParams wanted{};
  wanted.poolProps.allocType = cudaMemAllocationTypePinned;
  wanted.poolProps.location.type = cudaMemLocationTypeDevice;
  wanted.bytesize = n * sizeof(int);
  cudaGraphNode_t allocate, write, copy, release, again;
  CHECK(cudaGraphAddMemAllocNode(&allocate, manual, nullptr, 0, &wanted));
  void* arguments[] = {const_cast<int**>(&result), const_cast<int**>(&result), &wanted.dptr};
  CHECK(cudaMemset(result, 1, n * sizeof(int)));
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(sum_of);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(n);
  kernel.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&write, manual, &allocate, 1, &kernel));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, manual, &write, 1, result, wanted.dptr, n * sizeof(int),
                                 cudaMemcpyDeviceToDevice));
  CHECK(cudaGraphAddMemFreeNode(&release, manual, &copy, 1, wanted.dptr));
  SAY(cudaGraphAddMemFreeNode(&again, manual, &copy, 1, wanted.dptr));
  run(manual, 2);
  std::printf("%x\n", value_of(result));
  return 0;
}

/// What may not be done while streams capture.
static int refused() {
  int* const data = zeros();
  const cudaStream_t stream = new_stream(), other = new_stream();
  const cudaStream_t apart = new_stream(cudaStreamNonBlocking);
  cudaEvent_t event, outside;
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventCreate(&outside));
  cudaGraph_t graph;
  cudaStreamCaptureStatus status;
  int* more;
  const auto begin = [&](cudaStream_t which = nullptr) {
    CHECK(cudaStreamBeginCapture(which ? which : stream, cudaStreamCaptureModeGlobal));
    add<<<1, n, 0, which ? which : stream>>>(data, 1);
  };
  const auto end = [&](cudaStream_t which = nullptr) {
    cudaGraph_t none = reinterpret_cast<cudaGraph_t>(1);
    const cudaError_t error = cudaStreamEndCapture(which ? which : stream, &none);
    std::printf("  %s %d\n", cudaGetErrorName(error), none == nullptr);
  };
  SAY(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamEndCapture(stream, &graph));
  begin();
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  SAY(cudaMalloc(&more, 64));
  SAY(cudaMemsetAsync(data, 0, 64, stream));
  CHECK(cudaStreamIsCapturing(stream, &status));
  std::printf("%d\n", status);
  end();
  begin();
  SAY(cudaStreamSynchronize(stream));
  end();
  begin();
  SAY(cudaDeviceSynchronize());
  end();
  begin();
  SAY(cudaMemcpy(data, data, 64, cudaMemcpyDeviceToDevice));  // the default stream
  end();
  begin();
  cudaGetLastError();
  add<<<1, n>>>(data, 1);
  SAY(cudaGetLastError());
  end();
  begin(apart);
  cudaGetLastError();
  add<<<1, n>>>(data, 1);  // a stream that does not block lets it run
  SAY(cudaGetLastError());
  end(apart);
  begin();
  CHECK(cudaEventRecord(event, stream));
  SAY(cudaEventQuery(event));
  end();
  SAY(cudaStreamWaitEvent(other, event, 0));  // its capture has ended
  begin();
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  add<<<1, n, 0, other>>>(data, 1);
  end();  // without a join
  CHECK(cudaEventRecord(outside, other));
  begin();
  SAY(cudaStreamWaitEvent(stream, outside, 0));
  end();
  begin();
  begin(other);
  CHECK(cudaEventRecord(event, stream));
  SAY(cudaStreamWaitEvent(other, event, 0));
  end();
  end(other);
  begin();
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  end(other);
  end();
  begin();
  std::thread([&] { end(); }).join();
  end();
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(cudaMalloc(&more, 64));
  end();
  begin();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  SAY(cudaFree(more));
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  std::printf("%d\n", mode);
  end();
  // A cycle.
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t a, b;
  CHECK(cudaGraphAddEmptyNode(&a, graph, nullptr, 0));
  CHECK(cudaGraphAddEmptyNode(&b, graph, &a, 1));
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddDependencies(graph, &b, &a, nullptr, 1));
#else
  CHECK(cudaGraphAddDependencies(graph, &b, &a, 1));
#endif
  cudaGraphExec_t exec;
  SAY(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  SAY(cudaGraphLaunch(nullptr, stream));
  SAY(cudaGraphAddEmptyNode(&a, nullptr, nullptr, 0));
  std::printf("%d\n", value_of(data));
  return 0;
}

/// Every function refuses handles and pointers that are not there.
static int wrong() {
  int calls = 0, allowed = 0;
#define WRONG(call)                                                   \
  do {                                                                \
    ++calls;                                                          \
    if ((call) == cudaSuccess) std::printf("%s\n", #call), ++allowed; \
  } while (0)
  const cudaStream_t stream = new_stream();
  cudaGraph_t graph, none = nullptr, gone;
  cudaGraphNode_t node = nullptr, empty, child;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&gone, 0));
  CHECK(cudaGraphAddEmptyNode(&empty, graph, nullptr, 0));
  CHECK(cudaGraphDestroy(gone));
  char text[256] = {};
  void* pointer = text;
  std::size_t count = 1;
  unsigned number = 0;
  cudaKernelNodeParams kernel{};
  cudaMemcpy3DParms copy{};
  cudaMemsetParams fill{};
  cudaHostNodeParams call{};
  cudaMemAllocNodeParams memory{};
  cudaEvent_t event = nullptr;
  cudaUserObject_t object = nullptr;
  cudaStreamCaptureStatus status;
  const auto to_device = cudaMemcpyHostToDevice;
  for (const cudaGraph_t bad : {none, gone}) {
    WRONG(cudaGraphDestroy(bad));
    WRONG(cudaGraphClone(&none, bad));
    WRONG(cudaGraphGetNodes(bad, nullptr, &count));
    WRONG(cudaGraphGetRootNodes(bad, nullptr, &count));
    WRONG(cudaGraphInstantiateWithFlags(&exec, bad, 0));
    WRONG(cudaGraphAddKernelNode(&node, bad, nullptr, 0, &kernel));
    WRONG(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, bad));
    WRONG(cudaGraphNodeFindInClone(&node, empty, bad));
    WRONG(cudaGraphDebugDotPrint(bad, "/dev/null", 0));
    WRONG(cudaGraphRetainUserObject(bad, object, 1, 0));
  }
  WRONG(cudaGraphCreate(nullptr, 0));
  WRONG(cudaGraphCreate(&none, 1));
  WRONG(cudaGraphClone(nullptr, graph));
  WRONG(cudaGraphGetNodes(graph, nullptr, nullptr));
  WRONG(cudaGraphDebugDotPrint(graph, "/nowhere/file", 0));
  WRONG(cudaGraphNodeGetType(nullptr, nullptr));
  WRONG(cudaGraphDestroyNode(nullptr));
  WRONG(cudaGraphAddEmptyNode(&node, graph, nullptr, 1));
  WRONG(cudaGraphAddEmptyNode(&node, graph, &node, 1));
  WRONG(cudaGraphAddEmptyNode(nullptr, graph, nullptr, 0));
  WRONG(cudaGraphAddKernelNode(&node, graph, nullptr, 0, nullptr));
  WRONG(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = kernel.blockDim = dim3(1);
  WRONG(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  kernel.extra = &pointer;
  WRONG(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  WRONG(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, nullptr));
  WRONG(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, nullptr, text, 8, to_device));
  WRONG(cudaGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, bias, text, 8, 0, to_device));
  WRONG(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  WRONG(cudaGraphAddHostNode(&node, graph, nullptr, 0, &call));
  WRONG(cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, event));
  WRONG(cudaGraphAddEventWaitNode(&node, graph, nullptr, 0, event));
  WRONG(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &memory));
  WRONG(cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, text));
  WRONG(cudaGraphAddChildGraphNode(&child, graph, nullptr, 0, graph));
  for (const cudaGraphNode_t bad : {node, empty}) {  // none, and one of another type
    WRONG(cudaGraphKernelNodeGetParams(bad, &kernel));
    WRONG(cudaGraphKernelNodeSetParams(bad, &kernel));
    WRONG(cudaGraphKernelNodeCopyAttributes(bad, bad));
    WRONG(cudaGraphMemcpyNodeGetParams(bad, &copy));
    WRONG(cudaGraphMemcpyNodeSetParams(bad, &copy));
    WRONG(cudaGraphMemsetNodeGetParams(bad, &fill));
    WRONG(cudaGraphMemsetNodeSetParams(bad, &fill));
    WRONG(cudaGraphHostNodeGetParams(bad, &call));
    WRONG(cudaGraphHostNodeSetParams(bad, &call));
    WRONG(cudaGraphChildGraphNodeGetGraph(bad, &none));
    WRONG(cudaGraphEventRecordNodeGetEvent(bad, &event));
    WRONG(cudaGraphEventWaitNodeSetEvent(bad, event));
    WRONG(cudaGraphMemAllocNodeGetParams(bad, &memory));
    WRONG(cudaGraphMemFreeNodeGetParams(bad, &pointer));
    WRONG(cudaGraphNodeGetEnabled(exec, bad, &number));
    WRONG(cudaGraphExecKernelNodeSetParams(exec, bad, &kernel));
    WRONG(cudaGraphExecHostNodeSetParams(exec, bad, &call));
  }
  WRONG(cudaGraphLaunch(exec, stream));
  WRONG(cudaGraphUpload(exec, stream));
  WRONG(cudaGraphExecDestroy(exec));
  WRONG(cudaGraphInstantiateWithFlags(nullptr, graph, 0));
  WRONG(cudaGraphInstantiateWithFlags(&exec, graph, 1 << 20));
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  WRONG(cudaGraphLaunch(exec, reinterpret_cast<cudaStream_t>(0x77)));
  WRONG(cudaUserObjectCreate(&object, nullptr, nullptr, 1, cudaUserObjectNoDestructorSync));
  WRONG(cudaUserObjectRelease(object, 1));
  WRONG(cudaGraphReleaseUserObject(graph, object, 1));
  WRONG(cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(9)));
  WRONG(cudaStreamBeginCapture(reinterpret_cast<cudaStream_t>(0x77), cudaStreamCaptureModeGlobal));
  WRONG(cudaStreamEndCapture(stream, nullptr));
  WRONG(cudaStreamIsCapturing(stream, nullptr));
  WRONG(cudaStreamIsCapturing(reinterpret_cast<cudaStream_t>(0x77), &status));
  WRONG(cudaThreadExchangeStreamCaptureMode(nullptr));
  WRONG(cudaMemPoolCreate(nullptr, nullptr));
  WRONG(cudaMemPoolTrimTo(nullptr, 0));
  WRONG(cudaMemPoolGetAttribute(nullptr, cudaMemPoolAttrUsedMemHigh, &count));
  WRONG(cudaDeviceSetMemPool(0, nullptr));
  WRONG(cudaDeviceGetMemPool(nullptr, 0));
  WRONG(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrUsedMemHigh, &count));
  WRONG(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &count));
  WRONG(cudaDeviceGraphMemTrim(1));
  WRONG(cudaMallocAsync(&pointer, 64, reinterpret_cast<cudaStream_t>(0x77)));
  WRONG(cudaFreeAsync(text, stream));
  cudaGetLastError();
  add<<<1, n>>>(zeros(), 1);  // the device is as it was
  CHECK(cudaGetLastError());
  std::printf("%d calls, %d allowed\n", calls, allowed);
  return 0;
}

static int pools() {
  const cudaStream_t stream = new_stream();
  cudaMemPool_t standard, current, own;
  CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
  CHECK(cudaDeviceGetMemPool(&current, 0));
  int supported = 0;
  CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%d %d %d\n", standard == current, supported, properties.memoryPoolsSupported);
  const auto number = [](cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    unsigned long long value = 0;
    CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
  };
  const auto say = [&](cudaMemPool_t pool) {
    std::printf("%llu %llu %llu %llu\n", number(pool, cudaMemPoolAttrUsedMemCurrent),
                number(pool, cudaMemPoolAttrUsedMemHigh),
                number(pool, cudaMemPoolAttrReservedMemCurrent) >> 20,
                number(pool, cudaMemPoolAttrReservedMemHigh) >> 20);
  };
  int *a, *b;
  CHECK(cudaMallocAsync(&a, 1000, stream));
  CHECK(cudaMallocAsync(&b, 40 << 20, stream));
  say(standard);
  CHECK(cudaFreeAsync(b, stream));
  say(standard);
  CHECK(cudaStreamSynchronize(stream));  // gives back all above the threshold of 0
  say(standard);
  unsigned long long threshold = ~0ull, zero = 0;
  CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemHigh, &zero));
  CHECK(cudaMallocAsync(&b, 40 << 20, stream));
  CHECK(cudaFreeAsync(b, stream));
  CHECK(cudaStreamSynchronize(stream));
  say(standard);
  CHECK(cudaMemPoolTrimTo(standard, 0));
  say(standard);
  CHECK(cudaFree(a));
  say(standard);

  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location.type = cudaMemLocationTypeDevice;
  CHECK(cudaMemPoolCreate(&own, &wanted));
  CHECK(cudaMallocFromPoolAsync(&a, n * sizeof(int), own, stream));
  CHECK(cudaMemsetAsync(a, 0, n * sizeof(int), stream));
  add<<<1, n, 0, stream>>>(a, 9);
  CHECK(cudaDeviceSetMemPool(0, own));
  CHECK(cudaMallocAsync(&b, 256, stream));
  std::printf("%d %llu\n", value_of(a), number(own, cudaMemPoolAttrUsedMemCurrent));
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  CHECK(cudaMemPoolSetAccess(own, &access, 1));
  cudaMemAccessFlags flags;
  CHECK(cudaMemPoolGetAccess(&flags, own, &access.location));
  std::printf("%d\n", flags);
  CHECK(cudaMemPoolDestroy(own));
  CHECK(cudaDeviceGetMemPool(&current, 0));
  std::printf("%d\n", current == standard);
  CHECK(cudaFreeAsync(a, stream));  // also after its pool
  SAY(cudaMemPoolDestroy(standard));
  SAY(cudaMemPoolDestroy(own));
  SAY(cudaMallocFromPoolAsync(&a, 64, own, stream));
  SAY(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemCurrent, &zero));
  SAY(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemHigh, &threshold));
  SAY(cudaDeviceGetDefaultMemPool(&current, 1));
  wanted.location.id = 1;
  SAY(cudaMemPoolCreate(&own, &wanted));
  return 0;
}

int main(int argc, char** argv) {
  struct Program {
    const char* name;
    int (*run)();
  };
  const Program programs[] = {
      {"capture", capture}, {"fork", fork},         {"nodes", nodes},
      {"update", update},   {"children", children}, {"memory_nodes", memory_nodes},
      {"refused", refused}, {"pools", pools},       {"wrong", wrong},
  };
  for (const Program& program : programs) {
    if (argc > 1 && std::strcmp(argv[1], program.name) == 0) return program.run();
  }
  return 1;
}
