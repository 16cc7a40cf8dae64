#include <gtest/gtest.h>

#include "common/error.h"
#include "sass/text/control.h"
#include "sass/text/module.h"

namespace warpstack::sass {
namespace {

TEST(SassControl, FieldsOfEncodings) {
  // MOV R1, c[0x0][0x28]: upper word 0x000fe40000000f00, two cycles and nothing else.
  EXPECT_EQ(decode_control(0x000fe40000000f00ull >> 41), (Control{.stall = 2}));
  // S2R R4, SR_CTAID.X: 0x000e280000002500, its result comes by barrier 0.
  EXPECT_EQ(decode_control(0x000e280000002500ull >> 41), (Control{.stall = 4, .write_barrier = 0}));
  // IMAD behind it: 0x001fca00078e0203, waits for barrier 0.
  EXPECT_EQ(decode_control(0x001fca00078e0203ull >> 41),
            (Control{.stall = 5, .yield = true, .wait_mask = 1}));
  // STL [R1+0x48], R17 of a frame: 0xf4 are bits 105 to 125, its registers are free by barrier 0.
  EXPECT_EQ(decode_control(0xf4), (Control{.stall = 4, .read_barrier = 0}));
  // IADD3 R0, R5.reuse, -0x1, RZ: 0x207f1, the first operand stays.
  EXPECT_EQ(decode_control(0x207f1), (Control{.stall = 1, .reuse = 1}));
}

TEST(SassOperand, Registers) {
  EXPECT_EQ(parse_operand("R12").index, 12u);
  EXPECT_EQ(parse_operand("R12").kind, Operand::Kind::reg);
  EXPECT_EQ(parse_operand("RZ").index, zero_register);
  EXPECT_EQ(parse_operand("URZ").kind, Operand::Kind::uniform);
  EXPECT_EQ(parse_operand("!UP3").kind, Operand::Kind::uniform_predicate);
  EXPECT_TRUE(parse_operand("!UP3").negated);
  EXPECT_EQ(parse_operand("PT").index, true_predicate);
  EXPECT_EQ(parse_operand("B15").kind, Operand::Kind::convergence);
  EXPECT_TRUE(parse_operand("~R0").complement);
  EXPECT_EQ(parse_operand("R255").kind, Operand::Kind::name);  // there is no such register
  const Operand half = parse_operand("-|R2|.H1_H1");
  EXPECT_TRUE(half.negated && half.absolute);
  EXPECT_EQ(half.suffix, "H1_H1");
  EXPECT_EQ(parse_operand("SR_TID.X").kind, Operand::Kind::special);
}

TEST(SassOperand, Numbers) {
  EXPECT_EQ(parse_operand("-0x50").integer, -0x50);
  EXPECT_EQ(parse_operand("-0x50").kind, Operand::Kind::integer);
  EXPECT_EQ(parse_operand("12582913").kind, Operand::Kind::real);
  EXPECT_EQ(parse_operand("-0.5").real, -0.5);
  EXPECT_EQ(parse_operand("1.469367938527859385e-39").real, 1.469367938527859385e-39);
  EXPECT_LT(parse_operand("-INF").real, -1e308);
}

TEST(SassOperand, Places) {
  const Operand constant = parse_operand("c[0x3][R25+0x4]");
  EXPECT_EQ(constant.kind, Operand::Kind::constant);
  EXPECT_EQ(constant.bank, 3u);
  EXPECT_EQ(constant.base, 25u);
  EXPECT_EQ(constant.integer, 4);
  const Operand address = parse_operand("desc[UR4][R2.64+UR6+-0x8]");
  EXPECT_EQ(address.kind, Operand::Kind::address);
  EXPECT_EQ(address.base, 2u);
  EXPECT_EQ(address.uniform_base, 6u);
  EXPECT_EQ(address.suffix, "64");
  EXPECT_EQ(address.integer, -8);
  EXPECT_EQ(parse_operand("[0x400]").base, Operand::no_base);
  EXPECT_THROW((void)parse_operand("[R1+R2]"), InputError);
  EXPECT_THROW((void)parse_operand("c[0x99][0x0]"), InputError);
  EXPECT_THROW((void)parse_operand("|R2"), InputError);
}

/// What is wrong with a listing, without the remedy.
std::string message_of(const std::string& text, TextOf source = TextOf::listing) {
  const std::string remedy = source == TextOf::listing
                                 ? " (make the listing anew: MachineModule.listing)"
                                 : " (compile the cubin anew; if that does not help, take another "
                                   "version of nvidia-cuda-nvdisasm)";
  try {
    (void)parse(text, "a.sass", source);
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.ends_with(remedy) ? what.substr(0, what.size() - remedy.size()) : "no remedy";
  }
  return "no error";
}

const std::string beginning =
    ".sass 1\n.target sm_80\n.file 1 \"a.cu\"\n.kernel k\n.needs 8 0 16 256\n.parameters 352 8\n"
    ".param b64 0 8\n.label f 16\n";

TEST(SassListing, IsRead) {
  const Module module =
      parse(beginning + "7f2 1:5 @!P0 LDG.E R2,[R2.64]\n7f5 0:0 EXIT\n.end\n", "a");
  const Kernel& kernel = *module.kernel("k");
  EXPECT_EQ(module.arch, 80u);
  EXPECT_EQ(kernel.registers, 8u);
  EXPECT_EQ(kernel.local_bytes, 16u);
  EXPECT_EQ(kernel.max_threads, 256u);
  EXPECT_EQ(kernel.parameters.size(), 1u);
  EXPECT_EQ(kernel.labels.at("f"), 16u);
  ASSERT_EQ(kernel.code.size(), 2u);
  EXPECT_EQ(kernel.code[0].opcode, "LDG.E");
  EXPECT_TRUE(kernel.code[0].is_guarded && kernel.code[0].guard.negated);
  EXPECT_EQ(kernel.code[0].operands.size(), 2u);
  EXPECT_EQ(module.place_of(kernel.code[0]), "a.cu:5");
  EXPECT_EQ(module.place_of(kernel.code[1]), "");
  EXPECT_EQ(kernel.code[1].address, 16u);
}

TEST(SassListing, InlinedCallsHaveCallers) {
  const Module module = parse(
      ".sass 1\n.target sm_80\n.file 1 \"/src/a b.cu\" 100 200\n.file 2 \"b.cuh\"\n"
      ".inlined 1 1:8 _Z3fooi\n.inlined 2 2:3@1\n.kernel k\n.needs 8 0 16 256\n"
      ".parameters 352 8\n7f5 2:5@2 EXIT\n.end\n",
      "a");
  EXPECT_EQ(module.sources.files,
            (std::vector<trace::SourceFile>{{"/src/a b.cu", 100, 200}, {"b.cuh"}}));
  EXPECT_EQ(module.sources.calls,
            (std::vector<trace::InlinedCall>{{"_Z3fooi", 1, 8, 0}, {"", 2, 3, 1}}));
  EXPECT_EQ(module.kernel("k")->code[0].inlined_at, 2u);
  EXPECT_EQ(message_of(".sass 1\n.target sm_80\n.inlined 1 0:0@1 f\n"),
            "a.sass:3: the inlined call is \"1\", not a number up to 0");
  EXPECT_EQ(message_of(".sass 1\n.target sm_80\n.inlined 2 0:0 f\n"),
            "a.sass:3: inlined call 2 comes after 0: they are numbered from 1, in order");
}

TEST(SassListing, DamageIsNamed) {
  EXPECT_EQ(
      message_of("// nothing\n"),
      "a.sass:1: the first line must be .sass 1: this is not a listing of machine code, or of "
      "another version of the program");
  EXPECT_EQ(message_of(".sass 1\n.needs 1 2 3 4\n"), "a.sass:2: there is no .kernel before it");
  EXPECT_EQ(message_of(beginning + "xyz 1:5 EXIT\n.end\n"),
            "a.sass:9: the control is \"xyz\", not a number up to 2097151 in hexadecimal");
  EXPECT_EQ(message_of(beginning + "0 9:5 EXIT\n.end\n"),
            "a.sass:9: the file's number is \"9\", not a number up to 1");
  EXPECT_EQ(message_of(beginning + "0 1:5 EXIT\n"),
            "a.sass:9: kernel k has no .end: the listing is cut off");
  EXPECT_EQ(message_of(beginning + ".end\n"), "a.sass:9: kernel k has no instructions");
  EXPECT_EQ(message_of(beginning + "0 1:5 LDG.E R0,[R1+R2]\n.end\n"),
            "a.sass:9: operand [R1+R2]: an address has one register and one uniform register");
  EXPECT_EQ(message_of(".sass 1\n.section .nv.global 4\n.hex 2 00112233\n"),
            "a.sass:3: 8 digits at 2 are not whole bytes within section .nv.global of 4 bytes");
}

TEST(SassListing, RegistersAreThoseOfTheKernel) {
  const auto uses = [](const std::string& line) {
    return message_of(beginning + "0 0:0 " + line + "\n0 0:0 EXIT\n.end\n");
  };
  EXPECT_EQ(uses("MOV R7,RZ"), "no error");
  EXPECT_EQ(
      uses("MOV R8,RZ"),
      "a.sass:11: kernel k has 8 registers by its .needs, and MOV at 0x0 uses R8: .needs must "
      "say 9 or more");
  EXPECT_NE(uses("STG.E [R10.64],R0").find("uses R10"), std::string::npos);
  EXPECT_EQ(uses("USETMAXREG.TRY_ALLOC.CTAPOOL 0xf0\n0 0:0 MOV R200,RZ"), "no error");
  EXPECT_EQ(message_of(".sass 1\n.kernel k\n.needs 256 0 0 1024\n"),
            "a.sass:3: the number of registers is \"256\", not a number up to 255");
  EXPECT_EQ(message_of(".sass 1\n.kernel k\n.needs 8 0 0 0\n"),
            "a.sass:3: the number of threads of kernel k is 0, not 1 to 1024");
}

TEST(SassListing, ParametersDoNotOverlap) {
  EXPECT_EQ(message_of(".sass 1\n.kernel k\n.needs 8 0 0 32\n.parameters 352 24\n.param b64 0 8\n"
                       ".param b32 4 4\n"),
            "a.sass:6: parameter 2 is at 4, before the end of the one before it at 8");
}

TEST(SassListing, AddressesAreOfWhatIsThere) {
  const auto of = [](const std::string& symbol, TextOf source) {
    return message_of(
        ".sass 1\n.target sm_80\n.section .nv.global 8\n.address 0 " + symbol +
            " 0\n.symbol x .nv.global 0 8\n.kernel k\n.needs 8 0 0 32\n0 0:0 EXIT\n.end\n",
        source);
  };
  EXPECT_EQ(of("lost", TextOf::listing),
            "a.sass:4: symbol lost, whose address is wanted, is not there: it has no .symbol");
  EXPECT_EQ(of("lost", TextOf::cubin), "no error");  // a function of the driver
  for (const char* known : {"x", ".nv.global", "k", "vprintf"}) {
    EXPECT_EQ(of(known, TextOf::listing), "no error") << known;
  }
}

TEST(SassListing, BarriersAreZeroToFive) {
  const auto of = [](const std::string& line) {
    return message_of(beginning + line + "\n0 0:0 EXIT\n.end\n");
  };
  EXPECT_EQ(of("7e0 0:0 DEPBAR.LE SB5,0x1,{4,3}"), "no error");
  EXPECT_EQ(of("7e0 0:0 DEPBAR.LE SB0,0x0,{5,6}"),
            "a.sass:9: DEPBAR.LE names barrier \"6\" in {5,6}, not 0 to 5");
  EXPECT_EQ(of("7e0 0:0 DEPBAR.LE SB9,0x0"),
            "a.sass:9: DEPBAR.LE names barrier \"9\" in SB9, not 0 to 5");
  EXPECT_EQ(of("7c0 0:0 NOP"),
            "a.sass:9: the control's write barrier is 6, not 0 to 5 or 7 (none)");
  EXPECT_EQ(of("6e0 0:0 NOP"), "a.sass:9: the control's read barrier is 6, not 0 to 5 or 7 (none)");
}

TEST(SassListing, EmptyTextsAreRefused) {
  EXPECT_EQ(message_of("").substr(0, 40), "a.sass:1: the first line must be .sass 1");
}

TEST(SassListing, MessagesOfCubinsNameTheirPlaces) {
  EXPECT_EQ(message_of(beginning + "0 1:5 NOP\n0 1:5 MOV R0,[R1+R2]\n.end\n", TextOf::cubin),
            "a.sass: kernel k, machine code at 0x10: operand [R1+R2]: an address has one register "
            "and one uniform register");
  EXPECT_EQ(message_of(".sass 1\n.target sm_80\n.section .nv.global 4\n.section .nv.global 4\n",
                       TextOf::cubin),
            "a.sass: there are two sections .nv.global");
}

TEST(SassListing, CodeHasAnEnd) {
  const auto last = [](const std::string& line) {
    return message_of(beginning + "0 0:0 NOP\n0 0:0 " + line + "\n.end\n");
  };
  for (const char* line : {"EXIT", "BRA 0x0", "RET.REL.NODEC R2,0x0", "@PT EXIT", "BRX R2,-0x10"}) {
    EXPECT_EQ(last(line), "no error") << line;
  }
  for (const char* line : {"NOP", "@P0 EXIT", "@!PT EXIT", "BRA P0,0x0"}) {
    EXPECT_NE(last(line).find(", behind which there are no instructions"), std::string::npos)
        << line;
  }
}

}  // namespace
}  // namespace warpstack::sass
