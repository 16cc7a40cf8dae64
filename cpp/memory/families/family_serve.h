#pragma once

#include <memory>
#include <span>
#include <vector>

#include "memory/cache/cache.h"
#include "memory/families/family_replay.h"
#include "memory/families/member_counter.h"

// L2 caches serve what leaves L1.

namespace warpstack::memory {

/// The answers of several L2 caches to the followed requests of a launch.
struct ServedLaunch {
  struct Row {
    std::uint64_t requests = 0;
    MemberCounter dram_requests;
    MemberCounter dram_sectors;
  };

  std::size_t num_members = 1;
  std::vector<MemoryTotals> totals;  ///< by member
  std::vector<Row> rows;
  // By request:
  std::vector<Members> missed;
  std::vector<Members> asks_dram;
};

/// L2 caches that serve the same launches one after the other and keep their contents between them.
class FamilyL2 {
 public:
  FamilyL2() = default;
  FamilyL2(const FamilyL2&) = delete;
  FamilyL2& operator=(const FamilyL2&) = delete;
  virtual ~FamilyL2() = default;

  virtual ServedLaunch serve(const FilteredLaunch& launch) = 0;
  virtual void clear() = 0;
  [[nodiscard]] virtual std::uint64_t dirty_sectors(std::size_t member) const = 0;
};

/// L2 caches for configurations that differ in size and ways only, in their order: in bundles if
/// possible (cache_bundle.h), else one by one.
std::vector<std::unique_ptr<FamilyL2>> family_l2s(std::span<const CacheConfig> configs);

/// The profiles of a launch with each member of an L2. What was not followed is estimated by row,
/// except the dirty sectors that L2 keeps, which are counted if `has_all_sets`.
std::vector<MemoryProfile> profiles_of(const FilteredLaunch& launch, const WaitSample& waits,
                                       bool is_timed, FamilyL2& l2, bool has_all_sets);

}  // namespace warpstack::memory
