#include "stand_ins/state/capture.h"

#include <algorithm>
#include <unordered_set>

#include "stand_ins/state/graph.h"

namespace warpstack::cudart {
namespace {

constexpr unsigned external = 1;  // cudaEventRecordExternal, cudaEventWaitExternal

bool is_legacy(StreamHandle stream) { return stream <= 1; }

/// Whether this stream and the legacy default stream wait for each other's work.
bool is_blocking(Runtime& runtime, StreamHandle stream) {
  return (runtime.stream(stream).flags & 1) == 0;
}

/// Invalidates the captures for which `offends` is true, and refuses the call if there are any.
template <typename Offends>
void refuse(Runtime& runtime, Offends offends, Error code, const char* why) {
  bool refused = false;
  for (const auto& [number, capture] : runtime.graphs().captures.active) {
    if (!offends(*capture)) continue;
    capture->invalidated = true;
    refused = true;
  }
  if (refused) throw Failure(code, why);
}

bool has_blocking_stream(Runtime& runtime, const Capture& capture) {
  return std::ranges::any_of(capture.ends,
                             [&](const auto& end) { return is_blocking(runtime, end.first); });
}

void check_valid(const Capture& capture) {
  if (capture.invalidated) {
    throw Failure(Error::capture_invalidated,
                  "the stream's capture became invalid with an earlier call; end it with "
                  "cudaStreamEndCapture");
  }
}

}  // namespace

Capture* Captures::of(StreamHandle stream) const {
  for (const auto& [number, capture] : active) {
    if (capture->ends.contains(stream)) return capture.get();
  }
  return nullptr;
}

bool Captures::into(const Graph* graph) const {
  return std::ranges::any_of(active,
                             [graph](const auto& entry) { return entry.second->graph == graph; });
}

CaptureMode& thread_capture_mode() {
  static thread_local CaptureMode mode = CaptureMode::global;
  return mode;
}

void add_end(std::vector<Edge>& ends, Node* node, const EdgeData& data) {
  const bool known =
      std::ranges::any_of(ends, [node](const Edge& edge) { return edge.from == node; });
  if (!known) ends.push_back({node, data});
}

Capture* capture_of(Runtime& runtime, StreamHandle stream) {
  runtime.stream(stream);
  log_thread().call.stream = stream;
  log_thread().call.in_order = true;
  if (runtime.graphs().captures.active.empty()) return nullptr;
  if (is_legacy(stream)) {
    refuse(
        runtime, [&](const Capture& capture) { return has_blocking_stream(runtime, capture); },
        Error::capture_implicit,
        "the default stream waits for all others, and one of them captures a graph: the capture "
        "is invalid now (streams of cudaStreamNonBlocking are apart)");
  }
  Capture* const capture = runtime.graphs().captures.of(stream);
  if (capture != nullptr) check_valid(*capture);
  return capture;
}

bool capture(Runtime& runtime, StreamHandle stream, Work work) {
  Capture* const capture = capture_of(runtime, stream);
  if (capture == nullptr) return false;
  std::vector<Edge>& ends = capture->ends[stream];
  Node* const node = capture->graph->add(std::move(work), ends);
  ends = {{node, {}}};
  return true;
}

void refuse_while_capturing(Runtime& runtime) {
  const CaptureMode mode = thread_capture_mode();
  if (runtime.graphs().captures.active.empty() || mode == CaptureMode::relaxed) return;
  refuse(
      runtime,
      [&](const Capture& capture) {
        if (capture.thread == std::this_thread::get_id()) {
          return capture.mode != CaptureMode::relaxed;
        }
        return mode == CaptureMode::global && capture.mode == CaptureMode::global;
      },
      Error::capture_unsupported,
      "this call cannot be part of a graph, and a stream captures one: the capture is invalid now "
      "(cudaStreamCaptureModeRelaxed allows the call)");
}

void refuse_legacy_while_capturing(Runtime& runtime) {
  capture_of(runtime, 0);
  log_thread().call.in_order = false;
  refuse_while_capturing(runtime);
}

void refuse_device_while_capturing(Runtime& runtime) {
  refuse(
      runtime, [](const Capture&) { return true; }, Error::capture_unsupported,
      "nobody can wait for the device while a stream captures a graph: the capture is invalid now");
}

void refuse_stream_while_capturing(Runtime& runtime, StreamHandle stream) {
  Capture* const capture = capture_of(runtime, stream);
  if (capture == nullptr) return refuse_while_capturing(runtime);
  capture->invalidated = true;
  throw Failure(Error::capture_unsupported,
                "the stream captures a graph, so that it has no work to wait for: the capture is "
                "invalid now");
}

void refuse_callback_while_capturing(Runtime& runtime, StreamHandle stream) {
  Capture* const capture = capture_of(runtime, stream);
  if (capture == nullptr) return;
  capture->invalidated = true;
  throw Failure(Error::capture_unsupported,
                "callbacks cannot be part of a graph (cudaLaunchHostFunc can): the capture is "
                "invalid now");
}

void refuse_event_while_capturing(Runtime& runtime, EventHandle event) {
  const Runtime::Event& found = runtime.event(event);
  if (found.capture == 0) return refuse_while_capturing(runtime);
  const auto& active = runtime.graphs().captures.active;
  if (const auto capture = active.find(found.capture); capture != active.end()) {
    capture->second->invalidated = true;
  }
  throw Failure(Error::captured_event, "the event was last recorded by a stream that captures");
}

bool wait_in_capture(Runtime& runtime, StreamHandle stream, EventHandle event, unsigned flags) {
  Capture* const capture = capture_of(runtime, stream);
  const Runtime::Event& found = runtime.event(event);
  require((flags & ~external) == 0, "unknown flags");
  if ((flags & external) != 0) {
    require(capture != nullptr, "cudaEventWaitExternal is for streams that capture");
    return cudart::capture(runtime, stream, WaitWork{event});
  }
  Captures& captures = runtime.graphs().captures;
  if (found.capture == 0) {
    if (capture == nullptr || !found.recorded) return capture != nullptr;
    capture->invalidated = true;
    throw Failure(
        Error::capture_isolation,
        "a stream that captures cannot wait for an event that was recorded outside of the "
        "capture: the capture is invalid now");
  }
  const auto source = captures.active.find(found.capture);
  if (source == captures.active.end()) {
    throw Failure(Error::captured_event, "the event was last recorded in a capture that has ended");
  }
  check_valid(*source->second);
  if (is_legacy(stream)) {
    source->second->invalidated = true;
    throw Failure(Error::capture_implicit, "the default stream cannot take part in a capture");
  }
  if (capture != nullptr && capture != source->second.get()) {
    capture->invalidated = source->second->invalidated = true;
    throw Failure(Error::capture_merge,
                  "the event belongs to another capture: both captures are invalid now");
  }
  for (Node* const node : found.captured) add_end(source->second->ends[stream], node);
  source->second->ends.try_emplace(stream);  // even if there is no node yet
  return true;
}

bool record_in_capture(Runtime& runtime, EventHandle event, StreamHandle stream, unsigned flags) {
  Capture* const capture = capture_of(runtime, stream);
  Runtime::Event& found = runtime.event(event);
  require((flags & ~external) == 0, "unknown flags");
  require((flags & external) == 0 || capture != nullptr,
          "cudaEventRecordExternal is for streams that capture");
  if (capture == nullptr) return false;
  if ((flags & external) != 0) return cudart::capture(runtime, stream, RecordWork{event});
  found = {};
  found.capture = capture->number;
  for (const Edge& end : capture->ends[stream]) found.captured.push_back(end.from);
  return true;
}

void forget_stream(Runtime& runtime, StreamHandle stream) {
  Capture* const capture = runtime.graphs().captures.of(stream);
  if (capture == nullptr) return;
  if (capture->origin == stream) {
    capture->invalidated = true;
    throw Failure(Error::capture_unsupported,
                  "the stream captures a graph and cannot be destroyed before "
                  "cudaStreamEndCapture: the capture is invalid now");
  }
  for (const Edge& end : capture->ends[stream]) add_end(capture->left, end.from);
  capture->ends.erase(stream);
}

Capture& begin_capture(Runtime& runtime, StreamHandle stream, CaptureMode mode,
                       std::shared_ptr<Graph> own, Graph* graph, std::vector<Edge> ends) {
  runtime.stream(stream);
  const int value = static_cast<int>(mode);
  require(value >= 0 && value <= 2, "unknown mode of capture");
  require(!is_legacy(stream),
          "the default stream cannot capture: make a stream with cudaStreamCreate",
          Error::capture_unsupported);
  Captures& captures = runtime.graphs().captures;
  require(captures.of(stream) == nullptr, "the stream captures already", Error::illegal_state);
  auto capture = std::make_unique<Capture>();
  capture->number = ++captures.last_number;
  capture->graph = graph != nullptr ? graph : own.get();
  capture->own = std::move(own);
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  capture->ends[stream] = std::move(ends);
  return *(captures.active[capture->number] = std::move(capture));
}

Graph* end_capture(Runtime& runtime, StreamHandle stream) {
  runtime.stream(stream);
  GraphState& state = runtime.graphs();
  Capture* const found = state.captures.of(stream);
  require(found != nullptr, "the stream does not capture", Error::illegal_state);
  if (found->mode != CaptureMode::relaxed && found->thread != std::this_thread::get_id()) {
    throw Failure(Error::capture_wrong_thread,
                  "another thread began the capture, and not in cudaStreamCaptureModeRelaxed");
  }
  if (found->origin != stream) {
    found->invalidated = true;
    throw Failure(Error::capture_unmatched,
                  "the capture began in another stream: it is invalid now");
  }
  const auto entry = state.captures.active.find(found->number);
  const std::unique_ptr<Capture> capture = std::move(entry->second);
  state.captures.active.erase(entry);
  check_valid(*capture);
  // All work captured by other streams must come before the origin's last nodes.
  std::unordered_set<const Node*> before;
  std::vector<const Node*> open;
  for (const Edge& end : capture->ends[stream]) open.push_back(end.from);
  while (!open.empty()) {
    const Node* const next = open.back();
    open.pop_back();
    if (!before.insert(next).second) continue;
    for (const Edge& edge : next->dependencies) open.push_back(edge.from);
  }
  capture->ends[stream].insert(capture->ends[stream].end(), capture->left.begin(),
                               capture->left.end());
  for (const auto& [other, ends] : capture->ends) {
    for (const Edge& end : ends) {
      if (before.contains(end.from)) continue;
      throw Failure(
          Error::capture_unjoined,
          "another stream took part in the capture, and the stream in which it began does "
          "not wait for it: record an event there and wait for it before "
          "cudaStreamEndCapture");
    }
  }
  Graph* const graph = capture->graph;
  if (capture->own != nullptr) state.graphs[graph] = capture->own;
  return graph;
}

}  // namespace warpstack::cudart
