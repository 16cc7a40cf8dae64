#include "common/enum_names.h"

#include <gtest/gtest.h>

#include <string>

namespace warpstack {
namespace {

enum class Colour : std::uint8_t { red, green, dark_blue };
constexpr auto names_of(Colour) { return enum_names("colour", "red", "green", "dark_blue"); }

TEST(EnumNames, ValuesAndNamesGoBothWays) {
  EXPECT_EQ(num_values<Colour>, 3);
  EXPECT_EQ(name_of(Colour::dark_blue), "dark_blue");
  for (const Colour colour : values_of<Colour>) EXPECT_EQ(enum_of<Colour>(name_of(colour)), colour);
}

TEST(EnumNames, AnUnknownNameIsOneLineThatListsTheNames) {
  try {
    enum_of<Colour>("blue");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), "unknown colour \"blue\"; write red, green or dark_blue");
  }
}

}  // namespace
}  // namespace warpstack
