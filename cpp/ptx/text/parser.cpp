#include "ptx/text/parser.h"

#include <algorithm>
#include <utility>

namespace warpstack::ptx {

std::uint64_t Parser::parse_count(std::string_view what, std::uint64_t smallest,
                                  std::uint64_t largest) {
  if (!lexer_.at(Token::Kind::integer)) lexer_.fail_expected(std::string(what));
  const Token number = lexer_.take();
  if (number.value < smallest || number.value > largest) {
    lexer_.fail(number.line, std::string(what) + " must lie between " + std::to_string(smallest) +
                                 " and " + std::to_string(largest) + ", not " +
                                 quoted(number.text));
  }
  return number.value;
}

void Parser::expect(std::string_view symbol, std::string_view where) {
  if (!lexer_.accept(symbol)) lexer_.fail_expected(quoted(symbol) + " " + std::string(where));
}

Token Parser::expect_name(std::string_view what) {
  if (!lexer_.at(Token::Kind::identifier)) lexer_.fail_expected(std::string(what));
  return lexer_.take();
}

Variable new_variable(const Token& name, Space space) {
  Variable result;
  result.name = name.text;
  result.space = space;
  result.line = name.line;
  return result;
}

Parser::Parser(std::string_view text, std::string file)
    : module_{.target = {},
              .file = std::move(file),
              .sources = {},
              .objects = {},
              .aliases = {},
              .variables = {},
              .functions = {}},
      lexer_(text, module_.file),
      scopes_(lexer_) {}

Module Parser::run() {
  parse_header();
  while (!lexer_.at(Token::Kind::end)) parse_module_item();
  finish();
  return std::move(module_);
}

void Parser::parse_header() {
  if (!at_directive("version")) lexer_.fail_expected("'.version', with which PTX starts");
  lexer_.take();
  const Token version = lexer_.take();
  const std::size_t dot = version.text.find('.');
  const auto is_number = [](std::string_view digits) {
    return !digits.empty() && digits.size() <= 2 &&
           std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  };
  const auto number = [](std::string_view digits) {
    std::uint32_t value = 0;
    for (const char c : digits) value = value * 10 + static_cast<std::uint32_t>(c - '0');
    return value;
  };
  if (version.kind != Token::Kind::floating || dot == std::string_view::npos ||
      !is_number(version.text.substr(0, dot)) || version.text.size() != dot + 2 ||
      !is_number(version.text.substr(dot + 1))) {
    lexer_.fail(version.line,
                "expected a version such as 8.5 after .version, found " + quoted(version.text));
  }
  module_.version = number(version.text.substr(0, dot)) * 10 + number(version.text.substr(dot + 1));

  if (!at_directive("target")) lexer_.fail_expected("'.target' after .version");
  const std::uint32_t line = lexer_.take().line;
  do {
    const Token word = expect_name("a target such as sm_75 after .target");
    if (word.text.starts_with("sm_") && module_.target.empty()) module_.target = word.text;
  } while (lexer_.accept(","));
  if (module_.target.empty()) lexer_.fail(line, ".target names no architecture such as sm_75");
}

void Parser::parse_module_item() {
  if (lexer_.accept("@")) {  // @@DWARF lines of old compilers
    expect("@", "of @@DWARF");
    lexer_.skip_line();
    return;
  }
  if (lexer_.accept(";")) return;
  if (!lexer_.at(Token::Kind::directive)) lexer_.fail_expected("a directive at module scope");
  Linkage linkage = Linkage::local;
  for (;; lexer_.take()) {
    if (at_directive("extern")) {
      linkage = Linkage::external;
    } else if (at_directive("common")) {
      linkage = Linkage::common;
    } else if (at_directive("weak")) {
      linkage = Linkage::weak;
    } else if (at_directive("visible")) {
      linkage = Linkage::visible;
    } else {
      break;
    }
  }
  const std::string_view word = lexer_.token().text;
  const Space space = lexer_.at(Token::Kind::directive) ? space_named(word) : Space::none;
  if (space == Space::global || space == Space::constant || space == Space::shared) {
    lexer_.take();
    parse_variables(space, linkage, [&](Variable variable, std::string_view) {
      declare_module_variable(std::move(variable));
    });
  } else if (at_directive("entry") || at_directive("func")) {
    lexer_.take();
    parse_function(word == "entry", linkage);
  } else if (linkage != Linkage::local) {
    lexer_.fail_expected("a variable or function after the linkage directive");
  } else if (word == "tex") {  // the old form of `.global .texref`
    lexer_.take();
    const DeclarationHead head = parse_head(false);
    do {
      const Token name = expect_name("the name of the texture");
      Variable variable = new_variable(name, Space::global);
      finish_variable(variable, {.type = head.type, .opaque = "texref"});
      declare_module_variable(std::move(variable));
    } while (lexer_.accept(","));
    expect(";", "after the .tex declaration");
  } else if (word == "address_size") {
    lexer_.take();
    module_.address_size = static_cast<std::uint32_t>(parse_count("the address size", 32, 64));
    if (module_.address_size != 32 && module_.address_size != 64) {
      lexer_.fail(lexer_.last_line(), "the address size must be 32 or 64");
    }
  } else if (word == "file") {
    parse_file();
  } else if (word == "loc") {
    parse_location();
  } else if (word == "section") {
    parse_section();
  } else if (word == "pragma") {
    skip_pragma();
  } else if (word == "alias") {
    parse_alias();
  } else {
    lexer_.fail_expected("a directive of module scope");
  }
}

void Parser::parse_file() {
  lexer_.take();
  const std::uint64_t number = parse_count("the file number", 0, max_file_number);
  if (!lexer_.at(Token::Kind::string)) lexer_.fail_expected("a file name after .file");
  const std::string_view text = lexer_.take().text;
  trace::SourceFile file;
  if (lexer_.accept(",")) {
    file.time = parse_count("the file's time", 0, ~std::uint64_t{0});
    expect(",", "between the file's time and size");
    file.bytes = parse_count("the file's size", 0, ~std::uint64_t{0});
  }
  if (number == 0) return;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escapes =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '\\' || text[i + 1] == '"');
    file.name += text[escapes ? ++i : i];
  }
  auto& files = module_.sources.files;
  if (files.size() < number) files.resize(number);
  files[number - 1] = std::move(file);
}

