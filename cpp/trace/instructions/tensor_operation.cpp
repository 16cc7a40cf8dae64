#include "trace/instructions/tensor_operation.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "trace/instructions/opcode.h"

namespace warpstack::trace {
namespace {

struct Shape {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;

  [[nodiscard]] std::uint64_t multiply_adds() const { return m * n * k; }
};

/// Takes a number of at most three digits off the start of a text.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const std::size_t most = std::min<std::size_t>(text.size(), 3);
  const auto [end, error] = std::from_chars(text.data(), text.data() + most, value);
  if (error != std::errc{} || value == 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// `m16n8k16`, or `64x128x16` with an x between the numbers.
std::optional<Shape> separated_shape(std::string_view word, std::string_view marks) {
  Shape shape;
  std::uint64_t Shape::* const members[] = {&Shape::m, &Shape::n, &Shape::k};
  for (std::size_t i = 0; i < 3; ++i) {
    if (marks[i] != ' ') {
      if (!word.starts_with(marks[i])) return {};
      word.remove_prefix(1);
    }
    const auto number = take_number(word);
    if (!number) return {};
    shape.*members[i] = *number;
  }
  if (!word.empty()) return {};
  return shape;
}

/// `16816`: 16 or 8 rows, 8 columns, and the rest.
std::optional<Shape> joined_shape(std::string_view word) {
  Shape shape{word.starts_with("16") ? 16u : 8u, 8, 0};
  const std::string_view start = shape.m == 16 ? "168" : "88";
  if (!word.starts_with(start)) return {};
  word.remove_prefix(start.size());
  const auto k = take_number(word);
  if (!k || !word.empty()) return {};
  shape.k = *k;
  return shape;
}

/// The type of factors and sums by their names in PTX.
std::optional<TensorType> type_of(std::string_view factor, std::string_view sum) {
  if (factor == "f16") return sum == "f16" ? TensorType::f16 : TensorType::f16_f32;
  if (factor == "bf16") return TensorType::bf16;
  if (factor == "tf32") return TensorType::tf32;
  if (factor == "f64") return TensorType::f64;
  if (factor == "e4m3" || factor == "e5m2") return TensorType::f8;
  if (factor == "e2m3" || factor == "e3m2" || factor == "e2m1") return TensorType::f8;
  if (factor == "s8" || factor == "u8") return TensorType::s8;
  if (factor == "s4" || factor == "u4") return TensorType::s4;
  if (factor == "b1") return TensorType::b1;
  return {};
}

std::optional<TensorOperation> ptx_operation(const std::vector<std::string_view>& words) {
  std::optional<Shape> shape;
  std::vector<std::string_view> types;
  for (const std::string_view word : words) {
    if (!shape) {
      shape = separated_shape(word, "mnk");
    } else if (type_of(word, "") || word == "f32" || word == "s32") {
      types.push_back(word);
    }
  }
  // Sums, factors, factors, sums; wmma of halves names the sums alone.
  if (!shape || types.size() < 2) return {};
  const auto type = type_of(types.size() == 2 ? "f16" : types[1], types[0]);
  if (!type) return {};
  const bool is_of_sm = words[0] == "tcgen05";
  return TensorOperation{*type, shape->multiply_adds(), is_of_sm || words[0] == "wgmma", is_of_sm};
}

std::optional<TensorType> sass_type(Factors factors, const std::vector<std::string_view>& words) {
  const auto has = [&words](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  switch (factors) {
    case Factors::none:
      return {};
    case Factors::fp64:
      return TensorType::f64;
    case Factors::fp8:
      return TensorType::f8;
    case Factors::bit:
      return TensorType::b1;
    case Factors::integer:
      return has("S4") || has("U4") ? TensorType::s4 : TensorType::s8;
    case Factors::half:
      break;
  }
  if (has("BF16")) return TensorType::bf16;
  if (has("TF32")) return TensorType::tf32;
  return has("F32") ? TensorType::f16_f32 : TensorType::f16;
}

std::optional<TensorOperation> sass_operation(const std::vector<std::string_view>& words) {
  const SassOpcode* opcode = find_sass_opcode(words[0]);
  if (opcode == nullptr) return {};
  const auto type = sass_type(opcode->factors, words);
  if (!type) return {};
  for (const std::string_view word : words) {
    const auto shape = opcode->is_of_group ? separated_shape(word, " xx") : joined_shape(word);
    if (!shape) continue;
    const bool is_of_sm = words[0].starts_with("UTC");
    return TensorOperation{*type, shape->multiply_adds(), opcode->is_of_group, is_of_sm};
  }
  return {};
}

}  // namespace

std::optional<TensorOperation> tensor_operation(std::string_view opcode) {
  const std::vector<std::string_view> words = words_of(opcode);
  std::optional<TensorOperation> operation;
  if (words[0] == "mma" || words[0] == "wmma" || words[0] == "wgmma" || words[0] == "tcgen05") {
    operation = ptx_operation(words);
  } else {
    operation = sass_operation(words);
  }
  if (!operation) return {};
  if (operation->is_of_group) operation->multiply_adds /= 4;
  const bool has_zeros = std::ranges::any_of(words, [](std::string_view word) {
    return word == "SP" || word == "sp" || word.starts_with("sp::");
  });
  if (has_zeros) operation->multiply_adds /= 2;
  for (const std::string_view word : words) {
    const bool halves = word.starts_with("kind::mxf4") || word == "UTCOMMA" ||
                        word == "cta_group::2" || word == "2CTA";
    if (halves) operation->multiply_adds /= 2;
  }
  return operation;
}

}  // namespace warpstack::trace
