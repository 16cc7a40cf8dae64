#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "simt/program/lane_form.h"
#include "simt/program/registers.h"

namespace warpstack::simt {
namespace {

constexpr std::size_t slot_bytes = 8 * warp_size;
constexpr std::size_t num_slots = 6;  // two results, four sources
using File = std::array<std::byte, num_slots * slot_bytes>;

LaneForm form(Operation operation, Type type, Type source = Type::none) {
  LaneForm form;
  form.operation = operation;
  form.type = type;
  form.source = source;
  return form;
}

std::vector<LaneForm> forms() {
  std::vector<LaneForm> forms = {
      form(Operation::add, Type::u32),           form(Operation::add, Type::s64),
      form(Operation::fma, Type::f32),           form(Operation::fma, Type::f64),
      form(Operation::mul_wide, Type::s32),      form(Operation::div, Type::s32),
      form(Operation::lop3, Type::b32),          form(Operation::setp, Type::f32),
      form(Operation::selp, Type::b64),          form(Operation::add, Type::f16x2),
      form(Operation::cvt, Type::s32, Type::f32)};
  LaneForm words = form(Operation::mad_wide, Type::u32);
  words.words = true;
  LaneForm signs = form(Operation::add, Type::f32);
  signs.signs = true;
  forms.insert(forms.end(), {words, signs, form(Operation::add3, Type::u32)});
  return forms;
}

// Few lanes are computed one by one and many as vectors: what a lane gets does not depend on which
// others there are, and lanes that are not there keep what they have.
TEST(Lanes, HoweverManyThereAre) {
  std::mt19937_64 random(1);
  for (const LaneForm& form : forms()) {
    const LaneFunction function = find_lane_function(form);
    ASSERT_NE(function, nullptr) << static_cast<int>(form.operation);
    LaneOperands operands;
    operands.target = 0;
    operands.target2 = slot_bytes;
    for (std::uint32_t i = 0; i < 4; ++i) {
      operands.source[i] = static_cast<std::uint32_t>((2 + i) * slot_bytes);
    }
    operands.immediate = form.operation == Operation::lop3 ? 0x96 : 0;
    File before;
    for (std::byte& byte : before) byte = static_cast<std::byte>(random());
    File whole = before;
    LaneMask mask;
    mask.set(all_lanes);
    mask.all = true;
    function(whole.data(), operands, mask);
    for (const std::uint32_t lanes :
         {0x1u, 0x80000000u, 0x21u, 0x80010004u, 0x01010101u, 0x11111u, 0x7fffffffu, 0xffffffffu}) {
      File some = before;
      mask.set(lanes);
      mask.all = false;
      function(some.data(), operands, mask);
      // Each lane's part of a slot: 4 bytes from 4 times its number on, or 8 from 8 times.
      File expected = before;
      const bool is_wide =
          !form.words && (form.type == Type::s64 || form.type == Type::f64 ||
                          form.type == Type::b64 || form.operation == Operation::mul_wide);
      const std::size_t bytes = is_wide ? 8 : 4;
      for (std::size_t place = 0; place < 2 * slot_bytes; place += bytes) {
        const std::size_t lane = place / bytes % warp_size;
        if ((lanes >> lane & 1) == 0) continue;
        std::memcpy(expected.data() + place, whole.data() + place, bytes);
      }
      EXPECT_EQ(some, expected) << static_cast<int>(form.operation) << " in lanes " << lanes;
    }
  }
}

TEST(Lanes, Few) {
  EXPECT_TRUE(is_few(0));
  EXPECT_TRUE(is_few(0x80010101));
  EXPECT_FALSE(is_few(0x80010103));
  EXPECT_FALSE(is_few(all_lanes));
}

}  // namespace
}  // namespace warpstack::simt
