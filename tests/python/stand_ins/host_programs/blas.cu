// cuBLAS as CUDA's headers call it: C = A B on two streams, a dot product, an error.

#include <cublas_v2.h>

#include <cstdio>
#include <vector>

int main() {
  constexpr int m = 70, n = 33, k = 21;
  std::vector<float> a(m * k), b(k * n), c(m * n, 1.0f);
  for (int i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 7 - 3);
  for (int i = 0; i < k * n; ++i) b[i] = static_cast<float>(i % 5 - 2);
  float *on_a, *on_b, *on_c;
  cudaMalloc(&on_a, a.size() * sizeof(float));
  cudaMalloc(&on_b, b.size() * sizeof(float));
  cudaMalloc(&on_c, c.size() * sizeof(float));
  cublasSetMatrix(m, k, sizeof(float), a.data(), m, on_a, m);
  cublasSetMatrix(k, n, sizeof(float), b.data(), k, on_b, k);
  cublasSetVector(m * n, sizeof(float), c.data(), 1, on_c, 1);

  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 1;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cublasSetStream(handle, stream);
  const float alpha = 2, beta = 1;
  cublasStatus_t status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, on_a, m,
                                      on_b, k, &beta, on_c, m);
  std::printf("%s\n", cublasGetStatusName(status));
  cublasSetStream(handle, nullptr);
  status = cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, on_a, CUDA_R_32F, m,
                        on_b, CUDA_R_32F, k, &beta, on_c, CUDA_R_32F, m, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT);
  std::printf("%s\n", cublasGetStatusName(status));
  std::vector<float> got(m * n);
  cublasGetMatrix(m, n, sizeof(float), on_c, m, got.data(), m);
  int wrong = 0;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      float sum = 0;
      for (int q = 0; q < k; ++q) sum += a[q * m + i] * b[j * k + q];
      wrong += got[j * m + i] != 4 * sum + 1;
    }
  }
  float product = 0;
  cublasSdot(handle, k, on_a, 1, on_b, 1, &product);
  float expected = 0;
  for (int i = 0; i < k; ++i) expected += a[i] * b[i];
  std::printf("%d wrong, dot %s\n", wrong, product == expected ? "right" : "wrong");
  status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, on_a, 1, on_b, k, &beta,
                       on_c, m);
  std::printf("%s\n", cublasGetStatusString(status));
  cublasDestroy(handle);
  return 0;
}
