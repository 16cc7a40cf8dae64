#include <algorithm>
#include <array>
#include <bit>

#include "sass/lower/comparisons.h"
#include "sass/lower/handlers.h"
#include "simt/arithmetic/half_bits.h"

namespace warpstack::sass {
namespace {

/// Two f16 halves of an operand, with its swizzle (such as one of them twice) and signs, or of
/// numbers.
Slot halves(Lowerer& to, const Operand& operand) {
  Slot value = to.word(to.without(operand, negation | absolute | suffix));
  const auto permute = [&](std::uint32_t selector) {
    const Slot result = to.temporary();
    to.emit({.operation = Operation::prmt, .type = Type::b32}, result,
            {value, Frame::zero, to.frame().literal(selector)});
    value = result;
  };
  if (operand.suffix == "H0_H0") {
    permute(0x1010);
  } else if (operand.suffix == "H1_H1") {
    permute(0x3232);
  } else if (operand.suffix == "H0_NH1") {
    // Exchanges the halves and negates the lower one: i times a complex number.
    permute(0x1032);
    const Slot result = to.temporary();
    to.emit(Operation::bit_xor, Type::b32, result, {value, to.frame().literal(0x8000)});
    value = result;
  } else if (operand.suffix == "F32") {
    const Slot result = to.temporary();
    to.emit({.operation = Operation::cvt,
             .type = Type::f16,
             .source = Type::f32,
             .rounding = simt::Rounding::nearest},
            result, {value});
    value = result;
    permute(0x1010);
  } else if (!operand.suffix.empty() && operand.suffix != "H1_H0") {
    to.refuse("operand " + operand.text + ": its suffix is not executed");
  }
  const auto change = [&](Operation operation) {
    const Slot result = to.temporary();
    to.emit(operation, Type::f16x2, result, {value});
    value = result;
  };
  if (operand.absolute) change(Operation::abs);
  if (operand.negated) change(Operation::neg);
  return value;
}

/// The next operand: halves, or two numbers of which the first is the upper half. If one of them is
/// NaN, the operands are whole words in hexadecimal instead. The caller applies `parts`.
Slot next_halves(Lowerer& to, Form& form, bool is_bf16, std::uint8_t parts = 0) {
  const auto half_of = [is_bf16](double value) -> std::uint32_t {
    if (!is_bf16) return simt::double_to_half(value);
    return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
  };
  const Operand& operand = form.next();
  if (operand.kind == Operand::Kind::real) {
    const Operand& low = form.next();
    if (low.kind == Operand::Kind::integer) {
      return to.frame().literal(static_cast<std::uint32_t>(to.number(low)));
    }
    if (low.kind != Operand::Kind::real) to.refuse("operand " + low.text + " is not a number");
    return to.frame().literal(half_of(operand.real) << 16 | half_of(low.real));
  }
  if (operand.kind == Operand::Kind::integer && form.more() &&
      (form.peek().kind == Operand::Kind::real || form.peek().text == operand.text)) {
    form.next();
    return to.frame().literal(static_cast<std::uint32_t>(to.number(operand)));
  }
  if (parts == 0) return halves(to, operand);
  to.applies(operand, negation | suffix);
  return halves(to, to.without(operand, parts));
}

template <Operation operation, int operands>
void arithmetic(Lowerer& to, Form& form) {
  form.take("MMA");  // the pipe that it runs on
  const bool to_f32 = form.take("F32");
  const bool is_bf16 = form.take("BF16_V2");
  if (is_bf16) form.take("BF16");
  const bool flush = form.take("FTZ");
  const bool saturate = form.take("SAT");
  const bool relu = form.take("RELU");
  const Operand& d = form.next();
  const Slot target = to.target(d);
  if (!d.suffix.empty()) to.refuse("operand " + d.text + ": its suffix is not executed");
  // A single-precision constant is rounded first, which is correct if nothing is added to it.
  const auto& given = form.instruction().operands;
  if (std::ranges::any_of(given, [](const Operand& o) { return o.suffix == "F32"; }) &&
      (operation != Operation::add || is_bf16 || given[1].index != zero_register ||
       given[1].kind != Operand::Kind::reg)) {
    to.refuse("a sum with an operand of single precision is not executed");
  }
  Slot sources[3] = {};
  for (int i = 0; i < operands; ++i) sources[i] = next_halves(to, form, is_bf16);
  LaneForm lane{.operation = operation,
                .type = is_bf16 ? Type::bf16x2 : Type::f16x2,
                .flush = flush,
                .saturate = saturate,
                .relu = relu};
  if (to_f32) {
    // HADD2.F32 d,-RZ,a: a conversion.
    if (operation != Operation::add || is_bf16 || saturate || relu)
      to.refuse("this form is not executed");
    Slot values[2] = {to.temporary(), to.temporary()};
    for (int i = 0; i < 2; ++i) {
      const Slot low = to.temporary();
      to.emit(Operation::bit_and, Type::b32, low, {sources[i], to.frame().literal(0xffff)});
      to.emit({.operation = Operation::cvt, .type = Type::f32, .source = Type::f16}, values[i],
              {low});
    }
    to.emit({.operation = Operation::add, .type = Type::f32, .flush = flush}, target,
            {values[0], values[1]});
    return;
  }
  if constexpr (operands == 2) {
    to.emit(lane, target, {sources[0], sources[1]});
  } else {
    to.emit(lane, target, {sources[0], sources[1], sources[2]});
  }
}

/// The comparisons of both halves, each combined with a predicate; the lower one first.
std::array<Slot, 2> compare_halves(Lowerer& to, Form& form, bool is_bf16,
                                   simt::Comparison comparison, char combination, bool flush) {
  const Slot words[2] = {next_halves(to, form, is_bf16), next_halves(to, form, is_bf16)};
  const Condition with = to.condition(form.next());
  const std::uint32_t table = Lowerer::table_of([&](bool holds, bool other, bool) {
    const bool joined = with.negated ? !other : other;
    if (combination == '&') return holds && joined;
    return combination == '|' ? holds || joined : holds != joined;
  });
  std::array<Slot, 2> results{};
  for (std::size_t half = 0; half < 2; ++half) {
    Slot parts[2] = {to.temporary(), to.temporary()};
    for (std::size_t i = 0; i < 2; ++i) {
      if (half == 0) {
        to.emit(Operation::bit_and, Type::b32, parts[i], {words[i], to.frame().literal(0xffff)});
      } else {
        to.emit(Operation::shr, Type::u32, parts[i], {words[i], to.frame().literal(16)});
      }
    }
    results[half] = to.temporary();
    to.emit({.operation = Operation::setp,
             .type = is_bf16 ? Type::bf16 : Type::f16,
             .comparison = comparison,
             .flush = flush},
            results[half], {parts[0], parts[1]});
    to.emit(Operation::lop3, Type::b32, results[half], {results[half], with.slot, Frame::zero},
            table);
  }
  return results;
}

}  // namespace

void handlers::hadd2(Lowerer& to, Form& form) { arithmetic<Operation::add, 2>(to, form); }
void handlers::hmul2(Lowerer& to, Form& form) { arithmetic<Operation::mul_lo, 2>(to, form); }

/// -0 * 0 + numbers: how compilers load a constant on another pipe.
void handlers::hfma2(Lowerer& to, Form& form) {
  const auto& operands = form.instruction().operands;
  const auto is_zero = [](const Operand& operand) {
    return operand.kind == Operand::Kind::reg && operand.index == zero_register;
  };
  if (operands.size() == 5 && is_zero(operands[1]) && is_zero(operands[2]) && operands[1].negated &&
      !operands[2].negated && operands[3].kind == Operand::Kind::real &&
      operands[4].kind == Operand::Kind::real) {
    form.take_all({"MMA"});
    const bool is_bf16 = form.take("BF16_V2") || form.take("BF16");
    const auto half = [&](double value) -> std::uint32_t {
      return is_bf16 ? simt::double_to_bfloat(value) : simt::double_to_half(value);
    };
    const Slot target = to.target(form.next());
    to.applies(form.next(), negation);
    while (form.more()) form.next();
    to.move(target, to.frame().literal(half(operands[3].real) << 16 | half(operands[4].real)));
    return;
  }
  arithmetic<Operation::fma, 3>(to, form);
}

/// The minimum of each half where the predicate holds, else the maximum.
void handlers::hmnmx2(Lowerer& to, Form& form) {
  const bool is_bf16 = form.take("BF16_V2");
  const bool flush = form.take("FTZ");
  const bool keeps_nan = form.take("NAN");
  const bool xor_sign = form.take("XORSIGN");
  const Slot target = to.target(form.next());
  // XORSIGN turns both into magnitudes, so their signs are needed first.
  const std::uint8_t parts = xor_sign ? absolute : 0;
  const Slot a = next_halves(to, form, is_bf16, parts);
  const Slot b = next_halves(to, form, is_bf16, parts);
  const Condition least = to.condition(form.next());
  if (!least.is_true() && !least.is_false()) to.refuse("its predicate is not executed");
  to.emit({.operation = least.is_true() ? Operation::min : Operation::max,
           .type = is_bf16 ? Type::bf16x2 : Type::f16x2,
           .flush = flush,
           .propagate_nan = keeps_nan,
           .xor_sign = xor_sign},
          target, {a, b});
}

void handlers::hsetp2(Lowerer& to, Form& form) {
  const bool is_bf16 = form.take("BF16_V2");
  const bool flush = form.take("FTZ");
  const simt::Comparison comparison = comparison_in(to, form);
  const char combination = combination_in(to, form);
  const Slot targets[2] = {to.predicate_target(form.next()), to.predicate_target(form.next())};
  const auto results = compare_halves(to, form, is_bf16, comparison, combination, flush);
  // The guard is written last, because it affects both.
  const std::size_t last = targets[0] == to.guard().slot ? 0 : 1;
  to.move(targets[1 - last], results[1 - last]);
  to.move(targets[last], results[last]);
}

/// Comparisons as numbers: 1.0 with .BF, else all bits.
void handlers::hset2(Lowerer& to, Form& form) {
  const bool is_bf16 = form.take("BF16_V2");
  const bool is_float = form.take("BF");
  const bool flush = form.take("FTZ");
  const simt::Comparison comparison = comparison_in(to, form);
  const char combination = combination_in(to, form);
  const Slot target = to.target(form.next());
  const auto results = compare_halves(to, form, is_bf16, comparison, combination, flush);
  const std::uint32_t one = !is_float ? 0xffff : is_bf16 ? 0x3f80 : 0x3c00;
  to.emit(Operation::bit_and, Type::b32, results[0], {results[0], to.frame().literal(one)});
  to.emit(Operation::bit_and, Type::b32, results[1], {results[1], to.frame().literal(one << 16)});
  to.emit(Operation::bit_or, Type::b32, target, {results[0], results[1]});
}

}  // namespace warpstack::sass
