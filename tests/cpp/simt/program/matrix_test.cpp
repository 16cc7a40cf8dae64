#include "simt/program/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

using namespace warpstack::simt;
using Element = MatrixElement;
using Role = MatrixRole;

/// All fragments of mma and wmma.
std::vector<MatrixFragment> fragments() {
  std::vector<MatrixFragment> all;
  const auto add = [&](Element element, std::uint32_t m, std::uint32_t n, std::uint32_t k,
                       Element accumulator) {
    all.push_back({Role::a, element, m, k});
    all.push_back({Role::b, element, k, n});
    all.push_back({Role::accumulator, accumulator, m, n});
  };
  for (const Element element : {Element::f16, Element::bf16}) {
    add(element, 16, 8, 8, Element::f32);
    add(element, 16, 8, 16, Element::f16);
    add(element, 16, 16, 16, Element::f32);
    add(element, 8, 32, 16, Element::f16);
    add(element, 32, 8, 16, Element::f32);
  }
  add(Element::tf32, 16, 8, 4, Element::f32);
  add(Element::tf32, 16, 8, 8, Element::f32);
  add(Element::tf32, 16, 16, 8, Element::f32);
  for (const std::uint32_t k : {4, 8, 16}) add(Element::f64, 16, 8, k, Element::f64);
  add(Element::f64, 8, 8, 4, Element::f64);
  add(Element::s8, 8, 8, 16, Element::s32);
  add(Element::u8, 16, 8, 32, Element::s32);
  add(Element::s8, 8, 32, 16, Element::s32);
  add(Element::u8, 32, 8, 16, Element::s32);
  add(Element::s4, 8, 8, 32, Element::s32);
  add(Element::u4, 16, 8, 64, Element::s32);
  add(Element::b1, 16, 8, 256 / 32, Element::s32);
  return all;
}

TEST(Matrix, FragmentsHoldEveryElementOnce) {
  for (const MatrixFragment& fragment : fragments()) {
    std::vector<int> seen(std::size_t{fragment.rows} * fragment.columns);
    for (std::uint32_t tile = 0; tile < fragment.num_tiles(); ++tile) {
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        MatrixPosition at = fragment.position(tile, lane);
        for (std::uint32_t i = 0; i < fragment.per_tile(); ++i) {
          ASSERT_LT(at.row, fragment.rows);
          ASSERT_LT(at.column, fragment.columns);
          ++seen[at.row * fragment.columns + at.column];
          ++(fragment.role == Role::b ? at.row : at.column);
        }
      }
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1))
        << fragment.rows << " x " << fragment.columns << ", " << bits_of(fragment.element);
    EXPECT_LE(fragment.num_registers(), 8u);
    EXPECT_EQ(fragment.num_registers() * fragment.per_register() * 32, seen.size());
  }
}

TEST(Matrix, OnesOfIntegersCountTheInnerDimension) {
  // A and B are all ones, C is the greatest number less 10: 16 more saturate, or wrap around to
  // the least number plus 5.
  const MatrixFragment a{Role::a, Element::s8, 8, 16};
  const MatrixFragment b{Role::b, Element::s8, 16, 8};
  const MatrixFragment c{Role::accumulator, Element::s32, 8, 8};
  MatrixMultiply multiply{.a = a, .b = b, .c = c, .d = c};
  multiply.b_values[0] = 128;
  multiply.c_values = {256, 384};
  multiply.d_values = {256, 384};
  for (const bool saturate : {false, true}) {
    std::vector<std::uint32_t> registers(128, 0x01010101u);
    std::fill(registers.begin() + 64, registers.end(), 0x7fffffffu - 10);
    multiply.saturate = saturate;
    multiply_matrices(reinterpret_cast<std::byte*>(registers.data()), multiply);
    EXPECT_EQ(registers[64], saturate ? 0x7fffffffu : 0x80000005u);
    EXPECT_EQ(registers, [&] {
      std::vector<std::uint32_t> all(128, 0x01010101u);
      std::fill(all.begin() + 64, all.end(), registers[64]);
      return all;
    }());
  }
}

}  // namespace
