// Layers of AlexNet for one square image, one launch each. Maps are stored channel after channel,
// row after row; weights output after output, input after input, row after row.

// A convolution with rectification, one thread per element of the output, one layer of thread
// blocks per output channel. Channels come in groups that see only the inputs of their group.
template <int KERNEL>
__device__ __forceinline__ void convolve(int inputs_per_group, int outputs_per_group, int width,
                                         int width_out, int stride, int padding, const float* input,
                                         const float* weights, const float* biases, float* output) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (x >= width_out || y >= width_out) return;
  const int left = x * stride - padding, top = y * stride - padding;
  const float* map = input + channel / outputs_per_group * inputs_per_group * width * width;
  const float* filter = weights + channel * inputs_per_group * KERNEL * KERNEL;
  float sum = biases[channel];
  for (int channel_in = 0; channel_in < inputs_per_group; ++channel_in) {
    for (int row = 0; row < KERNEL; ++row) {
      if (top + row < 0 || top + row >= width) continue;
      const float* line = map + (top + row) * width + left;
#pragma unroll
      for (int column = 0; column < KERNEL; ++column)
        if (left + column >= 0 && left + column < width)
          sum += line[column] * filter[row * KERNEL + column];
    }
    map += width * width;
    filter += KERNEL * KERNEL;
  }
  output[(channel * width_out + y) * width_out + x] = fmaxf(sum, 0.0f);
}

extern "C" __global__ void convolve_11x11(int inputs_per_group, int outputs_per_group, int width,
                                          int width_out, int stride, int padding,
                                          const float* input, const float* weights,
                                          const float* biases, float* output) {
  convolve<11>(inputs_per_group, outputs_per_group, width, width_out, stride, padding, input,
               weights, biases, output);
}

extern "C" __global__ void convolve_5x5(int inputs_per_group, int outputs_per_group, int width,
                                        int width_out, int stride, int padding, const float* input,
                                        const float* weights, const float* biases, float* output) {
  convolve<5>(inputs_per_group, outputs_per_group, width, width_out, stride, padding, input,
              weights, biases, output);
}

extern "C" __global__ void convolve_3x3(int inputs_per_group, int outputs_per_group, int width,
                                        int width_out, int stride, int padding, const float* input,
                                        const float* weights, const float* biases, float* output) {
  convolve<3>(inputs_per_group, outputs_per_group, width, width_out, stride, padding, input,
              weights, biases, output);
}

// Local response normalization over five channels: each value over
// (1 + 1e-4 / 5 * sum of the squares)^0.75.
extern "C" __global__ void normalize(int channels, int width, const float* input, float* output) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (x >= width || y >= width) return;
  const int map = width * width, at = y * width + x;
  float squares = 0.0f;
  for (int other = max(channel - 2, 0); other <= min(channel + 2, channels - 1); ++other) {
    const float value = input[other * map + at];
    squares += value * value;
  }
  const float root = sqrtf(1.0f + 1e-4f / 5.0f * squares);
  output[channel * map + at] = input[channel * map + at] / (root * sqrtf(root));
}

// The greatest of 3 x 3 values, two apart.
extern "C" __global__ void pool_maximum(int width, int width_out, const float* input,
                                        float* output) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (x >= width_out || y >= width_out) return;
  const float* corner = input + (channel * width + 2 * y) * width + 2 * x;
  float greatest = corner[0];
#pragma unroll
  for (int row = 0; row < 3; ++row)
#pragma unroll
    for (int column = 0; column < 3; ++column)
      greatest = fmaxf(greatest, corner[row * width + column]);
  output[(channel * width_out + y) * width_out + x] = greatest;
}

// A fully connected layer, one thread per output neuron.
extern "C" __global__ void connect(int inputs, int outputs, int rectify, const float* input,
                                   const float* weights, const float* biases, float* output) {
  const int neuron = blockIdx.x * blockDim.x + threadIdx.x;
  if (neuron >= outputs) return;
  const float* row = weights + neuron * inputs;
  float sum = biases[neuron];
  for (int i = 0; i < inputs; ++i) sum += row[i] * input[i];
  output[neuron] = rectify ? fmaxf(sum, 0.0f) : sum;
}
