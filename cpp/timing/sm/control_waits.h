#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/sm/control_barriers.h"
#include "timing/sm/readers.h"
#include "timing/sm/waits.h"

namespace warpstack::timing {

/// Instructions of machine code say when they issue: their control fields have stalls, and barriers
/// that they hold and wait for. Nobody looks up registers.
class ControlWaits : public Waits {
 public:
  ControlWaits(const RowTable& rows, const LoadStoreUnit& lsu, std::size_t num_warps)
      : rows_(rows), stalls_until_(num_warps), barriers_(num_warps), readers_(lsu, num_warps) {}

  void start_warp(std::uint32_t warp, Cycle start) override;
  [[nodiscard]] Wait wait(std::uint32_t warp, std::uint32_t block, std::uint32_t row) override;
  bool issue(const Issue& issue) override;
  bool finish(const Done& load) override;
  [[nodiscard]] bool awaits_readers() const override { return true; }
  void free_readers(Cycle now, std::vector<std::uint32_t>& warps) override;

 private:
  /// Barriers that an instruction holds until its sources are read.
  struct Held {
    std::uint8_t read = trace::no_control_barrier;
    std::uint8_t write = trace::no_control_barrier;  ///< of one that returns nothing
  };

  void hold_for_access(const Issue& issue);
  void hold_for_operation(const Issue& issue);

  const RowTable& rows_;
  std::vector<Cycle> stalls_until_;  ///< by warp
  ControlBarriers barriers_;
  Readers<Held> readers_;
};

}  // namespace warpstack::timing
