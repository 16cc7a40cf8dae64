#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ptx/text/constant.h"
#include "ptx/text/lexer.h"
#include "ptx/module.h"
#include "ptx/special_register.h"

namespace warpstack::ptx {
namespace {

constexpr std::size_t max_scopes = 200;
constexpr int max_operand_depth = 4;  ///< `[t, {x, y}]` has two levels
constexpr std::size_t max_dimensions = 16;
constexpr std::uint64_t max_register_count = std::uint64_t{1} << 24;
constexpr std::uint64_t max_variable_bytes = std::uint64_t{1} << 40;
constexpr std::uint64_t max_initial_bytes = std::uint64_t{1} << 28;  ///< of the whole module
constexpr std::uint64_t max_alignment = std::uint64_t{1} << 20;
constexpr std::uint64_t max_file_number = 1 << 16;
constexpr std::size_t max_register_digits = 8;
constexpr int max_inline_depth = 64;

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

Space space_named(std::string_view word) {
  for (const Space space :
       {Space::global, Space::constant, Space::shared, Space::local, Space::param}) {
    if (name_of(space) == word) return space;
  }
  return Space::none;
}

bool is_opaque_type(std::string_view word) {
  return word == "texref" || word == "samplerref" || word == "surfref";
}

/// Calls `found(prefix, number)` for every way to read a name as a member of a parameterised
/// declaration: `%r15` is number 15 of `%r` and number 5 of `%r1`. Stops when it returns true.
template <typename Found>
void for_each_member_reading(std::string_view name, Found found) {
  std::uint64_t number = 0;
  std::uint64_t scale = 1;
  for (std::size_t digits = 1; digits <= max_register_digits && digits < name.size(); ++digits) {
    const char digit = name[name.size() - digits];
    if (digit < '0' || digit > '9') return;
    number += scale * static_cast<std::uint64_t>(digit - '0');
    scale *= 10;
    if (digit == '0' && digits > 1) continue;  // %r05 is no member
    if (found(name.substr(0, name.size() - digits), number)) return;
  }
}

Variable new_variable(const Token& name, Space space) {
  Variable result;
  result.name = name.text;
  result.space = space;
  result.line = name.line;
  return result;
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

struct Symbol {
  enum class Kind : std::uint8_t { reg, variable, label, targets, prototype };
  Kind kind = Kind::reg;
  Type type = Type::none;   ///< of a register
  std::uint8_t vector = 1;  ///< of a register
  std::uint32_t line = 0;   ///< of the declaration
  std::uint32_t index = 0;  ///< see Kind; unnamed_register for a register no instruction names yet
  std::string name = {};    ///< of a variable, as operands name it
};
constexpr std::uint32_t unnamed_register = ~std::uint32_t{0};

/// `%r<10>`.
struct RegisterRange {
  Type type = Type::none;
  std::uint8_t vector = 1;
  std::uint32_t line = 0;
  std::uint64_t count = 0;
};

struct Scope {
  std::unordered_map<std::string_view, Symbol> symbols;
  std::unordered_map<std::string_view, RegisterRange> ranges;  ///< by prefix
  /// Smallest member number of each prefix that the declared names could be read as.
  std::unordered_map<std::string_view, std::uint64_t> smallest_members;
  std::size_t first_pending = 0;
  std::uint32_t line = 0;  ///< of its brace
};

/// A label or target list that is named before the end of the scope that declares it.
struct PendingLabel {
  bool in_list = false;        ///< in a target list, else an operand
  std::uint32_t owner = 0;     ///< index of the list or of the instruction
  std::uint32_t position = 0;  ///< in it
  std::uint32_t line = 0;
  std::string_view name;
};

/// A name of module scope that may be declared later.
struct PendingName {
  std::string_view name;
  std::uint32_t line = 0;
  bool is_function = false;  ///< it has to be one
};

/// Type and place that a declaration gives before the names.
struct DeclarationHead {
  Type type = Type::none;
  std::uint32_t vector = 1;
  std::uint32_t alignment = 0;
  std::string opaque;
};

struct Linkage {
  bool is_extern = false;
  bool is_common = false;
};

/// A source position that `.loc` gives, with the column: what the call site of inlined code is
/// recognised by.
struct Location {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool operator==(const Location&) const = default;
  [[nodiscard]] SourcePosition position() const { return {file, line}; }
};

struct LocationHash {
  std::size_t operator()(const Location& at) const {
    return std::hash<std::uint64_t>{}((std::uint64_t{at.file} << 48) ^
                                      (std::uint64_t{at.line} << 16) ^ at.column);
  }
};

class Parser {
 public:
  Parser(std::string_view text, std::string file);
  Module run();

 private:
  // --- the file ---
  void parse_header();
  void parse_module_item();
  void parse_file();
  void parse_section();
  void parse_alias();
  void finish();

  // --- declarations ---
  DeclarationHead parse_head(bool is_parameter);
  std::uint32_t parse_alignment();
  /// Skips from an opening bracket to its partner.
  void skip_brackets(std::string_view open, std::string_view close, std::uint32_t line,
                     std::string_view what);
  void skip_attribute();
  void skip_pragma();
  void finish_variable(Variable& variable, const DeclarationHead& head);
  void parse_initial_value(Variable& variable, std::vector<std::uint64_t> dimensions,
                           std::uint32_t vector, bool is_unsized);
  void parse_initial_list(Variable& variable, const std::vector<std::uint64_t>& extents,
                          std::size_t level, std::uint64_t offset, std::uint64_t& end);
  void parse_initial_element(Variable& variable, std::uint64_t offset);
  void parse_initial_address(Variable& variable, AddressInitializer address);
  void place(Variable& variable, std::uint64_t offset, std::uint64_t bits, std::uint32_t bytes);
  [[noreturn]] void fail_initial_bytes() const;
  /// Reads the declarators of a variable declaration, up to its semicolon.
  template <typename Declare>
  void parse_variables(Space space, bool is_extern, Declare declare);
  void declare_module_variable(Variable variable, bool is_common);

  // --- functions ---
  void parse_function(bool is_entry, const Linkage& linkage);
  void parse_parameters(std::vector<Variable>& parameters, bool is_prototype);
  void parse_performance_directives(Function& function);
  std::array<std::uint32_t, 3> parse_dimensions();
  std::size_t declare_function(const Function& function);
  void parse_body();
  void parse_statement();
  void parse_directive();
  void parse_registers();
  void parse_location();
  void parse_labelled(const Token& name);
  void parse_target_list(std::string_view what);
  void parse_prototype();
  void parse_instruction(std::optional<Token> opcode);
  void open_scope();
  void close_scope();
  void declare(std::string_view name, Symbol symbol);
  void declare_range(std::string_view prefix, const RegisterRange& range);
  void declare_local_variable(Variable variable, std::string_view name);
  [[noreturn]] void fail_duplicate(std::string_view name, std::uint32_t line,
                                   std::uint32_t first_line) const;
  Symbol* find(std::string_view name);
  std::uint32_t register_index(std::string_view name, Symbol& symbol);

  // --- operands ---
  void parse_operands();
  Operand parse_operand(int depth);
  Operand parse_list(Operand::Kind kind, std::string_view end, int depth);
  Operand parse_bracket(int depth);
  Operand parse_name();
  std::uint8_t parse_component(std::string_view name, std::uint32_t elements);

  // --- small words ---
  std::uint64_t parse_count(std::string_view what, std::uint64_t smallest, std::uint64_t largest);
  void expect(std::string_view symbol, std::string_view where);
  Token expect_name(std::string_view what);
  [[nodiscard]] bool at_directive(std::string_view word) const {
    return lexer_.at(Token::Kind::directive) && lexer_.token().text == word;
  }

  Module module_;
  Lexer lexer_;
  std::uint64_t initial_bytes_ = 0;
  struct ModuleName {
    bool is_function = false;
    bool is_common = false;
    std::size_t index = 0;
  };
  std::unordered_map<std::string, ModuleName> names_;
  struct Alias {
    std::string name;
    std::string target;
    std::uint32_t line = 0;
  };
  std::vector<Alias> aliases_;
  std::vector<PendingName> pending_names_;

  // The function being read.
  Function function_;
  std::vector<Scope> scopes_;
  std::vector<PendingLabel> pending_labels_;
  std::unordered_map<std::string, std::uint32_t> local_names_;  ///< to the last suffix tried
  Location location_;
  SourcePosition outermost_;
  /// Where code that `.loc` once placed there was inlined.
  std::unordered_map<Location, Location, LocationHash> inlined_at_;
};

// --- small words --------------------------------------------------------------------------------

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

// --- the file -----------------------------------------------------------------------------------

Parser::Parser(std::string_view text, std::string file)
    : module_{
          .target = {}, .file = std::move(file), .files = {""}, .variables = {}, .functions = {}},
      lexer_(text, module_.file) {}

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
  Linkage linkage;
  bool has_linkage = false;
  for (;; lexer_.take()) {
    if (at_directive("extern")) {
      linkage.is_extern = true;
    } else if (at_directive("common")) {
      linkage.is_common = true;
    } else if (!at_directive("visible") && !at_directive("weak")) {
      break;
    }
    has_linkage = true;
  }
  const std::string_view word = lexer_.token().text;
  const Space space = lexer_.at(Token::Kind::directive) ? space_named(word) : Space::none;
  if (space == Space::global || space == Space::constant || space == Space::shared) {
    lexer_.take();
    parse_variables(space, linkage.is_extern, [&](Variable variable, std::string_view) {
      declare_module_variable(std::move(variable), linkage.is_common);
    });
  } else if (at_directive("entry") || at_directive("func")) {
    lexer_.take();
    parse_function(word == "entry", linkage);
  } else if (has_linkage) {
    lexer_.fail_expected("a variable or function after the linkage directive");
  } else if (word == "tex") {  // the old form of `.global .texref`
    lexer_.take();
    const DeclarationHead head = parse_head(false);
    do {
      const Token name = expect_name("the name of the texture");
      Variable variable = new_variable(name, Space::global);
      finish_variable(variable, {.type = head.type, .opaque = "texref"});
      declare_module_variable(std::move(variable), false);
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
  if (lexer_.accept(",")) {  // modification time and size
    parse_count("the file's time", 0, ~std::uint64_t{0});
    expect(",", "between the file's time and size");
    parse_count("the file's size", 0, ~std::uint64_t{0});
  }
  if (number == 0) return;
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escapes =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '\\' || text[i + 1] == '"');
    name += text[escapes ? ++i : i];
  }
  if (module_.files.size() <= number) module_.files.resize(number + 1);
  module_.files[number] = std::move(name);
}

void Parser::parse_section() {
  const std::uint32_t line = lexer_.take().line;
  while (!lexer_.at("{")) {
    if (lexer_.at(Token::Kind::end)) lexer_.fail_expected("'{' of the section");
    lexer_.take();
  }
  skip_brackets("{", "}", line, "a section");
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
  // Everybody names the function that an alias stands for; the alias disappears.
  std::unordered_map<std::string_view, std::string_view> targets;
  for (const Alias& alias : aliases_) {
    for (const std::string& name : {alias.name, alias.target}) {
      const auto found = names_.find(name);
      if (found == names_.end() || !found->second.is_function) {
        lexer_.fail(alias.line, ".alias names " + quoted(name) + ", which is no function");
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
  std::erase_if(module_.functions,
                [&targets](const Function& function) { return targets.contains(function.name); });
}

// --- declarations -------------------------------------------------------------------------------

std::uint32_t Parser::parse_alignment() {
  const std::uint32_t line = lexer_.take().line;
  const std::uint64_t value = parse_count("the alignment", 1, max_alignment);
  if (!std::has_single_bit(value)) {
    lexer_.fail(line, "the alignment " + std::to_string(value) + " is not a power of two");
  }
  return static_cast<std::uint32_t>(value);
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

DeclarationHead Parser::parse_head(bool is_parameter) {
  DeclarationHead head;
  bool is_pointer = false;  // `.ptr .global .align 16` describes what a parameter points to
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

void Parser::parse_initial_value(Variable& variable, std::vector<std::uint64_t> dimensions,
                                 std::uint32_t vector, bool is_unsized) {
  if (variable.space != Space::global && variable.space != Space::constant) {
    lexer_.fail(variable.line, quoted(variable.name) +
                                   " cannot have an initial value: only .global and .const "
                                   "variables can");
  }
  if (vector > 1) dimensions.push_back(vector);
  if (dimensions.empty()) {
    const bool braces = lexer_.accept("{");
    parse_initial_element(variable, 0);
    if (braces) expect("}", "of the initial value");
    return;
  }
  // Bytes that a list of each level may fill, and at the end those of one element.
  std::vector<std::uint64_t> extents(dimensions.size() + 1);
  extents.back() = bytes_of(variable.type);
  for (std::size_t i = dimensions.size(); i-- > 0;) extents[i] = extents[i + 1] * dimensions[i];
  if (is_unsized) extents[0] = max_variable_bytes;
  std::uint64_t end = 0;
  parse_initial_list(variable, extents, 0, 0, end);
  if (is_unsized && extents[1] > 0) {
    variable.size = (end + extents[1] - 1) / extents[1] * extents[1];
  }
}

/// Braces may be left out at inner levels, as in C. `end` receives the byte after the last value.
void Parser::parse_initial_list(Variable& variable, const std::vector<std::uint64_t>& extents,
                                std::size_t level, std::uint64_t offset, std::uint64_t& end) {
  expect("{", "of the initial values");
  const std::uint64_t element = extents.back();
  const std::uint64_t stride = extents[level + 1];
  std::uint64_t at = 0;
  const auto reserve = [&](std::uint64_t bytes) {
    if (bytes > extents[level] || at > extents[level] - bytes) {
      lexer_.fail(lexer_.token().line, "too many initial values for " + quoted(variable.name));
    }
    end = std::max(end, offset + at + bytes);
  };
  while (!lexer_.at("}")) {
    if (lexer_.at("{") && level + 2 < extents.size() && stride > 0) {
      at = (at + stride - 1) / stride * stride;
      reserve(stride);
      parse_initial_list(variable, extents, level + 1, offset + at, end);
      at += stride;
    } else {
      reserve(element);
      parse_initial_element(variable, offset + at);
      at += element;
    }
    if (!lexer_.accept(",")) break;
  }
  expect("}", "or ',' after an initial value");
}

void Parser::fail_initial_bytes() const {
  lexer_.fail(lexer_.last_line(), "the initial values of the variables exceed 256 MiB");
}

void Parser::place(Variable& variable, std::uint64_t offset, std::uint64_t bits,
                   std::uint32_t bytes) {
  const std::uint64_t end = offset + bytes;
  if (end > variable.initial.size()) {
    initial_bytes_ += end - variable.initial.size();
    if (initial_bytes_ > max_initial_bytes) fail_initial_bytes();
    variable.initial.resize(end);
  }
  for (std::uint32_t i = 0; i < bytes; ++i) {
    variable.initial[offset + i] = i < 8 ? static_cast<std::uint8_t>(bits >> (8 * i)) : 0;
  }
}

void Parser::parse_initial_element(Variable& variable, std::uint64_t offset) {
  if (offset >= max_initial_bytes) fail_initial_bytes();
  AddressInitializer address;
  address.offset = static_cast<std::uint32_t>(offset);
  address.bytes = bytes_of(variable.type);
  if (lexer_.at(Token::Kind::identifier) && lexer_.token().text != "WARP_SZ") {
    parse_initial_address(variable, std::move(address));
    return;
  }
  const std::uint32_t line = lexer_.token().line;
  const Constant value = parse_constant(lexer_);
  if (lexer_.at("(") && value.type != Type::f32 && value.type != Type::f64) {
    // `0xFF00(symbol)`: the byte of the address that the mask keeps.
    const int shift = std::countr_zero(value.bits);
    if (value.bits == 0 || shift % 8 != 0 || value.bits >> shift != 0xFF) {
      lexer_.fail(line, "the mask of an address must keep one byte, such as 0xFF00");
    }
    lexer_.take();
    address.byte_shift = static_cast<std::uint32_t>(shift);
    parse_initial_address(variable, std::move(address));
    expect(")", "after the masked address");
    return;
  }
  std::uint64_t bits = value.bits;
  const Type type = variable.type;
  if (type == Type::f32 || (type == Type::b32 && value.is_floating())) {
    if (value.type != Type::f32) {
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(value.number()));
    }
  } else if (type == Type::f64 || (type == Type::b64 && value.is_floating())) {
    if (value.type != Type::f64) bits = std::bit_cast<std::uint64_t>(value.number());
  } else if (value.is_floating() || is_float(type)) {
    lexer_.fail(line, "the initial value of " + quoted(variable.name) +
                          " does not match its type ." + std::string(name_of(type)));
  }
  place(variable, offset, bits, address.bytes);
}

void Parser::parse_initial_address(Variable& variable, AddressInitializer address) {
  Token symbol = expect_name("a symbol");
  if (symbol.text == "generic" && lexer_.accept("(")) {
    address.generic = true;
    symbol = expect_name("a symbol in generic()");
    address.addend = parse_addends(lexer_);
    expect(")", "of generic()");
  }
  address.symbol = symbol.text;
  address.addend += parse_addends(lexer_);
  if (is_float(variable.type) || (address.bytes != 8 && address.bytes != 4 && address.bytes != 1)) {
    lexer_.fail(symbol.line, "an address does not fit in an element of " + quoted(variable.name) +
                                 ", of type ." + std::string(name_of(variable.type)));
  }
  pending_names_.push_back({symbol.text, symbol.line, false});
  place(variable, address.offset, 0, address.bytes);
  variable.addresses.push_back(std::move(address));
}

template <typename Declare>
void Parser::parse_variables(Space space, bool is_extern, Declare declare) {
  if (space == Space::constant && lexer_.accept("[")) {  // banks of old PTX
    parse_count("the constant bank", 0, 10);
    expect("]", "after the constant bank");
  }
  const DeclarationHead head = parse_head(false);
  do {
    const Token name = expect_name("the name of a variable");
    Variable variable = new_variable(name, space);
    variable.is_extern = is_extern;
    finish_variable(variable, head);
    if (variable.is_array && variable.size == 0 && !is_extern) {
      lexer_.fail(name.line, quoted(name.text) + " has no size; only .extern arrays need none");
    }
    declare(std::move(variable), name.text);
  } while (lexer_.accept(","));
  expect(";", "after the declaration");
}

void Parser::fail_duplicate(std::string_view name, std::uint32_t line,
                            std::uint32_t first_line) const {
  lexer_.fail(line, quoted(name) + " is declared a second time; first on line " +
                        std::to_string(first_line));
}

void Parser::declare_module_variable(Variable variable, bool is_common) {
  const auto [entry, is_new] =
      names_.try_emplace(variable.name, ModuleName{false, is_common, module_.variables.size()});
  if (is_new) {
    module_.variables.push_back(std::move(variable));
    return;
  }
  if (entry->second.is_function) {
    fail_duplicate(variable.name, variable.line, module_.functions[entry->second.index].line);
  }
  Variable& first = module_.variables[entry->second.index];
  if (!first.is_extern && !variable.is_extern && !(is_common && entry->second.is_common)) {
    fail_duplicate(variable.name, variable.line, first.line);
  }
  if (first.space != variable.space || first.type != variable.type) {
    lexer_.fail(variable.line, quoted(variable.name) + " has another type or state space than on " +
                                   "line " + std::to_string(first.line));
  }
  if (first.is_extern && !variable.is_extern) first = std::move(variable);
}

// --- functions ----------------------------------------------------------------------------------

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
      variable.alignment = variable.size = bytes_of(head.type);
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
      declare(name.text, std::move(symbol));
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
      lexer_.fail_expected("the body or ';' after the head of " + quoted(function.name));
    }
    lexer_.take();
    if (has_count) parse_count("the value of ." + std::string(word), 0, 0xffffffff);
    if (has_dimensions) {
      const auto dimensions = parse_dimensions();
      if (word == "maxntid") function.max_threads = dimensions;
      if (word == "reqntid") function.required_threads = dimensions;
    }
  }
}

void Parser::parse_function(bool is_entry, const Linkage& linkage) {
  function_ = {};
  scopes_.clear();
  pending_labels_.clear();
  local_names_.clear();
  inlined_at_.clear();
  open_scope();
  function_.is_entry = is_entry;
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
    expect(";", "or a body after the head of " + quoted(function_.name));
    return;
  }
  if (linkage.is_extern) {
    lexer_.fail(name.line, quoted(name.text) + " is .extern but has a body");
  }
  parse_body();
  location_ = {};
  outermost_ = {};
  module_.functions[index] = std::move(function_);
}

std::size_t Parser::declare_function(const Function& function) {
  const auto [entry, is_new] =
      names_.try_emplace(function.name, ModuleName{true, false, module_.functions.size()});
  const std::size_t index = entry->second.index;
  if (is_new) {
    module_.functions.push_back(function);
    return index;
  }
  if (!entry->second.is_function) {
    fail_duplicate(function.name, function.line, module_.variables[index].line);
  }
  const Function& first = module_.functions[index];
  if (!first.is_declaration && !function.is_declaration) {
    fail_duplicate(function.name, function.line, first.line);
  }
  const auto same = [](const std::vector<Variable>& a, const std::vector<Variable>& b) {
    return std::ranges::equal(a, b, [](const Variable& x, const Variable& y) {
      return x.space == y.space && x.size == y.size;
    });
  };
  if (first.is_entry != function.is_entry || !same(first.returns, function.returns) ||
      !same(first.parameters, function.parameters)) {
    lexer_.fail(function.line, quoted(function.name) +
                                   " has another signature than its declaration on line " +
                                   std::to_string(first.line));
  }
  return index;
}

void Parser::open_scope() {
  if (scopes_.size() == max_scopes) {
    lexer_.fail(lexer_.token().line,
                "scopes are nested more than " + std::to_string(max_scopes) + " deep");
  }
  Scope scope;
  scope.first_pending = pending_labels_.size();
  scope.line = lexer_.token().line;
  scopes_.push_back(std::move(scope));
}

/// Connects the names of the scope's labels; those of outer scopes stay for them.
void Parser::close_scope() {
  const Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
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
        open_scope();
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
                                  ", whose '{' is on line " + std::to_string(scopes_.back().line));
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
    parse_variables(is_extern ? Space::shared : space, is_extern,
                    [this](Variable variable, std::string_view name) {
                      declare_local_variable(std::move(variable), name);
                    });
  } else {
    lexer_.fail_expected("an instruction or a declaration");
  }
}

