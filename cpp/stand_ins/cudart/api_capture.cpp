// Capture of streams into graphs.

#include <algorithm>

#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

/// Status of a stream as in cudaStreamIsCapturing: 0: none, 1: active, 2: invalidated.
int status_of(Runtime& runtime, StreamHandle stream) {
  runtime.stream(stream);
  const Captures& captures = runtime.graphs().captures;
  if (stream <= 1) {
    for (const auto& [number, capture] : captures.active) {
      const bool blocking = std::ranges::any_of(capture->ends, [&](const auto& end) {
        return (runtime.stream(end.first).flags & 1) == 0;
      });
      require(!blocking, "the default stream waits for all others, and one of them captures",
              Error::capture_implicit);
    }
    return 0;
  }
  const Capture* const capture = captures.of(stream);
  return capture == nullptr ? 0 : capture->invalidated ? 2 : 1;
}

/// Results of cudaStreamGetCaptureInfo, which stay here until the thread's next call.
struct Dependencies {
  std::vector<Node*> nodes;
  std::vector<EdgeData> data;
};

Error capture_info(const char* function, StreamHandle stream, int* status,
                   unsigned long long* number, Graph** graph, Node* const** nodes,
                   const EdgeData** data, std::size_t* count) {
  return call(function, [&](Runtime& runtime) {
    require(status != nullptr, "nowhere to put the status");
    require(data == nullptr || nodes != nullptr, "data of edges without their nodes");
    *status = status_of(runtime, stream);
    if (*status != 1) return;
    Capture& capture = *runtime.graphs().captures.of(stream);
    static thread_local Dependencies dependencies;
    dependencies = {};
    for (const Edge& end : capture.ends[stream]) {
      require(data != nullptr || nodes == nullptr || end.data == EdgeData{},
              "the edges have data, for which there is no place", Error::lossy_query);
      dependencies.nodes.push_back(end.from);
      dependencies.data.push_back(end.data);
    }
    if (number != nullptr) *number = capture.number;
    if (graph != nullptr) *graph = capture.graph;
    if (nodes != nullptr) *nodes = dependencies.nodes.data();
    if (data != nullptr) *data = dependencies.data.data();
    if (count != nullptr) *count = dependencies.nodes.size();
  });
}

std::vector<Edge> edges_from(Runtime& runtime, Node* const* nodes, const EdgeData* data,
                             std::size_t count) {
  std::vector<Edge> edges;
  if (count == 0) return edges;
  runtime.check_host(address_of(nodes), count * sizeof *nodes, false);
  for (std::size_t i = 0; i < count; ++i) {
    edges.push_back({&checked(nodes[i]), data != nullptr ? data[i] : EdgeData{}});
  }
  return edges;
}

Error update_dependencies(const char* function, StreamHandle stream, Node* const* nodes,
                          const EdgeData* data, std::size_t count, unsigned flags) {
  return call(function, [&](Runtime& runtime) {
    require(flags <= 1, "unknown flags");
    Capture* const capture = capture_of(runtime, stream);
    require(capture != nullptr, "the stream does not capture", Error::illegal_state);
    const std::vector<Edge> edges = edges_from(runtime, nodes, data, count);
    for (const Edge& edge : edges) {
      require(edge.from->graph == capture->graph, "a node is not of the graph that is captured");
    }
    std::vector<Edge>& ends = capture->ends[stream];
    if (flags == 1) ends.clear();
    for (const Edge& edge : edges) add_end(ends, edge.from, edge.data);
  });
}

}  // namespace

CUDART_EXPORT Error cudaStreamBeginCapture(StreamHandle stream, CaptureMode mode) {
  return call(__func__, [&](Runtime& runtime) {
    begin_capture(runtime, stream, mode, std::make_shared<Graph>(), nullptr, {});
  });
}
CUDART_PER_THREAD(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture);

