#include "ptx/lower/modifiers.h"

#include <algorithm>

namespace warpstack::ptx {
namespace {

/// e4m3x2, f32x2, u8x4: letters and a number, but not v2.
bool is_like_a_type(std::string_view word) {
  const std::size_t letters = std::min(word.find_first_of("0123456789"), word.size());
  return letters > 0 && letters < word.size() && letters < 4 && word[0] != 'v' &&
         word.find(':') == std::string_view::npos;
}

}  // namespace

bool Modifiers::take(std::string_view word) {
  bool found = false;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (words_[i] == word && !taken_[i]) found = taken_[i] = true;
  }
  return found;
}

std::optional<std::size_t> Modifiers::take_one_of(std::initializer_list<std::string_view> list) {
  std::size_t i = 0;
  for (const std::string_view word : list) {
    if (take(word)) return i;
    ++i;
  }
  return std::nullopt;
}

bool Modifiers::take_prefix(std::string_view prefix) {
  bool found = false;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (!taken_[i] && words_[i].starts_with(prefix)) found = taken_[i] = true;
  }
  return found;
}

Type Modifiers::take_type() {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (taken_[i]) continue;
    const Type type = type_named(words_[i]);
    if (type == Type::none) continue;
    taken_[i] = true;
    return type;
  }
  return Type::none;
}

Type Modifiers::need_type() {
  const Type type = take_type();
  if (type == Type::none) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (!taken_[i] && is_like_a_type(words_[i])) {
        throw Unsupported{"the type ." + words_[i] + " is not supported here"};
      }
    }
    throw Unsupported{"it names no type"};
  }
  return type;
}

std::string_view Modifiers::next() {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (taken_[i]) continue;
    taken_[i] = true;
    return words_[i];
  }
  return {};
}

void Modifiers::finish() const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (!taken_[i]) throw Unsupported{"the modifier ." + words_[i] + " is not supported here"};
  }
}

Rounding take_rounding(Modifiers& modifiers) {
  if (modifiers.take("rz")) return Rounding::zero;
  if (modifiers.take("rm")) return Rounding::down;
  if (modifiers.take("rp")) return Rounding::up;
  modifiers.take("rn");
  return Rounding::nearest;
}

void take_float_modifiers(Modifiers& modifiers, LaneForm& form) {
  form.rounding = take_rounding(modifiers);
  form.flush = modifiers.take("ftz");
  form.saturate = modifiers.take("sat");
  form.relu = modifiers.take("relu");
  modifiers.take("approx");
  modifiers.take("full");
  modifiers.take("oob");
}

Type bits_type(std::uint32_t bytes) {
  return bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : Type::b16;
}

}  // namespace warpstack::ptx
