#include <cstdint>
#include <vector>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"

// Arithmetic of integers and floats.

namespace warpstack::ptx::handlers {
namespace {

constexpr Operation products[] = {Operation::mul_lo, Operation::mul_hi, Operation::mul_wide};

/// The type of a `.wide` product.
Type wide(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      throw Unsupported{"there is no wider type"};
  }
}

struct Carry {
  bool in = false;
  bool out = false;
};

void add_with_carry(Emitter& e, const LaneForm& form, std::uint32_t target, std::uint32_t a,
                    std::uint32_t b, Carry carry) {
  e.set_class(OpClass::integer);
  const std::uint32_t flag = e.carry();
  if (carry.in) e.note_read(flag);
  if (carry.out) e.note_written(flag);
  // After a subtraction, too, the flag is a carry: 1 without a borrow. The PTX ISA says borrow, but
  // ptxas's code, and the division of __int128 in nvcc's PTX, use a carry.
  const std::uint32_t without = form.operation == Operation::subc ? 1 : 0;
  e.lanes(form, target, {a, b, carry.in ? flag : e.constant(without, 4)});
  e.define_second(carry.out ? flag : e.temporary(4));
}

void multiply_add(Emitter& e, Modifiers& modifiers, bool carry_in) {
  const auto part = modifiers.take_one_of({"lo", "hi", "wide"});
  if (!part) {  // mad.f32 and mad.f64 are fma
    arithmetic(e, modifiers);
    return;
  }
  const Carry carry{.in = carry_in, .out = modifiers.take("cc")};
  const bool saturate = modifiers.take("sat");
  const Type type = modifiers.need_type();
  const Type result = *part == 2 ? wide(type) : type;
  const std::uint32_t a = e.in(1, type);
  const std::uint32_t b = e.in(2, type);
  const std::uint32_t c = e.in(3, result);
  if (carry.in || carry.out) {
    const std::uint32_t product = e.temporary(bytes_of(result));
    const std::uint32_t target = e.out(0, result);
    e.lanes({.operation = products[*part], .type = type}, product, {a, b});
    add_with_carry(e, {.operation = Operation::addc, .type = result}, target, product, c, carry);
    return;
  }
  e.set_class(OpClass::integer);
  static constexpr Operation operations[] = {Operation::mad_lo, Operation::mad_hi,
                                             Operation::mad_wide};
  e.lanes({.operation = operations[*part], .type = type, .saturate = saturate}, e.out(0, result),
          {a, b, c});
}

}  // namespace

/// Instructions with the modifiers of float arithmetic.
void arithmetic(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  take_float_modifiers(modifiers, form);
  form.propagate_nan = modifiers.take("NaN");
  if (modifiers.take("xorsign")) {
    modifiers.take("abs");
    form.xor_sign = true;
  }
  form.type = modifiers.need_type();
  e.apply(form);
}

/// add and sub, also with carries: addc and subc are operations of three sources.
void add_or_subtract(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  Carry carry{.in = form.operation == Operation::addc || form.operation == Operation::subc,
              .out = modifiers.take("cc")};
  if (!carry.in && !carry.out) {
    arithmetic(e, modifiers);
    return;
  }
  if (form.operation == Operation::add) form.operation = Operation::addc;
  if (form.operation == Operation::sub) form.operation = Operation::subc;
  form.type = modifiers.need_type();
  const std::uint32_t a = e.in(1, form.type);
  const std::uint32_t b = e.in(2, form.type);
  add_with_carry(e, form, e.out(0, form.type), a, b, carry);
}

void mul(Emitter& e, Modifiers& modifiers) {
  const auto part = modifiers.take_one_of({"lo", "hi", "wide"});
  if (!part) {
    arithmetic(e, modifiers);
    return;
  }
  const Type type = modifiers.need_type();
  const std::uint32_t a = e.in(1, type);
  const std::uint32_t b = e.in(2, type);
  e.set_class(OpClass::integer);
  e.lanes({.operation = products[*part], .type = type}, e.out(0, *part == 2 ? wide(type) : type),
          {a, b});
}

void mad(Emitter& e, Modifiers& modifiers) { multiply_add(e, modifiers, false); }

void madc(Emitter& e, Modifiers& modifiers) { multiply_add(e, modifiers, true); }

/// Products of 24 bits: mul24 and mad24.
void multiply_24(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  form.high = modifiers.take("hi");
  modifiers.take("lo");
  form.type = modifiers.need_type();
  e.apply(form);
}

/// dp2a and dp4a.
void dot_product(Emitter& e, Modifiers& modifiers) {
  LaneForm form = e.form();
  form.high = modifiers.take("hi");
  modifiers.take("lo");
  form.type = modifiers.need_type();
  form.source = modifiers.need_type();
  e.apply(form);
}

void testp(Emitter& e, Modifiers& modifiers) {
  const auto property =
      modifiers.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (!property) throw Unsupported{"it names no property"};
  LaneForm form = e.form();
  form.mode = static_cast<std::uint8_t>(*property);
  form.type = modifiers.need_type();
  e.apply(form);
}

}  // namespace warpstack::ptx::handlers