void Parser::declare(std::string_view name, Symbol symbol) {
  Scope& scope = scopes_.back();
  const std::uint32_t line = symbol.line;
  for_each_member_reading(name, [&](std::string_view prefix, std::uint64_t number) {
    if (const auto range = scope.ranges.find(prefix);
        range != scope.ranges.end() && number < range->second.count) {
      fail_duplicate(name, line, range->second.line);
    }
    const auto [entry, is_new] = scope.smallest_members.try_emplace(prefix, number);
    entry->second = std::min(entry->second, number);
    return false;
  });
  const auto [entry, is_new] = scope.symbols.try_emplace(name, std::move(symbol));
  if (!is_new) fail_duplicate(name, line, entry->second.line);
}

void Parser::declare_range(std::string_view prefix, const RegisterRange& range) {
  Scope& scope = scopes_.back();
  const auto [entry, is_new] = scope.ranges.try_emplace(prefix, range);
  if (!is_new) fail_duplicate(prefix, range.line, entry->second.line);
  const auto smallest = scope.smallest_members.find(prefix);
  if (smallest != scope.smallest_members.end() && smallest->second < range.count) {
    lexer_.fail(range.line, quoted(std::string(prefix) + std::to_string(smallest->second)) +
                                " is declared a second time");
  }
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
      declare_range(name.text, {head.type, vector, name.line, count});
    } else {
      declare(name.text, {.kind = Symbol::Kind::reg,
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
  declare(name, {.kind = Symbol::Kind::variable, .line = variable.line, .name = unique});
  variable.name = std::move(unique);
  function_.variables.push_back(std::move(variable));
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
  location_ = read();
  outermost_ = location_.position();
  std::optional<Location> caller;
  while (lexer_.accept(",")) {
    const Token word = expect_name("function_name or inlined_at in .loc");
    if (word.text == "function_name") {
      if (!lexer_.at(Token::Kind::identifier) && !lexer_.at(Token::Kind::directive)) {
        lexer_.fail_expected("a label after function_name");
      }
      lexer_.take();
      parse_addends(lexer_);
    } else if (word.text == "inlined_at") {
      caller = read();
    } else {
      lexer_.fail(word.line,
                  "expected function_name or inlined_at in .loc, found " + quoted(word.text));
    }
  }
  // Only the direct caller is given. That it was inlined itself, another .loc has said.
  if (!caller) {
    if (!inlined_at_.empty()) inlined_at_.erase(location_);
    return;
  }
  inlined_at_.insert_or_assign(location_, *caller);
  for (int depth = 0; depth < max_inline_depth; ++depth) {
    const auto found = inlined_at_.find(*caller);
    if (found == inlined_at_.end()) break;
    caller = found->second;
  }
  outermost_ = caller->position();
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
  declare(name.text, std::move(symbol));
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

// --- names --------------------------------------------------------------------------------------

Symbol* Parser::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->symbols.find(name); found != scope->symbols.end()) {
      return &found->second;
    }
    Symbol* member = nullptr;
    for_each_member_reading(name, [&](std::string_view prefix, std::uint64_t number) {
      const auto range = scope->ranges.find(prefix);
      if (range == scope->ranges.end() || number >= range->second.count) return false;
      const RegisterRange& found = range->second;
      member = &scope->symbols
                    .try_emplace(name, Symbol{.kind = Symbol::Kind::reg,
                                              .type = found.type,
                                              .vector = found.vector,
                                              .line = found.line,
                                              .index = unnamed_register})
                    .first->second;
      return true;
    });
    if (member) return member;
  }
  return nullptr;
}

