#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "trace/columns/block_columns.h"

namespace warpstack::trace {

/// Numbers the rows of a block's accesses in the order in which they first touch a sector. The
/// sectors of a row move together from block to block, so each of these rows has one shift.
class SectorRows {
 public:
  /// Whether memory instructions of a row have sectors, by row; borrowed.
  explicit SectorRows(std::span<const std::uint8_t> has_sectors) : has_sectors_(has_sectors) {}

  /// Calls `visit(number, first, last)` with the number of the row and the entries of each access
  /// that touches a sector. Stops when `visit` returns false, and returns false then and when the
  /// columns have other sectors than their accesses say.
  template <typename Visit>
  bool for_each_access(const ColumnView& columns, Visit visit) {
    number_of_row_.assign(has_sectors_.size(), none);
    count_ = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < columns.memory_static.size(); ++i) {
      const std::uint32_t row = columns.memory_static[i];
      const std::size_t count = columns.memory_count[i];
      if (row >= has_sectors_.size()) return false;
      if (count == 0 || has_sectors_[row] == 0) continue;
      if (count > columns.sector.size() - first) return false;
      std::uint32_t& number = number_of_row_[row];
      if (number == none) number = count_++;
      if (!visit(number, first, first + count)) return false;
      first += count;
    }
    return first == columns.sector.size();
  }
  /// How many rows the last walk has numbered.
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::span<const std::uint8_t> has_sectors_;
  std::vector<std::uint32_t> number_of_row_;
  std::uint32_t count_ = 0;
};

/// Most rows with sectors of a block that may share the columns of another: numbers have 16 bits.
inline constexpr std::size_t most_sector_rows = std::numeric_limits<std::uint16_t>::max();

/// Finds among the distinct blocks of a kernel, its classes, the one whose columns a block has but
/// for a shift of the sectors of each row. It gives up when nearly nothing repeats.
class ClassFinder {
 public:
  /// Whether it is worth to look further.
  [[nodiscard]] bool looks() const { return looks_; }
  /// Tells that a block which was looked for was found, or is the class `added` of its own, with
  /// the hash that `hash_of` gave.
  void note_found(std::uint32_t found);
  void note_added(std::uint32_t added, std::uint64_t hash);
  /// Forgets everything, and looks no further.
  void stop();

  /// The class of the last block, if it was found: the next is likely to be of it.
  [[nodiscard]] std::optional<std::uint32_t> last() const { return last_; }
  /// Calls `is_same(number)` for the classes with a hash until one is, and returns it.
  template <typename IsSame>
  std::optional<std::uint32_t> find(std::uint64_t hash, IsSame is_same) const {
    const auto [begin, end] = classes_.equal_range(hash);
    for (auto each = begin; each != end; ++each) {
      if (each->second != last_ && is_same(each->second)) return each->second;
    }
    return std::nullopt;
  }

 private:
  std::unordered_multimap<std::uint64_t, std::uint32_t> classes_;  ///< by hash
  std::optional<std::uint32_t> last_;
  std::uint64_t num_looked_ = 0;
  std::uint64_t num_found_ = 0;
  bool looks_ = true;
};

/// A hash of what the blocks of one class have in common: the entries of the warps, all columns but
/// the sectors (parts of long ones), and each access's distance from the first of its row. None for
/// a block that cannot share its columns. `firsts` is for its use.
std::optional<std::uint64_t> hash_of(std::span<const WarpEntry> warps, const ColumnView& columns,
                                     std::span<const std::uint8_t> has_sectors,
                                     std::vector<std::uint64_t>& firsts);

/// How far the sectors of each row of `block` lie from those of `known`, if that is all by which
/// the columns differ.
bool find_shifts(const ColumnView& known, const ColumnView& block,
                 std::span<const std::uint8_t> has_sectors, std::vector<std::int32_t>& shifts);

}  // namespace warpstack::trace
