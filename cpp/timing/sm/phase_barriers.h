#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "timing/base/timing_config.h"
#include "timing/sm/control_barriers.h"

namespace warpstack::timing {

/// The mbarriers of the blocks of an SM (trace::PhaseStep): when what completes their phases was or
/// will be done, and when warps have seen enough of it. What a warp waits for may be another
/// warp's.
class PhaseBarriers {
 public:
  PhaseBarriers(std::size_t blocks, std::size_t warps) : blocks_(blocks), warps_(warps) {}

  // New ones take the slots of a block and of a warp.
  void clear_block(std::uint32_t block) { blocks_[block] = {}; }
  void clear_warp(std::uint32_t slot) { warps_[slot].clear(); }

  /// A completion is made at `earliest`, or when the last of these loads is done if that is later.
  void complete(std::uint32_t block, std::uint32_t barrier, std::span<const std::uint32_t> loads,
                Cycle earliest);
  /// A load is done at `done`. Returns whether a completion waited for it.
  bool load_is_done(std::uint32_t block, std::uint32_t load, Cycle done);

  /// When a warp that waits for `count` more completions has them, as far as is known, and what it
  /// waits for until then.
  [[nodiscard]] ControlBarriers::Wait wait(std::uint32_t block, std::uint32_t slot,
                                           std::uint32_t barrier, std::uint32_t count) const;
  /// That wait is over.
  void pass(std::uint32_t slot, std::uint32_t barrier, std::uint32_t count);

 private:
  struct Barrier {
    std::uint32_t address = 0;
    std::vector<Cycle> made;  ///< ascending; of those that are known
  };
  struct Pending {
    std::uint32_t barrier = 0;
    std::vector<std::uint32_t> loads;  ///< in flight
    Cycle at = 0;                      ///< at the earliest
  };
  struct Block {
    std::vector<Barrier> barriers;
    std::vector<Pending> pending;  ///< oldest first
  };
  struct Passed {
    std::uint32_t barrier = 0;
    std::uint32_t count = 0;
  };

  static void make(Block& block, std::uint32_t barrier, Cycle at);

  std::vector<Block> blocks_;
  std::vector<std::vector<Passed>> warps_;  ///< what each has waited for
};

}  // namespace warpstack::timing
