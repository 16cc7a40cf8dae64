#include <utility>

#include "ptx/special_register.h"
#include "ptx/text/constant.h"
#include "ptx/text/parser.h"

// Instructions and their operands.

namespace warpstack::ptx {
namespace {

constexpr int max_operand_depth = 4;  ///< `[t, {x, y}]` has two levels

/// vadd, vset2, vmin4
bool is_video(std::string_view opcode) { return opcode.starts_with('v') && opcode != "vote"; }

/// b3210, h1
bool is_selector(std::string_view word) {
  return word.size() > 1 && (word[0] == 'b' || word[0] == 'h') &&
         word.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

/// Number of a vector's element that `.x` or `.r` names.
std::optional<std::uint8_t> component_named(std::string_view word) {
  if (word.size() != 1) return {};
  for (const std::string_view names : {"xyzw", "rgba"}) {
    if (const auto at = names.find(word[0]); at != std::string_view::npos) {
      return static_cast<std::uint8_t>(at);
    }
  }
  return {};
}

Operand new_operand(Operand::Kind kind, std::int64_t integer = 0) {
  Operand result;
  result.kind = kind;
  result.integer = integer;
  return result;
}

Operand named_operand(Operand::Kind kind, std::string_view name) {
  Operand result = new_operand(kind);
  result.name = name;
  return result;
}

}  // namespace

std::uint32_t Parser::register_index(std::string_view name, Symbol& symbol) {
  if (symbol.index == unnamed_register) {
    symbol.index = static_cast<std::uint32_t>(function_.registers.size());
    function_.registers.push_back({std::string(name), symbol.type, symbol.vector});
  }
  return symbol.index;
}

void Parser::parse_instruction(std::optional<Token> opcode) {
  Instruction instruction;
  if (!opcode) {
    lexer_.take();  // '@'
    instruction.guard_negated = lexer_.accept("!");
    const Token name = expect_name("a predicate register after '@'");
    Symbol* const symbol = scopes_.find(name.text);
    if (!symbol) lexer_.fail(name.line, "undefined register " + quoted(name.text));
    if (symbol->kind != Symbol::Kind::reg || symbol->type != Type::pred) {
      lexer_.fail(name.line, "the guard " + quoted(name.text) + " is not a predicate register");
    }
    instruction.guard = register_index(name.text, *symbol);
    opcode = expect_name("an instruction after the guard");
  }
  instruction.opcode = opcode->text;
  instruction.line = opcode->line;
  instruction.source = lines_.source();
  instruction.outermost = lines_.outermost();
  while (lexer_.at(Token::Kind::directive)) {
    instruction.modifiers.emplace_back(lexer_.token().text);
    lexer_.take();
  }
  function_.body.push_back(std::move(instruction));
  parse_operands();
}

void Parser::parse_operands() {
  const auto index = static_cast<std::uint32_t>(function_.body.size() - 1);
  const std::string& opcode = function_.body.back().opcode;
  std::vector<Operand>& operands = function_.body.back().operands;
  const bool is_call = opcode == "call";
  bool has_function = false;  // of a call
  if (!lexer_.at(";")) {
    do {
      const bool names_label =
          opcode == "bra" || (opcode == "brx" && !operands.empty()) || (is_call && has_function);
      if (names_label && lexer_.at(Token::Kind::identifier)) {
        const Token name = lexer_.take();
        pending_labels_.push_back(
            {false, index, static_cast<std::uint32_t>(operands.size()), name.line, name.text});
        operands.push_back(named_operand(Operand::Kind::label, name.text));
        continue;
      }
      if (is_call && !has_function && lexer_.at(Token::Kind::identifier) &&
          lexer_.token().text[0] != '%') {
        const Symbol* const symbol = scopes_.find(lexer_.token().text);
        if (!symbol || symbol->kind != Symbol::Kind::reg) {
          const Token name = lexer_.take();
          if (symbol) lexer_.fail(name.line, quoted(name.text) + " is not a function");
          pending_names_.push_back({name.text, name.line, true});
          operands.push_back(named_operand(Operand::Kind::variable, name.text));
          has_function = true;
          continue;
        }
      }
      operands.push_back(parse_operand(0));
      const Operand::Kind kind = operands.back().kind;
      has_function = has_function || kind == Operand::Kind::reg;
      if ((kind == Operand::Kind::reg || kind == Operand::Kind::vector ||
           kind == Operand::Kind::sink) &&
          lexer_.accept("|")) {
        operands.back().paired = true;
        operands.push_back(parse_operand(0));
      }
    } while (lexer_.accept(","));
  }
  if (!lexer_.accept(";")) {
    lexer_.fail_expected("';' after the operands of " + function_.body.back().full_opcode());
  }
}

Operand Parser::parse_operand(int depth) {
  const Token& token = lexer_.token();
  if (depth > max_operand_depth) {
    lexer_.fail(token.line, "the operands of " + function_.body.back().full_opcode() +
                                " are nested too deeply");
  }
  if (token.is("[")) return parse_bracket(depth);
  if (token.is("{")) return parse_list(Operand::Kind::vector, "}", depth);
  if (token.is("(") && function_.body.back().opcode == "call") {
    return parse_list(Operand::Kind::arguments, ")", depth);
  }
  if (token.is("!")) {
    lexer_.take();
    if (!lexer_.at(Token::Kind::identifier)) {
      const Constant value = parse_constant_term(lexer_);
      return new_operand(Operand::Kind::integer, value.bits == 0);
    }
    const Token name = lexer_.token();
    Operand operand = parse_name();
    if (operand.kind == Operand::Kind::predicate_constant) {
      operand.integer = 0;
    } else if (operand.kind == Operand::Kind::reg &&
               function_.registers[operand.index].type == Type::pred) {
      operand.negated = true;
    } else {
      lexer_.fail(name.line, "'!' before " + quoted(name.text) + ", which is not a predicate");
    }
    return operand;
  }
  if (token.kind == Token::Kind::identifier && token.text == "_") {
    lexer_.take();
    return new_operand(Operand::Kind::sink);
  }
  if (token.is("-") && function_.body.back().opcode == "vmad") {
    lexer_.take();
    Operand operand = parse_operand(depth + 1);
    operand.negated = operand.kind == Operand::Kind::reg;
    operand.integer = operand.kind == Operand::Kind::integer ? -operand.integer : operand.integer;
    return operand;
  }
  if (starts_constant(token)) {
    const Constant value = parse_constant(lexer_);
    Operand operand =
        new_operand(value.is_floating() ? Operand::Kind::floating : Operand::Kind::integer,
                    static_cast<std::int64_t>(value.bits));
    if (value.is_floating()) operand.literal = value.type;
    return operand;
  }
  if (token.kind == Token::Kind::identifier) return parse_name();
  lexer_.fail_expected("an operand of " + function_.body.back().full_opcode());
}

Operand Parser::parse_list(Operand::Kind kind, std::string_view end, int depth) {
  lexer_.take();
  Operand list = new_operand(kind);
  if (!lexer_.accept(end)) {
    do {
      list.elements.push_back(parse_operand(depth + 1));
    } while (lexer_.accept(","));
    expect(end, "or ',' in the operands of " + function_.body.back().full_opcode());
  }
  return list;
}

Operand Parser::parse_bracket(int depth) {
  lexer_.take();
  const Token first = lexer_.token();
  Operand result = new_operand(Operand::Kind::address);
  Operand base = parse_operand(depth + 1);
  if (base.kind == Operand::Kind::reg) {
    result.integer = parse_addends(lexer_);
  } else if (base.kind == Operand::Kind::variable) {
    result.integer = std::exchange(base.integer, 0);
  } else if (base.kind != Operand::Kind::integer || lexer_.at(",")) {
    lexer_.fail(first.line, "expected a register, a variable or a number as the address of " +
                                function_.body.back().full_opcode() + ", found " +
                                quoted(first.text));
  }
  result.elements.push_back(std::move(base));
  if (lexer_.at(",")) {
    if (result.integer != 0) lexer_.fail_expected("']' after the offset of the address");
    result.kind = Operand::Kind::texture;
    while (lexer_.accept(",")) result.elements.push_back(parse_operand(depth + 1));
  }
  expect("]", "after the address of " + function_.body.back().full_opcode());
  return result;
}

/// A register, special register, variable or function.
Operand Parser::parse_name() {
  const Token name = lexer_.take();
  if (Symbol* const symbol = scopes_.find(name.text)) {
    if (symbol->kind == Symbol::Kind::reg) {
      Operand operand = new_operand(Operand::Kind::reg);
      operand.index = register_index(name.text, *symbol);
      if (lexer_.at(Token::Kind::directive)) {
        if (symbol->vector == 1 && is_video(function_.body.back().opcode) &&
            is_selector(lexer_.token().text)) {
          operand.selector = lexer_.take().text;
          return operand;
        }
        if (symbol->vector == 1) {
          lexer_.fail(name.line, quoted(name.text) + " is not a vector register, but ." +
                                     std::string(lexer_.token().text) + " of it is used");
        }
        operand.component = parse_component(name.text, symbol->vector);
      }
      return operand;
    }
    if (symbol->kind != Symbol::Kind::variable) {
      lexer_.fail(name.line, quoted(name.text) + " is a label, not an operand of " +
                                 function_.body.back().full_opcode());
    }
    Operand operand = named_operand(Operand::Kind::variable, symbol->name);
    operand.integer = parse_addends(lexer_);
    return operand;
  }
  if (name.text[0] == '%') {
    const std::optional<SpecialRegister> special = special_register_named(name.text);
    if (!special) lexer_.fail(name.line, "undefined register " + quoted(name.text));
    Operand operand = new_operand(Operand::Kind::special);
    operand.component = special->number;
    operand.special = special->special;
    if (special->is_vector) operand.component = parse_component(name.text, 4);
    return operand;
  }
  const std::string text(name.text);
  if (!names_.contains(text)) {
    if (name.text == "PT") return new_operand(Operand::Kind::predicate_constant, 1);
    if (function_.body.back().opcode != "mov") {
      lexer_.fail(name.line, "undefined name " + quoted(name.text));
    }
    pending_names_.push_back({name.text, name.line, false});
  }
  Operand operand = named_operand(Operand::Kind::variable, text);
  operand.integer = parse_addends(lexer_);
  return operand;
}

std::uint8_t Parser::parse_component(std::string_view name, std::uint32_t elements) {
  const auto component =
      lexer_.at(Token::Kind::directive) ? component_named(lexer_.token().text) : std::nullopt;
  if (!component || *component >= elements) {
    lexer_.fail_expected("one of the components " +
                         std::string(elements == 2 ? ".x .y" : ".x .y .z .w") + " after " +
                         quoted(name));
  }
  lexer_.take();
  return *component;
}

}  // namespace warpstack::ptx
