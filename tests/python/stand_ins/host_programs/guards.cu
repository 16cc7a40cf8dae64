// Reads an element of an array, of a variable or of memory of a kernel: words[1] says which.
#include <cstdio>
#include <cstdlib>
__device__ float variable[64];
__constant__ float table[64];
__device__ float after[64];
__global__ void read(const float* p, long long i, float* out) { *out = p[i]; }
__global__ void named(int i, float* out) { *out = variable[i] + table[i] + after[i]; }
__global__ void inner(int i, float* out) {
  float* a = (float*)malloc(256);
  float* b = (float*)malloc(256);
  for (int k = 0; k < 64; ++k) a[k] = b[k] = 1;
  *out = a[i] + b[i];
}
int main(int, char** words) {
  float *p = nullptr, *next, *out;
  const char* how = words[1];
  const long long i = atoll(words[2]);
  const size_t bytes = 4096;
  auto is = [&](const char* name) { return __builtin_strcmp(how, name) == 0; };
  cudaMalloc(&out, 4);
  if (is("malloc")) {
    cudaMalloc(&p, bytes);
    cudaMalloc(&next, bytes);
  }
  if (is("managed")) {
    cudaMallocManaged(&p, bytes);
    cudaMallocManaged(&next, bytes);
  }
  if (is("pinned")) {
    cudaMallocHost(&p, bytes);
    cudaMallocHost(&next, bytes);
  }
  if (is("async")) {
    cudaMallocAsync(&p, bytes, 0);
    cudaMallocAsync(&next, bytes, 0);
  }
  if (is("pitch")) {
    size_t q;
    cudaMallocPitch((void**)&p, &q, 512, 8);
    cudaMallocPitch((void**)&next, &q, 512, 8);
  }
  if (is("3d")) {
    cudaPitchedPtr q;
    cudaMalloc3D(&q, make_cudaExtent(512, 2, 4));
    p = (float*)q.ptr;
    cudaMalloc(&next, bytes);
  }
  if (p) {
    cudaMemset(p, 0, bytes);
    cudaMemset(next, 0, bytes);
    read<<<1, 1>>>(p, i, out);
  }
  if (is("named")) named<<<1, 1>>>(i, out);
  if (is("inner")) inner<<<1, 1>>>(i, out);
  const cudaError_t error = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorName(error));
}
