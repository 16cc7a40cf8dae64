#include "trace/columns/block_classes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace warpstack::trace {
namespace {

/// After so many distinct blocks, fewer repeats than one in `least_share` blocks end the search.
constexpr std::uint64_t most_distinct = 64;
constexpr std::uint64_t least_share = 16;

/// One stripe in four of a column of more bytes is hashed: what has equal hashes is compared.
constexpr std::size_t most_whole_bytes = 1024;

/// A hash of bytes, several times as fast as Digest because its four lanes do not wait for each
/// other.
class LaneHash {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    const std::size_t step = sizeof lanes_ * (size > most_whole_bytes ? 4 : 1);
    for (; size >= step; bytes += step, size -= step) {
      std::array<std::uint64_t, 4> words;
      std::memcpy(words.data(), bytes, sizeof words);
      for (std::size_t i = 0; i < words.size(); ++i) lanes_[i] = mixed(lanes_[i], words[i]);
    }
    for (; size > 0;) {
      std::uint64_t word = 0;
      const std::size_t part = std::min(size, sizeof word);
      std::memcpy(&word, bytes, part);
      lanes_[0] = mixed(lanes_[0], word + part);
      bytes += part;
      size -= part;
    }
  }
  template <typename T>
  void add(std::span<const T> column) {
    const std::uint64_t size = column.size();
    lanes_[1] = mixed(lanes_[1], size);
    add(column.data(), column.size_bytes());
  }
  void add(std::size_t lane, std::uint64_t word) {
    lanes_[lane % lanes_.size()] = mixed(lanes_[lane % lanes_.size()], word);
  }
  [[nodiscard]] std::uint64_t value() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t lane : lanes_) sum = mixed(sum, lane);
    return sum ^ sum >> 32;
  }

 private:
  static std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) {
    return std::rotl(lane + word * 0xc2b2ae3d27d4eb4fULL, 31) * 0x9e3779b185ebca87ULL;
  }

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

template <typename T>
bool are_equal(std::span<const T> one, std::span<const T> other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size_bytes()) == 0);
}

}  // namespace

void ClassFinder::note_found(std::uint32_t found) {
  ++num_looked_;
  ++num_found_;
  last_ = found;
}

void ClassFinder::note_added(std::uint32_t added, std::uint64_t hash) {
  ++num_looked_;
  last_.reset();
  classes_.emplace(hash, added);
  if (num_looked_ - num_found_ >= most_distinct && num_found_ * least_share < num_looked_) stop();
}

void ClassFinder::stop() {
  looks_ = false;
  last_.reset();
  classes_ = {};
}

std::optional<std::uint64_t> hash_of(std::span<const WarpEntry> warps, const ColumnView& columns,
                                     std::span<const std::uint8_t> has_sectors,
                                     std::vector<std::uint64_t>& firsts) {
  SectorRows rows(has_sectors);
  LaneHash hash;
  firsts.clear();
  std::size_t accesses = 0;
  const bool is_whole =
      rows.for_each_access(columns, [&](std::uint32_t row, std::size_t begin, std::size_t) {
        if (row == firsts.size()) firsts.push_back(columns.sector[begin]);
        hash.add(accesses++, columns.sector[begin] - firsts[row]);
        return true;
      });
  if (!is_whole || rows.count() > most_sector_rows) return std::nullopt;
  hash.add(warps);
  hash.add(columns.instruction);
  hash.add(columns.active_mask);
  hash.add(columns.memory_static);
  hash.add(columns.memory_count);
  hash.add(columns.store_bytes);
  hash.add(columns.atomic_lanes);
  hash.add(columns.l1_passes);
  return hash.value();
}

bool find_shifts(const ColumnView& known, const ColumnView& block,
                 std::span<const std::uint8_t> has_sectors, std::vector<std::int32_t>& shifts) {
  if (known.sector.size() != block.sector.size() ||
      !are_equal(known.instruction, block.instruction) ||
      !are_equal(known.active_mask, block.active_mask) ||
      !are_equal(known.memory_static, block.memory_static) ||
      !are_equal(known.memory_count, block.memory_count) ||
      !are_equal(known.store_bytes, block.store_bytes) ||
      !are_equal(known.atomic_lanes, block.atomic_lanes) ||
      !are_equal(known.l1_passes, block.l1_passes)) {
    return false;
  }
  shifts.clear();
  SectorRows rows(has_sectors);
  return rows.for_each_access(known, [&](std::uint32_t row, std::size_t begin, std::size_t end) {
    if (row == shifts.size()) {
      const auto shift = static_cast<std::int64_t>(block.sector[begin] - known.sector[begin]);
      if (row >= most_sector_rows || shift != static_cast<std::int32_t>(shift)) return false;
      shifts.push_back(static_cast<std::int32_t>(shift));
    }
    const auto shift = static_cast<std::uint64_t>(std::int64_t{shifts[row]});
    for (std::size_t i = begin; i < end; ++i) {
      if (block.sector[i] - known.sector[i] != shift) return false;
    }
    return true;
  });
}

}  // namespace warpstack::trace
