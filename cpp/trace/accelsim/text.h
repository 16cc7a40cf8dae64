#pragma once

// Text functions of the reader of Accel-Sim traces.

#include <string>
#include <string_view>
#include <utility>

namespace warpstack::trace {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Text as it may stand in a message: short and printable.
inline std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60)) {
    result += c >= ' ' && c <= '~' ? c : '?';
  }
  return result + (text.size() > 60 ? "...\"" : "\"");
}

/// Splits `key = value`; the key is empty for text of another form.
inline std::pair<std::string_view, std::string_view> split_assignment(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return {};
  return {trim(line.substr(0, equals)), trim(line.substr(equals + 1))};
}

constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace warpstack::trace
