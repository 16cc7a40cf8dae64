#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/instructions/control.h"
#include "trace/instructions/opcode.h"

namespace warpstack::trace {

/// Behind the opcode of an addition of 1 in PTX whose result nobody reads, of which ptxas makes
/// `ATOMS.POPC.INC`.
inline constexpr std::string_view lane_count_suffix = ".count_lanes";

/// One row of a kernel's instruction table: everything that is the same each time the instruction
/// executes. Two rows may share a PC when a called function restarts at its own offsets, or when a
/// generic access resolves to different memory spaces.
struct StaticInstruction {
  std::uint32_t pc = 0;           ///< byte offset in its function
  std::uint32_t source_line = 0;  ///< of the function that it was written in; 0: unknown
  std::uint32_t source_file = 0;  ///< in SourceTable::files, from 1; 0: unknown
  std::uint32_t inlined_at = 0;   ///< in SourceTable::calls, from 1; 0: not inlined
  std::string opcode;             ///< as in the trace, with modifiers
  bool known_opcode = true;       ///< false: classified by its operands alone
  OpClass op_class = OpClass::unknown;
  MemorySpace space = MemorySpace::none;
  MemoryKind kind = MemoryKind::none;
  CacheOperator cache_operator = CacheOperator::none;
  std::uint32_t width = 0;  ///< bytes per thread; 0 without an address operand
  /// Vector registers, tuples expanded, the zero register left out. Numbers are those of the
  /// instruction set until the kernel is complete, then dense per kernel.
  std::vector<std::uint16_t> destinations;
  std::vector<std::uint16_t> sources;
  /// There for machine code whose encodings are known; in a trace all rows have it, or none.
  std::optional<Control> control;

  bool operator==(const StaticInstruction&) const = default;

  /// Has an entry in the memory columns.
  [[nodiscard]] bool is_memory() const { return op_class == OpClass::memory; }
  /// Goes through the L1 and L2 caches.
  [[nodiscard]] bool uses_caches() const {
    return is_memory() && space != MemorySpace::shared && space != MemorySpace::none;
  }
  [[nodiscard]] bool reads_memory() const {
    return kind == MemoryKind::load || kind == MemoryKind::async_copy;
  }
  [[nodiscard]] bool is_atomic() const {
    return kind == MemoryKind::atomic || kind == MemoryKind::reduction;
  }
  [[nodiscard]] bool is_cached_atomic() const { return is_atomic() && uses_caches(); }
  /// Has byte masks in the store column.
  [[nodiscard]] bool writes_memory() const {
    return uses_caches() && (kind == MemoryKind::store || is_atomic());
  }
};

/// The register that always reads zero and ignores writes (RZ).
inline constexpr std::uint16_t zero_register = 255;

/// Appends the registers of a tuple of `width` that starts at `first`, without RZ.
void append_register_tuple(std::vector<std::uint16_t>& registers, std::uint16_t first,
                           std::uint32_t width);

/// Builds a table row from an opcode and the registers that a trace names. Expands register tuples
/// (see operand_widths()). An unknown opcode with an address operand of `traced_width` bytes per
/// thread counts as a generic load when it writes a register and as a generic store otherwise.
StaticInstruction make_static_instruction(std::uint32_t pc, std::string opcode,
                                          std::span<const std::uint16_t> destinations,
                                          std::span<const std::uint16_t> sources,
                                          std::uint32_t source_line = 0,
                                          std::uint32_t traced_width = 0);

}  // namespace warpstack::trace
