#pragma once

#include <cstdint>

#include "ptx/text/lexer.h"

namespace warpstack::ptx {

/// Value of a constant expression (PTX ISA, Section 4.5).
struct Constant {
  std::uint64_t bits = 0;
  Type type = Type::s64;  ///< s64, u64, f64, or f32 for a `0f…` literal and its negative

  [[nodiscard]] bool is_floating() const { return is_float(type); }
  /// The value as a number, for integers, too.
  [[nodiscard]] double number() const;
};

/// Whether a constant expression can start with this token.
bool starts_constant(const Token& token);

/// Reads a constant expression, with the operators and precedences of C. Throws InputError.
Constant parse_constant(Lexer& lexer);

/// Reads a term of a sum: an expression without operators of lower precedence than `*`.
Constant parse_constant_term(Lexer& lexer);

/// Reads a sequence of `+ term` and `- term`, possibly empty, whose terms are integers.
std::int64_t parse_addends(Lexer& lexer);

}  // namespace warpstack::ptx
