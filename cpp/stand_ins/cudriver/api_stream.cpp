// Streams, events, capture and graphs: the runtime's functions under the driver's names.

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/cudriver/runtime_calls.h"

using namespace warpstack::cudriver;

// --- streams ------------------------------------------------------------------------------------

CUDART_EXPORT Error cuStreamCreateWithPriority(StreamHandle* stream, unsigned flags, int priority) {
  return forward(__func__, [&] {
    if (flags > 1) return mistake("CU_STREAM_NON_BLOCKING is the only flag");
    return cudaStreamCreateWithPriority(stream, flags, priority);
  });
}

CUDART_EXPORT Error cuStreamCreate(StreamHandle* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUDART_EXPORT Error cuStreamDestroy_v2(StreamHandle stream) {
  return forward(__func__, [&] { return cudaStreamDestroy(stream); });
}
CUDART_ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

CUDART_EXPORT Error cuStreamSynchronize(StreamHandle stream) {
  return forward(__func__, [&] { return cudaStreamSynchronize(stream); });
}
CUDART_PER_THREAD(cuStreamSynchronize_ptsz, cuStreamSynchronize);

CUDART_EXPORT Error cuStreamQuery(StreamHandle stream) {
  return forward(__func__, [&] { return cudaStreamQuery(stream); });
}
CUDART_PER_THREAD(cuStreamQuery_ptsz, cuStreamQuery);

CUDART_EXPORT Error cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned flags) {
  return forward(__func__, [&] { return cudaStreamWaitEvent(stream, event, flags); });
}
CUDART_PER_THREAD(cuStreamWaitEvent_ptsz, cuStreamWaitEvent);

CUDART_EXPORT Error cuStreamGetFlags(StreamHandle stream, unsigned* flags) {
  return forward(__func__, [&] { return cudaStreamGetFlags(stream, flags); });
}
CUDART_PER_THREAD(cuStreamGetFlags_ptsz, cuStreamGetFlags);

CUDART_EXPORT Error cuStreamGetPriority(StreamHandle stream, int* priority) {
  return forward(__func__, [&] { return cudaStreamGetPriority(stream, priority); });
}
CUDART_PER_THREAD(cuStreamGetPriority_ptsz, cuStreamGetPriority);

CUDART_EXPORT Error cuStreamGetId(StreamHandle stream, unsigned long long* number) {
  return forward(__func__, [&] { return cudaStreamGetId(stream, number); });
}
CUDART_PER_THREAD(cuStreamGetId_ptsz, cuStreamGetId);

CUDART_EXPORT Error cuStreamGetDevice(StreamHandle stream, int* device) {
  return forward(__func__, [&] { return cudaStreamGetDevice(stream, device); });
}
CUDART_PER_THREAD(cuStreamGetDevice_ptsz, cuStreamGetDevice);

CUDART_EXPORT Error cuStreamGetCtx(StreamHandle stream, Context** context) {
  return drive(__func__, [&](Runtime& runtime) {
    require(context != nullptr, "nowhere to put the context");
    runtime.stream(stream);
    *context = Driver::get().current();
  });
}
CUDART_PER_THREAD(cuStreamGetCtx_ptsz, cuStreamGetCtx);

/// There are no green contexts.
CUDART_EXPORT Error cuStreamGetCtx_v2(StreamHandle stream, Context** context, void** green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}
CUDART_PER_THREAD(cuStreamGetCtx_v2_ptsz, cuStreamGetCtx_v2);

CUDART_EXPORT Error cuStreamAddCallback(StreamHandle stream,
                                        void (*function)(StreamHandle, Error, void*), void* data,
                                        unsigned flags) {
  return forward(__func__, [&] { return cudaStreamAddCallback(stream, function, data, flags); });
}
CUDART_PER_THREAD(cuStreamAddCallback_ptsz, cuStreamAddCallback);

CUDART_EXPORT Error cuLaunchHostFunc(StreamHandle stream, void (*function)(void*), void* data) {
  return forward(__func__, [&] { return cudaLaunchHostFunc(stream, function, data); });
}
CUDART_PER_THREAD(cuLaunchHostFunc_ptsz, cuLaunchHostFunc);

// --- events -------------------------------------------------------------------------------------

CUDART_EXPORT Error cuEventCreate(EventHandle* event, unsigned flags) {
  return forward(__func__, [&] { return cudaEventCreateWithFlags(event, flags); });
}

CUDART_EXPORT Error cuEventRecordWithFlags(EventHandle event, StreamHandle stream, unsigned flags) {
  return forward(__func__, [&] { return cudaEventRecordWithFlags(event, stream, flags); });
}
CUDART_PER_THREAD(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags);

CUDART_EXPORT Error cuEventRecord(EventHandle event, StreamHandle stream) {
  return forward(__func__, [&] { return cudaEventRecordWithFlags(event, stream, 0); });
}
CUDART_PER_THREAD(cuEventRecord_ptsz, cuEventRecord);

