#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "simt/arithmetic/half_bits.h"
#include "simt/arithmetic/lane_functions.h"

namespace warpstack::simt::WARPSTACK_ISA {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
/// Two values in one register, the first in the low half.
template <class T>
struct Pair {
  u32 bits;
};
struct predicate {
  u32 bits;
};

/// A T as a lane's register holds it.
template <class T>
using Stored = std::conditional_t<sizeof(T) == 8, u64, u32>;

template <class T>
inline T load(Stored<T> stored) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(stored);
  } else if constexpr (sizeof(T) == 2) {
    return T{static_cast<u16>(stored)};
  } else {
    return std::bit_cast<T>(stored);
  }
}

template <class T>
inline Stored<T> stored(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Stored<T>>(static_cast<std::make_unsigned_t<T>>(value));
  } else if constexpr (sizeof(T) == 2) {
    return value.bits;
  } else {
    return std::bit_cast<Stored<T>>(value);
  }
}

inline double number(f16 value) { return half_to_double(value.bits); }
inline double number(bf16 value) { return bfloat_to_double(value.bits); }
inline float number(f32 value) { return value; }
inline double number(f64 value) { return value; }

/// The T nearest to a double, or rounded in another mode.
template <class T>
inline T rounded(double value, Rounding rounding = Rounding::nearest) {
  if constexpr (std::is_same_v<T, f16>) {
    return {double_to_half(value, rounding)};
  } else if constexpr (std::is_same_v<T, bf16>) {
    return {double_to_bfloat(value, rounding)};
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
inline constexpr bool is_short_float = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
inline constexpr int width_of = static_cast<int>(sizeof(T) * 8);
template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, s64, u64>,
                       std::conditional_t<std::is_signed_v<T>, s32, u32>>>;

/// Calls `f` with the integer type of `type` (b types count as unsigned), or returns null.
template <class F>
LaneFunction for_integer(Type type, F f) {
  switch (type) {
    case Type::b8:
    case Type::u8:
      return f(u8{});
    case Type::s8:
      return f(s8{});
    case Type::b16:
    case Type::u16:
      return f(u16{});
    case Type::s16:
      return f(s16{});
    case Type::b32:
    case Type::u32:
      return f(u32{});
    case Type::s32:
      return f(s32{});
    case Type::b64:
    case Type::u64:
      return f(u64{});
    case Type::s64:
      return f(s64{});
    default:
      return nullptr;
  }
}
/// The same for 16, 32 and 64 bits, the widths of arithmetic.
template <class F>
LaneFunction for_arithmetic(Type type, F f) {
  if (bytes_of(type) < 2) return nullptr;
  return for_integer(type, [&]<class T>(T value) -> LaneFunction {
    if constexpr (sizeof(T) == 1) {
      return nullptr;
    } else {
      return f(value);
    }
  });
}
/// The same for the bits of any type of 16, 32 or 64 bits, or of a predicate.
template <class F>
LaneFunction for_bits(Type type, F f) {
  if (type == Type::pred) return f(u32{});
  switch (bytes_of(type)) {
    case 2:
      return f(u16{});
    case 4:
      return f(u32{});
    case 8:
      return f(u64{});
    default:
      return nullptr;
  }
}
template <class F>
LaneFunction for_32_or_64(Type type, F f) {
  return for_arithmetic(type, [&]<class T>(T value) -> LaneFunction {
    if constexpr (sizeof(T) < 4) {
      return nullptr;
    } else {
      return f(value);
    }
  });
}

}  // namespace warpstack::simt::WARPSTACK_ISA
