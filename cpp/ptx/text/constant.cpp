#include "ptx/text/constant.h"

#include <bit>
#include <limits>

namespace warpstack::ptx {
namespace {

/// Deepest nesting of parentheses and signs; each takes a frame or two of the stack.
constexpr int max_depth = 100;
constexpr int additive_precedence = 9;
constexpr int multiplicative_precedence = 10;

/// The precedence of a binary operator; 0 for any other token.
int precedence_of(const Token& token) {
  if (token.kind != Token::Kind::symbol) return 0;
  const std::string_view text = token.text;
  if (text == "||") return 1;
  if (text == "&&") return 2;
  if (text == "|") return 3;
  if (text == "^") return 4;
  if (text == "&") return 5;
  if (text == "==" || text == "!=") return 6;
  if (text == "<" || text == "<=" || text == ">" || text == ">=") return 7;
  if (text == "<<" || text == ">>") return 8;
  if (text == "+" || text == "-") return additive_precedence;
  if (text == "*" || text == "/" || text == "%") return multiplicative_precedence;
  return 0;
}

Constant floating(double value) { return {std::bit_cast<std::uint64_t>(value), Type::f64}; }

Constant truth(bool value) { return {value, Type::s64}; }

template <typename T>
bool compare(std::string_view op, T a, T b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  return a >= b;
}

class Evaluator {
 public:
  explicit Evaluator(Lexer& lexer) : lexer_(lexer) {}

  Constant ternary() {
    const Nesting nesting(*this);
    const Constant condition = binary(1);
    if (!lexer_.at("?")) return condition;
    const Token question = lexer_.take();
    require_integer(condition, question);
    Constant yes = ternary();
    if (!lexer_.accept(":")) lexer_.fail_expected("':' of the conditional expression");
    Constant no = ternary();
    if (yes.type != no.type) {
      if (yes.is_floating() || no.is_floating()) {
        yes = floating(yes.number());
        no = floating(no.number());
      } else {
        yes.type = no.type = Type::u64;
      }
    }
    return condition.bits != 0 ? yes : no;
  }

  Constant binary(int lowest) {
    Constant result = unary();
    for (;;) {
      const int precedence = precedence_of(lexer_.token());
      if (precedence == 0 || precedence < lowest) return result;
      const Token op = lexer_.take();
      result = apply(op, result, binary(precedence + 1));
    }
  }

 private:
  struct Nesting {
    explicit Nesting(Evaluator& evaluator) : depth(evaluator.depth_) {
      if (++depth > max_depth) {
        evaluator.lexer_.fail(
            evaluator.lexer_.token().line,
            "a constant expression is nested more than " + std::to_string(max_depth) + " deep");
      }
    }
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    int& depth;
  };

  void require_integer(const Constant& value, const Token& op) const {
    if (value.is_floating()) {
      lexer_.fail(op.line, "the operator " + quoted(op.text) + " needs integers");
    }
  }

  Constant unary() {
    const Nesting nesting(*this);
    const Token& token = lexer_.token();
    if (token.kind == Token::Kind::integer) {
      const Token number = lexer_.take();
      return {number.value, number.is_unsigned ? Type::u64 : Type::s64};
    }
    if (token.kind == Token::Kind::floating) {
      const Token number = lexer_.take();
      return {number.value, number.type};
    }
    if (token.kind == Token::Kind::identifier && token.text == "WARP_SZ") {
      lexer_.take();
      return {32, Type::s64};
    }
    if (token.is("(")) {
      lexer_.take();
      if (lexer_.at(Token::Kind::directive)) return cast();
      const Constant result = ternary();
      if (!lexer_.accept(")")) lexer_.fail_expected("')' of the constant expression");
      return result;
    }
    if (token.is("+") || token.is("-") || token.is("~") || token.is("!")) {
      const Token op = lexer_.take();
      Constant value = unary();
      if (op.text == "-") {
        switch (value.type) {
          case Type::f32:
            value.bits ^= std::uint64_t{1} << 31;
            break;
          case Type::f64:
            value.bits ^= std::uint64_t{1} << 63;
            break;
          default:
            value.bits = -value.bits;
            break;
        }
      } else if (op.text != "+") {
        require_integer(value, op);
        if (op.text == "!") return truth(value.bits == 0);
        value.bits = ~value.bits;
      }
      return value;
    }
    lexer_.fail_expected("a constant");
  }

