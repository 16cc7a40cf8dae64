#include "interval/work.h"

#include <gtest/gtest.h>

#include "kernels.h"

namespace warpstack {
namespace {

using testing::make_kernel;

double instructions_of(const PhaseList& list) {
  double sum = 0;
  for (const Phase& phase : list.phases) sum += phase.instructions;
  return sum;
}

TEST(KernelWork, BlocksTakeSlotsAsTheyGetFree) {
  // Three blocks of one warp with four instructions, two SMs with one slot: four cycles with both
  // at work, four with one.
  const KernelTrace trace = make_kernel(3, 32, std::vector<testing::Step>(4, {"MOV", {1}, {}, {}}));
  const KernelWork work(trace, Latencies(trace.instructions().size(), 4), 1);
  const PhaseList list = work.play({.num_sms = 2, .blocks_per_sm = 1});
  ASSERT_EQ(list.phases.size(), 2u);
  EXPECT_DOUBLE_EQ(list.first_sms, 2);
  EXPECT_DOUBLE_EQ(list.first_warps, 1);
  EXPECT_DOUBLE_EQ(list.phases[0].active_sms, 1);
  EXPECT_DOUBLE_EQ(list.phases[0].instructions, 4);
  EXPECT_DOUBLE_EQ(list.phases[1].active_sms, 2);
  EXPECT_DOUBLE_EQ(list.phases[1].instructions, 8);
}

TEST(KernelWork, NoInstructionIsLost) {
  const KernelTrace trace =
      make_kernel(101, 96, {{"MOV", {1}, {}, {}}, {"MOV", {2}, {1}, {}}, {"MOV", {3}, {2}, {}}});
  for (const double rate : {0.3, 1.0, 4.0}) {
    const KernelWork work(trace, Latencies(trace.instructions().size(), 7), rate);
    for (const std::uint32_t sms : {1u, 3u, 200u}) {
      for (const bool oldest_first : {true, false}) {
        const PhaseList list = work.play({sms, 2, oldest_first});
        EXPECT_NEAR(instructions_of(list), 101 * 3 * 3, 1e-6);
        for (const Phase& phase : list.phases) {
          EXPECT_LE(phase.active_sms, sms * (1 + 1e-12));
          EXPECT_LE(phase.warps, 6 * (1 + 1e-12));
          EXPECT_GE(phase.warp_cycles * rate, phase.instructions * (1 - 1e-12));
        }
      }
    }
  }
}

}  // namespace
}  // namespace warpstack
