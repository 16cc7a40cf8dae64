// Products of square matrices of floats, C = alpha A B + beta C, step by step faster. `pitch` is
// the side of the matrices; `depth`, which is the side in a whole product, is how far the sums go.

#define ARGUMENTS \
  int pitch, int depth, float alpha, const float *a, const float *b, float beta, float *c

// ---- an element per thread ----

__device__ void one_element(int row, int column, ARGUMENTS) {
  float sum = 0;
  for (int k = 0; k < depth; ++k) sum += a[row * pitch + k] * b[k * pitch + column];
  c[row * pitch + column] = alpha * sum + beta * c[row * pitch + column];
}

// Neighbouring lanes have neighbouring rows.
extern "C" __global__ void sgemm_1(ARGUMENTS) {
  one_element(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, pitch,
              depth, alpha, a, b, beta, c);
}

// Neighbouring lanes have neighbouring columns.
extern "C" __global__ void sgemm_2(ARGUMENTS) {
  one_element(blockIdx.x * 32 + threadIdx.x / 32, blockIdx.y * 32 + threadIdx.x % 32, pitch, depth,
              alpha, a, b, beta, c);
}

// Tiles of 32 x 32 in shared memory.
extern "C" __global__ void sgemm_3(ARGUMENTS) {
  __shared__ float tile_a[32 * 32];
  __shared__ float tile_b[32 * 32];
  const unsigned column = threadIdx.x % 32;
  const unsigned row = threadIdx.x / 32;
  a += blockIdx.x * 32 * pitch;
  b += blockIdx.y * 32;
  c += blockIdx.x * 32 * pitch + blockIdx.y * 32;
  float sum = 0;
  for (int done = 0; done < depth; done += 32) {
    tile_a[row * 32 + column] = a[row * pitch + column];
    tile_b[row * 32 + column] = b[row * pitch + column];
    __syncthreads();
    a += 32;
    b += 32 * pitch;
    for (int k = 0; k < 32; ++k) sum += tile_a[row * 32 + k] * tile_b[k * 32 + column];
    __syncthreads();
  }
  c[row * pitch + column] = alpha * sum + beta * c[row * pitch + column];
}

// ---- several elements per thread ----

// A column of 8 in a tile of 64 x 64, 8 deep.
extern "C" __global__ void sgemm_4(ARGUMENTS) {
  __shared__ float tile_a[64 * 8];
  __shared__ float tile_b[8 * 64];
  const int column = threadIdx.x % 64;
  const int group = threadIdx.x / 64;
  const unsigned column_a = threadIdx.x % 8;
  const unsigned row_a = threadIdx.x / 8;
  a += blockIdx.y * 64 * pitch;
  b += blockIdx.x * 64;
  c += blockIdx.y * 64 * pitch + blockIdx.x * 64;
  float sums[8] = {};
  for (int done = 0; done < depth; done += 8) {
    tile_a[row_a * 8 + column_a] = a[row_a * pitch + column_a];
    tile_b[group * 64 + column] = b[group * pitch + column];
    __syncthreads();
    a += 8;
    b += 8 * pitch;
    for (int k = 0; k < 8; ++k) {
      const float value = tile_b[k * 64 + column];
      for (int i = 0; i < 8; ++i) sums[i] += tile_a[(group * 8 + i) * 8 + k] * value;
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    float* at = c + (group * 8 + i) * pitch + column;
    *at = alpha * sums[i] + beta * *at;
  }
}

// A square of 8 x 8 in a tile of 128 x 128, 8 deep.
extern "C" __global__ void __launch_bounds__(256, 1) sgemm_5(ARGUMENTS) {
  __shared__ float tile_a[128 * 8];
  __shared__ float tile_b[8 * 128];
  const int column = threadIdx.x % 16;
  const int row = threadIdx.x / 16;
  const unsigned row_a = threadIdx.x / 8;
  const unsigned column_a = threadIdx.x % 8;
  const unsigned row_b = threadIdx.x / 128;
  const unsigned column_b = threadIdx.x % 128;
  a += blockIdx.y * 128 * pitch;
  b += blockIdx.x * 128;
  c += blockIdx.y * 128 * pitch + blockIdx.x * 128;
  float sums[64] = {};
  float left[8];
  float right[8];
  for (int done = 0; done < depth; done += 8) {
    for (unsigned i = row_a; i < 128; i += 32) tile_a[i * 8 + column_a] = a[i * pitch + column_a];
    for (unsigned i = row_b; i < 8; i += 2) tile_b[i * 128 + column_b] = b[i * pitch + column_b];
    __syncthreads();
    a += 8;
    b += 8 * pitch;
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < 8; ++i) left[i] = tile_a[(row * 8 + i) * 8 + k];
      for (int i = 0; i < 8; ++i) right[i] = tile_b[k * 128 + column * 8 + i];
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) sums[i * 8 + j] += left[i] * right[j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      float* at = c + (row * 8 + i) * pitch + column * 8 + j;
      *at = alpha * sums[i * 8 + j] + beta * *at;
    }
  }
}

