#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"

// Scalar video instructions: one byte, half or word of each operand (PTX ISA, "Scalar Video
// Instructions"). Their intermediate results have up to 34 bits, that of vmad 65; here they are
// 64-bit integers.

namespace warpstack::ptx::handlers {
namespace {

/// A byte, a half, or the whole of a word.
struct ScalarPart {
  std::uint32_t at = 0;
  std::uint32_t bits = 32;
};

/// The part that `.b0` to `.b3`, `.h0` or `.h1` of an operand names.
ScalarPart part_of(const Operand& operand) {
  const std::string& text = operand.selector;
  if (text.empty()) return {};
  const std::uint32_t bits = text[0] == 'b' ? 8 : 16;
  const auto number = static_cast<std::uint32_t>(text[1] - '0');
  if (text.size() != 2 || number * bits >= 32) throw Unsupported{"it has no part ." + text};
  return {number * bits, bits};
}

Type scalar_type(Modifiers& modifiers) {
  const Type type = modifiers.need_type();
  if (type != Type::u32 && type != Type::s32) throw Unsupported{"its types are not u32 and s32"};
  return type;
}

/// Steps on 64-bit integers.
class WideSteps {
 public:
  explicit WideSteps(Emitter& e) : e_(e) {}

  std::uint32_t step(Operation operation, std::uint32_t a, std::uint32_t b, Type type = Type::s64) {
    const std::uint32_t result = e_.temporary(8);
    e_.lanes({.operation = operation, .type = type}, result, {a, b});
    return result;
  }
  std::uint32_t shifted(Operation operation, std::uint32_t value, std::uint32_t count,
                        Type type = Type::s64) {
    const std::uint32_t result = e_.temporary(8);
    e_.lanes({.operation = operation, .type = type}, result, {value, e_.constant(count, 4)});
    return result;
  }
  std::uint32_t number(std::int64_t value) {
    return e_.constant(static_cast<std::uint64_t>(value), 8);
  }
  std::uint32_t extended(std::uint32_t word, Type type) {
    const std::uint32_t result = e_.temporary(8);
    e_.lanes({.operation = Operation::cvt,
              .type = is_signed(type) ? Type::s64 : Type::u64,
              .source = type},
             result, {word});
    return result;
  }
  /// The selected part of an operand as a number.
  std::uint32_t part(const Operand& operand, Type type) {
    const ScalarPart part = part_of(operand);
    const std::uint32_t word = e_.in(operand, type);
    if (part.bits == 32) return extended(word, type);
    const std::uint32_t field = e_.temporary(4);
    e_.lanes({.operation = Operation::bfe, .type = type}, field,
             {word, e_.constant(part.at, 4), e_.constant(part.bits, 4)});
    return extended(field, type);
  }
  std::uint32_t clamped(std::uint32_t value, bool is_signed_type, std::uint32_t bits) {
    const std::int64_t most = (std::int64_t{1} << (bits - (is_signed_type ? 1 : 0))) - 1;
    const std::int64_t least = is_signed_type ? -most - 1 : 0;
    return step(Operation::min, step(Operation::max, value, number(least)), number(most));
  }
  std::uint32_t lower_word(std::uint32_t value) {
    const std::uint32_t word = e_.temporary(4);
    e_.lanes({.operation = Operation::cvt, .type = Type::u32, .source = Type::u64}, word, {value});
    return word;
  }

