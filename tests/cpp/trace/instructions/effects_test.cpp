#include "trace/instructions/effects.h"

#include <gtest/gtest.h>

namespace warpstack::trace {
namespace {

Effects effects(const char* opcode, OpClass op_class = OpClass::control) {
  StaticInstruction instruction;
  instruction.opcode = opcode;
  instruction.op_class = op_class;
  return effects_of(instruction);
}

Effects access(const char* opcode, MemoryKind kind, MemorySpace space) {
  StaticInstruction instruction;
  instruction.opcode = opcode;
  instruction.op_class = OpClass::memory;
  instruction.kind = kind;
  instruction.space = space;
  return effects_of(instruction);
}

TEST(Effects, ConversionsOf64BitsBelongToDoublePrecision) {
  for (const char* opcode :
       {"F2F.F64.F32", "F2I.S64.F32", "I2F.U64", "FRND.F64", "cvt.f64.f32", "cvt.rzi.s32.f64"}) {
    EXPECT_EQ(effects(opcode, OpClass::sfu).unit, OpClass::fp64) << opcode;
  }
  for (const char* opcode : {"F2F.F32.F16", "I2F.U32", "MUFU.RCP64H", "cvt.rn.f32.s32"}) {
    EXPECT_EQ(effects(opcode, OpClass::sfu).unit, OpClass::sfu) << opcode;
  }
  EXPECT_EQ(effects("cvt.s64.s32", OpClass::integer).unit, OpClass::integer);
}

TEST(Effects, BarriersOfBlocks) {
  for (const char* opcode : {"BAR.SYNC", "BAR.SYNC.DEFER_BLOCKING", "BAR.RED.POPC", "bar.sync",
                             "bar.cta.sync", "barrier.cta.red.and.pred", "barrier.sync.aligned"}) {
    EXPECT_TRUE(effects(opcode).is_block_barrier) << opcode;
  }
  for (const char* opcode : {"BAR.ARV", "bar.arrive", "bar.warp.sync", "barrier.cluster.arrive",
                             "B2R.RESULT", "WARPSYNC", "MEMBAR.SC.GPU"}) {
    EXPECT_FALSE(effects(opcode).is_block_barrier) << opcode;
  }
}

TEST(Effects, LanesShareWordsOfSharedMemory) {
  using enum MemoryKind;
  constexpr auto shared = MemorySpace::shared;
  EXPECT_EQ(access("LDS.64", load, shared).shared_access, SharedAccess::load);
  EXPECT_EQ(access("ld.shared.u32", load, shared).shared_access, SharedAccess::load);
  for (const char* opcode : {"LDSM.16.M88.4", "ldmatrix.sync.aligned", "wmma.load.a.sync"}) {
    EXPECT_EQ(access(opcode, load, shared).shared_access, SharedAccess::other) << opcode;
  }
  EXPECT_EQ(access("STS", store, shared).shared_access, SharedAccess::other);
  EXPECT_EQ(access("ATOMS.ADD", atomic, shared).shared_access, SharedAccess::in_turn);
  EXPECT_EQ(access("ATOMS.POPC.INC.32", atomic, shared).shared_access, SharedAccess::other);
  EXPECT_EQ(access("red.shared.add.u32.count_lanes", reduction, shared).shared_access,
            SharedAccess::other);
}

TEST(Effects, GroupsOfCopiesAndProducts) {
  using Kind = CopyGroupStep::Kind;
  using Of = CopyGroupStep::Of;
  const auto step = [](const char* opcode) { return effects(opcode, OpClass::barrier).groups; };
  EXPECT_EQ(step("cp.async.commit_group").kind, Kind::commit);
  EXPECT_EQ(step("cp.async.wait_all").kind, Kind::wait_all);
  EXPECT_EQ(step("cp.async.wait_group.3").kind, Kind::wait);
  EXPECT_EQ(step("cp.async.wait_group.3").most, 3u);
  EXPECT_EQ(step("cp.async.wait_group").kind, Kind::none) << "traces of version 0.1";
  EXPECT_EQ(step("wgmma.commit_group.sync.aligned").of, Of::products);
  EXPECT_EQ(step("wgmma.wait_group.sync.aligned.1").of, Of::products);
  EXPECT_EQ(step("cp.async.bulk.commit_group").of, Of::bulk_stores);
  EXPECT_TRUE(step("cp.async.bulk.wait_group.read.1").for_reading);
  EXPECT_FALSE(step("cp.async.bulk.wait_group.0").for_reading);
  EXPECT_EQ(step("IADD3").kind, Kind::none);
  const std::vector<Effects> waits = {effects("IADD3"), effects("wgmma.wait_group.1")};
  EXPECT_TRUE(has_product_waits(waits));
  EXPECT_FALSE(has_product_waits(std::span(waits).first(1)));
  EXPECT_TRUE(effects("LDGDEPBAR", OpClass::barrier).awaits_copies);
  EXPECT_TRUE(effects("wgmma.mma_async.sync.aligned.m64n8k16", OpClass::tensor).is_async_product);
  EXPECT_TRUE(
      access("cp.async.bulk.global.shared::cta.bulk_group", MemoryKind::store, MemorySpace::global)
          .is_bulk_store);
  EXPECT_FALSE(access("cp.async.bulk.shared::cluster.global.bulk_group", MemoryKind::async_copy,
                      MemorySpace::global)
                   .is_bulk_store);
}

TEST(Effects, StepsAtBarriersAreReadAsTheyAreWritten) {
  using Kind = PhaseStep::Kind;
  for (const PhaseStep step : {PhaseStep{Kind::complete, 128, 0}, PhaseStep{Kind::wait, 64, 3}}) {
    EXPECT_EQ(phase_step(phase_opcode("mbarrier.some.b64", step)), step);
  }
  EXPECT_TRUE(effects("cp.async.mbarrier.arrive.b64.barrier8").phase.is_after_copies);
  for (const char* opcode : {"mbarrier.init", "mbarrier.arrive.barrier", "x.barrier12x",
                             "x.barrier1.y", "x.barrier.1"}) {
    EXPECT_EQ(effects(opcode).phase.kind, Kind::none) << opcode;
  }
}

TEST(Effects, AProductWaitsForItsFactorsAlone) {
  StaticInstruction product;
  product.destinations = {4, 5};
  product.sources = {1, 4, 5, 9};
  EXPECT_EQ(awaited_by_product(product), (std::vector<std::uint16_t>{1, 9}));
}

}  // namespace
}  // namespace warpstack::trace
