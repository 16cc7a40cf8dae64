#pragma once

#include <cstddef>

#include "stand_ins/state/abi.h"

/// Functions of the stand-in for libcudart that this one calls: CUDA's, and three of its own.
extern "C" {

warpstack::cudart::Error cudaMalloc(void** pointer, std::size_t bytes);
warpstack::cudart::Error cudaFree(void* pointer);
const char* cudaGetErrorName(warpstack::cudart::Error error);

/// Prints a line on standard error that is no error.
void warpstack_cudart_note(const char* message);
/// Reports an error that makes results or traces incomplete; `warpstack trace` repeats it at the
/// end.
void warpstack_cudart_report(const char* message);
/// Copies `bytes` of the host to memory that kernels can write, in place of the kernels of a
/// library of NVIDIA's. A capturing stream is refused.
warpstack::cudart::Error warpstack_cudart_write(const char* library, void* target,
                                                const void* source, std::size_t bytes,
                                                warpstack::cudart::StreamHandle stream);
/// Between the two, the thread does what a GPU would: that is no time of the host. The second takes
/// what the first returns; `library` has to stay.
void* warpstack_cudart_begin_work(const char* library);
void warpstack_cudart_end_work(void* work);
}
