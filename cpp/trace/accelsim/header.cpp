// The header lines of an Accel-Sim trace.

#include <algorithm>
#include <charconv>
#include <limits>

#include "trace/accelsim/reader.h"
#include "trace/accelsim/text.h"

namespace warpstack::trace {
namespace {

/// More header lines than any kernel has. They are kept in memory.
constexpr std::size_t max_header_lines = 1 << 20;
/// The prefix of PC and text in header lines that list registers.
constexpr std::string_view register_line_key = "warpstack registers of ";

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::uint64_t AccelSimReader::header_number(std::string_view key, std::string_view value) {
  std::string_view digits = value;
  int base = 10;
  if (digits.starts_with("0x")) {
    digits.remove_prefix(2);
    base = 16;
  }
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    fail("-" + std::string(key) + " = " + quoted(value) + " is not a number");
  }
  return number;
}

Dim3 AccelSimReader::header_dimensions(std::string_view key, std::string_view value) {
  Dim3 dims{};
  std::string_view rest = value;
  bool good = rest.size() >= 2 && rest.front() == '(' && rest.back() == ')';
  if (good) rest = rest.substr(1, rest.size() - 2);
  for (std::size_t i = 0; good && i < dims.size(); ++i) {
    const std::size_t comma = rest.find(',');
    good = (comma == std::string_view::npos) == (i == 2);
    const std::string_view number = trim(rest.substr(0, comma));
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), dims[i]);
    good = good && error == std::errc{} && end == number.data() + number.size();
    if (good && i < 2) rest.remove_prefix(comma + 1);
  }
  if (!good) fail("-" + std::string(key) + " = " + quoted(value) + " is not of the form (x,y,z)");
  return dims;
}

void AccelSimReader::parse_header_line(std::string_view line) {
  if (builder_ || branch_) fail("a header line " + quoted(line) + " after the first thread block");
  const auto [key, value] = split_assignment(line.substr(1));
  if (key.empty()) fail("the header line " + quoted(line) + " is not of the form -key = value");
  if (!header_lines_.emplace(key, line_number_).second) {
    fail("a second header line -" + std::string(key) + " = ...");
  }
  if (header_lines_.size() > max_header_lines) {
    fail("more than " + std::to_string(max_header_lines) +
         " header lines; this is not an Accel-Sim trace");
  }
  if (key == "kernel name") {
    if (!is_printable(value)) fail("-kernel name = " + quoted(value) + " is not printable text");
    header_.name = value;
  } else if (key == "kernel id") {
    header_.launch_id = header_number(key, value);
  } else if (key == "grid dim") {
    header_.grid = header_dimensions(key, value);
  } else if (key == "block dim") {
    header_.block = header_dimensions(key, value);
  } else if (key == "shmem") {
    header_.shared_memory_bytes = header_number(key, value);
  } else if (key == "nregs") {
    header_.registers_per_thread = header_number(key, value);
  } else if (key == "binary version") {
    header_.binary_version = header_number(key, value);
  } else if (key == "cuda stream id") {
    header_.stream = header_number(key, value);
  } else if (key == "shmem base_addr") {
    header_.shared_window = header_number(key, value);
  } else if (key == "local mem base_addr") {
    header_.local_window = header_number(key, value);
  } else if (key == "accelsim tracer version") {
    version_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(header_number(key, value.substr(0, value.find('.'))), 1000));
  } else if (key == "enable lineinfo") {
    has_line_info_ = header_number(key, value) != 0;
  } else if (key == "warpstack registers") {
    max_register_ = std::clamp<std::uint64_t>(header_number(key, value), zero_register,
                                              std::numeric_limits<std::uint16_t>::max());
  } else if (key.starts_with(register_line_key)) {
    parse_register_line(key.substr(register_line_key.size()), value);
  }
  located([this] { header_.validate(); });  // fields not read yet have valid defaults
}

void AccelSimReader::parse_register_line(std::string_view form, std::string_view value) {
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) {
    fail("-" + std::string(register_line_key) + quoted(form) + " lists " + quoted(value) +
         ", not destinations / sources");
  }
  const auto registers = [this](std::string_view text) {
    std::vector<std::uint16_t> list;
    Cursor cursor{text.data(), text.data() + text.size()};
    while (cursor.next != cursor.end) {
      const std::uint16_t reg = vector_register(cursor, "listed register");
      if (reg != zero_register) append_register_tuple(list, reg, 1);
      while (cursor.next != cursor.end && is_blank(*cursor.next)) ++cursor.next;
    }
    return list;
  };
  listed_registers_[std::string(form)] = {registers(trim(value.substr(0, slash))),
                                          registers(trim(value.substr(slash + 1)))};
}

void AccelSimReader::start_body() {
  if (builder_ || branch_) return;
  for (const std::string_view key : {"kernel name", "grid dim", "block dim", "shmem", "nregs"}) {
    if (!header_lines_.contains(key)) {
      fail("the header has no line -" + std::string(key) +
           " = ...; this is not an Accel-Sim trace");
    }
  }
  builder_.emplace(header_, budget_);
}

}  // namespace warpstack::trace
