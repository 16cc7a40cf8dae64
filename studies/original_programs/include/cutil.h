// A stand-in for the header of CUDA's SDK before CUDA 5, as far as the suites use it: checked calls
// and timers, which always show 0.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CUDA_SAFE_CALL_NO_SYNC(call)                                       \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)
#define CUDA_SAFE_CALL(call) CUDA_SAFE_CALL_NO_SYNC(call)
#define CUT_SAFE_CALL(call) (void)(call)
#define CUT_CHECK_ERROR(text) CUDA_SAFE_CALL_NO_SYNC(cudaGetLastError())
#define CUT_BANK_CHECKER(array, index) array[index]

inline int cutCreateTimer(unsigned*) { return 1; }
inline int cutStartTimer(unsigned) { return 1; }
inline int cutStopTimer(unsigned) { return 1; }
inline int cutResetTimer(unsigned) { return 1; }
inline int cutDeleteTimer(unsigned) { return 1; }
inline float cutGetTimerValue(unsigned) { return 0; }
