#include "trace/columns/issued_block.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/error.h"
#include "kernels.h"

namespace warpstack::trace {
namespace {

constexpr std::uint32_t none = IssuedBlock::no_access;

struct Columns {
  std::vector<std::uint32_t> warp, row, mask, access;
  std::vector<std::uint64_t> addresses;

  [[nodiscard]] IssuedBlock view() const { return {warp, row, mask, access, addresses}; }
};

std::unique_ptr<TraceBuilder> builder() {
  auto result = std::make_unique<TraceBuilder>(testing::header(2, 96), testing::memory_budget());
  result->intern(make_static_instruction(0, "MOV", std::vector<std::uint16_t>{1}, {}));
  result->intern(make_static_instruction(16, "LDG.E", std::vector<std::uint16_t>{4}, {}));
  return result;
}

TEST(IssuedBlock, WarpsMayDifferAndMayBeIdle) {
  const std::unique_ptr<TraceBuilder> built = builder();
  TraceBuilder& b = *built;
  Columns columns{{0, 2, 2}, {0, 1, 1}, {~0u, 3, 0}, {none, 0, none}, {}};
  columns.addresses.assign(32, 0);
  columns.addresses[0] = 64;
  columns.addresses[1] = 320;
  append_block(b, 0, columns.view());
  append_block(b, 1, {});
  const KernelTrace trace = b.finish();
  ASSERT_EQ(trace.blocks().size(), 2u);
  EXPECT_EQ(trace.num_warps(), 6u);
  EXPECT_EQ(trace.num_idle_warps(), 4u);
  std::vector<std::byte> scratch;
  const ColumnView warp = trace.warp({0, 2}, scratch);
  EXPECT_EQ(std::vector(warp.instruction.begin(), warp.instruction.end()),
            (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(std::vector(warp.memory_count.begin(), warp.memory_count.end()),
            (std::vector<std::uint16_t>{2, 0}));
  EXPECT_EQ(std::vector(warp.sector.begin(), warp.sector.end()),
            (std::vector<std::uint64_t>{2, 10}));
}

TEST(IssuedBlock, ContradictionsAreErrors) {
  const Columns good{{0}, {1}, {1}, {0}, std::vector<std::uint64_t>(32, 64)};
  const auto fails = [](const Columns& columns) {
    const std::unique_ptr<TraceBuilder> built = builder();
    TraceBuilder& b = *built;
    EXPECT_THROW(append_block(b, 0, columns.view()), InputError);
  };
  Columns bad = good;
  bad.mask.push_back(1);
  fails(bad);
  bad = good;
  bad.warp[0] = 3;
  fails(bad);
  bad = good;
  bad.row[0] = 2;
  fails(bad);
  bad = good;
  bad.access[0] = 1;
  fails(bad);
  bad = good;
  bad.addresses[31] = ~std::uint64_t{0};
  fails(bad);
  bad = {{1, 0}, {0, 0}, {1, 1}, {none, none}, {}};
  fails(bad);
}

}  // namespace
}  // namespace warpstack::trace
