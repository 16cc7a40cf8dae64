#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "simt/async/async_barriers.h"
#include "simt/async/bulk_copies.h"
#include "simt/async/tensor_copies.h"
#include "simt/async/tensor_memory_unit.h"
#include "simt/async/warpgroup_unit.h"

namespace warpstack::simt {

/// Executes the operations of async_operations.h and tensor_memory.h, and the barrier of a cluster.
class AsyncUnit {
 public:
  AsyncUnit(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces,
            RaceMonitor& races)
      : execution_(execution),
        barriers_(execution, faults, recorder, spaces, races),
        copies_(execution, faults, recorder, spaces, races, barriers_),
        tensors_(execution, faults, recorder, spaces, copies_),
        products_(execution, faults, recorder, spaces, races),
        tensor_memory_(execution, faults, recorder, spaces, races, barriers_) {}

  /// Returns false for a wait that is not over: then nothing happens and the warp is held.
  bool execute(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// Lets a held warp look again. It goes on if the wait is over, or if it has looked for long and
  /// the wait may be given up. Returns whether it is ready.
  bool try_again(Warp& warp);
  /// Called when no warp can go on. Lets a held warp go on if possible: with other lanes or, at a
  /// test of an mbarrier, with a negative answer. `fruitless` is how often that has led to nothing.
  bool give_up(Warp& warp, std::uint64_t fruitless);
  /// Checks at the end of the block.
  void check_end() {
    barriers_.check_bytes();
    tensor_memory_.check_end();
  }
  /// What a held warp waits for, for messages.
  std::string text(Warp& warp);

 private:
  [[nodiscard]] bool is_over(Warp& warp, const Step& step, std::byte* registers,
                             std::uint32_t mask);

  Execution& execution_;
  AsyncBarriers barriers_;
  BulkCopies copies_;
  TensorCopies tensors_;
  WarpgroupUnit products_;
  TensorMemoryUnit tensor_memory_;
};

}  // namespace warpstack::simt
