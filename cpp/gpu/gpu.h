#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/choices.h"

namespace warpstack::gpu {

/// Whole bytes of a size in KiB.
inline std::uint64_t bytes_of_kib(double kib) { return static_cast<std::uint64_t>(kib * 1024); }

/// The default of a field without one: descriptions must give it.
struct Required {
  template <typename T>
  constexpr operator T() const {
    return T{};
  }
};
inline constexpr Required required;

/// A GPU: a member for each row of gpu/fields.inc, which says what it means and in which unit it
/// is. Cycles are those of the SM clock, bandwidths those of the whole GPU.
struct Gpu {
#define GPU_FIELD(type, name, unit, fallback, range, stages, meaning) type name = fallback;
#include "gpu/fields.inc"
#undef GPU_FIELD

  bool operator==(const Gpu&) const = default;

  // What follows from several fields:

  /// Warp schedulers of an SM, where the description leaves them out, too.
  [[nodiscard]] std::uint32_t num_schedulers() const {
    if (schedulers_per_sm != 0) return schedulers_per_sm;
    return static_cast<std::uint32_t>(std::min(std::ceil(issue_width), 1024.0));
  }
  [[nodiscard]] std::uint32_t num_dram_channels() const {
    return dram_channels != 0 ? dram_channels : l2_slices;
  }
  /// What long streams reach of the DRAM bandwidth.
  [[nodiscard]] double sustained_dram_bandwidth_gbs() const {
    return dram_bandwidth_gbs * dram_efficiency;
  }
  /// Cycles from the end of a block to the start of the one that takes its place.
  [[nodiscard]] double block_replacement_cycles() const { return block_replacement_ns * clock_ghz; }
  /// The clock of L2 and the NoC.
  [[nodiscard]] double clock_of_l2_ghz() const {
    return l2_clock_ghz != 0 ? l2_clock_ghz : clock_ghz;
  }
  [[nodiscard]] double clock_of_dram_ghz() const {
    return dram_clock_ghz != 0 ? dram_clock_ghz : clock_of_l2_ghz();
  }
  /// Whether L1 is a streaming cache: its queue of requests then takes the place of its MSHRs
  /// (MDM, footnote 2).
  [[nodiscard]] bool has_streaming_l1() const { return noc_queue_entries != 0; }
};

/// Why a GPU cannot be: a value out of its range, or values that contradict each other, as those of
/// caches that do not divide into lines, sets and slices. Nothing if it can be.
std::optional<std::string> fault_of(const Gpu& gpu);
/// The same of a GPU whose values are in their ranges.
std::optional<std::string> contradiction_in(const Gpu& gpu);
/// Throws InputError if there is a fault.
void check(const Gpu& gpu);

}  // namespace warpstack::gpu
