// Compiled once per instruction set of the host (see CMakeLists.txt): everything here has internal
// linkage but one function, so that no code for a newer processor is shared with the others.

#include "simt/lanes.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simt/half.h"

#ifndef WARPSTACK_LANES
#define WARPSTACK_LANES find_lane_function_baseline
#endif

namespace warpstack::simt {
namespace {

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

/// What a lane holds of a T.
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

/// A T nearest to a double, or rounded otherwise.
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

// ---- loops over the lanes ----
// Lanes are independent, also when the target is a source: `ivdep`.

/// Loops of cheap functions compute every lane and keep what the mask says; the compiler makes
/// vector code of them. Others compute the active lanes alone.
enum class Cost : u8 { cheap, high };

template <class F, class D, Cost cost, class... S>
void run(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  static_assert(sizeof...(S) >= 1 && sizeof...(S) <= 4);
  auto* const d = reinterpret_cast<Stored<D>*>(registers + operands.target);
  const auto source = [registers, &operands]<class T>(std::size_t i, std::type_identity<T>) {
    return reinterpret_cast<const Stored<T>*>(registers + operands.source[i]);
  };
  const auto loop = [&](const auto&... s) {
    if constexpr (cost == Cost::high) {
      for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        d[lane] = stored<D>(F::apply(load<S>(s[lane])...));
      }
    } else if (mask.all) {
#pragma GCC ivdep
      for (u32 lane = 0; lane < 32; ++lane) d[lane] = stored<D>(F::apply(load<S>(s[lane])...));
    } else {
      const u32* const active = mask.lanes.data();
#pragma GCC ivdep
      for (u32 lane = 0; lane < 32; ++lane) {
        const Stored<D> value = stored<D>(F::apply(load<S>(s[lane])...));
        d[lane] = active[lane] != 0 ? value : d[lane];
      }
    }
  };
  const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) {
    loop(source(i, std::type_identity<S>{})...);
  };
  call(std::index_sequence_for<S...>{});
}

template <class F, class D, class... S>
constexpr LaneFunction cheap() {
  return &run<F, D, Cost::cheap, S...>;
}
template <class F, class D, class... S>
constexpr LaneFunction costly() {
  return &run<F, D, Cost::high, S...>;
}

/// Functions that also want `operands.immediate`; active lanes alone.
template <class F, class D, class... S>
void run_with_immediate(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  auto* const d = reinterpret_cast<Stored<D>*>(registers + operands.target);
  const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) {
    for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      d[lane] = stored<D>(F::apply(
          operands.immediate,
          load<S>(reinterpret_cast<const Stored<S>*>(registers + operands.source[i])[lane])...));
    }
  };
  call(std::index_sequence_for<S...>{});
}

/// Float functions in a rounding mode other than to nearest, `operands.immediate`.
template <class F, class D, class... S>
void run_directed(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(modes[operands.immediate & 3]);
  run<F, D, Cost::high, S...>(registers, operands, mask);
  std::fesetround(FE_TONEAREST);
}

// ---- integers ----

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
inline constexpr int width_of = static_cast<int>(sizeof(T) * 8);
template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, s64, u64>,
                       std::conditional_t<std::is_signed_v<T>, s32, u32>>>;

