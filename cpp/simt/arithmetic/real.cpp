// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include "simt/arithmetic/real.h"

#include <bit>
#include <cmath>
#include <tuple>

#include "simt/arithmetic/loops.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

struct RealSub {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct RealDiv {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct RealRcp {
  template <class T>
  static T apply(T a) {
    return T{1} / a;
  }
};
struct RealSqrt {
  template <class T>
  static T apply(T a) {
    return std::sqrt(a);
  }
};
/// Sign operations leave NaNs unchanged, except for f32's flush.
template <bool flush>
struct RealAbs {
  template <class T>
  static T apply(T a) {
    return std::fabs(flush ? flushed(a) : a);
  }
};
template <bool flush>
struct RealNeg {
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
template <class T, Property property>
struct Testp {
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
        holds = std::isnormal(a) || a == 0;  // zeros count as normal
        break;
      case Property::subnormal:
        holds = std::fpclassify(a) == FP_SUBNORMAL;
        break;
    }
    return {holds ? ~0u : 0u};
  }
};

/// Operations that .sat exists for, with f32. Variants that nothing asks for would only be
/// compiled.
template <class F>
constexpr bool is_saturable = std::is_same_v<F, RealAdd> || std::is_same_v<F, RealSub> ||
                              std::is_same_v<F, RealMul> || std::is_same_v<F, RealFma>;

template <class F, class... T>
LaneFunction function_of(const LaneForm& form) {
  if (form.relu) return nullptr;
  using First = std::tuple_element_t<0, std::tuple<T...>>;
  const auto choose = [&]<bool flush, bool saturate>() -> LaneFunction {
    using Rounded = Real<F, flush, saturate>;
    return form.rounding == Rounding::nearest ? cheap<Rounded, First, T...>()
                                              : &run_directed<Rounded, First, T...>;
  };
  if (form.saturate) {
    if constexpr (is_saturable<F> && std::is_same_v<First, f32>) {
      return form.flush ? choose.template operator()<true, true>()
                        : choose.template operator()<false, true>();
    }
    return nullptr;
  }
  return form.flush ? choose.template operator()<true, false>()
                    : choose.template operator()<false, false>();
}

/// Functions of the C library: only for active lanes, without directed rounding.
template <class F, class T>
LaneFunction library_function(const LaneForm& form) {
  if (form.saturate || form.relu || form.rounding != Rounding::nearest) return nullptr;
  return form.flush ? costly<Real<F, true, false>, T, T>() : costly<Real<F, false, false>, T, T>();
}

/// A function of some operands that the processor rounds correctly.
template <class F, int operands>
LaneFunction rounded_function(const LaneForm& form) {
  const auto choose = [&]<class T>(T) -> LaneFunction {
    if constexpr (operands == 1) return function_of<F, T>(form);
    if constexpr (operands == 2) return function_of<F, T, T>(form);
    if constexpr (operands == 3) return function_of<F, T, T, T>(form);
  };
  return form.type == Type::f32 ? choose(f32{}) : choose(f64{});
}

/// The same for both halves of a 64-bit value.
template <class F>
struct Both {
  template <class... Halves>
  static u64 apply(Halves... values) {
    const f32 low = F::apply(std::bit_cast<f32>(static_cast<u32>(values))...);
    const f32 high = F::apply(std::bit_cast<f32>(static_cast<u32>(values >> 32))...);
    return std::bit_cast<u32>(low) | (u64{std::bit_cast<u32>(high)} << 32);
  }
};
template <class F, class... T>
LaneFunction function_of_both(const LaneForm& form) {
  if (form.saturate || form.relu) return nullptr;
  using Plain = Both<Real<F, false, false>>;
  using Flushed = Both<Real<F, true, false>>;
  if (form.rounding != Rounding::nearest) {
    return form.flush ? &run_directed<Flushed, u64, T...> : &run_directed<Plain, u64, T...>;
  }
  return form.flush ? cheap<Flushed, u64, T...>() : cheap<Plain, u64, T...>();
}

/// Arithmetic on f32x2.
LaneFunction pair_function(const LaneForm& form) {
  switch (form.operation) {
    case Operation::add:
      return function_of_both<RealAdd, u64, u64>(form);
    case Operation::sub:
      return function_of_both<RealSub, u64, u64>(form);
    case Operation::mul_lo:
      return function_of_both<RealMul, u64, u64>(form);
    case Operation::fma:
      return function_of_both<RealFma, u64, u64, u64>(form);
    default:
      return nullptr;
  }
}

/// Extremes are exact.
template <bool is_min, bool keep_nan, bool xor_sign, class T>
LaneFunction extreme_of(const LaneForm& form) {
  using F = RealExtreme<is_min, keep_nan, xor_sign>;
  if (form.saturate || form.relu || form.rounding != Rounding::nearest) return nullptr;
  return form.flush ? cheap<Real<F, true, false>, T, T, T>()
                    : cheap<Real<F, false, false>, T, T, T>();
}
template <bool is_min>
LaneFunction extreme(const LaneForm& form) {
  if (form.type == Type::f64) return extreme_of<is_min, false, false, f64>(form);
  if (form.xor_sign) {
    return form.propagate_nan ? extreme_of<is_min, true, true, f32>(form)
                              : extreme_of<is_min, false, true, f32>(form);
  }
  return form.propagate_nan ? extreme_of<is_min, true, false, f32>(form)
                            : extreme_of<is_min, false, false, f32>(form);
}

/// Sign operations.
template <template <bool> class F>
LaneFunction sign_function(const LaneForm& form) {
  if (form.type == Type::f64) return cheap<F<false>, f64, f64>();
  return form.flush ? cheap<F<true>, f32, f32>() : cheap<F<false>, f32, f32>();
}

template <class T>
LaneFunction testp(const LaneForm& form) {
  switch (static_cast<Property>(form.mode)) {
#define WARPSTACK_CASE(name) \
  case Property::name:       \
    return costly<Testp<T, Property::name>, predicate, T>();
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

/// Functions that exist only for f32.
LaneFunction approximation(const LaneForm& form) {
  switch (form.operation) {
    case Operation::sin:
      return library_function<RealSin, f32>(form);
    case Operation::cos:
      return library_function<RealCos, f32>(form);
    case Operation::ex2:
      return library_function<RealEx2, f32>(form);
    case Operation::lg2:
      return library_function<RealLg2, f32>(form);
    case Operation::tanh:
      return library_function<RealTanh, f32>(form);
    default:
      return nullptr;
  }
}

}  // namespace

LaneFunction real_function(const LaneForm& form) {
  if (form.type == Type::f32x2) return pair_function(form);
  const bool is_f32 = form.type == Type::f32;
  if (!is_f32 && form.type != Type::f64) return nullptr;
  switch (form.operation) {
    case Operation::add:
      return rounded_function<RealAdd, 2>(form);
    case Operation::sub:
      return rounded_function<RealSub, 2>(form);
    case Operation::mul_lo:
      return rounded_function<RealMul, 2>(form);
    case Operation::fma:
      return rounded_function<RealFma, 3>(form);
    case Operation::div:
      return rounded_function<RealDiv, 2>(form);
    case Operation::rcp:
      return rounded_function<RealRcp, 1>(form);
    case Operation::sqrt:
      return rounded_function<RealSqrt, 1>(form);
    case Operation::min:
      return extreme<true>(form);
    case Operation::max:
      return extreme<false>(form);
    case Operation::abs:
      return sign_function<RealAbs>(form);
    case Operation::neg:
      return sign_function<RealNeg>(form);
    case Operation::copysign:
      return is_f32 ? cheap<RealCopySign, f32, f32, f32>() : cheap<RealCopySign, f64, f64, f64>();
    case Operation::testp:
      return is_f32 ? testp<f32>(form) : testp<f64>(form);
    case Operation::rsqrt:
      return is_f32 ? library_function<RealRsqrt, f32>(form)
                    : library_function<RealRsqrt, f64>(form);
    default:
      return is_f32 ? approximation(form) : nullptr;
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