 private:
  Emitter& e_;
};

std::optional<Operation> take_second(Modifiers& modifiers) {
  static constexpr Operation operations[] = {Operation::add, Operation::min, Operation::max};
  const auto found = modifiers.take_one_of({"add", "min", "max"});
  if (!found) return std::nullopt;
  return operations[*found];
}

/// Clamps the result, combines it with the third operand or puts it into that.
void finish_scalar(Emitter& e, WideSteps& wide, std::uint32_t value, Type type, bool saturates,
                   std::optional<Operation> second) {
  const Operand& target = e.operand(0);
  const ScalarPart into = part_of(target);
  const bool merges = into.bits < 32;
  if (merges && second) throw Unsupported{"it merges and has a secondary operation"};
  const bool wants_third = merges || second;
  if (wants_third != (e.num_operands() > 3)) {
    throw Unsupported{wants_third ? "its third source is missing"
                                  : "a third source needs a secondary operation or a selector of "
                                    "the destination"};
  }
  if (saturates) value = wide.clamped(value, is_signed(type), into.bits);
  if (second) value = wide.step(*second, value, wide.extended(e.in(3, type), type));
  const std::uint32_t word = wide.lower_word(value);
  if (!merges) {
    e.copy(e.out(0, Type::b32), word, Type::b32);
    return;
  }
  const std::uint32_t third = e.in(3, Type::b32);
  e.lanes({.operation = Operation::bfi, .type = Type::b32}, e.out(0, Type::b32),
          {word, third, e.constant(into.at, 4), e.constant(into.bits, 4)});
}

}  // namespace

/// vadd, vsub, vabsdiff, vmin, vmax
void scalar_video(Emitter& e, Modifiers& modifiers) {
  const Type type = scalar_type(modifiers);
  const Type a_type = scalar_type(modifiers);
  const Type b_type = scalar_type(modifiers);
  const bool saturates = modifiers.take("sat");
  const auto second = take_second(modifiers);
  WideSteps wide(e);
  const std::uint32_t a = wide.part(e.operand(1), a_type);
  const std::uint32_t b = wide.part(e.operand(2), b_type);
  std::uint32_t value;
  if (e.opcode().operation == Operation::sad) {
    value = e.temporary(8);
    e.lanes({.operation = Operation::abs, .type = Type::s64}, value,
            {wide.step(Operation::sub, a, b)});
  } else {
    value = wide.step(e.opcode().operation, a, b);
  }
  finish_scalar(e, wide, value, type, saturates, second);
}

/// vshl, vshr
void scalar_video_shift(Emitter& e, Modifiers& modifiers) {
  const Type type = scalar_type(modifiers);
  const Type a_type = scalar_type(modifiers);
  if (scalar_type(modifiers) != Type::u32) throw Unsupported{"its count is not a u32"};
  const bool saturates = modifiers.take("sat");
  const auto mode = modifiers.take_one_of({"clamp", "wrap"});
  if (!mode) throw Unsupported{"it has neither .clamp nor .wrap"};
  const auto second = take_second(modifiers);
  WideSteps wide(e);
  const std::uint32_t a = wide.part(e.operand(1), a_type);
  const std::uint32_t b = wide.part(e.operand(2), Type::u32);
  const std::uint32_t count =
      wide.lower_word(*mode == 0 ? wide.step(Operation::min, b, wide.number(32))
                                 : wide.step(Operation::bit_and, b, wide.number(31), Type::b64));
  std::uint32_t value = e.temporary(8);
  e.lanes({.operation = e.opcode().operation, .type = Type::s64}, value, {a, count});
  // The intermediate result has 34 bits.
  value = wide.shifted(Operation::shr, wide.shifted(Operation::shl, value, 30), 30);
  finish_scalar(e, wide, value, type, saturates, second);
}

void scalar_video_set(Emitter& e, Modifiers& modifiers) {
  const Type a_type = scalar_type(modifiers);
  const Type b_type = scalar_type(modifiers);
  static constexpr simt::Comparison comparisons[] = {simt::Comparison::eq, simt::Comparison::ne,
                                                     simt::Comparison::lt, simt::Comparison::le,
                                                     simt::Comparison::gt, simt::Comparison::ge};
  const auto comparison = modifiers.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"});
  if (!comparison) throw Unsupported{"it names no comparison"};
  const auto second = take_second(modifiers);
  WideSteps wide(e);
  const std::uint32_t a = wide.part(e.operand(1), a_type);
  const std::uint32_t b = wide.part(e.operand(2), b_type);
  const std::uint32_t holds = e.temporary_predicate();
  e.lanes({.operation = Operation::setp, .type = Type::s64, .comparison = comparisons[*comparison]},
          holds, {a, b});
  const std::uint32_t value = e.temporary(8);
  e.lanes({.operation = Operation::selp, .type = Type::b64}, value,
          {wide.number(1), wide.number(0), holds});
  finish_scalar(e, wide, value, Type::u32, false, second);
}

/// a * b + c, with signs, rounded up by one, and shifted. Products of two words and sums have 65
/// bits; the top bit of an unsigned sum is a carry.
void scalar_video_mad(Emitter& e, Modifiers& modifiers) {
  scalar_type(modifiers);  // the result's follows from the operands
  const Type a_type = scalar_type(modifiers);
  const Type b_type = scalar_type(modifiers);
  const bool increments = modifiers.take("po");
  const bool saturates = modifiers.take("sat");
  const auto scale = modifiers.take_one_of({"shr7", "shr15"});
  const std::uint32_t shift = !scale ? 0 : *scale == 0 ? 7 : 15;
  const bool negates_product = e.operand(1).negated != e.operand(2).negated;
  const bool negates_third = e.operand(3).negated;
  if (increments && (e.operand(1).negated || e.operand(2).negated || negates_third)) {
    throw Unsupported{".po excludes negated operands"};
  }
  if (negates_product && negates_third) throw Unsupported{"it negates the product and the sum"};
  const bool is_signed_result =
      is_signed(a_type) || is_signed(b_type) || negates_product || negates_third;
  const Type third_type = is_signed_result ? Type::s32 : Type::u32;
  if (!e.operand(0).selector.empty() || !e.operand(3).selector.empty()) {
    throw Unsupported{"only its factors have selectors"};
  }
  WideSteps wide(e);
  const std::uint32_t a = wide.part(e.operand(1), a_type);
  const std::uint32_t b = wide.part(e.operand(2), b_type);
  // The lower 32 bits are added separately, so that 64 bits hold the upper part.
  const std::uint32_t product = wide.step(Operation::mul_lo, a, b);
  std::uint32_t third = wide.extended(e.in(3, third_type), third_type);
  if (negates_third) third = wide.step(Operation::sub, wide.number(0), third);
  const auto low = [&](std::uint32_t value) {
    return wide.step(Operation::bit_and, value, wide.number(0xffffffff), Type::b64);
  };
  const bool is_signed_product = is_signed(a_type) || is_signed(b_type);
  std::uint32_t upper =
      wide.shifted(Operation::shr, product, 32, is_signed_product ? Type::s64 : Type::u64);
  std::uint32_t lower = low(product);
  if (negates_product) {
    upper = wide.step(Operation::sub, wide.number(0), upper);
    lower = wide.step(Operation::sub, wide.number(0), lower);
  }
  lower = wide.step(Operation::add, lower, low(third));
  upper = wide.step(Operation::add, upper, wide.shifted(Operation::shr, third, 32));
  if (increments) lower = wide.step(Operation::add, lower, wide.number(1));
  upper = wide.step(Operation::add, upper, wide.shifted(Operation::shr, lower, 32));
  lower = low(lower);
  // upper * 2^32 + lower, shifted: the part above its lower word, and the lower word.
  std::uint32_t value =
      wide.step(Operation::bit_or, wide.shifted(Operation::shl, upper, 32 - shift),
                wide.shifted(Operation::shr, lower, shift), Type::b64);
  if (saturates) {
    // Upper parts beyond 2^31 exceed every limit, even when shifted.
    const std::int64_t beyond = std::int64_t{1} << 30;
    const std::uint32_t held =
        wide.step(Operation::min, wide.step(Operation::max, upper, wide.number(-beyond)),
                  wide.number(beyond));
    value = wide.step(Operation::bit_or, wide.shifted(Operation::shl, held, 32 - shift),
                      wide.shifted(Operation::shr, lower, shift), Type::b64);
    value = wide.clamped(value, is_signed_result, 32);
  }
  e.copy(e.out(0, Type::b32), wide.lower_word(value), Type::b32);
}

}  // namespace warpstack::ptx::handlers
