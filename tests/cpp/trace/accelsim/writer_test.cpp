#include "trace/accelsim/writer.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "kernels.h"
#include "trace/accelsim/reader.h"

namespace warpstack::trace {
namespace {

using testing::make_kernel;
using testing::memory_budget;

TEST(AccelSimWriter, LinesAreThoseOfTheTracer) {
  const KernelTrace kernel = make_kernel(
      1, 32,
      {{"LDG.E.64", {4}, {2}, [](std::uint64_t thread) { return 0x1000 + 8 * thread; }},
       {"LDG.E", {6}, {2}, [](std::uint64_t thread) { return thread == 31 ? 0x2000 : 0x3000; }},
       {"DADD", {8}, {4, 8}, nullptr},
       {"EXIT", {}, {}, nullptr}});
  AccelSimWriter writer(kernel, 75);
  // Registers 2 to 9 become 0 to 7; tuples are named by their first.
  EXPECT_EQ(writer.blocks(0, 1),
            "\n#BEGIN_TB\n\nthread block = 0,0,0\n\nwarp = 0\ninsts = 4\n"
            "0000 ffffffff 1 R2 LDG.E.64 1 R0 8 1 0x1000 8\n"
            // Two sectors of 32 lanes: 16 lanes each, two to a word.
            "0010 ffffffff 1 R4 LDG.E 1 R0 4 2 0x3000 0 4 0 4 0 4 0 4 0 4 0 4 0 4 0 -4124"
            " 0 4 0 4 0 4 0 4 0 4 0 4 0 4 0\n"
            "0020 ffffffff 1 R5 DADD 2 R2 R5 0\n"
            "0030 ffffffff 0 EXIT 0 0\n\n#END_TB\n");
  EXPECT_EQ(writer.warps_without_exit(), 0u);
  EXPECT_NE(writer.header().find("\n-binary version = 75\n"), std::string::npos);
}

TEST(AccelSimWriter, ListsRegistersThatNoTupleStandsFor) {
  TraceBuilder builder(testing::header(1, 32), memory_budget());
  // A vector load of PTX into registers that are not a tuple.
  StaticInstruction load;
  load.opcode = "ld.global.v2.f32";
  load.op_class = OpClass::memory;
  load.space = MemorySpace::global;
  load.kind = MemoryKind::load;
  load.width = 8;
  load.destinations = {3, 1};
  load.sources = {2};
  const std::uint32_t row = builder.intern(load);
  builder.begin_block(0);
  builder.begin_warp(0);
  LaneAddresses lanes;
  lanes.mask = 1;
  lanes.address[0] = 64;
  builder.append(row, 1, &lanes);
  builder.end_block();
  const KernelTrace kernel = builder.finish();
  AccelSimWriter writer(kernel, 0);
  EXPECT_NE(writer.header().find("\n-warpstack registers of 0000 1 R2 LDG.E.64 1 R1 8 = R2 R0 / "
                                 "R1\n"),
            std::string::npos);
  AccelSimReader reader("written", memory_budget());
  reader.feed(writer.header());
  reader.feed(writer.blocks(0, 1));
  const KernelTrace again = reader.finish();
  EXPECT_EQ(again.instructions()[0].destinations, (std::vector<std::uint16_t>{2, 0}));
  EXPECT_EQ(again.instructions()[0].sources, (std::vector<std::uint16_t>{1}));
  EXPECT_EQ(writer.warps_without_exit(), 1u);
}

TEST(AccelSimReader, RefusesMalformedRegisterLists) {
  const auto feed = [](const std::string& line) {
    AccelSimReader reader("list", memory_budget());
    reader.feed(line + "\n");
  };
  EXPECT_THROW(feed("-warpstack registers of 0000 x = R1"), InputError);
  EXPECT_THROW(feed("-warpstack registers of 0000 x = R1 / Q2"), InputError);
  EXPECT_THROW(feed("-warpstack registers of 0000 x = R256 /"), InputError);
  EXPECT_NO_THROW(feed("-warpstack registers = 300\n-warpstack registers of 0000 x = R256 /"));
}

}  // namespace
}  // namespace warpstack::trace
