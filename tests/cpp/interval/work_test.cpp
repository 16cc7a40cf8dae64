#include "interval/work.h"

#include <gtest/gtest.h>

#include "kernels.h"

namespace warpstack::interval {
namespace {

using testing::make_kernel;

KernelWork work_of(const trace::KernelTrace& trace, double latency, double rate) {
  const std::size_t rows = trace.instructions().size();
  return {trace, Latencies(rows, latency), Latencies(rows, 25), rate};
}

TEST(KernelWork, BlocksTakeSlotsAsTheyGetFree) {
  // Three blocks of one warp with four instructions, two SMs with one slot: four cycles with both
  // at work, four with one.
  const trace::KernelTrace trace =
      make_kernel(3, 32, std::vector<testing::Step>(4, {"MOV", {1}, {}, {}}));
  const PhaseList list = work_of(trace, 4, 1).play(2, 1);
  ASSERT_EQ(list.phases.size(), 2u);
  EXPECT_DOUBLE_EQ(list.first_all_warps, 2);
  EXPECT_DOUBLE_EQ(list.first_warps, 1);
  EXPECT_DOUBLE_EQ(list.phases[0].all_warps, 2);
  EXPECT_DOUBLE_EQ(list.phases[1].all_warps, 1);
  ASSERT_EQ(list.sms.size(), 1u);  // the other one has less of everything
  EXPECT_DOUBLE_EQ(list.sms[0].depth[0], 4);
  EXPECT_DOUBLE_EQ(list.sms[0].depth[1], 4);
  EXPECT_DOUBLE_EQ(list.span, 8);
}

TEST(KernelWork, NoInstructionIsLost) {
  const trace::KernelTrace trace =
      make_kernel(101, 96, {{"MOV", {1}, {}, {}}, {"MOV", {2}, {1}, {}}, {"MOV", {3}, {2}, {}}});
  for (const double rate : {0.3, 1.0, 4.0}) {
    for (const std::uint32_t sms : {1u, 3u, 200u}) {
      const PhaseList list = work_of(trace, 7, rate).play(sms, 2);
      EXPECT_NEAR(list.instructions, 101 * 3 * 3, 1e-6);
      for (const Phase& phase : list.phases) {
        EXPECT_LE(phase.warps, 6 * (1 + 1e-12));
        EXPECT_LE(phase.all_warps, sms * 6 * (1 + 1e-12));
      }
      for (const SmWork& sm : list.sms) {
        double depth = 0;
        for (std::size_t p = 0; p < sm.depth.size(); ++p) {
          depth += sm.depth[p] * list.phases[p].warps;
        }
        EXPECT_NEAR(depth, sm.instructions, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace warpstack::interval
