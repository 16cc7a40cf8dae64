#include "ptx/lower/opcode.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "common/error.h"
#include "ptx/loaded_module.h"
#include "simt/device/device.h"

namespace warpstack::ptx {
namespace {

TEST(Opcodes, EachMnemonicHasOneRow) {
  std::set<std::string_view> mnemonics;
  for (const Opcode& opcode : all_opcodes()) {
    EXPECT_TRUE(mnemonics.insert(opcode.mnemonic).second) << opcode.mnemonic;
    EXPECT_EQ(find_opcode(opcode.mnemonic), &opcode);
    EXPECT_NE(opcode.handler, nullptr) << opcode.mnemonic;
  }
  EXPECT_EQ(find_opcode("SQRT"), nullptr);
  EXPECT_EQ(find_opcode(""), nullptr);
}

TEST(Opcodes, ASignatureNamesTheTypesOfTheOperands) {
  const Signature& slct = find_opcode("slct")->signature;
  ASSERT_EQ(slct.num_sources(), 3u);
  EXPECT_EQ(slct.type(0, Type::b16, Type::f32), Type::b16);
  EXPECT_EQ(slct.type(2, Type::b16, Type::f32), Type::b16);
  EXPECT_EQ(slct.type(3, Type::b16, Type::f32), Type::f32);
  const Signature& fns = find_opcode("fns")->signature;
  ASSERT_EQ(fns.num_sources(), 3u);
  EXPECT_EQ(fns.type(2, Type::b32, Type::none), Type::u32);
  EXPECT_EQ(fns.type(3, Type::b32, Type::none), Type::s32);
  EXPECT_EQ(find_opcode("selp")->signature.type(3, Type::f64, Type::none), Type::pred);
}

/// Why a kernel of these instructions cannot run.
std::string refusal(const std::string& body) {
  const std::string text =
      ".version 8.5\n.target sm_80\n.address_size 64\n.entry k() {\n"
      ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n" +
      body + "\nret;\n}\n";
  simt::Device device(std::uint64_t{1} << 20);
  LoadedModule loaded(std::make_shared<const Module>(parse(text, "k.ptx")), device);
  try {
    loaded.program("k");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Lowering, ARefusalNamesTheInstructionAndTheReason) {
  const std::string at = "k.ptx:6: kernel k: cannot simulate ";
  EXPECT_EQ(refusal("frob.u32 %r1, %r2;"), at + "frob.u32: the instruction is not supported");
  EXPECT_EQ(refusal("shl.b32.frob %r1, %r2, 3;"),
            at + "shl.b32.frob: the modifier .frob is not supported here");
  EXPECT_EQ(refusal("shl.b32 %r1, %r2;"), at + "shl.b32: it has 2 operands, more are needed");
  EXPECT_EQ(refusal("shl.b32 %r1, %rd2, 3;"),
            at + "shl.b32: register %rd2 has another width than the instruction");
  EXPECT_EQ(refusal("selp.b32 %r1, %r2, %r3, %r1;"),
            at + "selp.b32: operand %r1 has another type than the instruction");
  EXPECT_EQ(refusal("shl.b32 %r1, %r2, 3;"), "");
}

}  // namespace
}  // namespace warpstack::ptx
