#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/interrupt.h"

namespace warpstack::memory {

/// Marks the first access to a line, which has no distance.
inline constexpr std::uint64_t cold_access = ~std::uint64_t{0};

/// Exact LRU stack distances: how many other lines were touched since the last access to a line
/// (cache paper, Section 2.3, Table 1).
///
/// Each line owns one bit at the time of its last access, so a distance is the number of bits set
/// after it. Counts over words, pages of 64 words and books of 64 pages make that a few short sums;
/// only the number of books grows, by one per 65 thousand lines. When all times are used up, the
/// bits move together; then at least three quarters of the times are free, so compaction costs each
/// access a constant.
class StackDistances {
 public:
  StackDistances();

  /// Distance of each access of the stream, which continues the previous one. `distances` has the
  /// length of `lines`.
  void access(std::span<const std::uint64_t> lines, std::span<std::uint64_t> distances,
              const InterruptCheck& interrupt = {});
  /// Lines seen so far.
  [[nodiscard]] std::uint64_t num_lines() const { return num_lines_; }

 private:
  struct Entry {
    std::uint64_t line;
    std::uint64_t time;  ///< of the last access, plus one; 0: free entry
  };

  [[nodiscard]] std::size_t home(std::uint64_t line) const;
  Entry& find_or_insert(std::uint64_t line);
  void grow_table();
  void set_time(std::uint64_t time);
  void clear_time(std::uint64_t time);
  /// Bits set after this time.
  [[nodiscard]] std::uint64_t count_after(std::uint64_t time) const;
  /// Moves the times together and makes room for new ones.
  void compact();

  std::vector<Entry> table_;  ///< open addressing, at most half full
  std::uint64_t num_lines_ = 0;
  std::uint64_t last_line_ = 0;
  std::uint64_t now_ = 0;            ///< the next time
  std::vector<std::uint64_t> bits_;  ///< at the time of each line's last access
  std::vector<std::uint8_t> word_count_;
  std::vector<std::uint32_t> page_count_;
  std::vector<std::uint32_t> book_count_;
};

}  // namespace warpstack::memory