struct Copy {
  template <class T>
  static T apply(T a) {
    return a;
  }
};
struct Add {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
/// Signed 32-bit addition that stays within the type (.sat).
template <int sign>
struct AddSaturated {
  static s32 apply(s32 a, s32 b) {
    const s64 sum = s64{a} + sign * s64{b};
    return static_cast<s32>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  }
};
struct MultiplyLow {
  template <class T>
  static T apply(T a, T b) {
    // 16-bit factors would be promoted to int, whose product can overflow.
    using U = std::conditional_t<sizeof(T) == 8, u64, u32>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
struct MultiplyHigh {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>((Wide<T>{a} * Wide<T>{b}) >> width_of<T>);
  }
};
struct MultiplyWide {
  template <class T>
  static Wide<T> apply(T a, T b) {
    return Wide<T>{a} * Wide<T>{b};
  }
};
struct MultiplyAddLow {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(MultiplyLow::apply(a, b), c);
  }
};
struct MultiplyAddHigh {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(MultiplyHigh::apply(a, b), c);
  }
};
struct MultiplyAddHighSaturated {
  static s32 apply(s32 a, s32 b, s32 c) {
    return AddSaturated<1>::apply(MultiplyHigh::apply(a, b), c);
  }
};
struct MultiplyAddWide {
  template <class T>
  static Wide<T> apply(T a, T b, Wide<T> c) {
    using U = Unsigned<Wide<T>>;
    return static_cast<Wide<T>>(static_cast<U>(MultiplyWide::apply(a, b)) + static_cast<U>(c));
  }
};
/// The low 24 bits of a value, with its sign.
template <class T>
inline s64 low_24(T a) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<s32>(static_cast<u32>(a) << 8) >> 8;
  } else {
    return a & 0xffffffu;
  }
}
template <bool high>
struct Multiply24 {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>((low_24(a) * low_24(b)) >> (high ? 16 : 0));
  }
};
template <bool high>
struct MultiplyAdd24 {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Multiply24<high>::apply(a, b), c);
  }
};
struct SumOfDifferences {
  template <class T>
  static T apply(T a, T b, T c) {
    const auto x = static_cast<Unsigned<T>>(a);
    const auto y = static_cast<Unsigned<T>>(b);
    return static_cast<T>(static_cast<Unsigned<T>>(c) +
                          static_cast<Unsigned<T>>(a < b ? y - x : x - y));
  }
};
struct Divide {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(-1);  // what the hardware's sequence gives
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Absolute {
  template <class T>
  static T apply(T a) {
    return a < 0 ? static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a)) : a;
  }
};
struct Negate {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
/// .relu: not below zero.
template <class F>
struct Relu {
  template <class T>
  static T apply(T a, T b) {
    return Maximum::apply(F::apply(a, b), T{0});
  }
};
struct PopulationCount {
  template <class T>
  static u32 apply(T a) {
    return static_cast<u32>(std::popcount(a));
  }
};
struct CountLeadingZeros {
  template <class T>
  static u32 apply(T a) {
    return static_cast<u32>(std::countl_zero(a));
  }
};
/// Position of the leading bit that differs from the sign, ~0 without one.
template <bool as_shift>
struct FindLeading {
  template <class T>
  static u32 apply(T a) {
    auto bits = static_cast<Unsigned<T>>(a);
    if (a < 0) bits = static_cast<Unsigned<T>>(~bits);
    if (bits == 0) return ~0u;
    const int zeros = std::countl_zero(bits);
    return static_cast<u32>(as_shift ? zeros : width_of<T> - 1 - zeros);
  }
};
struct BitReverse {
  template <class T>
  static T apply(T a) {
    T result = 0;
    for (int i = 0; i < width_of<T>; ++i) result |= ((a >> i) & T{1}) << (width_of<T> - 1 - i);
    return result;
  }
};
struct BitFieldExtract {
  template <class T>
  static T apply(T a, u32 position, u32 length) {
    position &= 255;
    length &= 255;
    const u32 msb = width_of<T> - 1;
    const auto bits = static_cast<Unsigned<T>>(a);
    if (length == 0) return 0;
    const u32 last = std::min(position + length - 1, msb);
    Unsigned<T> fill = 0;
    if constexpr (std::is_signed_v<T>) fill = ((bits >> last) & 1u) != 0 ? ~Unsigned<T>{0} : 0;
    if (position > msb) return static_cast<T>(fill);
    Unsigned<T> result = bits >> position;
    if (length <= msb) {
      const Unsigned<T> field = (Unsigned<T>{1} << length) - 1;
      result = (result & field);
      // Bits beyond the operand's end repeat the sign, as those beyond the field do.
      const u32 present = std::min(length, msb + 1 - position);
      if (present <= msb) result |= fill & ~((Unsigned<T>{1} << present) - 1);
    } else if (position > 0) {
      result |= fill & ~((Unsigned<T>{1} << (msb + 1 - position)) - 1);
    }
    return static_cast<T>(result);
  }
};
struct BitFieldInsert {
  template <class T>
  static T apply(T a, T b, u32 position, u32 length) {
    position &= 255;
    length &= 255;
    if (position >= width_of<T> || length == 0) return b;
    const T field = length >= width_of<T> ? ~T{0} : static_cast<T>((T{1} << length) - 1);
    return static_cast<T>((b & ~(field << position)) | ((a & field) << position));
  }
};
template <bool clamp>
struct BitMask {
  static u32 apply(u32 a, u32 b) {
    if (!clamp) {
      a &= 31;
      b &= 31;
    }
    if (a >= 32 || b == 0) return 0;
    const u32 field = b >= 32 ? ~0u : (1u << b) - 1;
    return field << a;
  }
};
template <bool clamp, class T>
struct SignExtend {
  static u32 apply(u32 a, u32 n) {
    if (!clamp) n &= 31;
    if (n >= 32) return a;
    if (n == 0) return 0;
    const u32 low = a & ((1u << n) - 1);
    const bool negative = std::is_signed_v<T> && ((a >> (n - 1)) & 1) != 0;
    return negative ? low | ~((1u << n) - 1) : low;
  }
};
struct FindNthSet {
  static u32 apply(u32 mask, u32 base, s32 offset) {
    base &= 31;
    const auto is_set = [mask](s32 i) { return ((mask >> i) & 1) != 0; };
    if (offset == 0) return is_set(static_cast<s32>(base)) ? base : ~0u;
    s32 left = offset > 0 ? offset : offset == INT32_MIN ? INT32_MAX : -offset;
    for (s32 i = static_cast<s32>(base); i >= 0 && i < 32; i += offset > 0 ? 1 : -1) {
      if (is_set(i) && --left == 0) return static_cast<u32>(i);
    }
    return ~0u;
  }
};
template <class A, class B>
struct DotProduct4 {
  static u32 apply(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 4; ++i) {
      c += static_cast<u32>(s32{static_cast<A>(a >> (8 * i))} * s32{static_cast<B>(b >> (8 * i))});
    }
    return c;
  }
};
template <class A, class B, bool high>
struct DotProduct2 {
  static u32 apply(u32 a, u32 b, u32 c) {
    using A16 = std::conditional_t<std::is_signed_v<A>, s16, u16>;
    for (int i = 0; i < 2; ++i) {
      c += static_cast<u32>(s32{static_cast<A16>(a >> (16 * i))} *
                            s32{static_cast<B>(b >> (8 * i + (high ? 16 : 0)))});
    }
    return c;
  }
};
struct And {
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  static T apply(T a) {
    return a == 0 ? 1 : 0;
  }
};
/// The table's rows are chosen outside the loop, so that the loop can be vector code.
void run_lookup_3(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  u32 rows[8];
  for (u32 row = 0; row < 8; ++row) rows[row] = ((operands.immediate >> row) & 1) != 0 ? ~0u : 0u;
  auto* const d = reinterpret_cast<u32*>(registers + operands.target);
  const auto* const a = reinterpret_cast<const u32*>(registers + operands.source[0]);
  const auto* const b = reinterpret_cast<const u32*>(registers + operands.source[1]);
  const auto* const c = reinterpret_cast<const u32*>(registers + operands.source[2]);
#pragma GCC ivdep
  for (u32 lane = 0; lane < 32; ++lane) {
    const u32 z = c[lane];
    const auto pick = [z](u32 with, u32 without) { return (with & z) | (without & ~z); };
    const u32 y = b[lane];
    const u32 a1 = (pick(rows[7], rows[6]) & y) | (pick(rows[5], rows[4]) & ~y);
    const u32 a0 = (pick(rows[3], rows[2]) & y) | (pick(rows[1], rows[0]) & ~y);
    const u32 value = (a1 & a[lane]) | (a0 & ~a[lane]);
    d[lane] = mask.lanes[lane] != 0 ? value : d[lane];
  }
}
struct ShiftLeft {
  template <class T>
  static T apply(T a, u32 b) {
    return b >= static_cast<u32>(width_of<T>) ? T{0} : static_cast<T>(a << (b & (width_of<T> - 1)));
  }
};
struct ShiftRight {
  template <class T>
  static T apply(T a, u32 b) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> std::min(b, static_cast<u32>(width_of<T> - 1)));
    } else {
      return b >= static_cast<u32>(width_of<T>) ? T{0}
                                                : static_cast<T>(a >> (b & (width_of<T> - 1)));
    }
  }
};
template <bool left, bool clamp>
struct ShiftFunnel {
  static u32 apply(u32 a, u32 b, u32 c) {
    const u32 n = clamp ? std::min(c, 32u) : c & 31;
    const u64 both = (u64{b} << 32) | a;
    return static_cast<u32>(left ? (both << n) >> 32 : both >> n);
  }
};
template <Permute mode>
struct PermuteBytes {
  static u32 apply(u32 a, u32 b, u32 c) {
    const u64 both = (u64{b} << 32) | a;
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i) {
      u32 selector = 0;
      const u32 n = c & 3;
      switch (mode) {
        case Permute::index:
          selector = (c >> (4 * i)) & 15;
          break;
        case Permute::f4e:
          selector = n + i;
          break;
        case Permute::b4e:
          selector = (n - i) & 7;
          break;
        case Permute::rc8:
          selector = n;
          break;
        case Permute::ecl:
          selector = std::max(i, n);
          break;
        case Permute::ecr:
          selector = std::min(i, n);
          break;
        case Permute::rc16:
          selector = (n & 1) * 2 + (i & 1);
          break;
      }
      u32 byte = static_cast<u32>(both >> (8 * (selector & 7))) & 255;
      if ((selector & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};
struct Select {
  template <class T>
  static T apply(T a, T b, predicate c) {
    return c.bits != 0 ? a : b;
  }
};
/// Integers hold the values of floats too: what is selected is bits.
template <class C>
struct SelectSign {
  template <class T>
  static T apply(T a, T b, C c) {
    return c >= C{0} ? a : b;  // NaN selects b
  }
};
/// .ftz: a negative subnormal selector counts as zero.
struct SelectSignFlushed {
  template <class T>
  static T apply(T a, T b, f32 c) {
    return c > -FLT_MIN ? a : b;
  }
};

template <class T>
void run_add_with_carry(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  auto* const d = reinterpret_cast<T*>(registers + operands.target);
  auto* const carry = reinterpret_cast<u32*>(registers + operands.target2);
  const auto* const a = reinterpret_cast<const T*>(registers + operands.source[0]);
  const auto* const b = reinterpret_cast<const T*>(registers + operands.source[1]);
  const auto* const c = reinterpret_cast<const u32*>(registers + operands.source[2]);
  for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    const auto sum = static_cast<unsigned __int128>(a[i]) + b[i] + c[i];
    d[i] = static_cast<T>(sum);
    carry[i] = static_cast<u32>(sum >> width_of<T>);
  }
}
template <class T>
void run_subtract_with_borrow(std::byte* registers, const LaneOperands& operands,
                              const LaneMask& mask) {
  auto* const d = reinterpret_cast<T*>(registers + operands.target);
  auto* const borrow = reinterpret_cast<u32*>(registers + operands.target2);
  const auto* const a = reinterpret_cast<const T*>(registers + operands.source[0]);
  const auto* const b = reinterpret_cast<const T*>(registers + operands.source[1]);
  const auto* const c = reinterpret_cast<const u32*>(registers + operands.source[2]);
  for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    const auto taken = static_cast<unsigned __int128>(b[i]) + c[i];
    const bool under = static_cast<unsigned __int128>(a[i]) < taken;
    d[i] = static_cast<T>(a[i] - static_cast<T>(taken));
    borrow[i] = under ? 1 : 0;
  }
}

// ---- floats ----

template <class T>
inline T not_a_number() {
  if constexpr (std::is_same_v<T, f32>) return std::bit_cast<f32>(0x7fffffffu);
  if constexpr (std::is_same_v<T, f64>) return std::bit_cast<f64>(u64{0x7ff8000000000000});
}

/// Subnormal values become zero of the same sign.
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

/// .relu: the greater of the value and +0, where -0 is below +0; NaN stays.
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
struct RealSubtract {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct RealMultiply {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct RealFused {
  template <class T>
  static T apply(T a, T b, T c) {
    if constexpr (std::is_same_v<T, f32>) return __builtin_fmaf(a, b, c);
    return __builtin_fma(a, b, c);
  }
};
struct RealDivide {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct RealReciprocal {
  template <class T>
  static T apply(T a) {
    return T{1} / a;
  }
};
struct RealRoot {
  template <class T>
  static T apply(T a) {
    return std::sqrt(a);
  }
};
struct RealReciprocalRoot {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};
struct RealSine {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::sin(static_cast<double>(a)));
  }
};
struct RealCosine {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::cos(static_cast<double>(a)));
  }
};
struct RealExponential {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::exp2(static_cast<double>(a)));
  }
};
struct RealLogarithm {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::log2(static_cast<double>(a)));
  }
};
struct RealTangentHyperbolic {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(std::tanh(static_cast<double>(a)));
  }
};
/// Sign operations leave NaNs as they are but for f32's flush.
template <bool flush>
struct RealAbsolute {
  template <class T>
  static T apply(T a) {
    return std::fabs(flush ? flushed(a) : a);
  }
};
template <bool flush>
struct RealNegate {
  template <class T>
  static T apply(T a) {
    return -(flush ? flushed(a) : a);
  }
};
struct RealCopySign {
  template <class T>
  static T apply(T a, T b) {
    using Bits = Stored<T>;
    constexpr Bits sign = Bits{1} << (sizeof(T) * 8 - 1);
    return std::bit_cast<T>((std::bit_cast<Bits>(a) & sign) | (std::bit_cast<Bits>(b) & ~sign));
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
    const T equal = std::bit_cast<T>(is_min ? x | y : x & y);  // differ in the sign of zero alone
    T value = is_min ? (a < b ? a : b) : (a > b ? a : b);
    value = a == b ? equal : value;
    value = a != a ? (keep_nan ? a : b) : value;
    value = b != b ? (keep_nan ? b : a) : value;
    if constexpr (keep_nan) value = a != a ? a : value;
    if constexpr (xor_sign) value = std::bit_cast<T>(std::bit_cast<Bits>(value) | signs);
    return value;
  }
};
template <class T, Property property>
struct TestProperty {
  static predicate apply(T a) {
    bool holds = false;
    switch (property) {
      case Property::finite:
        holds = std::isfinite(a);
        break;
      case Property::infinite:
        holds = std::isinf(a);
        break;
      case Property::number:
        holds = !std::isnan(a);
        break;
      case Property::not_a_number:
        holds = std::isnan(a);
        break;
      case Property::normal:
        holds = std::isnormal(a);
        break;
      case Property::subnormal:
        holds = std::fpclassify(a) == FP_SUBNORMAL;
        break;
    }
    return {holds ? ~0u : 0u};
  }
};

