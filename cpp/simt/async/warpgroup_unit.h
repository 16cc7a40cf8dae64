#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simt/arithmetic/matrix_descriptor.h"
#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/race_monitor.h"

namespace warpstack::simt {

/// Warps of a group that multiplies matrices together.
inline constexpr std::uint32_t warpgroup_warps = 4;

/// wgmma: each warp computes its rows when it issues the instruction. Operands that the others of
/// its group have not read yet must not change, so a wait holds the warp until they have come as
/// far.
class WarpgroupUnit {
 public:
  WarpgroupUnit(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces,
                RaceMonitor& races)
      : execution_(execution),
        program_(execution.program),
        faults_(faults),
        recorder_(recorder),
        spaces_(spaces),
        races_(races) {}

  void multiply(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// wgmma.commit_group
  void commit(Warp& warp);
  /// wgmma.wait_group: whether the other warps of the group have multiplied what this one waits
  /// for.
  [[nodiscard]] bool wait(const Warp& warp, const Step& step);
  /// "the products of warps 1 and 2 of its group", for messages.
  [[nodiscard]] std::string text(const Warp& warp, const Step& step) const;

 private:
  [[nodiscard]] bool is_over(const Warp& warp, const Step& step) const;
  /// The warps of a warp's group.
  [[nodiscard]] std::span<const Warp> group_of(const Warp& warp) const;
  void read_factor(Warp& warp, const Step& step, const MatrixDescriptor& descriptor,
                   bool by_columns, std::uint32_t first_row, std::span<FactorRow> rows);
  void read_registers(const WarpgroupMultiply& multiply, const std::byte* registers,
                      std::span<FactorRow> rows) const;

  Execution& execution_;
  const KernelProgram& program_;
  Faults& faults_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
  std::vector<FactorRow> a_ = std::vector<FactorRow>(warp_rows);
  std::vector<FactorRow> b_ = std::vector<FactorRow>(max_warpgroup_columns);
};

}  // namespace warpstack::simt
