#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/digest.h"
#include "gpu/choices.h"
#include "memory/cache/address_map.h"
#include "memory/cache/replacement.h"
#include "memory/cache/set_store.h"
#include "memory/cache/strangers.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::memory {

inline constexpr std::uint32_t max_sectors_per_line = 8;
using ByteMasks = std::array<std::uint32_t, max_sectors_per_line>;
/// Every byte of a sector.
inline constexpr std::uint32_t all_bytes = ~std::uint32_t{0};

/// How many bytes of some sectors are marked.
inline std::uint32_t count_bytes(SectorMask mask, const ByteMasks& bytes) {
  std::uint32_t count = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    count += static_cast<std::uint32_t>(std::popcount(bytes[std::countr_zero(rest)]));
  }
  return count;
}

/// Number of sectors in a mask. A table, because portable builds have no population count
/// instruction.
inline std::uint32_t count_sectors(SectorMask mask) {
  static constexpr auto counts = [] {
    std::array<std::uint8_t, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
      table[i] = static_cast<std::uint8_t>(std::popcount(i));
    }
    return table;
  }();
  return counts[mask];
}

using gpu::Allocation;
using gpu::WriteMiss;
using gpu::WritePolicy;

struct CacheConfig {
  std::uint64_t size_bytes = 0;
  std::uint32_t ways = 1;
  std::uint32_t line_bytes = 128;
  std::uint32_t sector_bytes = 32;  ///< fill unit; equal to the line: not sectored
  WritePolicy write_policy = WritePolicy::write_back;
  WriteMiss write_miss = WriteMiss::fetch_on_write;
  Replacement replacement = Replacement::lru;
  Allocation allocation = Allocation::on_miss;  ///< of L1; L2 takes its requests one by one
  Indexing set_index = Indexing::modulo;
  std::uint32_t slices = 1;
  std::uint32_t slice_interleave_bytes = 128;  ///< consecutive bytes of one slice
  Indexing slice_index = Indexing::modulo;
  /// The share of the lines that hold written data of strangers while the cache is empty: see
  /// Strangers.
  double written_by_strangers = 0;

  /// Throws InputError, naming `level`, on impossible geometry.
  void validate(const char* level) const;
  [[nodiscard]] std::uint64_t num_lines() const { return size_bytes / line_bytes; }
  [[nodiscard]] std::uint64_t num_sets() const { return num_lines() / ways; }
  bool operator==(const CacheConfig&) const = default;
};

/// A set-associative cache of lines with a state per 32-byte sector: contents only, no time.
class Cache {
 public:
  /// What a line loses to make room.
  struct Eviction {
    std::uint64_t line;
    /// Sectors to write back; the other fields have a value only if there are any.
    SectorMask dirty = 0;
    std::uint32_t writer;  ///< who wrote to the line last
    ByteMasks bytes;       ///< valid bytes of the dirty sectors
  };
  struct ReadResult {
    SectorMask hit = 0;    ///< of the requested sectors
    SectorMask fetch = 0;  ///< to read from the next level: the misses, widened to fill units
  };
  struct WriteResult {
    SectorMask hit = 0;      ///< of the written sectors
    SectorMask fetch = 0;    ///< to read from the next level
    SectorMask forward = 0;  ///< to write to the next level
  };

  explicit Cache(const CacheConfig& config);

  /// The set of a line (line number = address / line_bytes): slices split the address space, and
  /// each has its own sets.
  [[nodiscard, gnu::always_inline]] std::uint32_t set_of(std::uint64_t line) const {
    if (config_.slices == 1) return static_cast<std::uint32_t>(set_in_slice_(line));
    const std::uint64_t chunk = by_interleave_.quotient(line);
    const std::uint64_t local_chunk = by_slices_.quotient(chunk);
    // The line's number if the chunks of other slices are left out.
    const std::uint64_t local = line - (chunk - local_chunk) * lines_per_interleave_;
    const std::uint64_t slice = config_.slice_index == Indexing::modulo
                                    ? chunk - local_chunk * config_.slices
                                    : slice_(chunk);
    return static_cast<std::uint32_t>(slice * sets_per_slice_ + set_in_slice_(local));
  }
  /// Prefetches what an access to a line of `set` will touch.
  void prefetch(std::uint32_t set, std::uint64_t line) const { sets_.prefetch(set, line); }
  /// Whether an access touches more than prefetch() knows of: see SetStore.
  [[nodiscard]] bool is_list() const { return sets_.is_list(); }
  void prefetch_found(std::uint32_t set, std::uint64_t line) const {
    sets_.prefetch_found(set, line);
  }

