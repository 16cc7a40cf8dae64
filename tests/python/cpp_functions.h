// What random functions of cpp_functions.py use: on the device intrinsics, on the host, whose
// headers come before, plain definitions.
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef __int128 i128;
typedef unsigned __int128 u128;

#ifdef __CUDACC__
#ifndef NO_HALF
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#define FN __device__
#define FN_APART __device__ __noinline__
#define KERNEL extern "C" __global__ void
#define TABLE __constant__
#define GLOBAL __device__
#define GLOBAL_TABLE __device__ const
#define THREAD threadIdx.x
#define DEVICE_OR_HOST(device, host) device
#else
#define FN
#define FN_APART
#define __forceinline__
#define KERNEL extern "C" void
#define TABLE const
#define GLOBAL static
#define GLOBAL_TABLE const
extern "C" {
u32 THREAD;
}
#define DEVICE_OR_HOST(device, host) host
#endif
#define INLINE static __forceinline__ FN

TABLE u32 constants[16] = {0u,          1u,  2u,          0xffffffffu, 0x80000000u, 0x7fffffffu,
                           31u,         32u, 0x12345678u, 0xdeadbeefu, 0x0000ffffu, 0xffff0000u,
                           0x00ff00ffu, 3u,  0x55555555u, 97u};
GLOBAL_TABLE i16 shorts[16] = {0,   1,   -1,   32767, -32768, 5,  -7,  100,
                               255, 256, -255, -256,  77,     12, -13, 2};

// ---- bits of floats; all NaNs are one, since which comes out is left open ----

INLINE u32 bits_of(f32 x) {
  u32 r;
  memcpy(&r, &x, 4);
  return x != x ? 0x7fffffffu : r;
}
INLINE u64 bits_of(f64 x) {
  u64 r;
  memcpy(&r, &x, 8);
  return x != x ? 0x7fffffffffffffffull : r;
}
INLINE f32 float_of(u32 x) {
  f32 r;
  memcpy(&r, &x, 4);
  return r;
}
INLINE f64 double_of(u64 x) {
  f64 r;
  memcpy(&r, &x, 8);
  return r;
}
// Of integers: zeros that no compiler knows hide where the words come from. For sm_100,
// ptxas 13.0 makes (f64)(u32)(i8)x of i8 alone, and NVRTC 13.5 has (0.0f / x) * (x - x) be no NaN.
GLOBAL u32 hidden_zero = 0;
template <typename T>
INLINE f32 as_f32(T x) {
  return (f32)x + float_of(hidden_zero);
}
template <typename T>
INLINE f64 as_f64(T x) {
  return (f64)x + double_of(hidden_zero);
}
INLINE f32 as_f32(u32 x) { return (f32)(x + hidden_zero) + float_of(hidden_zero); }
INLINE f64 as_f64(u32 x) { return (f64)(x + hidden_zero) + double_of(hidden_zero); }
INLINE f32 as_f32(f64 x) { return (f32)x; }
INLINE f64 as_f64(f32 x) { return (f64)x; }

// The order of zeros is left open in min and max: the sum with zero has no negative zero.
#define LEAST(a, b) ((a) != (a) ? (b) : (b) != (b) || (a) < (b) ? (a) : (b))
INLINE f32 min_f(f32 a, f32 b) { return DEVICE_OR_HOST(fminf(a, b), LEAST(a, b)) + 0.0f; }
INLINE f32 max_f(f32 a, f32 b) { return DEVICE_OR_HOST(fmaxf(a, b), -LEAST(-a, -b)) + 0.0f; }
INLINE f64 min_d(f64 a, f64 b) { return DEVICE_OR_HOST(fmin(a, b), LEAST(a, b)) + 0.0; }
INLINE f64 max_d(f64 a, f64 b) { return DEVICE_OR_HOST(fmax(a, b), -LEAST(-a, -b)) + 0.0; }

