"""Kernels whose code comes from several files: includes, templates, lambdas, inlining, macros, #line."""

from __future__ import annotations

#: Files of each case; the first one is compiled.
CASES: dict[str, dict[str, str]] = {
    "a kernel of an included file": {
        "main.cu": '#include "kernel.cuh"\n// nothing else is here\n',
        "kernel.cuh": """#pragma once
extern "C" __global__ void k(float* a, const float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    a[i] = b[i] * 2.0f;
}
""",
    },
    "an inlined function of a header": {
        "main.cu": """#include "lib/mix.cuh"
extern "C" __global__ void k(float* a, const float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = mix(b[i],
                        a[i]);
}
""",
        "lib/mix.cuh": """#pragma once
__device__ __forceinline__ float mix(float x, float y) {
  float z = sqrtf(x) / (y + 1.5f);
  return z * z
         - x;
}
""",
    },
    "a template with two arguments": {
        "main.cu": """template <int STEP, class T>
__device__ __forceinline__ T total(const T* from, int n) {
  T sum = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += STEP)
    sum += from[i];
  return sum;
}
extern "C" __global__ void k(float* a, const float* b, int n) {
  a[threadIdx.x] = total<32>(b, n);
  a[threadIdx.x + 32] =
      float(total<64>((const int*)b, n));
}
""",
    },
    "a lambda that is passed to a function": {
        "main.cu": """template <class F>
__device__ __forceinline__ void each(int n, F f) {
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    f(i);
}
extern "C" __global__ void k(float* a, const float* b, int n) {
  each(n, [=](int i) {
    float x = b[i];
    a[i] = x * x + 3.0f;
  });
}
""",
    },
    "nested inlining through three files": {
        "main.cu": """#include "outer.cuh"
extern "C" __global__ void k(float* a, const float* b, int n) {
  int i = threadIdx.x;
  a[i] = outer(b[i], n);
}
""",
        "outer.cuh": """#pragma once
#include "inner.cuh"
__device__ __forceinline__ float outer(float x, int n) {
  float y = inner(x) + 1.0f;
  return y * float(n);
}
""",
        "inner.cuh": """#pragma once
__device__ __forceinline__ float root(float x) {
  return sqrtf(x);
}
__device__ __forceinline__ float inner(float x) {
  return root(x) *
         root(x + 2.0f);
}
""",
    },
    "a function inlined twice from different lines": {
        "main.cu": """#include "load.cuh"
extern "C" __global__ void k(float* a, const float* b, int n) {
  int i = threadIdx.x;
  float x = load(b, i);
  float y = load(b, i + n);
  a[i] = x * y;
}
""",
        "load.cuh": """#pragma once
__device__ __forceinline__ float load(const float* from, int i) {
  float x = from[3 * i];
  return x / 7.0f;
}
""",
    },
    "a macro of a header": {
        "main.cu": """#include "macros.cuh"
extern "C" __global__ void k(float* a, const float* b, int n) {
  int i = threadIdx.x;
  STORE(a, i,
        LOAD(b, i) + n);
}
""",
        "macros.cuh": """#pragma once
#define LOAD(from, i) (from[(i) * 2])
#define STORE(to, i, x) to[i] = (x)
""",
    },
    "lines that #line names": {
        "main.cu": """extern "C" __global__ void k(float* a, const float* b, int n) {
  int i = threadIdx.x;
#line 70 "grammar.y"
  float x = b[i] * 2.0f;
#line 7 "main.cu"
  a[i] = x + n;
}
""",
    },
    "two kernels of different files": {
        "main.cu": """#include "first.cuh"
#include "second.cuh"
""",
        "first.cuh": """#pragma once
#include "shared.cuh"
extern "C" __global__ void k(float* a, const float* b, int n) {
  a[threadIdx.x] = bend(b[threadIdx.x]);
}
""",
        "second.cuh": """#pragma once
#include "shared.cuh"

extern "C" __global__ void l(float* a, const float* b, int n) {
  if (threadIdx.x < n)

    a[threadIdx.x] = bend(b[threadIdx.x] + 1.0f);
}
""",
        "shared.cuh": """#pragma once
__device__ __forceinline__ float bend(float x) {
  return sqrtf(x) * 0.5f;
}
""",
    },
    "a header included twice, from different lines": {
        "main.cu": """#define NAME up
#define OPERATION +
#include "each.inc"
#undef NAME
#undef OPERATION
#define NAME down
#define OPERATION -
#include "each.inc"
extern "C" __global__ void k(float* a, const float* b, int n) {
  int i = threadIdx.x;
  a[i] = up(b[i], a[i]);
  a[i + n] = down(b[i], a[i + n]);
}
""",
        "each.inc": """__device__ __forceinline__ float NAME(float x, float y) {
  float z = sqrtf(x) OPERATION y;
  return z * 1.25f;
}
""",
    },
    "a function that is called and one that is inlined into it": {
        "main.cu": """#include "part.cuh"
__device__ __noinline__ float whole(const float* b, int i) {
  return part(b, i) +
         part(b, i + 1);
}
extern "C" __global__ void k(float* a, const float* b, int n) {
  a[threadIdx.x] = whole(b, threadIdx.x * n);
}
""",
        "part.cuh": """#pragma once
__device__ __forceinline__ float part(const float* b, int i) {
  return sqrtf(b[i]);
}
""",
    },
}
