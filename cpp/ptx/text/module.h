#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simt/program/special_register.h"
#include "simt/program/type.h"
#include "trace/instructions/source_table.h"

namespace warpstack::ptx {

using simt::bytes_of;
using simt::is_float;
using simt::is_signed;
using simt::Special;
using simt::Type;

/// `none` for a word that names no type. The word comes without its dot.
Type type_named(std::string_view word);
std::string_view name_of(Type type);

/// State spaces of variables (PTX ISA, Section 5.1). Registers are not variables here.
enum class Space : std::uint8_t { none, global, constant, shared, local, param };
std::string_view name_of(Space space);
/// `none` for a word that names no state space of variables. The word comes without its dot.
Space space_named(std::string_view word);

/// The visibility of a name of module scope (PTX ISA, Section 10.6). `local`, without a directive:
/// only this module.
enum class Linkage : std::uint8_t { local, visible, weak, common, external };

/// A part of a variable's initial value that is the address of another variable.
struct AddressInitializer {
  std::uint32_t offset = 0;      ///< in the variable
  std::string symbol;            ///< the symbol whose address it is
  std::int64_t addend = 0;       ///< added to it
  bool generic = false;          ///< `generic(symbol)`: a generic address
  std::uint32_t bytes = 8;       ///< size of the field
  std::uint32_t byte_shift = 0;  ///< `mask(symbol)` forms keep one byte: bits to shift right by
};

/// A variable outside the registers: module scope, function scope, or a parameter.
struct Variable {
  std::string name;
  Space space = Space::none;    ///< none: a parameter in a register (`.reg`) of that name
  Type type = Type::none;       ///< of one element
  std::uint32_t alignment = 0;  ///< bytes, a power of two, at least the element's natural one
  std::uint64_t size = 0;       ///< bytes; 0 for an array without a size (`.extern .shared x[]`)
  Linkage linkage = Linkage::local;
  bool is_array = false;
  /// For `.texref`, `.samplerref` and `.surfref` variables: that word; else empty.
  std::string opaque;
  /// Initial bytes; shorter than `size`: the rest is zero.
  std::vector<std::uint8_t> initial;
  std::vector<AddressInitializer> addresses;
  std::uint32_t line = 0;            ///< in the PTX text
  std::uint32_t object = 0;          ///< see Module::objects
  std::optional<std::uint32_t> reg;  ///< of a parameter in a register: that of the function

  [[nodiscard]] bool is_extern() const { return linkage == Linkage::external; }
};

/// A virtual register of a function. Parameterised declarations (`%r<10>`) are expanded only for
/// the registers that instructions name.
struct Register {
  std::string name;
  Type type = Type::none;
  std::uint32_t vector = 1;  ///< `.v2`, `.v4` declarations
};

/// One operand of an instruction.
struct Operand {
  enum class Kind : std::uint8_t {
    reg,       ///< `index`: register of the function; `component`: element of a vector register
    special,   ///< `special`, `component` (0 to 3 for x, y, z, w; the number of envreg and pm)
    integer,   ///< `integer`: a constant, as 64 bits
    floating,  ///< `integer`: the bits of a constant; `literal`: f32 (0f…), f64 (0d… or decimal)
    predicate_constant,  ///< `integer`: 0 or 1 (`PT` forms, `!PT`)
    variable,   ///< `name` of a variable, function or parameter, `integer`: offset added to it;
                ///< `a[r]`: `elements[0]` is r, a register, and `index` the bytes of an element
    label,      ///< `index`: instruction of the body, or its size for a label at the end
    address,    ///< `[base + offset]`: `elements[0]` is a reg, variable or integer; `integer` the
                ///< offset
    vector,     ///< `{a, b, c, d}`: `elements`
    texture,    ///< `[t, {x, y}]` and `[t, s, {x, y}]`: `elements` hold t, s (or none), coordinates
    sink,       ///< `_`: the result is dropped
    arguments,  ///< parenthesised list of a call: `elements`
    targets,    ///< `index`: entry in Function::target_lists, of brx.idx or an indirect call
    prototype,  ///< `index`: entry in Function::prototypes, of an indirect call
  };
  Kind kind = Kind::sink;
  bool negated = false;  ///< `!p` of a predicate register, `-r` of vmad
  std::uint8_t component = 0;
  Special special = Special::tid;
  Type literal = Type::none;
  std::uint32_t index = 0;
  std::int64_t integer = 0;
  std::string name;
  std::string selector;  ///< parts of a register that a video instruction takes: `b3210`, `h10`
  std::vector<Operand> elements;
  /// `p|q` destinations: the second predicate is the next operand of the instruction and this is
  /// set on the first.
  bool paired = false;
};

/// The source position of a PTX instruction.
struct SourcePosition {
  std::uint32_t file = 0;  ///< number of a `.file` directive; 0: unknown
  std::uint32_t line = 0;
  /// Where the function of that line was inlined, in Module::sources; 0: it was not.
  std::uint32_t inlined_at = 0;
};

struct Instruction {
  std::string opcode;                  ///< first word: "ld", "setp", "mul"
  std::vector<std::string> modifiers;  ///< the words after it without dots: "global", "v4", "f32"
  std::vector<Operand> operands;       ///< destinations first, as written
  std::optional<std::uint32_t> guard;  ///< register of `@p`
  bool guard_negated = false;          ///< `@!p`
  std::uint32_t line = 0;              ///< in the PTX text
  SourcePosition source;
  /// Why the text of the instruction could not be read, so that lower() refuses it. Empty: it was
  /// read.
  std::string problem;

