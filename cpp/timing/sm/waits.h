#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "timing/memory/load_store_unit.h"
#include "timing/sm/row_table.h"
#include "timing/sm/wait.h"

namespace warpstack::timing {

/// What the warps of an SM wait for before their next instruction issues, besides the barriers of
/// blocks and free units. One is chosen per kernel: `RegisterWaits`, `AsyncWaits` or
/// `ControlWaits`. Warps and blocks are named by their slots.
class Waits {
 public:
  /// For places of `num_blocks` blocks of `warps_per_block` warps.
  static std::unique_ptr<Waits> of(const RowTable& rows, const LoadStoreUnit& lsu,
                                   std::size_t num_blocks, std::uint32_t warps_per_block);
  virtual ~Waits() = default;

  /// A new block takes the slot.
  virtual void start_block(std::uint32_t /*block*/) {}
  /// A new warp takes the slot; its first instruction issues at `start` at the earliest.
  virtual void start_warp(std::uint32_t warp, Cycle start) = 0;

  /// When the instruction of a row may issue as the warp's next one.
  [[nodiscard]] virtual Wait wait(std::uint32_t warp, std::uint32_t block, std::uint32_t row) = 0;

  struct Issue {
    std::uint32_t warp = 0;
    std::uint32_t block = 0;
    std::uint32_t row = 0;
    Cycle now = 0;
    bool is_active = false;                       ///< for some lanes
    bool accesses = false;                        ///< takes a place in the load-store unit
    std::uint32_t load = LoadStoreUnit::no_load;  ///< what the load-store unit gave for it
    std::span<const std::uint32_t> loads;         ///< of the warp in flight, this one last
  };
  /// An instruction issues. Returns whether other warps of its block may wait for less now.
  virtual bool issue(const Issue& issue) = 0;

  struct Done {
    std::uint32_t warp = 0;
    std::uint32_t block = 0;
    std::uint32_t row = 0;
    std::uint32_t load = 0;
    Cycle at = 0;
    std::uint32_t cause = 0;  ///< the part of the stack for what waits until then
  };
  /// The data of a load are there. Returns the same.
  virtual bool finish(const Done& load) = 0;
  /// Whether a warp may wait for loads of other warps of its block.
  [[nodiscard]] virtual bool shares_loads() const { return false; }

  /// Whether a warp may wait until the load-store unit has read the sources of an instruction.
  [[nodiscard]] virtual bool awaits_readers() const { return false; }
  /// The load-store unit has sent some of its instructions: appends the warps that may wait for
  /// less now.
  virtual void free_readers(Cycle /*now*/, std::vector<std::uint32_t>& /*warps*/) {}

  /// For messages: what the instruction of a row waits for that nobody has promised yet.
  [[nodiscard]] virtual std::string describe(std::uint32_t /*row*/) const { return {}; }
};

}  // namespace warpstack::timing
