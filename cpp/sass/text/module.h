#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sass/text/control.h"
#include "trace/instructions/source_table.h"

namespace warpstack::sass {

/// An operand as nvdisasm writes it.
struct Operand {
  enum class Kind : std::uint8_t {
    reg,                ///< R0 to R254; `index` 255: RZ
    uniform,            ///< UR0 to UR62, from sm_100 on UR254; `index` 255: URZ
    predicate,          ///< P0 to P6; `index` 7: PT
    uniform_predicate,  ///< UP0 to UP6; `index` 7: UPT
    convergence,        ///< B0 to B15
    special,            ///< SR_TID.X, SRZ
    constant,           ///< c[`bank`][base + `integer`]
    address,            ///< [base + uniform base + `integer`]
    descriptors,        ///< gdesc[uniform base].tnspB: one or two of factors in shared memory
    tensor_memory,      ///< tmem[uniform base + `integer`]
    product,            ///< idesc[uniform base]: what a product multiplies
    integer,
    real,  ///< `real`
    name,  ///< anything else: a function, "2D", {1}
  };

  Kind kind = Kind::name;
  std::uint32_t index = 0;
  bool negated = false;     ///< -R0, !P0
  bool complement = false;  ///< ~R0
  bool absolute = false;    ///< |R0|
  std::string suffix;       ///< what follows a register: "H0_H0", "B1"; of an address's: "64", "X4"
  std::int64_t integer = 0;
  double real = 0;
  std::uint32_t bank = 0;
  /// The register that is added to a constant's or an address's offset; `no_base` without one.
  static constexpr std::uint32_t no_base = ~std::uint32_t{0};
  std::uint32_t base = no_base;
  std::uint32_t uniform_base = no_base;
  std::string text;  ///< as written

  [[nodiscard]] bool is_register() const { return kind == Kind::reg || kind == Kind::uniform; }
  [[nodiscard]] bool is_predicate() const {
    return kind == Kind::predicate || kind == Kind::uniform_predicate;
  }
};

inline constexpr std::uint32_t zero_register = 255;
inline constexpr std::uint32_t zero_uniform = 255;
inline constexpr std::uint32_t true_predicate = 7;
inline constexpr std::uint32_t instruction_bytes = 16;

struct Instruction {
  std::uint32_t address = 0;  ///< in its kernel's code
  std::uint32_t file = 0;     ///< 0: unknown
  std::uint32_t line = 0;
  std::uint32_t inlined_at = 0;    ///< in Module::sources; 0: its function was not inlined
  std::uint32_t listing_line = 0;  ///< where the listing has it; 0: unknown
  Control control;
  bool is_guarded = false;
  Operand guard;
  std::string opcode;  ///< with modifiers: "ISETP.GE.AND"
  std::vector<Operand> operands;
};

/// Types have the names of PTX; "struct" is one passed by value.
struct Parameter {
  std::string type;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct Kernel {
  std::string name;
  std::uint32_t registers = 0;
  bool changes_registers = false;  ///< at run time, with USETMAXREG
  std::uint64_t shared_bytes = 0;  ///< from sm_90 on including the system's
  std::uint64_t local_bytes = 0;
  std::uint32_t max_threads = 1024;
  std::array<std::uint64_t, 3> required_cluster{0, 0, 0};  ///< blocks; 0: the launch says
  std::uint32_t parameter_base = 0;                        ///< in constant bank 0
  std::uint64_t parameter_bytes = 0;
  std::vector<Parameter> parameters;
  std::map<std::string, std::uint32_t, std::less<>> labels;  ///< of functions in its code
  std::vector<Instruction> code;
};

/// Bytes of a section that hold a variable's address, or a part of it.
struct AddressField {
  std::uint64_t offset = 0;
  std::string symbol;
  std::int64_t addend = 0;
  std::uint64_t first = 0;  ///< byte of the address
  std::uint64_t bytes = 8;
};

/// A section: memory or a constant bank.
struct Section {
  std::string name;
  std::uint64_t size = 0;
  std::vector<std::byte> bytes;  ///< zeros follow up to `size`
  std::vector<AddressField> addresses;

  /// Number of the constant bank; -1 for memory.
  [[nodiscard]] int bank() const;
  /// The kernel that the bank belongs to; empty: all kernels.
  [[nodiscard]] std::string_view kernel() const;
};

struct Symbol {
  std::string section;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The user's input: the listing itself, or the cubin that it was made from.
enum class TextOf : std::uint8_t { listing, cubin };

/// A module of machine code, from its listing.
struct Module {
  std::string file;
  TextOf source = TextOf::cubin;  ///< the input whose places messages name
  std::string target;             ///< "sm_80"
  std::uint32_t arch = 0;         ///< 80
  trace::SourceTable sources;     ///< of the instructions
  std::vector<Section> sections;
  std::map<std::string, Symbol, std::less<>> symbols;
  std::vector<Kernel> kernels;

  [[nodiscard]] const Kernel* kernel(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> kernel_names() const;
  /// "bfs.cu:12"; empty when it is unknown.
  [[nodiscard]] std::string place_of(const Instruction& instruction) const;
};

/// Reads a listing (python/warpstack/cuda/disassembly.py describes it). Throws InputError that
/// names the line (of a cubin: the kernel and the address), the field and the value of what it does
/// not understand, or what is inconsistent: duplicate kernels, sections, symbols and labels,
/// symbols beyond their section, parameters beyond their bank or overlapping, registers and
/// barriers that the kernel does not have, code without an end.
Module parse(std::string_view text, std::string file, TextOf source = TextOf::listing);

/// Reads one operand. Throws InputError without a place.
Operand parse_operand(std::string_view text);

}  // namespace warpstack::sass
