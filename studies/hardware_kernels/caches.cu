// Loads at strides that stay in L1, and streams that stay in L2.

// ---- loads of one block at strides: eight loads within a line of words, over and over ----

template <typename T>
__device__ void add_pairs(T* out, const T* in, int zero, int loads) {
  T sum = 0;
  // The compiler must not keep what it has loaded: the address may move, by nothing.
#pragma unroll 1
  for (int done = 0; done < loads; done += 8) {
    in += zero;
#pragma unroll
    for (int at = 0; at < 32; at += 8) sum += in[at] * in[at + 4];
  }
  if (sum == T(-1)) out[threadIdx.x] = sum;
}

extern "C" __global__ void stride_float(float* out, const float* in, int zero, int stride,
                                        int loads) {
  add_pairs(out, in + threadIdx.x % 64 * stride, zero, loads);
}

extern "C" __global__ void stride_double(double* out, const double* in, int zero, int stride,
                                         int loads) {
  add_pairs(out, in + threadIdx.x % 64 * stride, zero, loads);
}

extern "C" __global__ void __launch_bounds__(1024)
    block_float(float* out, const float* in, int zero, int pitch, int loads) {
  add_pairs(out, in + threadIdx.x % 64 + (threadIdx.y % 32 + 1) * pitch, zero, loads);
}

extern "C" __global__ void __launch_bounds__(1024)
    block_double(double* out, const double* in, int zero, int pitch, int loads) {
  add_pairs(out, in + threadIdx.x % 64 + (threadIdx.y % 32 + 1) * pitch, zero, loads);
}

// ---- streams: an element per thread, of arrays that all blocks go through again and again ----

// The remainder as compilers compute it where the divisor is known: the high half of a product.
__device__ unsigned place(unsigned length, unsigned magic, unsigned shift) {
  const unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
  return i - (__umulhi(i, magic) >> shift) * length;
}

extern "C" __global__ void stream_write(double* a, const double*, const double*, const double*,
                                        unsigned length, unsigned magic, unsigned shift) {
  a[place(length, magic, shift)] = 0.25;
}

extern "C" __global__ void stream_read(double* a, const double* __restrict__ b, const double*,
                                       const double*, unsigned length, unsigned magic,
                                       unsigned shift) {
  const unsigned i = place(length, magic, shift);
  const double value = b[i];
  if (value == -1) a[i] = value;
}

extern "C" __global__ void stream_scale(double* a, const double* __restrict__ b, const double*,
                                        const double*, unsigned length, unsigned magic,
                                        unsigned shift) {
  const unsigned i = place(length, magic, shift);
  a[i] = b[i] * 1.5;
}

extern "C" __global__ void stream_triad(double* a, const double* __restrict__ b,
                                        const double* __restrict__ c, const double* __restrict__ d,
                                        unsigned length, unsigned magic, unsigned shift) {
  const unsigned i = place(length, magic, shift);
  a[i] = b[i] * d[i] + c[i];
}
