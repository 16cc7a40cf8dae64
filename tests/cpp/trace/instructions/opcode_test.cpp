#include "trace/instructions/opcode.h"

#include <gtest/gtest.h>

namespace warpstack::trace {
namespace {

TEST(Opcode, MemoryInstructionsTellSpaceKindAndWidth) {
  const DecodedOpcode load = decode_opcode("LDG.E.64");
  EXPECT_EQ(load.op_class, OpClass::memory);
  EXPECT_EQ(load.space, MemorySpace::global);
  EXPECT_EQ(load.kind, MemoryKind::load);
  EXPECT_EQ(load.width, 8);
  const DecodedOpcode store = decode_opcode("STS.128");
  EXPECT_EQ(store.space, MemorySpace::shared);
  EXPECT_EQ(store.kind, MemoryKind::store);
  EXPECT_EQ(store.width, 16);
  EXPECT_EQ(decode_opcode("ATOMG.E.ADD").kind, MemoryKind::atomic);
  EXPECT_EQ(decode_opcode("RED.E.ADD").kind, MemoryKind::reduction);
}

TEST(Opcode, OthersTellTheirClass) {
  EXPECT_EQ(decode_opcode("FADD").op_class, OpClass::fp32);
  EXPECT_EQ(decode_opcode("DFMA").op_class, OpClass::fp64);
  EXPECT_EQ(decode_opcode("MUFU.RCP").op_class, OpClass::sfu);
  EXPECT_EQ(decode_opcode("BRA").op_class, OpClass::control);
  EXPECT_EQ(decode_opcode("QQQ.X").op_class, OpClass::unknown);
}

TEST(Opcode, AModifierIsAWholeWord) {
  EXPECT_TRUE(has_modifier("IMAD.WIDE.U32", "WIDE"));
  EXPECT_TRUE(has_modifier("IMAD.WIDE.U32", "U32"));
  EXPECT_FALSE(has_modifier("IMAD.WIDE.U32", "U3"));
  EXPECT_FALSE(has_modifier("IMAD.WIDE.U32", "IMAD"));
}

TEST(Unit, ConversionsOf64BitsBelongToDoublePrecision) {
  for (const char* opcode : {"F2F.F64.F32", "F2I.S64.F32", "cvt.f64.f32", "cvt.rzi.s32.f64"}) {
    EXPECT_EQ(unit_of(opcode, OpClass::sfu), OpClass::fp64) << opcode;
  }
  for (const char* opcode : {"F2F.F32.F16", "I2F.U32", "MUFU.RCP64H", "cvt.rn.f32.s32"}) {
    EXPECT_EQ(unit_of(opcode, OpClass::sfu), OpClass::sfu) << opcode;
  }
  EXPECT_EQ(unit_of("cvt.s64.s32", OpClass::integer), OpClass::integer);
}

}  // namespace
}  // namespace warpstack::trace
