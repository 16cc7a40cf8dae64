#include <array>
#include <cstdint>
#include <initializer_list>
#include <tuple>

#include "sass/lower/handlers.h"

// Sums, minima and maxima of integers: words, pairs of words, and halves or bytes of a word.

namespace warpstack::sass {
namespace {

/// The operands of an instruction: a number of parts of a word, or 64 bits.
struct Parts {
  Type type = Type::s32;
  std::uint32_t count = 1;

  [[nodiscard]] std::uint32_t bits() const { return 32 / count; }
  [[nodiscard]] bool is_pair() const { return bytes_of(type) == 8; }
};

Parts parts_in(Form& form) {
  constexpr std::tuple<std::string_view, Type, std::uint32_t> names[] = {
      {"S16x2", Type::s32, 2}, {"U16x2", Type::u32, 2}, {"16x2", Type::u32, 2},
      {"S8x4", Type::s32, 4},  {"U8x4", Type::u32, 4},  {"8x4", Type::u32, 4},
      {"S64", Type::s64, 1},   {"U64", Type::u64, 1},   {"U32", Type::u32, 1},
      {"S32", Type::s32, 1}};
  for (const auto& [name, type, count] : names) {
    if (form.take(name)) return {type, count};
  }
  return {};
}

/// A source, and for each of its parts whether it is negated.
struct Term {
  Slot slot = Frame::zero;
  bool negated = false;
};

Term term_of(Lowerer& to, const Operand& operand, const Parts& parts) {
  if (parts.is_pair()) return {to.packed(operand), false};
  if (parts.count == 1 || operand.kind == Operand::Kind::integer) {
    return {to.integer(operand), false};
  }
  Operand bare = to.without(operand, negation);
  return {to.integer(bare), operand.negated};
}

/// Calls `compute` with the values of each part, and joins the results in `target`.
template <std::size_t n, class F>
void for_parts(Lowerer& to, const Parts& parts, Slot target, const std::array<Term, n>& terms,
               F compute) {
  std::array<Slot, n> values;
  if (parts.count == 1) {
    for (std::size_t i = 0; i < n; ++i) values[i] = terms[i].slot;
    if (!parts.is_pair()) return compute(target, values);
    const Slot result = to.temporary();
    compute(result, values);
    to.emit(Operation::unpack, Type::b64, target, {result});
    return;
  }
  const Slot whole = to.temporary();
  const Slot part = to.temporary();
  const Slot width = to.frame().literal(parts.bits());
  for (Slot& value : values) value = to.temporary();
  for (std::uint32_t p = 0; p < parts.count; ++p) {
    const Slot place = to.frame().literal(p * parts.bits());
    for (std::size_t i = 0; i < n; ++i) {
      to.emit(Operation::bfe, parts.type, values[i], {terms[i].slot, place, width});
      if (terms[i].negated) to.emit(Operation::neg, Type::s32, values[i], {values[i]});
    }
    compute(part, values);
    to.emit(Operation::bfi, Type::b32, whole, {part, p == 0 ? Frame::zero : whole, place, width});
  }
  to.move(target, whole);
}

/// The minimum where the condition holds, else the maximum; with .RELU at least zero.
void extreme(Lowerer& to, Type type, bool relu, Condition least, Slot target, Slot a, Slot b) {
  const auto one = [&](Operation operation, Slot result) {
    to.emit({.operation = operation, .type = type, .relu = relu}, result, {a, b});
  };
  if (least.is_true() || least.is_false()) {
    return one(least.is_true() ? Operation::min : Operation::max, target);
  }
  const Slot lesser = to.temporary();
  const Slot greater = to.temporary();
  one(Operation::min, lesser);
  one(Operation::max, greater);
  to.emit(Operation::selp, bytes_of(type) == 8 ? Type::b64 : Type::b32, target,
          {lesser, greater, to.positive(least)});
}

/// Skips unused predicates before or behind the target.
void skip_predicates(Lowerer& to, Form& form) {
  while (form.peek().is_predicate()) {
    if (!Lowerer::is_unused(form.next())) to.refuse("its predicates are not executed");
  }
}

/// The minimum or maximum of some values; with `sums`, of the sum of the first two and the third.
template <std::size_t n, bool sums>
void extremes(Lowerer& to, Form& form) {
  const Parts parts = parts_in(form);
  const bool relu = form.take("RELU");
  skip_predicates(to, form);
  const Slot target = to.target(form.next(), parts.is_pair() ? 2 : 1);
  skip_predicates(to, form);
  std::array<Term, n> terms;
  for (Term& term : terms) term = term_of(to, form.next(), parts);
  const Condition least = to.condition(form.next());
  // A pair can pass a carry on, which compilers do not use.
  if (parts.is_pair() && form.more() && !to.condition(form.next()).is_false()) {
    to.refuse("its last predicate is not executed");
  }
  for_parts(to, parts, target, terms, [&](Slot result, const std::array<Slot, n>& values) {
    if constexpr (n == 2) {
      extreme(to, parts.type, relu, least, result, values[0], values[1]);
    } else {
      const Slot first = to.temporary();
      if constexpr (sums) {
        to.emit(Operation::add, Type::u32, first, {values[0], values[1]});
        if (parts.count > 1) {  // wraps around within the part
          to.emit(Operation::bfe, parts.type, first,
                  {first, Frame::zero, to.frame().literal(parts.bits())});
        }
      } else {
        extreme(to, parts.type, false, least, first, values[0], values[1]);
      }
      extreme(to, parts.type, relu, least, result, first, values[2]);
    }
  });
}

}  // namespace

void handlers::imnmx(Lowerer& to, Form& form) { extremes<2, false>(to, form); }
void handlers::vimnmx3(Lowerer& to, Form& form) { extremes<3, false>(to, form); }
void handlers::viaddmnmx(Lowerer& to, Form& form) { extremes<3, true>(to, form); }

void handlers::viadd(Lowerer& to, Form& form) {
  const Parts parts = parts_in(form);
  if (parts.is_pair()) to.refuse("a sum of 64 bits is not executed");
  const Slot target = to.target(form.next());
  std::array<Term, 2> terms;
  for (Term& term : terms) term = term_of(to, form.next(), parts);
  for_parts(to, parts, target, terms, [&](Slot result, const std::array<Slot, 2>& values) {
    to.emit(Operation::add, Type::u32, result, {values[0], values[1]});
  });
}

}  // namespace warpstack::sass
