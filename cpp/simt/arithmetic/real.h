#pragma once

#include <bit>
#include <cfloat>
#include <cmath>

#include "simt/arithmetic/values.h"

// What the functions of all float types share. The functions of shorter types compute on doubles.

namespace warpstack::simt::WARPSTACK_ISA {

template <class T>
inline T not_a_number() {
  if constexpr (std::is_same_v<T, f32>) return std::bit_cast<f32>(0x7fffffffu);
  if constexpr (std::is_same_v<T, f64>) return std::bit_cast<f64>(u64{0x7ff8000000000000});
}

/// Turns subnormal values into zero of the same sign.
inline f32 flushed(f32 value) {
  const f32 zero = std::bit_cast<f32>(std::bit_cast<u32>(value) & 0x80000000u);
  return std::fabs(value) < FLT_MIN ? zero : value;
}
inline f64 flushed(f64 value) {
  return std::fabs(value) < DBL_MIN ? std::copysign(0.0, value) : value;
}

template <class T>
inline T saturated(T value) {
  return value > T{0} ? (value < T{1} ? value : T{1}) : T{0};  // NaN becomes 0
}

/// .relu: the greater of the value and +0. -0 is below +0; NaN stays NaN.
inline f64 clipped(f64 value) { return std::signbit(value) && value == value ? 0 : value; }

/// An operation on f32 or f64 with .ftz and .sat. The hardware has one f32 NaN, 0x7fffffff.
template <class F, bool flush, bool saturate>
struct Real {
  template <class T, class... Rest>
  static T apply(T a, Rest... rest) {
    T value;
    if constexpr (flush) {
      value = flushed(F::apply(flushed(a), flushed(rest)...));
    } else {
      value = F::apply(a, rest...);
    }
    if constexpr (saturate) value = saturated(value);
    return value == value ? value : not_a_number<T>();
  }
};

struct RealAdd {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct RealFma {
  template <class T>
  static T apply(T a, T b, T c) {
    if constexpr (std::is_same_v<T, f32>) return __builtin_fmaf(a, b, c);
    return __builtin_fma(a, b, c);
  }
};
struct RealMul {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct RealRsqrt {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};
struct RealSin {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::sin(static_cast<double>(a)));
  }
};
struct RealCos {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::cos(static_cast<double>(a)));
  }
};
struct RealEx2 {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::exp2(static_cast<double>(a)));
  }
};
struct RealLg2 {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::log2(static_cast<double>(a)));
  }
};
struct RealTanh {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::tanh(static_cast<double>(a)));
  }
};
/// A NaN gives way to a number, unless `keep_nan`; -0 is below +0.
template <bool is_min, bool keep_nan, bool xor_sign>
struct RealExtreme {
  template <class T>
  static T apply(T a, T b) {
    using Bits = Stored<T>;
    const Bits signs =
        (std::bit_cast<Bits>(a) ^ std::bit_cast<Bits>(b)) & (Bits{1} << (sizeof(T) * 8 - 1));
    if constexpr (xor_sign) {
      a = std::fabs(a);
      b = std::fabs(b);
    }
    const auto x = std::bit_cast<Bits>(a);
    const auto y = std::bit_cast<Bits>(b);
    const T equal = std::bit_cast<T>(is_min ? x | y : x & y);  // differ at most in the sign of zero
    T value = is_min ? (a < b ? a : b) : (a > b ? a : b);
    value = a == b ? equal : value;
    value = a != a ? (keep_nan ? a : b) : value;
    value = b != b ? (keep_nan ? b : a) : value;
    if constexpr (keep_nan) value = a != a ? a : value;
    if constexpr (xor_sign) value = std::bit_cast<T>(std::bit_cast<Bits>(value) | signs);
    return value;
  }
};
/// .ftz for f16, whose exponent is the bits 10 to 14.
inline u16 flushed_half(u16 bits) { return (bits & 0x7c00) == 0 ? bits & 0x8000 : bits; }

}  // namespace warpstack::simt::WARPSTACK_ISA
