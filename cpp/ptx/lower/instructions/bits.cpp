#include <cstddef>
#include <cstdint>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"

// Logic, shifts and fields of bits.

namespace warpstack::ptx::handlers {

/// Instructions whose only modifier is their type.
void plain(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  form.type = modifiers.need_type();
  e.apply(form);
}

/// Instructions of 32 bits, whatever type they name.
void bits_32(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  modifiers.need_type();
  form.type = Type::b32;
  e.apply(form);
}

/// bmsk and szext.
void clamped(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  form.clamp = modifiers.take("clamp");
  modifiers.take("wrap");
  form.type = modifiers.need_type();
  e.apply(form);
}

void bfind(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  form.high = modifiers.take("shiftamt");
  form.type = modifiers.need_type();
  e.apply(form);
}

void lop3(Emitter& e, Modifiers& modifiers) {
  const auto join = modifiers.take_one_of({"or", "and"});
  const Type type = modifiers.need_type();
  const bool paired = e.operand(0).paired;
  const std::size_t first = paired ? 2 : 1;
  const std::uint32_t a = e.in(first, type);
  const std::uint32_t b = e.in(first + 1, type);
  const std::uint32_t c = e.in(first + 2, type);
  const auto table = static_cast<std::uint32_t>(e.operand(first + 3).integer) & 255;
  LaneForm form = e.form();
  form.type = type;
  if (!join) {
    e.lanes(form, e.out(0, type), {a, b, c}, table);
    return;
  }
  const std::uint32_t q = e.in(first + 4, Type::pred);
  const std::uint32_t result = e.temporary(4);
  const std::uint32_t is_set = e.temporary_predicate();
  e.lanes(form, result, {a, b, c}, table);
  e.lanes({.operation = Operation::setp, .type = Type::u32, .comparison = Comparison::ne}, is_set,
          {result, e.constant(0, 4)});
  e.lanes({.operation = *join == 0 ? Operation::bit_or : Operation::bit_and, .type = Type::pred},
          e.out(paired ? 1 : 0, Type::pred), {is_set, q});
  if (paired) e.copy(e.out(0, type), result, type);
}

void prmt(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  modifiers.need_type();
  form.type = Type::b32;
  const auto mode = modifiers.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  form.mode = static_cast<std::uint8_t>(mode ? *mode + 1 : 0);
  e.apply(form);
}

void shf(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  if (modifiers.take("l")) form.operation = Operation::shf_l;
  modifiers.take("r");
  form.clamp = modifiers.take("clamp");
  modifiers.take("wrap");
  modifiers.need_type();
  form.type = Type::b32;
  e.apply(form);
}

}  // namespace warpstack::ptx::handlers
