#include "trace/instructions/source_table.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace warpstack::trace {
namespace {

StaticInstruction at(std::uint32_t file, std::uint32_t call) {
  StaticInstruction instruction;
  instruction.source_file = file;
  instruction.inlined_at = call;
  return instruction;
}

TEST(SourceTable, OnlyWhatIsUsedStays) {
  const SourceTable all{.files = {{"unused.h"}, {"a.cu"}, {"b.h"}, {"a.cu"}},
                        .calls = {{"f", 2, 7, 0}, {"unused", 1, 1, 0}, {"g", 3, 9, 1}}};
  std::vector<StaticInstruction> rows{at(3, 3), at(4, 0), at(2, 1), at(0, 0), at(9, 9)};
  const SourceTable used = take_used(all, rows);
  EXPECT_EQ(used.files, (std::vector<SourceFile>{{"b.h"}, {"a.cu"}}));
  EXPECT_EQ(used.calls, (std::vector<InlinedCall>{{"f", 2, 7, 0}, {"g", 1, 9, 1}}));
  EXPECT_EQ(rows[0], at(1, 2));
  EXPECT_EQ(rows[1], at(2, 0)) << "the same file under another number";
  EXPECT_EQ(rows[2], at(2, 1));
  EXPECT_EQ(rows[3], at(0, 0));
  EXPECT_EQ(rows[4], at(0, 0)) << "beyond the table";
}

TEST(SourceTable, WrongNumbersAreErrors) {
  EXPECT_THROW((SourceTable{.files = {}, .calls = {{"f", 1, 7, 0}}}.validate()), InputError);
  EXPECT_THROW((SourceTable{.files = {{"a"}}, .calls = {{"f", 1, 7, 1}}}.validate()), InputError);
  const SourceTable table{.files = {{"a"}}, .calls = {{"f", 1, 7, 0}}};
  EXPECT_NO_THROW(table.validate());
  EXPECT_NO_THROW(table.check(at(1, 1)));
  EXPECT_THROW(table.check(at(2, 0)), InputError);
  EXPECT_THROW(table.check(at(1, 2)), InputError);
}

TEST(SourceTable, PlacesHaveNoFolders) {
  const SourceTable table{.files = {{"/src/a.cu"}, {"b.h"}}, .calls = {}};
  EXPECT_EQ(table.place(1, 5), "a.cu:5");
  EXPECT_EQ(table.place(2, 5), "b.h:5");
  EXPECT_EQ(table.place(1, 0), "");
  EXPECT_EQ(table.place(3, 5), "");
}

}  // namespace
}  // namespace warpstack::trace
