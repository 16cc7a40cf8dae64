#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "memory/cache/atomic_turns.h"
#include "memory/cache/cache.h"
#include "memory/order/warp_stream.h"

namespace warpstack::memory {

/// The sectors that an instruction touches in one line.
struct LineAccess {
  std::uint64_t line;
  SectorMask mask;
  std::uint32_t set = 0;  ///< left to the caller, who knows the cache
};

/// Groups the sectors of an instruction by line, in order of first touch.
class LineGrouper {
 public:
  explicit LineGrouper(std::uint32_t line_bytes)
      : sectors_per_line_(line_bytes / trace::sector_bytes) {}

  std::span<LineAccess> group(const MemoryAccess& access) {
    const bool writes = !access.store_bytes.empty();
    const bool is_atomic = !access.atomics.empty();
    if (access.sectors.size() > lines_.size()) grow(access.sectors.size());
    count_ = 0;
    is_indexed_ = false;
    const Divisor sectors_per_line = sectors_per_line_;
    std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t highest = 0;
    std::uint64_t line = lowest;  // of the sector before
    std::size_t position = 0;
    for (std::size_t i = 0; i < access.sectors.size(); ++i) {
      const std::uint64_t here = sectors_per_line.quotient(access.sectors[i]);
      const std::uint64_t sector = access.sectors[i] - here * sectors_per_line.value();
      if (here != line) {
        line = here;
        // A line outside the range seen so far is new.
        position = line <= highest && line >= lowest ? find_among_all(line)
                   : is_indexed_                     ? find_or_insert(line)
                                                     : count_;
        if (position == count_) {
          lines_[count_] = {line, 0};
          if (writes) bytes_[count_] = {};
          if (is_atomic) lanes_[count_] = {};
          ++count_;
          highest = std::max(highest, line);
          lowest = std::min(lowest, line);
        }
      }
      lines_[position].mask |= static_cast<SectorMask>(1u << sector);
      if (writes) bytes_[position][sector] = access.store_bytes[i];
      if (is_atomic) lanes_[position][sector] = access.atomics[i];
    }
    return {lines_.data(), count_};
  }
  /// Byte masks of the written sectors of a line that group() returned.
  [[nodiscard]] const ByteMasks& bytes(std::size_t position) const { return bytes_[position]; }
  /// Lanes of an atomic in the sectors of a line that group() returned.
  [[nodiscard]] const SectorLanes& lanes(std::size_t position) const { return lanes_[position]; }

 private:
  struct Entry {
    std::uint32_t stamp = 0;     ///< identifies the instruction that made the entry
    std::uint32_t position = 0;  ///< in lines_
  };

  void grow(std::size_t sectors) {
    lines_.resize(sectors);
    bytes_.resize(sectors);
    lanes_.resize(sectors);
    table_.assign(std::bit_ceil(2 * sectors), {});
    stamp_ = 0;
  }
  std::size_t find_among_all(std::uint64_t line) {
    if (!is_indexed_) {
      is_indexed_ = true;
      ++stamp_;
      for (std::size_t i = 0; i < count_; ++i) find_or_insert(lines_[i].line, i);
    }
    return find_or_insert(line);
  }
  /// Returns the position of a line. A new line gets the position `otherwise`.
  std::size_t find_or_insert(std::uint64_t line, std::size_t otherwise) {
    const std::size_t mask = table_.size() - 1;
    std::size_t i = (line * 0x9e3779b97f4a7c15 >> 32) & mask;
    for (; table_[i].stamp == stamp_; i = (i + 1) & mask) {
      if (lines_[table_[i].position].line == line) return table_[i].position;
    }
    table_[i] = {stamp_, static_cast<std::uint32_t>(otherwise)};
    return otherwise;
  }
  std::size_t find_or_insert(std::uint64_t line) { return find_or_insert(line, count_); }

  Divisor sectors_per_line_;
  std::size_t count_ = 0;
  std::vector<LineAccess> lines_;
  std::vector<ByteMasks> bytes_;
  std::vector<SectorLanes> lanes_;
  std::vector<Entry> table_;  ///< open addressing, at most half full; stale stamps are free
  std::uint32_t stamp_ = 0;
  bool is_indexed_ = false;  ///< the table holds the lines so far
};

/// Splits the lines of an atomic into one request per lane or word of a sector, as
/// AtomicRule::requests_of() counts them.
inline void split_by_lanes(std::vector<LineAccess>& lines, std::vector<ByteMasks>& bytes,
                           std::vector<SectorLanes>& lanes) {
  std::vector<LineAccess> split_lines;
  std::vector<ByteMasks> split_bytes;
  std::vector<SectorLanes> split_lanes;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::uint32_t rest = lines[i].mask; rest != 0; rest &= rest - 1) {
      const auto sector = static_cast<SectorMask>(rest & (0 - rest));
      const std::uint32_t requests =
          AtomicRule::requests_of(lanes[i][static_cast<std::size_t>(std::countr_zero(rest))]);
      split_lines.insert(split_lines.end(), requests, {lines[i].line, sector});
      split_bytes.insert(split_bytes.end(), requests, bytes[i]);
      split_lanes.insert(split_lanes.end(), requests, lanes[i]);
    }
  }
  lines = std::move(split_lines);
  bytes = std::move(split_bytes);
  lanes = std::move(split_lanes);
}

}  // namespace warpstack::memory