// ---- short floats ----

/// An operation on f16 or bf16: F computes on doubles, once rounded to odd where inexact.
template <class F, bool flush, bool saturate, bool relu>
struct Short {
  template <class T>
  static double operand(T value) {
    const double x = number(value);
    return flush && std::fabs(x) < (std::is_same_v<T, f16> ? 0x1p-14 : 0x1p-126)
               ? std::copysign(0.0, x)
               : x;
  }
  template <class T, class... Rest>
  static T apply(T a, Rest... rest) {
    double value = F::apply(operand(a), operand(rest)...);
    if (saturate) value = saturated(value);
    if (relu) value = clipped(value);
    T result = rounded<T>(value);
    if (flush && std::isfinite(value)) result = rounded<T>(operand(result));
    return result;
  }
};
/// The same for both halves of a register.
template <class F, class T>
struct Halves {
  template <class... Rest>
  static Pair<T> apply(Pair<T> a, Rest... rest) {
    const auto low = F::apply(T{static_cast<u16>(a.bits)}, T{static_cast<u16>(rest.bits)}...);
    const auto high =
        F::apply(T{static_cast<u16>(a.bits >> 16)}, T{static_cast<u16>(rest.bits >> 16)}...);
    return {low.bits | (u32{high.bits} << 16)};
  }
};
struct ShortAdd {
  static double apply(double a, double b) { return fma_to_odd(a, 1, b); }
};
struct ShortSubtract {
  static double apply(double a, double b) { return fma_to_odd(a, 1, -b); }
};
struct ShortFused {
  static double apply(double a, double b, double c) { return fma_to_odd(a, b, c); }
};
/// Sign operations; .ftz exists for f16 alone, whose exponent is the bits 10 to 14.
inline u16 flushed_half(u16 bits) { return (bits & 0x7c00) == 0 ? bits & 0x8000 : bits; }
template <bool flush>
struct ShortNegate {
  template <class T>
  static T apply(T a) {
    return {static_cast<u16>((flush ? flushed_half(a.bits) : a.bits) ^ 0x8000)};
  }
};
template <bool flush>
struct ShortAbsolute {
  template <class T>
  static T apply(T a) {
    return {static_cast<u16>((flush ? flushed_half(a.bits) : a.bits) & 0x7fff)};
  }
};

