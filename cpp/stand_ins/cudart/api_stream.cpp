// Streams and events. Every call has done its work when it returns, so there is nothing to wait
// for; the program allows this order of execution.

#include "stand_ins/state/capture.h"
#include "stand_ins/state/memory_pool.h"
#include "stand_ins/state/recording.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

Error synchronize(const char* function, StreamHandle handle) {
  return call(function, [&](Runtime& runtime) {
    refuse_stream_while_capturing(runtime, handle);
    runtime.pools().synchronize();
    record_stream(runtime, OperationKind::stream_synchronize, handle);
  });
}

}  // namespace

// --- streams ------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaStreamCreateWithPriority(StreamHandle* stream, unsigned flags,
                                                 int priority) {
  return call(__func__, [&](Runtime& runtime) {
    require(stream != nullptr, "nowhere to put the stream");
    require(flags <= 1, "unknown flags");  // cudaStreamNonBlocking
    *stream = runtime.add_stream(flags, priority);
  });
}

CUDART_EXPORT Error cudaStreamCreate(StreamHandle* stream) {
  const ApiCall api_call(__func__);
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

CUDART_EXPORT Error cudaStreamCreateWithFlags(StreamHandle* stream, unsigned flags) {
  const ApiCall api_call(__func__);
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

CUDART_EXPORT Error cudaStreamDestroy(StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    forget_stream(runtime, stream);
    runtime.remove_stream(stream);
  });
}

CUDART_EXPORT Error cudaStreamSynchronize(StreamHandle stream) {
  return synchronize(__func__, stream);
}
CUDART_PER_THREAD(cudaStreamSynchronize_ptsz, cudaStreamSynchronize);

CUDART_EXPORT Error cudaStreamQuery(StreamHandle stream) { return synchronize(__func__, stream); }
CUDART_PER_THREAD(cudaStreamQuery_ptsz, cudaStreamQuery);

CUDART_EXPORT Error cudaStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    if (wait_in_capture(runtime, stream, event, flags)) return;
    record_event(runtime, OperationKind::event_wait, event, stream);
  });
}
CUDART_PER_THREAD(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent);

CUDART_EXPORT Error cudaStreamGetFlags(StreamHandle stream, unsigned* flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(flags != nullptr, "nowhere to put the flags");
    *flags = runtime.stream(stream).flags;
  });
}
CUDART_PER_THREAD(cudaStreamGetFlags_ptsz, cudaStreamGetFlags);

CUDART_EXPORT Error cudaStreamGetPriority(StreamHandle stream, int* priority) {
  return call(__func__, [&](Runtime& runtime) {
    require(priority != nullptr, "nowhere to put the priority");
    *priority = runtime.stream(stream).priority;
  });
}
CUDART_PER_THREAD(cudaStreamGetPriority_ptsz, cudaStreamGetPriority);

CUDART_EXPORT Error cudaStreamGetId(StreamHandle stream, unsigned long long* id) {
  return call(__func__, [&](Runtime& runtime) {
    require(id != nullptr, "nowhere to put the number");
    *id = runtime.stream(stream).number;
  });
}
CUDART_PER_THREAD(cudaStreamGetId_ptsz, cudaStreamGetId);

CUDART_EXPORT Error cudaStreamGetDevice(StreamHandle stream, int* device) {
  return call(__func__, [&](Runtime& runtime) {
    require(device != nullptr, "nowhere to put the number");
    runtime.stream(stream);
    *device = 0;
  });
}
CUDART_PER_THREAD(cudaStreamGetDevice_ptsz, cudaStreamGetDevice);

// --- events -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaEventCreate(EventHandle* event) {
  return call(__func__, [&](Runtime& runtime) {
    require(event != nullptr, "nowhere to put the event");
    *event = runtime.add_event();
  });
}

CUDART_EXPORT Error cudaEventCreateWithFlags(EventHandle* event, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    constexpr unsigned blocking = 1;
    constexpr unsigned no_timing = 2;
    constexpr unsigned between_processes = 4;
    require(event != nullptr, "nowhere to put the event");
    require((flags & ~(blocking | no_timing | between_processes)) == 0, "unknown flags");
    require((flags & between_processes) == 0 || (flags & no_timing) != 0,
            "an event for several processes must not have times");
    *event = runtime.add_event((flags & no_timing) == 0);
  });
}

CUDART_EXPORT Error cudaEventRecordWithFlags(EventHandle event, StreamHandle stream,
                                             unsigned flags) {
  return call(__func__, [&](Runtime& runtime) { runtime.record(event, stream, flags); });
}
CUDART_PER_THREAD(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags);

CUDART_EXPORT Error cudaEventRecord(EventHandle event, StreamHandle stream) {
  const ApiCall api_call(__func__);
  return cudaEventRecordWithFlags(event, stream, 0);
}
CUDART_PER_THREAD(cudaEventRecord_ptsz, cudaEventRecord);

CUDART_EXPORT Error cudaEventSynchronize(EventHandle event) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_event_while_capturing(runtime, event);
    runtime.pools().synchronize();
    record_event(runtime, OperationKind::event_synchronize, event);
  });
}

CUDART_EXPORT Error cudaEventQuery(EventHandle event) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_event_while_capturing(runtime, event);
    record_event(runtime, OperationKind::event_synchronize, event);
  });
}

CUDART_EXPORT Error cudaEventElapsedTime(float* milliseconds, EventHandle start, EventHandle end) {
  return call(__func__, [&](Runtime& runtime) {
    require(milliseconds != nullptr, "nowhere to put the time");
    const Runtime::Event first = runtime.event(start);
    const Runtime::Event last = runtime.event(end);
    require(first.capture == 0 && last.capture == 0,
            "an event was last recorded by a stream that captures", Error::captured_event);
    require(first.recorded && last.recorded, "an event was never recorded",
            Error::invalid_resource_handle);
    require(first.is_timed && last.is_timed, "an event was made without times",
            Error::invalid_resource_handle);
    const auto nanoseconds = static_cast<double>(last.time) - static_cast<double>(first.time);
    *milliseconds = static_cast<float>(nanoseconds / 1e6);
  });
}
CUDART_ALIAS(cudaEventElapsedTime_v2, cudaEventElapsedTime);

CUDART_EXPORT Error cudaEventDestroy(EventHandle event) {
  return call(__func__, [&](Runtime& runtime) { runtime.remove_event(event); });
}
