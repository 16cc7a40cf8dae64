#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simt/async/async_barriers.h"
#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/race_monitor.h"

namespace warpstack::simt {

/// The targets of a copy into shared memory: one, or one in each block that the copy names.
struct CopyTargets {
  std::array<std::uint64_t, 16> address{};  ///< of `shared::cluster`
  std::array<std::uint64_t, 16> barrier{};
  std::uint32_t count = 0;
};

/// cp.async.bulk, cp.reduce.async.bulk: copies of a number of bytes, done at once.
class BulkCopies {
 public:
  BulkCopies(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces,
             RaceMonitor& races, AsyncBarriers& barriers)
      : execution_(execution),
        program_(execution.program),
        faults_(faults),
        recorder_(recorder),
        spaces_(spaces),
        races_(races),
        barriers_(barriers) {}

  void copy(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);

  /// The targets of a lane's copy. `blocks` is the slot of a mask of ranks, or none. `of_pairs`:
  /// see TensorCopy::is_of_pair.
  CopyTargets targets_of(Warp& warp, const Step& step, const std::byte* registers,
                         std::uint32_t lane, const AddressOperand& to,
                         const AddressOperand& barrier, std::uint32_t blocks,
                         bool of_pairs = false);
  /// See AsyncBarriers::count_completion().
  trace::PhaseStep count_completion(const std::byte* registers, const AddressOperand& barrier,
                                    std::uint32_t mask, std::uint32_t blocks, bool of_pairs) {
    return barriers_.count_completion(registers, barrier, mask, blocks, of_pairs);
  }
  /// Tells the race check that a lane's copy begins.
  void begin(const Warp& warp, const AddressOperand& barrier, const CopyTargets& targets);
  /// Signals the barriers of the targets that the bytes are there.
  void signal(Warp& warp, const Step& step, std::uint32_t lane, const AddressOperand& barrier,
              const CopyTargets& targets, std::uint64_t bytes);
  /// Tells the race check of bytes that a copy reads or writes.
  void note(const Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
            std::uint64_t address, std::uint32_t bytes, bool writes);

  static constexpr std::uint32_t piece_bytes = 16;

 private:
  void copy_lane(Warp& warp, const Step& step, std::byte* registers, std::uint32_t lane);
  void require_multiple(Warp& warp, const Step& step, std::uint32_t lane, const char* what,
                        std::uint64_t value);
  void move_piece(Warp& warp, const Step& step, std::uint32_t lane, const BulkCopy& copy,
                  std::uint64_t from, std::uint64_t to, std::uint32_t byte_mask);

  Execution& execution_;
  const KernelProgram& program_;
  Faults& faults_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
  AsyncBarriers& barriers_;
  std::uint32_t actor_ = 0;        ///< makes the lane's copy, for the race check
  std::vector<MovedBytes> moved_;  ///< in global memory, by the current instruction
};

}  // namespace warpstack::simt
