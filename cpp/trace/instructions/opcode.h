#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

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

/// The class of operations whose unit executes an instruction: of conversions from and to 64-bit
/// types that for double precision (CUDA C++ Programming Guide, throughput of arithmetic
/// instructions: they are as slow where it has few cores), of others their own. `opcode` is SASS or
/// PTX.
OpClass unit_of(std::string_view opcode, OpClass op_class);

/// Whether the warps of a block wait for each other at an instruction of SASS (`BAR.SYNC`,
/// `BAR.RED`) or PTX (`bar.sync`, `barrier.cta.red`).
bool is_block_barrier(std::string_view opcode);

/// Register tuple sizes of a SASS instruction with `num_sources` named vector sources.
OperandWidths operand_widths(std::string_view opcode, const DecodedOpcode& decoded,
                             std::size_t num_sources);

}  // namespace warpstack::trace