// Conversions within the range: what is outside, NaN too, is the lower bound or the upper one. NaN
// is asked for by itself: ptxas 13.0 takes |x| > -1 to hold for it.
INLINE f64 within(f64 x, f64 low, f64 high) {
  return x != x ? low : x > low ? (x < high ? x : high) : low;
}
INLINE f32 within(f32 x, f32 low, f32 high) {
  return x != x ? low : x > low ? (x < high ? x : high) : low;
}
INLINE i32 to_i32(f32 x) { return (i32)within(x, -2147483648.0f, 2147483520.0f); }
INLINE u32 to_u32(f32 x) { return (u32)within(x, 0.0f, 4294967040.0f); }
INLINE i64 to_i64(f32 x) { return (i64)within(x, -9223372036854775808.0f, 9223371487098961920.0f); }
INLINE u64 to_u64(f32 x) { return (u64)within(x, 0.0f, 18446742974197923840.0f); }
INLINE i32 to_i32(f64 x) { return (i32)within(x, -2147483648.0, 2147483647.0); }
INLINE u32 to_u32(f64 x) { return (u32)within(x, 0.0, 4294967295.0); }
INLINE i64 to_i64(f64 x) { return (i64)within(x, -9223372036854775808.0, 9223372036854774784.0); }
INLINE u64 to_u64(f64 x) { return (u64)within(x, 0.0, 18446744073709549568.0); }
INLINE i8 to_i8(f32 x) { return (i8)within(x, -128.0f, 127.0f); }
INLINE u8 to_u8(f32 x) { return (u8)within(x, 0.0f, 255.0f); }
INLINE i16 to_i16(f32 x) { return (i16)within(x, -32768.0f, 32767.0f); }
INLINE u16 to_u16(f32 x) { return (u16)within(x, 0.0f, 65535.0f); }
INLINE i8 to_i8(f64 x) { return (i8)within(x, -128.0, 127.0); }
INLINE u8 to_u8(f64 x) { return (u8)within(x, 0.0, 255.0); }
INLINE i16 to_i16(f64 x) { return (i16)within(x, -32768.0, 32767.0); }
INLINE u16 to_u16(f64 x) { return (u16)within(x, 0.0, 65535.0); }

// ---- intrinsics of integers ----

