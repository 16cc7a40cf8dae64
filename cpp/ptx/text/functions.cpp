#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "ptx/text/constant.h"
#include "ptx/text/parser.h"

// Kernels and functions: heads, scopes, labels and the directives between instructions.

namespace warpstack::ptx {
namespace {

/// Directives that may follow a declaration without a semicolon.
bool begins_module_item(std::string_view word) {
  static constexpr std::string_view words[] = {"extern", "visible", "weak",  "common",      "entry",
                                               "func",   "global",  "const", "shared",      "tex",
                                               "file",   "section", "alias", "address_size"};
  return std::ranges::find(words, word) != std::end(words);
}

}  // namespace

void Parser::parse_parameters(std::vector<Variable>& parameters, bool is_prototype) {
  // '(' is taken.
  if (lexer_.accept(")")) return;
  do {
    const bool is_register = at_directive("reg");
    if (!is_register && !at_directive("param")) lexer_.fail_expected("a parameter (.param)");
    lexer_.take();
    const DeclarationHead head = parse_head(true);
    const Token name = expect_name("the name of a parameter");
    Variable variable = new_variable(name, is_register ? Space::none : Space::param);
    if (is_register) {
      variable.type = head.type;
      variable.alignment = head.type == Type::pred ? 4 : bytes_of(head.type);
      variable.size = std::uint64_t{variable.alignment} * head.vector;
    } else {
      finish_variable(variable, head);
    }
    if (!is_prototype && name.text != "_") {
      Symbol symbol{.kind = is_register ? Symbol::Kind::reg : Symbol::Kind::variable,
                    .type = head.type,
                    .vector = static_cast<std::uint8_t>(head.vector),
                    .line = name.line,
                    .index = unnamed_register,
                    .name = variable.name};
      if (is_register) variable.reg = register_index(name.text, symbol);
      scopes_.declare(name.text, std::move(symbol));
      local_names_.emplace(variable.name, 1);
    }
    parameters.push_back(std::move(variable));
  } while (lexer_.accept(","));
  expect(")", "after the parameters");
}

std::array<std::uint32_t, 3> Parser::parse_dimensions() {
  std::array<std::uint32_t, 3> result{1, 1, 1};
  std::size_t i = 0;
  do {
    if (i == 3) lexer_.fail_expected("at most three dimensions");
    result[i++] = static_cast<std::uint32_t>(parse_count("a dimension", 1, 0x7fffffff));
  } while (lexer_.accept(","));
  return result;
}

void Parser::parse_performance_directives(Function& function) {
  while (lexer_.at(Token::Kind::directive)) {
    const std::string_view word = lexer_.token().text;
    if (word == "pragma") {
      skip_pragma();
      continue;
    }
    if (word == "attribute") {
      skip_attribute();
      continue;
    }
    if (word == "loc") {
      parse_location();
      continue;
    }
    const bool has_count = word == "minnctapersm" || word == "maxnctapersm" || word == "maxnreg" ||
                           word == "maxclusterrank" || word == "abi_preserve" ||
                           word == "abi_preserve_control";
    const bool stands_alone =
        word == "noreturn" || word == "explicitcluster" || word == "blocksareclusters";
    const bool has_dimensions =
        word == "maxntid" || word == "reqntid" || word == "reqnctapercluster";
    if (!has_count && !stands_alone && !has_dimensions) {
      if (begins_module_item(word)) return;
      lexer_.fail_expected("the body or ';' after the head of " + quoted(function.name));
    }
    lexer_.take();
    if (has_count) parse_count("the value of ." + std::string(word), 0, 0xffffffff);
    if (has_dimensions) {
      const auto dimensions = parse_dimensions();
      if (word == "maxntid") function.max_threads = dimensions;
      if (word == "reqntid") function.required_threads = dimensions;
      if (word == "reqnctapercluster") function.required_cluster = dimensions;
    }
  }
}

void Parser::parse_function(bool is_entry, Linkage linkage) {
  function_ = {};
  scopes_.clear();
  pending_labels_.clear();
  local_names_.clear();
  lines_.forget_callers();
  scopes_.open(pending_labels_.size());
  function_.is_entry = is_entry;
  function_.linkage = linkage;
  while (at_directive("attribute") || at_directive("noreturn")) {
    if (lexer_.token().text == "attribute") {
      skip_attribute();
    } else {
      lexer_.take();
    }
  }
  if (lexer_.at("(")) {
    if (is_entry) lexer_.fail_expected("the name of the kernel");
    lexer_.take();
    parse_parameters(function_.returns, false);
  }
  const Token name = expect_name(is_entry ? "the name of the kernel" : "the name of the function");
  function_.name = name.text;
  function_.line = name.line;
  if (lexer_.accept("(")) parse_parameters(function_.parameters, false);
  parse_performance_directives(function_);
  function_.is_declaration = !lexer_.at("{");
  const std::size_t index = declare_function(function_);
  if (function_.is_declaration) {
    // Old compilers wrote no semicolon.
    const bool goes_on = lexer_.at(Token::Kind::directive) || lexer_.at(Token::Kind::end);
    if (!goes_on) expect(";", "or a body after the head of " + quoted(function_.name));
    return;
  }
  if (linkage == Linkage::external) {
    lexer_.fail(name.line, quoted(name.text) + " is .extern but has a body");
  }
  parse_body();
  lines_.clear();
  module_.functions[index] = std::move(function_);
}

std::size_t Parser::declare_function(const Function& function) {
  const auto [entry, is_new] =
      names_.try_emplace(function.name, ModuleName{true, module_.functions.size()});
  const std::size_t index = entry->second.index;
  if (is_new) {
    module_.functions.push_back(function);
    return index;
  }
  if (!entry->second.is_function) {
    fail_duplicate(lexer_, function.name, function.line, module_.variables[index].line);
  }
  const Function& first = module_.functions[index];
  if (!first.is_declaration && !function.is_declaration) {
    fail_duplicate(lexer_, function.name, function.line, first.line);
  }
  if (!same_signature(first, function)) {
    lexer_.fail(function.line, quoted(function.name) +
                                   " has another signature than its declaration on line " +
                                   std::to_string(first.line));
  }
  return index;
}

/// Resolves names of the scope's labels; other names are left to the outer scopes.
void Parser::close_scope() {
  const Scope scope = scopes_.close();
  std::size_t kept = scope.first_pending;
  for (std::size_t i = kept; i < pending_labels_.size(); ++i) {
    const PendingLabel pending = pending_labels_[i];
    const auto found = scope.symbols.find(pending.name);
    if (found == scope.symbols.end()) {
      if (scopes_.empty()) {
        lexer_.fail(pending.line, "undefined label " + quoted(pending.name));
      }
      pending_labels_[kept++] = pending;
      continue;
    }
    const Symbol& symbol = found->second;
    if (pending.in_list) {
      if (symbol.kind != Symbol::Kind::label) {
        lexer_.fail(pending.line, quoted(pending.name) + " is not a label");
      }
      function_.target_lists[pending.owner].labels[pending.position] = symbol.index;
      continue;
    }
    Operand& operand = function_.body[pending.owner].operands[pending.position];
    if (symbol.kind == Symbol::Kind::label) {
      operand.kind = Operand::Kind::label;
    } else if (symbol.kind == Symbol::Kind::targets) {
      operand.kind = Operand::Kind::targets;
    } else if (symbol.kind == Symbol::Kind::prototype) {
      operand.kind = Operand::Kind::prototype;
    } else {
      lexer_.fail(pending.line, quoted(pending.name) + " is not a label");
    }
    operand.index = symbol.index;
  }
  pending_labels_.resize(kept);
}

void Parser::parse_body() {
  // The scope of the parameters is also that of the body.
  lexer_.take();
  while (!scopes_.empty()) parse_statement();
}

void Parser::parse_statement() {
  const Token& token = lexer_.token();
  switch (token.kind) {
    case Token::Kind::identifier: {
      const Token name = lexer_.take();
      if (lexer_.accept(":")) {
        parse_labelled(name);
      } else {
        parse_instruction(name);
      }
      return;
    }
    case Token::Kind::directive:
      parse_directive();
      return;
    case Token::Kind::symbol:
      if (token.is("@")) {
        parse_instruction({});
        return;
      }
      if (token.is("{")) {
        scopes_.open(pending_labels_.size());
        lexer_.take();
        return;
      }
      if (token.is("}")) {
        close_scope();
        lexer_.take();
        return;
      }
      if (token.is(";")) {
        lexer_.take();
        return;
      }
      break;
    case Token::Kind::end:
      lexer_.fail(token.line, "the file ends inside " + quoted(function_.name) +
                                  ", whose '{' is on line " +
                                  std::to_string(scopes_.innermost().line));
    default:
      break;
  }
  lexer_.fail_expected("an instruction");
}

void Parser::parse_directive() {
  const std::string_view word = lexer_.token().text;
  const Space space = space_named(word);
  if (word == "loc") {
    parse_location();
  } else if (word == "reg") {
    parse_registers();
  } else if (word == "pragma") {
    skip_pragma();
  } else if (word == "file") {
    parse_file();
  } else if (word == "extern" || space != Space::none) {
    const bool is_extern = word == "extern";
    if (is_extern) {
      lexer_.take();
      if (!at_directive("shared")) lexer_.fail_expected("'.shared' after .extern");
    }
    lexer_.take();
    parse_variables(is_extern ? Space::shared : space,
                    is_extern ? Linkage::external : Linkage::local,
                    [this](Variable variable, std::string_view name) {
                      declare_local_variable(std::move(variable), name);
                    });
  } else {
    lexer_.fail_expected("an instruction or a declaration");
  }
}

void Parser::parse_location() {
  lexer_.take();
  const auto read = [this] {
    Location result;
    result.file = static_cast<std::uint32_t>(parse_count("the file of .loc", 0, max_file_number));
    result.line = static_cast<std::uint32_t>(parse_count("the line of .loc", 0, 0xffffffff));
    result.column = static_cast<std::uint32_t>(parse_count("the column of .loc", 0, 0xffffffff));
    return result;
  };
  const Location at = read();
  std::optional<Location> caller;
  SourceLines::FunctionName function;
  while (lexer_.accept(",")) {
    const Token word = expect_name("function_name or inlined_at in .loc");
    if (word.text == "function_name") {
      if (!lexer_.at(Token::Kind::identifier) && !lexer_.at(Token::Kind::directive)) {
        lexer_.fail_expected("a label after function_name");
      }
      function.label = lexer_.take().text;
      function.offset = parse_addends(lexer_);
    } else if (word.text == "inlined_at") {
      caller = read();
    } else {
      lexer_.fail(word.line,
                  "expected function_name or inlined_at in .loc, found " + quoted(word.text));
    }
  }
  lines_.set(at, caller, function);
}

void Parser::parse_labelled(const Token& name) {
  Symbol symbol{.line = name.line};
  if (at_directive("branchtargets") || at_directive("calltargets")) {
    symbol.kind = Symbol::Kind::targets;
    symbol.index = static_cast<std::uint32_t>(function_.target_lists.size());
    parse_target_list(lexer_.take().text);
  } else if (at_directive("callprototype")) {
    symbol.kind = Symbol::Kind::prototype;
    symbol.index = static_cast<std::uint32_t>(function_.prototypes.size());
    lexer_.take();
    parse_prototype();
    function_.prototypes.back().name = name.text;
  } else {
    symbol.kind = Symbol::Kind::label;
    symbol.index = static_cast<std::uint32_t>(function_.body.size());
  }
  scopes_.declare(name.text, std::move(symbol));
}

void Parser::parse_target_list(std::string_view what) {
  const auto owner = static_cast<std::uint32_t>(function_.target_lists.size());
  TargetList list;
  do {
    const Token name = expect_name("a name after ." + std::string(what));
    if (what == "calltargets") {
      pending_names_.push_back({name.text, name.line, true});
      list.functions.emplace_back(name.text);
    } else {
      pending_labels_.push_back(
          {true, owner, static_cast<std::uint32_t>(list.labels.size()), name.line, name.text});
      list.labels.push_back(0);
    }
  } while (lexer_.accept(","));
  expect(";", "after the list of ." + std::string(what));
  function_.target_lists.push_back(std::move(list));
}

void Parser::parse_prototype() {
  Prototype prototype;
  if (lexer_.accept("(")) parse_parameters(prototype.returns, true);
  expect_name("'_' in .callprototype");
  if (lexer_.accept("(")) parse_parameters(prototype.parameters, true);
  Function ignored;
  parse_performance_directives(ignored);
  expect(";", "after .callprototype");
  function_.prototypes.push_back(std::move(prototype));
}

}  // namespace warpstack::ptx
