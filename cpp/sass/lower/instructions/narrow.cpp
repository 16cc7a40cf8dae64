#include "simt/program/narrow.h"

#include <algorithm>
#include <utility>

#include "sass/lower/handlers.h"

// F2FP, which packs and unpacks shorter floats, and I2IP, which packs integers.

namespace warpstack::sass {
namespace {

using simt::NarrowConversion;
using simt::NarrowFormat;
using simt::NarrowRounding;
using simt::Rounding;
using Wide = NarrowConversion::Wide;

constexpr std::pair<std::string_view, NarrowFormat> format_names[] = {
    {"E4M3", NarrowFormat::e4m3}, {"E5M2", NarrowFormat::e5m2}, {"E2M3", NarrowFormat::e2m3},
    {"E3M2", NarrowFormat::e3m2}, {"E2M1", NarrowFormat::e2m1}, {"E8", NarrowFormat::ue8m0},
    {"F16", NarrowFormat::f16},   {"BF16", NarrowFormat::bf16}, {"TF32", NarrowFormat::tf32}};

/// The target and source formats that an opcode names before its kind of packing.
struct Formats {
  NarrowFormat target = NarrowFormat::f16;
  NarrowFormat source = NarrowFormat::f16;
  bool from_f32 = true;
};

Formats formats_in(Lowerer& to, Form& form) {
  Formats formats;
  std::size_t count = 0;
  formats.from_f32 = form.take("F32");
  std::string_view rest = form.instruction().opcode;
  for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    rest.remove_prefix(dot + 1);
    const std::string_view name = rest.substr(0, rest.find('.'));
    const auto* const known =
        std::ranges::find(format_names, name, &std::pair<std::string_view, NarrowFormat>::first);
    if (known == std::end(format_names) || !form.take(name)) continue;
    (count == 0 ? formats.target : formats.source) = known->second;
    ++count;
  }
  // F2FP.PACK_AB and F2FP.BF16.PACK_AB also convert single precision.
  if (count < 2) formats.from_f32 = true;
  if (count > 2 || (count == 2 && formats.from_f32)) to.refuse("it names too many types");
  return formats;
}

NarrowRounding rounding_in(Form& form) {
  form.take("RN");
  if (form.take("RZ")) return NarrowRounding::zero;
  if (form.take("RP")) return NarrowRounding::up;
  if (form.take("RS")) return NarrowRounding::random;
  return NarrowRounding::nearest;
}

bool is_zero(const Operand& operand) {
  return operand.kind == Operand::Kind::reg && operand.index == zero_register;
}

/// Puts the pair into the low bits of the target, below those of C.
void merge(Lowerer& to, Slot target, Slot pair, const Operand& c, NarrowFormat format) {
  if (is_zero(c)) return to.move(target, pair);
  const Slot above = to.temporary();
  to.emit(Operation::shl, Type::b32, above,
          {to.word(c), to.frame().literal(2 * simt::stride_of(format))});
  to.emit(Operation::bit_or, Type::b32, target, {above, pair});
}

/// Two f32 to f16 or bf16, as by cvt without .satfinite and random bits.
void pack_plain(Lowerer& to, Slot target, Slot upper, Slot lower, const NarrowConversion& how) {
  const Rounding rounding =
      how.rounding == NarrowRounding::zero ? Rounding::zero : Rounding::nearest;
  to.emit({.operation = Operation::cvt,
           .type = how.format == NarrowFormat::bf16 ? Type::bf16x2 : Type::f16x2,
           .source = Type::f32,
           .rounding = rounding,
           .relu = how.clips},
          target, {upper, lower}, static_cast<std::uint32_t>(rounding));
}

/// Two values of single precision, as words.
void pack(Lowerer& to, Form& form, const NarrowConversion& how, bool merges) {
  const Slot target = to.target(form.next());
  const Slot upper = to.signed_real_word(form.next());
  const Slot lower = to.signed_real_word(form.next());
  const bool is_random = how.rounding == NarrowRounding::random;
  const bool is_short = how.format == NarrowFormat::f16 || how.format == NarrowFormat::bf16;
  if (is_short == merges) to.refuse("this way of packing is not executed");
  if (is_short && !how.saturates && !is_random) {
    if (how.rounding == NarrowRounding::up) to.refuse("its rounding is not executed");
    return pack_plain(to, target, upper, lower, how);
  }
  if (!merges) {
    const Slot random = is_random ? to.word(form.next()) : Frame::zero;
    to.emit({.operation = Operation::narrow}, target, {upper, lower, random}, how.encoded());
    return;
  }
  const Operand& c = form.next();
  const Slot pair = to.temporary();
  to.emit({.operation = Operation::narrow}, pair,
          {upper, lower, is_random ? to.word(c) : Frame::zero}, how.encoded());
  merge(to, target, pair, c, how.format);
}

/// Two halves of a word to shorter values.
void pack_halves(Lowerer& to, Form& form, const NarrowConversion& how) {
  const Slot target = to.target(form.next());
  const Slot source = to.word(form.next());
  const Slot pair = to.temporary();
  to.emit({.operation = Operation::narrow}, pair, {source, Frame::zero, Frame::zero},
          how.encoded());
  merge(to, target, pair, form.next(), how.format);
}

/// Converts one single-precision value. The upper half of the register is only known if nothing is
/// merged.
void convert_one(Lowerer& to, Form& form, NarrowConversion how, bool merges) {
  how.is_pair = false;
  const Slot target = to.target(form.next());
  const Slot source = to.signed_real_word(form.next());
  if (merges && !is_zero(form.next())) to.refuse("merging of single values is not executed");
  to.emit({.operation = Operation::narrow}, target, {source, Frame::zero, Frame::zero},
          how.encoded());
}

/// Two shorter values, in a part of a register, to halves.
void unpack(Lowerer& to, Form& form, NarrowConversion how) {
  const Slot target = to.target(form.next());
  const Operand& operand = form.next();
  const std::uint32_t bits = 2 * simt::stride_of(how.format);
  const std::string_view part = operand.suffix;
  std::uint32_t number = 0;
  if (part.size() == 2 && part[0] == (bits == 8 ? 'B' : 'H')) {
    number = static_cast<std::uint32_t>(part[1] - '0');
  } else if (!part.empty()) {
    number = 4;
  }
  if (number * bits >= 32) to.refuse("operand " + operand.text + ": its suffix is not executed");
  Slot source = to.word(to.without(operand, suffix));
  if (number > 0) {
    const Slot shifted = to.temporary();
    to.emit(Operation::shr, Type::u32, shifted, {source, to.frame().literal(number * bits)});
    source = shifted;
  }
  to.emit({.operation = Operation::widen}, target, {source, Frame::zero}, how.encoded());
}

}  // namespace

