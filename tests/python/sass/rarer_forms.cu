// Sources that compilers turn into the rarer forms of machine code: those of the uniform datapath,
// of caches and scopes, of generic addresses, of conversions between other widths, of several
// predicates. a and o are arrays of 512 words, n is 7, s 13, c -3, b -9; 2 blocks of 64 threads.
#include <cstdio>

__constant__ unsigned short small[8] = {1, 20, 300, 4000, 50000, 6, 7, 8};
__constant__ unsigned words[8] = {9, 8, 7, 6, 5, 4, 3, 2};
__constant__ unsigned long long wide[4] = {1ull << 33, 2, 3, 4};
__constant__ signed char bytes[4] = {-1, 2, -3, 4};

#define KERNEL(name)                                                                   \
  extern "C" __global__ void name(const unsigned* a, unsigned* o, int n, int s, int c, \
                                  signed char b)

KERNEL(read_only) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  o[t] = __ldg(a + t) + __ldg((const unsigned char*)a + t) + __ldg((const unsigned short*)a + t);
  uint2 p = __ldg((const uint2*)a + t);
  uint4 q = __ldg((const uint4*)a + t % 64);
  o[t] += p.x * p.y + q.x * q.y + q.z * q.w;
}

KERNEL(streaming) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 q = __ldcs((const uint4*)a + t % 64);
  unsigned short h = __ldcs((const unsigned short*)a + t);
  __stcs((uint4*)o + t % 64, make_uint4(q.w, q.z, q.y, q.x));
  __stcs((unsigned short*)(o + 400) + t % 64, h);
  __stcs(o + 300 + t % 64, __ldcs(a + t) * 3);
}

KERNEL(strong) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  volatile unsigned char* p = (volatile unsigned char*)o;
  volatile unsigned* v = o + 256;
  p[t] = p[t] + 3;
  v[t % 64] = v[t % 64] * 5;
  o[400 + t % 64] = __ldcg(a + t);
  __stcg((uint4*)o + 32 + t % 32, make_uint4(t % 32, 1, 2, 3));
}

KERNEL(generic_addresses) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ unsigned tile[128];
  __shared__ unsigned long long wide[64];
  tile[t % 64] = a[t];
  tile[64 + t % 64] = 0;
  wide[t % 64] = a[t] * 7ull;
  __syncthreads();
  unsigned* where = n == 7 ? tile : o;
  unsigned long long* far = n == 7 ? wide : (unsigned long long*)o;
  unsigned v, w, x;
  unsigned long long y, z, u;
  asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(v) : "l"(where + t % 64));
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(w) : "l"(where + (t + 1) % 64));
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(x) : "l"(where + (t + 2) % 64));
  asm volatile("ld.relaxed.cta.u64 %0, [%1];" : "=l"(y) : "l"(far + t % 64));
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(z) : "l"(far + (t + 1) % 64));
  asm volatile("ld.u64 %0, [%1];" : "=l"(u) : "l"(far + (t + 2) % 64));
  atomicOr_block(where + 64 + t % 64, v & 255);
  atomicAnd_block(where + 64 + t % 64, w | 7);
  atomicAdd(where + 64 + t % 64, 3);
  atomicCAS(where + 64 + t % 64, 10u, 20u);
  __syncthreads();
  unsigned long long both = y + z + u;
  asm volatile("st.u64 [%0], %1;" ::"l"(far + t % 64), "l"(both));
  asm volatile("st.u32 [%0], %1;" ::"l"(where + t % 64), "r"(v + w + x));
  __syncthreads();
  o[t] = tile[t % 64] + tile[64 + t % 64] + (unsigned)wide[t % 64] + __isShared(where);
}

KERNEL(reductions_in_memory) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* p = o + t % 8;
  int* q = (int*)(o + 8 + t % 8);
  atomicInc(p, 5);
  atomicDec(p + 16, 9);
  atomicAnd(p + 24, a[t]);
  atomicOr(p + 32, a[t]);
  atomicXor(p + 40, a[t]);
  atomicMin(p + 48, a[t]);
  atomicMax(p + 56, a[t]);
  atomicMin(q + 64, (int)a[t]);
  atomicMax(q + 72, (int)a[t]);
  atomicAdd(p + 96, a[t]);
  atomicAdd((unsigned long long*)(o + 128) + t % 8, (unsigned long long)a[t] << 9);
  atomicAdd((float*)(o + 160) + t % 8, 2.0f * (t & 3));
  atomicAdd((double*)(o + 176) + t % 8, 0.5 * (t & 3));
}

