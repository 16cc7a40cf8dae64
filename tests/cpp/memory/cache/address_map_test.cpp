#include "memory/cache/address_map.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace warpstack::memory {
namespace {

TEST(Divisor, EqualsDivisionOfAnyNumber) {
  std::mt19937_64 random(1);
  for (const std::uint64_t value :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{48},
        (std::uint64_t{1} << 40) - 1, ~std::uint64_t{0}}) {
    const Divisor divisor(value);
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t n = random() >> (i % 64);
      ASSERT_EQ(divisor.quotient(n), n / value) << n << " / " << value;
      ASSERT_EQ(divisor.remainder(n), n % value) << n << " % " << value;
    }
    EXPECT_EQ(divisor.quotient(~std::uint64_t{0}), ~std::uint64_t{0} / value);
  }
}

TEST(AddressMap, XorFoldsTheUpperBitsOntoTheIndex) {
  const AddressMap map(4, Indexing::xor_hash);
  EXPECT_EQ(map(0b1101), 0b10);      // 11 ^ 01
  EXPECT_EQ(map(0b10'00'01), 0b11);  // 10 ^ 00 ^ 01
  const AddressMap three(3, Indexing::xor_hash);
  EXPECT_EQ(three(0b10'00'01), 0);  // 3, taken modulo 3
}

TEST(AddressMap, HashesSpreadAnAlignedRunEvenly) {
  for (const Indexing indexing : values_of<Indexing>) {
    if (indexing == Indexing::scatter) continue;  // as if by chance
    const AddressMap map(16, indexing);
    std::vector<int> hits(16);
    for (std::uint64_t n = 0; n < 256; ++n) ++hits.at(map(n));
    for (const int count : hits) EXPECT_EQ(count, 16) << name_of(indexing);
  }
}

}  // namespace
}  // namespace warpstack::memory
