#include "ptx/text/lexer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>

#include "common/error.h"

namespace warpstack::ptx {
namespace {

constexpr std::size_t max_quoted = 60;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// May follow the first character of an identifier.
constexpr auto word_characters = [] {
  std::array<bool, 256> result{};
  for (int c = 'a'; c <= 'z'; ++c) result[c] = result[c - 'a' + 'A'] = true;
  for (int c = '0'; c <= '9'; ++c) result[c] = true;
  result['_'] = result['$'] = true;
  return result;
}();

constexpr bool is_word(char c) { return word_characters[static_cast<unsigned char>(c)]; }

/// Whether `.5` or `.5e3` starts the text, rather than a modifier such as `.2d`.
bool is_fraction(std::string_view text) {
  std::size_t end = 1;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end == text.size() || !is_word(text[end]) || text[end] == 'e' || text[end] == 'E';
}

constexpr std::array<std::string_view, 8> two_character_symbols = {
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
constexpr std::string_view symbols = "()[]{}<>,;:@!|&^~+-*/%=?";

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text.substr(0, max_quoted)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > max_quoted ? "...'" : "'");
}

Lexer::Lexer(std::string_view text, std::string_view file) : text_(text), file_(file) { read(); }

void Lexer::fail(std::uint32_t line, const std::string& what) const {
  throw InputError(std::string(file_) + ":" + std::to_string(line) + ": " + what);
}

void Lexer::fail_expected(const std::string& what) const {
  std::string found = "the end of the file";
  if (token_.kind == Token::Kind::directive) {
    found = quoted("." + std::string(token_.text.substr(0, max_quoted)));
  } else if (token_.kind == Token::Kind::string) {
    found = "the string " + quoted(token_.text);
  } else if (token_.kind != Token::Kind::end) {
    found = quoted(token_.text);
  }
  fail(token_.line, "expected " + what + ", found " + found);
}

Token Lexer::take() {
  const Token result = token_;
  last_line_ = result.line;
  read();
  return result;
}

bool Lexer::accept(std::string_view symbol) {
  if (!token_.is(symbol)) return false;
  take();
  return true;
}

void Lexer::skip_line() {
  position_ = std::min(text_.find('\n', position_), text_.size());
  read();
}

bool Lexer::skip_statement(const Lexer& within) {
  if (within.at(Token::Kind::end)) return false;
  *this = within;
  position_ = static_cast<std::size_t>(token_.text.data() - text_.data());
  line_ = token_.line;
  std::size_t depth = 0;
  for (;; ++position_) {
    skip_blanks();
    if (position_ == text_.size()) return false;
    const char c = text_[position_];
    if (c == ';') break;
    if (c == '{') ++depth;
    if (c == '}' && depth-- == 0) return false;
    if (c == ':') {
      if (text_.substr(position_, 2) != "::") return false;
      ++position_;
    }
  }
  ++position_;
  read();
  return true;
}

void Lexer::skip_blanks() {
  bool starts_line = position_ == 0;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
      starts_line = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++position_;
    } else if (text_.substr(position_, 2) == "//" || (c == '#' && starts_line)) {
      // `# 12 "file"` is a line marker of a preprocessor.
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (text_.substr(position_, 2) == "/*") {
      const std::uint32_t start = line_;
      const std::size_t end = text_.find("*/", position_ + 2);
      if (end == std::string_view::npos) fail(start, "a comment /* without its end */");
      for (; position_ < end; ++position_) line_ += text_[position_] == '\n';
      position_ = end + 2;
    } else {
      break;
    }
  }
}

