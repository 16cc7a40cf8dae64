#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "timing/sm/bulk_groups.h"
#include "timing/sm/control_barriers.h"
#include "timing/sm/phase_barriers.h"
#include "timing/sm/readers.h"
#include "timing/sm/register_waits.h"

namespace warpstack::timing {

/// Instructions wait for registers, and some for what goes on without their warp: groups of
/// asynchronous copies, products and bulk stores (trace::CopyGroupStep), and phases of mbarriers
/// (trace::PhaseStep).
class AsyncWaits : public RegisterWaits {
 public:
  AsyncWaits(const RowTable& rows, const LoadStoreUnit& lsu, std::size_t num_blocks,
             std::uint32_t warps_per_block);

  void start_block(std::uint32_t block) override { phases_.clear_block(block); }
  void start_warp(std::uint32_t warp, Cycle start) override;
  [[nodiscard]] Wait wait(std::uint32_t warp, std::uint32_t block, std::uint32_t row) override;
  bool issue(const Issue& issue) override;
  bool finish(const Done& load) override;
  [[nodiscard]] bool shares_loads() const override { return true; }
  [[nodiscard]] bool awaits_readers() const override { return true; }
  void free_readers(Cycle now, std::vector<std::uint32_t>& warps) override;
  [[nodiscard]] std::string describe(std::uint32_t row) const override;

 private:
  /// Whether it is a store of a group that waits until it is read.
  struct Held {
    bool is_bulk_store = false;
  };

  [[nodiscard]] Wait wait_for_group(std::uint32_t warp, const trace::CopyGroupStep& step);
  void commit(std::uint32_t warp, trace::CopyGroupStep::Of of, Cycle now);
  bool take_phase_step(const Issue& issue, const trace::PhaseStep& step);

  const LoadStoreUnit& lsu_;
  std::vector<Cycle> products_done_;  ///< by warp
  ControlBarriers groups_;            ///< of copies and products, as machine code has them
  PhaseBarriers phases_;
  BulkGroups bulk_groups_;
  Readers<Held> readers_;
};

}  // namespace warpstack::timing
