// Compiled once per instruction set of the host, see lanes/family.h.

#include <type_traits>

#include "simt/lanes/loops.h"
#include "simt/lanes/real.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

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

}  // namespace

LaneFunction comparison_function(const LaneForm& form) {
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

}  // namespace warpstack::simt::WARPSTACK_ISA
