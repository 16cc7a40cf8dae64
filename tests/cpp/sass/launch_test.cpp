#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "sass/loaded_module.h"

namespace warpstack::sass {
namespace {

/// Runs the instructions of a kernel with 32 threads and one parameter, the address of an array of
/// two words per thread, which R2 and R3 hold the thread's part of.
std::array<std::uint32_t, 64> run(const std::vector<std::string>& code) {
  std::string text =
      ".sass 1\n.target sm_80\n.kernel k\n.needs 16 0 0 1024\n.parameters 352 8\n.param b64 0 8\n"
      "0 0:0 S2R R0,SR_TID.X\n"
      "0 0:0 MOV R3,0x8\n"
      "0 0:0 IMAD.WIDE.U32 R2,R0,R3,c[0x0][0x160]\n";
  for (const std::string& line : code) text += "0 0:0 " + line + "\n";
  text += ".end\n";
  simt::Device device(1 << 20);
  LoadedModule module(std::make_shared<Module>(parse(text, "k.sass")), device);
  std::array<std::uint32_t, 64> words{};
  const std::uint64_t address = device.memory.allocate(sizeof words);
  device.memory.write(address, words.data(), sizeof words);
  simt::LaunchOptions options;
  options.block = {32, 1, 1};
  options.trace = false;
  (void)launch(module, "k", std::as_bytes(std::span(&address, 1)), options);
  device.memory.read(address, words.data(), sizeof words);
  return words;
}

std::string refusal_of(const std::string& line) {
  try {
    (void)run({line, "EXIT"});
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SassLaunch, LanesMeetWhereTheBarrierSaysSo) {
  const auto words = run({
      "ISETP.GE.U32.AND P0,PT,R0,0x4,PT",  // 0x30
      "BSSY B0,0x90",                      // 0x40
      "@P0 BRA 0x80",                      // 0x50
      "VOTE.ANY R5,PT,PT",                 // 0x60: lanes 0 to 3
      "BRA 0x90",                          // 0x70
      "VOTE.ANY R5,PT,PT",                 // 0x80: the others
      "BSYNC B0",                          // 0x90
      "VOTE.ANY R6,PT,PT",                 // 0xa0: all
      "STG.E [R2.64],R5",
      "STG.E [R2.64+0x4],R6",
      "EXIT",
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[2 * lane], lane < 4 ? 0xfu : 0xfffffff0u);
    EXPECT_EQ(words[2 * lane + 1], 0xffffffffu);
  }
}

TEST(SassLaunch, LanesOfDifferentMasksGoOnApart) {
  const auto words = run({
      "LOP3.LUT R4,R0,0x3,RZ,0xc0,!PT",   // 0x30
      "ISETP.NE.U32.AND P0,PT,R4,RZ,PT",  // 0x40
      "MOV R5,0x11111111",                // 0x50: of every fourth lane
      "@P0 MOV R5,0xeeeeeeee",            // 0x60: of the others
      "BSSY B0,0xa0",                     // 0x70
      "WARPSYNC.EXCLUSIVE R5",            // 0x80
      "VOTE.ANY R6,PT,PT",                // 0x90
      "BSYNC B0",                         // 0xa0
      "VOTE.ANY R7,PT,PT",                // 0xb0
      "STG.E [R2.64],R6",
      "STG.E [R2.64+0x4],R7",
      "EXIT",
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[2 * lane], lane % 4 == 0 ? 0x11111111u : 0xeeeeeeeeu);
    EXPECT_EQ(words[2 * lane + 1], 0xffffffffu);
  }
}

TEST(SassLaunch, NobodyWaitsForLanesThatLeaveABarrier) {
  const auto words = run({
      "ISETP.GE.U32.AND P0,PT,R0,0x4,PT",   // 0x30
      "ISETP.GE.U32.AND P1,PT,R0,0x18,PT",  // 0x40
      "BSSY B0,0xa0",                       // 0x50
      "@!P0 BRA 0xa0",                      // 0x60: lanes 0 to 3 wait at 0xa0
      "@P1 BREAK B0",                       // 0x70
      "@P1 BRA 0xc0",                       // 0x80: lanes 24 to 31 do not come there
      "NOP",                                // 0x90
      "BSYNC B0",                           // 0xa0: lanes 0 to 23
      "BRA 0xc0",                           // 0xb0
      "VOTE.ANY R5,PT,PT",                  // 0xc0
      "STG.E [R2.64],R5",
      "EXIT",
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[2 * lane], lane < 24 ? 0x00ffffffu : 0xff000000u);
  }
}

TEST(SassLaunch, NobodyWaitsAtAWarpSyncForLanesThatWaitWherePathsJoin) {
  const auto words = run({
      "ISETP.GE.U32.AND P0,PT,R0,0x2,PT",  // 0x30
      "MOV R5,0x5",                        // 0x40
      "MOV R6,0xffffffff",                 // 0x50
      "BSSY B0,0xa0",                      // 0x60
      "@P0 BRA 0xa0",                      // 0x70: lanes 2 to 31 wait there
      "WARPSYNC R6",                       // 0x80: lanes 0 and 1 name them
      "MOV R5,0x7",                        // 0x90
      "BSYNC B0",                          // 0xa0
      "VOTE.ANY R6,PT,PT",                 // 0xb0: all
      "STG.E [R2.64],R5",
      "STG.E [R2.64+0x4],R6",
      "EXIT",
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[2 * lane], lane < 2 ? 7u : 5u);
    EXPECT_EQ(words[2 * lane + 1], 0xffffffffu);
  }
}

TEST(SassLaunch, LanesThatExitAreNotWaitedFor) {
  const auto words = run({
      "ISETP.GE.U32.AND P0,PT,R0,0x4,PT",  // 0x30
      "BSSY B0,0x70",                      // 0x40
      "@P0 BRA 0x70",                      // 0x50
      "EXIT",                              // 0x60: lanes 0 to 3
      "BSYNC B0",                          // 0x70
      "VOTE.ANY R5,PT,PT",
      "STG.E [R2.64],R5",
      "EXIT",
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[2 * lane], lane < 4 ? 0u : 0xfffffff0u);
  }
}

TEST(SassLaunch, CarriesGoThroughPredicates) {
  // 0xffffffff:0xffffffff + 1 = 0 with a carry; (0 - 1) borrows: no carry.
  const auto words = run({
      "IADD3 R5,P0,RZ,-0x1,0x1",
      "IADD3.X R5,P1,RZ,-0x1,RZ,P0,!PT",
      "SEL R6,RZ,0x1,!P1",
      "IADD3 R7,P2,RZ,RZ,-R6",
      "@P2 IADD3 R6,R6,0x100,RZ",
      "STG.E [R2.64],R5",
      "STG.E [R2.64+0x4],R6",
      "EXIT",
  });
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 1u);
}

TEST(SassLaunch, ReturnsGoToTheAddressInARegister) {
  const auto words = run({
      "MOV R8,0x60",          // 0x30
      "CALL.REL.NOINC 0x80",  // 0x40
      "NOP",                  // 0x50: not here
      "STG.E [R2.64],R5",     // 0x60
      "EXIT",                 // 0x70
      "MOV R5,0x2a",          // 0x80
      "RET.REL.NODEC R8,k",   // 0x90
  });
  EXPECT_EQ(words[0], 42u);
}

TEST(SassLaunch, WhatIsMissingIsRefusedByName) {
  EXPECT_EQ(refusal_of("FROB.X R1,R2"),
            "k.sass:10: kernel k (machine code at 0x30, FROB.X R1,R2): this opcode is not executed "
            "(correct this line, or make the listing anew: MachineModule.listing)");
  EXPECT_EQ(
      refusal_of("IADD3.FROB R1,R2,R3,RZ"),
      "k.sass:10: kernel k (machine code at 0x30, IADD3.FROB R1,R2,R3,RZ): its modifier .FROB "
      "is not executed (correct this line, or make the listing anew: MachineModule.listing)");
  EXPECT_NE(refusal_of("IADD3 R1,R2").find("an operand is missing"), std::string::npos);
  EXPECT_NE(refusal_of("BRA 0x1000").find("its target 0x1000 is not an instruction"),
            std::string::npos);
  EXPECT_NE(refusal_of("MOV R1,c[0x5][0x0]").find("constant bank 5 has 0 bytes"),
            std::string::npos);
}

TEST(SassLaunch, RefusalsOfCubinsRecommendPtx) {
  Instruction unknown;
  unknown.opcode = "FROB.X";
  EXPECT_EQ(
      problem_of(unknown, 80),
      "kernel form (machine code at 0x0, FROB.X): this opcode is not executed (run the "
      "kernel's PTX: in Python from a module without machine_code, on the command line without "
      "--machine-code)");
}

TEST(SassLaunch, LongInstructionsAreCutInMessages) {
  std::string line = "FADD R1";
  for (int i = 0; i < 10000; ++i) line += ",R1";
  EXPECT_LT(refusal_of(line).size(), 600u);
  EXPECT_LT(refusal_of("MOV R1," + std::string(30000, 'x')).size(), 1600u);
}

TEST(SassLaunch, TuplesOfRegistersBeginAtMultiples) {
  for (const char* line : {
           "LDG.E.64 R5,[R2.64]",
           "LDG.E.128 R6,[R2.64]",
           "STG.E.128 [R2.64],R10",
           "LDG.E R4,[R3.64]",
           "LDG.E R4,[R2.64+UR5]",
           "LDS.128 R6,[R4]",
           "LDC.64 R5,c[0x0][0x160]",
           "IMAD.WIDE.U32 R5,R4,R6,RZ",
           "IMAD.WIDE.U32 R4,R4,R6,R9",
           "DADD R5,R6,R8",
           "DADD R4,R7,R8",
           "F2F.F64.F32 R5,R6",
           "I2F.F64 R5,R6",
           "F2I.S64.F64 R5,R6",
           "CS2R R5,SRZ",
           "ATOMG.E.ADD.64 PT,R5,[R2.64],R6",
           "ATOMG.E.ADD.64 PT,R4,[R2.64],R7",
       }) {
    const std::string refusal = refusal_of(line);
    EXPECT_NE(refusal.find(" registers: its number must be a multiple of "), std::string::npos)
        << line << ": " << refusal;
  }
  EXPECT_NE(refusal_of("LDG.E.128 R5,[R2.64]")
                .find("R5 is the first of 4 registers: its number must be a multiple of 4, and the "
                      "last register is R254"),
            std::string::npos);
  EXPECT_NE(refusal_of("CS2R R14,SRZ").find("no error"), std::string::npos);
  EXPECT_NE(refusal_of("IMAD.WIDE.U32 R14,R4,R6,RZ").find("no error"), std::string::npos);
  // RZ is all of a tuple; a 32-bit address is one register.
  for (const char* line : {"STG.E.64 [R2.64],RZ", "IMAD.WIDE.U32 R4,R4,R6,RZ",
                           "IMAD.HI.U32 R5,R4,R6,RZ", "DADD R4,-RZ,R6", "CS2R.32 R5,SR_CLOCKLO"}) {
    EXPECT_EQ(refusal_of(line), "no error") << line;
  }
}

TEST(SassLaunch, ConstantsLieAtMultiplesOfTheirSize) {
  for (const char* line :
       {"MOV R5,c[0x0][0x161]", "FADD R5,R6,c[0x0][0x162]", "IMAD.WIDE.U32 R4,R6,R8,c[0x0][0x164]",
        "DADD R4,R6,c[0x0][0x15c]", "LDC.64 R4,c[0x0][0x164]", "LDC.U16 R5,c[0x0][0x161]"}) {
    const std::string refusal = refusal_of(line);
    EXPECT_NE(refusal.find("does not lie at a multiple of its size"), std::string::npos)
        << line << ": " << refusal;
  }
  EXPECT_EQ(refusal_of("LDC.U16 R5,c[0x0][0x162]"), "no error");
  EXPECT_EQ(refusal_of("LDC.U8 R5,c[0x0][0x163]"), "no error");
}

TEST(SassLaunch, BarriersAreMovedAndCleared) {
  const auto words = run({
      "BMOV.32 B0,0xff",
      "BMOV.32.CLEAR B1,B0",
      "BMOV.32.CLEAR R5,B0",
      "BMOV.32.CLEAR R6,B1",
      "STG.E [R2.64],R5",
      "STG.E [R2.64+0x4],R6",
      "EXIT",
  });
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 0xffu);
}

TEST(SassLaunch, WhatAHandlerDoesNotTakeIsRefused) {
  const std::pair<const char*, const char*> refused[] = {
      {"LEA.SX32 R5,R5,R6,0x2", "its modifier .SX32 is not executed"},
      {"PRMT.F4E.B4E R5,R5,0x1,R6", "its modifier .B4E is not executed"},
      {"F2F.FLOOR.F32.F32 R5,R6", "rounding of a type to itself"},
      {"LDC R5,c[0x0][R6.X4+0x160]", "operand c[0x0][R6.X4+0x160]: its suffix is not executed"},
      {"LDC.U8.64 R5,c[0x0][0x160]", "its modifier .64 is not executed"},
      {"LDG.E.U8.64 R4,[R2.64]", "its modifier .64 is not executed"},
      {"LDG.E R5,[R2.64],!PT", "operand !PT: its sign is not executed"},
      {"STG.E [R2.64],-R5", "operand -R5: its sign is not executed"},
      {"STG.E [R2.64],|R5|", "operand |R5|: its | | is not executed"},
      {"ATOMG.E.ADD PT,R4,[R2.64],~R5", "operand ~R5: its ~ is not executed"},
      {"IADD3 R5,|R5|,R6,RZ", "operand |R5|: its | | is not executed"},
      {"@P0.junk MOV R5,R6", "operand P0.junk: its suffix is not executed"},
      {"SEL R5,R5,R6,P0.junk", "operand P0.junk: its suffix is not executed"},
      {"MOV R5.junk,R6", "operand R5.junk: its suffix is not executed"},
      {"MOV R5,R6,0xf,R7", "operand R7 is one too many"},
      {"EXIT 0x7", "operand 0x7 is one too many"},
      {"BSYNC B0,0x7", "operand 0x7 is one too many"},
      {"MOV R5,0.5", "operand 0.5 is not a word"},
      {"HADD2 R5,R6,1.5,R7", "operand R7 is not a number"},
      {"P2R R5,PR,RZ,0.5", "its mask 0.5 is not a number"},
      {"BRX R5,0.5", "operand 0.5 is not a number"},
      {"MOV R5,0x100000000", "operand 0x100000000 does not fit 32 bits"},
      {"MOV R5,0xffffffffffffffff", "operand 0xffffffffffffffff does not fit 32 bits"},
      {"MOV R5,-0x80000001", "operand -0x80000001 does not fit 32 bits"},
      {"BRA 0x100000030", "operand 0x100000030 does not fit 32 bits"},
      {"LDG.E R5,[R2.64+0x100000000]", "its offset does not fit 32 bits"},
      {"MOV R5,c[0x0][0x100000160]", "lies outside of a constant bank"},
      {"MOV R5,c[0x0][0x114]", "what the driver puts at c[0x0][0x114] is not known"},
      {"FADD R5,R6,1e300", "operand 1e300 is not a number of single precision"},
      {"HMMA.16832.F32 R4,R4,R8,R4", "matrices of this shape and these elements"},
      {"HMMA.1688.F16.BF16 R4,R4,R8,R4", "its modifier .BF16 is not executed"},
      {"IMMA.16864.S8.S8 R4,R4.ROW,R8.COL,R4", "matrices of this shape and these elements"},
      {"IMMA.16832.S8.S4 R4,R4.ROW,R8.COL,R4", "factors of different widths"},
      {"BAR.SYNC R5,R6", "number and threads in two registers"},
      {"UEXIT", "this opcode is not executed"},
      {"ATOMG.E.ADD P0,R4,[R2.64],R5", "its predicate is not executed"},
      {"FMUL.D2 R5,R6,R7", ".D2 is executed with a factor"},
  };
  for (const auto& [line, what] : refused) {
    EXPECT_NE(refusal_of(line).find(what), std::string::npos) << line << ": " << refusal_of(line);
  }
}

TEST(SassLaunch, NtzSaysWhatBecomesOfNan) {
  const auto words = run({
      "MOV R4,0x7fc00000",
      "F2I.TRUNC.NTZ R5,R4",
      "F2I.TRUNC R6,R4",
      "F2I.S64.TRUNC.NTZ R8,R4",
      "F2I.S64.TRUNC R10,R4",
      "IMAD.IADD R9,R9,0x1,R11",
      "@!P0 IADD3 R6,R6,R9,R10",
      "STG.E [R2.64],R5",
      "STG.E [R2.64+0x4],R6",
      "EXIT",
  });
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 0u);  // 0x80000000 twice
}

TEST(SassLaunch, SelectionsOfFlushedFloats) {
  const auto words = run({
      "FSEL R5,-R0,R0,!PT",
      "FSEL.FTZ R6,-R0,R0,PT",
      "STG.E [R2.64],R5",
      "STG.E [R2.64+0x4],R6",
      "EXIT",
  });
  EXPECT_EQ(words[2], 1u);
  EXPECT_EQ(words[3], 0x80000000u);
}

TEST(SassLaunch, ShiftedSumsHaveTheirSignBehindTheShift) {
  // The upper word of 5:thread << 4, negated, and its complement.
  const auto words = run({
      "MOV R4,0x5",
      "LEA.HI R5,-R0,RZ,R4,0x4",
      "LEA.HI R6,~R0,RZ,R4,0x4",
      "STG.E [R2.64],R5",
      "STG.E [R2.64+0x4],R6",
      "EXIT",
  });
  EXPECT_EQ(words[0], 0u - 0x50u);
  EXPECT_EQ(words[1], ~0x50u);
}

}  // namespace
}  // namespace warpstack::sass