std::uint32_t Parser::register_index(std::string_view name, Symbol& symbol) {
  if (symbol.index == unnamed_register) {
    symbol.index = static_cast<std::uint32_t>(function_.registers.size());
    function_.registers.push_back({std::string(name), symbol.type, symbol.vector});
  }
  return symbol.index;
}

// --- instructions -------------------------------------------------------------------------------

void Parser::parse_instruction(std::optional<Token> opcode) {
  Instruction instruction;
  if (!opcode) {
    lexer_.take();  // '@'
    instruction.guard_negated = lexer_.accept("!");
    const Token name = expect_name("a predicate register after '@'");
    Symbol* const symbol = find(name.text);
    if (!symbol) lexer_.fail(name.line, "undefined register " + quoted(name.text));
    if (symbol->kind != Symbol::Kind::reg || symbol->type != Type::pred) {
      lexer_.fail(name.line, "the guard " + quoted(name.text) + " is not a predicate register");
    }
    instruction.guard = register_index(name.text, *symbol);
    opcode = expect_name("an instruction after the guard");
  }
  instruction.opcode = opcode->text;
  instruction.line = opcode->line;
  instruction.source = location_.position();
  instruction.outermost = outermost_;
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
        const Symbol* const symbol = find(lexer_.token().text);
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
      lexer_.fail(name.line, "'!' before " + quoted(name.text) + ", which is no predicate");
    }
    return operand;
  }
  if (token.kind == Token::Kind::identifier && token.text == "_") {
    lexer_.take();
    return new_operand(Operand::Kind::sink);
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
  if (Symbol* const symbol = find(name.text)) {
    if (symbol->kind == Symbol::Kind::reg) {
      Operand operand = new_operand(Operand::Kind::reg);
      operand.index = register_index(name.text, *symbol);
      if (lexer_.at(Token::Kind::directive)) {
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

}  // namespace

Module parse(std::string_view text, std::string file) {
  return Parser(text, std::move(file)).run();
}

}  // namespace warpstack::ptx
