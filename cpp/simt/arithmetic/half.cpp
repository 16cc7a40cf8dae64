// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include <cmath>

#include "simt/arithmetic/loops.h"
#include "simt/arithmetic/real.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

/// An operation on f16 or bf16. F computes on doubles and rounds inexact results to odd.
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
struct ShortSub {
  static double apply(double a, double b) { return fma_to_odd(a, 1, -b); }
};
struct ShortFma {
  static double apply(double a, double b, double c) { return fma_to_odd(a, b, c); }
};
/// Sign operations; .ftz exists for f16 alone.
template <bool flush>
struct ShortNeg {
  template <class T>
  static T apply(T a) {
    return {static_cast<u16>((flush ? flushed_half(a.bits) : a.bits) ^ 0x8000)};
  }
};
template <bool flush>
struct ShortAbs {
  template <class T>
  static T apply(T a) {
    return {static_cast<u16>((flush ? flushed_half(a.bits) : a.bits) & 0x7fff)};
  }
};

/// Operations that .sat and .relu exist for. Variants that nothing asks for would only be compiled.
template <class F>
constexpr bool is_limited = std::is_same_v<F, ShortAdd> || std::is_same_v<F, ShortSub> ||
                            std::is_same_v<F, RealMul> || std::is_same_v<F, ShortFma>;

/// Calls `choose` with the variant of F that a form asks for; null if there is none.
template <class F, class Choose>
LaneFunction variant_of(const LaneForm& form, Choose choose) {
  const auto with = [&]<bool flush>() -> LaneFunction {
    if constexpr (is_limited<F>) {
      // What is saturated is not below zero: .relu changes nothing of it.
      if (form.saturate) return choose(Short<F, flush, true, false>{});
      if (form.relu) return choose(Short<F, flush, false, true>{});
    } else if (form.saturate || form.relu) {
      return nullptr;
    }
    return choose(Short<F, flush, false, false>{});
  };
  return form.flush ? with.template operator()<true>() : with.template operator()<false>();
}
template <class F, class T, class... Rest>
LaneFunction short_function_of(const LaneForm& form) {
  return variant_of<F>(form, []<class V>(V) { return costly<V, T, T, Rest...>(); });
}
template <class F, class T, class... Rest>
LaneFunction pair_function_of(const LaneForm& form) {
  using P = Pair<T>;
  return variant_of<F>(form, []<class V>(V) { return costly<Halves<V, T>, P, P, Rest...>(); });
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

template <bool is_min>
LaneFunction extreme(const LaneForm& form) {
  if (form.xor_sign) {
    return form.propagate_nan ? short_function<RealExtreme<is_min, true, true>, 2>(form)
                              : short_function<RealExtreme<is_min, false, true>, 2>(form);
  }
  return form.propagate_nan ? short_function<RealExtreme<is_min, true, false>, 2>(form)
                            : short_function<RealExtreme<is_min, false, false>, 2>(form);
}

/// Sign operations.
template <template <bool> class F>
LaneFunction sign_function(const LaneForm& form) {
  using Plain = F<false>;
  using Flushing = F<true>;
  using Pairs = Pair<f16>;
  switch (form.type) {
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

}  // namespace

LaneFunction half_function(const LaneForm& form) {
  switch (form.operation) {
    case Operation::add:
      return short_function<ShortAdd, 2>(form);
    case Operation::sub:
      return short_function<ShortSub, 2>(form);
    case Operation::mul_lo:
      return short_function<RealMul, 2>(form);
    case Operation::fma:
      return short_function<ShortFma, 3>(form);
    case Operation::min:
      return extreme<true>(form);
    case Operation::max:
      return extreme<false>(form);
    case Operation::abs:
      return sign_function<ShortAbs>(form);
    case Operation::neg:
      return sign_function<ShortNeg>(form);
    case Operation::rsqrt:
      return short_function<RealRsqrt, 1>(form);
    case Operation::sin:
      return short_function<RealSin, 1>(form);
    case Operation::cos:
      return short_function<RealCos, 1>(form);
    case Operation::ex2:
      return short_function<RealEx2, 1>(form);
    case Operation::lg2:
      return short_function<RealLg2, 1>(form);
    case Operation::tanh:
      return short_function<RealTanh, 1>(form);
    default:
      return nullptr;
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
