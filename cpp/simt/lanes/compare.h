#pragma once

#include "simt/lanes/values.h"

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

}  // namespace warpstack::simt::WARPSTACK_ISA
