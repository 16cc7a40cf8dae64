// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include "simt/program/narrow.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simt/arithmetic/loops.h"

// Conversions to and from formats of few bits. Where the ISA only has a figure for the use of
// random bits, this follows what was seen on sm_100.

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

using Wide = NarrowConversion::Wide;

/// The encoding of a format.
struct FloatLayout {
  int fraction = 0;     ///< bits
  int bias = 0;         ///< of the exponent
  u32 largest = 0;      ///< code of the largest number
  u32 nan = 0;          ///< what a NaN becomes
  u32 infinity = 0;     ///< code of numbers that are too large, without .satfinite
  u32 sign = 0;         ///< 0: there is none
  int random_bits = 0;  ///< of .rs
  int shift = 0;        ///< of the code in its place
};

FloatLayout layout_of(NarrowFormat format) {
  switch (format) {
    case NarrowFormat::e4m3:
      return {3, 7, 0x7e, 0x7f, 0x7f, 0x80, 16, 0};
    case NarrowFormat::e5m2:
      return {2, 15, 0x7b, 0x7f, 0x7c, 0x80, 16, 0};
    case NarrowFormat::e2m3:
      return {3, 1, 0x1f, 0x1f, 0x1f, 0x20, 16, 0};
    case NarrowFormat::e3m2:
      return {2, 3, 0x1f, 0x1f, 0x1f, 0x20, 16, 0};
    case NarrowFormat::e2m1:
      return {1, 1, 0x7, 0x7, 0x7, 0x8, 16, 0};
    case NarrowFormat::f16:
      return {10, 15, 0x7bff, 0x7fff, 0x7c00, 0x8000, 13, 0};
    case NarrowFormat::bf16:
      return {7, 127, 0x7f7f, 0x7fff, 0x7f80, 0x8000, 16, 0};
    default:  // tf32: an f32 without its last bits
      return {10, 127, 0x3fbff, 0x7fffffff, 0x3fc00, 0x40000, 0, 13};
  }
}

/// The code of a finite magnitude, which may be above the largest. `random` is for .rs.
u32 rounded_magnitude(u32 bits, const FloatLayout& layout, NarrowRounding rounding, bool negative,
                      u32 random) {
  const bool is_normal = bits >> 23 != 0;
  const int exponent = static_cast<int>(is_normal ? bits >> 23 : 1) - 127;
  const u64 significand = (bits & 0x7fffffu) | (is_normal ? 0x800000u : 0u);
  const int least = 1 - layout.bias;
  const int shift = std::min(23 - layout.fraction + std::max(least - exponent, 0), 60);
  const u64 whole = significand >> shift;
  const u64 rest = significand & ((u64{1} << shift) - 1);
  const u64 half = u64{1} << (shift - 1);
  bool increments = false;
  switch (rounding) {
    case NarrowRounding::nearest:
      increments = rest > half || (rest == half && (whole & 1) != 0);
      break;
    case NarrowRounding::away:
      increments = rest >= half;
      break;
    case NarrowRounding::zero:
      break;
    case NarrowRounding::up:
      increments = rest != 0 && !negative;
      break;
    case NarrowRounding::random:
      // They are added to the highest of the bits that are cut off.
      increments = ((rest >> (shift - layout.random_bits)) + random) >> layout.random_bits != 0;
      break;
  }
  // The implicit bit of the whole part carries into the exponent; subnormal numbers have none.
  const auto place = static_cast<u32>(std::max(exponent - least, 0));
  return static_cast<u32>((u64{place} << layout.fraction) + whole + (increments ? 1 : 0));
}

u32 narrow_float(f32 value, const NarrowConversion& how, const FloatLayout& layout, u32 random) {
  const u32 bits = std::bit_cast<u32>(value);
  if (value != value) return layout.nan;
  const bool negative = bits >> 31 != 0;
  if (negative && how.clips) return 0;
  const u32 magnitude = bits & 0x7fffffffu;
  const bool is_infinite = magnitude == 0x7f800000u;
  u32 code = is_infinite ? layout.infinity
                         : rounded_magnitude(magnitude, layout, how.rounding, negative, random);
  if (is_infinite || code > layout.largest) {
    const bool is_cut = !is_infinite && (how.rounding == NarrowRounding::zero ||
                                         (how.rounding == NarrowRounding::up && negative));
    code = how.saturates || is_cut ? layout.largest : layout.infinity;
  }
  return (code | (negative ? layout.sign : 0)) << layout.shift;
}

/// The exponent of the nearest power of two below or above a magnitude; 0xff: not a number.
u32 narrow_exponent(f32 value, const NarrowConversion& how) {
  const u32 magnitude = std::bit_cast<u32>(value) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0xff;
  const u32 largest = how.saturates ? 0xfe : 0xff;
  const bool up = how.rounding == NarrowRounding::up;
  const u32 fraction = magnitude & 0x7fffffu;
  u32 exponent = magnitude >> 23;
  // 2^-127 and 0 share a code, so subnormal numbers may be above it.
  const bool is_above = exponent == 0 ? fraction > 0x400000u : fraction != 0;
  if (up && is_above && exponent != 0xff) ++exponent;
  return std::min(exponent, largest);
}

