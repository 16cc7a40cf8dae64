#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/error.h"

namespace warpstack {

/// An enumeration whose values have names lists them beside it, in a constexpr function names_of().
/// Its values count from 0 without gaps.
template <std::size_t count>
struct EnumNames {
  std::string_view what;                      ///< the enumeration's name in messages
  std::array<std::string_view, count> names;  ///< of its values in order
};

template <typename... Names>
constexpr EnumNames<sizeof...(Names)> enum_names(std::string_view what, Names... names) {
  return {what, {std::string_view(names)...}};
}

template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) { names_of(value); };

template <NamedEnum Enum>
inline constexpr auto names_in = names_of(Enum{});

template <NamedEnum Enum>
inline constexpr std::size_t num_values = names_in<Enum>.names.size();

/// All values in order.
template <NamedEnum Enum>
inline constexpr auto values_of = [] {
  std::array<Enum, num_values<Enum>> values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Enum>(i);
  return values;
}();

template <NamedEnum Enum>
constexpr std::string_view name_of(Enum value) {
  return names_in<Enum>.names[static_cast<std::size_t>(value)];
}

/// The value of that name. Throws InputError.
template <NamedEnum Enum>
Enum enum_of(std::string_view text) {
  for (const Enum value : values_of<Enum>) {
    if (name_of(value) == text) return value;
  }
  std::string message = "unknown ";
  message.append(names_in<Enum>.what).append(" \"").append(text).append("\"; write ");
  for (std::size_t i = 0; i < num_values<Enum>; ++i) {
    if (i > 0) message.append(i + 1 < num_values<Enum> ? ", " : " or ");
    message.append(names_in<Enum>.names[i]);
  }
  throw InputError(message);
}

}  // namespace warpstack
