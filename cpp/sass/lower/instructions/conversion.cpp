#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sass/lower/handlers.h"

namespace warpstack::sass {
namespace {

using simt::Rounding;

constexpr std::pair<std::string_view, Type> type_names[] = {
    {"F16", Type::f16}, {"BF16", Type::bf16}, {"F32", Type::f32}, {"F64", Type::f64},
    {"U8", Type::u8},   {"S8", Type::s8},     {"U16", Type::u16}, {"S16", Type::s16},
    {"U32", Type::u32}, {"S32", Type::s32},   {"U64", Type::u64}, {"S64", Type::s64}};

/// The types that an opcode names, in order.
std::vector<Type> types_in(Form& form) {
  std::vector<Type> types;
  std::string_view rest = form.instruction().opcode;
  for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    rest.remove_prefix(dot + 1);
    const std::string_view name = rest.substr(0, rest.find('.'));
    for (const auto& [known, type] : type_names) {
      if (known == name && form.take(name)) types.push_back(type);
    }
  }
  return types;
}

struct Rounded {
  Rounding rounding = Rounding::nearest;
  bool is_named = false;
};

Rounded rounding_in(Form& form) {
  form.take("RN");
  for (const auto& [name, rounding] : {std::pair{"RZ", Rounding::zero},
                                       {"TRUNC", Rounding::zero},
                                       {"RM", Rounding::down},
                                       {"FLOOR", Rounding::down},
                                       {"RP", Rounding::up},
                                       {"CEIL", Rounding::up}}) {
    if (form.take(name)) return {rounding, true};
  }
  return {};
}

/// An operand's value of 4 bytes, or of 8 bytes in one slot.
Slot source_of(Lowerer& to, const Operand& operand, Type type) {
  if (bytes_of(type) == 8) {
    if (type != Type::f64 && operand.kind == Operand::Kind::integer) {
      // The number is the upper word; the lower word is 0.
      const auto upper = static_cast<std::uint64_t>(static_cast<std::uint32_t>(to.number(operand)));
      Slot value = to.temporary();
      to.emit(Operation::pack, Type::b64, value, {to.frame().literal_pair(upper << 32)});
      return value;
    }
    const Slot words = type == Type::f64 ? to.real_pair(operand) : to.pair(operand);
    Slot value = to.temporary();
    to.emit(Operation::pack, Type::b64, value, {words});
    if (type == Type::f64 && operand.kind != Operand::Kind::real) {
      to.applies(operand, negation | absolute);
      if (operand.absolute) to.emit(Operation::abs, type, value, {value});
      if (operand.negated) to.emit(Operation::neg, type, value, {value});
    }
    return value;
  }
  // A part of a register: B0 to B3 its bytes, H0 and H1 its halves.
  std::uint32_t shift = 0;
  if (operand.suffix == "B1" || operand.suffix == "B2" || operand.suffix == "B3") {
    shift = 8 * static_cast<std::uint32_t>(operand.suffix[1] - '0');
  } else if (operand.suffix == "H1" || operand.suffix == "H1_H1") {
    shift = 16;
  } else if (!operand.suffix.empty() && operand.suffix != "B0" && operand.suffix != "H0" &&
             operand.suffix != "H0_H0") {
    to.refuse("operand " + operand.text + ": its suffix is not executed");
  }
  const bool is_short = bytes_of(type) < 4;
  if (is_short && (operand.kind == Operand::Kind::real) == is_float(type) && is_float(type)) {
    to.refuse("operand " + operand.text + ": a decimal of 16 bits is not executed");
  }
  Slot value = 0;
  if (is_short) {
    value = to.word(to.without(operand, negation | absolute | suffix));
  } else if (!operand.suffix.empty()) {
    to.refuse("operand " + operand.text + ": its suffix is not executed");
  } else {
    value = is_float(type) ? to.signed_real_word(operand) : to.integer(operand);
  }
  if (shift != 0) {
    const Slot shifted = to.temporary();
    to.emit(Operation::shr, Type::u32, shifted, {value, to.frame().literal(shift)});
    value = shifted;
  }
  if (!is_short) return value;
  const Slot part = to.temporary();
  to.emit(Operation::bit_and, Type::b32, part,
          {value, to.frame().literal(bytes_of(type) == 1 ? 0xff : 0xffff)});
  if (operand.absolute) to.emit(Operation::abs, type, part, {part});
  if (operand.negated) to.emit(Operation::neg, type, part, {part});
  return part;
}

/// Number of registers of a value of a type.
std::uint32_t words_of(Type type) { return bytes_of(type) == 8 ? 2 : 1; }

/// Registers hold short integers sign-extended.
void extend_sign(Lowerer& to, Type type, Slot target) {
  if (bytes_of(type) >= 4 || is_float(type) || !is_signed(type)) return;
  to.emit({.operation = Operation::cvt, .type = Type::s32, .source = type}, target, {target});
}

/// Converts into a register, or a pair of them.
void convert(Lowerer& to, LaneForm lane, Slot target, Slot source, Rounding rounding) {
  lane.operation = Operation::cvt;
  lane.rounding = rounding;
  const auto immediate = static_cast<std::uint32_t>(rounding);
  if (bytes_of(lane.type) == 8) {
    const Slot value = to.temporary();
    to.emit(lane, value, {source}, immediate);
    to.emit(Operation::unpack, Type::b64, target, {value});
  } else {
    to.emit(lane, target, {source}, immediate);
    extend_sign(to, lane.type, target);
  }
}

/// The only float, or integer, among some types.
Type only_or(Lowerer& to, const std::vector<Type>& types, bool wants_float, Type otherwise) {
  Type result = Type::none;
  for (const Type type : types) {
    if (is_float(type) != wants_float) continue;
    if (result != Type::none) to.refuse("it names too many types");
    result = type;
  }
  return result == Type::none ? otherwise : result;
}

}  // namespace