  /// Reads sectors of a line of `set`. A line that makes room is reported through `eviction`, which
  /// keeps dirty == 0 otherwise. With `evict_first` the line is the next to make room.
  [[gnu::always_inline]] ReadResult read(std::uint32_t set, std::uint64_t line, SectorMask mask,
                                         bool evict_first, Eviction& eviction) {
    return read_from(use(set, line, eviction), set, mask, evict_first);
  }
  using Finding = SetStore::Finding;
  /// Looks for a line without using it.
  [[nodiscard, gnu::always_inline]] Finding look(std::uint32_t set, std::uint64_t line) const {
    return sets_.look(set, line);
  }
  /// read() of a line that look() has just looked for.
  [[gnu::always_inline]] ReadResult read(std::uint32_t set, std::uint64_t line, SectorMask mask,
                                         const Finding& found, bool evict_first,
                                         Eviction& eviction) {
    const auto evict = [&](std::uint32_t way)
                           __attribute__((always_inline)) { this->evict(set, way, eviction); };
    return read_from(sets_.access(set, line, found, evict), set, mask, evict_first);
  }
  /// read() of a line that look() has just found, of sectors that are all valid.
  [[gnu::always_inline]] void touch(std::uint32_t set, std::uint64_t line, const Finding& found) {
    sets_.touch(set, line, found);
  }
  /// Writes sectors; `bytes[s]` says which bytes of sector s. A write-back cache remembers
  /// `writer` with the line.
  WriteResult write(std::uint32_t set, std::uint64_t line, SectorMask mask, const ByteMasks& bytes,
                    std::uint32_t writer, bool evict_first, Eviction& eviction);
  [[nodiscard]] bool contains(std::uint32_t set, std::uint64_t line) const {
    return sets_.find(set, line) >= 0;
  }
  /// What read() would fetch now.
  [[nodiscard]] SectorMask missing(std::uint32_t set, std::uint64_t line, SectorMask mask) const {
    return missing(look(set, line), mask);
  }
  /// The same, given the result of look().
  [[nodiscard]] SectorMask missing(const Finding& found, SectorMask mask) const {
    return widen(mask & ~found.valid) & ~found.valid;
  }
  /// What write() would fetch now.
  [[nodiscard]] SectorMask write_fetch(std::uint32_t set, std::uint64_t line, SectorMask mask,
                                       const ByteMasks& bytes) const;
  /// Whether a line is there or can take a place. If the line to be replaced is reserved, the next
  /// one in the replacement order is replaced instead.
  bool make_room(std::uint32_t set, std::uint64_t line) {
    return sets_.find(set, line) >= 0 || sets_.make_room(set);
  }
  /// The same, given the result of look() for the line, which stays valid for read().
  bool make_room(std::uint32_t set, std::uint64_t line, Finding& found) {
    if (found.is_there) return true;
    if (!sets_.make_room(set)) return false;
    found = look(set, line);  // another way may be the next to be replaced
    return true;
  }
  /// Keeps a resident line, whose data are on their way, from being replaced until it has been
  /// released as often as reserved. Only make_room() observes this.
  void reserve(std::uint32_t set, std::uint64_t line) { ++reserved(set, line); }
  void release(std::uint32_t set, std::uint64_t line) { --reserved(set, line); }
  /// The slice of a set.
  [[nodiscard]] std::uint32_t slice_of(std::uint32_t set) const {
    return static_cast<std::uint32_t>(by_sets_per_slice_.quotient(set));
  }
  /// Forgets sectors without writing them back.
  void invalidate(std::uint32_t set, std::uint64_t line, SectorMask mask);
  /// Dirty sectors of the lines that the cache holds now, without those of strangers. Adds a count
  /// of each set.
  [[nodiscard]] std::uint64_t dirty_sectors() const;
  /// Hands the dirty sectors to `write_back`, set by set and within a set from the line replaced
  /// last (with pseudo-LRU: in the order of the ways), then forgets everything. Not for a cache
  /// that strangers have written to.
  void flush(const std::function<void(const Eviction&)>& write_back);
  /// Forgets everything, and has lines of strangers again.
  void clear();
  /// Adds all state that affects later accesses: the lines of each set in replacement order,
  /// whatever their ways (with pseudo-LRU, also their ways).
  void add_to(Digest& digest);

