#include <algorithm>
#include <utility>

#include "common/error.h"
#include "ptx/text/constant.h"
#include "ptx/text/parser.h"
#include "ptx/text/special_register.h"

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

/// An error's message without file and line, which lower() adds.
std::string reason_of(const InputError& error, const std::string& file) {
  const std::string text = error.what();
  const std::size_t line = file.size() + 1;
  return text.substr(text.find_first_not_of("0123456789", line) + 2);
}

/// A vector register without a component stands for all of them.
Operand whole_vector(const Operand& reg, std::uint8_t elements) {
  Operand result = new_operand(Operand::Kind::vector);
  result.elements.assign(elements, reg);
  for (std::uint8_t i = 0; i < elements; ++i) result.elements[i].component = i;
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

/// Reads an instruction. One that is not understood gets a problem, and the rest of the text is
/// read.
void Parser::parse_instruction(std::optional<Token> opcode) {
  const Lexer begin = lexer_;
  const std::size_t size = function_.body.size();
  const std::size_t labels = pending_labels_.size();
  const std::size_t names = pending_names_.size();
  try {
    read_instruction(opcode);
  } catch (const InputError& error) {
    if (is_unended_ || !lexer_.skip_statement(begin)) throw;
    Instruction refused;
    refused.opcode = opcode ? opcode->text : begin.token().text;
    refused.line = opcode ? opcode->line : begin.token().line;
    if (function_.body.size() > size) refused = std::move(function_.body.back());
    refused.operands.clear();
    refused.problem = reason_of(error, module_.file);
    function_.body.resize(size);
    function_.body.push_back(std::move(refused));
    pending_labels_.resize(labels);
    pending_names_.resize(names);
  }
}

void Parser::read_instruction(std::optional<Token> opcode) {
  Instruction instruction;
  std::optional<Token> guard;
  if (!opcode) {
    lexer_.take();  // '@'
    instruction.guard_negated = lexer_.accept("!");
    guard = expect_name("a predicate register after '@'");
    opcode = expect_name("an instruction after the guard");
  }
  instruction.opcode = opcode->text;
  instruction.line = opcode->line;
  instruction.source = lines_.source();
  while (lexer_.at(Token::Kind::directive)) {
    instruction.modifiers.emplace_back(lexer_.token().text);
    lexer_.take();
  }
  function_.body.push_back(std::move(instruction));
  if (guard) function_.body.back().guard = guard_register(*guard);
  parse_operands();
}

std::uint32_t Parser::guard_register(const Token& name) {
  Symbol* const symbol = scopes_.find(name.text);
  if (!symbol) lexer_.fail(name.line, "undefined register " + quoted(name.text));
  if (symbol->kind != Symbol::Kind::reg || symbol->type != Type::pred) {
    lexer_.fail(name.line, "the guard " + quoted(name.text) + " is not a predicate register");
  }
  return register_index(name.text, *symbol);
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
  end_instruction();
}

void Parser::end_instruction() {
  if (lexer_.accept(";")) return;
  // A token at the start of a line also starts the next instruction.
  is_unended_ = lexer_.token().line > lexer_.last_line() && !lexer_.at(Token::Kind::symbol);
  lexer_.fail_expected("';' after the operands of " + function_.body.back().full_opcode());
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
  if (token.kind == Token::Kind::identifier) {
    Operand operand = parse_name();
    if (operand.kind != Operand::Kind::variable || !lexer_.at("[")) return operand;
    parse_index(operand);
    // `ld.global.u32 x, a[2]` loads the element, `mov.u64 x, a[2]` takes its address.
    if (depth > 0 || function_.body.back().opcode == "mov") return operand;
    Operand element = new_operand(Operand::Kind::address, std::exchange(operand.integer, 0));
    element.elements.push_back(std::move(operand));
    return element;
  }
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
    result.integer = std::exchange(base.integer, 0) + parse_addends(lexer_);
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
      } else if (symbol->vector > 1) {
        return whole_vector(operand, symbol->vector);
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

/// Type of the elements of a variable that the function sees.
Type Parser::element_type(const std::string& variable) const {
  for (const auto* own : {&function_.variables, &function_.parameters, &function_.returns}) {
    const auto found = std::ranges::find(*own, variable, &Variable::name);
    if (found != own->end()) return found->type;
  }
  const auto found = names_.find(variable);
  if (found == names_.end() || found->second.is_function) return Type::none;
  return module_.variables[found->second.index].type;
}

/// `[i]` behind the name of an array: its element i, a constant or a register.
void Parser::parse_index(Operand& array) {
  const Token bracket = lexer_.take();
  const std::uint32_t bytes = bytes_of(element_type(array.name));
  if (bytes == 0) lexer_.fail(bracket.line, quoted(array.name) + " is not an array");
  if (lexer_.at(Token::Kind::identifier) && !starts_constant(lexer_.token())) {
    const Token name = lexer_.token();
    Operand index = parse_name();
    if (index.kind != Operand::Kind::reg) {
      lexer_.fail(name.line, "expected a number or a register as the index of " +
                                 quoted(array.name) + ", found " + quoted(name.text));
    }
    array.index = bytes;
    array.integer += parse_addends(lexer_) * bytes;
    array.elements.push_back(std::move(index));
  } else {
    const Constant index = parse_constant(lexer_);
    if (index.is_floating()) {
      lexer_.fail(bracket.line, "the index of " + quoted(array.name) + " is not an integer");
    }
    array.integer += static_cast<std::int64_t>(index.bits * bytes);
  }
  expect("]", "after the index of " + quoted(array.name));
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
