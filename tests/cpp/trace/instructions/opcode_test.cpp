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

/// Each row of sass.inc is found by its name, and its columns fit each other.
TEST(Opcode, RowsOfTheTableAreSound) {
  constexpr const char* names[] = {
#define SASS_OPERATION(name, op_class, registers, handler) #name,
#define SASS_MEMORY(name, space, kind, registers, handler) #name,
#define SASS_MATRIX(name, factors, warps, handler) #name,
#include "trace/instructions/sass.inc"
  };
  for (std::size_t row = 0; row < std::size(names); ++row) {
    SCOPED_TRACE(names[row]);
    const SassOpcode* found = find_sass_opcode(names[row]);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->name, names[row]);
    EXPECT_EQ(found->row, row);
    const bool is_memory = found->op_class == OpClass::memory;
    EXPECT_EQ(found->kind != MemoryKind::none, is_memory);
    EXPECT_EQ(found->space != MemorySpace::none, is_memory);
    EXPECT_EQ(found->registers == Registers::data || found->registers == Registers::matrices,
              is_memory);
    const bool multiplies = found->op_class == OpClass::tensor;
    EXPECT_EQ(found->factors != Factors::none, multiplies);
    EXPECT_EQ(found->registers == Registers::fragments, multiplies);
    EXPECT_EQ(decode_opcode(std::string(names[row]) + ".E").op_class, found->op_class);
  }
  for (const char* name : {"", "A", "ZZZ", "IADD3X", "IADD", "LDG."}) {
    const SassOpcode* found = find_sass_opcode(name);
    EXPECT_EQ(found != nullptr, std::string_view(name) == "IADD") << name;
  }
}

}  // namespace
}  // namespace warpstack::trace