// ---- comparisons ----

template <Comparison comparison>
struct Compare {
  template <class T>
  static predicate apply(T a, T b) {
    if constexpr (is_short_float<T>) {
      return apply(number(a), number(b));
    } else {
      return {compare(a, b) ? ~0u : 0u};
    }
  }
  template <class T>
  static bool compare(T a, T b) {
    switch (comparison) {
      case Comparison::eq:
        return a == b;
      case Comparison::ne:
        return a < b || a > b;
      case Comparison::lt:
        return a < b;
      case Comparison::le:
        return a <= b;
      case Comparison::gt:
        return a > b;
      case Comparison::ge:
        return a >= b;
      case Comparison::equ:
        return !(a < b || a > b);
      case Comparison::neu:
        return !(a == b);
      case Comparison::ltu:
        return !(a >= b);
      case Comparison::leu:
        return !(a > b);
      case Comparison::gtu:
        return !(a <= b);
      case Comparison::geu:
        return !(a < b);
      case Comparison::num:
        return a == a && b == b;
      case Comparison::nan:
        return a != a || b != b;
    }
    return false;
  }
};
/// Flushes subnormal operands first.
template <Comparison comparison>
struct CompareFlushed {
  static predicate apply(f32 a, f32 b) {
    return Compare<comparison>::apply(flushed(a), flushed(b));
  }
  static predicate apply(f16 a, f16 b) {
    return Compare<comparison>::apply(f16{flushed_half(a.bits)}, f16{flushed_half(b.bits)});
  }
};

// ---- conversions ----

/// Rounds to an integral value.
inline double to_integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest:
      return std::nearbyint(value);  // ties to even
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
  }
  return value;
}

template <bool flush, class T>
inline auto source_value(T a) {
  const auto value = number(a);
  if constexpr (flush && std::is_same_v<T, f32>) return flushed(value);
  return value;
}

/// Integers to integers: the value, cut to the type or held within it (.sat).
template <class D, bool saturate>
struct ConvertInteger {
  template <class S>
  static D apply(S a) {
    if constexpr (saturate) {
      using Limits = std::numeric_limits<D>;
      if (std::is_signed_v<S> && !std::is_signed_v<D> && a < S{0}) return 0;
      if (static_cast<__int128>(a) > static_cast<__int128>(Limits::max())) return Limits::max();
      if (static_cast<__int128>(a) < static_cast<__int128>(Limits::min())) return Limits::min();
    }
    return static_cast<D>(a);
  }
};

/// Floats to integers: the nearest value of the type; PTX ISA on cvt for what becomes of NaN.
template <class D, bool flush>
struct ConvertToInteger {
  template <class S>
  static D apply(u32 rounding, S a) {
    const double value = to_integral(source_value<flush>(a), static_cast<Rounding>(rounding));
    using Limits = std::numeric_limits<D>;
    if (std::isnan(value)) {
      if (!std::is_same_v<S, f64> && sizeof(D) < 8) return 0;
      return static_cast<D>(Unsigned<D>{1} << (width_of<D> - 1));
    }
    // The upper bound of 64-bit types is no double: compare with the next power of two.
    const double above = std::ldexp(1.0, width_of<D> - (std::is_signed_v<D> ? 1 : 0));
    if (value >= above) return Limits::max();
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<D>(value);
  }
};
/// The common case as vector code: f32 to s32, towards zero.
struct ConvertTruncated {
  static s32 apply(f32 a) {
    const bool is_number = a == a;
    const f32 inside = a < 2147483648.0f && a > -2147483904.0f ? a : 0.0f;
    const s32 value = static_cast<s32>(inside);
    const s32 limit = a > 0.0f ? INT32_MAX : INT32_MIN;
    return a == inside ? value : is_number ? limit : 0;
  }
};

template <class D, bool saturate>
inline D finished(D value) {
  if constexpr (is_short_float<D>) {
    return saturate ? rounded<D>(saturated(number(value))) : value;
  } else {
    if constexpr (saturate) value = saturated(value);
    return value == value ? value : not_a_number<D>();
  }
}

/// An integer as a double, rounded to odd beyond 2^53 so that a second rounding is right.
template <class S>
inline double to_double_odd(S a) {
  if constexpr (sizeof(S) == 8) {
    const bool negative = a < S{0};
    u64 magnitude = negative ? u64{0} - static_cast<u64>(a) : static_cast<u64>(a);
    if (magnitude >> 53 != 0)
      magnitude = (magnitude & ~u64{0x7ff}) | ((magnitude & 0x7ff) != 0 ? 0x800 : 0);
    const auto value = static_cast<double>(magnitude);
    return negative ? -value : value;
  } else {
    return static_cast<double>(a);
  }
}
template <class D, bool saturate>
struct ConvertIntegerToReal {
  template <class S>
  static D apply(S a) {
    return finished<D, saturate>(static_cast<D>(a));
  }
};
template <class D, bool saturate>
struct ConvertIntegerToShort {
  template <class S>
  static D apply(u32 rounding, S a) {
    return finished<D, saturate>(rounded<D>(to_double_odd(a), static_cast<Rounding>(rounding)));
  }
};
/// Between floats. Directed rounding of f64 to f32 relies on the rounding mode of the processor.
template <class D, bool flush, bool saturate>
struct ConvertReal {
  template <class S>
  static D apply(S a) {
    D value;
    if constexpr (is_short_float<D>) {
      value = rounded<D>(source_value<flush>(a));
    } else {
      value = static_cast<D>(source_value<flush>(a));
      if constexpr (flush) value = flushed(value);
    }
    return finished<D, saturate>(value);
  }
};
template <class D, bool flush, bool saturate, bool relu>
struct ConvertToShort {
  template <class S>
  static D apply(u32 rounding, S a) {
    double value = source_value<flush>(a);
    if (relu) value = clipped(value);
    return finished<D, saturate>(rounded<D>(value, static_cast<Rounding>(rounding)));
  }
};
/// Two f32 to the halves of a register; the first operand becomes the upper half.
template <class D, bool relu>
struct ConvertToPair {
  static Pair<D> apply(u32 rounding, f32 a, f32 b) {
    const D high = ConvertToShort<D, false, false, relu>::apply(rounding, a);
    const D low = ConvertToShort<D, false, false, relu>::apply(rounding, b);
    return {low.bits | (u32{high.bits} << 16)};
  }
};
/// .rni and its kin with a float as result.
template <bool flush, bool saturate>
struct RoundIntegral {
  template <class T>
  static T apply(u32 rounding, T a) {
    const double value = to_integral(source_value<flush>(a), static_cast<Rounding>(rounding));
    return finished<T, saturate>(rounded<T>(value));
  }
};
/// Round to nearest, ties away from zero, to the 10-bit fraction of tf32.
struct ConvertToTf32 {
  static f32 apply(f32 a) {
    if (!(std::fabs(a) < HUGE_VALF)) return a == a ? a : not_a_number<f32>();
    const u32 bits = std::bit_cast<u32>(a) + 0x1000u;
    return std::bit_cast<f32>(bits & 0xffffe000u);
  }
};

