#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warpstack::trace {

struct LaneAddresses;

/// How many lanes of an atomic want a sector, and a word of it. An L2 without an adder of lanes
/// serves one lane of a word at a time, those of different words together: `word` is how many
/// requests a sector has then. Where each lane takes a turn, `sector` is how many turns that are.
struct AtomicLanes {
  std::uint8_t sector = 0;  ///< lanes whose first byte lies in the sector
  std::uint8_t word = 0;    ///< the most of them at one address, at least 1; 0: no atomic

  bool operator==(const AtomicLanes&) const = default;
};

/// Appends the lanes of each of the sectors that coalesce() found for these addresses. They sum to
/// the active lanes.
void append_atomic_lanes(const LaneAddresses& lanes, std::span<const std::uint64_t> sectors,
                         std::vector<AtomicLanes>& result);

/// Appends the lanes of an atomic of `width` bytes of which only their number and the touched bytes
/// of each sector are known: as if they were spread evenly over the touched words, in order.
void append_even_lanes(std::uint32_t lanes, std::span<const std::uint32_t> store_bytes,
                       std::uint32_t width, std::vector<AtomicLanes>& result);

}  // namespace warpstack::trace
