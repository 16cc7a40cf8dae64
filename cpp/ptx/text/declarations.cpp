#include <algorithm>
#include <bit>
#include <utility>

#include "ptx/text/constant.h"
#include "ptx/text/parser.h"

// Variables and registers: types, alignments, dimensions and names.

namespace warpstack::ptx {
namespace {

constexpr std::size_t max_dimensions = 16;
constexpr std::uint64_t max_register_count = std::uint64_t{1} << 24;
constexpr std::uint64_t max_alignment = std::uint64_t{1} << 20;

bool is_opaque_type(std::string_view word) {
  return word == "texref" || word == "samplerref" || word == "surfref";
}

}  // namespace

std::uint32_t Parser::parse_alignment() {
  const std::uint32_t line = lexer_.take().line;
  const std::uint64_t value = parse_count("the alignment", 1, max_alignment);
  if (!std::has_single_bit(value)) {
    lexer_.fail(line, "the alignment " + std::to_string(value) + " is not a power of two");
  }
  return static_cast<std::uint32_t>(value);
}

DeclarationHead Parser::parse_head(bool is_parameter) {
  DeclarationHead head;
  bool is_pointer = false;  // `.ptr .global .align 16` describes the target of a parameter
  while (lexer_.at(Token::Kind::directive)) {
    const std::string_view word = lexer_.token().text;
    const Type type = type_named(word);
    if (word == "align") {
      const std::uint32_t alignment = parse_alignment();
      if (!is_pointer) head.alignment = alignment;
      continue;
    }
    if (word == "attribute") {
      skip_attribute();
      continue;
    }
    if (type != Type::none) {
      if (head.type != Type::none) lexer_.fail_expected("one type");
      head.type = type;
    } else if (word == "v2" || word == "v4") {
      head.vector = word == "v2" ? 2 : 4;
    } else if (is_opaque_type(word)) {
      head.opaque = word;
    } else if (is_parameter && word == "ptr") {
      is_pointer = true;
    } else if (!is_pointer || space_named(word) == Space::none) {
      lexer_.fail_expected("a type, .align or a name in the declaration");
    }
    lexer_.take();
  }
  if (head.type == Type::none && head.opaque.empty()) lexer_.fail_expected("a type");
  return head;
}

/// Reads the dimensions of an array and settles size and alignment.
void Parser::finish_variable(Variable& variable, const DeclarationHead& head) {
  variable.opaque = head.opaque;
  variable.type = variable.opaque.empty() ? head.type : Type::b64;
  if (variable.type == Type::pred) {
    lexer_.fail(variable.line,
                quoted(variable.name) + " is a variable of type .pred; only registers can be");
  }
  const std::uint32_t vector = variable.opaque.empty() ? head.vector : 1;
  const std::uint32_t natural = bytes_of(variable.type) * vector;
  variable.alignment = std::max(head.alignment, natural);
  std::vector<std::uint64_t> dimensions;
  bool is_unsized = false;
  while (lexer_.accept("[")) {
    variable.is_array = true;
    if (dimensions.size() == max_dimensions) {
      lexer_.fail(variable.line, quoted(variable.name) + " has more than " +
                                     std::to_string(max_dimensions) + " dimensions");
    }
    if (dimensions.empty() && lexer_.at("]")) {
      is_unsized = true;
      dimensions.push_back(0);
    } else {
      const Constant count = parse_constant(lexer_);
      if (count.is_floating() || count.bits > max_variable_bytes) {
        lexer_.fail(lexer_.last_line(), "the size of " + quoted(variable.name) +
                                            " is not a number of elements below 2^40");
      }
      dimensions.push_back(count.bits);
    }
    expect("]", "after the size of the array");
  }
  std::uint64_t bytes = natural;
  bool is_empty = false;
  for (const std::uint64_t count : dimensions) {
    is_empty = is_empty || count == 0;
    const std::uint64_t factor = std::max<std::uint64_t>(count, 1);
    if (bytes > max_variable_bytes / factor) {
      lexer_.fail(variable.line, quoted(variable.name) + " is larger than 1 TiB");
    }
    bytes *= factor;
  }
  variable.size = is_empty ? 0 : bytes;
  if (lexer_.accept("=")) {
    if (!variable.opaque.empty()) {
      // Properties of a sampler, `{addr_mode_0 = wrap, …}`: the host's objects have their own.
      skip_brackets("{", "}", variable.line, "an initial value");
    } else {
      parse_initial_value(variable, std::move(dimensions), vector, is_unsized);
    }
  }
}

void Parser::parse_variables(Space space, Linkage linkage,
                             const std::function<void(Variable, std::string_view)>& declare) {
  if (space == Space::constant && lexer_.accept("[")) {  // banks of old PTX
    parse_count("the constant bank", 0, 10);
    expect("]", "after the constant bank");
  }
  const DeclarationHead head = parse_head(false);
  do {
    const Token name = expect_name("the name of a variable");
    Variable variable = new_variable(name, space);
    variable.linkage = linkage;
    finish_variable(variable, head);
    if (variable.is_array && variable.size == 0 && !variable.is_extern()) {
      lexer_.fail(name.line, quoted(name.text) + " has no size; only .extern arrays need none");
    }
    declare(std::move(variable), name.text);
  } while (lexer_.accept(","));
  expect(";", "after the declaration");
}

void Parser::declare_module_variable(Variable variable) {
  const auto [entry, is_new] =
      names_.try_emplace(variable.name, ModuleName{false, module_.variables.size()});
  if (is_new) {
    module_.variables.push_back(std::move(variable));
    return;
  }
  if (entry->second.is_function) {
    fail_duplicate(lexer_, variable.name, variable.line,
                   module_.functions[entry->second.index].line);
  }
  Variable& first = module_.variables[entry->second.index];
  const bool are_common = first.linkage == Linkage::common && variable.linkage == Linkage::common;
  if (!first.is_extern() && !variable.is_extern() && !are_common) {
    fail_duplicate(lexer_, variable.name, variable.line, first.line);
  }
  if (first.space != variable.space || first.type != variable.type) {
    lexer_.fail(variable.line, quoted(variable.name) + " has another type or state space than on " +
                                   "line " + std::to_string(first.line));
  }
  if (first.is_extern() && !variable.is_extern()) first = std::move(variable);
}

void Parser::parse_registers() {
  lexer_.take();
  const DeclarationHead head = parse_head(false);
  if (!head.opaque.empty()) lexer_.fail_expected("the type of the registers");
  const auto vector = static_cast<std::uint8_t>(head.vector);
  do {
    const Token name = expect_name("the name of a register");
    if (lexer_.accept("<")) {
      const std::uint64_t count = parse_count("the number of registers", 0, max_register_count);
      expect(">", "after the number of registers");
      scopes_.declare_range(name.text, {head.type, vector, name.line, count});
    } else {
      scopes_.declare(name.text, {.kind = Symbol::Kind::reg,
                                  .type = head.type,
                                  .vector = vector,
                                  .line = name.line,
                                  .index = unnamed_register});
    }
  } while (lexer_.accept(","));
  expect(";", "after the registers");
}

void Parser::declare_local_variable(Variable variable, std::string_view name) {
  std::string unique = variable.name;
  const auto is_taken = [this](const std::string& candidate) {
    return local_names_.contains(candidate) || names_.contains(candidate);
  };
  if (is_taken(unique)) {
    std::uint32_t& suffix = local_names_.try_emplace(variable.name, 1).first->second;
    do {
      unique = variable.name + "$" + std::to_string(++suffix);
    } while (is_taken(unique));
  }
  local_names_.emplace(unique, 1);
  scopes_.declare(name, {.kind = Symbol::Kind::variable, .line = variable.line, .name = unique});
  variable.name = std::move(unique);
  function_.variables.push_back(std::move(variable));
}

}  // namespace warpstack::ptx
