#include <bit>
#include <limits>
#include <utility>

#include "sass/lower/handlers.h"

namespace warpstack::sass {
namespace {

bool is_number(const Operand& operand) { return operand.kind == Operand::Kind::integer; }
bool is_zero(const Operand& operand) {
  return (operand.kind == Operand::Kind::reg && operand.index == zero_register) ||
         (operand.kind == Operand::Kind::uniform && operand.index == zero_uniform) ||
         (is_number(operand) && operand.integer == 0);
}
bool has_sign(const Operand& operand) {
  return !is_number(operand) && (operand.negated || operand.complement);
}

/// The word of an operand; the sum applies its sign.
Slot term(Lowerer& to, const Operand& operand) {
  if (!is_number(operand)) to.applies(operand, negation | complement);
  return to.word(operand);
}

/// The terms of a sum of three: -a is ~a + 1.
simt::Add3Terms terms_of(std::initializer_list<const Operand*> operands) {
  simt::Add3Terms terms;
  std::uint32_t source = 0;
  for (const Operand* operand : operands) {
    if (has_sign(*operand)) {
      terms.complement(source);
      if (operand->negated) terms.increment();
    }
    ++source;
  }
  return terms;
}

struct Sum {
  Slot target = Frame::sink;
  const Operand* carry_out = nullptr;
  const Operand* second_carry_out = nullptr;
  Condition carry_in{Frame::truth, true};
  Condition second_carry_in{Frame::truth, true};
};

bool is_wanted(const Operand* predicate) {
  return predicate != nullptr && !Lowerer::is_unused(*predicate);
}

/// a + b + c with carries.
void add_words(Lowerer& to, const Sum& sum, std::initializer_list<Slot> sources,
               simt::Add3Terms terms) {
  const auto* const s = sources.begin();
  Slot carry_in = to.positive(sum.carry_in);
  Slot c = s[2];
  if (!sum.second_carry_in.is_false()) {
    if (is_wanted(sum.carry_out)) to.refuse("a carry out with two carries in is not executed");
    // A true predicate is -1, and ~c + 1 is ~(c - 1).
    c = to.temporary();
    to.emit(terms.mask(2) != 0 ? Operation::add : Operation::sub, Type::u32, c,
            {s[2], to.positive(sum.second_carry_in)});
  }
  if (!is_wanted(sum.carry_out) && !is_wanted(sum.second_carry_out) && carry_in == Frame::zero) {
    to.emit(Operation::add3, Type::u32, sum.target, {s[0], s[1], c}, terms.bits);
    return;
  }
  const auto emit = [&](Slot target, bool second) -> simt::Step& {
    return to.emit({.operation = Operation::add3_carry, .type = Type::u32, .high = second}, target,
                   {s[0], s[1], c, carry_in}, terms.bits);
  };
  if (is_wanted(sum.second_carry_out)) {
    const Slot second = to.predicate_target(*sum.second_carry_out);
    if (second == to.guard().slot || second == carry_in) {
      to.refuse("a second carry into its own guard or carry in is not executed");
    }
    emit(second, true);
  }
  const Slot first = is_wanted(sum.carry_out) ? to.predicate_target(*sum.carry_out)
                                              : Frame::sink + Frame::slot_bytes;
  emit(sum.target, false).operands.target2 = first;
}

/// a + b of 64 bits with carries, a word at a time.
void add_pairs_with_carries(Lowerer& to, Slot target, const Operand* carry_out, bool extended,
                            const Operand& a, const Operand& b, Condition carry_in) {
  // Only one bit is carried from word to word.
  if (static_cast<int>(a.negated) + static_cast<int>(b.negated) + static_cast<int>(extended) > 1) {
    to.refuse("more than one of a carry in and negations is not executed");
  }
  const auto words_of = [&](const Operand& operand) {
    if (!is_number(operand)) return to.pair(to.without(operand, negation | complement));
    if (to.number(operand) > std::numeric_limits<std::int32_t>::max()) {
      to.refuse("operand " + operand.text + ": how it is extended to 64 bits is not known");
    }
    return to.frame().literal_pair(static_cast<std::uint64_t>(operand.integer));
  };
  const Operand plain;
  const simt::Add3Terms low_terms = terms_of({&a, &b, &plain});
  simt::Add3Terms high_terms;
  if (has_sign(a)) high_terms.complement(0);
  if (has_sign(b)) high_terms.complement(1);
  const Slot x = words_of(a);
  const Slot y = words_of(b);
  const Slot carry = to.temporary();
  constexpr std::uint32_t upper = Frame::slot_bytes;
  to.emit(Operation::add3_carry, Type::u32, target, {x, y, Frame::zero, to.positive(carry_in)},
          low_terms.bits)
      .operands.target2 = carry;
  to.emit(Operation::add3_carry, Type::u32, target + upper,
          {x + upper, y + upper, Frame::zero, carry}, high_terms.bits)
      .operands.target2 =
      is_wanted(carry_out) ? to.predicate_target(*carry_out) : Frame::sink + upper;
}

/// IADD.64, and IADD3.64 without carries.
template <int operands>
void add_pairs(Lowerer& to, Form& form) {
  const bool extended = form.take("X");
  const Slot target = to.target(form.next(), 2);
  const Operand* carry_out = nullptr;
  while (form.peek().is_predicate()) {
    const Operand& predicate = form.next();
    if (!is_wanted(&predicate)) continue;
    if (operands == 3 || carry_out != nullptr) to.refuse("its carries are not executed");
    carry_out = &predicate;
  }
  const Operand& a = form.next();
  const Operand& b = form.next();
  if (operands == 2 && (extended || carry_out != nullptr || a.complement || b.complement)) {
    Condition carry_in{Frame::truth, true};
    if (extended) carry_in = to.condition(form.next());
    return add_pairs_with_carries(to, target, carry_out, extended, a, b, carry_in);
  }
  if (extended) to.refuse("its carries are not executed");
  const Slot sum = to.temporary();
  const Slot first = to.packed(a);
  to.emit(Operation::add, Type::u64, sum, {first, to.packed(b)});
  if (operands == 3) to.emit(Operation::add, Type::u64, sum, {sum, to.packed(form.next())});
  to.emit(Operation::unpack, Type::b64, target, {sum});
}

/// IADD3, and IADD of sm_120, which has two terms.
template <int operands>
void add(Lowerer& to, Form& form) {
  if (form.take("64")) return add_pairs<operands>(to, form);
  const bool extended = form.take("X");
  Sum sum;
  sum.target = to.target(form.next());
  if (form.peek().is_predicate()) sum.carry_out = &form.next();
  if (form.peek().is_predicate()) sum.second_carry_out = &form.next();
  const Operand& a = form.next();
  const Operand& b = form.next();
  Operand zero;
  zero.kind = Operand::Kind::reg;
  zero.index = zero_register;
  const Operand& c = operands == 3 ? form.next() : zero;
  if (extended) {
    if (form.more()) sum.carry_in = to.condition(form.next());
    if (form.more()) sum.second_carry_in = to.condition(form.next());
    if (sum.carry_in.is_false()) std::swap(sum.carry_in, sum.second_carry_in);
  }
  const bool plain = sum.carry_out == nullptr && !extended && is_zero(c) && !has_sign(c);
  const Slot x = term(to, a);
  const Slot y = term(to, b);
  const Slot z = term(to, c);
  if (plain && !has_sign(a) && !has_sign(b)) {
    to.emit(Operation::add, Type::u32, sum.target, {x, y});
  } else if (plain && !has_sign(a) && b.negated) {
    to.emit(Operation::sub, Type::u32, sum.target, {x, y});
  } else if (plain && a.negated && !has_sign(b)) {
    to.emit(Operation::sub, Type::u32, sum.target, {y, x});
  } else {
    add_words(to, sum, {x, y, z}, terms_of({&a, &b, &c}));
  }
}

void imad_wide(Lowerer& to, Form& form, Type type, bool high) {
  const bool extended = form.take("X");
  const Slot target = to.target(form.next(), high ? 1 : 2);
  const Operand* const carry_out = form.peek().is_predicate() ? &form.next() : nullptr;
  const Slot a = to.integer(form.next());
  const Slot b = to.integer(form.next());
  const Operand& c = form.next();
  if (high && is_zero(c) && !extended && !is_wanted(carry_out)) {
    to.emit(Operation::mul_hi, type, target, {a, b});
    return;
  }
  if (extended || is_wanted(carry_out)) {
    const Slot product = to.temporary();
    to.emit({.operation = Operation::mad_wide, .type = type, .words = true}, product,
            {a, b, Frame::zero});
    // A negated addend is its complement plus a carry of one.
    simt::Add3Terms low_terms;
    simt::Add3Terms high_terms;
    if (has_sign(c)) {
      low_terms.complement(1);
      high_terms.complement(1);
      if (c.negated) low_terms.increment();
    }
    const Slot addend = is_number(c) ? to.pair(c) : to.pair(to.without(c, negation | complement));
    const Slot carry = to.temporary();
    const Slot carry_in = extended ? to.positive(form.next()) : Frame::zero;
    constexpr std::uint32_t upper = Frame::slot_bytes;
    const Slot low = high ? Slot{Frame::sink} : target;
    to.emit(Operation::add3_carry, Type::u32, low, {product, addend, Frame::zero, carry_in},
            low_terms.bits)
        .operands.target2 = carry;
    to.emit(Operation::add3_carry, Type::u32, high ? target : target + upper,
            {product + upper, addend + upper, Frame::zero, carry}, high_terms.bits)
        .operands.target2 = is_wanted(carry_out) ? to.predicate_target(*carry_out) : Frame::sink;
    return;
  }
  to.emit({.operation = high ? Operation::mad_wide_hi : Operation::mad_wide,
           .type = type,
           .words = true},
          target, {a, b, to.pair(c)});
}

}  // namespace

void handlers::iadd3(Lowerer& to, Form& form) { add<3>(to, form); }
void handlers::iadd(Lowerer& to, Form& form) { add<2>(to, form); }

void handlers::imad(Lowerer& to, Form& form) {
  const Type type = form.take("U32") ? Type::u32 : Type::s32;
  form.take_all({"MOV", "SHL", "IADD"});  // special factors have names
  if (form.take("WIDE")) return imad_wide(to, form, type, false);
  if (form.take("HI")) return imad_wide(to, form, type, true);
  const bool extended = form.take("X");
  const Slot target = to.target(form.next());
  const Operand* const carry_out = form.peek().is_predicate() ? &form.next() : nullptr;
  const Operand& a = form.next();
  const Operand& b = form.next();
  const Operand& c = form.next();
  if (carry_out != nullptr) to.refuse("the carry of IMAD is not executed");
  if (extended) {
    Slot product = Frame::zero;
    if (!is_zero(a) && !is_zero(b)) {
      product = to.temporary();
      to.emit(Operation::mul_lo, Type::u32, product, {to.integer(a), to.integer(b)});
    }
    Sum sum;
    sum.target = target;
    sum.carry_in = to.condition(form.next());
    const Operand plain;
    add_words(to, sum, {product, Frame::zero, term(to, c)}, terms_of({&plain, &plain, &c}));
    return;
  }
  if (is_zero(a) || is_zero(b)) {
    if (has_sign(c)) {
      to.emit(c.negated ? Operation::neg : Operation::bit_not, c.negated ? Type::s32 : Type::b32,
              target, {term(to, c)});
    } else {
      to.move(target, to.word(c));
    }
    return;
  }
  const bool is_sum = is_number(b) && b.integer == 1;
  if (is_sum && c.negated && !has_sign(a)) {
    to.emit(Operation::sub, Type::u32, target, {to.word(a), term(to, c)});
  } else if (is_sum) {
    to.emit(Operation::add, Type::u32, target, {to.integer(a), to.integer(c)});
  } else if (is_zero(c)) {
    to.emit(Operation::mul_lo, Type::u32, target, {to.integer(a), to.integer(b)});
  } else {
    to.emit(Operation::mad_lo, Type::u32, target, {to.integer(a), to.integer(b), to.integer(c)});
  }
}

/// (a << shift) + b, or the upper word of the shifted 64-bit value + b.
void handlers::lea(Lowerer& to, Form& form) {
  const bool high = form.take("HI");
  const bool extended = form.take("X");
  const bool sign_extended = high && form.take("SX32");
  Sum sum;
  sum.target = to.target(form.next());
  if (form.peek().is_predicate()) sum.carry_out = &form.next();
  const Operand& a = form.next();
  const Operand& b = form.next();
  const Operand* const upper = high && !sign_extended ? &form.next() : nullptr;
  const Operand& count = form.next();
  if (extended && form.more()) sum.carry_in = to.condition(form.next());
  if (!is_number(count) || count.integer < 0 || count.integer > 31) {
    to.refuse("its shift is not a number from 0 to 31");
  }
  const auto shift = static_cast<std::uint32_t>(count.integer);
  if (!high && !extended && sum.carry_out == nullptr && !has_sign(b)) {
    to.emit(Operation::mad_lo, Type::u32, sum.target,
            {to.integer(a), to.frame().literal(1u << shift), to.word(b)});
    return;
  }
  const Slot shifted = to.temporary();
  // The sum applies the sign of the shifted value: a negated zero carries.
  to.applies(a, negation | complement);
  Operand sign;
  sign.negated = a.negated;
  sign.complement = a.complement;
  if (!high) {
    to.emit(Operation::shl, Type::b32, shifted, {to.word(a), to.frame().literal(shift)});
  } else if (sign_extended) {
    // The upper word is the sign; for a shift of 0, nothing else.
    to.emit(Operation::shr, Type::s32, shifted, {to.word(a), to.frame().literal(32 - shift)});
  } else {
    to.emit({.operation = Operation::shf_l, .type = Type::b32, .clamp = true}, shifted,
            {to.word(a), to.word(*upper), to.frame().literal(shift)});
  }
  const Operand plain;
  add_words(to, sum, {shifted, term(to, b), Frame::zero}, terms_of({&sign, &b, &plain}));
}

void handlers::iabs(Lowerer& to, Form& form) {
  const Slot target = to.target(form.next());
  to.emit(Operation::abs, Type::s32, target, {to.integer(form.next())});
}

/// |a - b| + c
void handlers::vabsdiff(Lowerer& to, Form& form) {
  const Type type = form.take("U32") ? Type::u32 : Type::s32;
  const Slot target = to.target(form.next());
  const Slot a = to.integer(form.next());
  const Slot b = to.integer(form.next());
  to.emit(Operation::sad, type, target, {a, b, to.integer(form.next())});
}

/// |a - b| of each byte; with .ACC their sum plus c.
void handlers::vabsdiff4(Lowerer& to, Form& form) {
  if (!form.take("U8")) to.refuse("only bytes without a sign are executed");
  const bool accumulates = form.take("ACC");
  const Slot target = to.target(form.next());
  const Slot a = to.word(form.next());
  const Slot b = to.word(form.next());
  const Slot c = to.word(form.next());
  const Slot sum = to.temporary();
  const Slot x = to.temporary();
  const Slot y = to.temporary();
  to.move(sum, accumulates ? c : Frame::zero);
  const Slot width = to.frame().literal(8);
  for (std::uint32_t byte = 0; byte < 4; ++byte) {
    const Slot place = to.frame().literal(8 * byte);
    to.emit(Operation::bfe, Type::u32, x, {a, place, width});
    to.emit(Operation::bfe, Type::u32, y, {b, place, width});
    if (accumulates) {
      to.emit(Operation::sad, Type::u32, sum, {x, y, sum});
    } else {
      to.emit(Operation::sad, Type::u32, x, {x, y, Frame::zero});
      to.emit(Operation::shl, Type::b32, x, {x, place});
      to.emit(Operation::bit_or, Type::b32, sum, {sum, x});
    }
  }
  to.move(target, sum);
}

void handlers::idp(Lowerer& to, Form& form) {
  const bool four = form.take("4A");
  const bool two = !four && form.take("2A");
  if (!four && !two) to.refuse("only IDP.4A and IDP.2A are executed");
  const bool high = two && form.take("HI");
  if (two && !high) form.take("LO");
  // The types of both factors, in order.
  Type types[2] = {Type::s32, Type::s32};
  std::size_t number = 0;
  while (number < 2) {
    if (form.take("U8") || form.take("U16")) {
      types[number++] = Type::u32;
    } else if (form.take("S8") || form.take("S16")) {
      types[number++] = Type::s32;
    } else {
      break;
    }
  }
  const std::string_view opcode = form.instruction().opcode;
  if (number == 2 && types[0] != types[1]) {
    types[0] = opcode.find(".U") < opcode.find(".S") ? Type::u32 : Type::s32;
    types[1] = types[0] == Type::u32 ? Type::s32 : Type::u32;
  }
  const Slot target = to.target(form.next());
  const Slot a = to.integer(form.next());
  const Slot b = to.integer(form.next());
  const Slot c = to.integer(form.next());
  to.emit({.operation = four ? Operation::dp4a : Operation::dp2a,
           .type = types[0],
           .source = types[1],
           .high = high},
          target, {a, b, c});
}

}  // namespace warpstack::sass
