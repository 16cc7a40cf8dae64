#include <utility>

#include "sass/lower/handlers.h"

namespace warpstack::sass {
namespace {

/// The table of a function with operands inverted beforehand.
std::uint32_t table_with_inverted(std::uint32_t table, bool a, bool b, bool c) {
  return Lowerer::table_of([=](bool x, bool y, bool z) {
    const std::uint32_t row = (x != a ? 4u : 0u) | (y != b ? 2u : 0u) | (z != c ? 1u : 0u);
    return (table >> row & 1) != 0;
  });
}

std::uint32_t table_in(Lowerer& to, const Operand& operand) {
  if (operand.kind != Operand::Kind::integer || operand.integer < 0 || operand.integer > 255) {
    to.refuse("its table " + operand.text + " is not a number from 0 to 255");
  }
  return static_cast<std::uint32_t>(operand.integer);
}

void logic(Lowerer& to, Slot target, Slot a, Slot b, Slot c, std::uint32_t table) {
  switch (table) {  // a single vectorized operation
    case 0xc0:
      to.emit(Operation::bit_and, Type::b32, target, {a, b});
      break;
    case 0xfc:
      to.emit(Operation::bit_or, Type::b32, target, {a, b});
      break;
    case 0x3c:
      to.emit(Operation::bit_xor, Type::b32, target, {a, b});
      break;
    case 0x33:
      to.emit(Operation::bit_not, Type::b32, target, {b});
      break;
    default:
      to.emit(Operation::lop3, Type::b32, target, {a, b, c}, table);
  }
}

/// A predicate, or the sign of a register (R2.SIGN).
Condition condition_or_sign(Lowerer& to, const Operand& operand) {
  if (operand.suffix != "SIGN") return to.condition(operand);
  const Operand bare = to.without(operand, negation | suffix);
  const Slot sign = to.temporary();
  to.emit({.operation = Operation::setp, .type = Type::s32, .comparison = simt::Comparison::lt},
          sign, {to.integer(bare), Frame::zero});
  return {sign, operand.negated};
}

/// Shifts 64 bits with separate steps; `high` gives the upper word of the result.
void shift_pair(Lowerer& to, Operation operation, Type type, bool high, Slot target, Slot low,
                Slot upper, Slot count) {
  const Slot words = to.temporary();
  const Slot value = to.temporary();
  to.move(words, low);
  to.move(words + Frame::slot_bytes, upper);
  to.emit(Operation::pack, Type::b64, value, {words});
  to.emit(operation, type, value, {value, count});
  to.emit(Operation::unpack, Type::b64, words, {value});
  to.move(target, words + (high ? Frame::slot_bytes : 0));
}

template <Operation operation>
void of_one(Lowerer& to, Form& form) {
  const Slot target = to.target(form.next());
  const Operand& source = form.next();
  Slot value = to.integer(source);
  to.emit(operation, Type::b32, target, {value});
}

}  // namespace

void handlers::lop3(Lowerer& to, Form& form) {
  if (!form.take("LUT")) to.refuse("only LOP3.LUT is executed");
  const char combination = form.take("PAND") ? '&' : '|';
  const Operand* const p = form.peek().is_predicate() ? &form.next() : nullptr;
  const Operand& d = form.next();
  const Operand& a = form.next();
  const Operand& b = form.next();
  const Operand& c = form.next();
  for (const Operand* operand : {&a, &b, &c}) to.applies(*operand, complement);
  const std::uint32_t table =
      table_with_inverted(table_in(to, form.next()), a.complement, b.complement, c.complement);
  const Condition with = form.more() ? to.condition(form.next()) : Condition{Frame::truth, true};
  const Slot target = to.target(d);
  if (p == nullptr || Lowerer::is_unused(*p)) {
    logic(to, target, to.word(a), to.word(b), to.word(c), table);
    return;
  }
  // The result goes to a temporary first, because its target may be the guard or a source.
  const Slot value = to.temporary();
  logic(to, value, to.word(a), to.word(b), to.word(c), table);
  if (target != Frame::sink) to.move(target, value);
  Operand unused;
  unused.kind = Operand::Kind::predicate;
  unused.index = true_predicate;
  const bool plain = combination == '|' && with.is_false();
  to.set_predicates(
      *p, unused, plain ? '&' : combination, plain ? Condition{} : with, [&](Slot result) {
        to.emit(
            {.operation = Operation::setp, .type = Type::u32, .comparison = simt::Comparison::ne},
            result, {value, Frame::zero});
      });
}

/// Predicates are words of equal bits, so the function for words serves them, too.
void handlers::plop3(Lowerer& to, Form& form) {
  if (!form.take("LUT")) to.refuse("only PLOP3.LUT is executed");
  const Operand& p = form.next();
  const Operand& q = form.next();
  const Condition a = condition_or_sign(to, form.next());
  const Condition b = condition_or_sign(to, form.next());
  const Condition c = condition_or_sign(to, form.next());
  const auto table = [&](const Operand& operand) {
    return table_with_inverted(table_in(to, operand), a.negated, b.negated, c.negated);
  };
  const std::uint32_t first = table(form.next());
  const std::uint32_t second = table(form.next());
  const auto write = [&](Slot target, std::uint32_t lut) {
    to.emit(Operation::lop3, Type::b32, target, {a.slot, b.slot, c.slot}, lut);
  };
  if (Lowerer::is_unused(q)) {
    write(to.predicate_target(p), first);
    return;
  }
  const Slot p_value = to.temporary();
  const Slot q_value = to.temporary();
  write(p_value, first);
  write(q_value, second);
  const Slot p_target = to.predicate_target(p);
  const Slot q_target = to.predicate_target(q);
  if (p_target == to.guard().slot) {
    to.move(q_target, q_value);
    to.move(p_target, p_value);
  } else {
    to.move(p_target, p_value);
    to.move(q_target, q_value);
  }
}

void handlers::shf(Lowerer& to, Form& form) {
  const bool left = form.take("L");
  if (!left && !form.take("R")) to.refuse("neither to the left nor to the right");
  const bool wrap = form.take("W");
  const bool high = form.take("HI");
  const bool is_64 = form.take("U64");
  const bool is_s64 = !is_64 && form.take("S64");
  const bool is_s32 = !is_64 && !is_s64 && form.take("S32");
  if (!is_64 && !is_s64 && !is_s32) form.take("U32");
  const Slot target = to.target(form.next());
  const Slot low = to.integer(form.next());
  const Operand& count = form.next();
  const Slot n = to.integer(count);
  const Slot upper = to.integer(form.next());
  const bool is_short =
      count.kind == Operand::Kind::integer && count.integer >= 0 && count.integer <= 32;
  if (wrap) {
    if (is_64 || is_s64) {
      const Slot rest = to.temporary();
      to.emit(Operation::bit_and, Type::b32, rest, {n, to.frame().literal(63)});
      shift_pair(to, left ? Operation::shl : Operation::shr,
                 left     ? Type::b64
                 : is_s64 ? Type::s64
                          : Type::u64,
                 high, target, low, upper, rest);
      return;
    }
    if (left == high) {
      to.emit({.operation = left ? Operation::shf_l : Operation::shf_r, .type = Type::b32}, target,
              {low, upper, n});
      return;
    }
    // The shift of one word.
    const Slot rest = to.temporary();
    to.emit(Operation::bit_and, Type::b32, rest, {n, to.frame().literal(31)});
    to.emit(left ? Operation::shl : Operation::shr,
            left     ? Type::b32
            : is_s32 ? Type::s32
                     : Type::u32,
            target, {left ? low : upper, rest});
    return;
  }
  if ((is_64 || is_s64) && !is_short) {
    shift_pair(to, left ? Operation::shl : Operation::shr,
               left     ? Type::b64
               : is_s64 ? Type::s64
                        : Type::u64,
               high, target, low, upper, n);
    return;
  }
  if (left && !high) {
    to.emit(Operation::shl, Type::b32, target, {low, n});
  } else if (!left && high) {
    to.emit(Operation::shr, is_s32 || is_s64 ? Type::s32 : Type::u32, target, {upper, n});
  } else {
    to.emit(
        {.operation = left ? Operation::shf_l : Operation::shf_r, .type = Type::b32, .clamp = true},
        target, {low, upper, n});
  }
}

void handlers::prmt(Lowerer& to, Form& form) {
  using simt::Permute;
  Permute mode = Permute::index;
  for (const auto& [name, known] : {std::pair{"F4E", Permute::f4e},
                                    {"B4E", Permute::b4e},
                                    {"RC8", Permute::rc8},
                                    {"ECL", Permute::ecl},
                                    {"ECR", Permute::ecr},
                                    {"RC16", Permute::rc16}}) {
    if (mode == Permute::index && form.take(name)) mode = known;
  }
  const Slot target = to.target(form.next());
  const Slot a = to.integer(form.next());
  const Slot selector = to.integer(form.next());
  const Slot b = to.integer(form.next());
  to.emit(
      {.operation = Operation::prmt, .type = Type::b32, .mode = static_cast<std::uint8_t>(mode)},
      target, {a, b, selector});
}

void handlers::popc(Lowerer& to, Form& form) { of_one<Operation::popc>(to, form); }
void handlers::brev(Lowerer& to, Form& form) { of_one<Operation::brev>(to, form); }

/// The position of the leading bit, or the shift that makes it the first.
void handlers::flo(Lowerer& to, Form& form) {
  const Type type = form.take("U32") ? Type::u32 : Type::s32;
  const bool as_shift = form.take("SH");
  const Slot target = to.target(form.next());
  if (form.peek().is_predicate()) {
    if (!Lowerer::is_unused(form.next())) to.refuse("its predicate is not executed");
  }
  to.emit({.operation = Operation::bfind, .type = type, .high = as_shift}, target,
          {to.integer(form.next())});
}

void handlers::bmsk(Lowerer& to, Form& form) {
  const bool wraps = form.take("W");
  if (!wraps) form.take("C");
  const Slot target = to.target(form.next());
  const Slot position = to.integer(form.next());
  const Slot count = to.integer(form.next());
  to.emit({.operation = Operation::bmsk, .type = Type::b32, .clamp = !wraps}, target,
          {position, count});
}

void handlers::sgxt(Lowerer& to, Form& form) {
  const Type type = form.take("U32") ? Type::u32 : Type::s32;
  const bool wraps = form.take("W");
  const Slot target = to.target(form.next());
  const Slot value = to.integer(form.next());
  const Slot count = to.integer(form.next());
  to.emit({.operation = Operation::szext, .type = type, .clamp = !wraps}, target, {value, count});
}

}  // namespace warpstack::sass
