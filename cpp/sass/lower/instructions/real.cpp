#include <array>
#include <bit>
#include <cmath>

#include "sass/lower/handlers.h"

namespace warpstack::sass {
namespace {

using simt::Rounding;

Rounding rounding_in(Form& form) {
  form.take("RN");
  if (form.take("RZ")) return Rounding::zero;
  if (form.take("RM")) return Rounding::down;
  if (form.take("RP")) return Rounding::up;
  return Rounding::nearest;
}

void set_sign(Lowerer& to, simt::OperandSigns& signs, std::uint32_t source,
              const Operand& operand) {
  if (operand.kind == Operand::Kind::real) return;  // part of the number
  to.applies(operand, negation | absolute);
  if (operand.absolute) signs.take_absolute(source);
  if (operand.negated) signs.negate(source);
}

/// Turns subnormal values of a result into zero.
void flush_result(Lowerer& to, Slot target) {
  const LaneForm negated{.operation = Operation::neg, .type = Type::f32, .flush = true};
  to.emit(negated, target, {target});
  to.emit(negated, target, {target});
}

/// FADD, FMUL, FFMA and those of f64.
template <Operation operation, int operands, bool is_f64>
void arithmetic(Lowerer& to, Form& form) {
  const bool flush = form.take("FTZ");
  const bool saturate = form.take("SAT");
  simt::OperandSigns signs;
  signs.set_rounding(rounding_in(form));
  // Half of the product. ptxas generates it for two multiplications with small constants.
  const bool is_halved = operation == Operation::mul_lo && !is_f64 && form.take("D2");
  if (is_halved && (form.instruction().operands.size() != 3 || saturate ||
                    signs.rounding() != Rounding::nearest ||
                    std::fabs(form.instruction().operands[2].real) > 1 ||
                    form.instruction().operands[2].kind != Operand::Kind::real)) {
    to.refuse(".D2 is executed with a factor from -1 to 1 and the usual rounding only");
  }
  const Slot target = to.target(form.next(), is_f64 ? 2 : 1);
  Slot sources[3] = {};
  for (std::uint32_t i = 0; i < operands; ++i) {
    const Operand& operand = form.next();
    set_sign(to, signs, i, operand);
    sources[i] = is_f64 ? to.real_pair(operand) : to.real_word(operand);
  }
  LaneForm lane{.operation = operation,
                .type = is_f64 ? Type::f64 : Type::f32,
                .flush = flush,
                .saturate = saturate,
                .words = is_f64,
                .signs = is_f64 || signs.bits != 0};
  if constexpr (operands == 2) {
    to.emit(lane, target, {sources[0], sources[1]}, signs.bits);
    if (is_halved) {
      to.emit({.operation = operation, .type = Type::f32, .flush = flush}, target,
              {target, to.frame().literal(std::bit_cast<std::uint32_t>(0.5f))});
    }
  } else {
    to.emit(lane, target, {sources[0], sources[1], sources[2]}, signs.bits);
  }
}

/// The minimum of two or three values where the predicate holds, else the maximum.
template <std::size_t n>
void extreme(Lowerer& to, Form& form) {
  const bool flush = form.take("FTZ");
  const bool keeps_nan = form.take("NAN");
  // XORSIGN turns both into magnitudes, so their signs are needed first.
  const bool xor_sign = n == 2 && form.take("XORSIGN");
  const Slot target = to.target(form.next());
  std::array<Slot, n> values;
  for (Slot& value : values) {
    const Operand& operand = form.next();
    if (!xor_sign) {
      value = to.signed_real_word(operand);  // no copy: parts are noted by the operand's place
    } else {
      to.applies(operand, negation);
      value = to.signed_real_word(to.without(operand, absolute));
    }
  }
  const Condition least = to.condition(form.next());
  const auto extreme = [&](Operation operation, Slot result) {
    Slot value = values[0];
    for (std::size_t i = 1; i < n; ++i) {
      const Slot next = i + 1 < n ? to.temporary() : result;
      to.emit({.operation = operation,
               .type = Type::f32,
               .flush = flush,
               .propagate_nan = keeps_nan,
               .xor_sign = xor_sign},
              next, {value, values[i]});
      value = next;
    }
  };
  if (least.is_true() || least.is_false()) {
    return extreme(least.is_true() ? Operation::min : Operation::max, target);
  }
  const Slot lesser = to.temporary();
  const Slot greater = to.temporary();
  extreme(Operation::min, lesser);
  extreme(Operation::max, greater);
  to.emit(Operation::selp, Type::b32, target, {lesser, greater, to.positive(least)});
}

void select_word(Lowerer& to, Slot target, Slot a, Slot b, Condition condition) {
  if (condition.is_true() || condition.is_false()) {
    to.move(target, condition.is_true() ? a : b);
  } else if (condition.negated) {
    to.emit(Operation::selp, Type::b32, target, {b, a, condition.slot});
  } else {
    to.emit(Operation::selp, Type::b32, target, {a, b, condition.slot});
  }
}

}  // namespace

void handlers::fadd(Lowerer& to, Form& form) { arithmetic<Operation::add, 2, false>(to, form); }
void handlers::fmul(Lowerer& to, Form& form) { arithmetic<Operation::mul_lo, 2, false>(to, form); }
void handlers::ffma(Lowerer& to, Form& form) { arithmetic<Operation::fma, 3, false>(to, form); }
void handlers::dadd(Lowerer& to, Form& form) { arithmetic<Operation::add, 2, true>(to, form); }
void handlers::dmul(Lowerer& to, Form& form) { arithmetic<Operation::mul_lo, 2, true>(to, form); }
void handlers::dfma(Lowerer& to, Form& form) { arithmetic<Operation::fma, 3, true>(to, form); }
void handlers::fmnmx(Lowerer& to, Form& form) { extreme<2>(to, form); }
void handlers::fmnmx3(Lowerer& to, Form& form) { extreme<3>(to, form); }

void handlers::fsel(Lowerer& to, Form& form) {
  const bool flush = form.take("FTZ");
  const Slot target = to.target(form.next());
  const Slot a = to.signed_real_word(form.next());
  const Slot b = to.signed_real_word(form.next());
  if (!flush) return select_word(to, target, a, b, to.condition(form.next()));
  const Slot value = to.temporary();
  select_word(to, value, a, b, to.condition(form.next()));
  flush_result(to, value);
  to.move(target, value);
}

void handlers::sel(Lowerer& to, Form& form) {
  const bool is_pair = form.take("64");
  const Slot target = to.target(form.next(), is_pair ? 2 : 1);
  if (is_pair) {
    const Slot value = to.temporary();
    // Its numbers have 33 bits, so their text is exact.
    const Slot a = to.packed(form.next(), true);
    const Slot b = to.packed(form.next(), true);
    to.emit(Operation::selp, Type::b64, value, {a, b, to.positive(to.condition(form.next()))});
    to.emit(Operation::unpack, Type::b64, target, {value});
    return;
  }
  const Slot a = to.integer(form.next());
  const Slot b = to.integer(form.next());
  select_word(to, target, a, b, to.condition(form.next()));
}

/// The special-function unit. It flushes subnormal values, except for tanh; compilers scale around
/// that.
void handlers::mufu(Lowerer& to, Form& form) {
  const Slot target = to.target(form.next());
  const Operand& operand = form.next();
  const bool of_double = form.left() == "RCP64H" || form.left() == "RSQ64H";
  // A decimal number stands for its upper word.
  const Slot source = of_double && operand.kind == Operand::Kind::real
                          ? to.frame().literal(static_cast<std::uint32_t>(
                                std::bit_cast<std::uint64_t>(operand.real) >> 32))
                          : to.signed_real_word(operand);
  const auto real = [&](Operation operation) {
    const bool flush = operation != Operation::tanh;
    to.emit({.operation = operation, .type = Type::f32, .flush = flush}, target, {source});
  };
  if (form.take("RCP")) return real(Operation::rcp);
  if (form.take("RSQ")) return real(Operation::rsqrt);
  if (form.take("SQRT")) return real(Operation::sqrt);
  if (form.take("EX2")) return real(Operation::ex2);
  if (form.take("LG2")) return real(Operation::lg2);
  if (form.take("SIN")) return real(Operation::sin_turns);
  if (form.take("COS")) return real(Operation::cos_turns);
  if (form.take("TANH")) return real(Operation::tanh);
  if (form.take("RCP64H")) {
    to.emit(Operation::rcp_hi, Type::u32, target, {source});
  } else if (form.take("RSQ64H")) {
    to.emit(Operation::rsqrt_hi, Type::u32, target, {source});
  } else {
    to.refuse("its function is not known");
  }
}

void handlers::fchk(Lowerer& to, Form& form) {
  form.take("DIVIDE");
  const Slot target = to.predicate_target(form.next());
  const Slot a = to.signed_real_word(form.next());
  const Slot b = to.signed_real_word(form.next());
  to.emit(Operation::division_check, Type::f32, target, {a, b});
}

}  // namespace warpstack::sass
