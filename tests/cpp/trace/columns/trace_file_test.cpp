#include "trace/columns/trace_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/error.h"
#include "kernels.h"
#include "trace/columns/column_batch.h"

namespace warpstack::trace {
namespace {

using testing::header;
using testing::make_kernel;
using testing::memory_budget;

class TraceFile : public ::testing::Test {
 protected:
  std::string path_ = ::testing::TempDir() + "/trace-file-" + std::to_string(::getpid());
  void TearDown() override { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

KernelTrace sample(std::uint64_t blocks) {
  const auto strided = [](std::uint64_t thread) { return 0x1000 + 4096 * thread; };
  const auto dense = [](std::uint64_t thread) { return 0x9000'0000 + 4 * thread; };
  const auto apart = [](std::uint64_t thread) { return 0x1000 + 12 * thread; };
  return make_kernel(blocks, 64,
                     {{"MOV", {9}, {}, nullptr},
                      {"LDG.E", {4}, {2}, strided},
                      {"LDG.E", {6}, {2}, apart},
                      {"LDS", {5}, {3}, dense},
                      {"RED.E.ADD", {}, {2, 4}, strided},
                      {"STG.E.64", {}, {2, 4}, dense}});
}

KernelTrace read_text(const std::string& text) {
  return read_trace(std::as_bytes(std::span(text)), "file", memory_budget());
}

TEST_F(TraceFile, ReadsBackWhatItWrites) {
  for (const std::uint64_t blocks : {1, 7, 700}) {  // 700 blocks with 9 MiB of columns
    const KernelTrace trace = sample(blocks);
    write_trace_file(trace, path_);
    const KernelTrace back = read_trace_file(path_, memory_budget());
    EXPECT_EQ(back.digest(), trace.digest());
    EXPECT_EQ(back.header(), trace.header());
    EXPECT_EQ(back.instructions(), trace.instructions());
    EXPECT_EQ(back.row_counts(), trace.row_counts());
    EXPECT_EQ(back.totals(), trace.totals());
    const BlockBatch before = read_batch(trace, 0, blocks);
    const BlockBatch after = read_batch(back, 0, blocks);
    EXPECT_EQ(after.warp, before.warp);
    EXPECT_EQ(after.columns.sector, before.columns.sector);
    EXPECT_EQ(after.columns.store_bytes, before.columns.store_bytes);
    EXPECT_EQ(after.columns.atomic_lanes, before.columns.atomic_lanes);
    EXPECT_EQ(after.columns.l1_passes, before.columns.l1_passes);
    EXPECT_TRUE(trace.blocks().has_passes());
    EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  }
}

/// A kernel of one warp whose two instructions have control fields.
KernelTrace controlled() {
  TraceBuilder builder(header(1, 32), memory_budget());
  for (const char* opcode : {"FADD", "EXIT"}) {
    StaticInstruction row = make_static_instruction(0, opcode, {}, {});
    row.control = Control{.stall = 4, .yield = true, .write_barrier = 2, .counted_most = 3};
    builder.intern(row);
  }
  builder.begin_block(0);
  builder.begin_warp(0);
  builder.append(0, 1);
  builder.append(1, 1);
  builder.end_block();
  return builder.finish();
}

TEST_F(TraceFile, KeepsControlFields) {
  const KernelTrace trace = controlled();
  ASSERT_TRUE(trace.has_control());
  EXPECT_FALSE(sample(1).has_control());
  write_trace_file(trace, path_);
  const KernelTrace back = read_trace_file(path_, memory_budget());
  EXPECT_EQ(back.instructions(), trace.instructions());
  EXPECT_EQ(back.digest(), trace.digest());
  const std::string text = content();
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 0x48);
    EXPECT_THROW(read_text(bad), InputError) << at;
  }
}

TEST_F(TraceFile, ManyPieces) {
  // 3000 blocks of 64 warps' worth of columns are more than one piece of 16 MiB.
  const KernelTrace trace = make_kernel(
      3000, 1024, {{"LDG.E", {4}, {2}, [](std::uint64_t thread) { return 0x1000 + 32 * thread; }}});
  ASSERT_GT(trace.blocks().bytes(), std::uint64_t{1} << 24);
  write_trace_file(trace, path_);
  EXPECT_EQ(read_trace_file(path_, memory_budget()).digest(), trace.digest());
}

TEST_F(TraceFile, MissingBlocksStayMissing) {
  TraceBuilder builder(header(10, 32), memory_budget());
  const std::vector<std::uint16_t> registers{1};
  const std::uint32_t row = builder.intern(make_static_instruction(0, "MOV", registers, registers));
  for (const std::uint64_t block : {3, 8}) {
    builder.begin_block(block);
    builder.begin_warp(0);
    builder.append(row, 1);
    builder.end_block();
  }
  const KernelTrace trace = builder.finish();
  write_trace_file(trace, path_);
  const KernelTrace back = read_trace_file(path_, memory_budget());
  EXPECT_EQ(back.num_missing_blocks(), 8u);
  EXPECT_EQ(back.digest(), trace.digest());
}

TEST_F(TraceFile, EveryCutIsAnError) {
  write_trace_file(sample(2), path_);
  const std::string text = content();
  ASSERT_NO_THROW(read_text(text));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(read_text(text.substr(0, size)), InputError) << size;
  }
  EXPECT_THROW(read_text(text + std::string(8, '\0')), InputError);
}

TEST_F(TraceFile, ChangedBytesAreNoticed) {
  // Padding, too: the digest covers all that is before it.
  write_trace_file(sample(1), path_);
  const std::string text = content();
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 0x11);
    try {
      read_text(bad);
      ADD_FAILURE() << "byte " << at;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("file", 0), 0u) << error.what();
    }
  }
}

TEST_F(TraceFile, SaysWhichVersionItReads) {
  write_trace_file(sample(1), path_);
  std::string text = content();
  const std::uint64_t next = trace_file_version + 1;
  text[8] = static_cast<char>(next);
  try {
    read_text(text);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("format version " + std::to_string(next)),
              std::string::npos);
  }
}

TEST_F(TraceFile, PlacesThatCannotBe) {
  EXPECT_THROW(read_trace_file(path_ + "-absent", memory_budget()), InputError);
  EXPECT_THROW(write_trace_file(sample(1), "/nonexistent/folder/file"), InputError);
  std::filesystem::create_directory(path_);
  EXPECT_THROW(write_trace_file(sample(1), path_), InputError);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

}  // namespace
}  // namespace warpstack::trace
