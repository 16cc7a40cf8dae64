#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warpstack::trace {

/// What an instruction of PTX does with the groups of asynchronous copies that its warp has issued
/// (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy"), or with the groups of
/// products of four warps (`wgmma`), or those of bulk stores, which go from shared to global
/// memory. Machine code says the same of copies with `LDGDEPBAR` and `DEPBAR.LE`, whose control
/// fields are in the trace. Of products it says so with a last operand `gsb0` and
/// `WARPGROUP.DEPBAR.LE`, of bulk stores with `UTMACMDFLUSH` and a `DEPBAR.LE` of its barrier;
/// their rows have these operands at the end: `HGMMA.64x64x16.F32.gsb0`, `WARPGROUP.DEPBAR.LE.1`,
/// `DEPBAR.LE.bulk.0`.
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

/// What an instruction does with groups. A wait whose opcode does not have its number, as traces of
/// version 0.1 are, waits for nothing.
CopyGroupStep copy_group_step(std::string_view opcode);

}  // namespace warpstack::trace