  [[nodiscard]] const CacheConfig& config() const { return config_; }

 private:
  [[gnu::always_inline]] ReadResult read_from(const SetStore::Place& place, std::uint32_t set,
                                              SectorMask mask, bool evict_first) {
    if (evict_first) sets_.place_last(set, place.way);
    LineState& state = place.state;
    ReadResult result;
    result.hit = mask & state.valid;
    // A partly valid sector misses: the bytes around the written ones come from below.
    result.fetch = widen(mask & ~state.valid) & ~state.valid;
    state.valid |= result.fetch;
    state.partial &= ~result.fetch;
    return result;
  }
  /// Uses a line; one that is absent takes the place of another.
  [[gnu::always_inline]] SetStore::Place use(std::uint32_t set, std::uint64_t line,
                                             Eviction& eviction) {
    return sets_.access(set, line, [&](std::uint32_t way) __attribute__((always_inline)) {
      evict(set, way, eviction);
    });
  }
  /// Describes a line that is about to make room, whose dirty sectors no longer count.
  void evict(std::uint32_t set, std::uint32_t way, Eviction& eviction);
  void describe(std::uint32_t set, std::uint32_t way, Eviction& eviction) const;
  void place_strangers();
  /// Where a stranger's line lies: strangers are one piece of memory far from everything else.
  [[nodiscard]] std::uint64_t line_of_stranger(std::uint32_t set, std::uint32_t way) const;
  std::uint8_t& reserved(std::uint32_t set, std::uint64_t line) {
    return sets_.state(set, static_cast<std::uint32_t>(sets_.find(set, line))).reserved;
  }
  /// The fill units in `fetched` that a write does not fill.
  [[nodiscard]] SectorMask without_whole_units(SectorMask fetched, SectorMask mask,
                                               const ByteMasks& bytes) const;
  [[nodiscard]] std::size_t slot(std::uint32_t set, std::uint32_t way) const {
    return std::size_t{set} * config_.ways + way;
  }
  /// The fill units that a mask touches.
  [[nodiscard]] SectorMask widen(SectorMask mask) const { return units_[mask]; }
  static void write_bytes(LineState& state, ByteMasks& valid_bytes, SectorMask written,
                          const ByteMasks& bytes);

  CacheConfig config_;
  std::uint64_t sets_per_slice_;
  Divisor by_sets_per_slice_;
  std::uint64_t lines_per_interleave_;
  Divisor by_interleave_;
  Divisor by_slices_;
  AddressMap slice_;
  AddressMap set_in_slice_;
  const SectorMask* units_;  ///< by mask of sectors, the fill units that it touches
  SetStore sets_;
  Strangers strangers_;
  // Both by slot: set * ways + way.
  ZeroedArray<ByteMasks> bytes_;  ///< valid bytes of partial sectors; empty unless write_validate
  ZeroedArray<std::uint32_t> writers_;  ///< empty unless write_back
  /// By set, because threads work on different sets at once: the dirty sectors of its lines without
  /// those of strangers. Empty unless write_back.
  ZeroedArray<std::uint32_t> num_dirty_;
};

}  // namespace warpstack::memory
