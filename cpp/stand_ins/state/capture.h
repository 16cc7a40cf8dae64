#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "stand_ins/state/abi_graph.h"

namespace warpstack::cudart {

class Runtime;

/// A dependency on a node.
struct Edge {
  Node* from = nullptr;
  EdgeData data;
};

/// cudaStreamCaptureMode
enum class CaptureMode : int { global, thread_local_only, relaxed };

/// A capture, between cudaStreamBeginCapture and cudaStreamEndCapture: streams put work into a
/// graph instead of running it.
struct Capture {
  std::uint64_t number = 0;
  Graph* graph = nullptr;
  std::shared_ptr<Graph> own;  ///< the same graph; null if the program owns it
  StreamHandle origin = 0;
  std::thread::id thread;
  CaptureMode mode = CaptureMode::global;
  bool invalidated = false;
  /// By stream that takes part: the nodes on which its next one depends.
  std::map<StreamHandle, std::vector<Edge>> ends;
  std::vector<Edge> left;  ///< the same for destroyed streams
};

/// The captures that are under way.
struct Captures {
  std::map<std::uint64_t, std::unique_ptr<Capture>> active;
  std::uint64_t last_number = 0;

  /// The capture in which a stream takes part, or null.
  [[nodiscard]] Capture* of(StreamHandle stream) const;
  /// Whether nodes are being captured into this graph.
  [[nodiscard]] bool into(const Graph* graph) const;
};

/// cudaThreadExchangeStreamCaptureMode's mode of the calling thread.
CaptureMode& thread_capture_mode();

/// Begins a capture into a new graph (`own`), or into one of the program's.
Capture& begin_capture(Runtime& runtime, StreamHandle stream, CaptureMode mode,
                       std::shared_ptr<Graph> own, Graph* graph, std::vector<Edge> ends);
/// Ends a capture. Throws Failure, and destroys the graph, if it is invalid or a stream was not
/// joined.
Graph* end_capture(Runtime& runtime, StreamHandle stream);

/// Adds a node to `ends`.
void add_end(std::vector<Edge>& ends, Node* node, const EdgeData& data = {});

/// The capture of a stream that is about to get work, or null. Throws Failure if the stream is
/// unknown, its capture is invalid, or it is the legacy default stream, which would wait for a
/// capturing stream. Operations of the call are in this stream from now on.
Capture* capture_of(Runtime& runtime, StreamHandle stream);

/// Refuses calls that are forbidden while this or another thread captures, such as cudaMalloc, and
/// invalidates the captures.
void refuse_while_capturing(Runtime& runtime);
/// The same for calls that use the legacy default stream, such as cudaMemcpy.
void refuse_legacy_while_capturing(Runtime& runtime);
/// The same for calls that wait for the whole device.
void refuse_device_while_capturing(Runtime& runtime);
/// The same for calls that ask for the state of a stream.
void refuse_stream_while_capturing(Runtime& runtime, StreamHandle stream);
/// The same for cudaStreamAddCallback.
void refuse_callback_while_capturing(Runtime& runtime, StreamHandle stream);
/// The same for an event recorded by a capturing stream.
void refuse_event_while_capturing(Runtime& runtime, EventHandle event);

/// cudaStreamWaitEvent: the stream joins the event's capture, or gets its nodes as dependencies.
/// True if a capture has handled it.
bool wait_in_capture(Runtime& runtime, StreamHandle stream, EventHandle event, unsigned flags);
/// cudaEventRecord: true if a capture has handled it.
bool record_in_capture(Runtime& runtime, EventHandle event, StreamHandle stream, unsigned flags);
/// cudaStreamDestroy
void forget_stream(Runtime& runtime, StreamHandle stream);

}  // namespace warpstack::cudart
