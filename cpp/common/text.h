#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace warpstack {

/// "0x7f00" for messages.
inline std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

/// A text for messages, cut if longer than `most`.
inline std::string shortened(std::string_view text, std::size_t most = 200) {
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + " ...";
}

}  // namespace warpstack
