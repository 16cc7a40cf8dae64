#include <algorithm>
#include <bit>
#include <utility>

#include "ptx/text/constant.h"
#include "ptx/text/parser.h"

// The initial values of variables: numbers and addresses, in nested braces.

namespace warpstack::ptx {
namespace {

constexpr std::uint64_t max_initial_bytes = std::uint64_t{1} << 28;  ///< of the whole module

}  // namespace

void Parser::parse_initial_value(Variable& variable, std::vector<std::uint64_t> dimensions,
                                 std::uint32_t vector, bool is_unsized) {
  if (variable.space != Space::global && variable.space != Space::constant) {
    lexer_.fail(variable.line, quoted(variable.name) +
                                   " cannot have an initial value: only .global and .const "
                                   "variables can");
  }
  if (vector > 1) dimensions.push_back(vector);
  if (dimensions.empty()) {
    const bool braces = lexer_.accept("{");
    parse_initial_element(variable, 0);
    if (braces) expect("}", "of the initial value");
    return;
  }
  // Bytes that a list of each level may fill, and last the bytes of one element.
  std::vector<std::uint64_t> extents(dimensions.size() + 1);
  extents.back() = bytes_of(variable.type);
  for (std::size_t i = dimensions.size(); i-- > 0;) extents[i] = extents[i + 1] * dimensions[i];
  if (is_unsized) extents[0] = max_variable_bytes;
  std::uint64_t end = 0;
  parse_initial_list(variable, extents, 0, 0, end);
  if (is_unsized && extents[1] > 0) {
    variable.size = (end + extents[1] - 1) / extents[1] * extents[1];
  }
}

/// Braces may be left out at inner levels, as in C. `end` receives the byte after the last value.
void Parser::parse_initial_list(Variable& variable, const std::vector<std::uint64_t>& extents,
                                std::size_t level, std::uint64_t offset, std::uint64_t& end) {
  expect("{", "of the initial values");
  const std::uint64_t element = extents.back();
  const std::uint64_t stride = extents[level + 1];
  std::uint64_t at = 0;
  const auto reserve = [&](std::uint64_t bytes) {
    if (bytes > extents[level] || at > extents[level] - bytes) {
      lexer_.fail(lexer_.token().line, "too many initial values for " + quoted(variable.name));
    }
    end = std::max(end, offset + at + bytes);
  };
  while (!lexer_.at("}")) {
    if (lexer_.at("{") && level + 2 < extents.size() && stride > 0) {
      at = (at + stride - 1) / stride * stride;
      reserve(stride);
      parse_initial_list(variable, extents, level + 1, offset + at, end);
      at += stride;
    } else {
      reserve(element);
      parse_initial_element(variable, offset + at);
      at += element;
    }
    if (!lexer_.accept(",")) break;
  }
  expect("}", "or ',' after an initial value");
}

void Parser::fail_initial_bytes() const {
  lexer_.fail(lexer_.last_line(), "the initial values of the variables exceed 256 MiB");
}

void Parser::place(Variable& variable, std::uint64_t offset, std::uint64_t bits,
                   std::uint32_t bytes) {
  const std::uint64_t end = offset + bytes;
  if (end > variable.initial.size()) {
    initial_bytes_ += end - variable.initial.size();
    if (initial_bytes_ > max_initial_bytes) fail_initial_bytes();
    variable.initial.resize(end);
  }
  for (std::uint32_t i = 0; i < bytes; ++i) {
    variable.initial[offset + i] = i < 8 ? static_cast<std::uint8_t>(bits >> (8 * i)) : 0;
  }
}

void Parser::parse_initial_element(Variable& variable, std::uint64_t offset) {
  if (offset >= max_initial_bytes) fail_initial_bytes();
  AddressInitializer address;
  address.offset = static_cast<std::uint32_t>(offset);
  address.bytes = bytes_of(variable.type);
  if (lexer_.at(Token::Kind::identifier) && lexer_.token().text != "WARP_SZ") {
    parse_initial_address(variable, std::move(address));
    return;
  }
  const std::uint32_t line = lexer_.token().line;
  const Constant value = parse_constant(lexer_);
  if (lexer_.at("(") && value.type != Type::f32 && value.type != Type::f64) {
    // `0xFF00(symbol)`: the byte of the address that the mask keeps.
    const int shift = std::countr_zero(value.bits);
    if (value.bits == 0 || shift % 8 != 0 || value.bits >> shift != 0xFF) {
      lexer_.fail(line, "the mask of an address must keep one byte, such as 0xFF00");
    }
    lexer_.take();
    address.byte_shift = static_cast<std::uint32_t>(shift);
    parse_initial_address(variable, std::move(address));
    expect(")", "after the masked address");
    return;
  }
  std::uint64_t bits = value.bits;
  const Type type = variable.type;
  if (type == Type::f32 || (type == Type::b32 && value.is_floating())) {
    if (value.type != Type::f32) {
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(value.number()));
    }
  } else if (type == Type::f64 || (type == Type::b64 && value.is_floating())) {
    if (value.type != Type::f64) bits = std::bit_cast<std::uint64_t>(value.number());
  } else if (value.is_floating() || is_float(type)) {
    lexer_.fail(line, "the initial value of " + quoted(variable.name) +
                          " does not match its type ." + std::string(name_of(type)));
  }
  place(variable, offset, bits, address.bytes);
}

void Parser::parse_initial_address(Variable& variable, AddressInitializer address) {
  Token symbol = expect_name("a symbol");
  if (symbol.text == "generic" && lexer_.accept("(")) {
    address.generic = true;
    symbol = expect_name("a symbol in generic()");
    address.addend = parse_addends(lexer_);
    expect(")", "of generic()");
  }
  address.symbol = symbol.text;
  address.addend += parse_addends(lexer_);
  if (is_float(variable.type) || (address.bytes != 8 && address.bytes != 4 && address.bytes != 1)) {
    lexer_.fail(symbol.line, "an address does not fit in an element of " + quoted(variable.name) +
                                 ", of type ." + std::string(name_of(variable.type)));
  }
  pending_names_.push_back({symbol.text, symbol.line, false});
  place(variable, address.offset, 0, address.bytes);
  variable.addresses.push_back(std::move(address));
}

}  // namespace warpstack::ptx
