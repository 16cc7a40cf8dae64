// Launches that may overlap with the one before them (programmatic dependent launch).
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int blocks = 8;
constexpr int threads = 128;

// Lets the next kernel start after its load, and computes on.
__global__ void first(float* values, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = values[i];
  cudaTriggerProgrammaticLaunchCompletion();
  for (int k = 0; k < steps; ++k) value = value * 0.5f + 1.0f;
  values[i] = value;
}

// Computes, and only then needs what the first has written.
__global__ void second(const float* values, float* sums, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = 1.0f;
  for (int k = 0; k < steps; ++k) value = value * 0.5f + 1.0f;
  cudaGridDependencySynchronize();
  sums[i] = value + values[i];
}

__global__ void third(float* sums) { sums[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f; }

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorName(error));
  std::exit(1);
}

static cudaLaunchConfig_t configuration(cudaLaunchAttribute* attributes, unsigned count,
                                        cudaStream_t stream) {
  cudaLaunchConfig_t result{};
  result.gridDim = blocks;
  result.blockDim = threads;
  result.stream = stream;
  result.attrs = attributes;
  result.numAttrs = count;
  return result;
}

int main(int count, char** arguments) {
  const char* const how = count > 1 ? arguments[1] : "stream";
  const int steps = 4000;
  float *values, *sums;
  check(cudaMalloc(&values, blocks * threads * sizeof(float)));
  check(cudaMalloc(&sums, blocks * threads * sizeof(float)));
  check(cudaMemset(values, 0, blocks * threads * sizeof(float)));
  cudaStream_t stream, other;
  check(cudaStreamCreate(&stream));
  check(cudaStreamCreate(&other));
  cudaEvent_t event;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));

  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = std::strcmp(how, "off") != 0;
  cudaLaunchConfig_t behind = configuration(&overlap, 1, stream);

  if (std::strcmp(how, "edge") == 0) {
    cudaGraph_t graph;
    check(cudaGraphCreate(&graph, 0));
    int number = steps;
    void* of_first[] = {&values, &number};
    void* of_second[] = {&values, &sums, &number};
    void* of_third[] = {&sums};
    cudaKernelNodeParams parameters{};
    parameters.gridDim = blocks;
    parameters.blockDim = threads;
    cudaGraphNode_t nodes[3];
    parameters.func = reinterpret_cast<void*>(first);
    parameters.kernelParams = of_first;
    check(cudaGraphAddKernelNode(&nodes[0], graph, nullptr, 0, &parameters));
    parameters.func = reinterpret_cast<void*>(second);
    parameters.kernelParams = of_second;
    check(cudaGraphAddKernelNode(&nodes[1], graph, nullptr, 0, &parameters));
    parameters.func = reinterpret_cast<void*>(third);
    parameters.kernelParams = of_third;
    check(cudaGraphAddKernelNode(&nodes[2], graph, &nodes[1], 1, &parameters));
    cudaGraphEdgeData data{};
    data.from_port = cudaGraphKernelNodePortProgrammatic;
    data.type = cudaGraphDependencyTypeProgrammatic;
#if CUDART_VERSION >= 13000
    check(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], &data, 1));
#else
    check(cudaGraphAddDependencies_v2(graph, &nodes[0], &nodes[1], &data, 1));
#endif
    cudaGraphExec_t executable;
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphLaunch(executable, stream));
  } else {
    cudaGraph_t graph;
    const bool captures = std::strcmp(how, "captured") == 0;
    if (captures) check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    if (std::strcmp(how, "event") == 0) {
      cudaLaunchAttribute records{};
      records.id = cudaLaunchAttributeProgrammaticEvent;
      records.val.programmaticEvent.event = event;
      cudaLaunchConfig_t plain = configuration(&records, 1, stream);
      check(cudaLaunchKernelEx(&plain, first, values, steps));
      check(cudaStreamWaitEvent(other, event, 0));
      behind.stream = other;
    } else {
      first<<<blocks, threads, 0, stream>>>(values, steps);
    }
    check(cudaLaunchKernelEx(&behind, second, static_cast<const float*>(values), sums, steps));
    third<<<blocks, threads, 0, behind.stream>>>(sums);
    if (captures) {
      check(cudaStreamEndCapture(stream, &graph));
      cudaGraphExec_t executable;
      check(cudaGraphInstantiate(&executable, graph, 0));
      check(cudaGraphLaunch(executable, stream));
    }
  }
  check(cudaDeviceSynchronize());
  float found[2];
  check(cudaMemcpy(found, sums, sizeof found, cudaMemcpyDeviceToHost));
  std::printf("%.1f %.1f\n", found[0], found[1]);
  return 0;
}
