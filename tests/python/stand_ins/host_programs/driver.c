/* A program that is linked with the driver and has nothing of the runtime: y = 1 + 3 x on managed
   memory, with the kernel of a PTX file. */

#include <stddef.h>
#include <stdio.h>

typedef unsigned long long pointer;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void**, int);
int cuCtxSetCurrent(void*);
int cuModuleLoad(void**, const char*);
int cuModuleGetFunction(void**, void*, const char*);
int cuMemAllocManaged(pointer*, size_t, unsigned);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
int cuCtxSynchronize(void);
int cuMemFree_v2(pointer);

#define CHECK(call)                     \
  do {                                  \
    const int error = call;             \
    if (error != 0) {                   \
      printf("%s: %d\n", #call, error); \
      return 1;                         \
    }                                   \
  } while (0)

int main(int count, char** words) {
  enum { n = 129 };
  void *context, *module, *function;
  pointer x, y;
  float a = 3;
  int elements = n;
  void* arguments[] = {&x, &y, &a, &elements};
  if (count != 2) return 2;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, words[1]));
  CHECK(cuModuleGetFunction(&function, module, "axpy"));
  CHECK(cuMemAllocManaged(&x, n * sizeof(float), 1));
  CHECK(cuMemAllocManaged(&y, n * sizeof(float), 1));
  for (int i = 0; i < n; ++i) {
    ((float*)x)[i] = (float)i;
    ((float*)y)[i] = 1;
  }
  CHECK(cuLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuCtxSynchronize());
  printf("%.1f %.1f\n", ((float*)y)[2], ((float*)y)[n - 1]);
  CHECK(cuMemFree_v2(x));
  CHECK(cuMemFree_v2(y));
  return 0;
}