// ---- loads of four floats, and A the other way round in shared memory ----

__device__ float4 load_4(const float* at) { return *reinterpret_cast<const float4*>(at); }

__device__ void put_column(float* tile, unsigned column, unsigned row, float4 value) {
  tile[(column * 4 + 0) * 128 + row] = value.x;
  tile[(column * 4 + 1) * 128 + row] = value.y;
  tile[(column * 4 + 2) * 128 + row] = value.z;
  tile[(column * 4 + 3) * 128 + row] = value.w;
}

__device__ void update_4(float* at, const float* sums, float alpha, float beta) {
  float4 old = load_4(at);
  old.x = alpha * sums[0] + beta * old.x;
  old.y = alpha * sums[1] + beta * old.y;
  old.z = alpha * sums[2] + beta * old.z;
  old.w = alpha * sums[3] + beta * old.w;
  *reinterpret_cast<float4*>(at) = old;
}

// How the tile of B lies in shared memory: as it is, with the elements that a thread takes apart,
// or with a few words between rows.
enum Layout { plain, apart, padded };

template <Layout LAYOUT>
__device__ void square_of_vectors(ARGUMENTS) {
  constexpr int width = LAYOUT == padded ? 133 : 128;
  __shared__ float tile_a[8 * 128];
  __shared__ float tile_b[8 * width];
  const int column = threadIdx.x % 16;
  const int row = threadIdx.x / 16;
  const unsigned row_a = threadIdx.x / 2;
  const unsigned column_a = threadIdx.x % 2;
  const unsigned row_b = threadIdx.x / 32;
  const unsigned column_b = threadIdx.x % 32;
  a += blockIdx.y * 128 * pitch;
  b += blockIdx.x * 128;
  c += blockIdx.y * 128 * pitch + blockIdx.x * 128;
  float sums[64] = {};
  float left[8];
  float right[8];
  for (int done = 0; done < depth; done += 8) {
    put_column(tile_a, column_a, row_a, load_4(a + row_a * pitch + column_a * 4));
    const float4 value = load_4(b + row_b * pitch + column_b * 4);
    if constexpr (LAYOUT == plain) {
      *reinterpret_cast<float4*>(tile_b + row_b * 128 + column_b * 4) = value;
    } else if constexpr (LAYOUT == apart) {
      float* at = tile_b + (column_b % 2 * 4 + row_b * 8) * 16 + column_b / 2;
      at[0] = value.x;
      at[16] = value.y;
      at[32] = value.z;
      at[48] = value.w;
    } else {
      float* at = tile_b + row_b * width + column_b * 4;
      at[0] = value.x;
      at[1] = value.y;
      at[2] = value.z;
      at[3] = value.w;
    }
    __syncthreads();
    a += 8;
    b += 8 * pitch;
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < 8; ++i) left[i] = tile_a[k * 128 + row * 8 + i];
      for (int i = 0; i < 8; ++i) {
        right[i] = LAYOUT == apart ? tile_b[(k * 8 + i) * 16 + column]
                                   : tile_b[k * width + column * 8 + i];
      }
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) sums[i * 8 + j] += left[i] * right[j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; j += 4) {
      update_4(c + (row * 8 + i) * pitch + column * 8 + j, sums + i * 8 + j, alpha, beta);
    }
  }
}

