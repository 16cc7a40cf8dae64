#pragma once

#include <cstddef>

#include "stand_ins/state/abi_graph.h"
#include "stand_ins/state/capture.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/memory_pool.h"

/// Functions of the runtime that do the same as one of the driver.
extern "C" {

using warpstack::cudart::AccessDescription;
using warpstack::cudart::Array;
using warpstack::cudart::CaptureMode;
using warpstack::cudart::EdgeData;
using warpstack::cudart::Error;
using warpstack::cudart::EventHandle;
using warpstack::cudart::Executable;
using warpstack::cudart::Graph;
using warpstack::cudart::MemcpyKind;
using warpstack::cudart::MemoryLocation;
using warpstack::cudart::MemoryPool;
using warpstack::cudart::MemoryPoolProperties;
using warpstack::cudart::Node;
using warpstack::cudart::StreamHandle;

// Devices
Error cudaDriverGetVersion(int* number);
Error cudaGetDeviceCount(int* count);
Error cudaDeviceGetAttribute(int* value, int number, int device);
Error cudaDeviceCanAccessPeer(int* can, int device, int other);
Error cudaDeviceGetPCIBusId(char* text, int bytes, int device);
Error cudaDeviceGetByPCIBusId(int* device, const char* text);
Error cudaDeviceSynchronize();
Error cudaDeviceSetLimit(int limit, std::size_t value);
Error cudaDeviceGetLimit(std::size_t* value, int limit);
Error cudaDeviceGetCacheConfig(int* configuration);
Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest);

// Kernels
Error cudaFuncSetAttribute(const void* stub, int attribute, int value);
Error cudaFuncGetName(const char** name, const void* stub);
Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int threads,
                                                    std::size_t dynamic_bytes);
Error cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* stub, int blocks,
                                                int threads);
Error cudaLaunchHostFunc(StreamHandle stream, void (*function)(void*), void* data);

// Memory
Error cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags);
Error cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);
Error cudaMallocHost(void** pointer, std::size_t bytes);
Error cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height);
Error cudaFree(void* pointer);
Error cudaFreeHost(void* pointer);
Error cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned flags);
Error cudaHostGetFlags(unsigned* flags, void* pointer);
Error cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags);
Error cudaHostUnregister(void* pointer);
Error cudaMemGetInfo(std::size_t* free, std::size_t* total);
Error cudaMemcpy(void* target, const void* source, std::size_t bytes, MemcpyKind kind);
Error cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, MemcpyKind kind,
                      StreamHandle stream);
Error cudaMemcpyToArray(Array* target, std::size_t x, std::size_t y, const void* source,
                        std::size_t bytes, MemcpyKind kind);
Error cudaMemcpyFromArray(void* target, const Array* source, std::size_t x, std::size_t y,
                          std::size_t bytes, MemcpyKind kind);
Error cudaMallocAsync(void** pointer, std::size_t bytes, StreamHandle stream);
Error cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, MemoryPool* pool,
                              StreamHandle stream);
Error cudaFreeAsync(void* pointer, StreamHandle stream);
Error cudaMemPoolCreate(MemoryPool** pool, const MemoryPoolProperties* properties);
Error cudaMemPoolDestroy(MemoryPool* pool);
Error cudaMemPoolTrimTo(MemoryPool* pool, std::size_t bytes);
Error cudaMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value);
Error cudaMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value);
Error cudaMemPoolSetAccess(MemoryPool* pool, const AccessDescription* descriptions,
                           std::size_t count);
Error cudaMemPoolGetAccess(int* flags, MemoryPool* pool, MemoryLocation* location);
Error cudaDeviceGetDefaultMemPool(MemoryPool** pool, int device);
Error cudaDeviceGetMemPool(MemoryPool** pool, int device);
Error cudaDeviceSetMemPool(int device, MemoryPool* pool);
Error cudaFreeArray(Array* array);
Error cudaCreateTextureObject(std::uint64_t* object,
                              const warpstack::cudart::ResourceDescription* resource,
                              const warpstack::cudart::TextureDescription* texture,
                              const void* view);
Error cudaDestroyTextureObject(std::uint64_t object);
Error cudaCreateSurfaceObject(std::uint64_t* object,
                              const warpstack::cudart::ResourceDescription* resource);

// Streams and events
Error cudaStreamCreateWithPriority(StreamHandle* stream, unsigned flags, int priority);
Error cudaStreamDestroy(StreamHandle stream);
Error cudaStreamSynchronize(StreamHandle stream);
Error cudaStreamQuery(StreamHandle stream);
Error cudaStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned flags);
Error cudaStreamGetFlags(StreamHandle stream, unsigned* flags);
Error cudaStreamGetPriority(StreamHandle stream, int* priority);
Error cudaStreamGetId(StreamHandle stream, unsigned long long* id);
Error cudaStreamGetDevice(StreamHandle stream, int* device);
Error cudaStreamAddCallback(StreamHandle stream, void (*function)(StreamHandle, Error, void*),
                            void* data, unsigned flags);
Error cudaEventCreateWithFlags(EventHandle* event, unsigned flags);
Error cudaEventRecordWithFlags(EventHandle event, StreamHandle stream, unsigned flags);
Error cudaEventSynchronize(EventHandle event);
Error cudaEventQuery(EventHandle event);
Error cudaEventElapsedTime(float* milliseconds, EventHandle start, EventHandle end);
Error cudaEventDestroy(EventHandle event);

// Capture and graphs
Error cudaStreamBeginCapture(StreamHandle stream, CaptureMode mode);
Error cudaStreamEndCapture(StreamHandle stream, Graph** graph);
Error cudaStreamIsCapturing(StreamHandle stream, int* status);
Error cudaStreamGetCaptureInfo_v2(StreamHandle stream, int* status, unsigned long long* number,
                                  Graph** graph, Node* const** nodes, std::size_t* count);
Error cudaStreamGetCaptureInfo_v3(StreamHandle stream, int* status, unsigned long long* number,
                                  Graph** graph, Node* const** nodes, const EdgeData** data,
                                  std::size_t* count);
Error cudaThreadExchangeStreamCaptureMode(CaptureMode* mode);
Error cudaGraphCreate(Graph** graph, unsigned flags);
Error cudaGraphDestroy(Graph* graph);
Error cudaGraphGetNodes(Graph* graph, Node** place, std::size_t* count);
Error cudaGraphGetRootNodes(Graph* graph, Node** place, std::size_t* count);
Error cudaGraphNodeGetType(Node* node, int* type);
Error cudaGraphInstantiateWithFlags(Executable** executable, Graph* graph,
                                    unsigned long long flags);
Error cudaGraphUpload(Executable* executable, StreamHandle stream);
Error cudaGraphLaunch(Executable* executable, StreamHandle stream);
Error cudaGraphExecDestroy(Executable* executable);
}