KERNEL(reductions_of_the_system) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* p = o + t % 8;
  int* q = (int*)(o + 8 + t % 8);
  atomicInc_system(p, 5);
  atomicDec_system(p + 16, 9);
  atomicAnd_system(p + 24, a[t]);
  atomicOr_system(p + 32, a[t]);
  atomicXor_system(p + 40, a[t]);
  atomicAdd_system(p + 48, a[t]);
  atomicMin_system(q + 64, (int)a[t]);
  atomicMax_system(q + 72, (int)a[t]);
  o[384 + t] = atomicExch_system(o + 128 + t, a[t]) + atomicCAS_system(o + 256 + t, a[256 + t], 5u);
}

KERNEL(exchanges) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  o[t] = atomicExch(o + 256 + t, a[t]) + atomicCAS(o + 256 + t, a[t], 9u);
  unsigned long long* w = (unsigned long long*)(o + 384);
  if (t < 64) o[t] += (unsigned)atomicCAS(w + t, w[t], 77ull + t);
  o[t] += atomicMin(o + 256 + t, a[t] >> 1) + atomicInc(o + 256 + t, 50);
}

KERNEL(shared_atomics) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ unsigned bins[32];
  __shared__ int most[4];
  __shared__ float sum[2];
  if (t % 64 < 32) bins[t % 32] = t % 32;
  if (t % 64 < 4) most[t % 4] = -5;
  if (t % 64 < 2) sum[t % 2] = 0;
  __syncthreads();
  atomicAdd(bins + a[t] % 16, 1);
  atomicAdd(bins + a[t] % 16, a[t] & 15);
  atomicMax(most + t % 4, (int)a[t] >> 3);
  atomicAdd(sum + t % 2, 1.0f);
  unsigned long long* wide = (unsigned long long*)(bins + 16);
  atomicAdd((double*)wide + t % 4, 0.0);
  __syncthreads();
  if (t % 64 == 5) atomicExch(bins + 5, 50u);
  __syncthreads();
  o[t] = bins[t % 16] + most[t % 4] + (unsigned)sum[t % 2];
}

KERNEL(uniform) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned m = blockIdx.x + n, u = 0;
  for (unsigned i = 0; i < m; ++i) {
    u += __popc(i * s) + __brev(i) + __clz(i + s) + (i << s % 5);
  }
  long long w = (long long)c * s + n;
  w >>= s % 7;
  for (int i = c; i < s; i += 2) {
    if (i >= n) u ^= i * i;
    if (i <= c + 2) u += 3;
    w += (long long)i * s;
  }
  o[t] = a[(t + u) % 512] + (unsigned)w + u + b;
}

KERNEL(constants) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  o[t] = small[t % 8] + words[a[t] % 8] + (unsigned)wide[t % 4] + bytes[n % 4];
}

KERNEL(dot_products) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  int r = 5;
  r = __dp4a((int)a[t], (int)a[t + 1], r);
  o[t] = __dp4a(a[t], a[t + 2], (unsigned)r);
}

KERNEL(rounding) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  float x = (a[t] % 1000) * 0.37f + 1, y = (a[t + 1] % 777) * 1.3f;
  double u = x * 1.7, v = y + 0.3;
  float f = __fadd_rz(x, y) + __fmul_rz(x, y) + __fmaf_rz(x, y, y) + __fmaf_rd(x, y, x) +
            __fmaf_ru(x, y, x);
  double g = __dmul_ru(u, v) + __fma_rd(u, v, v) + __fma_ru(u, v, u);
  f += __saturatef(x * y + y) + floorf(y) + truncf(x / 3) + rintf(x) + ceilf(y);
  o[t] = __float_as_uint(f) + __double2loint(g) + __double2hiint(g);
}

