#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace warpstack::simt {

/// The output of printf for a format and the argument buffer of vprintf, in which each argument
/// lies at a multiple of its size, 4 or 8 bytes. `read_argument` copies bytes of the buffer,
/// `read_text` reads a string argument. Unknown conversions are copied.
std::string format_text(
    std::string_view format,
    const std::function<std::uint64_t(std::uint64_t, std::uint32_t)>& read_argument,
    const std::function<std::string(std::uint64_t)>& read_text);

}  // namespace warpstack::simt