void Parser::parse_section() {
  const std::uint32_t line = lexer_.take().line;
  const bool has_names = at_directive("debug_str");
  while (!lexer_.at("{")) {
    if (lexer_.at(Token::Kind::end)) lexer_.fail_expected("'{' of the section");
    lexer_.take();
  }
  if (has_names) {
    parse_names(line);
  } else {
    skip_brackets("{", "}", line, "a section");
  }
}

void Parser::parse_names(std::uint32_t line) {
  std::size_t depth = 0;
  do {
    if (lexer_.at(Token::Kind::end)) lexer_.fail(line, "a section without its end '}'");
    if (lexer_.at("{")) ++depth;
    if (lexer_.at("}")) --depth;
    const Token token = lexer_.take();
    if (token.kind == Token::Kind::integer) {
      lines_.add_to_names(static_cast<char>(token.value));
    } else if (lexer_.accept(":")) {
      lines_.label_names(token.text);
    }
  } while (depth > 0);
}

void Parser::parse_alias() {
  lexer_.take();
  const Token name = expect_name("the name of the alias");
  expect(",", "after the name of the alias");
  const Token target = expect_name("the function that the alias stands for");
  expect(";", "after the alias");
  aliases_.push_back({std::string(name.text), std::string(target.text), name.line});
}

void Parser::finish() {
  module_.sources.calls = lines_.take_calls();
  // The file of a call may lack its .file.
  for (trace::InlinedCall& call : module_.sources.calls) {
    if (call.file > module_.sources.files.size()) call.file = call.line = 0;
  }
  for (const PendingName& pending : pending_names_) {
    const auto found = names_.find(std::string(pending.name));
    if (found == names_.end()) {
      lexer_.fail(pending.line,
                  std::string(pending.is_function ? "undefined function "
                                                  : "undefined variable or function ") +
                      quoted(pending.name));
    }
    if (pending.is_function && !found->second.is_function) {
      lexer_.fail(pending.line, quoted(pending.name) + " is not a function");
    }
  }
  if (aliases_.empty()) return;
  // Replaces aliases by the functions that they stand for.
  std::unordered_map<std::string_view, std::string_view> targets;
  for (const Alias& alias : aliases_) {
    for (const std::string& name : {alias.name, alias.target}) {
      const auto found = names_.find(name);
      if (found == names_.end() || !found->second.is_function) {
        lexer_.fail(alias.line, ".alias names " + quoted(name) + ", which is not a function");
      }
    }
    if (!module_.functions[names_.at(alias.name).index].is_declaration) {
      lexer_.fail(alias.line, "the alias " + quoted(alias.name) + " has a body of its own");
    }
    if (module_.functions[names_.at(alias.target).index].is_declaration) {
      lexer_.fail(alias.line, "the alias " + quoted(alias.name) + " stands for " +
                                  quoted(alias.target) + ", which has no body");
    }
    if (!targets.emplace(alias.name, alias.target).second) {
      lexer_.fail(alias.line, "a second alias " + quoted(alias.name));
    }
  }
  const auto replace = [&targets](std::string& name) {
    if (const auto found = targets.find(name); found != targets.end()) name = found->second;
  };
  const auto replace_addresses = [&replace](std::vector<Variable>& variables) {
    for (Variable& variable : variables) {
      for (AddressInitializer& address : variable.addresses) replace(address.symbol);
    }
  };
  for (Function& function : module_.functions) {
    for (Instruction& instruction : function.body) {
      for (Operand& operand : instruction.operands) {
        if (operand.kind == Operand::Kind::variable) replace(operand.name);
      }
    }
    for (TargetList& list : function.target_lists) std::ranges::for_each(list.functions, replace);
    replace_addresses(function.variables);
  }
  replace_addresses(module_.variables);
  for (const Alias& alias : aliases_) module_.aliases.emplace_back(alias.name, alias.target);
  std::erase_if(module_.functions,
                [&targets](const Function& function) { return targets.contains(function.name); });
}

void Parser::skip_brackets(std::string_view open, std::string_view close, std::uint32_t line,
                           std::string_view what) {
  if (!lexer_.at(open)) lexer_.fail_expected(quoted(open) + " of " + std::string(what));
  std::size_t depth = 0;
  do {
    if (lexer_.at(Token::Kind::end)) {
      lexer_.fail(line, std::string(what) + " without its end " + quoted(close));
    }
    if (lexer_.at(open)) ++depth;
    if (lexer_.at(close)) --depth;
    lexer_.take();
  } while (depth > 0);
}

void Parser::skip_attribute() {
  const std::uint32_t line = lexer_.take().line;
  skip_brackets("(", ")", line, "an .attribute");
}

void Parser::skip_pragma() {
  lexer_.take();
  do {
    if (!lexer_.at(Token::Kind::string)) lexer_.fail_expected("a string after .pragma");
    lexer_.take();
  } while (lexer_.accept(","));
  expect(";", "after .pragma");
}

Module parse(std::string_view text, std::string file) {
  return Parser(text, std::move(file)).run();
}

}  // namespace warpstack::ptx
