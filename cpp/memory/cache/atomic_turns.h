#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "memory/cache/cache.h"
#include "trace/columns/atomic_lanes.h"

namespace warpstack::memory {

/// Lanes of an atomic, by sector of a line.
using SectorLanes = std::array<trace::AtomicLanes, max_sectors_per_line>;

/// Rounds to 1/1024, so that sums do not depend on the order of the threads.
inline double in_parts(double value) { return std::round(1024 * value) / 1024; }

/// What the lanes of an atomic cost, wherever they are counted: in the caches, which hand the sums
/// to the models, and in the simulator.
struct AtomicRule {
  /// A sector has a request for each of the lanes that meet in one of its words; otherwise a line
  /// has one.
  bool per_lane = false;
  double lane_turns = 0;     ///< of an L2 slice, per lane; 0: one turn per request
  double words_at_once = 1;  ///< different words that it serves in these turns

  /// Whether a request may take other than one turn.
  [[nodiscard]] bool counts_lanes() const { return per_lane || lane_turns > 0; }
  /// The number of requests of a sector if it has requests of its own.
  [[nodiscard]] static std::uint32_t requests_of(trace::AtomicLanes sector) {
    return std::max<std::uint32_t>(sector.word, 1);
  }
  /// Turns that a request of `lanes` lanes takes in its L2 slice.
  [[nodiscard]] double turns_of_request(double lanes) const {
    return std::max(1.0, lane_turns * lanes);
  }
  /// Lanes per request for some sectors of a line, one after the other. With `per_lane`, the lanes
  /// of a sector are shared out among its requests, in each of which they have words of their own.
  [[nodiscard]] double lanes_of_request(const SectorLanes& lanes, SectorMask mask) const {
    double sum = 0;
    double in_word = 0;  // the most that meet
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const trace::AtomicLanes sector = lanes[static_cast<std::size_t>(std::countr_zero(rest))];
      sum += static_cast<double>(sector.sector) / (per_lane ? requests_of(sector) : 1);
      in_word = std::max(in_word, per_lane ? 1.0 : static_cast<double>(sector.word));
    }
    return sum > 0 ? std::max(sum / words_at_once, in_word) : 0;
  }
  /// Turns of all requests for some sectors of a line.
  [[nodiscard]] double turns(const SectorLanes& lanes, SectorMask mask) const {
    if (!per_lane) return turns_of_request(lanes_of_request(lanes, mask));
    double turns = 0;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const auto sector = static_cast<std::size_t>(std::countr_zero(rest));
      turns += requests_of(lanes[sector]) *
               turns_of_request(lanes_of_request(lanes, static_cast<SectorMask>(1u << sector)));
    }
    return turns;
  }
};

/// The lanes of the sectors that two lines of different size share, by sector of the next line.
inline SectorLanes lanes_of_part(const SectorLanes& lanes, std::uint64_t line,
                                 std::uint64_t sectors_per_line, std::uint64_t next_line,
                                 std::uint64_t sectors_per_next_line) {
  if (sectors_per_line == sectors_per_next_line) return lanes;
  SectorLanes part{};
  for (std::uint64_t s = 0; s < sectors_per_line; ++s) {
    const std::uint64_t sector = line * sectors_per_line + s;
    if (sector / sectors_per_next_line == next_line)
      part[sector % sectors_per_next_line] = lanes[s];
  }
  return part;
}

}  // namespace warpstack::memory
