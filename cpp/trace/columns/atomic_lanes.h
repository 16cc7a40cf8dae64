#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warpstack::trace {

struct LaneAddresses;

/// The numbers of lanes of an atomic that access a sector, and a word of it. An L2 that does not
/// add lanes serves one lane per word at a time, but different words together: then a sector has
/// `word` requests. If each lane takes a turn, a sector takes `sector` turns.
struct AtomicLanes {
  std::uint8_t sector = 0;  ///< lanes whose first byte lies in the sector
  std::uint8_t word = 0;    ///< most lanes at one address, at least 1; 0: no atomic

  bool operator==(const AtomicLanes&) const = default;
};

/// Appends the lanes of each sector that coalesce() found for these addresses. They sum to the
/// active lanes.
void append_atomic_lanes(const LaneAddresses& lanes, std::span<const std::uint64_t> sectors,
                         std::vector<AtomicLanes>& result);

/// Appends the lanes of an atomic of `width` bytes if only their number and the touched bytes of
/// each sector are known: they are spread evenly over the touched words, in order.
void append_even_lanes(std::uint32_t lanes, std::span<const std::uint32_t> store_bytes,
                       std::uint32_t width, std::vector<AtomicLanes>& result);

}  // namespace warpstack::trace
