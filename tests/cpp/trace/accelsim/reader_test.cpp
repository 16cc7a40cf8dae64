#include "trace/accelsim/reader.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "kernels.h"

namespace warpstack::trace {
namespace {

using testing::memory_budget;

const std::string text = R"(-kernel name = _Z6kernelPi
-kernel id = 3
-grid dim = (2,1,1)
-block dim = (64,1,1)
-shmem = 0
-nregs = 16
-binary version = 80
-cuda stream id = 0
-shmem base_addr = 0x00007f6000000000
-local mem base_addr = 0x00007f6200000000
-nvbit version = 1.5.5
-accelsim tracer version = 5
-enable lineinfo = 0

#traces format = [line_num] PC mask dest_num ...


#BEGIN_TB

thread block = 0,0,0

warp = 0
insts = 3
0000 ffffffff 1 R1 MOV 0 0 0
0010 6190a142 1 R14 LDG.E.U8 1 R14 1 2 0x7fc84152273c 1488 576 -2866 2843 -1699 294 -954 1434 -1860 0
0020 00000000 0 EXIT 0 0 0

warp = 1
insts = 0

#END_TB

#BEGIN_TB
thread block = 1,0,0
warp = 0
insts = 1
0000 ffffffff 1 R1 MOV 0 0 -17
#END_TB
)";

KernelTrace read(const std::string& content, std::size_t piece) {
  AccelSimReader reader("kernel-3.traceg", memory_budget());
  for (std::size_t i = 0; i < content.size(); i += piece) {
    reader.feed(std::string_view(content).substr(i, piece));
  }
  return reader.finish();
}

TEST(AccelSimReader, PiecesMayEndAnywhere) {
  const std::string digest = read(text, text.size()).digest();
  for (const std::size_t piece : {1, 2, 3, 7, 64, 1000}) {
    EXPECT_EQ(read(text, piece).digest(), digest) << piece;
  }
  EXPECT_EQ(read(text.substr(0, text.size() - 1), 5).digest(), digest) << "no newline at the end";
}

TEST(AccelSimReader, ReadsHeaderAndColumns) {
  const KernelTrace trace = read(text, text.size());
  EXPECT_EQ(trace.header().launch_id, 3u);
  EXPECT_EQ(trace.header().local_window, 0x7f6200000000u);
  EXPECT_EQ(trace.num_warps(), 3u);
  EXPECT_EQ(trace.totals().instructions, 4u);
  EXPECT_EQ(trace.num_missing_blocks(), 0u);
  std::vector<std::byte> scratch;
  const ColumnView warp = trace.warp({0, 0}, scratch);
  ASSERT_EQ(warp.memory_count.size(), 1u);
  // Ten lanes, the deltas of the real line; each address is in another sector.
  EXPECT_EQ(warp.memory_count[0], 10u);
  EXPECT_EQ(warp.sector[0], 0x7fc84152273cu / 32);
  EXPECT_EQ(warp.sector[1], (0x7fc84152273cu + 1488) / 32);
  EXPECT_EQ(warp.active_mask[2], 0u);
}

TEST(AccelSimReader, ErrorsNameFileAndLine) {
  std::string broken = text;
  broken.replace(broken.find("R14 LDG"), 3, "R1x");
  for (const std::size_t piece : {std::size_t{1}, broken.size()}) {
    try {
      read(broken, piece);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(),
                   "kernel-3.traceg:25: destination register \"R1x\" is not a register R0 to R255");
    }
  }
}

TEST(AccelSimReader, EveryCutIsAnError) {
  // Up to the end of the last block; what follows it is blank.
  const std::size_t first_end = text.find("#END_TB") + 7;
  const std::size_t second_begin = text.rfind("#BEGIN_TB") + 9;
  for (std::size_t length = 0; length < text.rfind("#END_TB") + 7; ++length) {
    const std::string cut = text.substr(0, length);
    if (length >= first_end && length < second_begin) {
      EXPECT_EQ(read(cut, 4096).num_missing_blocks(), 1u) << length;  // between blocks
      continue;
    }
    EXPECT_THROW(read(cut, 4096), InputError) << length;
  }
}

TEST(AccelSimReader, FinishedReaderKeepsNothing) {
  AccelSimReader reader("x", memory_budget());
  EXPECT_THROW(reader.finish(), InputError);
}

}  // namespace
}  // namespace warpstack::trace
