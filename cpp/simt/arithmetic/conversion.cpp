// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "simt/arithmetic/loops.h"
#include "simt/arithmetic/real.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

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

/// Floats to integers: the nearest value of the type. For NaN see the PTX ISA on cvt.
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
    // A double cannot hold the upper bound of 64-bit types: compare with the next power of two.
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
/// .rni and the like with a float as result.
template <bool flush, bool saturate>
struct RoundIntegral {
  template <class T>
  static T apply(u32 rounding, T a) {
    const double value = to_integral(source_value<flush>(a), static_cast<Rounding>(rounding));
    return finished<T, saturate>(rounded<T>(value));
  }
};

template <class S>
LaneFunction conversion_from_real(const LaneForm& form) {
  // .ftz is about sources of f32; the results of others are the same without it.
  constexpr bool flushes = std::is_same_v<S, f32>;
  if (!is_float(form.type)) {
    if (std::is_same_v<S, f32> && form.type == Type::s32 && form.rounding == Rounding::zero &&
        !form.flush) {
      return cheap<ConvertTruncated, s32, f32>();
    }
    return for_integer(form.type, [&]<class D>(D) -> LaneFunction {
      return form.flush ? &run_with_immediate<ConvertToInteger<D, flushes>, D, S>
                        : &run_with_immediate<ConvertToInteger<D, false>, D, S>;
    });
  }
  if (form.integer_rounding) {
    if (form.flush) {
      return form.saturate ? &run_with_immediate<RoundIntegral<flushes, true>, S, S>
                           : &run_with_immediate<RoundIntegral<flushes, false>, S, S>;
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
    return form.flush ? choose.template operator()<flushes>() : choose.template operator()<false>();
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

}  // namespace

LaneFunction conversion_function(const LaneForm& form) {
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

}  // namespace warpstack::simt::WARPSTACK_ISA
