#include "trace/columns/sector_steps.h"

#include <cstddef>

#include "common/error.h"
#include "trace/columns/block_classes.h"

namespace warpstack::trace {
namespace {

/// Makes one column of another, whose values of an access `convert(value, before)` takes in turn:
/// it returns the new value, and `before` is then the sector.
template <typename Convert>
std::vector<std::uint64_t> converted(const ColumnView& columns,
                                     std::span<const std::uint8_t> has_sectors, Convert convert) {
  if (columns.memory_count.size() != columns.memory_static.size()) {
    throw InputError("the columns of the memory instructions differ in length");
  }
  std::vector<std::uint64_t> result(columns.sector.size());
  std::vector<std::uint64_t> firsts;  // of the last access, by number of the row
  SectorRows rows(has_sectors);
  const bool is_whole =
      rows.for_each_access(columns, [&](std::uint32_t row, std::size_t begin, std::size_t end) {
        if (row == firsts.size()) firsts.push_back(0);
        std::uint64_t before = firsts[row];
        result[begin] = convert(columns.sector[begin], before);
        firsts[row] = before;
        for (std::size_t i = begin + 1; i < end; ++i) {
          result[i] = convert(columns.sector[i], before);
        }
        return true;
      });
  if (!is_whole) throw InputError("the memory instructions announce other sectors than there are");
  return result;
}

}  // namespace

std::vector<std::uint64_t> steps_of_sectors(const ColumnView& columns,
                                            std::span<const std::uint8_t> has_sectors) {
  return converted(columns, has_sectors, [](std::uint64_t sector, std::uint64_t& before) {
    const std::uint64_t step = sector - before;
    before = sector;
    return step;
  });
}

std::vector<std::uint64_t> sectors_of_steps(const ColumnView& columns,
                                            std::span<const std::uint8_t> has_sectors) {
  return converted(columns, has_sectors,
                   [](std::uint64_t step, std::uint64_t& before) { return before += step; });
}

}  // namespace warpstack::trace
