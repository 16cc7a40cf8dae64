#pragma once

#include <cstddef>

#include "stand_ins/log/computation.h"
#include "stand_ins/state/abi.h"

/// Functions of the stand-in for libcudart that libraries call: CUDA's, and some of its own.
extern "C" {

warpstack::cudart::Error cudaMalloc(void** pointer, std::size_t bytes);
warpstack::cudart::Error cudaFree(void* pointer);
warpstack::cudart::Error cudaMemset(void* pointer, int value, std::size_t bytes);
warpstack::cudart::Error cudaMemcpy(void* target, const void* source, std::size_t bytes,
                                    warpstack::cudart::MemcpyKind kind);
warpstack::cudart::Error cudaMemcpy2DAsync(void* target, std::size_t target_pitch,
                                           const void* source, std::size_t source_pitch,
                                           std::size_t width, std::size_t height,
                                           warpstack::cudart::MemcpyKind kind,
                                           warpstack::cudart::StreamHandle stream);
warpstack::cudart::Error cudaPointerGetAttributes(warpstack::cudart::PointerAttributes* attributes,
                                                  const void* pointer);
warpstack::cudart::Error cudaStreamIsCapturing(warpstack::cudart::StreamHandle stream, int* status);
warpstack::cudart::Error cudaStreamSynchronize(warpstack::cudart::StreamHandle stream);
const char* cudaGetErrorName(warpstack::cudart::Error error);
warpstack::cudart::Error cudaLaunchKernel(const void* stub, warpstack::cudart::Dim3 grid,
                                          warpstack::cudart::Dim3 block, void** arguments,
                                          std::size_t shared_bytes,
                                          warpstack::cudart::StreamHandle stream);
void** __cudaRegisterFatBinary(const warpstack::cudart::FatBinaryWrapper* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* device_function,
                            const char* name, int thread_limit, void* tid, void* bid,
                            void* block_dim, void* grid_dim, int* warp_size);

/// Prints a line on standard error that is no error.
void warpstack_cudart_note(const char* message);
/// Reports an error that makes results or traces incomplete; `warpstack trace` repeats it at the
/// end.
void warpstack_cudart_report(const char* message);
/// The two copy `bytes` of memory that kernels can use to the host, and back, in place of the
/// kernels of a library of NVIDIA's. A capturing stream is refused. `moved` are the bytes that
/// these kernels read and write, and `computation` is their arithmetic: timelines estimate their
/// time by both. Where `moved` is 0 another call says it.
warpstack::cudart::Error warpstack_cudart_read(const char* library, void* target,
                                               const void* source, std::size_t bytes,
                                               warpstack::cudart::StreamHandle stream);
warpstack::cudart::Error warpstack_cudart_write(const char* library, void* target,
                                                const void* source, std::size_t bytes,
                                                std::size_t moved,
                                                const warpstack::cudart::Computation& computation,
                                                warpstack::cudart::StreamHandle stream);
/// Whether the stream captures a graph.
bool warpstack_cudart_is_capturing(warpstack::cudart::StreamHandle stream);
/// Makes what a library computes a node of the graph that the stream captures. Each launch of the
/// graph calls run(data, stream), with its own stream, which returns whether it was successful and
/// has told the user why not; `destroy` is called with `data` once no graph has the node.
warpstack::cudart::Error warpstack_cudart_capture(
    const char* library, bool (*run)(void* data, warpstack::cudart::StreamHandle stream),
    void* data, void (*destroy)(void* data), warpstack::cudart::StreamHandle stream);
/// Between the two, the thread does what a GPU would: that is no time of the host. The second takes
/// what the first returns; `library` has to stay.
void* warpstack_cudart_begin_work(const char* library);
void warpstack_cudart_end_work(void* work);
}
