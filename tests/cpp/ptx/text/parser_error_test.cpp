#include <gtest/gtest.h>

#include <string>

#include "ptx/text/ptx_texts.h"

// What the parser says of wrong PTX: file, line, what it expected and what it found.

namespace warpstack::ptx {
namespace {

using testing::body_error;
using testing::error_in;
using testing::header;
using testing::module_error;

TEST(PtxError, NamesFileLineExpectedAndFound) {
  EXPECT_EQ(body_error("add.s32 %r1, %r2, %r3\nmul.lo.s32 %r1, %r2, %r3;"),
            "k.ptx:11: expected ';' after the operands of add.s32, found 'mul'");
  EXPECT_EQ(body_error("add.s32 %r1, , %r3;"),
            "k.ptx:10: expected an operand of add.s32, found ','");
  EXPECT_EQ(body_error("st.b32 [%rd1, %r1;"),
            "k.ptx:10: expected ']' after the address of st.b32, found ';'");
  EXPECT_EQ(body_error("5;"), "k.ptx:10: expected an instruction, found '5'");
  EXPECT_EQ(body_error(".version 3;"),
            "k.ptx:10: expected an instruction or a declaration, found '.version'");
}

TEST(PtxError, NotPtx) {
  EXPECT_EQ(error_in(""),
            "k.ptx:1: expected '.version', with which PTX starts, found the end of the file");
  EXPECT_EQ(error_in("#include <cuda.h>\nint x;"),
            "k.ptx:2: expected '.version', with which PTX starts, found 'int'");
  EXPECT_EQ(error_in("\x7f"
                     "ELF"),
            "k.ptx:1: unexpected byte 0x7f; PTX is ASCII text");
  EXPECT_EQ(error_in(".version 8\n.target sm_80"),
            "k.ptx:1: expected a version such as 8.5 after .version, found '8'");
  EXPECT_EQ(error_in(".version 8.0\n.func"),
            "k.ptx:2: expected '.target' after .version, found '.func'");
  EXPECT_EQ(error_in(".version 8.0\n.target debug"),
            "k.ptx:2: .target names no architecture such as sm_75");
}

TEST(PtxError, CutShort) {
  EXPECT_EQ(error_in(header + ".entry k() {\nret;"),
            "k.ptx:5: the file ends inside 'k', whose '{' is on line 4");
  EXPECT_EQ(module_error(".section .debug_str {\n"), "k.ptx:4: a section without its end '}'");
  EXPECT_EQ(module_error("\n/* open"), "k.ptx:5: a comment /* without its end */");
  EXPECT_EQ(module_error(".file 1 \"a\n\""), "k.ptx:4: a string without its end \"");
}

TEST(PtxError, UndefinedNames) {
  EXPECT_EQ(body_error("add.s32 %r1, %r2, %r16;"), "k.ptx:10: undefined register '%r16'");
  EXPECT_EQ(body_error("add.s32 %r1, %r2, %r05;"), "k.ptx:10: undefined register '%r05'");
  EXPECT_EQ(body_error("@%q1 ret;"), "k.ptx:10: undefined register '%q1'");
  EXPECT_EQ(body_error("ld.global.u32 %r1, [missing];"), "k.ptx:10: undefined name 'missing'");
  EXPECT_EQ(body_error("\n@%p1 bra nowhere;"), "k.ptx:11: undefined label 'nowhere'");
  EXPECT_EQ(body_error("{ L: ret; }\nbra L;"), "k.ptx:11: undefined label 'L'");
  EXPECT_EQ(body_error("call nothing;"), "k.ptx:10: undefined function 'nothing'");
  EXPECT_EQ(module_error(".global .u64 a = b;"), "k.ptx:4: undefined variable or function 'b'");
  EXPECT_EQ(body_error("{ .reg .b32 t; }\nmov.b32 t, 1;"),
            "k.ptx:11: undefined variable or function 't'");
}

TEST(PtxError, WrongKindsOfNames) {
  EXPECT_EQ(body_error("@%r1 ret;"), "k.ptx:10: the guard '%r1' is not a predicate register");
  EXPECT_EQ(body_error(".reg .b32 x; bra x;"), "k.ptx:10: 'x' is not a label");
  EXPECT_EQ(body_error("mov.b32 %r1, !%r2;"),
            "k.ptx:10: '!' before '%r2', which is not a predicate");
  EXPECT_EQ(body_error("L: mov.b32 %r1, L;"),
            "k.ptx:10: 'L' is a label, not an operand of mov.b32");
  EXPECT_EQ(body_error("mov.b32 %r1.x, 0;"),
            "k.ptx:10: '%r1' is not a vector register, but .x of it is used");
  EXPECT_EQ(body_error(".reg .v2 .b32 v; mov.b32 v.z, 0;"),
            "k.ptx:10: expected one of the components .x .y after 'v', found '.z'");
  EXPECT_EQ(body_error("mov.u32 %r1, %tid;"),
            "k.ptx:10: expected one of the components .x .y .z .w after '%tid', found ';'");
  EXPECT_EQ(body_error("ld.u32 %r1, [1.5];"),
            "k.ptx:10: expected a register, a variable or a number as the address of ld.u32, found "
            "'1.5'");
  EXPECT_EQ(body_error("call data;"), "k.ptx:10: 'data' is not a function");
  EXPECT_EQ(body_error("call k_param_0;"), "k.ptx:10: 'k_param_0' is not a function");
}

TEST(PtxError, Duplicates) {
  EXPECT_EQ(module_error(".global .u32 a;\n.global .u32 a;"),
            "k.ptx:5: 'a' is declared a second time; first on line 4");
  EXPECT_EQ(body_error(".reg .b32 %r5;"),
            "k.ptx:10: '%r5' is declared a second time; first on line 9");
  EXPECT_EQ(body_error(".reg .b32 x5;\n.reg .b32 x<9>;"),
            "k.ptx:11: 'x5' is declared a second time");
  EXPECT_EQ(body_error("L: ret;\nL: ret;"),
            "k.ptx:11: 'L' is declared a second time; first on line 10");
  EXPECT_EQ(module_error(".func f() { ret; }\n.func f() { ret; }"),
            "k.ptx:5: 'f' is declared a second time; first on line 4");
  EXPECT_EQ(module_error(".func f(.param .u32 a);\n.func f(.param .u64 a) { ret; }"),
            "k.ptx:5: 'f' has another signature than its declaration on line 4");
}

TEST(PtxError, Numbers) {
  EXPECT_EQ(body_error("mov.u64 %rd1, 18446744073709551616;"),
            "k.ptx:10: the number '18446744073709551616' does not fit in 64 bits");
  EXPECT_EQ(body_error("mov.u32 %r1, 089;"), "k.ptx:10: '089' is not a number");
  EXPECT_EQ(body_error("mov.f32 %f1, 0f3F80;"),
            "k.ptx:10: '0f3F80' is not a number: 0f needs 8 hexadecimal digits after it");
  EXPECT_EQ(body_error("mov.f64 %fd1, 1e999;"),
            "k.ptx:10: the number '1e999' is beyond the range of .f64");
  EXPECT_EQ(body_error("mov.u32 %r1, 1/0;"), "k.ptx:10: a constant expression divides by zero");
  EXPECT_EQ(body_error("mov.u32 %r1, 1.5 << 2;"), "k.ptx:10: the operator '<<' needs integers");
  EXPECT_EQ(body_error("mov.u32 %r1, -%r2;"), "k.ptx:10: expected a constant, found '%r2'");
}

TEST(PtxError, Variables) {
  EXPECT_EQ(module_error(".global .align 3 .u32 a;"),
            "k.ptx:4: the alignment 3 is not a power of two");
  EXPECT_EQ(module_error(".global .u32 a[2] = {1, 2, 3};"),
            "k.ptx:4: too many initial values for 'a'");
  EXPECT_EQ(module_error(".global .u32 a = 1.5;"),
            "k.ptx:4: the initial value of 'a' does not match its type .u32");
  EXPECT_EQ(module_error(".shared .u32 a = 1;"),
            "k.ptx:4: 'a' cannot have an initial value: only .global and .const variables can");
  EXPECT_EQ(module_error(".global .pred a;"),
            "k.ptx:4: 'a' is a variable of type .pred; only registers can be");
  EXPECT_EQ(module_error(".global .u32 a[];"),
            "k.ptx:4: 'a' has no size; only .extern arrays need none");
  EXPECT_EQ(module_error(".global .u32 a; .global .b8 b[2] = {0xF0F(a)};"),
            "k.ptx:4: the mask of an address must keep one byte, such as 0xFF00");
  EXPECT_EQ(module_error(".global a;"), "k.ptx:4: expected a type, found 'a'");
}

TEST(PtxError, LimitsOnSizes) {
  EXPECT_EQ(body_error(".reg .b32 x<4000000000>;"),
            "k.ptx:10: the number of registers must lie between 0 and 16777216, not '4000000000'");
  EXPECT_EQ(module_error(".global .u64 a[1 << 20][1 << 20];"), "k.ptx:4: 'a' is larger than 1 TiB");
  EXPECT_EQ(module_error(".global .b8 a[2][1 << 30] = {{1}, {1}};"),
            "k.ptx:4: the initial values of the variables exceed 256 MiB");
  EXPECT_EQ(module_error(".global .u64 b; .global .u64 a[2][1 << 30] = {{b}, {b}};"),
            "k.ptx:4: the initial values of the variables exceed 256 MiB");
  EXPECT_EQ(module_error(".extern .shared .u64 a[][1 << 20][1 << 20];"),
            "k.ptx:4: 'a' is larger than 1 TiB");
  EXPECT_EQ(module_error(".file 4000000000 \"a\""),
            "k.ptx:4: the file number must lie between 0 and 65536, not '4000000000'");
  EXPECT_EQ(body_error("mov.u32 %r1, " + std::string(100'000, '(') + "1;"),
            "k.ptx:10: a constant expression is nested more than 100 deep");
  EXPECT_EQ(body_error("mov.u32 %r1, " + std::string(100'000, '-') + "1;"),
            "k.ptx:10: a constant expression is nested more than 100 deep");
  EXPECT_EQ(body_error("mov.u32 %r1, " + std::string(100'000, '{') + "1;"),
            "k.ptx:10: the operands of mov.u32 are nested too deeply");
  EXPECT_EQ(body_error(std::string(100'000, '{')),
            "k.ptx:10: scopes are nested more than 200 deep");
  EXPECT_EQ(module_error(".global .b8 a[1] = " + std::string(100'000, '{')),
            "k.ptx:4: expected a constant, found '{'");
}

}  // namespace
}  // namespace warpstack::ptx
