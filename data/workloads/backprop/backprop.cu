// Training step of a two-layer neural network with 16 hidden units: weighted sums of the input
// layer, 16 inputs per block, and the adjustment of its weights. The host adds the blocks' sums and
// has the rest.

#define HIDDEN \
  16  // hidden units, and inputs of a block: a warp reads two rows of weights, one line

extern "C" __global__ void backprop_forward(const float* __restrict__ inputs,
                                            const float* __restrict__ weights,
                                            float* __restrict__ partial_sums) {
  __shared__ float input[HIDDEN];
  __shared__ float product[HIDDEN][HIDDEN];
  const int unit = threadIdx.x;
  const int row = threadIdx.y;
  const int first = blockIdx.x * HIDDEN;

  if (row == 0) input[unit] = inputs[first + unit];
  __syncthreads();
  product[row][unit] = weights[(first + row) * HIDDEN + unit] * input[row];
  __syncthreads();
  for (int half = HIDDEN / 2; half > 0; half /= 2) {
    if (row < half) product[row][unit] += product[row + half][unit];
    __syncthreads();
  }
  if (row == 0) partial_sums[first + unit] = product[0][unit];
}

extern "C" __global__ void backprop_adjust(const float* __restrict__ inputs,
                                           const float* __restrict__ errors,
                                           float* __restrict__ weights, float* __restrict__ updates,
                                           float rate, float momentum) {
  const int unit = threadIdx.x;
  const int row = blockIdx.x * HIDDEN + threadIdx.y;
  const int weight = row * HIDDEN + unit;
  const float update = rate * errors[unit] * inputs[row] + momentum * updates[weight];
  weights[weight] += update;
  updates[weight] = update;
}
