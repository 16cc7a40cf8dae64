#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/text/lexer.h"
#include "ptx/text/module.h"
#include "ptx/text/scopes.h"
#include "ptx/text/source_lines.h"

namespace warpstack::ptx {

/// A label or target list that is named before the end of the scope that declares it.
struct PendingLabel {
  bool in_list = false;        ///< in a target list, else an operand
  std::uint32_t owner = 0;     ///< index of the list or of the instruction
  std::uint32_t position = 0;  ///< in that list or instruction
  std::uint32_t line = 0;
  std::string_view name;
};

/// A name of module scope that may be declared later.
struct PendingName {
  std::string_view name;
  std::uint32_t line = 0;
  bool is_function = false;  ///< it must be a function
};

/// A variable without type and size.
Variable new_variable(const Token& name, Space space);

/// Type and place that a declaration gives before the names.
struct DeclarationHead {
  Type type = Type::none;
  std::uint32_t vector = 1;
  std::uint32_t alignment = 0;
  std::string opaque;
};

/// Limit of the size of a variable.
inline constexpr std::uint64_t max_variable_bytes = std::uint64_t{1} << 40;
inline constexpr std::uint64_t max_file_number = 1 << 16;

/// Reads a module by recursive descent. The members are defined by topic: parser.cpp has the file's
/// directives; the others are declarations.cpp, initial_values.cpp, functions.cpp and operands.cpp.
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
  /// Reads the strings of .debug_str, up to the section's end.
  void parse_names(std::uint32_t line);
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
  void parse_variables(Space space, Linkage linkage,
                       const std::function<void(Variable, std::string_view)>& declare);
  void declare_module_variable(Variable variable);

  // --- functions ---
  void parse_function(bool is_entry, Linkage linkage);
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
  void read_instruction(std::optional<Token> opcode);
  std::uint32_t guard_register(const Token& name);
  /// Resolves names of the scope's labels; other names are left to the outer scopes.
  void close_scope();
  void declare_local_variable(Variable variable, std::string_view name);
  std::uint32_t register_index(std::string_view name, Symbol& symbol);

  // --- operands ---
  void parse_operands();
  void end_instruction();
  Operand parse_operand(int depth);
  Operand parse_list(Operand::Kind kind, std::string_view end, int depth);
  Operand parse_bracket(int depth);
  Operand parse_name();
  void parse_index(Operand& array);
  [[nodiscard]] Type element_type(const std::string& variable) const;
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
  Scopes scopes_;
  bool is_unended_ = false;  ///< an instruction lacks its semicolon
  std::vector<PendingLabel> pending_labels_;
  std::unordered_map<std::string, std::uint32_t> local_names_;  ///< by name: the last suffix tried
  SourceLines lines_;
};

}  // namespace warpstack::ptx
