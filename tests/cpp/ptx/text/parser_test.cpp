#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "ptx/text/module.h"
#include "ptx/text/ptx_texts.h"

namespace warpstack::ptx {
namespace {

using testing::error_in;
using testing::header;
using testing::kernel_text;
using Kind = Operand::Kind;

/// Parses text after a three-line header.
Module module_of(const std::string& text) { return parse(header + text, "k.ptx"); }

Function body_of(const std::string& body) {
  return *parse(kernel_text(body), "k.ptx").function("k");
}

/// The only instruction of a body; its registers' names stand in `names`.
struct Parsed {
  Function function;
  const Instruction& instruction = function.body.at(0);
  const Operand& operand(std::size_t i) const { return instruction.operands.at(i); }
  std::string reg(const Operand& operand) const {
    EXPECT_EQ(operand.kind, Kind::reg);
    return function.registers.at(operand.index).name;
  }
  std::string reg(std::size_t i) const { return reg(operand(i)); }
};

Parsed instruction(const std::string& text) { return {body_of(text)}; }

std::int64_t constant(const std::string& expression) {
  const Parsed parsed = instruction("mov.b64 %rd1, " + expression + ";");
  EXPECT_EQ(parsed.operand(1).kind, Kind::integer) << expression;
  return parsed.operand(1).integer;
}

double floating(const std::string& expression) {
  const Parsed parsed = instruction("mov.f64 %fd1, " + expression + ";");
  EXPECT_EQ(parsed.operand(1).kind, Kind::floating) << expression;
  EXPECT_EQ(parsed.operand(1).literal, Type::f64) << expression;
  return std::bit_cast<double>(parsed.operand(1).integer);
}

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(WARPSTACK_PTX_CORPUS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Where the outermost call that inlined an instruction stands, or the instruction itself.
SourcePosition outermost(const Module& module, const Instruction& instruction) {
  SourcePosition place = instruction.source;
  while (place.inlined_at != 0) {
    const trace::InlinedCall& call = module.sources.calls.at(place.inlined_at - 1);
    place = {call.file, call.line, call.caller};
  }
  return place;
}

// --- types --------------------------------------------------------------------------------------

TEST(PtxTypes, NamesGoBothWays) {
  for (int i = 1; i <= static_cast<int>(Type::f64); ++i) {
    const Type type = static_cast<Type>(i);
    EXPECT_EQ(type_named(name_of(type)), type) << name_of(type);
  }
  EXPECT_EQ(type_named("bf16x2"), Type::bf16x2);
  EXPECT_EQ(type_named("e4m3"), Type::none);
  EXPECT_EQ(type_named(""), Type::none);
  EXPECT_EQ(name_of(Space::constant), "const");
  EXPECT_EQ(name_of(Space::param), "param");
}

// --- the file -----------------------------------------------------------------------------------

TEST(PtxFile, VersionTargetAndAddressSize) {
  const Module module = parse(".version 7.0 .target sm_90a, debug .address_size 64", "a.ptx");
  EXPECT_EQ(module.version, 70u);
  EXPECT_EQ(module.target, "sm_90a");
  EXPECT_EQ(module.address_size, 64u);
  EXPECT_EQ(module.file, "a.ptx");
}

TEST(PtxFile, CommentsPragmasSectionsAndOldDebugLines) {
  const Module module = module_of(R"(// a } comment
/* another { over
   two lines */ .pragma "one", "two";
# 12 "generated.cu"
@@DWARF .byte 1, 2 {{{
.section .debug_str
{
$L__info_string0:
.b8 95,90 { .b64 $L__tmp0+4 }
}
.global .u32 last;
)");
  ASSERT_NE(module.variable("last"), nullptr);
  EXPECT_EQ(module.variable("last")->line, 14u);
}

TEST(PtxFile, FilesAreNumbered) {
  const Module module = module_of(".file 1 \"a.cu\"\n.file 3 \"d\\\\e.h\", 100, 200\n");
  EXPECT_EQ(module.sources.files,
            (std::vector<trace::SourceFile>{{"a.cu"}, {}, {"d\\e.h", 100, 200}}));
}

// --- variables ----------------------------------------------------------------------------------

TEST(PtxVariable, SpacesTypesAndSizes) {
  const Module module = module_of(R"(
.global .u32 a;
.const .align 16 .b8 b[5];
.shared .f64 c[3][4];
.extern .shared .align 16 .b8 d[];
.global .v4 .f32 e;
.visible .global .attribute(.managed) .align 2 .u64 f, g[2];
.global .b32 h[0x10], i[2*3+1];
)");
  EXPECT_EQ(module.variable("a")->size, 4u);
  EXPECT_FALSE(module.variable("a")->is_array);
  EXPECT_EQ(module.variable("b")->space, Space::constant);
  EXPECT_EQ(module.variable("b")->alignment, 16u);
  EXPECT_EQ(module.variable("c")->size, 96u);
  EXPECT_EQ(module.variable("c")->alignment, 8u);
  EXPECT_TRUE(module.variable("c")->is_array);
  EXPECT_EQ(module.variable("d")->size, 0u);
  EXPECT_TRUE(module.variable("d")->is_extern());
  EXPECT_EQ(module.variable("e")->size, 16u);
  EXPECT_EQ(module.variable("e")->alignment, 16u);
  EXPECT_EQ(module.variable("f")->alignment, 8u) << "not below the element's own";
  EXPECT_EQ(module.variable("g")->size, 16u);
  EXPECT_EQ(module.variable("h")->size, 64u);
  EXPECT_EQ(module.variable("i")->size, 28u);
  EXPECT_EQ(module.variable("j"), nullptr);
}

TEST(PtxVariable, InitialIntegersAndBytes) {
  const Module module = module_of(R"(
.global .u32 a = 5;
.const .b8 b[6] = {1, 0x2, 03, 0b100, -1, 255U};
.global .s16 c[3] = {-2, 1 << 8};
.global .b64 d = 0x0123456789abcdef;
)");
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(module.variable("a")->initial, (Bytes{5, 0, 0, 0}));
  EXPECT_EQ(module.variable("b")->initial, (Bytes{1, 2, 3, 4, 255, 255}));
  EXPECT_EQ(module.variable("c")->initial, (Bytes{0xfe, 0xff, 0, 1})) << "the third is zero";
  EXPECT_EQ(module.variable("c")->size, 6u);
  EXPECT_EQ(module.variable("d")->initial, (Bytes{0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 1}));
}

TEST(PtxVariable, InitialFloats) {
  const Module module = module_of(R"(
.global .f32 a[5] = {0f3F800000, 2.5, -0f40000000, 3, 1e-3};
.global .f64 b[3] = {0d3FF0000000000000, -.5, 0f3F800000};
.global .b32 c = 0f7FC00001;
)");
  float a[5];
  ASSERT_EQ(module.variable("a")->initial.size(), sizeof a);
  std::memcpy(a, module.variable("a")->initial.data(), sizeof a);
  EXPECT_EQ(a[0], 1.0f);
  EXPECT_EQ(a[1], 2.5f);
  EXPECT_EQ(a[2], -2.0f);
  EXPECT_EQ(a[3], 3.0f);
  EXPECT_EQ(a[4], 1e-3f);
  double b[3];
  std::memcpy(b, module.variable("b")->initial.data(), sizeof b);
  EXPECT_EQ(b[0], 1.0);
  EXPECT_EQ(b[1], -0.5);
  EXPECT_EQ(b[2], 1.0);
  EXPECT_EQ(module.variable("c")->initial, (std::vector<std::uint8_t>{1, 0, 0xc0, 0x7f}));
}

TEST(PtxVariable, NestedInitialValues) {
  const Module module = module_of(R"(
.global .b8 a[2][3] = {{1, 2}, {4, 5, 6}};
.global .b8 b[][2] = {{1}, {3, 4}, {5}};
.global .b8 c[2][2] = {1, 2, 3, 4};
.global .v2 .b8 d[2] = {{1, 2}, {3, 4}};
)");
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(module.variable("a")->initial, (Bytes{1, 2, 0, 4, 5, 6}));
  EXPECT_EQ(module.variable("b")->size, 6u);
  EXPECT_EQ(module.variable("b")->initial, (Bytes{1, 0, 3, 4, 5}));
  EXPECT_EQ(module.variable("c")->initial, (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(module.variable("d")->initial, (Bytes{1, 2, 3, 4}));
}

TEST(PtxVariable, InitialAddresses) {
  const Module module = module_of(R"(
.global .u32 x;
.func f() { ret; }
.global .u64 a[5] = {x, generic(x), generic(x)+12, generic(x-4), f};
.global .b8 b[3] = {7, 0xFF(x), 0xFF00(generic(x)+8)};
)");
  const std::vector<AddressInitializer>& a = module.variable("a")->addresses;
  ASSERT_EQ(a.size(), 5u);
  EXPECT_EQ(a[0].symbol, "x");
  EXPECT_EQ(a[0].offset, 0u);
  EXPECT_EQ(a[0].bytes, 8u);
  EXPECT_FALSE(a[0].generic);
  EXPECT_TRUE(a[1].generic);
  EXPECT_EQ(a[1].offset, 8u);
  EXPECT_EQ(a[2].addend, 12);
  EXPECT_EQ(a[3].addend, -4);
  EXPECT_EQ(a[4].symbol, "f");
  EXPECT_EQ(a[4].offset, 32u);
  const std::vector<AddressInitializer>& b = module.variable("b")->addresses;
  ASSERT_EQ(b.size(), 2u);
  EXPECT_EQ(b[0].offset, 1u);
  EXPECT_EQ(b[0].bytes, 1u);
  EXPECT_EQ(b[0].byte_shift, 0u);
  EXPECT_EQ(b[1].byte_shift, 8u);
  EXPECT_EQ(b[1].addend, 8);
  EXPECT_TRUE(b[1].generic);
}

TEST(PtxVariable, TexturesSamplersSurfaces) {
  const Module module = module_of(R"(
.global .texref t;
.global .samplerref s = {addr_mode_0 = clamp_to_border, filter_mode = linear};
.global .surfref u[2];
.tex .u32 v;
)");
  EXPECT_EQ(module.variable("t")->opaque, "texref");
  EXPECT_EQ(module.variable("t")->size, 8u);
  EXPECT_EQ(module.variable("s")->opaque, "samplerref");
  EXPECT_EQ(module.variable("u")->opaque, "surfref");
  EXPECT_EQ(module.variable("v")->opaque, "texref");
}

TEST(PtxVariable, DefinitionFollowsExternalDeclaration) {
  const Module module = module_of(".extern .global .u32 a;\n.global .u32 a = 3;\n");
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_FALSE(module.variables[0].is_extern());
  EXPECT_EQ(module.variables[0].initial.at(0), 3);
}

// --- functions ----------------------------------------------------------------------------------

TEST(PtxFunction, KernelParameters) {
  const Module module = module_of(R"(
.visible .entry k(
  .param .u64 .ptr .global .align 32 a,
  .param .align 8 .b8 b[24],
  .param .f32 c
)
{ ret; }
.entry plain { ret; }
)");
  EXPECT_EQ(module.kernels(), (std::vector<std::string>{"k", "plain"}));
  const Function& k = *module.function("k");
  EXPECT_TRUE(k.is_entry);
  ASSERT_EQ(k.parameters.size(), 3u);
  EXPECT_EQ(k.parameters[0].space, Space::param);
  EXPECT_EQ(k.parameters[0].type, Type::u64);
  EXPECT_EQ(k.parameters[0].alignment, 8u) << "32 is of what it points to";
  EXPECT_EQ(k.parameters[1].size, 24u);
  EXPECT_EQ(k.parameters[1].alignment, 8u);
  EXPECT_TRUE(k.parameters[1].is_array);
  EXPECT_EQ(k.parameters[2].name, "c");
}

TEST(PtxFunction, PerformanceDirectives) {
  const Module module = module_of(R"(
.entry k() .maxntid 16, 8 .minnctapersm 2 .maxnreg 32 .pragma "abi"; { ret; }
.entry c() .reqntid 64, 1, 2 .explicitcluster .reqnctapercluster 2, 1, 1 .maxclusterrank 8 { ret; }
.func .attribute(.unified(1, 2)) f() .noreturn ;
)");
  using Dimensions = std::array<std::uint32_t, 3>;
  EXPECT_EQ(module.function("k")->max_threads, (Dimensions{16, 8, 1}));
  EXPECT_EQ(module.function("k")->required_threads, (Dimensions{0, 0, 0}));
  EXPECT_EQ(module.function("c")->required_threads, (Dimensions{64, 1, 2}));
  EXPECT_TRUE(module.function("f")->is_declaration);
}

TEST(PtxFunction, DeclarationThenDefinition) {
  const Module module = module_of(R"(
.func (.param .b32 out) f (.param .b32 in);
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)
;
.visible .func (.param .b32 result) f (.param .b32 argument) { ret; }
)");
  ASSERT_EQ(module.functions.size(), 2u);
  const Function& f = *module.function("f");
  EXPECT_FALSE(f.is_declaration);
  EXPECT_FALSE(f.is_entry);
  EXPECT_EQ(f.body.size(), 1u);
  EXPECT_EQ(f.returns.at(0).name, "result");
  EXPECT_EQ(f.parameters.at(0).name, "argument");
  EXPECT_TRUE(module.function("vprintf")->is_declaration);
  EXPECT_TRUE(module.kernels().empty());
}

TEST(PtxFunction, ParametersInRegisters) {
  const Module module = module_of(".func (.reg .u32 r) f (.reg .u32 a) { mov.u32 r, a; ret; }");
  const Function& f = *module.function("f");
  EXPECT_EQ(f.returns.at(0).space, Space::none);
  ASSERT_EQ(f.registers.size(), 2u);
  EXPECT_EQ(f.registers[0].name, "r");
}

TEST(PtxFunction, AliasStandsForItsFunction) {
  const Module module = module_of(R"(
.func f(.param .u32 a) { ret; }
.func g(.param .u32 a);
.alias g, f;
.entry k() { .param .u32 x; call g, (x); ret; }
)");
  EXPECT_EQ(module.function("g"), nullptr);
  EXPECT_EQ(module.function("k")->body[0].operands[0].name, "f");
}

TEST(PtxFunction, LocationsAndInlining) {
  const Module module = parse(kernel_text(R"(
.loc 1 5 3
add.u32 %r1, %r1, %r2;
.loc 2 7 1, function_name $L__info_string0, inlined_at 1 5 3
add.u32 %r1, %r1, %r2;
.loc 3 9 1, function_name $L__info_string0+4, inlined_at 2 7 1
add.u32 %r1, %r1, %r2;
.loc 1 6 1
ret;)") + R"(
.file 1 "a.cu"
.file 2 "b.cuh"
.file 3 "c.cuh"
.section .debug_str
{
$L__info_string0:
.b8 102,111,111,0,98
.b8 97,114,0
}
)",
                              "k.ptx");
  const std::vector<Instruction>& body = module.functions[0].body;
  ASSERT_EQ(body.size(), 4u);
  EXPECT_EQ(body[0].line, 12u);
  EXPECT_EQ(body[0].source.file, 1u);
  EXPECT_EQ(body[0].source.line, 5u);
  EXPECT_EQ(body[0].source.inlined_at, 0u);
  EXPECT_EQ(body[1].source.file, 2u);
  EXPECT_EQ(body[1].source.line, 7u);
  EXPECT_EQ(body[2].source.line, 9u);
  EXPECT_EQ(body[3].source.line, 6u);
  EXPECT_EQ(body[3].source.inlined_at, 0u);
  const std::vector<trace::InlinedCall>& calls = module.sources.calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls.at(body[1].source.inlined_at - 1), (trace::InlinedCall{"foo", 1, 5, 0}));
  EXPECT_EQ(calls.at(body[2].source.inlined_at - 1),
            (trace::InlinedCall{"bar", 2, 7, body[1].source.inlined_at}))
      << "through line 7 of file 2";
}

TEST(PtxFunction, EndlessInliningEnds) {
  const Function function = body_of(R"(.loc 1 5 3, function_name a, inlined_at 1 6 3
.loc 1 6 3, function_name a, inlined_at 1 5 3
ret;)");
  EXPECT_EQ(function.body[0].source.line, 6u);
}

// --- registers, scopes, labels ------------------------------------------------------------------

TEST(PtxScope, OnlyNamedRegistersExist) {
  const Function function = body_of("add.u32 %r1, %r15, %r1;\n@%p3 ret;");
  ASSERT_EQ(function.registers.size(), 3u);
  EXPECT_EQ(function.registers[0].name, "%r1");
  EXPECT_EQ(function.registers[0].type, Type::b32);
  EXPECT_EQ(function.registers[1].name, "%r15");
  EXPECT_EQ(function.registers[2].type, Type::pred);
}

TEST(PtxScope, RegisterNamesThatEndInDigits) {
  const Function function = body_of(".reg .b64 x1<3>, x<10>, y;\nmov.b64 x12, x1;\nmov.b64 y, x9;");
  ASSERT_EQ(function.registers.size(), 4u);
  EXPECT_EQ(function.registers[0].name, "x12") << "number 2 of x1, not number 12 of x";
}

TEST(PtxScope, VectorRegisters) {
  const Parsed parsed = instruction(".reg .v4 .f32 v<2>;\nmov.f32 v1.z, %f1;");
  EXPECT_EQ(parsed.reg(0), "v1");
  EXPECT_EQ(parsed.operand(0).component, 2);
  EXPECT_EQ(parsed.function.registers[0].vector, 4u);
  EXPECT_EQ(instruction(".reg .v4 .f32 v;\nmov.f32 v.a, %f1;").operand(0).component, 3);
}

TEST(PtxScope, InnerDeclarationsShadow) {
  const Function function = body_of(R"(.reg .b32 t;
mov.b32 t, 1;
{
.reg .f32 t;
mov.f32 t, 0f00000000;
}
mov.b32 t, 2;)");
  ASSERT_EQ(function.registers.size(), 2u);
  EXPECT_EQ(function.body[0].operands[0].index, function.body[2].operands[0].index);
  EXPECT_EQ(function.registers[function.body[1].operands[0].index].type, Type::f32);
}

TEST(PtxScope, RepeatedNamesOfVariablesBecomeUnique) {
  const Function function = body_of(R"({
.param .b32 param0;
st.param.b32 [param0+0], %r1;
}
{
.param .b64 param0;
st.param.b64 [param0+0], %rd1;
}
{
.local .align 4 .b8 data[16];
mov.u64 %rd1, data;
}
mov.u64 %rd1, data;)");
  ASSERT_EQ(function.variables.size(), 3u);
  EXPECT_EQ(function.variables[0].name, "param0");
  EXPECT_EQ(function.variables[1].name, "param0$2");
  EXPECT_EQ(function.variables[1].type, Type::b64);
  EXPECT_EQ(function.variables[2].name, "data$2") << "module scope has a data as well";
  EXPECT_EQ(function.body[0].operands[0].elements[0].name, "param0");
  EXPECT_EQ(function.body[1].operands[0].elements[0].name, "param0$2");
  EXPECT_EQ(function.body[2].operands[1].name, "data$2");
  EXPECT_EQ(function.body[3].operands[1].name, "data");
}

TEST(PtxScope, LabelsForwardBackwardAndAtTheEnd) {
  const Function function = body_of(R"($L1:
bra $L2;
@!%p1 bra.uni $L1;
$L2: ret;
bra end;
end:)");
  ASSERT_EQ(function.body.size(), 4u);
  EXPECT_EQ(function.body[0].operands[0].kind, Kind::label);
  EXPECT_EQ(function.body[0].operands[0].index, 2u);
  EXPECT_EQ(function.body[1].operands[0].index, 0u);
  EXPECT_TRUE(function.body[1].guard_negated);
  EXPECT_EQ(function.body[3].operands[0].index, 4u);
}

TEST(PtxScope, LabelsAreScoped) {
  const Function function = body_of(R"(bra L;
{
bra L;
bra M;
L: ret;
}
L: exit;
M: ret;)");
  EXPECT_EQ(function.body[0].operands[0].index, 4u);
  EXPECT_EQ(function.body[1].operands[0].index, 3u) << "its own, though declared later";
  EXPECT_EQ(function.body[2].operands[0].index, 5u);
}

TEST(PtxScope, BranchTargets) {
  const Function function = body_of(R"(table: .branchtargets A, B, A;
brx.idx.uni %r1, table;
A: ret;
B: exit;)");
  ASSERT_EQ(function.target_lists.size(), 1u);
  EXPECT_EQ(function.target_lists[0].labels, (std::vector<std::uint32_t>{1, 2, 1}));
  EXPECT_EQ(function.body[0].operands[1].kind, Kind::targets);
  EXPECT_EQ(function.body[0].operands[1].index, 0u);
}

// --- operands -----------------------------------------------------------------------------------

TEST(PtxOperand, OpcodeWordsAndGuard) {
  const Parsed parsed =
      instruction("@!%p2 ld.global.L1::no_allocate.L2::128B.v4.f32 {%f0, %f1, _, %f3}, [%rd1];");
  EXPECT_EQ(parsed.instruction.opcode, "ld");
  EXPECT_EQ(parsed.instruction.full_opcode(), "ld.global.L1::no_allocate.L2::128B.v4.f32");
  EXPECT_TRUE(parsed.instruction.has("L2::128B"));
  EXPECT_FALSE(parsed.instruction.has("ld"));
  ASSERT_TRUE(parsed.instruction.guard.has_value());
  EXPECT_EQ(parsed.function.registers[*parsed.instruction.guard].name, "%p2");
  EXPECT_TRUE(parsed.instruction.guard_negated);
  ASSERT_EQ(parsed.operand(0).kind, Kind::vector);
  ASSERT_EQ(parsed.operand(0).elements.size(), 4u);
  EXPECT_EQ(parsed.operand(0).elements[2].kind, Kind::sink);
}

TEST(PtxOperand, PairsAndNegatedPredicates) {
  const Parsed parsed = instruction("setp.lt.and.s32 %p1|%p2, %r1, -5, !%p3;");
  ASSERT_EQ(parsed.instruction.operands.size(), 5u);
  EXPECT_EQ(parsed.reg(0), "%p1");
  EXPECT_TRUE(parsed.operand(0).paired);
  EXPECT_EQ(parsed.reg(1), "%p2");
  EXPECT_FALSE(parsed.operand(1).paired);
  EXPECT_EQ(parsed.operand(3).integer, -5);
  EXPECT_TRUE(parsed.operand(4).negated);
  EXPECT_EQ(instruction("setp.eq.u32 _|%p1, %r1, %r2;").operand(0).kind, Kind::sink);
  EXPECT_TRUE(instruction("shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;").operand(0).paired);
}

TEST(PtxOperand, PredicateConstants) {
  const Parsed parsed = instruction("or.pred %p1, PT, !PT;");
  EXPECT_EQ(parsed.operand(1).kind, Kind::predicate_constant);
  EXPECT_EQ(parsed.operand(1).integer, 1);
  EXPECT_EQ(parsed.operand(2).integer, 0);
}

TEST(PtxOperand, Addresses) {
  struct Case {
    std::string text;
    Kind base;
    std::int64_t offset;
  };
  for (const Case& c : {Case{"[%rd1]", Kind::reg, 0}, Case{"[%rd1+16]", Kind::reg, 16},
                        Case{"[%rd1-16]", Kind::reg, -16}, Case{"[%rd1+-16]", Kind::reg, -16},
                        Case{"[%rd1+4*8-2]", Kind::reg, 30}, Case{"[data]", Kind::variable, 0},
                        Case{"[data+8]", Kind::variable, 8}, Case{"[data-8]", Kind::variable, -8},
                        Case{"[0x20]", Kind::integer, 0}}) {
    const Parsed parsed = instruction("ld.u32 %r1, " + c.text + ";");
    const Operand& address = parsed.operand(1);
    ASSERT_EQ(address.kind, Kind::address) << c.text;
    EXPECT_EQ(address.integer, c.offset) << c.text;
    ASSERT_EQ(address.elements.size(), 1u) << c.text;
    EXPECT_EQ(address.elements[0].kind, c.base) << c.text;
    EXPECT_EQ(address.elements[0].integer, c.base == Kind::integer ? 32 : 0) << c.text;
  }
}

TEST(PtxOperand, AddressThenCachePolicy) {
  const Parsed parsed = instruction("ld.global.L2::cache_hint.b32 %r1, [%rd1+4], %rd2;");
  EXPECT_EQ(parsed.operand(1).kind, Kind::address);
  EXPECT_EQ(parsed.reg(2), "%rd2");
}

TEST(PtxOperand, VariablesAndFunctions) {
  const Parsed parsed = instruction("mov.u64 %rd1, data+12;");
  EXPECT_EQ(parsed.operand(1).kind, Kind::variable);
  EXPECT_EQ(parsed.operand(1).name, "data");
  EXPECT_EQ(parsed.operand(1).integer, 12);
  const Parsed parameter = instruction("ld.param.u64 %rd1, [k_param_0];");
  EXPECT_EQ(parameter.operand(1).elements[0].name, "k_param_0");
  const Module module =
      module_of(".entry k() { .reg .u64 a; mov.u64 a, later; ret; }\n.func later() { ret; }");
  EXPECT_EQ(module.functions[0].body[0].operands[1].name, "later");
}

TEST(PtxOperand, Textures) {
  const Parsed unified = instruction("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd1, {%f4, %f5}];");
  ASSERT_EQ(unified.operand(1).kind, Kind::texture);
  ASSERT_EQ(unified.operand(1).elements.size(), 2u);
  EXPECT_EQ(unified.operand(1).elements[1].elements.size(), 2u);
  const Parsed separate =
      instruction("tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd1, %rd2, {%r1}];");
  EXPECT_EQ(separate.operand(1).elements.size(), 3u);
  const Parsed gradient = instruction(
      "tex.grad.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}|%p1, [%rd1, {%f4,%f5}], {%f0,%f1}, {%f2,%f3};");
  EXPECT_TRUE(gradient.operand(0).paired);
  EXPECT_EQ(gradient.instruction.operands.size(), 5u);
}

TEST(PtxOperand, SpecialRegisters) {
  const auto special = [](const std::string& text) {
    return instruction("mov.u32 %r1, " + text + ";").operand(1);
  };
  EXPECT_EQ(special("%tid.x").kind, Kind::special);
  EXPECT_EQ(special("%tid.x").special, Special::tid);
  EXPECT_EQ(special("%nctaid.z").component, 2);
  EXPECT_EQ(special("%cluster_ctaid.y").special, Special::cluster_ctaid);
  EXPECT_EQ(special("%lanemask_lt").special, Special::lanemask_lt);
  EXPECT_EQ(special("%clock64").special, Special::clock64);
  EXPECT_EQ(special("%envreg31").special, Special::envreg);
  EXPECT_EQ(special("%envreg31").component, 31);
  EXPECT_EQ(special("%pm7").component, 7);
}

TEST(PtxOperand, Calls) {
  const Module module = module_of(R"(
.func (.param .b32 r) f (.param .b32 a, .param .b32 b) { ret; }
.func g () { ret; }
.entry k() {
.reg .b64 %rd<2>; .reg .b32 %r<3>;
{
.param .b32 p0; .param .b32 p1; .param .b32 out;
call.uni (out), f, (p0, p1);
call g;
prototype_1 : .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]) .noreturn;
call (out), %rd1, (p0, 5), prototype_1;
list: .calltargets g, f;
call %rd1, (), list;
}
ret;
})");
  const Function& k = *module.function("k");
  const std::vector<Operand>& direct = k.body[0].operands;
  ASSERT_EQ(direct.size(), 3u);
  EXPECT_EQ(direct[0].kind, Kind::arguments);
  EXPECT_EQ(direct[0].elements[0].name, "out");
  EXPECT_EQ(direct[1].kind, Kind::variable);
  EXPECT_EQ(direct[1].name, "f");
  EXPECT_EQ(direct[2].kind, Kind::arguments);
  EXPECT_EQ(direct[2].elements.size(), 2u);
  EXPECT_EQ(k.body[1].operands.size(), 1u);
  const std::vector<Operand>& indirect = k.body[2].operands;
  ASSERT_EQ(indirect.size(), 4u);
  EXPECT_EQ(indirect[1].kind, Kind::reg);
  EXPECT_EQ(indirect[3].kind, Kind::prototype);
  EXPECT_EQ(indirect[3].index, 0u);
  ASSERT_EQ(k.prototypes.size(), 1u);
  EXPECT_EQ(k.prototypes[0].name, "prototype_1");
  EXPECT_EQ(k.prototypes[0].parameters.at(1).size, 16u);
  const std::vector<Operand>& listed = k.body[3].operands;
  EXPECT_TRUE(listed[1].elements.empty());
  EXPECT_EQ(listed[2].kind, Kind::targets);
  EXPECT_EQ(k.target_lists.at(0).functions, (std::vector<std::string>{"g", "f"}));
}

// --- constants ----------------------------------------------------------------------------------

TEST(PtxConstant, Integers) {
  EXPECT_EQ(constant("42"), 42);
  EXPECT_EQ(constant("-42"), -42);
  EXPECT_EQ(constant("0xFFFFFFFFFFFFFFFF"), -1);
  EXPECT_EQ(constant("017"), 15);
  EXPECT_EQ(constant("0b101U"), 5);
  EXPECT_EQ(constant("0U"), 0);
  EXPECT_EQ(constant("WARP_SZ*2"), 64);
  EXPECT_EQ(constant("18446744073709551615U"), -1);
}

TEST(PtxConstant, PrecedenceOfC) {
  EXPECT_EQ(constant("1+2*3"), 7);
  EXPECT_EQ(constant("(1+2)*3"), 9);
  EXPECT_EQ(constant("10-4-3"), 3);
  EXPECT_EQ(constant("1<<2+1"), 8);
  EXPECT_EQ(constant("1|2^3&2"), 1 | (2 ^ (3 & 2)));
  EXPECT_EQ(constant("1 < 2 == 1"), 1);
  EXPECT_EQ(constant("0 && 1 || 1"), 1);
  EXPECT_EQ(constant("~0 & 0xF0"), 0xF0);
  EXPECT_EQ(constant("(!3) + 5"), 5);
  EXPECT_EQ(constant("!0"), 1);
  EXPECT_EQ(constant("1 ? 2 : 0 ? 3 : 4"), 2);
  EXPECT_EQ(constant("0 ? 2 : 0 ? 3 : 4"), 4);
  EXPECT_EQ(constant("7 % 4"), 3);
}

TEST(PtxConstant, SignedAndUnsigned) {
  EXPECT_EQ(constant("-7/2"), -3);
  EXPECT_EQ(constant("-7 % 2"), -1);
  EXPECT_EQ(constant("-1 < 0"), 1);
  EXPECT_EQ(constant("-1 < 0U"), 0);
  EXPECT_EQ(constant("-8 >> 1"), -4);
  EXPECT_EQ(constant("(.u64)-8 >> 60"), 15);
  EXPECT_EQ(constant("(.s64)0xFFFFFFFFFFFFFFF8 >> 1"), -4);
  EXPECT_EQ(constant("(-9223372036854775807 - 1) / -1"), std::int64_t{1} << 63);
  EXPECT_EQ(constant("(-9223372036854775807 - 1) % -1"), 0);
  EXPECT_EQ(constant("1 << 64"), 0);
  EXPECT_EQ(constant("-1 >> 64"), -1);
}

TEST(PtxConstant, Floats) {
  EXPECT_EQ(floating("1.5"), 1.5);
  EXPECT_EQ(floating("1."), 1.0);
  EXPECT_EQ(floating("-.25"), -0.25);
  EXPECT_EQ(floating("1e5"), 1e5);
  EXPECT_EQ(floating("2.5E-3"), 2.5e-3);
  EXPECT_EQ(floating("0dBFF0000000000000"), -1.0);
  EXPECT_EQ(floating("1.5 + 2 * 2.0"), 5.5);
  const Parsed single = instruction("mov.f32 %f1, -0f3F800000;");
  EXPECT_EQ(single.operand(1).literal, Type::f32);
  EXPECT_EQ(single.operand(1).integer, 0xBF800000);
}

// --- what compilers write -----------------------------------------------------------------------

TEST(PtxCorpus, OutputOfNvccWithCallsOfAllKinds) {
  const Module module = parse(read_file("calls-sm_75.ptx"), "calls-sm_75.ptx");
  EXPECT_EQ(module.version, 90u);
  EXPECT_EQ(module.target, "sm_75");
  EXPECT_EQ(module.kernels(), (std::vector<std::string>{"_Z5callsPf4PairiPPFffE"}));
  EXPECT_EQ(module.sources.files.at(0).name, "calls.cu");
  EXPECT_EQ(module.variable("operations")->addresses.at(1).symbol, "_Z6squaref");
  EXPECT_EQ(module.variable("where")->addresses.at(0).symbol, "counter");
  EXPECT_TRUE(module.variable("where")->addresses.at(0).generic);
  float table[6];
  ASSERT_LE(module.variable("table")->initial.size(), sizeof table);
  std::memcpy(table, module.variable("table")->initial.data(),
              module.variable("table")->initial.size());
  EXPECT_EQ(table[3], -1.5f);
  EXPECT_EQ(table[5], 1e30f);
  const Function& kernel = *module.function("_Z5callsPf4PairiPPFffE");
  EXPECT_EQ(kernel.parameters.at(1).size, 24u);
  std::size_t calls = 0;
  std::size_t indirect = 0;
  for (const Instruction& instruction : kernel.body) {
    if (instruction.opcode != "call") continue;
    ++calls;
    indirect += instruction.operands.back().kind == Kind::prototype;
  }
  // __assertfail, operations[], moved, vprintf, area, given[], fibonacci.
  EXPECT_EQ(calls, 7u);
  EXPECT_EQ(indirect, 3u);
}

TEST(PtxCorpus, OutputOfNvccWithEveryUnit) {
  const Module module = parse(read_file("units-sm_90.ptx"), "units-sm_90.ptx");
  EXPECT_EQ(module.kernels().size(), 4u);
  EXPECT_EQ(module.function(module.kernels()[0])->max_threads,
            (std::array<std::uint32_t, 3>{256, 1, 1}));
  std::map<std::string, int> opcodes;
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body) {
      ++opcodes[instruction.opcode];
      EXPECT_NE(instruction.source.line, 0u) << instruction.line;
      const std::uint32_t file = outermost(module, instruction).file;
      EXPECT_EQ(module.sources.files.at(file - 1).name, "units.cu") << instruction.line;
    }
  }
  for (const char* opcode : {"wmma", "tex", "sust", "cp", "match", "shfl", "activemask", "vote"}) {
    EXPECT_GT(opcodes[opcode], 0) << opcode;
  }
}

TEST(PtxCorpus, OutputOfNvrtc) {
  const Module module = parse(read_file("saxpy-nvrtc.ptx"), "saxpy-nvrtc.ptx");
  const Function& saxpy = *module.function("saxpy");
  EXPECT_EQ(saxpy.parameters.size(), 4u);
  bool found = false;
  for (const Instruction& instruction : saxpy.body) {
    if (instruction.opcode != "fma") continue;
    found = true;
    EXPECT_EQ(outermost(module, instruction).line, 5u);
  }
  EXPECT_TRUE(found);
}

TEST(PtxCorpus, EveryCutIsAnErrorOrAModule) {
  for (const char* name : {"calls-sm_75.ptx", "units-sm_90.ptx", "saxpy-nvrtc.ptx"}) {
    const std::string text = read_file(name);
    for (std::size_t size = 0; size < text.size(); size += 37) {
      const std::string error = error_in(text.substr(0, size));
      EXPECT_TRUE(error == "no error" || error.starts_with("k.ptx:")) << error;
    }
  }
}

}  // namespace
}  // namespace warpstack::ptx