  /// "ld.global.v4.f32"
  [[nodiscard]] std::string full_opcode() const;
  [[nodiscard]] bool has(std::string_view modifier) const;
};

/// The targets of `brx.idx` (`.branchtargets`), or of an indirect call (`.calltargets`).
struct TargetList {
  std::vector<std::uint32_t> labels;   ///< instructions of the body
  std::vector<std::string> functions;  ///< names
};

/// A `.callprototype`: the signature of an indirect call.
struct Prototype {
  std::string name;
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
};

/// A kernel (`.entry`) or a function (`.func`).
struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;  ///< no body: `.extern`, or a forward declaration
  Linkage linkage = Linkage::local;
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
  std::vector<Register> registers;
  /// Variables of function scope: shared, local, and the `.param` variables of call sequences. A
  /// name that several nested scopes declare is made unique by a suffix `$2`, `$3`, …
  std::vector<Variable> variables;
  std::vector<Instruction> body;  ///< ends in ret, exit or an unconditional branch, or falls out
  std::vector<TargetList> target_lists;
  std::vector<Prototype> prototypes;
  std::array<std::uint32_t, 3> max_threads{0, 0, 0};       ///< .maxntid; 0: not given
  std::array<std::uint32_t, 3> required_threads{0, 0, 0};  ///< .reqntid; 0: not given
  std::array<std::uint32_t, 3> required_cluster{0, 0, 0};  ///< .reqnctapercluster; the same
  std::uint32_t line = 0;
  std::uint32_t object = 0;  ///< see Module::objects
};

/// Whether calls of one can be calls of the other: equal kind, spaces and sizes of results and
/// parameters.
bool same_signature(const Function& a, const Function& b);

/// A parsed PTX file, or several that link() has joined.
struct Module {
  std::uint32_t version = 0;  ///< 85 for 8.5
  std::string target;         ///< "sm_75"
  std::uint32_t address_size = 64;
  std::string file;            ///< name for messages
  trace::SourceTable sources;  ///< of `.file` and `.loc` directives
  /// Names of the linked files for messages; empty: `file` alone.
  std::vector<std::string> objects;
  /// Other names that `.alias` directives give functions of this module; other modules may use
  /// them, too.
  std::vector<std::pair<std::string, std::string>> aliases;
  std::vector<Variable> variables;
  std::vector<Function> functions;

  [[nodiscard]] const Function* function(std::string_view name) const;
  [[nodiscard]] const Variable* variable(std::string_view name) const;
  /// 75 for sm_75; 0 without a target.
  [[nodiscard]] std::uint32_t architecture() const;
  /// Kernels, in file order.
  [[nodiscard]] std::vector<std::string> kernels() const;
  /// The file in which a function or variable stands, for messages.
  [[nodiscard]] const std::string& file_of(const auto& item) const {
    return objects.empty() ? file : objects[item.object];
  }
};

/// Reads a PTX file: directives, declarations, and instructions in their syntactic form. What an
/// instruction means, and whether it is supported, is decided later, by lower(). An instruction
/// that cannot be read gets a `problem` if its end is certain, so that other kernels can run.
///
/// Throws InputError with `file`, line, what was expected and what was found.
Module parse(std::string_view text, std::string file);

}  // namespace warpstack::ptx