void Lexer::read() {
  skip_blanks();
  token_ = {};
  token_.line = line_;
  if (position_ == text_.size()) return;
  const auto rest = text_.substr(position_);
  const char first = rest[0];
  const char second = rest.size() > 1 ? rest[1] : '\0';
  if (is_digit(first) || (first == '.' && is_digit(second) && is_fraction(rest))) {
    read_number();
    return;
  }
  std::size_t length = 1;
  if ((is_word(first) && first != '$') || ((first == '$' || first == '%') && is_word(second))) {
    token_.kind = Token::Kind::identifier;
    while (length < rest.size() && is_word(rest[length])) ++length;
    token_.text = rest.substr(0, length);
  } else if (first == '.' && is_word(second)) {
    token_.kind = Token::Kind::directive;
    // `.shared::cluster` is one word.
    const auto goes_on = [&rest](std::size_t i) {
      return is_word(rest[i]) ||
             (rest[i] == ':' && i + 2 < rest.size() && rest[i + 1] == ':' && is_word(rest[i + 2]));
    };
    while (length < rest.size() && goes_on(length)) length += rest[length] == ':' ? 2 : 1;
    token_.text = rest.substr(1, length - 1);
  } else if (first == '"') {
    token_.kind = Token::Kind::string;
    while (length < rest.size() && rest[length] != '"' && rest[length] != '\n') {
      length +=
          rest[length] == '\\' && length + 1 < rest.size() && rest[length + 1] != '\n' ? 2 : 1;
    }
    if (length >= rest.size() || rest[length] != '"') fail(line_, "a string without its end \"");
    token_.text = rest.substr(1, length - 1);
    ++length;
  } else if (symbols.find(first) != std::string_view::npos) {
    token_.kind = Token::Kind::symbol;
    for (const std::string_view symbol : two_character_symbols) {
      if (rest.starts_with(symbol)) length = 2;
    }
    token_.text = rest.substr(0, length);
  } else if (first > ' ' && first <= '~') {
    fail(line_, "unexpected character " + quoted(rest.substr(0, 1)));
  } else {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(first);
    fail(line_, std::string("unexpected byte 0x") + hex[byte >> 4] + hex[byte & 15] +
                    "; PTX is ASCII text");
  }
  position_ += length;
}

void Lexer::read_digits(std::string_view digits, int base) {
  if (digits.ends_with('U')) {
    token_.is_unsigned = true;
    digits.remove_suffix(1);
  }
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, token_.value, base);
  if (error == std::errc::result_out_of_range) {
    fail(line_, "the number " + quoted(token_.text) + " does not fit in 64 bits");
  }
  if (error != std::errc{} || stop != end) {
    fail(line_, quoted(token_.text) + " is not a number");
  }
  constexpr auto signed_max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  token_.is_unsigned = token_.is_unsigned || token_.value > signed_max;
}

void Lexer::read_number() {
  const auto rest = text_.substr(position_);
  std::size_t length = rest[0] == '.' ? 0 : 1;
  while (length < rest.size() && is_word(rest[length])) ++length;
  std::string_view word = rest.substr(0, length);
  const char prefix = word.size() > 1 && word[0] == '0' ? static_cast<char>(word[1] | 0x20) : '\0';
  token_.kind = Token::Kind::integer;
  token_.text = word;
  if (prefix == 'x') {
    read_digits(word.substr(2), 16);
  } else if (prefix == 'b') {
    read_digits(word.substr(2), 2);
  } else if (prefix == 'f' || prefix == 'd') {
    const std::size_t digits = prefix == 'f' ? 8 : 16;
    token_.kind = Token::Kind::floating;
    token_.type = prefix == 'f' ? Type::f32 : Type::f64;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + 2, end, token_.value, 16);
    if (error != std::errc{} || stop != end || word.size() != digits + 2) {
      fail(line_, quoted(word) + " is not a number: 0" + word[1] + " needs " +
                      std::to_string(digits) + " hexadecimal digits after it");
    }
  } else if (word.find_first_of("eE") != std::string_view::npos ||
             (length < rest.size() && rest[length] == '.')) {
    if (length < rest.size() && rest[length] == '.') {
      for (++length; length < rest.size() && is_word(rest[length]);) ++length;
    }
    if ((rest[length - 1] | 0x20) == 'e' && length < rest.size() &&
        (rest[length] == '+' || rest[length] == '-')) {
      for (++length; length < rest.size() && is_digit(rest[length]);) ++length;
    }
    word = token_.text = rest.substr(0, length);
    token_.kind = Token::Kind::floating;
    token_.type = Type::f64;
    double value = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error == std::errc::result_out_of_range) {
      fail(line_, "the number " + quoted(word) + " is beyond the range of .f64");
    }
    if (error != std::errc{} || stop != end) fail(line_, quoted(word) + " is not a number");
    token_.value = std::bit_cast<std::uint64_t>(value);
  } else if (word[0] == '0' && word.size() > 1 && word != "0U") {
    read_digits(word.substr(1), 8);
  } else {
    read_digits(word, 10);
  }
  position_ += length;
}

}  // namespace warpstack::ptx
