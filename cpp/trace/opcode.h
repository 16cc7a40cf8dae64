#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

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
  texture,  ///< texture and surface accesses: traces carry no addresses for them
  memory,   ///< global, local, shared and generic accesses with addresses
  unknown,  ///< opcode not in the table; timed as `integer`
};
inline constexpr std::size_t num_op_classes = 14;
std::string_view name_of(OpClass op_class);

enum class MemorySpace : std::uint8_t { none, global, local, shared, generic };
inline constexpr std::size_t num_memory_spaces = 5;
std::string_view name_of(MemorySpace space);

enum class MemoryKind : std::uint8_t {
  none,
  load,
  store,
  atomic,      ///< read-modify-write that returns the old value
  reduction,   ///< read-modify-write that returns nothing
  async_copy,  ///< LDGSTS: global to shared memory without a register
};
inline constexpr std::size_t num_memory_kinds = 6;
std::string_view name_of(MemoryKind kind);

/// Cache hint in the opcode's modifiers.
enum class CacheOperator : std::uint8_t {
  none,
  bypass_l1,    ///< .STRONG.GPU, .STRONG.SYS, .BYPASS: served by L2
  evict_first,  ///< .EF
  evict_last,   ///< .EL
};
inline constexpr std::size_t num_cache_operators = 4;
std::string_view name_of(CacheOperator cache_operator);

/// An opcode with its modifiers, read once per static instruction.
struct DecodedOpcode {
  OpClass op_class = OpClass::unknown;
  MemorySpace space = MemorySpace::none;
  MemoryKind kind = MemoryKind::none;
  CacheOperator cache_operator = CacheOperator::none;
  /// Bytes that each active thread accesses; 0 without an address operand.
  std::uint32_t width = 0;

  [[nodiscard]] bool is_memory() const { return op_class == OpClass::memory; }
};

/// Largest number of source operands in a trace line (SASS has at most five vector registers).
inline constexpr std::size_t max_operands = 8;

/// How many consecutive 32-bit registers each named operand stands for. Traces name only the first
/// register of a pair, quad or larger tuple.
struct OperandWidths {
  std::uint32_t destination = 1;
  std::array<std::uint32_t, max_operands> source{1, 1, 1, 1, 1, 1, 1, 1};
};

/// Reads a SASS opcode such as `LDG.E.128.STRONG.GPU`. An opcode outside the table comes back with
/// class `unknown`; it is not an error.
DecodedOpcode decode_opcode(std::string_view opcode);

/// Whether the opcode has a modifier, such as `E` in `LDG.E.128`.
bool has_modifier(std::string_view opcode, std::string_view wanted);

/// Register tuple sizes of a SASS instruction with `num_sources` named vector sources.
OperandWidths operand_widths(std::string_view opcode, const DecodedOpcode& decoded,
                             std::size_t num_sources);

}  // namespace warpstack::trace
