#include "trace/instructions/tensor_operation.h"

#include <gtest/gtest.h>

#include "gpu/tensor_unit.h"

namespace warpstack::trace {
namespace {

struct Named {
  const char* opcode;
  TensorOperation operation;
};

TEST(TensorOperation, ReadsShapesAndTypes) {
  using enum TensorType;
  const Named cases[] = {
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", {f16_f32, 16 * 8 * 16, false}},
      {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", {f16, 16 * 8 * 8, false}},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", {bf16, 2048, false}},
      {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", {tf32, 512, false}},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", {f64, 256, false}},
      {"mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", {s8, 4096, false}},
      {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", {s8, 4096, false}},
      {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", {b1, 32768, false}},
      {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", {f8, 4096, false}},
      {"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", {f16_f32, 2048, false}},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", {f16_f32, 4096, false}},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16", {f16, 4096, false}},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32", {s8, 4096, false}},
      // A quarter of 64 x 128 x 16 for each of the four warps.
      {"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", {f16_f32, 32768, true}},
      {"HMMA.16816.F32", {f16_f32, 2048, false}},
      {"HMMA.1688.F16", {f16, 1024, false}},
      {"HMMA.16816.F32.BF16", {bf16, 2048, false}},
      {"HMMA.1684.F32.TF32", {tf32, 512, false}},
      {"HMMA.884.F32.F32.STEP0", {f16_f32, 256, false}},
      {"IMMA.16832.S8.S8", {s8, 4096, false}},
      {"IMMA.8816.U8.S8.SAT", {s8, 1024, false}},
      {"IMMA.8832.S4.S4", {s4, 2048, false}},
      {"BMMA.168256.XOR.POPC", {b1, 32768, false}},
      {"DMMA.884", {f64, 256, false}},
      {"HMMA.SP.16832.F32", {f16_f32, 2048, false}},
      {"HGMMA.64x256x16.F32", {f16_f32, 65536, true}},
      {"QGMMA.64x64x32.F32.E4M3.E4M3", {f8, 32768, true}},
      {"IGMMA.64x64x32.S8.S8", {s8, 32768, true}},
      {"QMMA.16832.F32.E4M3.E2M1", {f8, 4096, false}},
      // For all four schedulers; of pairs for one of two SMs; of 4 bits at twice the rate.
      {"UTCHMMA.128x256x16.F32.F16.F16", {f16_f32, 131072, true, true}},
      {"UTCHMMA.128x64x8.F32.TF32.TF32", {tf32, 16384, true, true}},
      {"UTCIMMA.WS.64x64x32.S32.S8.U8", {s8, 32768, true, true}},
      {"UTCQMMA.2CTA.256x128x32.F32.E4M3.E5M2", {f8, 131072, true, true}},
      {"UTCOMMA.4X.128x64x64.F32.E2M1.E2M1", {f8, 65536, true, true}},
  };
  for (const Named& one : cases) {
    const auto found = tensor_operation(one.opcode);
    ASSERT_TRUE(found) << one.opcode;
    EXPECT_EQ(*found, one.operation) << one.opcode;
  }
}

TEST(TensorOperation, OthersAreNone) {
  for (const char* opcode :
       {"HMMA", "UTCHMMA", "UTCOMMA.4X", "HMMA.F32", "HMMA.9916.F32", "mma",
        "mma.sync.aligned.m16n8k16.row.col", "mma.sync.aligned.m16n8.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.e9m9.e9m9", "wgmma.fence.sync.aligned", "HFMA2.MMA",
        "FFMA", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "HGMMA.64x.F32", "HGMMA.0x8x16.F32",
        "HMMA.16899999999", ""}) {
    EXPECT_FALSE(tensor_operation(opcode)) << opcode;
  }
}

TEST(TensorUnit, TakesMultiplyAddsAtTheRateOfTheType) {
  gpu::TensorUnit a100{.interval = 8};
  a100.rates[static_cast<std::size_t>(TensorType::f16_f32)] = 256;
  a100.rates[static_cast<std::size_t>(TensorType::f64)] = 16;
  // 2048 / 256, 1024 / 256, 256 / 16.
  EXPECT_EQ(a100.cycles(tensor_operation("HMMA.16816.F32")), 8);
  EXPECT_EQ(a100.cycles(tensor_operation("HMMA.1688.F32")), 4);
  EXPECT_EQ(a100.cycles(tensor_operation("DMMA.884")), 16);
  // Half a cycle and a part of one are whole ones.
  a100.rates[static_cast<std::size_t>(TensorType::s8)] = 3000;
  EXPECT_EQ(a100.cycles(tensor_operation("IMMA.16832.S8.S8")), 2);
  EXPECT_EQ(a100.cycles(tensor_operation("IMMA.8816.S8.S8")), 1);
  // A type without a rate, and what is not known.
  EXPECT_EQ(a100.cycles(tensor_operation("BMMA.168256.XOR")), 8);
  EXPECT_EQ(a100.cycles(tensor_operation("HMMA.X")), 8);
}

TEST(TensorUnit, LatencyGrowsWithTheTimeInTheUnit) {
  gpu::TensorUnit h100{.interval = 4};
  h100.rates[static_cast<std::size_t>(TensorType::f16_f32)] = 512;
  EXPECT_EQ(h100.latency(tensor_operation("HMMA.16816.F32"), 24), 24);
  EXPECT_EQ(h100.latency(tensor_operation("HMMA.1688.F32"), 24), 22);
  EXPECT_EQ(h100.latency(tensor_operation("DMMA.884"), 24), 24);
  // 16 x 256 x 16 / 512 = 128 cycles, of which nobody in a chain waits for the rest of the
  // pipeline.
  EXPECT_EQ(h100.latency(tensor_operation("HGMMA.64x256x16.F32"), 24), 128);
  EXPECT_EQ(h100.latency(tensor_operation("HGMMA.64x8x16.F32"), 24), 24);
}

}  // namespace
}  // namespace warpstack::trace
