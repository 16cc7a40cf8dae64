#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"

// Comparisons, and selections by a sign.

namespace warpstack::ptx::handlers {
namespace {

/// Reads the comparison, whose unsigned names lo, ls, hi, hs mean lt, le, gt, ge.
Comparison take_comparison(Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Comparison> names[] = {
      {"eq", Comparison::eq},   {"ne", Comparison::ne},   {"lt", Comparison::lt},
      {"le", Comparison::le},   {"gt", Comparison::gt},   {"ge", Comparison::ge},
      {"lo", Comparison::lt},   {"ls", Comparison::le},   {"hi", Comparison::gt},
      {"hs", Comparison::ge},   {"equ", Comparison::equ}, {"neu", Comparison::neu},
      {"ltu", Comparison::ltu}, {"leu", Comparison::leu}, {"gtu", Comparison::gtu},
      {"geu", Comparison::geu}, {"num", Comparison::num}, {"nan", Comparison::nan}};
  for (const auto& [name, comparison] : names) {
    if (modifiers.take(name)) return comparison;
  }
  throw Unsupported{"it names no comparison"};
}

std::optional<Operation> take_combination(Modifiers& modifiers) {
  static constexpr Operation operations[] = {Operation::bit_and, Operation::bit_or,
                                             Operation::bit_xor};
  const auto found = modifiers.take_one_of({"and", "or", "xor"});
  if (!found) return std::nullopt;
  return operations[*found];
}

bool is_packed(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }

/// Compares the low or high halves of packed values. Returns a predicate, combined with `c` if
/// given.
std::uint32_t compare_half(Emitter& e, LaneForm form, std::uint32_t a, std::uint32_t b,
                           std::uint32_t c, std::optional<Operation> join, std::uint32_t half) {
  form.type = form.type == Type::f16x2 ? Type::f16 : Type::bf16;
  std::uint32_t parts[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t shifted = e.temporary(4);
    e.lanes({.operation = Operation::shr, .type = Type::u32}, shifted,
            {i == 0 ? a : b, e.constant(16 * half, 4)});
    parts[i] = e.temporary(2);
    e.lanes({.operation = Operation::cvt, .type = Type::u16, .source = Type::u32}, parts[i],
            {shifted});
  }
  const std::uint32_t holds = e.temporary_predicate();
  e.lanes(form, holds, {parts[0], parts[1]});
  if (!join) return holds;
  const std::uint32_t joined = e.temporary_predicate();
  e.lanes({.operation = *join, .type = Type::pred}, joined, {holds, c});
  return joined;
}

}  // namespace

void setp(Emitter& e, Modifiers& modifiers) {
  LaneForm form{.operation = Operation::setp};
  form.comparison = take_comparison(modifiers);
  const auto join = take_combination(modifiers);
  form.flush = modifiers.take("ftz");
  form.type = modifiers.need_type();
  const bool paired = e.operand(0).paired;
  const std::size_t first = paired ? 2 : 1;
  const std::uint32_t a = e.in(first, form.type);
  const std::uint32_t b = e.in(first + 1, form.type);
  e.set_class(arithmetic_class(form.type));
  if (is_packed(form.type)) {
    if (!paired) throw Unsupported{"a comparison of packed values has two results"};
    const std::uint32_t c = join ? e.in(first + 2, Type::pred) : none;
    const std::uint32_t low = compare_half(e, form, a, b, c, join, 0);
    const std::uint32_t high = compare_half(e, form, a, b, c, join, 1);
    e.copy(e.out(0, Type::pred), low, Type::pred);
    e.copy(e.out(1, Type::pred), high, Type::pred);
    return;
  }
  if (!join && !paired) {
    e.lanes(form, e.out(0, Type::pred), {a, b});
    return;
  }
  const std::uint32_t c = join ? e.in(first + 2, Type::pred) : none;
  const std::uint32_t holds = e.temporary_predicate();
  e.lanes(form, holds, {a, b});
  const std::uint32_t fails = e.temporary_predicate();
  if (paired) {
    e.lanes({.operation = Operation::bit_not, .type = Type::pred}, fails, {holds});
  }
  const auto finish = [&](std::uint32_t target, std::uint32_t value) {
    if (join) {
      e.lanes({.operation = *join, .type = Type::pred}, target, {value, c});
    } else {
      e.copy(target, value, Type::pred);
    }
  };
  if (!paired) {
    finish(e.out(0, Type::pred), holds);
    return;
  }
  // The first target may be the predicate with which both results are combined.
  const std::uint32_t made = e.temporary_predicate();
  finish(made, holds);
  finish(e.out(1, Type::pred), fails);
  e.copy(e.out(0, Type::pred), made, Type::pred);
}

void set(Emitter& e, Modifiers& modifiers) {
  LaneForm form{.operation = Operation::setp};
  form.comparison = take_comparison(modifiers);
  const auto join = take_combination(modifiers);
  form.flush = modifiers.take("ftz");
  const Type result = modifiers.need_type();
  form.type = modifiers.need_type();
  // Pairs may also give a word of two masks.
  const bool is_word = result == Type::u32 || result == Type::s32;
  if (is_packed(form.type) ? !is_packed(result) && !is_word : is_packed(result)) {
    throw Unsupported{"set has no results of this type for values of that one"};
  }
  const std::uint32_t a = e.in(1, form.type);
  const std::uint32_t b = e.in(2, form.type);
  if (is_packed(form.type)) {
    const std::uint32_t c = join ? e.in(3, Type::pred) : none;
    const std::uint64_t one = is_word ? 0xffffu : result == Type::f16x2 ? 0x3c00u : 0x3f80u;
    e.set_class(arithmetic_class(form.type));
    const std::uint32_t halves[] = {e.temporary(4), e.temporary(4)};
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t holds = compare_half(e, form, a, b, c, join, half);
      e.lanes({.operation = Operation::selp, .type = Type::b32}, halves[half],
              {e.constant(one << (16 * half), 4), e.constant(0, 4), holds});
    }
    e.lanes({.operation = Operation::bit_or, .type = Type::b32}, e.out(0, result),
            {halves[0], halves[1]});
    return;
  }
  std::uint32_t holds = e.temporary_predicate();
  e.lanes(form, holds, {a, b});
  if (join) {
    const std::uint32_t c = e.in(3, Type::pred);
    const std::uint32_t joined = e.temporary_predicate();
    e.lanes({.operation = *join, .type = Type::pred}, joined, {holds, c});
    holds = joined;
  }
  std::uint64_t yes = 0xffffffffu;
  if (result == Type::f32) yes = 0x3f800000u;
  if (result == Type::f16) yes = 0x3c00u;
  if (result == Type::bf16) yes = 0x3f80u;
  e.set_class(arithmetic_class(form.type));
  e.lanes({.operation = Operation::selp, .type = bits_type(std::max(bytes_of(result), 2u))},
          e.out(0, result),
          {e.constant(yes, bytes_of(result)), e.constant(0, bytes_of(result)), holds});
}

void slct(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  form.flush = modifiers.take("ftz");
  form.type = modifiers.need_type();
  form.source = modifiers.need_type();
  if (form.flush && form.source != Type::f32) throw Unsupported{"only an f32 can be flushed"};
  e.apply(form);
}

}  // namespace warpstack::ptx::handlers
