// Product of a sparse matrix in compressed rows with a vector, y = A x: one thread per row.

extern "C" __global__ void multiply_rows(int rows, const int* first_entry, const int* columns,
                                         const float* values, const float* x, float* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int end = first_entry[row + 1];
  float sum = 0.0f;
  for (int entry = first_entry[row]; entry < end; ++entry) sum += values[entry] * x[columns[entry]];
  y[row] = sum;
}
