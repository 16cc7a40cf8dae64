#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "common/error.h"
#include "sass/text/module.h"

namespace warpstack::sass {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "-0x10", "16"; nothing for other text.
std::optional<std::int64_t> integer_in(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::optional<double> real_in(std::string_view text) {
  std::string_view bare = text;
  const bool negative = bare.starts_with('-');
  if (negative || bare.starts_with('+')) bare.remove_prefix(1);
  double value = 0;
  if (bare == "INF") {
    value = std::numeric_limits<double>::infinity();
  } else {
    if (bare.empty() || (!is_digit(bare[0]) && bare[0] != '.')) return std::nullopt;
    const std::string copy(bare);
    char* end = nullptr;
    value = std::strtod(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || bare.find_first_of("xX") != std::string_view::npos) {
      return std::nullopt;
    }
  }
  return negative ? -value : value;
}

struct RegisterName {
  std::string_view prefix;
  std::string_view zero;  ///< name of the register with number `last`
  Operand::Kind kind;
  std::uint32_t last;
};

constexpr RegisterName register_names[] = {
    {"UR", "URZ", Operand::Kind::uniform, zero_uniform},
    {"UP", "UPT", Operand::Kind::uniform_predicate, true_predicate},
    {"R", "RZ", Operand::Kind::reg, zero_register},
    {"P", "PT", Operand::Kind::predicate, true_predicate},
    {"B", "", Operand::Kind::convergence, 16},
};

/// R12, URZ, P0 … with what follows a dot as suffix.
bool read_register(std::string_view text, Operand& operand) {
  const std::size_t dot = text.find('.');
  const std::string_view name = text.substr(0, dot);
  for (const RegisterName& names : register_names) {
    std::uint32_t index = names.last;
    if (name != names.zero) {
      if (!name.starts_with(names.prefix)) continue;
      const std::string_view digits = name.substr(names.prefix.size());
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (error != std::errc{} || end != digits.data() + digits.size() || index >= names.last) {
        continue;
      }
    }
    operand.kind = names.kind;
    operand.index = index;
    if (dot != std::string_view::npos) operand.suffix = text.substr(dot + 1);
    return true;
  }
  return false;
}

[[noreturn]] void refuse(std::string_view text, const char* why) {
  throw InputError("operand " + std::string(text) + ": " + why);
}

/// Reads the inside of brackets: registers and a number, joined by +.
void read_place(std::string_view inside, std::string_view text, Operand& operand) {
  while (!inside.empty()) {
    const std::size_t plus = inside.find('+', 1);
    std::string_view part = inside.substr(0, plus);
    inside = plus == std::string_view::npos ? std::string_view{} : inside.substr(plus + 1);
    Operand element;
    if (read_register(part, element)) {
      if (element.kind == Operand::Kind::reg && operand.base == Operand::no_base) {
        operand.base = element.index;
        operand.suffix = element.suffix;
      } else if (element.kind == Operand::Kind::uniform &&
                 operand.uniform_base == Operand::no_base) {
        operand.uniform_base = element.index;
      } else {
        refuse(text, "an address has one register and one uniform register");
      }
    } else if (const auto number = integer_in(part)) {
      operand.integer += *number;
    } else {
      refuse(text, "an address consists of registers and numbers");
    }
  }
}

}  // namespace

Operand parse_operand(std::string_view text) {
  Operand operand;
  operand.text = text;
  std::string_view rest = text;
  if (const auto number = integer_in(rest); number && rest.find("0x") != std::string_view::npos) {
    operand.kind = Operand::Kind::integer;
    operand.integer = *number;
    return operand;
  }
  if (const auto number = real_in(rest)) {
    operand.kind = Operand::Kind::real;
    operand.real = *number;
    if (const auto whole = integer_in(rest)) operand.integer = *whole;
    return operand;
  }
  if (rest.starts_with('-') || rest.starts_with('!')) {
    operand.negated = true;
    rest.remove_prefix(1);
  } else if (rest.starts_with('~')) {
    operand.complement = true;
    rest.remove_prefix(1);
  }
  if (rest.starts_with('|')) {
    const std::size_t end = rest.find('|', 1);
    if (end == std::string_view::npos) refuse(text, "a | is missing");
    if (end == 1) refuse(text, "nothing is between | and |");
    operand.absolute = true;
    std::string bare(rest.substr(1, end - 1));
    bare += rest.substr(end + 1);  // |R2|.H0_H0
    Operand inner = parse_operand(bare);
    inner.negated = operand.negated;
    inner.complement = operand.complement;
    inner.absolute = true;
    inner.text = text;
    return inner;
  }
  if (read_register(rest, operand)) return operand;
  if (rest.starts_with("SR")) {
    operand.kind = Operand::Kind::special;
    return operand;
  }
  if (rest.starts_with("desc[")) {  // a descriptor says how memory is cached
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) refuse(text, "a ] is missing");
    rest.remove_prefix(end + 1);
  }
  constexpr std::pair<std::string_view, Operand::Kind> named_places[] = {
      {"gdesc[", Operand::Kind::descriptors},
      {"tmem[", Operand::Kind::tensor_memory},
      {"idesc[", Operand::Kind::product}};
  for (const auto& [name, kind] : named_places) {
    if (!rest.starts_with(name)) continue;
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) refuse(text, "a ] is missing");
    operand.kind = kind;
    const std::size_t open = rest.find('[');
    read_place(rest.substr(open + 1, end - open - 1), text, operand);
    if (end + 1 < rest.size() && rest[end + 1] == '.') operand.suffix = rest.substr(end + 2);
    return operand;
  }
  if (rest.starts_with("c[")) {
    const std::size_t end = rest.find("][");
    if (end == std::string_view::npos) refuse(text, "it is not like c[0x0][0x160]");
    const auto bank = integer_in(rest.substr(2, end - 2));
    const std::size_t last = rest.find(']', end + 2);
    if (!bank || *bank < 0 || *bank > 31 || last == std::string_view::npos) {
      refuse(text, "it is not like c[0x0][0x160], with a bank of 0 to 31");
    }
    operand.kind = Operand::Kind::constant;
    operand.bank = static_cast<std::uint32_t>(*bank);
    read_place(rest.substr(end + 2, last - end - 2), text, operand);
    if (last + 1 < rest.size() && rest[last + 1] == '.') operand.suffix = rest.substr(last + 2);
    return operand;
  }
  if (rest.starts_with('[')) {
    if (!rest.ends_with(']')) refuse(text, "a ] is missing");
    operand.kind = Operand::Kind::address;
    read_place(rest.substr(1, rest.size() - 2), text, operand);
    return operand;
  }
  operand.kind = Operand::Kind::name;
  return operand;
}

}  // namespace warpstack::sass
