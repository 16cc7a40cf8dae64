#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/text/module.h"

namespace warpstack::ptx {

/// A word of PTX text.
struct Token {
  enum class Kind : std::uint8_t {
    end,         ///< of the text
    identifier,  ///< also opcodes, `%r1`, and `_`
    directive,   ///< `.word`; `text` comes without the dot
    integer,
    floating,
    string,  ///< `text` comes without the quotes
    symbol,  ///< punctuation and operators
  };
  Kind kind = Kind::end;
  bool is_unsigned = false;  ///< of an integer: suffix U, or beyond the signed range
  Type type = Type::none;    ///< of a floating constant: f32 (`0f…`) or f64
  std::uint32_t line = 1;
  std::string_view text;
  std::uint64_t value = 0;  ///< of an integer, or the bits of a floating constant

  [[nodiscard]] bool is(std::string_view symbol) const {
    return kind == Kind::symbol && text == symbol;
  }
};

/// "'text'" as it may stand in a message: short and printable.
std::string quoted(std::string_view text);

/// Splits PTX text into tokens, one at a time. Text and file name must outlive it.
class Lexer {
 public:
  /// Reads the first token. Every reading member throws InputError for text that is not a token.
  Lexer(std::string_view text, std::string_view file);

  /// The token to be read next.
  [[nodiscard]] const Token& token() const { return token_; }
  /// Line of the last token read. Messages use it, rather than the next line, when something is
  /// missing.
  [[nodiscard]] std::uint32_t last_line() const { return last_line_; }
  /// Returns the current token and moves to the next.
  Token take();
  /// Takes the token if it is this symbol.
  bool accept(std::string_view symbol);
  /// Moves to the first token of the next line.
  void skip_line();
  /// Skips past the semicolon that ends the statement of which `within` is a token, whatever comes
  /// before it. Returns false if there is none before a label or the end of a scope; then the lexer
  /// must not be used any more.
  bool skip_statement(const Lexer& within);

  [[nodiscard]] bool at(Token::Kind kind) const { return token_.kind == kind; }
  [[nodiscard]] bool at(std::string_view symbol) const { return token_.is(symbol); }

  /// Throws InputError: "file:line: what".
  [[noreturn]] void fail(std::uint32_t line, const std::string& what) const;
  /// Throws InputError: "file:line: expected what, found 'token'", at the line of the token.
  [[noreturn]] void fail_expected(const std::string& what) const;

 private:
  void skip_blanks();
  void read();
  void read_number();
  void read_digits(std::string_view digits, int base);

  std::string_view text_;
  std::string_view file_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t last_line_ = 1;
  Token token_;
};

}  // namespace warpstack::ptx