extern "C" __global__ void sgemm_6(ARGUMENTS) {
  square_of_vectors<plain>(pitch, depth, alpha, a, b, beta, c);
}
extern "C" __global__ void sgemm_7(ARGUMENTS) {
  square_of_vectors<apart>(pitch, depth, alpha, a, b, beta, c);
}
extern "C" __global__ void sgemm_8(ARGUMENTS) {
  square_of_vectors<padded>(pitch, depth, alpha, a, b, beta, c);
}

// Tiles 16 deep, filled by `THREADS` threads.
template <int THREADS>
__device__ void fill_16_deep(float* tile_a, float* tile_b, int pitch, const float* a,
                             const float* b) {
  const unsigned row_a = threadIdx.x / 4;
  const unsigned column_a = threadIdx.x % 4;
  const unsigned row_b = threadIdx.x / 32;
  const unsigned column_b = threadIdx.x % 32;
#pragma unroll
  for (unsigned more = 0; more < 128; more += THREADS / 4) {
    put_column(tile_a, column_a, row_a + more, load_4(a + (row_a + more) * pitch + column_a * 4));
  }
#pragma unroll
  for (unsigned more = 0; more < 16; more += THREADS / 32) {
    *reinterpret_cast<float4*>(tile_b + (row_b + more) * 128 + column_b * 4) =
        load_4(b + (row_b + more) * pitch + column_b * 4);
  }
}

extern "C" __global__ void __launch_bounds__(256) sgemm_9(ARGUMENTS) {
  __shared__ float tile_a[16 * 128];
  __shared__ float tile_b[16 * 128];
  const int column = threadIdx.x % 16;
  const int row = threadIdx.x / 16;
  a += blockIdx.y * 128 * pitch;
  b += blockIdx.x * 128;
  c += blockIdx.y * 128 * pitch + blockIdx.x * 128;
  float sums[64] = {};
  float left[8];
  float right[8];
  for (int done = 0; done < depth; done += 16) {
    fill_16_deep<256>(tile_a, tile_b, pitch, a, b);
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 8; ++i) left[i] = tile_a[k * 128 + row * 8 + i];
      for (int i = 0; i < 8; ++i) right[i] = tile_b[k * 128 + column * 8 + i];
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) sums[i * 8 + j] += left[i] * right[j];
      }
    }
    __syncthreads();
    a += 16;
    b += 16 * pitch;
  }
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; j += 4) {
      update_4(c + (row * 8 + i) * pitch + column * 8 + j, sums + i * 8 + j, alpha, beta);
    }
  }
}

// A warp has 64 x 64 elements of the tile: four pieces of 64 x 16, 8 x 4 of each a thread's.
extern "C" __global__ void __launch_bounds__(128) sgemm_10(ARGUMENTS) {
  __shared__ float tile_a[16 * 128];
  __shared__ float tile_b[16 * 128];
  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp_column = warp % 2 * 64;
  const unsigned warp_row = warp / 2 * 64;
  const unsigned column = lane % 4 * 4;
  const unsigned row = lane / 4 * 8;
  a += blockIdx.y * 128 * pitch;
  b += blockIdx.x * 128;
  c += (blockIdx.y * 128 + warp_row) * pitch + blockIdx.x * 128 + warp_column;
  float sums[8 * 16] = {};
  float left[8];
  float right[16];
  for (int done = 0; done < depth; done += 16) {
    fill_16_deep<128>(tile_a, tile_b, pitch, a, b);
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 8; ++i) left[i] = tile_a[k * 128 + warp_row + row + i];
      for (int piece = 0; piece < 4; ++piece) {
        for (int j = 0; j < 4; ++j) {
          right[piece * 4 + j] = tile_b[k * 128 + warp_column + piece * 16 + column + j];
        }
      }
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 16; ++j) sums[i * 16 + j] += left[i] * right[j];
      }
    }
    a += 16;
    b += 16 * pitch;
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    for (int piece = 0; piece < 4; ++piece) {
      update_4(c + (row + i) * pitch + piece * 16 + column, sums + i * 16 + piece * 4, alpha, beta);
    }
  }
}
