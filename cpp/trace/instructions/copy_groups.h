#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/instructions/static_instruction.h"

namespace warpstack::trace {

/// What an instruction of PTX does with the groups of asynchronous copies that its warp has issued
/// (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy"), or with the groups of
/// products of four warps (`wgmma`), or those of bulk stores, which go from shared to global
/// memory. Machine code says the same with `LDGDEPBAR` and `DEPBAR.LE`, whose control fields are in
/// the trace.
struct CopyGroupStep {
  enum class Kind : std::uint8_t {
    none,
    commit,    ///< the copies since the last commit are a group
    wait,      ///< until all groups but the last `most` have been copied
    wait_all,  ///< until all copies have been made, also those that are in no group
  };
  enum class Of : std::uint8_t { copies, products, bulk_stores };
  Kind kind = Kind::none;
  std::uint32_t most = 0;
  Of of = Of::copies;
  bool for_reading = false;  ///< of bulk stores: only until what they store has been read
};

/// The opcode of a wait, which in PTX has the number as an operand: `cp.async.wait_group.2`,
/// `wgmma.wait_group.sync.aligned.1`, `cp.async.bulk.wait_group.read.1`.
std::string wait_opcode(const std::string& opcode, std::uint32_t most);

/// Whether instructions wait for products with a number, as those of traces before version 0.2 do
/// not: there, registers say when sums are there.
bool has_product_waits(const std::vector<StaticInstruction>& instructions);

/// Whether an instruction is a product that goes on without its warp.
bool is_async_product(const StaticInstruction& instruction);

/// The registers that such a product waits for: not those of its sums, which products before it may
/// still be adding to.
std::vector<std::uint16_t> awaited_by_product(const StaticInstruction& instruction);

/// Whether an instruction is a bulk copy to, or reduction in, global memory, which is in a group.
bool is_bulk_store(const StaticInstruction& instruction);

/// What an instruction does with groups. A wait whose opcode does not have its number, as traces of
/// version 0.1 are, waits for nothing.
CopyGroupStep copy_group_step(const StaticInstruction& instruction);

}  // namespace warpstack::trace