void handlers::i2f(Lowerer& to, Form& form) {
  const std::vector<Type> types = types_in(form);
  const Rounded rounded = rounding_in(form);
  const Type result = only_or(to, types, true, Type::f32);
  const Type type = only_or(to, types, false, Type::s32);
  const Slot target = to.target(form.next(), words_of(result));
  const Slot source = source_of(to, form.next(), type);
  convert(to, {.type = result, .source = type}, target, source, rounded.rounding);
}

void handlers::f2i(Lowerer& to, Form& form) {
  const std::vector<Type> types = types_in(form);
  const Rounded rounded = rounding_in(form);
  const bool flush = form.take("FTZ");
  const bool nan_to_zero = form.take("NTZ");
  const Type result = only_or(to, types, false, Type::s32);
  const Type type = only_or(to, types, true, Type::f32);
  const Slot target = to.target(form.next(), words_of(result));
  const Slot source = source_of(to, form.next(), type);
  const LaneForm lane{.type = result, .source = type, .flush = flush};
  // With .NTZ, NaN becomes zero, else only the top bit. The result of cvt depends on the types
  // instead, in the way that compilers choose them.
  const bool cvt_gives_zero = type != Type::f64 && bytes_of(result) < 8;
  if (nan_to_zero == cvt_gives_zero) return convert(to, lane, target, source, rounded.rounding);
  const Slot value = to.temporary();
  convert(to, lane, value, source, rounded.rounding);
  const Slot is_nan = to.temporary();
  to.emit({.operation = Operation::setp, .type = type, .comparison = simt::Comparison::nan}, is_nan,
          {source, source});
  // A short integer is sign-extended in its register.
  const std::uint32_t bits = 8 * std::min(bytes_of(result), 4u);
  const std::uint32_t top_bit = (is_signed(result) ? ~0u : 1u) << (bits - 1);
  const Slot top = to.frame().literal(nan_to_zero ? 0 : top_bit);
  const bool is_pair = bytes_of(result) == 8;
  if (is_pair) {
    to.emit(Operation::selp, Type::b32, target + Frame::slot_bytes,
            {top, value + Frame::slot_bytes, is_nan});
  }
  to.emit(Operation::selp, Type::b32, target, {is_pair ? Frame::zero : top, value, is_nan});
}

/// Between floats.
void handlers::f2f(Lowerer& to, Form& form) {
  const std::vector<Type> types = types_in(form);
  const bool flush = form.take("FTZ");
  const bool saturate = form.take("SAT");
  const Rounded rounded = rounding_in(form);
  if (types.size() != 2 || !is_float(types[0]) || !is_float(types[1])) {
    to.refuse("it does not name two types of floats");
  }
  if (types[0] == types[1] && rounded.is_named) to.refuse("rounding of a type to itself is FRND's");
  const Slot target = to.target(form.next(), words_of(types[0]));
  const Slot source = source_of(to, form.next(), types[1]);
  convert(to, {.type = types[0], .source = types[1], .flush = flush, .saturate = saturate}, target,
          source, rounded.rounding);
}

void handlers::frnd(Lowerer& to, Form& form) {
  const std::vector<Type> types = types_in(form);
  const bool flush = form.take("FTZ");
  const Rounded rounded = rounding_in(form);
  const Type type = types.empty() ? Type::f32 : types[0];
  if (types.size() > 1 || !is_float(type)) to.refuse("it does not name one type of floats");
  const Slot target = to.target(form.next(), words_of(type));
  const Slot source = source_of(to, form.next(), type);
  convert(to, {.type = type, .source = type, .integer_rounding = true, .flush = flush}, target,
          source, rounded.rounding);
}

/// A signed or unsigned integer clamped to a shorter type.
void handlers::i2i(Lowerer& to, Form& form) {
  const std::vector<Type> types = types_in(form);
  if ((types.size() != 2 && types.size() != 1) || is_float(types[0]) || is_float(types.back())) {
    to.refuse("it does not name its types");
  }
  const bool saturate = form.take("SAT");
  const Type type = types.size() == 2 ? types[1] : Type::s32;
  const Slot target = to.target(form.next());
  const Slot source = source_of(to, form.next(), type);
  to.emit({.operation = Operation::cvt, .type = types[0], .source = type, .saturate = saturate},
          target, {source});
  extend_sign(to, types[0], target);
}

}  // namespace warpstack::sass
