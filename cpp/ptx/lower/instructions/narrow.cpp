#include "simt/program/narrow.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"

// Conversions to and from formats of few bits, those with .satfinite or random bits, and cvt.pack.

namespace warpstack::ptx::handlers {
namespace {

using simt::NarrowConversion;
using simt::NarrowFormat;
using simt::NarrowRounding;

/// A type of cvt: a format and a number of values.
struct NarrowType {
  std::string_view name;
  NarrowFormat format;
  std::uint32_t count;

  /// Whether it is f16, bf16 or tf32, which other instructions have, too.
  [[nodiscard]] bool is_short() const { return format >= NarrowFormat::f16; }
};

constexpr NarrowType narrow_types[] = {
    {"e4m3x2", NarrowFormat::e4m3, 2},   {"e4m3x4", NarrowFormat::e4m3, 4},
    {"e5m2x2", NarrowFormat::e5m2, 2},   {"e5m2x4", NarrowFormat::e5m2, 4},
    {"e2m3x2", NarrowFormat::e2m3, 2},   {"e2m3x4", NarrowFormat::e2m3, 4},
    {"e3m2x2", NarrowFormat::e3m2, 2},   {"e3m2x4", NarrowFormat::e3m2, 4},
    {"e2m1x2", NarrowFormat::e2m1, 2},   {"e2m1x4", NarrowFormat::e2m1, 4},
    {"ue8m0x2", NarrowFormat::ue8m0, 2}, {"s2f6x2", NarrowFormat::s2f6, 2},
    {"f16", NarrowFormat::f16, 1},       {"f16x2", NarrowFormat::f16, 2},
    {"bf16", NarrowFormat::bf16, 1},     {"bf16x2", NarrowFormat::bf16, 2},
    {"tf32", NarrowFormat::tf32, 1}};

const NarrowType* narrow_type_named(std::string_view word) {
  const auto* const found = std::ranges::find(narrow_types, word, &NarrowType::name);
  return found == std::end(narrow_types) ? nullptr : found;
}

/// The register type that holds the codes.
Type carrier_type(const NarrowType& type) {
  const std::uint32_t bits = simt::stride_of(type.format) * type.count;
  return bits == 8 ? Type::b8 : bits == 16 ? Type::b16 : Type::b32;
}

[[noreturn]] void refuse_types(std::string_view target, std::string_view source) {
  throw Unsupported{"there is no conversion to ." + std::string(target) + " from ." +
                    std::string(source) + " with these modifiers"};
}

/// The modifiers of a conversion.
struct ConversionWords {
  std::optional<NarrowRounding> rounding;
  bool saturates = false;
  bool clips = false;
  bool is_scaled = false;
  std::string_view target;
  std::string_view source;
};

ConversionWords take_words(Modifiers& modifiers) {
  ConversionWords words;
  static constexpr std::pair<std::string_view, NarrowRounding> roundings[] = {
      {"rn", NarrowRounding::nearest},
      {"rna", NarrowRounding::away},
      {"rz", NarrowRounding::zero},
      {"rp", NarrowRounding::up},
      {"rs", NarrowRounding::random}};
  for (const auto& [name, rounding] : roundings) {
    if (modifiers.take(name)) words.rounding = rounding;
  }
  words.saturates = modifiers.take("satfinite");
  words.clips = modifiers.take("relu");
  words.is_scaled = modifiers.take("scaled::n2::ue8m0");
  // The types are the last words.
  std::vector<std::string_view> rest;
  for (std::string_view word = modifiers.next(); !word.empty(); word = modifiers.next()) {
    rest.push_back(word);
  }
  if (rest.size() < 2) throw Unsupported{"it names no two types"};
  if (rest.size() > 2) {
    throw Unsupported{"the modifier ." + std::string(rest[0]) + " is not supported here"};
  }
  words.target = rest[0];
  words.source = rest[1];
  if (!words.rounding) throw Unsupported{"it names no rounding"};
  return words;
}

/// Whether this conversion to a narrow format exists (PTX ISA, cvt).
bool is_conversion(const ConversionWords& words, const NarrowType& target, bool from_f32) {
  const NarrowRounding rounding = *words.rounding;
  const bool is_random = rounding == NarrowRounding::random;
  const bool is_usual = rounding == NarrowRounding::nearest || rounding == NarrowRounding::zero;
  if (words.is_scaled && target.format != NarrowFormat::s2f6) return false;
  if (target.format == NarrowFormat::tf32) {
    return from_f32 && (is_usual || (rounding == NarrowRounding::away && !words.clips));
  }
  if (target.is_short()) return from_f32 && (is_usual || (is_random && target.count == 2));
  if (target.format == NarrowFormat::ue8m0) {
    return (rounding == NarrowRounding::zero || rounding == NarrowRounding::up) && !words.clips;
  }
  if (!words.saturates) throw Unsupported{"it needs .satfinite"};
  if (target.count == 4) return from_f32 && is_random;
  return rounding == NarrowRounding::nearest;
}

std::uint32_t narrow(Emitter& e, const NarrowConversion& how, std::uint32_t a, std::uint32_t b,
                     std::uint32_t third) {
  const std::uint32_t result = e.temporary(4);
  e.lanes({.operation = Operation::narrow}, result, {a, b, third}, how.encoded());
  return result;
}

/// Converts four values. The random bits of the second pair are moved to the place of the first's.
void convert_four(Emitter& e, const NarrowConversion& how, const NarrowType& target) {
  const Operand& values = e.operand(1);
  if (values.kind != Operand::Kind::vector || values.elements.size() != 4) {
    throw Unsupported{"it converts a vector of four values"};
  }
  const std::uint32_t random = e.in(2, Type::b32);
  const std::uint32_t width = 2 * simt::stride_of(how.format);
  std::uint32_t joined = random;
  for (std::size_t i = 0; i < 4; i += 2) {
    const std::uint32_t pair = narrow(e, how, e.in(values.elements[i], Type::f32),
                                      e.in(values.elements[i + 1], Type::f32), joined);
    const std::uint32_t above = e.temporary(4);
    e.lanes({.operation = Operation::shl, .type = Type::b32}, above,
            {joined, e.constant(width, 4)});
    joined = e.temporary(4);
    e.lanes({.operation = Operation::bit_or, .type = Type::b32}, joined, {above, pair});
  }
  const Type type = carrier_type(target);
  if (type == Type::b16) {
    e.lanes({.operation = Operation::cvt, .type = Type::u16, .source = Type::u32}, e.out(0, type),
            {joined});
  } else {
    e.copy(e.out(0, type), joined, type);
  }
}

void convert_to(Emitter& e, const ConversionWords& words, const NarrowType& target) {
  const NarrowType* const source = narrow_type_named(words.source);
  const bool from_f32 = words.source == "f32";
  const bool from_pair = source != nullptr && source->is_short() && source->count == 2;
  if ((!from_f32 && !from_pair) || !is_conversion(words, target, from_f32)) {
    refuse_types(words.target, words.source);
  }
  const bool from_f16 = from_pair && source->format == NarrowFormat::f16;
  if (from_f16 && target.format >= NarrowFormat::ue8m0) refuse_types(words.target, words.source);
  const NarrowConversion how{.format = target.format,
                             .wide = from_f32   ? NarrowConversion::Wide::f32
                                     : from_f16 ? NarrowConversion::Wide::f16x2
                                                : NarrowConversion::Wide::bf16x2,
                             .rounding = *words.rounding,
                             .is_pair = target.count > 1,
                             .saturates = words.saturates,
                             .clips = words.clips,
                             .is_scaled = words.is_scaled};
  if (target.count == 4) return convert_four(e, how, target);
  const Type type = from_f32 ? Type::f32 : Type::b32;
  const std::uint32_t a = e.in(1, type);
  const std::uint32_t b = from_f32 && target.count == 2 ? e.in(2, type) : e.constant(0, 4);
  const std::size_t last = from_f32 ? 3 : 2;
  std::uint32_t third = e.constant(0, 4);
  if (how.rounding == NarrowRounding::random) third = e.in(last, Type::b32);
  if (how.is_scaled) third = e.in(last, Type::b16);
  e.lanes({.operation = Operation::narrow}, e.out(0, carrier_type(target)), {a, b, third},
          how.encoded());
}

void convert_from(Emitter& e, const ConversionWords& words, const NarrowType& source) {
  const bool to_bf16 = words.target == "bf16x2";
  const bool is_f16 = words.target == "f16x2" && source.format < NarrowFormat::ue8m0 &&
                      !words.saturates && !words.is_scaled;
  const bool is_plain =
      source.format != NarrowFormat::ue8m0 || !(words.saturates || words.clips || words.is_scaled);
  if ((!to_bf16 && !is_f16) || source.count != 2 || !is_plain ||
      *words.rounding != NarrowRounding::nearest) {
    refuse_types(words.target, words.source);
  }
  const NarrowConversion how{
      .format = source.format,
      .wide = to_bf16 ? NarrowConversion::Wide::bf16x2 : NarrowConversion::Wide::f16x2,
      .saturates = words.saturates,
      .clips = words.clips,
      .is_scaled = words.is_scaled};
  const std::uint32_t codes = e.in(1, carrier_type(source));
  const std::uint32_t scales = how.is_scaled ? e.in(2, Type::b16) : e.constant(0, 4);
  e.lanes({.operation = Operation::widen}, e.out(0, Type::b32), {codes, scales}, how.encoded());
}

}  // namespace

bool is_narrow_conversion(const Instruction& instruction) {
  return std::ranges::any_of(instruction.modifiers, [](const std::string& word) {
    const NarrowType* const type = narrow_type_named(word);
    return word == "satfinite" || word == "rs" || word.starts_with("scaled::") ||
           (type != nullptr && (!type->is_short() || type->format == NarrowFormat::tf32));
  });
}

void convert_narrow(Emitter& e, Modifiers& modifiers) {
  const ConversionWords words = take_words(modifiers);
  // The machine needs several operations for a conversion to tf32 with .rna.
  e.set_class(words.rounding == NarrowRounding::away ? OpClass::sfu : OpClass::fp16);
  const NarrowType* const target = narrow_type_named(words.target);
  const NarrowType* const source = narrow_type_named(words.source);
  if (source != nullptr && !source->is_short()) return convert_from(e, words, *source);
  if (target == nullptr) refuse_types(words.target, words.source);
  convert_to(e, words, *target);
}

void convert_packed(Emitter& e, Modifiers& modifiers) {
  e.set_class(OpClass::integer);
  if (!modifiers.take("sat")) throw Unsupported{"it needs .sat"};
  static constexpr std::pair<std::string_view, std::uint32_t> types[] = {
      {"u16", 16}, {"s16", 16}, {"u8", 8}, {"s8", 8}, {"u4", 4}, {"s4", 4}, {"u2", 2}, {"s2", 2}};
  const std::string_view name = modifiers.next();
  const auto* const type =
      std::ranges::find(types, name, &std::pair<std::string_view, std::uint32_t>::first);
  if (type == std::end(types)) throw Unsupported{"it does not pack ." + std::string(name)};
  if (!modifiers.take("s32")) throw Unsupported{"it packs .s32"};
  const std::uint32_t bits = type->second;
  const bool has_third = modifiers.take("b32");
  if (has_third != (bits < 16)) {
    throw Unsupported{"values of less than 16 bits, and no others, have .b32 and a third operand"};
  }
  const bool is_signed_type = name[0] == 's';
  const std::int64_t most = (std::int64_t{1} << (bits - (is_signed_type ? 1 : 0))) - 1;
  const std::int64_t least = is_signed_type ? -most - 1 : 0;
  const auto number = [&e](std::int64_t value) {
    return e.constant(static_cast<std::uint64_t>(value), 4);
  };
  const std::uint32_t values[] = {e.in(1, Type::s32), e.in(2, Type::s32)};
  const std::uint32_t third = has_third ? e.in(3, Type::b32) : none;
  std::uint32_t fields[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::uint32_t above = e.temporary(4);
    e.lanes({.operation = Operation::max, .type = Type::s32}, above, {values[i], number(least)});
    fields[i] = e.temporary(4);
    e.lanes({.operation = Operation::min, .type = Type::s32}, fields[i], {above, number(most)});
  }
  const std::uint32_t target = e.out(0, Type::b32);
  const auto insert = [&](std::uint32_t result, std::uint32_t field, std::uint32_t word,
                          std::uint32_t at, std::uint32_t width) {
    e.lanes({.operation = Operation::bfi, .type = Type::b32}, result,
            {field, word, e.constant(at, 4), e.constant(width, 4)});
  };
  const std::uint32_t upper = e.temporary(4);
  insert(upper, fields[0], fields[1], bits, bits);
  if (has_third) {
    insert(target, third, upper, 2 * bits, 32 - 2 * bits);
  } else {
    e.copy(target, upper, Type::b32);
  }
}

}  // namespace warpstack::ptx::handlers