CUDART_EXPORT Error cudaStreamBeginCaptureToGraph(StreamHandle stream, Graph* graph,
                                                  Node* const* nodes, const EdgeData* data,
                                                  std::size_t count, CaptureMode mode) {
  return call(__func__, [&](Runtime& runtime) {
    checked(graph);
    std::vector<Edge> edges = edges_from(runtime, nodes, data, count);
    for (const Edge& edge : edges) {
      require(edge.from->graph == graph, "a dependency is a node of another graph");
    }
    begin_capture(runtime, stream, mode, nullptr, graph, std::move(edges));
  });
}
CUDART_PER_THREAD(cudaStreamBeginCaptureToGraph_ptsz, cudaStreamBeginCaptureToGraph);

CUDART_EXPORT Error cudaStreamEndCapture(StreamHandle stream, Graph** graph) {
  return call(__func__, [&](Runtime& runtime) {
    require(graph != nullptr, "nowhere to put the graph");
    *graph = nullptr;
    *graph = end_capture(runtime, stream);
  });
}
CUDART_PER_THREAD(cudaStreamEndCapture_ptsz, cudaStreamEndCapture);

CUDART_EXPORT Error cudaStreamIsCapturing(StreamHandle stream, int* status) {
  return call(__func__, [&](Runtime& runtime) {
    require(status != nullptr, "nowhere to put the status");
    *status = status_of(runtime, stream);
  });
}
CUDART_PER_THREAD(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);

/// CUDA 11 and 12 pass the first three arguments only.
CUDART_EXPORT Error cudaStreamGetCaptureInfo(StreamHandle stream, int* status,
                                             unsigned long long* number, Graph** graph,
                                             Node* const** nodes, const EdgeData** data,
                                             std::size_t* count) {
  if (abi_version() >= 13) {
    return capture_info(__func__, stream, status, number, graph, nodes, data, count);
  }
  return capture_info(__func__, stream, status, number, nullptr, nullptr, nullptr, nullptr);
}
CUDART_PER_THREAD(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);

CUDART_EXPORT Error cudaStreamGetCaptureInfo_v2(StreamHandle stream, int* status,
                                                unsigned long long* number, Graph** graph,
                                                Node* const** nodes, std::size_t* count) {
  return capture_info(__func__, stream, status, number, graph, nodes, nullptr, count);
}
CUDART_PER_THREAD(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_v2);

CUDART_EXPORT Error cudaStreamGetCaptureInfo_v3(StreamHandle stream, int* status,
                                                unsigned long long* number, Graph** graph,
                                                Node* const** nodes, const EdgeData** data,
                                                std::size_t* count) {
  return capture_info(__func__, stream, status, number, graph, nodes, data, count);
}
CUDART_PER_THREAD(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_v3);

CUDART_EXPORT Error cudaStreamUpdateCaptureDependencies_v2(StreamHandle stream, Node* const* nodes,
                                                           const EdgeData* data, std::size_t count,
                                                           unsigned flags) {
  return update_dependencies(__func__, stream, nodes, data, count, flags);
}
CUDART_PER_THREAD(cudaStreamUpdateCaptureDependencies_v2_ptsz,
                  cudaStreamUpdateCaptureDependencies_v2);

/// CUDA 13 has the arguments of the second version.
CUDART_EXPORT Error cudaStreamUpdateCaptureDependencies(StreamHandle stream, Node* const* nodes,
                                                        std::uintptr_t data_or_count,
                                                        std::uintptr_t count_or_flags,
                                                        unsigned flags) {
  if (abi_version() >= 13) {
    return update_dependencies(__func__, stream, nodes,
                               reinterpret_cast<const EdgeData*>(data_or_count), count_or_flags,
                               flags);
  }
  return update_dependencies(__func__, stream, nodes, nullptr, data_or_count,
                             static_cast<unsigned>(count_or_flags));
}
CUDART_PER_THREAD(cudaStreamUpdateCaptureDependencies_ptsz, cudaStreamUpdateCaptureDependencies);

CUDART_EXPORT Error cudaThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  return call(__func__, [&](Runtime&) {
    require(mode != nullptr, "no mode");
    const int value = static_cast<int>(*mode);
    require(value >= 0 && value <= 2, "unknown mode of capture");
    std::swap(*mode, thread_capture_mode());
  });
}