u32 narrow_fixed(f32 value, const NarrowConversion& how, u32 scale) {
  if (value != value || scale == 0xff) return 127;
  if (how.clips && std::signbit(value)) return 0;
  const double scaled = std::ldexp(static_cast<double>(value), 6 + 127 - static_cast<int>(scale));
  const double whole = std::nearbyint(std::clamp(scaled, -128.0, 127.0));
  return static_cast<u8>(static_cast<s8>(whole));
}

u32 reversed_half(u32 half) {
  u32 result = 0;
  for (int i = 0; i < 16; ++i) result |= (half >> i & 1) << (15 - i);
  return result;
}

/// The random bits of the upper value of a pair, or the lower one.
u32 random_of(u32 bits, NarrowFormat format, bool is_upper) {
  const u32 high = bits >> 16;
  switch (format) {
    case NarrowFormat::f16:
      return (is_upper ? high : bits) & 0x1fffu;
    case NarrowFormat::bf16:
      return (is_upper ? high : bits) & 0xffffu;
    case NarrowFormat::e2m1: {
      const u32 field = (high & 0xff00u) | (bits >> 8 & 0xffu);
      return is_upper ? reversed_half(field) : field;
    }
    default:
      return is_upper ? reversed_half(high) : high;
  }
}

/// The upper or lower half as an f32.
f32 widened_half(u32 word, Wide wide, bool is_upper) {
  const auto half = static_cast<u16>(is_upper ? word >> 16 : word);
  return static_cast<f32>(wide == Wide::f16x2 ? half_to_double(half) : bfloat_to_double(half));
}

void run_narrow(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  const NarrowConversion how = NarrowConversion::decoded(operands.immediate);
  const FloatLayout layout = layout_of(how.format);
  auto* const target = reinterpret_cast<u32*>(registers + operands.target);
  const auto source = [&](std::size_t i) {
    return reinterpret_cast<const u32*>(registers + operands.source[i]);
  };
  const bool is_random = how.rounding == NarrowRounding::random;
  const auto code = [&](f32 value, u32 third, bool is_upper) {
    const u32 scale = how.is_scaled ? third >> (is_upper ? 8 : 0) & 0xff : 127;
    if (how.format == NarrowFormat::ue8m0) return narrow_exponent(value, how);
    if (how.format == NarrowFormat::s2f6) return narrow_fixed(value, how, scale);
    return narrow_float(value, how, layout, is_random ? random_of(third, how.format, is_upper) : 0);
  };
  for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const u32 a = source(0)[lane];
    if (!how.is_pair) {
      target[lane] = code(std::bit_cast<f32>(a), 0, false);
      continue;
    }
    const u32 third = is_random || how.is_scaled ? source(2)[lane] : 0;
    const bool is_packed = how.wide != Wide::f32;
    const f32 upper = is_packed ? widened_half(a, how.wide, true) : std::bit_cast<f32>(a);
    const f32 lower =
        is_packed ? widened_half(a, how.wide, false) : std::bit_cast<f32>(source(1)[lane]);
    target[lane] = code(upper, third, true) << stride_of(how.format) | code(lower, third, false);
  }
}

/// The value of a code.
f32 widened(u32 code, NarrowFormat format) {
  if (format == NarrowFormat::ue8m0) {
    return code == 0xff ? NAN : std::ldexp(1.0f, static_cast<int>(code) - 127);
  }
  if (format == NarrowFormat::s2f6) return static_cast<f32>(static_cast<s8>(code)) / 64;
  const FloatLayout layout = layout_of(format);
  const u32 magnitude = code & (layout.sign - 1);
  f32 value;
  if (magnitude > layout.largest) {
    value = magnitude == layout.infinity && format == NarrowFormat::e5m2 ? HUGE_VALF : NAN;
  } else {
    const u32 exponent = magnitude >> layout.fraction;
    const u32 fraction = magnitude & ((1u << layout.fraction) - 1);
    const u32 significand = fraction + (exponent != 0 ? 1u << layout.fraction : 0);
    value = std::ldexp(static_cast<f32>(significand),
                       std::max(static_cast<int>(exponent), 1) - layout.bias - layout.fraction);
  }
  return (code & layout.sign) != 0 ? -value : value;
}

void run_widen(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  const NarrowConversion how = NarrowConversion::decoded(operands.immediate);
  const bool is_bf16 = how.wide == Wide::bf16x2;
  const FloatLayout layout = layout_of(is_bf16 ? NarrowFormat::bf16 : NarrowFormat::f16);
  const u32 stride = stride_of(how.format);
  auto* const target = reinterpret_cast<u32*>(registers + operands.target);
  const auto* const source = reinterpret_cast<const u32*>(registers + operands.source[0]);
  const auto* const scales = reinterpret_cast<const u32*>(registers + operands.source[1]);
  const auto convert = [&](u32 code, u32 scale) {
    f32 value = widened(code, how.format);
    if (how.is_scaled) value *= widened(scale, NarrowFormat::ue8m0);
    return narrow_float(value, how, layout, 0);
  };
  for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const u32 pair = source[lane];
    const u32 scale = how.is_scaled ? scales[lane] : 0;
    const u32 code_mask = (1u << stride) - 1;
    target[lane] = convert(pair >> stride & code_mask, scale >> 8 & 0xff) << 16 |
                   convert(pair & code_mask, scale & 0xff);
  }
}

}  // namespace

LaneFunction narrow_function(const LaneForm& form) {
  return form.operation == Operation::widen ? &run_widen : &run_narrow;
}

}  // namespace warpstack::simt::WARPSTACK_ISA
