#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/cache/cache.h"
#include "memory/cache/request.h"
#include "memory/families/member_counter.h"

namespace warpstack::memory {

/// The outcomes of a request in the caches of a bundle, a bit per cache; arrays are by sector.
struct BundleOutcome {
  Members missed = 0;     ///< a sector was not there
  Members asks_dram = 0;  ///< see Outcome
  /// The caches that had the sector, for each requested one in order.
  std::array<Members, max_sectors_per_line> hit{};
  std::uint32_t num_hit = 0;  ///< entries of `hit`
  /// The caches that moved the sector; see Outcome::dram_sectors.
  std::array<Members, max_sectors_per_line> moved{};
};

/// Up to 32 LRU caches that differ in size and ways only and take the same requests. The state of a
/// line has a bit per cache, so a request that hits in all of them costs about as much as in one.
/// The time of a line's last use does not depend on the cache; a full set replaces the line used
/// longest ago. Each cache gives the same results as a Cache.
class CacheBundle {
 public:
  /// Whether caches like this one can be in a bundle.
  static bool can_have(const CacheConfig& config) { return config.replacement == Replacement::lru; }
  /// The configurations must be valid and as described above.
  explicit CacheBundle(std::span<const CacheConfig> caches);

  /// The number of a line, which never changes.
  std::uint32_t number_of(std::uint64_t line);
  void prefetch(std::uint32_t number) const {
    __builtin_prefetch(&lines_[number]);
    __builtin_prefetch(&sectors_of_[number]);
    __builtin_prefetch(&first_slots_[std::size_t{number} * num_members_]);
  }
  /// Serves a request for sectors of the line with a number, as L2Port does.
  BundleOutcome serve(const Request& request, std::uint32_t number, const ByteMasks& bytes);
  /// Forgets all lines, but not their numbers.
  void clear();

  [[nodiscard]] std::size_t num_members() const { return num_members_; }
  [[nodiscard]] Members all() const { return all_; }
  [[nodiscard]] std::uint64_t dirty_sectors(std::size_t member) const { return dirty_.of(member); }
  /// Sectors read from DRAM and written there since the bundle was made.
  [[nodiscard]] std::uint64_t dram_reads(std::size_t member) const {
    return dram_reads_.of(member);
  }
  [[nodiscard]] std::uint64_t dram_writes(std::size_t member) const {
    return dram_writes_.of(member);
  }

 private:
  struct Sector {
    Members valid = 0;
    Members dirty = 0;
    Members partial = 0;  ///< some bytes are valid
  };
  /// What the search for a line to replace reads, close together.
  struct Line {
    std::int64_t last_use = 0;  ///< negative: it is to be replaced next
    Members resident = 0;
    Members dirty = 0;  ///< has a dirty sector; may be stale where not resident
  };
  /// Meaningless where the line is not resident.
  using Sectors = std::array<Sector, max_sectors_per_line>;
  /// Caches in which the same bytes of a sector are valid.
  struct SameBytes {
    Members members;
    std::uint32_t bytes;
  };
  using Planes = std::array<Members, max_sectors_per_line>;

  static constexpr std::uint32_t no_line = 0;  ///< the number that stands in an empty way

  void use(std::uint32_t number, Members where, bool evict_first);
  void insert(std::uint32_t number, Members where);
  /// Writes back the dirty sectors of a line that a cache replaces.
  void write_back(std::uint32_t number, std::size_t member);
  /// Returns the missing sectors of the fill units that a mask touches, and makes them valid.
  Planes fetch(Sectors& sectors, SectorMask mask);
  Planes fetch_partly_written(Sectors& sectors, SectorMask mask, const ByteMasks& bytes);
  void write_bytes(std::uint32_t number, SectorMask mask, const ByteMasks& bytes);
  /// Marks all valid sectors of each unit that is written to as dirty.
  void make_dirty(std::uint32_t number, SectorMask mask, const Planes& written, Members where);
  BundleOutcome read(std::uint32_t number, SectorMask mask, bool evict_first);
  BundleOutcome write(const Request& request, std::uint32_t number, const ByteMasks& bytes);
  [[nodiscard]] Members missed_of(const Planes& hit, SectorMask mask) const;

  CacheConfig config_;  ///< of the first member; others differ in size and ways
  std::size_t num_members_;
  Members all_;
  std::uint32_t sectors_;       ///< of a line
  std::uint32_t unit_sectors_;  ///< of a fill unit
  Strangers strangers_;
  std::vector<Cache> maps_;  ///< by member: used only to find the sets of lines
  std::vector<std::uint32_t> ways_;
  std::vector<std::size_t> first_slot_of_;  ///< by member
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  // By number of the line:
  std::vector<Line> lines_;
  std::vector<Sectors> sectors_of_;
  std::vector<std::uint32_t> first_slots_;  ///< and by member: first slot of its set
  std::vector<std::uint32_t> slots_;        ///< numbers of the lines in all ways of all sets
  std::int64_t clock_ = 0;
  /// The bytes of partial sectors, by line * max_sectors_per_line + sector; members whose sector is
  /// no longer partial may remain.
  std::unordered_map<std::uint64_t, std::vector<SameBytes>> valid_bytes_;
  MemberCounter dirty_;
  MemberCounter dram_reads_;
  MemberCounter dram_writes_;
};

}  // namespace warpstack::memory
