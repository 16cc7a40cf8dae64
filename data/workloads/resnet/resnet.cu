// Layers of a residual network for one square image, one launch each, each step of a layer a
// kernel of its own. Maps are stored channel after channel, row after row; weights output after
// output, input after input, row after row.

// A convolution, one thread per element of the output, one layer of thread blocks per output
// channel.
template <int KERNEL>
__device__ __forceinline__ void convolve(int inputs, int width, int width_out, int stride,
                                         const float* input, const float* weights, float* output) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (x >= width_out || y >= width_out) return;
  const int left = x * stride - KERNEL / 2, top = y * stride - KERNEL / 2;
  const float* map = input;
  const float* filter = weights + channel * inputs * KERNEL * KERNEL;
  float sum = 0.0f;
  for (int channel_in = 0; channel_in < inputs; ++channel_in) {
#pragma unroll
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
  output[(channel * width_out + y) * width_out + x] = sum;
}

extern "C" __global__ void convolve_7x7(int inputs, int width, int width_out, int stride,
                                        const float* input, const float* weights, float* output) {
  convolve<7>(inputs, width, width_out, stride, input, weights, output);
}

extern "C" __global__ void convolve_3x3(int inputs, int width, int width_out, int stride,
                                        const float* input, const float* weights, float* output) {
  convolve<3>(inputs, width, width_out, stride, input, weights, output);
}

extern "C" __global__ void convolve_1x1(int inputs, int width, int width_out, int stride,
                                        const float* input, const float* weights, float* output) {
  convolve<1>(inputs, width, width_out, stride, input, weights, output);
}

// Batch normalization with known mean and variance of each channel, in place.
extern "C" __global__ void normalize(int width, const float* means, const float* variances,
                                     float* maps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (x >= width || y >= width) return;
  float* value = maps + (channel * width + y) * width + x;
  *value = (*value - means[channel]) / sqrtf(variances[channel] + 1e-5f);
}

// A factor and an offset for each channel, in place.
extern "C" __global__ void scale(int width, const float* factors, const float* offsets,
                                 float* maps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (x >= width || y >= width) return;
  float* value = maps + (channel * width + y) * width + x;
  *value = *value * factors[channel] + offsets[channel];
}

// Rectification, in place.
extern "C" __global__ void rectify(int width, float* maps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= width) return;
  float* value = maps + (blockIdx.z * width + y) * width + x;
  *value = fmaxf(*value, 0.0f);
}

// Add the shortcut to the residual, in place.
extern "C" __global__ void add(int width, const float* shortcut, float* maps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= width) return;
  const int at = (blockIdx.z * width + y) * width + x;
  maps[at] += shortcut[at];
}

// The greatest of the 3 x 3 values around every second one.
extern "C" __global__ void pool_maximum(int width, int width_out, const float* input,
                                        float* output) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int channel = blockIdx.z;
  if (x >= width_out || y >= width_out) return;
  const float* map = input + channel * width * width;
  float greatest = map[2 * y * width + 2 * x];
  for (int row = max(2 * y - 1, 0); row <= min(2 * y + 1, width - 1); ++row)
    for (int column = max(2 * x - 1, 0); column <= min(2 * x + 1, width - 1); ++column)
      greatest = fmaxf(greatest, map[row * width + column]);
  output[(channel * width_out + y) * width_out + x] = greatest;
}

// The mean of each channel, one thread per channel.
extern "C" __global__ void pool_mean(int channels, int size, const float* input, float* output) {
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= channels) return;
  float sum = 0.0f;
  for (int i = 0; i < size; ++i) sum += input[channel * size + i];
  output[channel] = sum / size;
}

// A fully connected layer, one thread per output neuron.
extern "C" __global__ void connect(int inputs, int outputs, const float* input,
                                   const float* weights, const float* biases, float* output) {
  const int neuron = blockIdx.x * blockDim.x + threadIdx.x;
  if (neuron >= outputs) return;
  const float* row = weights + neuron * inputs;
  float sum = biases[neuron];
  for (int i = 0; i < inputs; ++i) sum += row[i] * input[i];
  output[neuron] = sum;
}
