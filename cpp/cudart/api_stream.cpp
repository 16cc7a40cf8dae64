// Streams and events. Every call has done its work when it returns, so that there is nothing to
// wait for: one order of execution that the program allows.

#include "cudart/runtime.h"

using namespace warpstack::cudart;

namespace {

Error synchronize(const char* function, StreamHandle handle) {
  return call(function, [&](Runtime& runtime) { runtime.stream(handle); });
}

}  // namespace

// --- streams ------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaStreamCreateWithPriority(StreamHandle* stream, unsigned flags,
                                                 int priority) {
  return call(__func__, [&](Runtime& runtime) {
    require(stream != nullptr, "nowhere to put the stream");
    *stream = runtime.add_stream(flags, priority);
  });
}

CUDART_EXPORT Error cudaStreamCreate(StreamHandle* stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

CUDART_EXPORT Error cudaStreamCreateWithFlags(StreamHandle* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

CUDART_EXPORT Error cudaStreamDestroy(StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) { runtime.remove_stream(stream); });
}

CUDART_EXPORT Error cudaStreamSynchronize(StreamHandle stream) {
  return synchronize(__func__, stream);
}
CUDART_ALIAS(cudaStreamSynchronize_ptsz, cudaStreamSynchronize);

CUDART_EXPORT Error cudaStreamQuery(StreamHandle stream) { return synchronize(__func__, stream); }
CUDART_ALIAS(cudaStreamQuery_ptsz, cudaStreamQuery);

CUDART_EXPORT Error cudaStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.stream(stream);
    runtime.event(event);
  });
}
CUDART_ALIAS(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent);

CUDART_EXPORT Error cudaStreamGetFlags(StreamHandle stream, unsigned* flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(flags != nullptr, "nowhere to put the flags");
    *flags = runtime.stream(stream).flags;
  });
}
CUDART_ALIAS(cudaStreamGetFlags_ptsz, cudaStreamGetFlags);

CUDART_EXPORT Error cudaStreamGetPriority(StreamHandle stream, int* priority) {
  return call(__func__, [&](Runtime& runtime) {
    require(priority != nullptr, "nowhere to put the priority");
    *priority = runtime.stream(stream).priority;
  });
}
CUDART_ALIAS(cudaStreamGetPriority_ptsz, cudaStreamGetPriority);

CUDART_EXPORT Error cudaStreamGetId(StreamHandle stream, unsigned long long* id) {
  return call(__func__, [&](Runtime& runtime) {
    require(id != nullptr, "nowhere to put the number");
    *id = runtime.stream(stream).number;
  });
}
CUDART_ALIAS(cudaStreamGetId_ptsz, cudaStreamGetId);

CUDART_EXPORT Error cudaStreamGetDevice(StreamHandle stream, int* device) {
  return call(__func__, [&](Runtime& runtime) {
    require(device != nullptr, "nowhere to put the number");
    runtime.stream(stream);
    *device = 0;
  });
}
CUDART_ALIAS(cudaStreamGetDevice_ptsz, cudaStreamGetDevice);

/// No stream is ever recorded into a graph.
CUDART_EXPORT Error cudaStreamIsCapturing(StreamHandle stream, int* status) {
  return call(__func__, [&](Runtime& runtime) {
    require(status != nullptr, "nowhere to put the status");
    runtime.stream(stream);
    *status = 0;
  });
}
CUDART_ALIAS(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);

/// The first output of every version of this function is the status.
CUDART_EXPORT Error cudaStreamGetCaptureInfo(StreamHandle stream, int* status) {
  return call(__func__, [&](Runtime& runtime) {
    require(status != nullptr, "nowhere to put the status");
    runtime.stream(stream);
    *status = 0;
  });
}
CUDART_ALIAS(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);
CUDART_ALIAS(cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo);
CUDART_ALIAS(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo);
CUDART_ALIAS(cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo);
CUDART_ALIAS(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo);

CUDART_EXPORT Error cudaThreadExchangeStreamCaptureMode(int* mode) {
  return call(__func__, [&](Runtime&) { require(mode != nullptr, "no mode"); });
}

// --- events -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaEventCreate(EventHandle* event) {
  return call(__func__, [&](Runtime& runtime) {
    require(event != nullptr, "nowhere to put the event");
    *event = runtime.add_event();
  });
}

CUDART_EXPORT Error cudaEventCreateWithFlags(EventHandle* event, unsigned) {
  return cudaEventCreate(event);
}

CUDART_EXPORT Error cudaEventRecord(EventHandle event, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.stream(stream);
    runtime.event(event) = {runtime.now(), true};
  });
}
CUDART_ALIAS(cudaEventRecord_ptsz, cudaEventRecord);

CUDART_EXPORT Error cudaEventRecordWithFlags(EventHandle event, StreamHandle stream, unsigned) {
  return cudaEventRecord(event, stream);
}
CUDART_ALIAS(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags);

CUDART_EXPORT Error cudaEventSynchronize(EventHandle event) {
  return call(__func__, [&](Runtime& runtime) { runtime.event(event); });
}

CUDART_EXPORT Error cudaEventQuery(EventHandle event) {
  return call(__func__, [&](Runtime& runtime) { runtime.event(event); });
}

CUDART_EXPORT Error cudaEventElapsedTime(float* milliseconds, EventHandle start, EventHandle end) {
  return call(__func__, [&](Runtime& runtime) {
    require(milliseconds != nullptr, "nowhere to put the time");
    const Runtime::Event first = runtime.event(start);
    const Runtime::Event last = runtime.event(end);
    require(first.recorded && last.recorded, "an event was never recorded",
            Error::invalid_resource_handle);
    const auto nanoseconds = static_cast<double>(last.time) - static_cast<double>(first.time);
    *milliseconds = static_cast<float>(nanoseconds / 1e6);
  });
}
CUDART_ALIAS(cudaEventElapsedTime_v2, cudaEventElapsedTime);

CUDART_EXPORT Error cudaEventDestroy(EventHandle event) {
  return call(__func__, [&](Runtime& runtime) { runtime.remove_event(event); });
}