  Constant cast() {
    const Type type = type_named(lexer_.token().text);
    if (type != Type::s64 && type != Type::u64) lexer_.fail_expected("the cast .s64 or .u64");
    const Token word = lexer_.take();
    if (!lexer_.accept(")")) lexer_.fail_expected("')' of the cast");
    Constant value = unary();
    require_integer(value, word);
    value.type = type;
    return value;
  }

  [[nodiscard]] Constant apply(const Token& op, const Constant& a, const Constant& b) const {
    const std::string_view text = op.text;
    const int precedence = precedence_of(op);
    const bool is_unsigned = a.type == Type::u64 || b.type == Type::u64;
    if (precedence == 6 || precedence == 7) {
      if (a.is_floating() || b.is_floating()) return truth(compare(text, a.number(), b.number()));
      if (is_unsigned) return truth(compare(text, a.bits, b.bits));
      return truth(
          compare(text, static_cast<std::int64_t>(a.bits), static_cast<std::int64_t>(b.bits)));
    }
    if ((a.is_floating() || b.is_floating()) && precedence >= additive_precedence && text != "%") {
      const double x = a.number();
      const double y = b.number();
      return floating(text == "+" ? x + y : text == "-" ? x - y : text == "*" ? x * y : x / y);
    }
    require_integer(a, op);
    require_integer(b, op);
    if (text == "||") return truth(a.bits != 0 || b.bits != 0);
    if (text == "&&") return truth(a.bits != 0 && b.bits != 0);
    if (precedence == 8) return shift(text == "<<", a, b.bits);
    Constant result{0, is_unsigned ? Type::u64 : Type::s64};
    if (text == "+") {
      result.bits = a.bits + b.bits;
    } else if (text == "-") {
      result.bits = a.bits - b.bits;
    } else if (text == "*") {
      result.bits = a.bits * b.bits;
    } else if (text == "|") {
      result.bits = a.bits | b.bits;
    } else if (text == "^") {
      result.bits = a.bits ^ b.bits;
    } else if (text == "&") {
      result.bits = a.bits & b.bits;
    } else {
      if (b.bits == 0) lexer_.fail(op.line, "a constant expression divides by zero");
      result.bits = divide(text == "%", a.bits, b.bits, is_unsigned);
    }
    return result;
  }

  static std::uint64_t divide(bool remainder, std::uint64_t a, std::uint64_t b, bool is_unsigned) {
    if (is_unsigned) return remainder ? a % b : a / b;
    if (b == ~std::uint64_t{0}) return remainder ? 0 : -a;  // -1: the quotient may overflow
    const auto x = static_cast<std::int64_t>(a);
    const auto y = static_cast<std::int64_t>(b);
    return static_cast<std::uint64_t>(remainder ? x % y : x / y);
  }

  /// Counts beyond the width shift everything out, as the shift instructions do.
  static Constant shift(bool left, const Constant& a, std::uint64_t count) {
    if (left) return {count < 64 ? a.bits << count : 0, a.type};
    if (a.type == Type::u64) return {count < 64 ? a.bits >> count : 0, a.type};
    const auto value = static_cast<std::int64_t>(a.bits);
    return {static_cast<std::uint64_t>(value >> (count < 64 ? count : 63)), a.type};
  }

  Lexer& lexer_;
  int depth_ = 0;
};

}  // namespace

double Constant::number() const {
  switch (type) {
    case Type::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Type::f64:
      return std::bit_cast<double>(bits);
    case Type::u64:
      return static_cast<double>(bits);
    default:
      return static_cast<double>(static_cast<std::int64_t>(bits));
  }
}

bool starts_constant(const Token& token) {
  switch (token.kind) {
    case Token::Kind::integer:
    case Token::Kind::floating:
      return true;
    case Token::Kind::identifier:
      return token.text == "WARP_SZ";
    case Token::Kind::symbol:
      return token.is("-") || token.is("+") || token.is("~") || token.is("!") || token.is("(");
    default:
      return false;
  }
}

Constant parse_constant(Lexer& lexer) { return Evaluator(lexer).ternary(); }

Constant parse_constant_term(Lexer& lexer) {
  return Evaluator(lexer).binary(multiplicative_precedence);
}

std::int64_t parse_addends(Lexer& lexer) {
  std::uint64_t sum = 0;
  while (lexer.at("+") || lexer.at("-")) {
    const Token sign = lexer.take();
    const Constant term = parse_constant_term(lexer);
    if (term.is_floating()) lexer.fail(sign.line, "an offset is not an integer");
    sum += sign.text == "+" ? term.bits : -term.bits;
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace warpstack::ptx
