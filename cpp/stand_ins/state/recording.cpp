#include "stand_ins/state/recording.h"

namespace warpstack::cudart {
namespace {

using Kind = PointerAttributes::Kind;

/// Bytes up to which a copy from pageable memory returns before it is done (CUDA C++ Programming
/// Guide, Concurrent Execution between Host and Device).
constexpr std::uint64_t staged_bytes = 64 << 10;

struct Side {
  bool on_device = false;
  bool pinned = false;
};

Side side_of(Runtime& runtime, std::uint64_t address) {
  const Kind kind = runtime.kind_of(address);
  if (kind == Kind::host) return {false, true};
  return {kind != Kind::unregistered || runtime.on_device(address), false};
}

/// Whether nodes of graphs and work of kernels ask for the operation: the host waits for none.
bool is_of_device() {
  const CallContext& call = log_thread().call;
  return call.graph >= 0 || call.parent != 0;
}

/// Whether the program goes on before a copy is done (CUDA Runtime API, API synchronization
/// behavior).
bool returns_early(Direction direction, bool pinned, std::uint64_t bytes) {
  if (is_of_device() || direction == Direction::device_to_device) return true;
  if (direction == Direction::host_to_host) return false;
  if (pinned) return log_thread().call.in_order;
  return direction == Direction::host_to_device && bytes <= staged_bytes;
}

StreamOfOperation stream_of_call(Runtime& runtime) {
  return runtime.stream_of_operation(log_thread().call.stream);
}

Operation of_kind(OperationKind kind) {
  Operation operation;
  operation.kind = kind;
  return operation;
}
/// Work of a stream, which the host does not wait for.
Operation in_stream(Runtime& runtime, OperationKind kind, StreamHandle stream) {
  Operation operation = of_kind(kind);
  operation.stream = runtime.stream_of_operation(stream);
  operation.asynchronous = true;
  return operation;
}

}  // namespace

StreamOfOperation Runtime::stream_of_operation(StreamHandle handle) {
  LogThread& thread = log_thread();
  constexpr StreamHandle per_thread = 2;
  if (handle == per_thread || (handle == 0 && thread.per_thread_default)) {
    if (thread.default_stream < 0) {
      thread.default_stream = static_cast<std::int64_t>(next_stream_++);
    }
    return {thread.default_stream, true, 0};
  }
  const Stream found = stream(handle);
  return {static_cast<std::int64_t>(found.number), (found.flags & 1) == 0, found.priority};
}

std::uint64_t record_launch(Runtime& runtime, const std::string& kernel, const Runtime::Call& call,
                            std::uint64_t launch) {
  Operation operation = in_stream(runtime, OperationKind::kernel, call.stream);
  operation.name = kernel;
  operation.launch = launch;
  operation.programmatic = call.programmatic;
  runtime.log().add(operation);
  return static_cast<std::uint64_t>(operation.stream.number);
}

void record_copy(Runtime& runtime, std::uint64_t target, std::uint64_t source,
                 std::uint64_t bytes) {
  if (!runtime.log().is_on()) return;
  const Side to = side_of(runtime, target);
  const Side from = side_of(runtime, source);
  Operation operation = of_kind(OperationKind::copy);
  operation.stream = stream_of_call(runtime);
  operation.bytes = bytes;
  operation.direction =
      to.on_device     ? from.on_device ? Direction::device_to_device : Direction::host_to_device
      : from.on_device ? Direction::device_to_host
                       : Direction::host_to_host;
  operation.pinned = (to.on_device || to.pinned) && (from.on_device || from.pinned) &&
                     operation.direction != Direction::device_to_device;
  operation.asynchronous = returns_early(operation.direction, operation.pinned, bytes);
  runtime.log().add(operation);
}

void record_prefetch(Runtime& runtime, StreamHandle stream, std::uint64_t bytes, bool to_device) {
  Operation operation = in_stream(runtime, OperationKind::copy, stream);
  operation.bytes = bytes;
  operation.direction = to_device ? Direction::host_to_device : Direction::device_to_host;
  runtime.log().add(operation);
}

void record_fill(Runtime& runtime, std::uint64_t target, std::uint64_t bytes) {
  if (!runtime.log().is_on()) return;
  Operation operation = of_kind(OperationKind::fill);
  operation.stream = stream_of_call(runtime);
  operation.bytes = bytes;
  operation.pinned = side_of(runtime, target).pinned;
  operation.asynchronous = is_of_device() || log_thread().call.in_order || !operation.pinned;
  runtime.log().add(operation);
}

void record_library(Runtime& runtime, const std::string& library, StreamHandle stream,
                    std::uint64_t bytes, const Computation& computation) {
  Operation operation = in_stream(runtime, OperationKind::library, stream);
  operation.name = library;
  operation.bytes = bytes;
  operation.computation = computation;
  runtime.log().add(operation);
}

void record_stream(Runtime& runtime, OperationKind kind, StreamHandle stream) {
  Operation operation = in_stream(runtime, kind, stream);
  operation.asynchronous = kind != OperationKind::stream_synchronize;
  runtime.log().add(operation);
}

void record_event(Runtime& runtime, OperationKind kind, EventHandle event, StreamHandle stream) {
  Operation operation =
      kind == OperationKind::event_synchronize ? of_kind(kind) : in_stream(runtime, kind, stream);
  operation.event = runtime.event(event).number;
  runtime.log().add(operation);
}

void record_allocation(Runtime& runtime, std::uint64_t bytes, bool pinned) {
  Operation operation = of_kind(OperationKind::allocate);
  operation.bytes = bytes;
  operation.pinned = pinned;
  operation.asynchronous = is_of_device() || log_thread().call.in_order;
  if (operation.asynchronous) operation.stream = stream_of_call(runtime);
  runtime.log().add(operation);
}

void record_free(Runtime& runtime, std::uint64_t address) {
  if (!runtime.log().is_on()) return;
  const auto known = runtime.memory_at(address);
  if (!known) return;
  Operation operation = of_kind(OperationKind::free);
  operation.bytes = known->bytes;
  operation.pinned = known->kind == Kind::host;
  operation.asynchronous = is_of_device() || log_thread().call.in_order;
  if (operation.asynchronous) operation.stream = stream_of_call(runtime);
  runtime.log().add(operation);
}

void record_synchronization(Runtime& runtime) {
  runtime.log().add(of_kind(OperationKind::device_synchronize));
}

}  // namespace warpstack::cudart
