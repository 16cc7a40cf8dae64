#include "trace/instructions/barrier_steps.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace warpstack::trace {
namespace {

using Kind = BarrierStep::Kind;

TEST(BarrierSteps, AreReadAsTheyAreWritten) {
  for (const char* opcode : {"bar.sync", "bar.cta.sync", "barrier.cta.red.popc.u32",
                             "barrier.sync.aligned", "BAR.SYNC.DEFER_BLOCKING", "BAR.RED.AND"}) {
    for (std::uint8_t number = 0; number < num_block_barriers; ++number) {
      for (const std::uint32_t threads : {0u, 32u, 128u, 1024u}) {
        const BarrierStep step{Kind::wait, number, threads};
        EXPECT_EQ(barrier_step(barrier_opcode(opcode, step)), step) << opcode;
      }
      const BarrierStep part{Kind::part, number, 0};
      EXPECT_EQ(barrier_step(barrier_opcode(opcode, part)), part) << opcode;
    }
  }
  for (const char* opcode : {"bar.arrive", "barrier.cta.arrive.aligned", "BAR.ARV"}) {
    const BarrierStep step{Kind::arrive, 7, 256};
    EXPECT_EQ(barrier_step(barrier_opcode(opcode, step)), step) << opcode;
    EXPECT_EQ(barrier_step(opcode), BarrierStep{}) << opcode;
  }
}

TEST(BarrierSteps, WithoutNumbersAreOfTheWholeBlock) {
  const BarrierStep whole{.kind = Kind::wait};
  // What is no number of a barrier is not read as one.
  for (const char* opcode : {"BAR.SYNC", "bar.sync", "barrier.cta.red.and.pred", "bar.sync.id16",
                             "bar.sync.id", "bar.sync.id1.x", "bar.sync.id1.2.3"}) {
    EXPECT_EQ(barrier_step(opcode), whole) << opcode;
  }
  for (const char* opcode : {"bar.warp.sync.id1", "barrier.cluster.arrive", "WARPSYNC.id1",
                             "MEMBAR.SC.GPU", "mbarrier.arrive.shared.b64.barrier128", ""}) {
    EXPECT_EQ(barrier_step(opcode), BarrierStep{}) << opcode;
  }
}

/// Plainly: who has arrived since a barrier opened last.
struct PlainBarriers {
  std::vector<BarrierStep> arrivals;

  [[nodiscard]] std::vector<BarrierStep> at(std::uint32_t number) const {
    std::vector<BarrierStep> here;
    for (const BarrierStep& one : arrivals) {
      if (one.number == number) here.push_back(one);
    }
    return here;
  }
  [[nodiscard]] bool is_complete(std::uint32_t number, std::uint32_t unfinished) const {
    const auto here = at(number);
    if (here.empty()) return false;
    return here.front().threads == 0 ? here.size() >= unfinished
                                     : 32 * here.size() >= here.front().threads;
  }
};

TEST(BlockBarriers, EqualAPlainDefinitionOnRandomSequences) {
  std::mt19937 random(17);
  std::uint64_t opened = 0;
  for (int round = 0; round < 200; ++round) {
    BlockBarriers barriers;
    PlainBarriers plain;
    std::uint32_t unfinished = 1 + random() % 32;
    for (int k = 0; k < 200; ++k) {
      if (random() % 40 == 0 && unfinished > 1) --unfinished;
      const BarrierStep step{
          random() % 2 == 0 ? Kind::wait : Kind::arrive,
          static_cast<std::uint8_t>(random() % num_block_barriers),
          random() % 4 == 0 ? 0 : 32 * (1 + static_cast<std::uint32_t>(random() % 8))};
      barriers.arrive(step);
      plain.arrivals.push_back(step);
      for (std::uint32_t number = 0; number < num_block_barriers; ++number) {
        ASSERT_EQ(barriers.arrived(number), plain.at(number).size());
        const bool is_complete = plain.is_complete(number, unfinished);
        ASSERT_EQ(barriers.is_complete(number, unfinished), is_complete);
        if (!is_complete) continue;
        ++opened;
        barriers.clear(number);
        std::erase_if(plain.arrivals,
                      [number](const BarrierStep& one) { return one.number == number; });
      }
    }
  }
  EXPECT_GT(opened, 1000u);
}

TEST(BlockBarriers, SayWhoIsMissing) {
  BlockBarriers barriers;
  barriers.arrive({Kind::wait, 3, 128});
  EXPECT_EQ(barriers.describe(3, 8), "barrier 3, at which 1 of 4 warps have arrived");
  barriers.arrive({Kind::wait, 4, 0});
  EXPECT_EQ(barriers.describe(4, 8), "barrier 4, at which 1 of 8 warps have arrived");
}

}  // namespace
}  // namespace warpstack::trace
