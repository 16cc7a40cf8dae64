#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace warpstack {

/// "0x7f00" for messages.
inline std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace warpstack
