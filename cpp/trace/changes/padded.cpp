#include <limits>
#include <map>
#include <optional>

#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

constexpr std::uint64_t line_sectors = 4;
/// Rows a multiple of 512 bytes apart fall on a quarter of the sets, slices and banks, or fewer.
constexpr std::uint64_t pitch_sectors = 16;
/// An access to so many lines goes from row to row of an array.
constexpr std::size_t many_lines = 8;
/// A distance counts if it is one in so many of an array's.
constexpr std::uint64_t one_in = 8;
/// Padded arrays begin so many sectors (1 MiB) later or a multiple, so that nothing else changes.
constexpr std::uint64_t room_sectors = 1 << 15;

/// How often an array's neighbouring rows are a distance apart.
struct Distances {
  std::map<std::uint64_t, std::uint64_t> counts;
  std::uint64_t all = 0;

  void add(std::uint64_t from, std::uint64_t to) {
    if (from == to) return;
    ++all;
    const std::uint64_t distance = to > from ? to - from : from - to;
    if (distance % pitch_sectors == 0) ++counts[distance];
  }
  void add(const Distances& other) {
    for (const auto& [distance, count] : other.counts) counts[distance] += count;
    all += other.all;
  }
  /// The shortest that is frequent; 0: none.
  [[nodiscard]] std::uint64_t pitch() const {
    for (const auto& [distance, count] : counts) {
      if (count * one_in >= all) return distance;
    }
    return 0;
  }
};

/// The sectors that a row of the table reaches.
struct Reach {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  Distances distances;
};

struct Array {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  Distances distances;
  bool is_chosen = false;
  std::uint64_t pitch = 0;
  std::uint64_t moved = 0;  ///< sectors that it begins later
};

class Padded final : public BlockChange {
 public:
  explicit Padded(const ChosenRows& rows)
      : BlockChange(rows), reaches_(rows.trace.instructions().size()) {}
  [[nodiscard]] bool keeps_classes() const override { return false; }
  [[nodiscard]] bool looks() const override { return true; }

  void look(const Block& block) override {
    before_.assign(reaches_.size(), std::nullopt);
    block.for_each(rows_.trace.instructions(), [this](const Issued& one) {
      if (one.sectors.empty() || one.sectors.front() >= local_region_sector) return;
      Reach& reach = reaches_[one.row];
      for (const std::uint64_t sector : one.sectors) {
        reach.first = std::min(reach.first, sector);
        reach.last = std::max(reach.last, sector);
      }
      std::size_t lines = 1;
      for (std::size_t i = 1; i < one.sectors.size(); ++i) {
        if (one.sectors[i] / line_sectors != one.sectors[i - 1] / line_sectors) ++lines;
      }
      if (lines >= many_lines) {
        for (std::size_t i = 1; i < one.sectors.size(); ++i) {
          reach.distances.add(one.sectors[i - 1], one.sectors[i]);
        }
      }
      // The first access of each warp, and of a lone warp all of them.
      auto& before = before_[one.row];
      if (!before || before->first != one.warp) {
        if (before && lines < many_lines) reach.distances.add(before->second, one.sectors.front());
        before = {one.warp, one.sectors.front()};
      }
    });
  }

  void end_of_look() override {
    std::vector<std::uint32_t> by_address;
    for (std::uint32_t row = 0; row < reaches_.size(); ++row) {
      if (reaches_[row].first <= reaches_[row].last) by_address.push_back(row);
    }
    std::ranges::sort(by_address, {}, [this](std::uint32_t row) { return reaches_[row].first; });
    for (const std::uint32_t row : by_address) {
      const Reach& reach = reaches_[row];
      if (arrays_.empty() || reach.first > arrays_.back().last) {
        arrays_.push_back({reach.first, reach.last, {}});
      }
      Array& array = arrays_.back();
      array.last = std::max(array.last, reach.last);
      array.distances.add(reach.distances);
      array.is_chosen = array.is_chosen || rows_.contains(row);
    }
    std::uint64_t moved = 0;
    for (Array& array : arrays_) {
      array.moved = moved;
      if (!array.is_chosen) continue;
      array.pitch = array.distances.pitch();
      if (array.pitch == 0) continue;
      const std::uint64_t added = (array.last - array.first) / array.pitch * line_sectors;
      moved += (added / room_sectors + 1) * room_sectors;
    }
  }

  void write(const Block& block, BlockWriter& writer) override {
    write_each(block, writer, [this](Issued& one) {
      if (one.sectors.empty()) return true;
      moved_.clear();
      for (const std::uint64_t sector : one.sectors) moved_.push_back(place_of(sector));
      one.sectors = moved_;
      return true;
    });
  }

  [[nodiscard]] std::vector<std::uint64_t> pitches() const {
    std::vector<std::uint64_t> result;
    for (const Reach& reach : reaches_) {
      const Array* const array = reach.first <= reach.last ? array_of(reach.first) : nullptr;
      result.push_back(array != nullptr ? array->pitch : 0);
    }
    return result;
  }

 private:
  [[nodiscard]] const Array* array_of(std::uint64_t sector) const {
    const auto next = std::ranges::upper_bound(arrays_, sector, {}, &Array::first);
    return next == arrays_.begin() ? nullptr : &*std::prev(next);
  }

  [[nodiscard]] std::uint64_t place_of(std::uint64_t sector) const {
    if (sector >= local_region_sector) return sector;
    const Array* const array = array_of(sector);
    if (array == nullptr) return sector;
    const std::uint64_t row = array->pitch == 0 ? 0 : (sector - array->first) / array->pitch;
    return sector + array->moved + row * line_sectors;
  }

  std::vector<Reach> reaches_;  ///< by row
  std::vector<Array> arrays_;
  /// The warp that executed a row last, and its first sector.
  std::vector<std::optional<std::pair<std::size_t, std::uint64_t>>> before_;
  std::vector<std::uint64_t> moved_;
};

}  // namespace

std::unique_ptr<BlockChange> padded_change(const ChosenRows& rows) {
  return std::make_unique<Padded>(rows);
}

std::vector<std::uint64_t> pitches_of(const BlockChange& padded) {
  return dynamic_cast<const Padded&>(padded).pitches();
}

}  // namespace warpstack::trace