// ---- choosing ----

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
/// 16, 32 and 64 bits, the widths of arithmetic.
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
/// The bits of any type of 16, 32 or 64 bits, or of a predicate.
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

template <class F, class... T>
LaneFunction real_function(const LaneForm& form) {
  if (form.relu) return nullptr;
  using First = std::tuple_element_t<0, std::tuple<T...>>;
  if (form.rounding != Rounding::nearest) {
    if (form.flush) {
      return form.saturate ? &run_directed<Real<F, true, true>, First, T...>
                           : &run_directed<Real<F, true, false>, First, T...>;
    }
    return form.saturate ? &run_directed<Real<F, false, true>, First, T...>
                         : &run_directed<Real<F, false, false>, First, T...>;
  }
  if (form.flush) {
    return form.saturate ? cheap<Real<F, true, true>, First, T...>()
                         : cheap<Real<F, true, false>, First, T...>();
  }
  return form.saturate ? cheap<Real<F, false, true>, First, T...>()
                       : cheap<Real<F, false, false>, First, T...>();
}

/// Functions of the C library: active lanes alone, no directed rounding.
template <class F, class T>
LaneFunction library_function(const LaneForm& form) {
  if (form.saturate || form.relu || form.rounding != Rounding::nearest) return nullptr;
  return form.flush ? costly<Real<F, true, false>, T, T>() : costly<Real<F, false, false>, T, T>();
}

template <class F, class T, class... Rest>
LaneFunction short_function_of(const LaneForm& form) {
  const auto choose = [&]<bool flush, bool saturate>() -> LaneFunction {
    using Plain = Short<F, flush, saturate, false>;
    using Clipped = Short<F, flush, saturate, true>;
    return form.relu ? costly<Clipped, T, T, Rest...>() : costly<Plain, T, T, Rest...>();
  };
  if (form.flush) {
    return form.saturate ? choose.template operator()<true, true>()
                         : choose.template operator()<true, false>();
  }
  return form.saturate ? choose.template operator()<false, true>()
                       : choose.template operator()<false, false>();
}
template <class F, class T, class... Rest>
LaneFunction pair_function_of(const LaneForm& form) {
  const auto choose = [&]<bool flush, bool saturate>() -> LaneFunction {
    using Plain = Halves<Short<F, flush, saturate, false>, T>;
    using Clipped = Halves<Short<F, flush, saturate, true>, T>;
    using P = Pair<T>;
    return form.relu ? costly<Clipped, P, P, Rest...>() : costly<Plain, P, P, Rest...>();
  };
  if (form.flush) {
    return form.saturate ? choose.template operator()<true, true>()
                         : choose.template operator()<true, false>();
  }
  return form.saturate ? choose.template operator()<false, true>()
                       : choose.template operator()<false, false>();
}

/// One-, two- and three-operand functions of the short types.
template <class F, int operands>
LaneFunction short_function(const LaneForm& form) {
  if (form.rounding != Rounding::nearest) return nullptr;
  const auto choose = [&]<class T>(T) -> LaneFunction {
    if constexpr (operands == 1) return short_function_of<F, T>(form);
    if constexpr (operands == 2) return short_function_of<F, T, T>(form);
    if constexpr (operands == 3) return short_function_of<F, T, T, T>(form);
  };
  const auto choose_pair = [&]<class T>(T) -> LaneFunction {
    using P = Pair<T>;
    if constexpr (operands == 1) return pair_function_of<F, T>(form);
    if constexpr (operands == 2) return pair_function_of<F, T, P>(form);
    if constexpr (operands == 3) return pair_function_of<F, T, P, P>(form);
  };
  switch (form.type) {
    case Type::f16:
      return choose(f16{});
    case Type::bf16:
      return choose(bf16{});
    case Type::f16x2:
      return choose_pair(f16{});
    case Type::bf16x2:
      return choose_pair(bf16{});
    default:
      return nullptr;
  }
}

/// A function on f32, f64 and the short types.
template <class RealF, class ShortF>
LaneFunction binary_float(const LaneForm& form) {
  if (form.type == Type::f32) return real_function<RealF, f32, f32>(form);
  if (form.type == Type::f64) return real_function<RealF, f64, f64>(form);
  return short_function<ShortF, 2>(form);
}

template <bool is_min>
LaneFunction extreme(const LaneForm& form) {
  using IntegerF = std::conditional_t<is_min, Minimum, Maximum>;
  using Plain = RealExtreme<is_min, false, false>;
  using Nan = RealExtreme<is_min, true, false>;
  using Xor = RealExtreme<is_min, false, true>;
  using NanXor = RealExtreme<is_min, true, true>;
  if (!is_float(form.type)) {
    return for_arithmetic(form.type, [&]<class T>(T) -> LaneFunction {
      return form.relu ? cheap<Relu<IntegerF>, T, T, T>() : cheap<IntegerF, T, T, T>();
    });
  }
  if (form.type == Type::f64) return real_function<Plain, f64, f64>(form);
  if (form.type == Type::f32) {
    if (form.xor_sign) {
      return form.propagate_nan ? real_function<NanXor, f32, f32>(form)
                                : real_function<Xor, f32, f32>(form);
    }
    return form.propagate_nan ? real_function<Nan, f32, f32>(form)
                              : real_function<Plain, f32, f32>(form);
  }
  if (form.xor_sign) {
    return form.propagate_nan ? short_function<NanXor, 2>(form) : short_function<Xor, 2>(form);
  }
  return form.propagate_nan ? short_function<Nan, 2>(form) : short_function<Plain, 2>(form);
}