CUDART_EXPORT Error cuEventSynchronize(EventHandle event) {
  return forward(__func__, [&] { return cudaEventSynchronize(event); });
}

CUDART_EXPORT Error cuEventQuery(EventHandle event) {
  return forward(__func__, [&] { return cudaEventQuery(event); });
}

CUDART_EXPORT Error cuEventElapsedTime(float* milliseconds, EventHandle start, EventHandle end) {
  return forward(__func__, [&] { return cudaEventElapsedTime(milliseconds, start, end); });
}
CUDART_ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);

CUDART_EXPORT Error cuEventDestroy_v2(EventHandle event) {
  return forward(__func__, [&] { return cudaEventDestroy(event); });
}
CUDART_ALIAS(cuEventDestroy, cuEventDestroy_v2);

// --- capture and graphs -------------------------------------------------------------------------

CUDART_EXPORT Error cuStreamBeginCapture_v2(StreamHandle stream, CaptureMode mode) {
  return forward(__func__, [&] { return cudaStreamBeginCapture(stream, mode); });
}
CUDART_PER_THREAD(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture_v2);

CUDART_EXPORT Error cuStreamEndCapture(StreamHandle stream, Graph** graph) {
  return forward(__func__, [&] { return cudaStreamEndCapture(stream, graph); });
}
CUDART_PER_THREAD(cuStreamEndCapture_ptsz, cuStreamEndCapture);

CUDART_EXPORT Error cuStreamIsCapturing(StreamHandle stream, int* status) {
  return forward(__func__, [&] { return cudaStreamIsCapturing(stream, status); });
}
CUDART_PER_THREAD(cuStreamIsCapturing_ptsz, cuStreamIsCapturing);

CUDART_EXPORT Error cuStreamGetCaptureInfo_v2(StreamHandle stream, int* status,
                                              unsigned long long* number, Graph** graph,
                                              Node* const** nodes, std::size_t* count) {
  return forward(__func__, [&] {
    return cudaStreamGetCaptureInfo_v2(stream, status, number, graph, nodes, count);
  });
}
CUDART_PER_THREAD(cuStreamGetCaptureInfo_v2_ptsz, cuStreamGetCaptureInfo_v2);

CUDART_EXPORT Error cuStreamGetCaptureInfo_v3(StreamHandle stream, int* status,
                                              unsigned long long* number, Graph** graph,
                                              Node* const** nodes, const EdgeData** data,
                                              std::size_t* count) {
  return forward(__func__, [&] {
    return cudaStreamGetCaptureInfo_v3(stream, status, number, graph, nodes, data, count);
  });
}
CUDART_PER_THREAD(cuStreamGetCaptureInfo_v3_ptsz, cuStreamGetCaptureInfo_v3);

CUDART_EXPORT Error cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  return forward(
      __func__, [&] { return cudaThreadExchangeStreamCaptureMode(mode); }, Needs::initialization);
}

CUDART_EXPORT Error cuGraphCreate(Graph** graph, unsigned flags) {
  return forward(__func__, [&] { return cudaGraphCreate(graph, flags); }, Needs::initialization);
}

CUDART_EXPORT Error cuGraphDestroy(Graph* graph) {
  return forward(__func__, [&] { return cudaGraphDestroy(graph); }, Needs::initialization);
}

CUDART_EXPORT Error cuGraphGetNodes(Graph* graph, Node** place, std::size_t* count) {
  return forward(
      __func__, [&] { return cudaGraphGetNodes(graph, place, count); }, Needs::initialization);
}

CUDART_EXPORT Error cuGraphGetRootNodes(Graph* graph, Node** place, std::size_t* count) {
  return forward(
      __func__, [&] { return cudaGraphGetRootNodes(graph, place, count); }, Needs::initialization);
}

CUDART_EXPORT Error cuGraphNodeGetType(Node* node, int* type) {
  return forward(__func__, [&] { return cudaGraphNodeGetType(node, type); }, Needs::initialization);
}

CUDART_EXPORT Error cuGraphInstantiateWithFlags(Executable** executable, Graph* graph,
                                                unsigned long long flags) {
  return forward(__func__, [&] { return cudaGraphInstantiateWithFlags(executable, graph, flags); });
}

CUDART_EXPORT Error cuGraphUpload(Executable* executable, StreamHandle stream) {
  return forward(__func__, [&] { return cudaGraphUpload(executable, stream); });
}
CUDART_PER_THREAD(cuGraphUpload_ptsz, cuGraphUpload);

CUDART_EXPORT Error cuGraphLaunch(Executable* executable, StreamHandle stream) {
  return forward(__func__, [&] { return cudaGraphLaunch(executable, stream); });
}
CUDART_PER_THREAD(cuGraphLaunch_ptsz, cuGraphLaunch);

CUDART_EXPORT Error cuGraphExecDestroy(Executable* executable) {
  return forward(__func__, [&] { return cudaGraphExecDestroy(executable); }, Needs::initialization);
}
