#include <string>
#include <string_view>
#include <vector>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"

// SIMD video instructions: two halves or four bytes of words at a time (PTX ISA, "SIMD Video
// Instructions"). Each part is computed by steps of its own.

namespace warpstack::ptx::handlers {
namespace {

/// An instruction on the parts of words.
class Video {
 public:
  Video(Emitter& e, std::uint32_t parts) : e_(e), parts_(parts), bits_(32 / parts) {}

  /// The parts of a (the lower ones) and b that an operand takes, as nibbles of a selector of prmt;
  /// by default the operand's own.
  std::uint32_t selected(const Operand& operand, std::uint32_t a, std::uint32_t b, bool is_second) {
    const std::string_view digits = digits_of(operand, parts_);
    std::uint32_t selector = 0;
    for (std::uint32_t i = 0; i < parts_; ++i) {
      const std::uint32_t part = digits.empty() ? i + (is_second ? parts_ : 0)
                                                : number(digits[parts_ - 1 - i], 2 * parts_);
      for (std::uint32_t byte = 0; byte < bits_ / 8; ++byte) {
        const std::uint32_t nibble = part * (bits_ / 8) + byte;
        selector |= nibble << (4 * (i * (bits_ / 8) + byte));
      }
    }
    const std::uint32_t result = e_.temporary(4);
    e_.lanes({.operation = Operation::prmt, .type = Type::b32}, result,
             {a, b, e_.constant(selector, 4)});
    return result;
  }

  /// The parts of the result that are written.
  std::uint32_t mask_of(const Operand& target) const {
    const std::string_view digits = digits_of(target, 0);
    std::uint32_t mask = digits.empty() ? (1u << parts_) - 1 : 0;
    std::uint32_t last = parts_;
    for (const char digit : digits) {
      const std::uint32_t part = number(digit, last);
      mask |= 1u << part;
      last = part;
    }
    return mask;
  }

  /// Part i of a word as a number.
  std::uint32_t part(std::uint32_t word, std::uint32_t i, Type type) {
    return step(Operation::bfe, type, {word, e_.constant(i * bits_, 4), e_.constant(bits_, 4)});
  }

  std::uint32_t clamped(std::uint32_t value, Type type) {
    const bool is_signed = type == Type::s32;
    const std::int64_t most = (std::int64_t{1} << (bits_ - (is_signed ? 1 : 0))) - 1;
    const std::int64_t least = is_signed ? -most - 1 : 0;
    const std::uint32_t above =
        step(Operation::max, Type::s32, {value, e_.constant(static_cast<std::uint64_t>(least), 4)});
    return step(Operation::min, Type::s32,
                {above, e_.constant(static_cast<std::uint64_t>(most), 4)});
  }

  /// The word with part i replaced.
  std::uint32_t inserted(std::uint32_t value, std::uint32_t word, std::uint32_t i) {
    return step(Operation::bfi, Type::b32,
                {value, word, e_.constant(i * bits_, 4), e_.constant(bits_, 4)});
  }

  std::uint32_t step(Operation operation, Type type, const std::vector<std::uint32_t>& sources) {
    const std::uint32_t result = e_.temporary(4);
    e_.lanes({.operation = operation, .type = type}, result, sources);
    return result;
  }

 private:
  /// The digits of `b3210` or `h10`, `count` of them (0: any number); none without a selector.
  std::string_view digits_of(const Operand& operand, std::uint32_t count) const {
    const std::string_view text = operand.selector;
    if (text.empty()) return text;
    const std::string_view digits = text.substr(1);
    if (text[0] != (parts_ == 4 ? 'b' : 'h') || digits.size() > parts_ ||
        (count != 0 && digits.size() != count)) {
      throw Unsupported{"it has no parts ." + operand.selector};
    }
    return digits;
  }
  std::uint32_t number(char digit, std::uint32_t below) const {
    const auto value = static_cast<std::uint32_t>(digit - '0');
    if (value >= below) throw Unsupported{std::string("there is no part ") + digit + " here"};
    return value;
  }