template <class T, bool is_real>
LaneFunction comparison_of(const LaneForm& form) {
  const auto choose = [&]<Comparison c>() -> LaneFunction {
    if constexpr (std::is_same_v<T, f32>) {
      if (form.flush) return cheap<CompareFlushed<c>, predicate, T, T>();
    }
    if constexpr (std::is_same_v<T, f16>) {
      if (form.flush) return costly<CompareFlushed<c>, predicate, T, T>();
    }
    if constexpr (is_short_float<T>) return costly<Compare<c>, predicate, T, T>();
    return cheap<Compare<c>, predicate, T, T>();
  };
#define WARPSTACK_CASE(name) \
  case Comparison::name:     \
    return choose.template operator()<Comparison::name>();
  switch (form.comparison) {
    WARPSTACK_CASE(eq)
    WARPSTACK_CASE(ne)
    WARPSTACK_CASE(lt)
    WARPSTACK_CASE(le)
    WARPSTACK_CASE(gt)
    WARPSTACK_CASE(ge)
    default:
      break;
  }
  if constexpr (is_real) {
    switch (form.comparison) {
      WARPSTACK_CASE(equ)
      WARPSTACK_CASE(neu)
      WARPSTACK_CASE(ltu)
      WARPSTACK_CASE(leu)
      WARPSTACK_CASE(gtu)
      WARPSTACK_CASE(geu)
      WARPSTACK_CASE(num)
      WARPSTACK_CASE(nan)
      default:
        break;
    }
  }
#undef WARPSTACK_CASE
  return nullptr;
}

LaneFunction comparison(const LaneForm& form) {
  switch (form.type) {
    case Type::f16:
      return comparison_of<f16, true>(form);
    case Type::bf16:
      return comparison_of<bf16, true>(form);
    case Type::f32:
      return comparison_of<f32, true>(form);
    case Type::f64:
      return comparison_of<f64, true>(form);
    default:
      return for_arithmetic(form.type, [&]<class T>(T) { return comparison_of<T, false>(form); });
  }
}

template <class S>
LaneFunction conversion_from_real(const LaneForm& form) {
  if (!is_float(form.type)) {
    if (std::is_same_v<S, f32> && form.type == Type::s32 && form.rounding == Rounding::zero &&
        !form.flush) {
      return cheap<ConvertTruncated, s32, f32>();
    }
    return for_integer(form.type, [&]<class D>(D) -> LaneFunction {
      return form.flush ? &run_with_immediate<ConvertToInteger<D, true>, D, S>
                        : &run_with_immediate<ConvertToInteger<D, false>, D, S>;
    });
  }
  if (form.integer_rounding) {
    if (form.flush) {
      return form.saturate ? &run_with_immediate<RoundIntegral<true, true>, S, S>
                           : &run_with_immediate<RoundIntegral<true, false>, S, S>;
    }
    return form.saturate ? &run_with_immediate<RoundIntegral<false, true>, S, S>
                         : &run_with_immediate<RoundIntegral<false, false>, S, S>;
  }
  const auto to_short = [&]<class D>(D) -> LaneFunction {
    const auto choose = [&]<bool flush>() -> LaneFunction {
      if (form.saturate) return &run_with_immediate<ConvertToShort<D, flush, true, false>, D, S>;
      return form.relu ? &run_with_immediate<ConvertToShort<D, flush, false, true>, D, S>
                       : &run_with_immediate<ConvertToShort<D, flush, false, false>, D, S>;
    };
    return form.flush ? choose.template operator()<true>() : choose.template operator()<false>();
  };
  const auto to_real = [&]<class D>(D) -> LaneFunction {
    const auto choose = [&]<bool flush, bool saturate>() -> LaneFunction {
      using F = ConvertReal<D, flush, saturate>;
      if (form.rounding != Rounding::nearest) return &run_directed<F, D, S>;
      return is_short_float<S> ? costly<F, D, S>() : cheap<F, D, S>();
    };
    if (form.flush) {
      return form.saturate ? choose.template operator()<true, true>()
                           : choose.template operator()<true, false>();
    }
    return form.saturate ? choose.template operator()<false, true>()
                         : choose.template operator()<false, false>();
  };
  switch (form.type) {
    case Type::f16:
      return to_short(f16{});
    case Type::bf16:
      return to_short(bf16{});
    case Type::f32:
      return to_real(f32{});
    case Type::f64:
      return to_real(f64{});
    case Type::tf32:
      if constexpr (std::is_same_v<S, f32>) return cheap<ConvertToTf32, f32, f32>();
      return nullptr;
    case Type::f16x2:
      if constexpr (std::is_same_v<S, f32>) {
        return form.relu ? &run_with_immediate<ConvertToPair<f16, true>, Pair<f16>, f32, f32>
                         : &run_with_immediate<ConvertToPair<f16, false>, Pair<f16>, f32, f32>;
      }
      return nullptr;
    case Type::bf16x2:
      if constexpr (std::is_same_v<S, f32>) {
        return form.relu ? &run_with_immediate<ConvertToPair<bf16, true>, Pair<bf16>, f32, f32>
                         : &run_with_immediate<ConvertToPair<bf16, false>, Pair<bf16>, f32, f32>;
      }
      return nullptr;
    default:
      return nullptr;
  }
}

LaneFunction conversion(const LaneForm& form) {
  switch (form.source) {
    case Type::f16:
      return conversion_from_real<f16>(form);
    case Type::bf16:
      return conversion_from_real<bf16>(form);
    case Type::f32:
      return conversion_from_real<f32>(form);
    case Type::f64:
      return conversion_from_real<f64>(form);
    default:
      break;
  }
  return for_integer(form.source, [&]<class S>(S) -> LaneFunction {
    const auto to_real = [&]<class D>(D) -> LaneFunction {
      using Plain = ConvertIntegerToReal<D, false>;
      using Saturated = ConvertIntegerToReal<D, true>;
      if (form.rounding != Rounding::nearest) {
        return form.saturate ? &run_directed<Saturated, D, S> : &run_directed<Plain, D, S>;
      }
      return form.saturate ? cheap<Saturated, D, S>() : cheap<Plain, D, S>();
    };
    switch (form.type) {
      case Type::f16:
        return form.saturate ? &run_with_immediate<ConvertIntegerToShort<f16, true>, f16, S>
                             : &run_with_immediate<ConvertIntegerToShort<f16, false>, f16, S>;
      case Type::bf16:
        return form.saturate ? &run_with_immediate<ConvertIntegerToShort<bf16, true>, bf16, S>
                             : &run_with_immediate<ConvertIntegerToShort<bf16, false>, bf16, S>;
      case Type::f32:
        return to_real(f32{});
      case Type::f64:
        return to_real(f64{});
      default:
        return for_integer(form.type, [&]<class D>(D) -> LaneFunction {
          return form.saturate ? costly<ConvertInteger<D, true>, D, S>()
                               : cheap<ConvertInteger<D, false>, D, S>();
        });
    }
  });
}

