#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/enum_names.h"

namespace warpstack::trace {

/// What executes an instruction; every class but `memory` has one latency in a GPU description.
enum class OpClass : std::uint8_t {
  integer,
  fp32,
  fp16,
  fp64,
  sfu,  ///< special functions, conversions, population counts
  tensor,
  uniform,  ///< uniform datapath (Turing and later)
  control,
  barrier,
  shuffle,
  constant_load,
  texture,  ///< texture and surface accesses whose addresses the trace does not have
  memory,   ///< global, local, shared and generic accesses with addresses
  unknown,  ///< opcode not in the table; timed as `integer`
};
constexpr auto names_of(OpClass) {
  return enum_names("operation class", "integer", "fp32", "fp16", "fp64", "sfu", "tensor",
                    "uniform", "control", "barrier", "shuffle", "constant_load", "texture",
                    "memory", "unknown");
}
inline constexpr std::size_t num_op_classes = num_values<OpClass>;

enum class MemorySpace : std::uint8_t { none, global, local, shared, generic };
constexpr auto names_of(MemorySpace) {
  return enum_names("memory space", "none", "global", "local", "shared", "generic");
}

enum class MemoryKind : std::uint8_t {
  none,
  load,
  store,
  atomic,      ///< read-modify-write that returns the old value
  reduction,   ///< read-modify-write that returns nothing
  async_copy,  ///< LDGSTS: global to shared memory without a register
};
constexpr auto names_of(MemoryKind) {
  return enum_names("memory access kind", "none", "load", "store", "atomic", "reduction",
                    "async_copy");
}

/// Cache hint in the opcode's modifiers.
enum class CacheOperator : std::uint8_t {
  none,
  bypass_l1,    ///< .STRONG.GPU, .STRONG.SYS, .BYPASS: served by L2
  evict_first,  ///< .EF
  evict_last,   ///< .EL
  read_only,    ///< .CONSTANT, .CI, textures: kept by an L1 that keeps no other global loads, too
};
constexpr auto names_of(CacheOperator) {
  return enum_names("cache operator", "none", "bypass_l1", "evict_first", "evict_last",
                    "read_only");
}

/// How the operands of an opcode stand for registers. Traces name only the first register of a
/// pair, quad or larger tuple.
enum class Registers : std::uint8_t {
  words,           ///< one each; the first operand is written
  sources,         ///< one each; none is written
  pairs,           ///< two each
  pair_sources,    ///< two each; none is written
  pairs_to_word,   ///< two each, and one that is written
  between_floats,  ///< conversions: by the types among the modifiers, the destination's first
  to_integer,      ///< by the float's and the integer's type
  from_integer,
  rounding,      ///< by the float's type
  wide_product,  ///< with `.WIDE` two for the sum and the result
  clock,         ///< two; with `.32` one
  constants,     ///< by the width of the access
  data,          ///< an access to memory: by its width; the address by `.E`
  matrices,      ///< the same of whole 8 x 8 matrices, whose modifiers say how many
  fragments,     ///< of matrix instructions, by shape and types
};

/// What a matrix instruction multiplies, as far as its opcode says so without modifiers.
enum class Factors : std::uint8_t { none, half, fp64, fp8, integer, bit };

/// A row of trace/instructions/sass.inc.
struct SassOpcode {
  std::string_view name;  ///< without modifiers
  OpClass op_class = OpClass::unknown;
  Registers registers = Registers::words;
  MemorySpace space = MemorySpace::none;
  MemoryKind kind = MemoryKind::none;
  Factors factors = Factors::none;
  bool is_of_group = false;  ///< a matrix instruction of four warps
  std::uint16_t row = 0;     ///< its place in sass.inc

  /// Whether its first operand, when it is a register, is a destination.
  [[nodiscard]] bool writes_first() const {
    return registers != Registers::sources && registers != Registers::pair_sources;
  }
};

/// The row of an opcode without modifiers; null when there is none.
const SassOpcode* find_sass_opcode(std::string_view base);

/// An opcode with its modifiers, read once per static instruction.
struct DecodedOpcode {
  OpClass op_class = OpClass::unknown;
  MemorySpace space = MemorySpace::none;
  MemoryKind kind = MemoryKind::none;
  CacheOperator cache_operator = CacheOperator::none;
  /// Bytes that each active thread accesses; 0 without an address operand.
  std::uint32_t width = 0;
  Registers registers = Registers::words;
  Factors factors = Factors::none;
  bool is_of_group = false;

  [[nodiscard]] bool is_memory() const { return op_class == OpClass::memory; }
};

/// Largest number of source operands in a trace line (SASS has at most five vector registers).
inline constexpr std::size_t max_operands = 8;

/// How many consecutive 32-bit registers each named operand stands for.
struct OperandWidths {
  std::uint32_t destination = 1;
  std::array<std::uint32_t, max_operands> source{1, 1, 1, 1, 1, 1, 1, 1};
};

/// Reads a SASS opcode such as `LDG.E.128.STRONG.GPU`. An opcode outside the table comes back with
/// class `unknown`; it is not an error.
DecodedOpcode decode_opcode(std::string_view opcode);

/// The opcode without modifiers, then these.
std::vector<std::string_view> words_of(std::string_view opcode);

/// A text that is a decimal number; nothing for others.
std::optional<std::uint32_t> decimal(std::string_view text);

/// Whether the opcode has a modifier, such as `E` in `LDG.E.128`.
bool has_modifier(std::string_view opcode, std::string_view wanted);

/// Register tuple sizes of a SASS instruction with `num_sources` named vector sources.
OperandWidths operand_widths(std::string_view opcode, const DecodedOpcode& decoded,
                             std::size_t num_sources);

}  // namespace warpstack::trace
