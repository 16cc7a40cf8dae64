#include "simt/device/print.h"

#include <bit>
#include <cstdio>

namespace warpstack::simt {
namespace {

template <class T>
void append(std::string& text, const std::string& specification, T value) {
  const int length = std::snprintf(nullptr, 0, specification.c_str(), value);
  if (length <= 0) return;
  std::string piece(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(piece.data(), piece.size(), specification.c_str(), value);
  piece.pop_back();
  text += piece;
}

}  // namespace

std::string format_text(
    std::string_view format,
    const std::function<std::uint64_t(std::uint64_t, std::uint32_t)>& read_argument,
    const std::function<std::string(std::uint64_t)>& read_text) {
  constexpr std::size_t longest_specification = 64;
  std::string text;
  std::uint64_t offset = 0;
  const auto next = [&](std::uint32_t bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    const std::uint64_t value = read_argument(offset, bytes);
    offset += bytes;
    return value;
  };
  for (std::size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      text += format[i++];
      continue;
    }
    if (format.substr(i).starts_with("%%")) {
      text += '%';
      i += 2;
      continue;
    }
    std::size_t j = i + 1;
    std::string specification = "%";
    while (j < format.size() &&
           std::string_view("-+ #0123456789.*").find(format[j]) != std::string_view::npos) {
      if (format[j] == '*') {
        specification += std::to_string(static_cast<std::int32_t>(next(4)));
      } else {
        specification += format[j];
      }
      ++j;
    }
    bool is_long = false;
    while (j < format.size() &&
           std::string_view("hljzt").find(format[j]) != std::string_view::npos) {
      is_long = is_long || format[j] != 'h';
      ++j;
    }
    const char conversion = j < format.size() ? format[j] : '\0';
    if (specification.size() > longest_specification) specification = "%";
    switch (conversion) {
      case 'd':
      case 'i':
        if (is_long) {
          append(text, specification + "lld", static_cast<long long>(next(8)));
        } else {
          append(text, specification + "d", static_cast<int>(next(4)));
        }
        break;
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (is_long) {
          append(text, specification + "ll" + conversion, static_cast<unsigned long long>(next(8)));
        } else {
          append(text, specification + conversion, static_cast<unsigned>(next(4)));
        }
        break;
      case 'c':
        append(text, specification + "c", static_cast<int>(next(4)));
        break;
      case 'a':
      case 'A':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        append(text, specification + conversion, std::bit_cast<double>(next(8)));
        break;
      case 'p':
        append(text, "%#llx", static_cast<unsigned long long>(next(8)));
        break;
      case 's':
        append(text, specification + "s", read_text(next(8)).c_str());
        break;
      default:
        text += format.substr(i, j - i);
        i = j;
        continue;
    }
    i = j + 1;
  }
  return text;
}

}  // namespace warpstack::simt