KERNEL(conversions) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  float x = (int)a[t] * 0.001f;
  double d = (int)a[t] * 0.01;
  o[t] = (unsigned)(int)ceil(d) + (unsigned)(long long)d +
         (unsigned)(unsigned long long)fabs(d * 1e6) + (unsigned)(unsigned)fabs(d) +
         __float_as_uint((float)(short)a[t]) + __float_as_uint((float)(signed char)a[t]) +
         __float_as_uint((float)(unsigned short)a[t]) +
         __double2hiint((double)(long long)(a[t] * 3ull)) + __double2hiint((double)(a[t] * 5ull)) +
         __float_as_uint(__int2float_rz(a[t])) + __float_as_uint(__int2float_rd(a[t])) +
         __float_as_uint(__uint2float_rz(a[t])) + __float2int_rn(x) + (unsigned)__double2int_rn(d) +
         a[t] / (n + 1u) + a[t] % 1000003u + (unsigned)((a[t] * 77777ull) / (a[t + 1] + 3ull)) +
         (int)a[t] / (s + 4);
}

KERNEL(local_memory) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned char bytes_[16];
  unsigned short shorts[16];
  signed char chars[16];
  uint4 wide_[4];
  uint2 pairs[4];
  for (int i = 0; i < 16; ++i) {
    bytes_[(i * n) % 16] = a[t + i];
    shorts[(i * n + 1) % 16] = a[t + i];
    chars[(i + n) % 16] = a[t + i];
  }
  for (int i = 0; i < 4; ++i) {
    wide_[(i + n) % 4] = make_uint4(a[i], a[t], i, t);
    pairs[(i * s) % 4] = make_uint2(i, a[t + i]);
  }
  uint4 q = wide_[a[t] % 4];
  uint2 p = pairs[a[t + 1] % 4];
  o[t] = bytes_[a[t] % 16] + shorts[a[t + 1] % 16] + chars[a[t + 2] % 16] + q.x + q.y * q.z + q.w +
         p.x * p.y;
}

KERNEL(shared_of_other_widths) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ short h[128];
  __shared__ unsigned char v[128];
  __shared__ uint4 q[64];
  __shared__ unsigned short u[64];
  h[t % 64] = a[t];
  v[t % 64] = a[t];
  q[t % 64] = make_uint4(a[t], 1, 2, t);
  u[t % 64] = a[t];
  __syncthreads();
  uint4 w = q[(t + 5) % 64];
  o[t] = h[(t + 3) % 64] + v[(t + 7) % 64] + u[(t + 9) % 64] + w.x + w.y + w.z + w.w;
}

KERNEL(lanes) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = a[t], m = __activemask();
  o[t] = __match_any_sync(m, v & 3) + __match_any_sync(m, (unsigned long long)(v & 1)) +
         __reduce_add_sync(m, v) + __reduce_min_sync(m, v) + __reduce_max_sync(m, v) +
         __reduce_min_sync(m, (int)v) + __reduce_max_sync(m, (int)v) + __reduce_and_sync(m, v) +
         __reduce_or_sync(m, v) + __reduce_xor_sync(m, v) + __all_sync(m, v > 5) +
         __any_sync(m, v > 9) + __ballot_sync(m, v & 1) + __shfl_up_sync(m, v, 3) +
         __shfl_down_sync(m, v, 2) + __shfl_sync(m, v, n) + __shfl_xor_sync(m, v, 5) +
         __syncthreads_or(v == 3) + __syncthreads_and(v != 3) + __syncthreads_count(v & 1);
}

KERNEL(fences) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ unsigned flag;
  o[t] = a[t] + 1;
  __threadfence_block();
  __threadfence();
  __threadfence_system();
  __nanosleep(20);
  asm volatile("prefetch.global.L2 [%0];" ::"l"(a + t));
  asm volatile("fence.sc.cta; fence.sc.gpu; fence.acq_rel.cta; fence.acq_rel.gpu;" ::: "memory");
  if (t % 64 == 0) flag = t;
  __syncthreads();
  o[t] += flag;
  __syncwarp();
}

