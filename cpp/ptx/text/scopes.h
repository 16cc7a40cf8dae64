#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/text/lexer.h"
#include "ptx/text/module.h"

namespace warpstack::ptx {

/// The meaning of a name in a function.
struct Symbol {
  enum class Kind : std::uint8_t { reg, variable, label, targets, prototype };
  Kind kind = Kind::reg;
  Type type = Type::none;   ///< of a register
  std::uint8_t vector = 1;  ///< of a register
  std::uint32_t line = 0;   ///< of the declaration
  std::uint32_t index = 0;  ///< see Kind; unnamed_register for a register no instruction names yet
  std::string name = {};    ///< of a variable, as operands name it
};
inline constexpr std::uint32_t unnamed_register = ~std::uint32_t{0};

/// `%r<10>`.
struct RegisterRange {
  Type type = Type::none;
  std::uint8_t vector = 1;
  std::uint32_t line = 0;
  std::uint64_t count = 0;
};

/// The names that a pair of braces declares.
struct Scope {
  std::unordered_map<std::string_view, Symbol> symbols;
  std::unordered_map<std::string_view, RegisterRange> ranges;  ///< by prefix
  /// By prefix: the smallest member number as which a declared name could be read.
  std::unordered_map<std::string_view, std::uint64_t> smallest_members;
  std::size_t first_pending = 0;  ///< first label that the scope may declare
  std::uint32_t line = 0;         ///< of its brace
};

/// The nested scopes of a function. Names point into the text.
class Scopes {
 public:
  explicit Scopes(const Lexer& lexer) : lexer_(lexer) {}

  void clear() { scopes_.clear(); }
  [[nodiscard]] bool empty() const { return scopes_.empty(); }
  [[nodiscard]] const Scope& innermost() const { return scopes_.back(); }
  /// Opens a scope at the lexer's token.
  void open(std::size_t first_pending);
  Scope close();

  /// Declares a name in the innermost scope. Throws InputError when it has that name already.
  void declare(std::string_view name, Symbol symbol);
  void declare_range(std::string_view prefix, const RegisterRange& range);
  /// The innermost symbol of this name, or null.
  Symbol* find(std::string_view name);

 private:
  const Lexer& lexer_;
  std::vector<Scope> scopes_;
};

/// Throws the InputError of a name that is declared twice.
[[noreturn]] void fail_duplicate(const Lexer& lexer, std::string_view name, std::uint32_t line,
                                 std::uint32_t first_line);

}  // namespace warpstack::ptx