template <class A>
LaneFunction dot_product(const LaneForm& form) {
  const auto choose = [&]<class B>(B) -> LaneFunction {
    if (form.operation == Operation::dot_product_4) {
      return cheap<DotProduct4<A, B>, u32, u32, u32, u32>();
    }
    return form.high ? cheap<DotProduct2<A, B, true>, u32, u32, u32, u32>()
                     : cheap<DotProduct2<A, B, false>, u32, u32, u32, u32>();
  };
  return is_signed(form.source) ? choose(s8{}) : choose(u8{});
}

LaneFunction permute(const LaneForm& form) {
  switch (static_cast<Permute>(form.mode)) {
#define WARPSTACK_CASE(name) \
  case Permute::name:        \
    return cheap<PermuteBytes<Permute::name>, u32, u32, u32, u32>();
    WARPSTACK_CASE(index)
    WARPSTACK_CASE(f4e)
    WARPSTACK_CASE(b4e)
    WARPSTACK_CASE(rc8)
    WARPSTACK_CASE(ecl)
    WARPSTACK_CASE(ecr)
    WARPSTACK_CASE(rc16)
#undef WARPSTACK_CASE
  }
  return nullptr;
}

template <class T>
LaneFunction property(const LaneForm& form) {
  switch (static_cast<Property>(form.mode)) {
#define WARPSTACK_CASE(name) \
  case Property::name:       \
    return costly<TestProperty<T, Property::name>, predicate, T>();
    WARPSTACK_CASE(finite)
    WARPSTACK_CASE(infinite)
    WARPSTACK_CASE(number)
    WARPSTACK_CASE(not_a_number)
    WARPSTACK_CASE(normal)
    WARPSTACK_CASE(subnormal)
#undef WARPSTACK_CASE
  }
  return nullptr;
}

template <class F>
LaneFunction bitwise(Type type) {
  return for_bits(type, []<class T>(T) -> LaneFunction { return cheap<F, T, T, T>(); });
}

/// Sign operations of floats.
template <template <bool> class RealF, template <bool> class ShortF>
LaneFunction sign_function(const LaneForm& form) {
  using Plain = ShortF<false>;
  using Flushing = ShortF<true>;
  using Pairs = Pair<f16>;
  switch (form.type) {
    case Type::f32:
      return form.flush ? cheap<RealF<true>, f32, f32>() : cheap<RealF<false>, f32, f32>();
    case Type::f64:
      return cheap<RealF<false>, f64, f64>();
    case Type::f16:
      return form.flush ? cheap<Flushing, f16, f16>() : cheap<Plain, f16, f16>();
    case Type::bf16:
      return cheap<Plain, bf16, bf16>();
    case Type::f16x2:
      return form.flush ? costly<Halves<Flushing, f16>, Pairs, Pairs>()
                        : costly<Halves<Plain, f16>, Pairs, Pairs>();
    case Type::bf16x2:
      return costly<Halves<Plain, bf16>, Pair<bf16>, Pair<bf16>>();
    default:
      return nullptr;
  }
}

template <class F>
LaneFunction library(const LaneForm& form) {
  if (form.type == Type::f32) return library_function<F, f32>(form);
  return short_function<F, 1>(form);
}

/// Correctly rounded by the processor.
template <class F, class... T>
LaneFunction processor(const LaneForm& form) {
  if (form.type == Type::f32) return real_function<F, std::conditional_t<true, f32, T>...>(form);
  if (form.type == Type::f64) return real_function<F, std::conditional_t<true, f64, T>...>(form);
  return nullptr;
}

}  // namespace