  Emitter& e_;
  std::uint32_t parts_;
  std::uint32_t bits_;
};

std::uint32_t parts_of(const Emitter& e) { return e.opcode().mnemonic.back() == '2' ? 2 : 4; }

/// Joins the results of the parts: adds them to the third operand, or puts them into it.
template <class Compute>
void for_parts(Emitter& e, bool adds, Type a_type, Type b_type, Compute compute) {
  Video video(e, parts_of(e));
  const std::uint32_t a = e.in(1, Type::b32);
  const std::uint32_t b = e.in(2, Type::b32);
  std::uint32_t result = e.in(3, Type::b32);
  const std::uint32_t mask = video.mask_of(e.operand(0));
  const std::uint32_t first = video.selected(e.operand(1), a, b, false);
  const std::uint32_t second = video.selected(e.operand(2), a, b, true);
  for (std::uint32_t i = 0; i < parts_of(e); ++i) {
    if ((mask >> i & 1) == 0) continue;
    const std::uint32_t value =
        compute(video, video.part(first, i, a_type), video.part(second, i, b_type));
    result = adds ? video.step(Operation::add, Type::u32, {result, value})
                  : video.inserted(value, result, i);
  }
  e.copy(e.out(0, Type::b32), result, Type::b32);
}

Type word_type(Modifiers& modifiers) {
  const Type type = modifiers.need_type();
  if (type != Type::u32 && type != Type::s32) throw Unsupported{"its types are not u32 and s32"};
  return type;
}

}  // namespace

void simd_video(Emitter& e, Modifiers& modifiers) {
  const Type type = word_type(modifiers);
  const Type a_type = word_type(modifiers);
  const Type b_type = word_type(modifiers);
  const bool saturates = modifiers.take("sat");
  const bool adds = modifiers.take("add");
  if (saturates && adds) throw Unsupported{".sat and .add exclude each other"};
  const bool is_mean = e.opcode().mnemonic.starts_with("vavrg");
  const bool is_distance = e.opcode().operation == Operation::sad;
  for_parts(e, adds, a_type, b_type, [&](Video& video, std::uint32_t a, std::uint32_t b) {
    std::uint32_t value;
    if (is_distance) {
      value = video.step(Operation::sad, Type::s32, {a, b, e.constant(0, 4)});
    } else if (is_mean) {
      // Rounds away from zero if the sum is positive, else towards minus infinity.
      const std::uint32_t sum = video.step(Operation::add, Type::s32, {a, b});
      const std::uint32_t is_negative =
          video.step(Operation::shr, Type::u32, {sum, e.constant(31, 4)});
      const std::uint32_t more = video.step(Operation::add, Type::s32, {sum, e.constant(1, 4)});
      value = video.step(
          Operation::shr, Type::s32,
          {video.step(Operation::sub, Type::s32, {more, is_negative}), e.constant(1, 4)});
    } else {
      value = video.step(e.opcode().operation, Type::s32, {a, b});
    }
    return saturates ? video.clamped(value, type) : value;
  });
}

void simd_video_set(Emitter& e, Modifiers& modifiers) {
  const Type a_type = word_type(modifiers);
  const Type b_type = word_type(modifiers);
  const auto comparison = modifiers.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"});
  if (!comparison) throw Unsupported{"it names no comparison"};
  const bool adds = modifiers.take("add");
  constexpr simt::Comparison comparisons[] = {simt::Comparison::eq, simt::Comparison::ne,
                                              simt::Comparison::lt, simt::Comparison::le,
                                              simt::Comparison::gt, simt::Comparison::ge};
  for_parts(e, adds, a_type, b_type, [&](Video&, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t holds = e.temporary_predicate();
    e.lanes(
        {.operation = Operation::setp, .type = Type::s32, .comparison = comparisons[*comparison]},
        holds, {a, b});
    const std::uint32_t value = e.temporary(4);
    e.lanes({.operation = Operation::selp, .type = Type::b32}, value,
            {e.constant(1, 4), e.constant(0, 4), holds});
    return value;
  });
}

}  // namespace warpstack::ptx::handlers
