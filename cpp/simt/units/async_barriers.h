#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/race_monitor.h"

namespace warpstack::simt {

/// What an mbarrier holds. The 8 bytes in shared memory are this state, in a layout of our own: on
/// a GPU they are not documented.
struct BarrierWord {
  static constexpr std::uint32_t max_count = (1u << 20) - 1;

  std::uint32_t pending = 0;   ///< arrivals that the phase still waits for
  std::uint32_t expected = 0;  ///< arrivals of the next phase
  std::int32_t bytes = 0;      ///< that copies still have to move in this phase
  bool parity = false;         ///< of the phase
  bool valid = false;          ///< initialised

  [[nodiscard]] static BarrierWord unpack(std::uint64_t word);
  [[nodiscard]] std::uint64_t pack() const;
  /// Ends the phase when all have come and all bytes are there. Returns whether it does.
  bool end_phase();
};

/// mbarrier: barriers in shared memory at which threads and copies arrive. It records its steps:
/// which completions a wait has waited for is known when it is over.
class AsyncBarriers {
 public:
  AsyncBarriers(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces,
                RaceMonitor& races)
      : execution_(execution),
        program_(execution.program),
        faults_(faults),
        recorder_(recorder),
        spaces_(spaces),
        races_(races) {}

  /// Returns false for a wait whose phase is not over: nothing has happened then.
  bool execute(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// Ends a wait with what is true now.
  void give_up(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// A copy by a lane has moved bytes that the barrier at an address of shared memory waits for.
  /// `actor`: who made it, for the check for races.
  void complete(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                std::uint64_t address, std::uint64_t bytes, std::uint32_t actor);
  /// Counts an instruction that completes something at a barrier, before it does. A copy with a
  /// mask of `blocks` does so in these blocks of the cluster. None where that is not a barrier of
  /// the block alone: the trace of a block does not know of others.
  trace::PhaseStep count_completion(const std::byte* registers, const AddressOperand& barrier,
                                    std::uint32_t mask, std::uint32_t blocks = none);
  /// The block has ended: finds mbarriers that got bytes which no phase expected.
  void check_bytes();
  /// "mbarrier at 0x80, whose phase waits for 1 arrival and 512 bytes"
  std::string text(Warp& warp, const Step& step, std::uint32_t mask);

 private:
  void change(Warp& warp, const Step& step, std::byte* registers, std::uint32_t lane,
              std::uint64_t address);
  /// Lanes of a wait whose phase is over.
  std::uint32_t over(Warp& warp, const Step& step, const std::byte* registers, std::uint32_t mask);
  std::byte* place(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                   std::uint64_t address, bool initializes);
  BarrierWord load(Warp& warp, const Step& step, std::uint32_t lane, const std::byte* place,
                   std::uint64_t address);
  void expect(Warp& warp, const Step& step, std::uint32_t lane, BarrierWord& word,
              std::int64_t bytes);
  void arrive(Warp& warp, const Step& step, std::uint32_t lane, BarrierWord& word,
              std::uint32_t count, bool drops);
  /// The barrier of the block itself that all lanes name.
  [[nodiscard]] std::optional<std::uint32_t> own_barrier(const std::byte* registers,
                                                         const AddressOperand& operand,
                                                         std::uint32_t mask) const;
  /// What a wait that is over has waited for.
  trace::PhaseStep awaited(Warp& warp, const Step& step, const std::byte* registers,
                           std::uint32_t mask);
  /// Ends the phase of a barrier if nothing is missing.
  void end_phase(BarrierWord& word, AddressSpace space, std::uint64_t address);
  /// Remembers a copy whose bytes the barrier does not expect, or not yet.
  void note_unexpected(const Warp& warp, const Step& step, std::uint32_t lane,
                       std::uint64_t address);
  /// Tells the check for races that what came before happened before what waits for the barrier.
  void order(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
             std::uint64_t address, bool releases);

  Execution& execution_;
  const KernelProgram& program_;
  Faults& faults_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
};

/// The address that a lane has in an operand.
[[nodiscard]] std::uint64_t address_in(const std::byte* registers, const AddressOperand& operand,
                                       std::uint32_t lane);

}  // namespace warpstack::simt
