#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "trace/access.h"

namespace warpstack {

/// Sectors of a line are numbered 0 to 7: lines have at most 256 bytes.
using SectorMask = std::uint8_t;
inline constexpr std::uint32_t max_sectors_per_line = 8;
using ByteMasks = std::array<std::uint32_t, max_sectors_per_line>;

enum class WritePolicy : std::uint8_t { write_through, write_back };
enum class WriteMiss : std::uint8_t {
  no_allocate,     ///< the write goes on to the next level
  fetch_on_write,  ///< allocate and read the written sectors from the next level
  write_validate,  ///< allocate and remember which bytes are valid
};

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

/// A set-associative LRU cache of lines with a state per 32-byte sector: contents only, no time.
class Cache {
 public:
  /// What a line loses to make room.
  struct Eviction {
    std::uint64_t line = 0;
    SectorMask dirty = 0;    ///< sectors to write back
    ByteMasks bytes{};       ///< their valid bytes
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

  /// Reads sectors of a line (line number = address / line_bytes). A line that makes room is reported
  /// through `eviction`, which keeps dirty == 0 otherwise.
  ReadResult read(std::uint64_t line, SectorMask mask, Eviction& eviction);
  /// Writes sectors; `bytes[s]` says which bytes of sector s.
  WriteResult write(std::uint64_t line, SectorMask mask, const ByteMasks& bytes, Eviction& eviction);
  /// Forgets sectors without writing them back.
  void invalidate(std::uint64_t line, SectorMask mask);
  /// Dirty sectors that the cache holds now.
  [[nodiscard]] std::uint64_t dirty_sectors() const;
  /// Forgets everything.
  void clear();

  [[nodiscard]] const CacheConfig& config() const { return config_; }
  /// The set of a line: slices split the address space, sets are taken modulo within the slice.
  [[nodiscard]] std::uint64_t set_of(std::uint64_t line) const;

 private:
  struct State {
    SectorMask valid = 0;    ///< every byte is valid
    SectorMask partial = 0;  ///< some bytes are valid (write_validate)
    SectorMask dirty = 0;
  };
  static constexpr std::uint64_t no_line = ~std::uint64_t{0};
  static constexpr std::size_t not_found = ~std::size_t{0};

  [[nodiscard]] std::size_t find(std::uint64_t line, std::uint64_t set) const;
  std::size_t allocate(std::uint64_t line, std::uint64_t set, Eviction& eviction);
  [[nodiscard]] SectorMask widen(SectorMask mask) const;
  void touch(std::size_t slot) { last_use_[slot] = ++clock_; }

  CacheConfig config_;
  std::uint64_t sets_per_slice_;
  std::uint64_t lines_per_interleave_;
  std::uint32_t sectors_per_unit_;
  std::uint64_t clock_ = 0;
  std::vector<std::uint64_t> line_;      ///< [set * ways + way]
  std::vector<std::uint64_t> last_use_;  ///< 0: empty
  std::vector<State> state_;
  std::vector<ByteMasks> bytes_;  ///< of partial sectors; empty unless write_validate
};

}  // namespace warpstack
