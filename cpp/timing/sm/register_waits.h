#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/sm/waits.h"

namespace warpstack::timing {

/// Instructions wait for their registers, as a scoreboard keeps them.
class RegisterWaits : public Waits {
 public:
  RegisterWaits(const RowTable& rows, std::size_t num_warps);

  void start_warp(std::uint32_t warp, Cycle start) override;
  [[nodiscard]] Wait wait(std::uint32_t warp, std::uint32_t block, std::uint32_t row) override;
  bool issue(const Issue& issue) override;
  bool finish(const Done& load) override;

 protected:
  [[nodiscard]] const RowTable& rows() const { return rows_; }

 private:
  /// The destinations of an instruction are there at the end of this wait.
  void write(std::uint32_t warp, const RowTable::Row& row, const Wait& wait);

  const RowTable& rows_;
  std::size_t num_registers_;
  std::vector<Wait> registers_;  ///< by warp and register
};

}  // namespace warpstack::timing
