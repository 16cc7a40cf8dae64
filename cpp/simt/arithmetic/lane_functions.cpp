// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include "simt/arithmetic/lane_functions.h"

namespace warpstack::simt::WARPSTACK_ISA {

LaneFunction find_lane_function(const LaneForm& form) {
  if (form.words || form.signs) return word_function(form);
  switch (form.operation) {
    case Operation::add3:
    case Operation::add3_carry:
    case Operation::cos_turns:
    case Operation::division_check:
    case Operation::pack:
    case Operation::rcp_hi:
    case Operation::rsqrt_hi:
    case Operation::sin_turns:
    case Operation::unpack:
      return word_function(form);
    case Operation::setp:
      return comparison_function(form);
    case Operation::narrow:
    case Operation::widen:
      return narrow_function(form);
    case Operation::cvt:
      return conversion_function(form);
    case Operation::addc:
    case Operation::dp2a:
    case Operation::dp4a:
    case Operation::mul24:
    case Operation::mad24:
    case Operation::subc:
      return integer_function(form);
    default:
      break;
  }
  if (const LaneFunction function = bit_function(form)) return function;
  if (!is_float(form.type)) return integer_function(form);
  if (form.type == Type::f32 || form.type == Type::f64 || form.type == Type::f32x2) {
    return real_function(form);
  }
  return half_function(form);
}

}  // namespace warpstack::simt::WARPSTACK_ISA
