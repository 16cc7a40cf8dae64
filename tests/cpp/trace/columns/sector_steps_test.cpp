// Steps of sectors, against their definition.

#include "trace/columns/sector_steps.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "common/error.h"

namespace warpstack::trace {
namespace {

const std::vector<std::uint8_t> has_sectors{0, 1, 1, 0, 1};

/// Memory instructions of random rows, whose sectors are anywhere in some of them.
ColumnBuffers random_columns(unsigned seed) {
  std::mt19937_64 random(seed);
  ColumnBuffers columns;
  for (std::uint64_t left = random() % 60; left > 0; --left) {
    const auto row = static_cast<std::uint32_t>(random() % has_sectors.size());
    const auto count = static_cast<std::uint16_t>(random() % 5);
    columns.memory_static.push_back(row);
    columns.memory_count.push_back(count);
    for (int i = 0; has_sectors[row] != 0 && i < count; ++i) {
      columns.sector.push_back(random() >> (row == 4 ? 0 : 50));
    }
  }
  return columns;
}

TEST(SectorSteps, AreDifferencesWithinAnAccessAndWithinARow) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const ColumnBuffers columns = random_columns(seed);
    std::vector<std::uint64_t> expected;
    std::map<std::uint32_t, std::uint64_t> firsts;
    std::size_t next = 0;
    for (std::size_t access = 0; access < columns.memory_static.size(); ++access) {
      const std::uint32_t row = columns.memory_static[access];
      if (has_sectors[row] == 0) continue;
      for (std::size_t i = 0; i < columns.memory_count[access]; ++i, ++next) {
        const std::uint64_t sector = columns.sector[next];
        expected.push_back(sector - (i == 0 ? firsts[row] : columns.sector[next - 1]));
        if (i == 0) firsts[row] = sector;
      }
    }
    ColumnBuffers steps = columns;
    steps.sector = steps_of_sectors(columns.view(), has_sectors);
    EXPECT_EQ(steps.sector, expected);
    EXPECT_EQ(sectors_of_steps(steps.view(), has_sectors), columns.sector);
  }
}

TEST(SectorSteps, OfColumnsThatDoNotFitTogetherAreAnError) {
  ColumnBuffers good;
  good.memory_static = {1, 2};
  good.memory_count = {2, 1};
  good.sector = {5, 6, 7};
  EXPECT_EQ(sectors_of_steps(good.view(), has_sectors), (std::vector<std::uint64_t>{5, 11, 7}));
  for (auto change : {+[](ColumnBuffers& c) { c.sector.pop_back(); },
                      +[](ColumnBuffers& c) { c.sector.push_back(1); },
                      +[](ColumnBuffers& c) { c.memory_count.pop_back(); },
                      +[](ColumnBuffers& c) { c.memory_static[1] = 9; }}) {
    ColumnBuffers bad = good;
    change(bad);
    EXPECT_THROW(steps_of_sectors(bad.view(), has_sectors), InputError);
    EXPECT_THROW(sectors_of_steps(bad.view(), has_sectors), InputError);
  }
}

}  // namespace
}  // namespace warpstack::trace
