#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warpstack::trace {

/// What an instruction does at an mbarrier, a barrier in the shared memory of its block (PTX ISA,
/// "Parallel Synchronization and Communication Instructions: mbarrier"). Its opcode ends with the
/// barrier's address: `mbarrier.arrive.shared.b64.barrier128`. A wait adds for how many completions
/// it waits beyond those that its warp has waited for there before, so that the rounds of a loop
/// have one row: `mbarrier.try_wait.parity.shared.b64.barrier128.3`.
struct PhaseStep {
  enum class Kind : std::uint8_t {
    none,
    complete,  ///< a completion: an arrival, or a copy when its bytes are there
    wait,      ///< until `count` more completions
  };
  Kind kind = Kind::none;
  std::uint32_t barrier = 0;  ///< its address in the shared memory of the block
  std::uint32_t count = 0;
  /// complete: when the copies of the warp before it are done (`cp.async.mbarrier.arrive`).
  bool is_after_copies = false;
  /// complete: when the products of the warp before it are done (`tcgen05.commit`).
  bool is_after_products = false;

  bool operator==(const PhaseStep&) const = default;
};

/// The opcode of an instruction that does such a step, which is not `none`.
std::string phase_opcode(const std::string& opcode, const PhaseStep& step);

/// The step of an instruction; none where its opcode does not name a barrier, as those of machine
/// code and of traces before version 0.2 do not.
PhaseStep phase_step(std::string_view opcode);

}  // namespace warpstack::trace
