#include "memory/reuse/line_stream.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "kernels.h"
#include "memory/reuse/reuse_profile.h"

namespace warpstack::memory {
namespace {

struct Collected : LineSink {
  using Stream = std::vector<std::pair<std::uint64_t, AccessKind>>;
  std::vector<Stream> streams{1};
  void lines(std::span<const std::uint64_t> lines, std::span<const std::uint8_t> kinds) override {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      streams.back().emplace_back(lines[i], static_cast<AccessKind>(kinds[i]));
    }
  }
  void end_stream() override { streams.emplace_back(); }
};

std::vector<Collected::Stream> collect(const trace::KernelTrace& trace,
                                       const LineStreamConfig& config) {
  Collected sink;
  stream_lines(trace, config, sink);
  EXPECT_TRUE(sink.streams.back().empty());  // the last one ended
  sink.streams.pop_back();
  return sink.streams;
}

/// Three blocks of one warp: each loads line `block`, adds to line 9 and stores line `block`.
trace::KernelTrace three_blocks() {
  const auto own = [](std::uint64_t thread) { return thread / 32 * 32; };
  return testing::make_kernel(3, 32,
                              {{"LDG.E", {4}, {2}, own},
                               {"RED.E.ADD", {}, {2}, [](std::uint64_t) { return 9 * 32; }},
                               {"STG.E", {}, {2}, own}});
}

constexpr AccessKind load = AccessKind::load, store = AccessKind::store,
                     atomic = AccessKind::atomic;

TEST(LineStream, SmsHaveTheirOwnStreamsWithoutAtomics) {
  LineStreamConfig config;
  config.num_sms = 2;  // blocks 0 and 2, block 1
  const std::vector<Collected::Stream> streams = collect(three_blocks(), config);
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0], (Collected::Stream{{0, load}, {0, store}, {2, load}, {2, store}}));
  EXPECT_EQ(streams[1], (Collected::Stream{{1, load}, {1, store}}));
}

TEST(LineStream, MergedStreamTakesTurns) {
  LineStreamConfig config;
  config.num_sms = 2;
  config.merged = true;
  const std::vector<Collected::Stream> streams = collect(three_blocks(), config);
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0], (Collected::Stream{{0, load},
                                           {1, load},
                                           {9, atomic},
                                           {9, atomic},
                                           {0, store},
                                           {1, store},
                                           {2, load},
                                           {9, atomic},
                                           {2, store}}));
}

TEST(LineStream, FilterKeepsLoadHitsBack) {
  const auto same = [](std::uint64_t) { return std::uint64_t{320}; };
  const trace::KernelTrace trace = testing::make_kernel(1, 32,
                                                        {{"STG.E", {}, {2}, same},
                                                         {"LDG.E", {4}, {2}, same},
                                                         {"LDG.E", {4}, {2}, same},
                                                         {"RED.E.ADD", {}, {2}, same},
                                                         {"LDG.E", {4}, {2}, same},
                                                         {"LDG.E.STRONG.GPU", {4}, {2}, same}});
  LineStreamConfig config;
  config.merged = true;
  config.filter = LineFilter{4, 1, false};
  // The store does not allocate, the second load hits, the reduction drops the line, the last load
  // bypasses L1.
  EXPECT_EQ(collect(trace, config)[0],
            (Collected::Stream{{10, store}, {10, load}, {10, atomic}, {10, load}, {10, load}}));
  config.filter->allocate_stores = true;
  EXPECT_EQ(collect(trace, config)[0],
            (Collected::Stream{{10, store}, {10, atomic}, {10, load}, {10, load}}));
}

TEST(LineStream, InstructionsTouchALineOnce) {
  const trace::KernelTrace trace = testing::make_kernel(
      1, 32, {{"LDG.E", {4}, {2}, [](std::uint64_t thread) { return thread % 2 * 128 + thread; }}});
  LineStreamConfig config;
  config.line_bytes = 128;
  EXPECT_EQ(collect(trace, config)[0], (Collected::Stream{{0, load}, {1, load}}));
}

TEST(LineStream, ImpossibleConfiguration) {
  const trace::KernelTrace trace = three_blocks();
  Collected sink;
  LineStreamConfig config;
  config.line_bytes = 40;
  EXPECT_THROW(stream_lines(trace, config, sink), InputError);
  config = {};
  config.num_sms = 0;
  EXPECT_THROW(stream_lines(trace, config, sink), InputError);
  config = {};
  config.blocks_per_sm = 0;
  EXPECT_THROW(stream_lines(trace, config, sink), InputError);
  config = {};
  config.filter = LineFilter{0, 1, false};
  EXPECT_THROW(stream_lines(trace, config, sink), InputError);
}

}  // namespace
}  // namespace warpstack::memory
