// Compiled once per instruction set of the host, see lanes/family.h.

#include <type_traits>

#include "simt/lanes/compare.h"
#include "simt/lanes/loops.h"
#include "simt/lanes/real.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

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
