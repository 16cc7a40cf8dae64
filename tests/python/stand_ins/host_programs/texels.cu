// Reads a texel of an array of 10 x 4 of which rows 0 and 1 and the texel (3, 2) are written.
#include <cstdio>
#include <cstdlib>
#include <cstring>
__global__ void sample(cudaTextureObject_t t, float x, float y, float* out) {
  *out = tex2D<float>(t, x, y);
}
__global__ void load(cudaSurfaceObject_t s, int x, int y, float* out) {
  surf2Dread(out, s, 4 * x, y);
}
__global__ void store(cudaSurfaceObject_t s, int x, int y) { surf2Dwrite(5.f, s, 4 * x, y); }
int main(int, char** words) {
  const int x = atoi(words[2]), y = atoi(words[3]);
  auto format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, 10, 4, cudaArraySurfaceLoadStore);
  float host[40], *out;
  for (int i = 0; i < 40; ++i) host[i] = i;
  cudaMalloc(&out, 4);
  cudaMemcpy2DToArray(array, 0, 0, host, 40, 40, 2, cudaMemcpyHostToDevice);  // rows 0 and 1
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.filterMode = !strcmp(words[1], "linear") ? cudaFilterModeLinear : cudaFilterModePoint;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  cudaCreateSurfaceObject(&surface, &resource);
  store<<<1, 1>>>(surface, 3, 2);
  if (strcmp(words[1], "surface"))
    sample<<<1, 1>>>(texture, x + .5f, y + .5f, out);
  else
    load<<<1, 1>>>(surface, x, y, out);
  float value = -1;
  cudaMemcpy(&value, out, 4, cudaMemcpyDeviceToHost);
  printf("%g\n", value);
}
