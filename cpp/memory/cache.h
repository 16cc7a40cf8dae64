#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "trace/access.h"

namespace warpstack {

/// Sectors of a line are numbered 0 to 7: lines have at most 256 bytes.
using SectorMask = std::uint8_t;
inline constexpr std::uint32_t max_sectors_per_line = 8;
using ByteMasks = std::array<std::uint32_t, max_sectors_per_line>;

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

enum class WritePolicy : std::uint8_t { write_through, write_back };
inline constexpr std::size_t num_write_policies = 2;
std::string_view name_of(WritePolicy policy);

enum class WriteMiss : std::uint8_t {
  no_allocate,     ///< the write goes on to the next level
  fetch_on_write,  ///< allocate and read the written sectors from the next level
  write_validate,  ///< allocate and remember which bytes are valid
};
inline constexpr std::size_t num_write_misses = 3;
std::string_view name_of(WriteMiss policy);

struct CacheConfig {
  std::uint64_t size_bytes = 0;
  std::uint32_t ways = 1;
  std::uint32_t line_bytes = 128;
  std::uint32_t sector_bytes = 32;  ///< fill unit; equal to the line: not sectored
  WritePolicy write_policy = WritePolicy::write_back;
  WriteMiss write_miss = WriteMiss::fetch_on_write;
  std::uint32_t slices = 1;
  std::uint32_t slice_interleave_bytes = 128;  ///< consecutive bytes of one slice

  /// Throws InputError, naming `level`, on impossible geometry.
  void validate(const char* level) const;
  [[nodiscard]] std::uint64_t num_lines() const { return size_bytes / line_bytes; }
  [[nodiscard]] std::uint64_t num_sets() const { return num_lines() / ways; }
};

/// Division by a number that is fixed early, quick for powers of two.
class Divisor {
 public:
  explicit Divisor(std::uint64_t value)
      : value_(value), shift_(std::has_single_bit(value) ? std::countr_zero(value) : -1) {}
  [[nodiscard]] std::uint64_t quotient(std::uint64_t n) const {
    return shift_ >= 0 ? n >> shift_ : n / value_;
  }
  [[nodiscard]] std::uint64_t remainder(std::uint64_t n) const {
    return shift_ >= 0 ? n & (value_ - 1) : n % value_;
  }

 private:
  std::uint64_t value_;
  int shift_;
};

/// A set-associative LRU cache of lines with a state per 32-byte sector: contents only, no time.
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

  /// Reads sectors of a line (line number = address / line_bytes). A line that makes room is
  /// reported through `eviction`, which keeps dirty == 0 otherwise.
  ReadResult read(std::uint64_t line, SectorMask mask, Eviction& eviction);
  /// Writes sectors; `bytes[s]` says which bytes of sector s. A write-back cache remembers
  /// `writer` with the line.
  WriteResult write(std::uint64_t line, SectorMask mask, const ByteMasks& bytes,
                    std::uint32_t writer, Eviction& eviction);
  /// Forgets sectors without writing them back.
  void invalidate(std::uint64_t line, SectorMask mask);
  /// Dirty sectors that the cache holds now.
  [[nodiscard]] std::uint64_t dirty_sectors() const;
  /// Hands the dirty sectors to `write_back`, set by set and in each set the last used line first,
  /// and then forgets everything.
  void flush(const std::function<void(const Eviction&)>& write_back);
  /// Forgets everything.
  void clear();

  [[nodiscard]] const CacheConfig& config() const { return config_; }
  /// The set of a line: slices split the address space, sets are taken modulo within the slice.
  [[nodiscard]] std::uint64_t set_of(std::uint64_t line) const;

 private:
  /// A line and the state of its sectors.
  struct Way {
    std::uint64_t line = no_line;
    SectorMask valid = 0;    ///< every byte is valid
    SectorMask partial = 0;  ///< some bytes are valid (write_validate)
    SectorMask dirty = 0;
    std::uint32_t slot = 0;  ///< where the line's byte masks and writer are
  };
  static constexpr std::uint64_t no_line = ~std::uint64_t{0};

  [[nodiscard]] Way* set_begin(std::uint64_t line) { return &ways_[set_of(line) * config_.ways]; }
  Way* find(Way* set, std::uint64_t line);
  Way* make_room(Way* set, std::uint64_t line, Eviction& eviction);
  static void move_to_front(Way* set, Way* way);
  void describe(const Way& way, Eviction& eviction) const;
  [[nodiscard]] SectorMask widen(SectorMask mask) const;

  CacheConfig config_;
  std::uint64_t sets_per_slice_;
  std::uint64_t lines_per_interleave_;
  Divisor by_sets_;
  Divisor by_interleave_;
  Divisor by_slices_;
  std::uint32_t sectors_per_unit_;
  std::vector<Way> ways_;               ///< set by set, in each set the last used first
  std::vector<ByteMasks> bytes_;        ///< by slot; empty unless write_validate
  std::vector<std::uint32_t> writers_;  ///< by slot; empty unless write_back
};

}  // namespace warpstack
