// The strided kernel of Listing 1 of the MDM paper (Wang et al., MICRO 2020): each thread squares
// 16 elements that lie GS apart from its neighbours'. With GS = 1 a warp's loads share a cache line
// or two, with GS = 32 every lane loads a line of its own.

constexpr int N = 16;
constexpr int THREADS = 256;

template <int GS>
__device__ void strided(const float* input) {
  __shared__ volatile float output[N][THREADS];  // volatile: nobody reads it
  const int ix = blockIdx.x * THREADS + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < N; ++i) {
    const float t = input[GS * ix + i];
    output[i][threadIdx.x] = t * t;
  }
}

extern "C" __global__ void strided_gs1(const float* input) { strided<1>(input); }
extern "C" __global__ void strided_gs32(const float* input) { strided<32>(input); }
