// Calls of every kind, classes, printf and assert, structures by value, initial values of all
// kinds.
#include <cassert>
#include <cstdio>

struct Pair {
  int first;
  double second;
  char tail[5];
};
typedef float (*Operation)(float);

__constant__ float table[2][3] = {{1, 2, 3}, {-1.5f, 0, 1e30f}};
__constant__ Pair origin = {3, 2.5, "abcd"};
__device__ int counter;
__device__ const int* where = &counter;
__device__ __noinline__ float twice(float x) { return x + x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ Operation operations[2] = {twice, square};
__device__ __noinline__ Pair moved(Pair p, int by) {
  p.first += by;
  return p;
}
__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

struct Shape {
  virtual __device__ float area(float) = 0;
  int size;
};
struct Square : Shape {
  __device__ float area(float x) override { return x * size; }
};
struct Line : Shape {
  __device__ float area(float x) override { return x + size; }
};

extern __shared__ float dynamic[];

__global__ void calls(float* x, Pair p, int n, Operation* given) {
  __shared__ float tile[32][33];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(n > 0);
  tile[threadIdx.x / 32][threadIdx.x % 32] = x[i];
  dynamic[threadIdx.x] = table[i % 2][i % 3];
  __syncthreads();
  float v = operations[i & 1](tile[threadIdx.x % 32][threadIdx.x / 32]);
  const Pair q = moved(p, i);
  printf("%d %f\n", i, v);
  Square square;
  square.size = i;
  Line line;
  line.size = n;
  Shape* shape = i & 1 ? static_cast<Shape*>(&square) : &line;
  v += shape->area(v) + given[0](v) + fibonacci(n);
  x[i] = v + q.second + q.tail[2] + origin.first + *where + dynamic[n];
}