#ifdef __CUDACC__
INLINE u32 popc32(u32 x) { return __popc(x); }
INLINE u32 clz32(u32 x) { return __clz(x); }
INLINE u32 ffs32(u32 x) { return __ffs(x); }
INLINE u32 brev32(u32 x) { return __brev(x); }
INLINE u32 popc64(u64 x) { return __popcll(x); }
INLINE u32 clz64(u64 x) { return __clzll(x); }
INLINE u32 ffs64(u64 x) { return __ffsll(x); }
INLINE u64 brev64(u64 x) { return __brevll(x); }
INLINE u32 perm(u32 a, u32 b, u32 s) { return __byte_perm(a, b, s); }
INLINE u32 umulhi(u32 a, u32 b) { return __umulhi(a, b); }
INLINE i32 mulhi(i32 a, i32 b) { return __mulhi(a, b); }
INLINE u64 umul64hi(u64 a, u64 b) { return __umul64hi(a, b); }
INLINE i64 mul64hi(i64 a, i64 b) { return __mul64hi(a, b); }
INLINE u32 funnel_l(u32 a, u32 b, u32 n) { return __funnelshift_l(a, b, n); }
INLINE u32 funnel_r(u32 a, u32 b, u32 n) { return __funnelshift_r(a, b, n); }
INLINE u32 funnel_lc(u32 a, u32 b, u32 n) { return __funnelshift_lc(a, b, n); }
INLINE u32 funnel_rc(u32 a, u32 b, u32 n) { return __funnelshift_rc(a, b, n); }
INLINE u32 sad(i32 a, i32 b, u32 c) { return __sad(a, b, c); }
INLINE u32 usad(u32 a, u32 b, u32 c) { return __usad(a, b, c); }
INLINE i32 dp4a(u32 a, u32 b, u32 c) { return __dp4a((i32)a, (i32)b, (i32)c); }
INLINE u32 dp4a_u(u32 a, u32 b, u32 c) { return __dp4a(a, b, c); }
INLINE u32 hadd32(u32 a, u32 b) { return __uhadd(a, b); }
INLINE u32 rhadd32(u32 a, u32 b) { return __urhadd(a, b); }
INLINE u32 vadd2(u32 a, u32 b) { return __vadd2(a, b); }
INLINE u32 vsub4(u32 a, u32 b) { return __vsub4(a, b); }
INLINE u32 vmaxs2(u32 a, u32 b) { return __vmaxs2(a, b); }
INLINE u32 vminu2(u32 a, u32 b) { return __vminu2(a, b); }
INLINE u32 vmins4(u32 a, u32 b) { return __vmins4(a, b); }
INLINE u32 vmaxu4(u32 a, u32 b) { return __vmaxu4(a, b); }
INLINE u32 vabsdiffu4(u32 a, u32 b) { return __vabsdiffu4(a, b); }
INLINE u32 vcmpgts2(u32 a, u32 b) { return __vcmpgts2(a, b); }
INLINE u32 vaddss2(u32 a, u32 b) { return __vaddss2(a, b); }
INLINE f32 add_rz(f32 a, f32 b) { return __fadd_rz(a, b); }
INLINE f32 add_ru(f32 a, f32 b) { return __fadd_ru(a, b); }
INLINE f32 mul_rd(f32 a, f32 b) { return __fmul_rd(a, b); }
INLINE f64 mul_rz(f64 a, f64 b) { return __dmul_rz(a, b); }
INLINE f32 narrow_rd(f64 a) { return __double2float_rd(a); }
INLINE f32 narrow_ru(f64 a) { return __double2float_ru(a); }
INLINE f32 from_i32_rz(i32 a) { return __int2float_rz(a); }
INLINE f32 from_u64_ru(u64 a) { return __ull2float_ru(a); }
INLINE i32 near_i32(f32 x) { return __float2int_rn(within(x, -2147483648.0f, 2147483520.0f)); }
INLINE i64 down_i64(f64 x) { return __double2ll_rd(within(x, -9.2e18, 9.2e18)); }
INLINE u32 up_u32(f32 x) { return __float2uint_ru(within(x, 0.0f, 4294967040.0f)); }
INLINE f32 saturate(f32 x) { return __saturatef(x) + 0.0f; }
#else
INLINE u32 popc32(u32 x) { return __builtin_popcount(x); }
INLINE u32 clz32(u32 x) { return x ? __builtin_clz(x) : 32; }
INLINE u32 ffs32(u32 x) { return __builtin_ffs(x); }
INLINE u64 reversed(u64 x, int width) {
  u64 r = 0;
  for (int i = 0; i < width; ++i) r |= ((x >> i) & 1) << (width - 1 - i);
  return r;
}
INLINE u32 brev32(u32 x) { return reversed(x, 32); }
INLINE u32 popc64(u64 x) { return __builtin_popcountll(x); }
INLINE u32 clz64(u64 x) { return x ? __builtin_clzll(x) : 64; }
INLINE u32 ffs64(u64 x) { return __builtin_ffsll(x); }
INLINE u64 brev64(u64 x) { return reversed(x, 64); }
INLINE u32 perm(u32 a, u32 b, u32 s) {
  u64 both = (u64)b << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; ++i) r |= (u32)((both >> (8 * ((s >> (4 * i)) & 7))) & 0xff) << (8 * i);
  return r;
}
INLINE u32 umulhi(u32 a, u32 b) { return ((u64)a * b) >> 32; }
INLINE i32 mulhi(i32 a, i32 b) { return ((i64)a * b) >> 32; }
INLINE u64 umul64hi(u64 a, u64 b) { return ((u128)a * b) >> 64; }
INLINE i64 mul64hi(i64 a, i64 b) { return ((i128)a * b) >> 64; }
INLINE u32 funnel_l(u32 a, u32 b, u32 n) { return (((u64)b << 32 | a) << (n & 31)) >> 32; }
INLINE u32 funnel_r(u32 a, u32 b, u32 n) { return ((u64)b << 32 | a) >> (n & 31); }
INLINE u32 funnel_lc(u32 a, u32 b, u32 n) { return n >= 32 ? a : funnel_l(a, b, n); }
INLINE u32 funnel_rc(u32 a, u32 b, u32 n) { return n >= 32 ? b : funnel_r(a, b, n); }
INLINE u32 sad(i32 a, i32 b, u32 c) { return c + (u32)(a < b ? (i64)b - a : (i64)a - b); }
INLINE u32 usad(u32 a, u32 b, u32 c) { return c + (a < b ? b - a : a - b); }
// Calls `one` of each part of two words, sign extended or not.
template <class Part, class One>
u32 by_parts(u32 a, u32 b, One one) {
  u32 r = 0;
  for (u32 at = 0; at < 32; at += 8 * sizeof(Part))
    r |= (u32)((u32)one((i32)(Part)(a >> at), (i32)(Part)(b >> at)) &
               (Part(-1) < 0 ? ~0u >> (32 - 8 * sizeof(Part)) : (u32)Part(-1)))
         << at;
  return r;
}
INLINE i32 dp4a(u32 a, u32 b, u32 c) {
  for (u32 at = 0; at < 32; at += 8) c += (u32)((i32)(i8)(a >> at) * (i32)(i8)(b >> at));
  return c;
}
INLINE u32 dp4a_u(u32 a, u32 b, u32 c) {
  for (u32 at = 0; at < 32; at += 8) c += ((a >> at) & 255) * ((b >> at) & 255);
  return c;
}
INLINE u32 hadd32(u32 a, u32 b) { return ((u64)a + b) >> 1; }
INLINE u32 rhadd32(u32 a, u32 b) { return ((u64)a + b + 1) >> 1; }
INLINE i32 less_of(i32 a, i32 b) { return a < b ? a : b; }
INLINE i32 more_of(i32 a, i32 b) { return a < b ? b : a; }
INLINE u32 vadd2(u32 a, u32 b) {
  return by_parts<u16>(a, b, [](i32 x, i32 y) { return x + y; });
}
INLINE u32 vsub4(u32 a, u32 b) {
  return by_parts<u8>(a, b, [](i32 x, i32 y) { return x - y; });
}
INLINE u32 vmaxs2(u32 a, u32 b) { return by_parts<i16>(a, b, more_of); }
INLINE u32 vminu2(u32 a, u32 b) { return by_parts<u16>(a, b, less_of); }
INLINE u32 vmins4(u32 a, u32 b) { return by_parts<i8>(a, b, less_of); }
INLINE u32 vmaxu4(u32 a, u32 b) { return by_parts<u8>(a, b, more_of); }
INLINE u32 vabsdiffu4(u32 a, u32 b) {
  return by_parts<u8>(a, b, [](i32 x, i32 y) { return x < y ? y - x : x - y; });
}
INLINE u32 vcmpgts2(u32 a, u32 b) {
  return by_parts<i16>(a, b, [](i32 x, i32 y) { return x > y ? -1 : 0; });
}
INLINE u32 vaddss2(u32 a, u32 b) {
  return by_parts<i16>(a, b, [](i32 x, i32 y) { return more_of(-32768, less_of(32767, x + y)); });
}
template <class One>
auto rounded(int mode, One one) {
  fesetround(mode);
  auto r = one();
  fesetround(FE_TONEAREST);
  return r;
}
INLINE f32 add_rz(volatile f32 a, volatile f32 b) {
  return rounded(FE_TOWARDZERO, [&] { return a + b; });
}
INLINE f32 add_ru(volatile f32 a, volatile f32 b) {
  return rounded(FE_UPWARD, [&] { return a + b; });
}
INLINE f32 mul_rd(volatile f32 a, volatile f32 b) {
  return rounded(FE_DOWNWARD, [&] { return a * b; });
}
INLINE f64 mul_rz(volatile f64 a, volatile f64 b) {
  return rounded(FE_TOWARDZERO, [&] { return a * b; });
}
INLINE f32 narrow_rd(volatile f64 a) {
  return rounded(FE_DOWNWARD, [&] { return (f32)a; });
}
INLINE f32 narrow_ru(volatile f64 a) {
  return rounded(FE_UPWARD, [&] { return (f32)a; });
}
INLINE f32 from_i32_rz(volatile i32 a) {
  return rounded(FE_TOWARDZERO, [&] { return (f32)a; });
}
INLINE f32 from_u64_ru(u64 a) {
  f32 r = (f32)a;
  return (u128)r < a ? nextafterf(r, INFINITY) : r;
}
INLINE i32 near_i32(f32 x) { return (i32)rintf(within(x, -2147483648.0f, 2147483520.0f)); }
INLINE i64 down_i64(f64 x) { return (i64)floor(within(x, -9.2e18, 9.2e18)); }
INLINE u32 up_u32(f32 x) { return (u32)ceilf(within(x, 0.0f, 4294967040.0f)); }
INLINE f32 saturate(f32 x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
#endif

// ---- half and bf16, as their bits ----

#ifndef NO_HALF
#ifdef __CUDACC__
INLINE u16 one_nan(__half x) { return __hisnan(x) ? 0x7fff : __half_as_ushort(x); }
INLINE u16 one_nan(__nv_bfloat16 x) { return __hisnan(x) ? 0x7fff : __bfloat16_as_ushort(x); }
INLINE u32 one_nan(__half2 x) {
  return (u32)one_nan(__high2half(x)) << 16 | one_nan(__low2half(x));
}
INLINE __half half_of(u16 x) { return __ushort_as_half(x); }
INLINE __half2 pair_of(u32 x) { return __halves2half2(half_of((u16)x), half_of((u16)(x >> 16))); }
INLINE __nv_bfloat16 bfloat_of(u16 x) { return __ushort_as_bfloat16(x); }
INLINE f32 h_to_f(u16 a) { return __half2float(half_of(a)); }
INLINE f32 b_to_f(u16 a) { return __bfloat162float(bfloat_of(a)); }
INLINE u16 f_to_h(f32 a) { return one_nan(__float2half_rn(a)); }
INLINE u16 f_to_b(f32 a) { return one_nan(__float2bfloat16_rn(a)); }
INLINE u16 d_to_h(f64 a) { return one_nan(__double2half(a)); }
INLINE u16 i_to_h(i32 a) { return one_nan(__int2half_rn(a)); }
INLINE u16 h_add(u16 a, u16 b) { return one_nan(__hadd_rn(half_of(a), half_of(b))); }
INLINE u16 h_mul(u16 a, u16 b) { return one_nan(__hmul_rn(half_of(a), half_of(b))); }
INLINE u16 h_fma(u16 a, u16 b, u16 c) {
  return one_nan(__hfma(half_of(a), half_of(b), half_of(c)));
}
INLINE u16 h_min(u16 a, u16 b) {
  return one_nan(__hadd_rn(__hmin(half_of(a), half_of(b)), half_of(0)));
}
INLINE u16 h_max(u16 a, u16 b) {
  return one_nan(__hadd_rn(__hmax(half_of(a), half_of(b)), half_of(0)));
}
INLINE u16 b_add(u16 a, u16 b) { return one_nan(__hadd_rn(bfloat_of(a), bfloat_of(b))); }
INLINE u16 b_mul(u16 a, u16 b) { return one_nan(__hmul_rn(bfloat_of(a), bfloat_of(b))); }
INLINE u16 b_max(u16 a, u16 b) {
  return one_nan(__hadd_rn(__hmax(bfloat_of(a), bfloat_of(b)), bfloat_of(0)));
}
// Not 1 and 0: ptxas 13.0 makes 1.0 of the half whose bits are 1, where a comparison gave them.
INLINE u32 h_less(u16 a, u16 b) { return __hlt(half_of(a), half_of(b)) ? 7 : 2; }
INLINE u32 h_geu(u16 a, u16 b) { return __hgeu(half_of(a), half_of(b)) ? 7 : 2; }
INLINE u32 b_less(u16 a, u16 b) { return __hlt(bfloat_of(a), bfloat_of(b)) ? 7 : 2; }
INLINE u16 h_neg(u16 a) { return one_nan(__hneg(half_of(a))); }
INLINE u16 h_abs(u16 a) { return one_nan(__habs(half_of(a))); }
INLINE u32 h2_add(u32 a, u32 b) { return one_nan(__hadd2_rn(pair_of(a), pair_of(b))); }
INLINE u32 h2_fma(u32 a, u32 b, u32 c) {
  return one_nan(__hfma2(pair_of(a), pair_of(b), pair_of(c)));
}
INLINE u32 h2_greater(u32 a, u32 b) { return __hgt2_mask(pair_of(a), pair_of(b)); }
INLINE i32 h_to_i(u16 a) { return __half2int_rz(half_of(a)); }
#else
// Rounds m * 2^e to the nearest float of some bits of exponent and fraction.
INLINE u16 rounded_bits(u32 negative, u128 m, int e, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, most = (1 << exponent_bits) - 1;
  u32 sign = negative << (exponent_bits + fraction_bits);
  if (m == 0) return sign;
  int top = 127;
  while (!(m >> top)) --top;
  int last = top + e - fraction_bits;  // exponent of the last bit that stays
  if (last < 1 - bias - fraction_bits) last = 1 - bias - fraction_bits;
  int drop = last - e;
  u64 kept;
  if (drop <= 0) {
    kept = (u64)m << -drop;
  } else if (drop > 127) {
    kept = 0;
  } else {
    kept = (u64)(m >> drop);
    u128 rest = m & (((u128)1 << drop) - 1), half = (u128)1 << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
  }
  u64 field = kept >> fraction_bits ? (u64)(last + bias + fraction_bits) - 1 : 0;
  u64 r = (field << fraction_bits) + kept;
  return sign | (r >> fraction_bits >= (u64)most ? (u64)most << fraction_bits : r);
}
INLINE u16 short_of(f64 x, int exponent_bits, int fraction_bits) {
  u64 bits;
  memcpy(&bits, &x, 8);
  if (x != x) return 0x7fff;
  u32 sign = bits >> 63, field = (bits >> 52) & 2047;
  if (field == 2047) return sign << 15 | ((1u << exponent_bits) - 1) << fraction_bits;
  u64 m = (bits & ((1ull << 52) - 1)) | (field ? 1ull << 52 : 0);
  return rounded_bits(sign, m, (field ? (int)field : 1) - 1075, exponent_bits, fraction_bits);
}
INLINE f32 h_to_f(u16 a) {
  int field = (a >> 10) & 31, fraction = a & 1023;
  f64 x = field == 31 ? (fraction ? NAN : INFINITY)
          : field     ? ldexp(1024 + fraction, field - 25)
                      : ldexp(fraction, -24);
  return a & 0x8000 ? -x : x;
}
INLINE f32 b_to_f(u16 a) { return float_of((u32)a << 16); }
INLINE u16 f_to_h(f32 a) { return short_of(a, 5, 10); }
INLINE u16 f_to_b(f32 a) { return short_of(a, 8, 7); }
INLINE u16 d_to_h(f64 a) { return short_of(a, 5, 10); }
INLINE u16 i_to_h(i32 a) { return short_of(a, 5, 10); }
INLINE u16 h_add(u16 a, u16 b) { return d_to_h((f64)h_to_f(a) + h_to_f(b)); }
INLINE u16 h_mul(u16 a, u16 b) { return d_to_h((f64)h_to_f(a) * h_to_f(b)); }
// A sum of halves' product and a half, in units of 2^-48, has at most 82 bits.
INLINE u16 h_fma(u16 a, u16 b, u16 c) {
  f64 x = h_to_f(a), y = h_to_f(b), z = h_to_f(c), plain = x * y + z;
  if (!isfinite(plain)) return plain != plain ? 0x7fff : d_to_h(plain);
  i128 product = (i128)(i64)(x * 0x1p24) * (i64)(y * 0x1p24),
       sum = product + ((i128)(i64)(z * 0x1p24) << 24);
  if (sum == 0) return d_to_h(plain);
  return rounded_bits(sum < 0, sum < 0 ? -(u128)sum : (u128)sum, -48, 5, 10);
}
INLINE u16 h_min(u16 a, u16 b) { return f_to_h(min_f(h_to_f(a), h_to_f(b))); }
INLINE u16 h_max(u16 a, u16 b) { return f_to_h(max_f(h_to_f(a), h_to_f(b))); }
INLINE u16 b_add(u16 a, u16 b) { return short_of((f64)b_to_f(a) + b_to_f(b), 8, 7); }
INLINE u16 b_mul(u16 a, u16 b) { return short_of((f64)b_to_f(a) * b_to_f(b), 8, 7); }
INLINE u16 b_max(u16 a, u16 b) { return f_to_b(max_f(b_to_f(a), b_to_f(b))); }
INLINE u32 h_less(u16 a, u16 b) { return h_to_f(a) < h_to_f(b) ? 7 : 2; }
INLINE u32 h_geu(u16 a, u16 b) { return h_to_f(a) < h_to_f(b) ? 2 : 7; }
INLINE u32 b_less(u16 a, u16 b) { return b_to_f(a) < b_to_f(b) ? 7 : 2; }
INLINE u16 h_neg(u16 a) { return f_to_h(-h_to_f(a)); }
INLINE u16 h_abs(u16 a) { return f_to_h(fabsf(h_to_f(a))); }
INLINE u32 h2_add(u32 a, u32 b) { return (u32)h_add(a >> 16, b >> 16) << 16 | h_add(a, b); }
INLINE u32 h2_fma(u32 a, u32 b, u32 c) {
  return (u32)h_fma(a >> 16, b >> 16, c >> 16) << 16 | h_fma(a, b, c);
}
INLINE u32 h2_greater(u32 a, u32 b) {
  return (h_to_f(a >> 16) > h_to_f(b >> 16) ? 0xffff0000u : 0) |
         (h_to_f(a) > h_to_f(b) ? 0xffffu : 0);
}
INLINE i32 h_to_i(u16 a) {
  f32 x = h_to_f(a);
  return x != x ? 0 : (i32)within((f64)x, -2147483648.0, 2147483647.0);
}
#endif
#endif
