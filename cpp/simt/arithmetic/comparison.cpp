// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include <type_traits>

#include "simt/arithmetic/compare.h"
#include "simt/arithmetic/loops.h"
#include "simt/arithmetic/real.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

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
  if constexpr (is_real) return of_comparison(form.comparison, choose);
  return of_ordered_comparison(form.comparison, choose);
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
