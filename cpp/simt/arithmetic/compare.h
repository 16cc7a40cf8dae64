#pragma once

#include "simt/arithmetic/lane_functions.h"
#include "simt/arithmetic/real.h"
#include "simt/arithmetic/values.h"

namespace warpstack::simt::WARPSTACK_ISA {

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

/// Calls `choose` with a comparison as its template argument; null for those that only floats have.
template <class Choose>
LaneFunction of_ordered_comparison(Comparison comparison, const Choose& choose) {
  switch (comparison) {
#define WARPSTACK_CASE(name) \
  case Comparison::name:     \
    return choose.template operator()<Comparison::name>();
    WARPSTACK_CASE(eq)
    WARPSTACK_CASE(ne)
    WARPSTACK_CASE(lt)
    WARPSTACK_CASE(le)
    WARPSTACK_CASE(gt)
    WARPSTACK_CASE(ge)
    default:
      return nullptr;
  }
}

/// The same for all comparisons.
template <class Choose>
LaneFunction of_comparison(Comparison comparison, const Choose& choose) {
  switch (comparison) {
    WARPSTACK_CASE(equ)
    WARPSTACK_CASE(neu)
    WARPSTACK_CASE(ltu)
    WARPSTACK_CASE(leu)
    WARPSTACK_CASE(gtu)
    WARPSTACK_CASE(geu)
    WARPSTACK_CASE(num)
    WARPSTACK_CASE(nan)
#undef WARPSTACK_CASE
    default:
      return of_ordered_comparison(comparison, choose);
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
