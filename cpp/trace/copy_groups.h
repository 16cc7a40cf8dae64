#pragma once

#include <cstdint>
#include <string>

#include "trace/static_instruction.h"

namespace warpstack::trace {

/// What an instruction of PTX does with the groups of asynchronous copies that its warp has issued
/// (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy"). Machine code says the
/// same with `LDGDEPBAR` and `DEPBAR.LE`, whose control fields are in the trace.
struct CopyGroupStep {
  enum class Kind : std::uint8_t {
    none,
    commit,    ///< the copies since the last commit are a group
    wait,      ///< until all groups but the last `most` have been copied
    wait_all,  ///< until all copies have been made, also those that are in no group
  };
  Kind kind = Kind::none;
  std::uint32_t most = 0;
};

/// The opcode of a wait, which in PTX has the number as an operand: `cp.async.wait_group.2`.
std::string copy_wait_opcode(std::uint32_t most);

/// What an instruction does with groups. A wait whose opcode does not have its number, as traces of
/// version 0.1 are, waits for nothing.
CopyGroupStep copy_group_step(const StaticInstruction& instruction);

}  // namespace warpstack::trace