void handlers::f2fp(Lowerer& to, Form& form) {
  const Formats formats = formats_in(to, form);
  NarrowConversion how{.format = formats.target,
                       .wide = formats.from_f32                       ? Wide::f32
                               : formats.source == NarrowFormat::bf16 ? Wide::bf16x2
                                                                      : Wide::f16x2,
                       .rounding = rounding_in(form),
                       .saturates = form.take("SATFINITE"),
                       .clips = form.take("RELU")};
  const bool to_short = formats.target >= NarrowFormat::f16;
  if (formats.from_f32) {
    if (form.take("PACK_AB")) return pack(to, form, how, false);
    if (form.take("PACK_AB_MERGE_C")) return pack(to, form, how, true);
    const bool is_tf32 = formats.target == NarrowFormat::tf32;
    if (is_tf32 && form.take("PACK_B")) return convert_one(to, form, how, false);
    if (to_short && !is_tf32 && form.take("MERGE_C")) return convert_one(to, form, how, true);
  } else if (!to_short && formats.source >= NarrowFormat::f16) {
    if (form.take("UNPACK_B_MERGE_C")) return pack_halves(to, form, how);
  } else if (to_short && formats.source < NarrowFormat::f16 && form.take("UNPACK_B")) {
    how.format = formats.source;
    how.wide = formats.target == NarrowFormat::bf16 ? Wide::bf16x2 : Wide::f16x2;
    return unpack(to, form, how);
  }
  to.refuse("this conversion is not executed");
}

/// Integers clamped to shorter ones, side by side below C.
void handlers::i2ip(Lowerer& to, Form& form) {
  static constexpr std::pair<std::string_view, std::uint32_t> names[] = {
      {"U16", 16}, {"S16", 16}, {"U8", 8}, {"S8", 8}, {"U4", 4}, {"S4", 4}, {"U2", 2}, {"S2", 2}};
  std::uint32_t bits = 0;
  bool is_signed_type = false;
  for (const auto& [name, width] : names) {
    if (bits != 0 || !form.take(name)) continue;
    bits = width;
    is_signed_type = name[0] == 'S';
  }
  if (bits == 0 || !form.take("S32") || !form.take("SAT")) {
    to.refuse("only 32-bit integers held within shorter ones are packed");
  }
  const std::int64_t most = (std::int64_t{1} << (bits - (is_signed_type ? 1 : 0))) - 1;
  const std::int64_t least = is_signed_type ? -most - 1 : 0;
  const Slot target = to.target(form.next());
  Slot fields[2] = {};
  for (Slot& field : fields) {
    const Slot value = to.integer(form.next());
    const Slot above = to.temporary();
    field = to.temporary();
    to.emit(Operation::max, Type::s32, above,
            {value, to.frame().literal(static_cast<std::uint32_t>(least))});
    to.emit(Operation::min, Type::s32, field,
            {above, to.frame().literal(static_cast<std::uint32_t>(most))});
  }
  const Operand& c = form.next();
  const bool is_cut = c.suffix.empty() || c.suffix == std::to_string(32 - 2 * bits);
  if (!is_cut) to.refuse("operand " + c.text + ": its suffix is not executed");
  const auto insert = [&](Slot result, Slot field, Slot word, std::uint32_t at,
                          std::uint32_t width) {
    to.emit(Operation::bfi, Type::b32, result,
            {field, word, to.frame().literal(at), to.frame().literal(width)});
  };
  const Slot pair = to.temporary();
  insert(pair, fields[0], fields[1], bits, bits);
  if (bits == 16) {
    if (!is_zero(c)) to.refuse("its third source is not executed");
    return to.move(target, pair);
  }
  insert(target, to.word(to.without(c, suffix)), pair, 2 * bits, 32 - 2 * bits);
}

}  // namespace warpstack::sass