KERNEL(predicates) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = a[t], w = a[t + 1];
  unsigned long long x = v * 9ull, y = w * 5ull;
  long long p = (long long)x - (long long)y;
  float f = v * 0.5f, g = w * 0.25f;
  double d = f, e = g;
  int i = v, j = w;
  unsigned r = 0;
  if (i > j || v < w) r += 1;
  if (i <= j || v == 17u) r += 2;
  if ((i < j) != (v > 3)) r += 4;
  if ((v == w) != (i > 9)) r += 8;
  if (x >= y || v >= 5u) r += 16;
  if (x < y && p > 3) r += 32;
  if (p >= 9 || x == y) r += 64;
  if (p < 2 && x != y) r += 128;
  if (f > g || d < e) r += 256;
  if (f == g && d == e) r += 512;
  if (!(f > g) || !(d >= e)) r += 1024;
  if (f != g || d != e) r += 2048;
  if (f != f || d != d) r += 4096;
  if (f == 3.0f || d == 5.0) r += 8192;
  if (i != j || x != 3) r += 1 << 14;
  if ((f >= g) && (d > e) && i != 3) r += 1 << 15;
  if (v <= w || v > 100u) r += 1 << 16;
  o[t] = r + (v > w ? i : j) + min(v, w) + max(i, j) + (unsigned)fmin(d, e) + (unsigned)fmax(d, e) +
         (unsigned)fminf(f, g);
}

KERNEL(ways) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned r = 0, v = a[t];
  switch (v % 9) {
    case 0:
      r = v * 3;
      break;
    case 1:
      r = v ^ 77;
      break;
    case 2:
      r = __brev(v);
      break;
    case 3:
      r = v / (n + 2);
      break;
    case 4:
      r = v - 19;
      for (unsigned i = 0; i < v % 5; ++i) {
        r += i * a[i];
        if (r % 7 == 3) break;
      }
      break;
    case 5:
      r = __popc(v);
      break;
    case 6:
      r = v << 3 | v >> 5;
      break;
    case 7:
      r = v % (s + 1);
      break;
    default:
      r = 1;
  }
  while (r % 5 != 1) {
    r += v & 3 ? 1 : 3;
    if (r > 0xfffffff0u) break;
    if (r % 11 == 4) {
      r += 7;
      continue;
    }
    ++r;
  }
  o[t] = r;
}

KERNEL(jump_tables) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = a[t], r = t;
  switch (v % 6) {
    case 0:
      r = a[t + 1] * 3;
      break;
    case 1:
      r = a[t + 7] + t;
      break;
    case 2:
      r = v ^ a[t + 3];
      // goes on
    case 3:
      r /= 7;
      break;
    case 4:
      for (unsigned i = 0; i < v % 9; ++i) r += a[i];
      break;
  }
  o[t] = r + __popc(__ballot_sync(0xffffffffu, v & 1));
}

KERNEL(bits) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = a[t], w = a[t + 1], r;
  unsigned long long x = (unsigned long long)v << 20 | w;
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(v % 40), "r"(w % 40));
  r += __funnelshift_l(v, w, n) + __funnelshift_r(v, w, v) + (unsigned)(x << v % 64) +
       (unsigned)(x >> v % 64) + (unsigned)((long long)x >> w % 64) + __byte_perm(v, w, 0x5140) +
       __ffs(v) + __clzll(x) + abs((int)v) + __mulhi((int)v, (int)w) + __umulhi(v, w) +
       (unsigned)__mul64hi(x, w) + __fns(v, 0, 3) + __clz(w);
  o[t] = r;
}

KERNEL(halves) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned short h;
  float f = (a[t] % 100) * 0.25f;
  unsigned r, q = 0x3c004000u, u = 0x40003c00u;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  q += (t & 7) << 4;
  asm("add.f16x2 %0, %1, %2;" : "=r"(r) : "r"(q), "r"(u));
  asm("mul.f16x2 %0, %1, %2;" : "=r"(q) : "r"(r), "r"(u));
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(u) : "r"(r), "r"(q), "r"(q));
  o[t] = __float_as_uint(f) + r + q + u;
}

KERNEL(printing) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t == 3) printf("%d\n", n);
  o[t] = a[t] + 1;
}
