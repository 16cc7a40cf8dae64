#include "ptx/text/linker.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "ptx/text/ptx_texts.h"

namespace warpstack::ptx {
namespace {

using testing::header;

/// Links the texts of a.cu, b.cu, …, each after a three-line header.
Module linked(const std::vector<std::string>& texts) {
  std::vector<Module> modules;
  char name = 'a';
  for (const std::string& text : texts) {
    modules.push_back(parse(header + text, std::string(1, name++) + ".cu"));
  }
  return link(std::move(modules), "program");
}

std::string link_error(const std::vector<std::string>& texts) {
  try {
    linked(texts);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// What the only instruction that loads or calls names.
std::string named_in(const Module& module, const std::string& function, std::size_t instruction) {
  std::string name;
  const auto look = [&name](const auto& self, const Operand& operand) -> void {
    if (operand.kind == Operand::Kind::variable) name = operand.name;
    for (const Operand& element : operand.elements) self(self, element);
  };
  for (const Operand& operand : module.function(function)->body.at(instruction).operands) {
    look(look, operand);
  }
  return name;
}

TEST(PtxLinker, DeclarationsGetTheirDefinitions) {
  const Module module = linked({
      ".extern .global .align 4 .u32 x;\n.extern .func f;\n.visible .entry k { call.uni f; ret; "
      "}\n",
      ".visible .global .align 4 .u32 x = 3;\n.visible .func f { ret; }\n",
  });
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_FALSE(module.variables[0].is_extern());
  EXPECT_EQ(module.variables[0].initial.at(0), 3);
  ASSERT_EQ(module.functions.size(), 2u);
  EXPECT_FALSE(module.function("f")->is_declaration);
  EXPECT_EQ(module.file_of(*module.function("f")), "b.cu");
  EXPECT_EQ(module.file_of(*module.function("k")), "a.cu");
}

TEST(PtxLinker, WhatNobodyDefinesStaysDeclared) {
  const Module module = linked({".extern .func vprintf;\n", ".extern .func vprintf;\n"});
  ASSERT_EQ(module.functions.size(), 1u);
  EXPECT_TRUE(module.functions[0].is_declaration);
}

TEST(PtxLinker, NamesOfOneModuleAreItsOwn) {
  const std::string text = ".global .u32 x = 1;\n.func f { ret; }\n.global .u64 p = x;\n";
  const Module module = linked({
      text + ".visible .entry k { .reg .u32 %r; ld.global.u32 %r, [x]; call.uni f; ret; }\n",
      text + ".visible .entry l { .reg .u32 %r; ld.global.u32 %r, [x]; call.uni f; ret; }\n",
      // Here a global name that is known only later, and a name like a renamed one.
      ".global .u32 f = 2;\n.visible .global .u32 x$2 = 3;\n.visible .entry m { .reg .u32 %r; "
      "ld.global.u32 %r, [f]; ret; }\n",
  });
  EXPECT_EQ(named_in(module, "k", 0), "x");
  EXPECT_EQ(named_in(module, "k", 1), "f");
  EXPECT_EQ(named_in(module, "l", 0), "x$3");
  EXPECT_EQ(named_in(module, "l", 1), "f$2");
  EXPECT_EQ(named_in(module, "m", 0), "f$3");
  EXPECT_EQ(module.variable("p")->addresses.at(0).symbol, "x");
  EXPECT_EQ(module.variable("p$2")->addresses.at(0).symbol, "x$3");
}

TEST(PtxLinker, ANearerNameIsNotAnotherModules) {
  const std::string text = ".shared .u32 s;\n";
  const Module module = linked({
      text,
      ".visible .entry k { .shared .u32 s; .reg .u32 %r; ld.shared.u32 %r, [s]; ret; }\n" + text,
  });
  EXPECT_EQ(named_in(module, "k", 0), "s");
}

TEST(PtxLinker, OfWeakDefinitionsTheFirstCountsUnlessThereIsAnother) {
  const std::string weak = ".weak .func f { ret; }\n";
  EXPECT_EQ(linked({weak, weak}).function("f")->object, 0u);
  EXPECT_EQ(linked({weak, ".visible .func f { trap; ret; }\n"}).function("f")->object, 1u);
  EXPECT_EQ(linked({".visible .func f { trap; ret; }\n", weak}).function("f")->object, 0u);
}

TEST(PtxLinker, CommonVariablesAreOne) {
  const Module module =
      linked({".common .global .align 4 .b8 c[4];\n", ".common .global .align 8 .b8 c[64];\n",
              ".extern .global .align 4 .b8 c[];\n"});
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_EQ(module.variables[0].size, 64u);
}

TEST(PtxLinker, DynamicSharedMemoryIsOneWithTheLargestAlignment) {
  const Module module =
      linked({".extern .shared .align 4 .b8 d[];\n", ".extern .shared .align 16 .b8 d[];\n"});
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_EQ(module.variables[0].alignment, 16u);
}

TEST(PtxLinker, AnAliasIsKnownToOtherModules) {
  const Module module = linked({
      ".extern .func alias;\n.visible .entry k { call.uni alias; ret; }\n",
      ".func f { ret; }\n",
      ".func f { ret; }\n.visible .func alias;\n.alias alias, f;\n",
  });
  EXPECT_EQ(named_in(module, "k", 0), "f$2");
  EXPECT_EQ(module.function("alias"), nullptr);
}

TEST(PtxLinker, SourceFilesAreNumberedAnew) {
  const std::string text = " { .loc 1 5 0\n trap; ret; }\n";
  const Module module = linked(
      {".file 1 \"a.cu\"\n.visible .entry k" + text, ".file 1 \"b.cu\"\n.visible .entry l" + text});
  const auto file = [&module](const char* kernel) {
    const std::uint32_t number = module.function(kernel)->body.at(0).source.file;
    return module.sources.files.at(number - 1).name;
  };
  EXPECT_EQ(file("k"), "a.cu");
  EXPECT_EQ(file("l"), "b.cu");
}

TEST(PtxLinker, ClashesNameBothPlaces) {
  const std::string f = ".visible .func f { ret; }\n";
  EXPECT_EQ(link_error({f, "\n" + f}),
            "b.cu:5: 'f' is defined here, and in a.cu:4; the modules cannot be linked, build the "
            "program again");
  const std::string x = ".visible .global .u32 x;\n";
  EXPECT_NE(link_error({x, x}).find("b.cu:4: 'x' is defined here, and in a.cu:4"),
            std::string::npos);
  EXPECT_NE(link_error({f, ".visible .global .u32 f;\n"}).find("is a variable, and a function in"),
            std::string::npos);
  EXPECT_NE(link_error({x, ".extern .global .u64 x;\n"}).find("takes 8 bytes, and 4 in a.cu:4"),
            std::string::npos);
  EXPECT_NE(link_error({x, ".extern .const .u32 x;\n"}).find("has another state space than in"),
            std::string::npos);
  EXPECT_NE(link_error({f, ".extern .func f(.param .b32 p);\n"}).find("has another signature than"),
            std::string::npos);
}

}  // namespace
}  // namespace warpstack::ptx
