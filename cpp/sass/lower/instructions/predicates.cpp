#include <optional>
#include <utility>

#include "sass/lower/comparisons.h"
#include "sass/lower/handlers.h"

namespace warpstack::sass {
namespace {

using simt::Comparison;

constexpr std::pair<std::string_view, Comparison> comparisons[] = {
    {"EQ", Comparison::eq},   {"NE", Comparison::ne},   {"LT", Comparison::lt},
    {"LE", Comparison::le},   {"GT", Comparison::gt},   {"GE", Comparison::ge},
    {"EQU", Comparison::equ}, {"NEU", Comparison::neu}, {"LTU", Comparison::ltu},
    {"LEU", Comparison::leu}, {"GTU", Comparison::gtu}, {"GEU", Comparison::geu},
    {"NUM", Comparison::num}, {"NAN", Comparison::nan}};

void compare_words(Lowerer& to, Comparison comparison, Type type, Slot result, Slot a, Slot b) {
  to.emit({.operation = Operation::setp, .type = type, .comparison = comparison}, result, {a, b});
}

/// Compares the upper words of 64-bit integers; if they are equal, the lower words decide.
void compare_extended(Lowerer& to, Comparison comparison, Type type, Slot result, Slot a, Slot b,
                      Condition lower) {
  const Slot differ = to.temporary();
  const Slot equal = to.temporary();
  Comparison strict = comparison;
  if (comparison == Comparison::le) strict = Comparison::lt;
  if (comparison == Comparison::ge) strict = Comparison::gt;
  if (comparison == Comparison::eq) strict = Comparison::ne;
  compare_words(to, strict, type, differ, a, b);
  compare_words(to, Comparison::eq, type, equal, a, b);
  const bool is_eq = comparison == Comparison::eq;
  const std::uint32_t table = Lowerer::table_of([&](bool decided, bool same, bool low) {
    const bool rest = same && (lower.negated ? !low : low);
    return is_eq ? rest : decided || rest;
  });
  to.emit(Operation::lop3, Type::b32, result, {differ, equal, lower.slot}, table);
}

simt::OperandSigns signs_of(Lowerer& to, const Operand& a, const Operand& b) {
  simt::OperandSigns signs;
  std::uint32_t source = 0;
  for (const Operand* operand : {&a, &b}) {
    if (operand->kind != Operand::Kind::real) {
      to.applies(*operand, negation | absolute);
      if (operand->absolute) signs.take_absolute(source);
      if (operand->negated) signs.negate(source);
    }
    ++source;
  }
  return signs;
}

void compare_floats(Lowerer& to, Comparison comparison, bool flush, Slot result, const Operand& a,
                    const Operand& b) {
  const simt::OperandSigns signs = signs_of(to, a, b);
  to.emit({.operation = Operation::setp,
           .type = Type::f32,
           .comparison = comparison,
           .flush = flush,
           .signs = signs.bits != 0},
          result, {to.real_word(a), to.real_word(b)}, signs.bits);
}

void compare_doubles(Lowerer& to, Comparison comparison, Slot result, Slot a, Slot b,
                     simt::OperandSigns signs) {
  to.emit({.operation = Operation::setp,
           .type = Type::f64,
           .comparison = comparison,
           .words = true,
           .signs = true},
          result, {a, b}, signs.bits);
}

/// DSETP.MIN, DSETP.MAX: whether the first operand is the result (numbers win over NaN), and
/// whether both are NaN.
void select_extreme(Lowerer& to, Form& form, bool is_min) {
  if (combination_in(to, form) != '&') to.refuse("only the form with AND is executed");
  const Operand& p = form.next();
  const Operand& q = form.next();
  const Operand& a = form.next();
  const Operand& b = form.next();
  if (!to.condition(form.next()).is_true()) to.refuse("only the form with PT is executed");
  const Slot x = to.real_pair(a);
  const Slot y = to.real_pair(b);
  const auto compare = [&](Comparison comparison, Slot left, Slot right, simt::OperandSigns signs) {
    const Slot result = to.temporary();
    compare_doubles(to, comparison, result, left, right, signs);
    return result;
  };
  const simt::OperandSigns signs = signs_of(to, a, b);
  const Slot before = compare(is_min ? Comparison::lt : Comparison::gt, x, y, signs);
  // -0 is below +0: of equal values, the first is taken if it has the sign of the extreme.
  const Slot equal = compare(Comparison::eq, x, y, signs);
  Slot is_negative = a.negated ? Slot{Frame::truth} : Slot{Frame::zero};
  if (!a.absolute) {
    is_negative = to.temporary();
    compare_words(to, a.negated ? Comparison::ge : Comparison::lt, Type::s32, is_negative,
                  x + Frame::slot_bytes, Frame::zero);
  }
  to.emit(Operation::lop3, Type::b32, before, {before, equal, is_negative},
          Lowerer::table_of([is_min](bool less, bool same, bool negative) {
            return less || (same && negative == is_min);
          }));
  const Slot a_is_nan = compare(Comparison::nan, x, x, {});
  const Slot b_is_nan = compare(Comparison::nan, y, y, {});
  const Slot p_target = to.predicate_target(p);
  const Slot q_target = to.predicate_target(q);
  if (p_target == to.guard().slot) to.refuse("a result into its own guard is not executed");
  to.emit(Operation::lop3, Type::b32, p_target, {before, a_is_nan, b_is_nan},
          Lowerer::table_of([](bool less, bool u, bool v) { return less || (!u && v); }));
  to.emit(Operation::bit_and, Type::b32, q_target, {a_is_nan, b_is_nan});
}

/// Bits of a mask, lowest first.
std::uint32_t mask_in(Lowerer& to, const Operand& operand) {
  if (operand.kind != Operand::Kind::integer || operand.integer < 0 || operand.integer > 0x7f) {
    to.refuse("its mask " + operand.text + " is not a number up to 0x7f");
  }
  return static_cast<std::uint32_t>(operand.integer);
}

/// Whether a name, of some versions of nvdisasm, stands for all predicates of a kind.
bool is_all_predicates(std::string_view name) { return name == "PR" || name == "UPR"; }

void skip_name(Form& form) {
  if (form.peek().kind == Operand::Kind::name && is_all_predicates(form.peek().text)) {
    form.next();
  }
}

/// All predicates of a kind as bits of a word; `uniform`: UP0 to UP6.
template <bool uniform>
void predicates_to_register(Lowerer& to, Form& form) {
  const Slot target = to.target(form.next());
  skip_name(form);
  const Slot rest = to.integer(form.next());
  const std::uint32_t mask = mask_in(to, form.next());
  const Slot value = to.temporary();
  to.emit(Operation::bit_and, Type::b32, value, {rest, to.frame().literal(~mask)});
  for (std::uint32_t i = 0; i < true_predicate; ++i) {
    if ((mask >> i & 1) == 0) continue;
    // value | (predicate & bit)
    to.emit(Operation::lop3, Type::b32, value,
            {value, to.frame().predicate(i, uniform), to.frame().literal(1u << i)},
            Lowerer::table_of([](bool a, bool b, bool c) { return a || (b && c); }));
  }
  to.move(target, value);
}

template <bool uniform>
void register_to_predicates(Lowerer& to, Form& form) {
  skip_name(form);
  const Slot source = to.integer(form.next());
  const std::uint32_t mask = mask_in(to, form.next());
  std::optional<std::uint32_t> last;
  const auto write = [&](std::uint32_t i) {
    const Slot bit = to.temporary();
    to.emit(Operation::bit_and, Type::b32, bit, {source, to.frame().literal(1u << i)});
    compare_words(to, Comparison::ne, Type::u32, to.frame().predicate(i, uniform), bit,
                  Frame::zero);
  };
  for (std::uint32_t i = 0; i < true_predicate; ++i) {
    if ((mask >> i & 1) == 0) continue;
    if (to.frame().predicate(i, uniform) == to.guard().slot) {
      last = i;  // it affects the others
    } else {
      write(i);
    }
  }
  if (last) write(*last);
}

}  // namespace

Comparison comparison_in(Lowerer& to, Form& form) {
  for (const auto& [name, comparison] : comparisons) {
    if (form.take(name)) return comparison;
  }
  to.refuse("its comparison is not executed");
}

char combination_in(Lowerer& to, Form& form) {
  if (form.take("AND")) return '&';
  if (form.take("OR")) return '|';
  if (form.take("XOR")) return '^';
  to.refuse("it combines its result neither by AND nor by OR nor by XOR");
}

/// Sets two predicates by what `compare` makes of two operands, combined with a third.
template <class Compare>
static void compare_reals(Lowerer& to, Form& form, const Compare& compare) {
  const Comparison comparison = comparison_in(to, form);
  const char combination = combination_in(to, form);
  const Operand& p = form.next();
  const Operand& q = form.next();
  const Operand& a = form.next();
  const Operand& b = form.next();
  const Condition with = to.condition(form.next());
  to.set_predicates(p, q, combination, with,
                    [&](Slot result) { compare(comparison, result, a, b); });
}

void handlers::isetp(Lowerer& to, Form& form) {
  const Type wide = form.take("S64") ? Type::s64 : form.take("U64") ? Type::u64 : Type::none;
  const Type type = wide != Type::none ? wide : form.take("U32") ? Type::u32 : Type::s32;
  const bool extended = wide == Type::none && form.take("EX");
  const Comparison comparison = comparison_in(to, form);
  const char combination = combination_in(to, form);
  const Operand& p = form.next();
  const Operand& q = form.next();
  const auto source = [&](const Operand& operand) {
    return wide == Type::none ? to.integer(operand) : to.packed(operand);
  };
  const Slot a = source(form.next());
  const Slot b = source(form.next());
  const Condition with = to.condition(form.next());
  // nvdisasm leaves out a condition that is always true.
  const Condition lower = extended && form.more() ? to.condition(form.next()) : Condition{};
  to.set_predicates(p, q, combination, with, [&](Slot result) {
    if (extended) {
      compare_extended(to, comparison, type, result, a, b, lower);
    } else {
      compare_words(to, comparison, type, result, a, b);
    }
  });
}

void handlers::fsetp(Lowerer& to, Form& form) {
  const bool flush = form.take("FTZ");
  compare_reals(to, form,
                [&](Comparison comparison, Slot result, const Operand& a, const Operand& b) {
                  compare_floats(to, comparison, flush, result, a, b);
                });
}

void handlers::dsetp(Lowerer& to, Form& form) {
  if (form.take("MIN")) return select_extreme(to, form, true);
  if (form.take("MAX")) return select_extreme(to, form, false);
  compare_reals(to, form,
                [&](Comparison comparison, Slot result, const Operand& a, const Operand& b) {
                  const Slot x = to.real_pair(a);
                  compare_doubles(to, comparison, result, x, to.real_pair(b), signs_of(to, a, b));
                });
}

/// A comparison as a number: 1.0 with .BF, else all bits.
void handlers::fset(Lowerer& to, Form& form) {
  const bool is_float = form.take("BF");
  const bool flush = form.take("FTZ");
  const Comparison comparison = comparison_in(to, form);
  if (combination_in(to, form) != '&') to.refuse("only the form with AND is executed");
  const Slot target = to.target(form.next());
  const Operand& a = form.next();
  const Operand& b = form.next();
  if (!to.condition(form.next()).is_true()) to.refuse("only the form with PT is executed");
  const Slot holds = to.temporary();
  compare_floats(to, comparison, flush, holds, a, b);
  constexpr std::uint32_t one = 0x3f800000;
  to.emit(Operation::bit_and, Type::b32, target, {holds, to.frame().literal(is_float ? one : ~0u)});
}

void handlers::p2r(Lowerer& to, Form& form) { predicates_to_register<false>(to, form); }
void handlers::r2p(Lowerer& to, Form& form) { register_to_predicates<false>(to, form); }
void handlers::up2ur(Lowerer& to, Form& form) { predicates_to_register<true>(to, form); }
void handlers::ur2up(Lowerer& to, Form& form) { register_to_predicates<true>(to, form); }

}  // namespace warpstack::sass
