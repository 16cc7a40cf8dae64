#include "memory/cache/lru_sets.h"

#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

/// Lines that pass through all members before the next ones do, so that they stay in the
/// processor's cache.
constexpr std::size_t lines_at_a_time = 1 << 12;
constexpr std::uint64_t max_entries = std::uint64_t{1} << 31;

}  // namespace

CacheFamily::CacheFamily(std::vector<std::uint64_t> sets, std::uint32_t max_ways)
    : max_ways_(max_ways) {
  if (max_ways == 0) throw InputError("max_ways = 0; a cache has at least one way");
  std::uint64_t entries = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i] == 0) throw InputError("sets = 0; a cache has at least one set");
    if (i > 0 && sets[i] <= sets[i - 1]) throw InputError("the numbers of sets do not increase");
    if (sets[i] > max_entries / max_ways || (entries += sets[i] * max_ways) > max_entries) {
      throw InputError("sets: caches of " + std::to_string(sets[i]) + " sets and " +
                       std::to_string(max_ways) + " ways bring the family above 2^31 lines");
    }
  }
  members_.reserve(sets.size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    members_.push_back({LruSets(sets[i], max_ways),
                        i + 1 < sets.size() && sets[i + 1] % sets[i] == 0,
                        std::vector<std::uint64_t>(max_ways + 1)});
  }
}

void CacheFamily::access(std::span<const std::uint64_t> lines, const InterruptCheck& interrupt) {
  for (std::size_t first = 0; first < lines.size(); first += lines_at_a_time) {
    if (first / lines_at_a_time % 64 == 0 && interrupt) interrupt();
    const auto part = lines.subspan(first, std::min(lines_at_a_time, lines.size() - first));
    bool divided = false;       // the member before divides this one
    std::uint64_t settled = 0;  // accesses at depth 0 there, which are at depth 0 here, too
    for (Member& member : members_) {
      if (!divided) {
        pending_.assign(part.begin(), part.end());
        settled = 0;
      }
      member.at_depth[0] += settled;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < pending_.size(); ++i) {
        const std::uint64_t line = pending_[i];
        const std::uint32_t depth = member.sets.access(line);
        ++member.at_depth[depth];
        pending_[kept] = line;
        kept += depth != 0;
      }
      settled += pending_.size() - kept;
      pending_.resize(kept);
      divided = member.divides_next;
    }
  }
}

std::vector<std::uint64_t> CacheFamily::hits() const {
  std::vector<std::uint64_t> result;
  for (const Member& member : members_) {
    std::uint64_t sum = 0;
    for (std::uint32_t way = 0; way < max_ways_; ++way) {
      sum += member.at_depth[way];
      result.push_back(sum);
    }
  }
  return result;
}

}  // namespace warpstack::memory
