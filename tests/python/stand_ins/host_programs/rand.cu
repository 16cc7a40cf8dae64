// Generators in kernels, beside those of the library: lane i of the library's order is subsequence
// i.

#include <curand.h>
#include <curand_kernel.h>
#include <curand_mtgp32_host.h>
#include <curand_mtgp32dc_p_11213.h>

#include <cstdio>

constexpr int count = 64, block_of_mtgp = 256;

template <typename State>
__global__ void draw(unsigned* out) {
  State state;
  curand_init(1234, threadIdx.x, 0, &state);
  out[threadIdx.x] = curand(&state);
}

__global__ void draw_philox(unsigned* out) {
  curandStatePhilox4_32_10_t state;
  curand_init(1234, threadIdx.x / 4, threadIdx.x % 4, &state);
  out[threadIdx.x] = curand(&state);
}

__global__ void draw_sobol(const curandDirectionVectors32_t* vectors, unsigned* out) {
  curandStateSobol32 state;
  curandDirectionVectors32_t own;
  for (int i = 0; i < 32; ++i) own[i] = vectors[0][i];
  curand_init(own, threadIdx.x, &state);
  out[threadIdx.x] = curand(&state);
}

__global__ void draw_mtgp(curandStateMtgp32* state, unsigned* out) {
  out[threadIdx.x] = curand(state);
}

__global__ void draw_poisson(curandDiscreteDistribution_t distribution, unsigned* sum) {
  curandState state;
  curand_init(7, threadIdx.x, 0, &state);
  unsigned own = 0;
  for (int i = 0; i < 100; ++i) own += curand_discrete(&state, distribution);
  atomicAdd(sum, own);
}

void compare(const char* name, curandRngType_t type, const unsigned* of_kernel, int numbers) {
  curandGenerator_t generator;
  unsigned* of_library;
  cudaMallocManaged(&of_library, numbers * sizeof(unsigned));
  int status = curandCreateGenerator(&generator, type);
  if (type < CURAND_RNG_QUASI_DEFAULT) {
    status |= curandSetPseudoRandomGeneratorSeed(generator, 1234);
  }
  status |= curandGenerate(generator, of_library, numbers);
  status |= cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < numbers; ++i) wrong += of_library[i] != of_kernel[i];
  printf("%s: %d, %d wrong\n", name, status, wrong);
  curandDestroyGenerator(generator);
  cudaFree(of_library);
}

int main() {
  unsigned* out;
  cudaMallocManaged(&out, block_of_mtgp * sizeof(unsigned));
  draw<curandStateXORWOW><<<1, count>>>(out);
  cudaDeviceSynchronize();
  compare("XORWOW", CURAND_RNG_PSEUDO_XORWOW, out, count);
  draw<curandStateMRG32k3a><<<1, count>>>(out);
  cudaDeviceSynchronize();
  compare("MRG32k3a", CURAND_RNG_PSEUDO_MRG32K3A, out, count);
  draw_philox<<<1, count>>>(out);
  cudaDeviceSynchronize();
  compare("Philox", CURAND_RNG_PSEUDO_PHILOX4_32_10, out, count);

  curandDirectionVectors32_t *vectors, *on_device;
  curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6);
  cudaMalloc(&on_device, sizeof *vectors);
  cudaMemcpy(on_device, vectors, sizeof *vectors, cudaMemcpyHostToDevice);
  draw_sobol<<<1, count>>>(on_device, out);
  cudaDeviceSynchronize();
  compare("Sobol32", CURAND_RNG_QUASI_SOBOL32, out, count);

  curandStateMtgp32* states;
  mtgp32_kernel_params* parameters;
  cudaMalloc(&states, sizeof *states);
  cudaMalloc(&parameters, sizeof *parameters);
  curandMakeMTGP32Constants(mtgp32dc_params_fast_11213, parameters);
  curandMakeMTGP32KernelState(states, mtgp32dc_params_fast_11213, parameters, 1, 1234);
  draw_mtgp<<<1, block_of_mtgp>>>(states, out);
  cudaDeviceSynchronize();
  compare("MTGP32", CURAND_RNG_PSEUDO_MTGP32, out, block_of_mtgp);

  for (double mean : {7.5, 2000.0}) {
    curandDiscreteDistribution_t distribution;
    int status = curandCreatePoissonDistribution(mean, &distribution);
    *out = 0;
    draw_poisson<<<1, count>>>(distribution, out);
    status |= cudaDeviceSynchronize();
    const double found = *out / (count * 100.0);
    status |= curandDestroyDistribution(distribution);
    printf("Poisson: %d, %s\n", status, fabs(found / mean - 1) < 0.03 ? "right" : "wrong");
  }
}
