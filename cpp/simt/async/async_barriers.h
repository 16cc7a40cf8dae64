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

/// The state of an mbarrier. Its 8 bytes in shared memory hold it in a layout of our own, since
/// that of a GPU is not documented.
struct BarrierWord {
  static constexpr std::uint32_t max_count = (1u << 20) - 1;

  std::uint32_t pending = 0;   ///< arrivals that the phase still waits for
  std::uint32_t expected = 0;  ///< arrivals of the next phase
  std::int32_t bytes = 0;      ///< still to be moved by copies in this phase
  bool parity = false;         ///< of the phase
  bool valid = false;          ///< initialised

  [[nodiscard]] static BarrierWord unpack(std::uint64_t word);
  [[nodiscard]] std::uint64_t pack() const;
  /// Ends the phase if all arrivals and all bytes are there. Returns whether it does.
  bool end_phase();
};

/// mbarrier: barriers in shared memory at which threads and copies arrive. Records the steps
/// itself, because the completions that a wait has waited for are only known when it is over.
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

  /// Returns false, and does nothing, for a wait whose phase is not over.
  bool execute(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// Ends a wait with the current state as its result.
  void give_up(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// A lane's copy has moved bytes for which the barrier at an address of shared memory waits.
  /// `actor` made it, for the race check.
  void complete(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                std::uint64_t address, std::uint64_t bytes, std::uint32_t actor);
  /// A lane's operations are done, for which the barrier at an address waits as for one arrival.
  void arrive_once(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                   std::uint64_t address);
  /// Counts an instruction that will complete something at a barrier, for a copy with a mask of
  /// `blocks` in these blocks of the cluster, or for one `of_pairs` in theirs. Empty unless the
  /// barrier is the block's own, because the trace of a block does not know of others.
  trace::PhaseStep count_completion(const std::byte* registers, const AddressOperand& barrier,
                                    std::uint32_t mask, std::uint32_t blocks = none,
                                    bool of_pairs = false);
  /// At the end of the block: finds mbarriers that got bytes which no phase expected.
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
  /// The barrier that all lanes name, if it is the block's own.
  [[nodiscard]] std::optional<std::uint32_t> own_barrier(const std::byte* registers,
                                                         const AddressOperand& operand,
                                                         std::uint32_t mask) const;
  /// The completions that a finished wait has waited for.
  trace::PhaseStep awaited(Warp& warp, const Step& step, const std::byte* registers,
                           std::uint32_t mask);
  /// Ends the phase of a barrier if nothing is missing.
  void end_phase(BarrierWord& word, AddressSpace space, std::uint64_t address);
  /// Remembers a copy whose bytes the barrier does not expect so far.
  void note_unexpected(const Warp& warp, const Step& step, std::uint32_t lane,
                       std::uint64_t address);
  /// Tells the race check that earlier accesses happened before what waits for the barrier.
  void order(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
             std::uint64_t address, bool releases);

  Execution& execution_;
  const KernelProgram& program_;
  Faults& faults_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
};

/// A lane's address in an operand. One of the cluster that lies in the running block's own shared
/// memory is given as the block's own.
[[nodiscard]] std::uint64_t address_in(const Execution& execution, const std::byte* registers,
                                       const AddressOperand& operand, std::uint32_t lane);

}  // namespace warpstack::simt
