#include "trace/nvbit/mem_trace_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/error.h"

namespace warpstack::trace {
namespace {

std::string lanes(std::uint64_t first, std::uint64_t step, int active = 32) {
  std::string text;
  for (int lane = 0; lane < 32; ++lane) {
    char address[24];
    std::snprintf(address, sizeof address, "0x%016llx ",
                  static_cast<unsigned long long>(
                      lane < active ? first + static_cast<std::uint64_t>(lane) * step : 0));
    text += address;
  }
  return text;
}

std::string launch(int id, const std::string& name = "void f<int>(int*, char const*)") {
  return "MEMTRACE: CTX 0x000055967fa50640 - LAUNCH - Kernel pc 0x00007faedadc0200 - Kernel name " +
         name + " - grid launch id " + std::to_string(id) +
         " - grid size 2,1,1 - block size 64,1,1 - nregs 20 - shmem 16 - cuda stream id -1\n";
}

std::string access(int id, int cta, int warp, const std::string& rest) {
  return "MEMTRACE: CTX 0x000055967fa50640 - grid_launch_id " + std::to_string(id) + " - CTA " +
         std::to_string(cta) + ",0,0 - warp " + std::to_string(warp) + " - " + rest + "\n";
}

std::vector<KernelTrace> read(const std::string& text, std::size_t piece = 1 << 20) {
  MemTraceReader reader("log.txt", std::make_shared<StorageBudget>(std::uint64_t{1} << 30, "/tmp"));
  for (std::size_t i = 0; i < text.size(); i += piece) {
    reader.feed(std::string_view(text).substr(i, piece));
  }
  return reader.finish();
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(MemTraceReader, GroupsLinesByLaunchBlockAndWarp) {
  const std::string text = "------\nMEMTRACE: STARTING CONTEXT 0x1\nhello" + launch(0) +
                           access(0, 1, 9, "LDG.E - " + lanes(0x7f0000000000, 4)) +
                           "the program's own line\n" + launch(1, "empty()") +
                           access(0, 0, 33, "LDG.E - " + lanes(0x7f0000001000, 4, 8)) +
                           access(0, 1, 4, "STG.E.64 - " + lanes(0x7f0000002000, 32)) +
                           access(0, 1, 9, "LDS - " + lanes(0, 0)) + launch(2) +
                           access(2, 0, 0, "LDG.E - " + lanes(0x7f0000000000, 4));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{700}, text.size()}) {
    const std::vector<KernelTrace> traces = read(text, piece);
    ASSERT_EQ(traces.size(), 2u);
    const KernelTrace& first = traces[0];
    EXPECT_EQ(first.header().name, "void f<int>(int*, char const*)");
    EXPECT_EQ(first.header().launch_id, 1u);
    EXPECT_EQ(first.header().block[0], 64u);
    EXPECT_EQ(first.header().registers_per_thread, 20u);
    EXPECT_EQ(first.header().shared_memory_bytes, 16u);
    EXPECT_EQ(first.header().stream, ~std::uint64_t{0});
    EXPECT_EQ(first.num_warps(), 3u);
    EXPECT_EQ(first.totals().instructions, 4u);
    EXPECT_EQ(traces[1].header().launch_id, 3u);
    std::vector<std::byte> scratch;
    // Slot 4 comes before slot 9.
    const ColumnView store = first.warp({1, 0}, scratch);
    ASSERT_EQ(store.memory_count.size(), 1u);
    EXPECT_EQ(store.memory_count[0], 32u);
    const ColumnView loads = first.warp({1, 1}, scratch);
    ASSERT_EQ(loads.memory_count.size(), 2u);
    EXPECT_EQ(loads.memory_count[0], 4u);
    EXPECT_EQ(loads.memory_count[1], 1u);  // 32 lanes read one word of shared memory
    const ColumnView part = first.warp({0, 0}, scratch);
    EXPECT_EQ(part.active_mask[0], 0xffu);
    EXPECT_EQ(part.memory_count[0], 1u);
  }
}

TEST(MemTraceReader, KnowsOlderVersions) {
  // Launches are numbered after they were counted, and accesses before.
  const std::vector<KernelTrace> counted =
      read(launch(1) + access(0, 0, 0, "LDG.E - " + lanes(0x7f0000000000, 4)) + launch(2) +
           access(1, 0, 0, "LDG.E - " + lanes(0x7f0000000000, 64)));
  ASSERT_EQ(counted.size(), 2u);
  EXPECT_EQ(counted[1].header().launch_id, 2u);
  // Without prefix and numbers.
  const std::vector<KernelTrace> plain = read(
      "Kernel vecAdd(double*) - grid size 2,1,1 - block size 64,1,1 - nregs 20 - shmem 16 - "
      "cuda stream id 5\nCTA 0,0,0 - warp 0 - LDG.E.64 - " +
      lanes(0x7f0000000000, 8) + "\n");
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].header().name, "vecAdd(double*)");
  EXPECT_EQ(plain[0].totals().instructions, 1u);
}

TEST(MemTraceReader, TakesTheGlobalHalfOfAsyncCopies) {
  const std::string shared = access(0, 0, 0, "LDGSTS.E.128 - " + lanes(16, 16));
  const std::string global = access(0, 0, 0, "LDGSTS.E.128 - " + lanes(0x7f0000000000, 16));
  const std::vector<KernelTrace> traces = read(launch(0) + shared + global);
  EXPECT_EQ(traces[0].totals().instructions, 1u);
  EXPECT_EQ(
      error_of(launch(0) + shared),
      "log.txt: the log ends between the two lines of an LDGSTS of thread block 0; it is cut");
}

TEST(MemTraceReader, ErrorsNameFileAndLine) {
  const std::string load = "LDG.E - " + lanes(0x7f0000000000, 4);
  EXPECT_EQ(error_of(""), "log.txt: the log has no launch; it is empty");
  EXPECT_EQ(error_of("x\n"), "log.txt: the log has no launch; it is not of NVBit's mem_trace");
  EXPECT_EQ(error_of(access(0, 0, 0, load)),
            "log.txt:1: no line LAUNCH with grid launch id 0 before this access; keep all lines of "
            "the tool");
  EXPECT_EQ(error_of(launch(0) + access(0, 2, 0, load)),
            "log.txt:2: CTA 2,0,0 is outside the grid of (2,1,1)");
  EXPECT_EQ(error_of(launch(0) + access(0, 0, 0, load.substr(0, load.size() - 19))),
            "log.txt:2: the access has 31 addresses, not 32; the log is cut or edited");
  EXPECT_EQ(error_of(launch(0) + access(0, 0, 0, load + "0x1")),
            "log.txt:2: the access has more than 32 addresses: \"0x1\"");
  EXPECT_EQ(error_of(launch(0) + launch(0)),
            "log.txt:2: a second launch with grid launch id 0; give the log of one run");
  EXPECT_EQ(
      error_of(launch(0) + access(0, 0, 0, load) + access(0, 0, 1, load) + access(0, 0, 2, load)),
      "log.txt:4: CTA 0,0,0 has lines of more than the 2 warps of its block size");
  EXPECT_EQ(error_of(launch(0)),
            "log.txt: none of the 1 launches accesses memory; trace without INSTR_BEGIN and "
            "INSTR_END");
  // A cut anywhere is an error, but at the end of a line, after which no access is missing.
  const std::string text = launch(0) + access(0, 0, 0, load);
  for (std::size_t length = 0; length < text.size() - 2; ++length) {
    EXPECT_NE(error_of(text.substr(0, length)), "") << length;
  }
}

}  // namespace
}  // namespace warpstack::trace
