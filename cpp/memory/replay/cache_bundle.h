#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/cache/cache.h"
#include "memory/cache/request.h"
#include "memory/replay/member_counter.h"

namespace warpstack::memory {

/// What the caches of a bundle say about a request, each in its bit; planes are by sector.
struct BundleOutcome {
  Members missed = 0;     ///< a sector was not there
  Members asks_dram = 0;  ///< as Outcome
  /// Sectors that were there, of the requested ones in order.
  std::array<Members, max_sectors_per_line> hit{};
  std::uint32_t num_hit = 0;  ///< entries
  /// Sectors that were moved, as Outcome::dram_sectors counts them.
  std::array<Members, max_sectors_per_line> moved{};
};

/// Up to 32 LRU caches that differ in size and ways only, and take the same requests. What a line
/// is in each of them is a bit of a word, so that a request which hits in all of them costs about
/// as much as in one. When a line was used last does not depend on the cache: among the lines of a
/// full set the one that was used first makes room, as in Cache, which says the same of each.
class CacheBundle {
 public:
  /// Whether caches like this one can be in a bundle.
  static bool can_have(const CacheConfig& config) { return config.replacement == Replacement::lru; }
  /// The configurations are valid and as said above.
  explicit CacheBundle(std::span<const CacheConfig> caches);

  /// The number of a line, which it keeps.
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
  /// What the search for a line that makes room reads, close together.
  struct Line {
    std::int64_t last_use = 0;  ///< negative: it is to make room next
    Members resident = 0;
    Members dirty = 0;  ///< with a dirty sector; others may remain where it is not resident
  };
  /// No meaning where the line is not resident.
  using Sectors = std::array<Sector, max_sectors_per_line>;
  /// Caches in which the same bytes of a sector are valid.
  struct SameBytes {
    Members members;
    std::uint32_t bytes;
  };
  using Planes = std::array<Members, max_sectors_per_line>;

  static constexpr std::uint32_t no_line = 0;  ///< the number of what is in an empty way

  void use(std::uint32_t number, Members where, bool evict_first);
  void insert(std::uint32_t number, Members where);
  /// A cache writes what is dirty of a line that makes room.
  void write_back(std::uint32_t number, std::size_t member);
  /// What is missing of the fill units that a mask touches; they are there then.
  Planes fetch(Sectors& sectors, SectorMask mask);
  Planes fetch_partly_written(Sectors& sectors, SectorMask mask, const ByteMasks& bytes);
  void write_bytes(std::uint32_t number, SectorMask mask, const ByteMasks& bytes);
  /// Marks the written sectors of each unit, or all of a unit that is one.
  void make_dirty(std::uint32_t number, SectorMask mask, const Planes& written, Members where);
  BundleOutcome read(std::uint32_t number, SectorMask mask, bool evict_first);
  BundleOutcome write(const Request& request, std::uint32_t number, const ByteMasks& bytes);
  [[nodiscard]] Members missed_of(const Planes& hit, SectorMask mask) const;

  CacheConfig config_;  ///< of the first member; size and ways are of each
  std::size_t num_members_;
  Members all_;
  std::uint32_t sectors_;       ///< of a line
  std::uint32_t unit_sectors_;  ///< of a fill unit
  std::vector<Cache> maps_;     ///< by member: asked for the sets of lines only
  std::vector<std::uint32_t> ways_;
  std::vector<std::size_t> first_slot_of_;  ///< by member
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  // By number of the line:
  std::vector<Line> lines_;
  std::vector<Sectors> sectors_of_;
  std::vector<std::uint32_t> first_slots_;  ///< and by member: of its set
  std::vector<std::uint32_t> slots_;        ///< numbers of the lines in all ways of all sets
  std::int64_t clock_ = 0;
  /// The bytes of partial sectors, by line * max_sectors_per_line + sector; members that are
  /// not partial any more may remain.
  std::unordered_map<std::uint64_t, std::vector<SameBytes>> valid_bytes_;
  MemberCounter dirty_;
  MemberCounter dram_reads_;
  MemberCounter dram_writes_;
};

}  // namespace warpstack::memory
