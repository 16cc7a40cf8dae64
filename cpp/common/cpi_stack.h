#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/enum_names.h"

namespace warpstack {

/// Components of a CPI stack from the bottom (GPUMech, Table III; MDM, Figure 14): what an issue
/// slot was used for or lost to, why a warp stalled, and what a miss waited for.
enum class StackComponent : std::uint8_t { base, dep, l1, l2, dram, mshr, noc, queue };
constexpr auto names_of(StackComponent) {
  return enum_names("component of a CPI stack", "base", "dep", "l1", "l2", "dram", "mshr", "noc",
                    "queue");
}

/// An amount per value of an enumeration, from the first one up.
template <typename Part, typename T>
class StackOf {
 public:
  T& operator[](Part part) { return values_[static_cast<std::size_t>(part)]; }
  const T& operator[](Part part) const { return values_[static_cast<std::size_t>(part)]; }
  StackOf& operator+=(const StackOf& other) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
    return *this;
  }
  /// The sum from the bottom up.
  [[nodiscard]] T sum() const {
    T result{};
    for (const T& value : values_) result += value;
    return result;
  }
  [[nodiscard]] auto begin() { return values_.begin(); }
  [[nodiscard]] auto end() { return values_.end(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }

 private:
  std::array<T, num_values<Part>> values_{};
};

/// An amount per component: cycles per instruction, cycles or issue slots.
template <typename T>
using CpiStack = StackOf<StackComponent, T>;

/// What an engineer can act on, one level below: each belongs to one component
/// (docs/explanation/stack-details.md).
enum class StackDetail : std::uint8_t {
  // base
  issue,
  idle,  ///< no warp waits, and none can use the slot
  // dep
  arithmetic,         ///< results of other instructions
  units,              ///< busy with an instruction before
  shared_memory,      ///< an access that has no bank conflicts
  bank_conflicts,     ///< further turns of an access to shared memory
  barriers,           ///< from the last arrival until the warps go on
  instruction_fetch,  ///< code that is not there
  phases,             ///< mbarriers, and groups of bulk stores
  starts,             ///< of warps of a block
  // l1
  l1_latency,
  load_store_unit,  ///< its turns, an instruction each
  tags,             ///< further turns: lines of an access, passes over the banks of L1
  // l2
  l2_latency,
  l2_queue,    ///< of a slice, behind its requests
  l2_atomics,  ///< of a slice, behind turns of lanes that meet in a word
  // dram
  dram_latency,
  // mshr
  mshrs,         ///< all in use
  mshr_targets,  ///< no room for another access to a line that is under way
  places,        ///< all lines of a set of L1 are under way
  // noc
  send_port,     ///< of the SM
  receive_port,  ///< of the SM
  network,
  slices,        ///< of L2, which take so many requests per cycle
  atomics,       ///< slices of L2 that are busy with lanes that meet in a word
  dram_backlog,  ///< slices of L2 that wait for DRAM themselves
  // queue
  dram_bandwidth,
  dram_rows,         ///< to be opened
  dram_turnarounds,  ///< between reads and writes
  l2_mshrs,          ///< of L2, and their targets
};
constexpr auto names_of(StackDetail) {
  return enum_names("detail of a CPI stack", "issue", "idle", "arithmetic", "units",
                    "shared_memory", "bank_conflicts", "barriers", "instruction_fetch", "phases",
                    "starts", "l1_latency", "load_store_unit", "tags", "l2_latency", "l2_queue",
                    "l2_atomics", "dram_latency", "mshrs", "mshr_targets", "places", "send_port",
                    "receive_port", "network", "slices", "atomics", "dram_backlog",
                    "dram_bandwidth", "dram_rows", "dram_turnarounds", "l2_mshrs");
}

/// Of the details, which stand in the order of their components.
constexpr StackComponent component_of(StackDetail detail) {
  if (detail >= StackDetail::dram_bandwidth) return StackComponent::queue;
  if (detail >= StackDetail::send_port) return StackComponent::noc;
  if (detail >= StackDetail::mshrs) return StackComponent::mshr;
  if (detail >= StackDetail::dram_latency) return StackComponent::dram;
  if (detail >= StackDetail::l2_latency) return StackComponent::l2;
  if (detail >= StackDetail::l1_latency) return StackComponent::l1;
  return detail >= StackDetail::arithmetic ? StackComponent::dep : StackComponent::base;
}

/// An amount per detail.
template <typename T>
using DetailedStack = StackOf<StackDetail, T>;

/// The sums of the components.
template <typename T>
CpiStack<T> components_of(const DetailedStack<T>& details) {
  CpiStack<T> result;
  for (const StackDetail detail : values_of<StackDetail>) {
    result[component_of(detail)] += details[detail];
  }
  return result;
}

}  // namespace warpstack
