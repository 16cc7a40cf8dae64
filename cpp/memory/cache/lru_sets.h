#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/interrupt.h"
#include "memory/cache/address_map.h"

namespace warpstack::memory {

/// The lines of a set-associative LRU cache and nothing else: no sectors, no writes. The set of a
/// line is its number modulo the number of sets.
class LruSets {
 public:
  /// Marks free ways; no access has this line number.
  static constexpr std::uint64_t no_line = ~std::uint64_t{0};

  LruSets(std::uint64_t sets, std::uint32_t ways)
      : by_sets_(sets), ways_(ways), lines_(sets * ways, no_line) {}

  /// Makes a line the most recently used of its set. Returns how many lines of the set had been
  /// used more recently, or the number of ways if the line was not there.
  std::uint32_t access(std::uint64_t line) {
    std::uint64_t* set = set_of(line);
    // Each line moves back by one until the place of the accessed one is free.
    std::uint64_t moved = line;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      std::swap(moved, set[way]);
      if (moved == line) return way;
    }
    return ways_;
  }
  [[nodiscard]] bool contains(std::uint64_t line) {
    const std::uint64_t* set = set_of(line);
    return std::find(set, set + ways_, line) != set + ways_;
  }
  /// Frees the way of a line.
  void erase(std::uint64_t line) {
    std::uint64_t* set = set_of(line);
    std::uint64_t* found = std::find(set, set + ways_, line);
    if (found == set + ways_) return;
    std::copy(found + 1, set + ways_, found);
    set[ways_ - 1] = no_line;
  }

 private:
  [[nodiscard]] std::uint64_t* set_of(std::uint64_t line) {
    return lines_.data() + by_sets_.remainder(line) * ways_;
  }

  Divisor by_sets_;
  std::uint32_t ways_;
  std::vector<std::uint64_t> lines_;  ///< set by set, in each set the last used first
};

/// Hits of every LRU cache with the given numbers of sets and up to `max_ways` ways on one stream,
/// from a single pass (Hill and Smith, IEEE Transactions on Computers 38(12), 1989): a line at
/// depth d of its set is in all caches with more than d ways. A line that was used last in its set
/// stays so when the set is divided further, so most accesses end at the smallest caches.
class CacheFamily {
 public:
  /// `sets`: increasing. Throws InputError on impossible values.
  CacheFamily(std::vector<std::uint64_t> sets, std::uint32_t max_ways);

  /// Continues the stream; no line is LruSets::no_line.
  void access(std::span<const std::uint64_t> lines, const InterruptCheck& interrupt = {});
  /// Hits by number of sets, then by number of ways from 1.
  [[nodiscard]] std::vector<std::uint64_t> hits() const;

 private:
  struct Member {
    LruSets sets;
    bool divides_next;  ///< its number of sets divides that of the next member
    std::vector<std::uint64_t> at_depth;
  };

  std::uint32_t max_ways_;
  std::vector<Member> members_;
  std::vector<std::uint64_t> pending_;
};

}  // namespace warpstack::memory