LaneFunction WARPSTACK_LANES(const LaneForm& form) {
  const bool real = is_float(form.type);
  switch (form.operation) {
    case Operation::copy:
      return for_bits(form.type, []<class T>(T) -> LaneFunction { return cheap<Copy, T, T>(); });
    case Operation::add:
      if (real) return binary_float<RealAdd, ShortAdd>(form);
      if (form.saturate) {
        return form.type == Type::s32 ? cheap<AddSaturated<1>, s32, s32, s32>() : nullptr;
      }
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Add, T, T, T>(); });
    case Operation::subtract:
      if (real) return binary_float<RealSubtract, ShortSubtract>(form);
      if (form.saturate) {
        return form.type == Type::s32 ? cheap<AddSaturated<-1>, s32, s32, s32>() : nullptr;
      }
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Subtract, T, T, T>(); });
    case Operation::add_with_carry:
      return bytes_of(form.type) == 8 ? &run_add_with_carry<u64> : &run_add_with_carry<u32>;
    case Operation::subtract_with_borrow:
      return bytes_of(form.type) == 8 ? &run_subtract_with_borrow<u64>
                                      : &run_subtract_with_borrow<u32>;
    case Operation::multiply_low:
      if (real) return binary_float<RealMultiply, RealMultiply>(form);
      return for_arithmetic(
          form.type, []<class T>(T) -> LaneFunction { return cheap<MultiplyLow, T, T, T>(); });
    case Operation::multiply_high:
      return for_arithmetic(
          form.type, []<class T>(T) -> LaneFunction { return cheap<MultiplyHigh, T, T, T>(); });
    case Operation::multiply_wide:
      return for_arithmetic(form.type, []<class T>(T) -> LaneFunction {
        if constexpr (sizeof(T) == 8) {
          return nullptr;
        } else {
          return cheap<MultiplyWide, Wide<T>, T, T>();
        }
      });
    case Operation::multiply_add_low:
      return for_arithmetic(form.type, []<class T>(T) -> LaneFunction {
        return cheap<MultiplyAddLow, T, T, T, T>();
      });
    case Operation::multiply_add_high:
      if (form.saturate) return cheap<MultiplyAddHighSaturated, s32, s32, s32, s32>();
      return for_arithmetic(form.type, []<class T>(T) -> LaneFunction {
        return cheap<MultiplyAddHigh, T, T, T, T>();
      });
    case Operation::multiply_add_wide:
      return for_arithmetic(form.type, []<class T>(T) -> LaneFunction {
        if constexpr (sizeof(T) == 8) {
          return nullptr;
        } else {
          return cheap<MultiplyAddWide, Wide<T>, T, T, Wide<T>>();
        }
      });
    case Operation::multiply_24:
      if (is_signed(form.type)) {
        return form.high ? cheap<Multiply24<true>, s32, s32, s32>()
                         : cheap<Multiply24<false>, s32, s32, s32>();
      }
      return form.high ? cheap<Multiply24<true>, u32, u32, u32>()
                       : cheap<Multiply24<false>, u32, u32, u32>();
    case Operation::multiply_add_24:
      if (is_signed(form.type)) {
        return form.high ? cheap<MultiplyAdd24<true>, s32, s32, s32, s32>()
                         : cheap<MultiplyAdd24<false>, s32, s32, s32, s32>();
      }
      return form.high ? cheap<MultiplyAdd24<true>, u32, u32, u32, u32>()
                       : cheap<MultiplyAdd24<false>, u32, u32, u32, u32>();
    case Operation::sum_of_differences:
      return for_arithmetic(form.type, []<class T>(T) -> LaneFunction {
        return cheap<SumOfDifferences, T, T, T, T>();
      });
    case Operation::divide:
      if (real) return processor<RealDivide, int, int>(form);
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return costly<Divide, T, T, T>(); });
    case Operation::remainder:
      return for_arithmetic(
          form.type, []<class T>(T) -> LaneFunction { return costly<Remainder, T, T, T>(); });
    case Operation::absolute:
      if (real) return sign_function<RealAbsolute, ShortAbsolute>(form);
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Absolute, T, T>(); });
    case Operation::negate:
      if (real) return sign_function<RealNegate, ShortNegate>(form);
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Negate, T, T>(); });
    case Operation::minimum:
      return extreme<true>(form);
    case Operation::maximum:
      return extreme<false>(form);
    case Operation::fused_multiply_add:
      if (form.type == Type::f32) return real_function<RealFused, f32, f32, f32>(form);
      if (form.type == Type::f64) return real_function<RealFused, f64, f64, f64>(form);
      return short_function<ShortFused, 3>(form);
    case Operation::reciprocal:
      return processor<RealReciprocal, int>(form);
    case Operation::root:
      return processor<RealRoot, int>(form);
    case Operation::reciprocal_root:
      if (form.type == Type::f64) return library_function<RealReciprocalRoot, f64>(form);
      return library<RealReciprocalRoot>(form);
    case Operation::sine:
      return library<RealSine>(form);
    case Operation::cosine:
      return library<RealCosine>(form);
    case Operation::exponential_2:
      return library<RealExponential>(form);
    case Operation::logarithm_2:
      return library<RealLogarithm>(form);
    case Operation::tangent_hyperbolic:
      return library<RealTangentHyperbolic>(form);
    case Operation::copy_sign:
      if (form.type == Type::f32) return cheap<RealCopySign, f32, f32, f32>();
      if (form.type == Type::f64) return cheap<RealCopySign, f64, f64, f64>();
      return nullptr;
    case Operation::test_property:
      if (form.type == Type::f32) return property<f32>(form);
      if (form.type == Type::f64) return property<f64>(form);
      return nullptr;
    case Operation::population_count:
      return bytes_of(form.type) == 8 ? cheap<PopulationCount, u32, u64>()
                                      : cheap<PopulationCount, u32, u32>();
    case Operation::count_leading_zeros:
      return bytes_of(form.type) == 8 ? cheap<CountLeadingZeros, u32, u64>()
                                      : cheap<CountLeadingZeros, u32, u32>();
    case Operation::find_leading:
      return for_32_or_64(form.type, [&]<class T>(T) -> LaneFunction {
        return form.high ? costly<FindLeading<true>, u32, T>()
                         : costly<FindLeading<false>, u32, T>();
      });
    case Operation::find_nth_set:
      return costly<FindNthSet, u32, u32, u32, s32>();
    case Operation::bit_reverse:
      return bytes_of(form.type) == 8 ? cheap<BitReverse, u64, u64>()
                                      : cheap<BitReverse, u32, u32>();
    case Operation::bit_field_extract:
      return for_32_or_64(form.type, []<class T>(T) -> LaneFunction {
        return costly<BitFieldExtract, T, T, u32, u32>();
      });
    case Operation::bit_field_insert:
      return bytes_of(form.type) == 8 ? costly<BitFieldInsert, u64, u64, u64, u32, u32>()
                                      : costly<BitFieldInsert, u32, u32, u32, u32, u32>();
    case Operation::bit_mask:
      return form.clamp ? costly<BitMask<true>, u32, u32, u32>()
                        : costly<BitMask<false>, u32, u32, u32>();
    case Operation::sign_extend:
      if (is_signed(form.type)) {
        return form.clamp ? costly<SignExtend<true, s32>, u32, u32, u32>()
                          : costly<SignExtend<false, s32>, u32, u32, u32>();
      }
      return form.clamp ? costly<SignExtend<true, u32>, u32, u32, u32>()
                        : costly<SignExtend<false, u32>, u32, u32, u32>();
    case Operation::dot_product_2:
    case Operation::dot_product_4:
      return is_signed(form.type) ? dot_product<s8>(form) : dot_product<u8>(form);
    case Operation::bit_and:
      return bitwise<And>(form.type);
    case Operation::bit_or:
      return bitwise<Or>(form.type);
    case Operation::bit_xor:
      return bitwise<Xor>(form.type);
    case Operation::bit_not:
      return for_bits(form.type, []<class T>(T) -> LaneFunction { return cheap<Not, T, T>(); });
    case Operation::logical_not:
      return for_bits(form.type,
                      []<class T>(T) -> LaneFunction { return cheap<LogicalNot, T, T>(); });
    case Operation::lookup_3:
      return &run_lookup_3;
    case Operation::shift_left:
      return for_bits(form.type,
                      []<class T>(T) -> LaneFunction { return cheap<ShiftLeft, T, T, u32>(); });
    case Operation::shift_right:
      return for_arithmetic(
          form.type, []<class T>(T) -> LaneFunction { return cheap<ShiftRight, T, T, u32>(); });
    case Operation::shift_funnel_left:
      return form.clamp ? cheap<ShiftFunnel<true, true>, u32, u32, u32, u32>()
                        : cheap<ShiftFunnel<true, false>, u32, u32, u32, u32>();
    case Operation::shift_funnel_right:
      return form.clamp ? cheap<ShiftFunnel<false, true>, u32, u32, u32, u32>()
                        : cheap<ShiftFunnel<false, false>, u32, u32, u32, u32>();
    case Operation::permute:
      return permute(form);
    case Operation::select:
      return for_bits(form.type, []<class T>(T) -> LaneFunction {
        return cheap<Select, T, T, T, predicate>();
      });
    case Operation::select_sign:
      return for_bits(form.type, [&]<class T>(T) -> LaneFunction {
        if (form.flush) return costly<SelectSignFlushed, T, T, T, f32>();
        return form.source == Type::f32 ? costly<SelectSign<f32>, T, T, T, f32>()
                                        : costly<SelectSign<s32>, T, T, T, s32>();
      });
    case Operation::compare:
      return comparison(form);
    case Operation::convert:
      return conversion(form);
  }
  return nullptr;
}

}  // namespace warpstack::simt
