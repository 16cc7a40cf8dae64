#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "simt/arithmetic/half_bits.h"

namespace {

using namespace warpstack::simt;

constexpr Rounding modes[] = {Rounding::nearest, Rounding::zero, Rounding::down, Rounding::up};

/// Value of 16 bits of a format with `fraction_bits`, by its definition.
long double value_of(std::uint32_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const auto fraction = static_cast<long double>(bits & ((1u << fraction_bits) - 1));
  const long double one = std::ldexp(1.0L, fraction_bits);
  const long double magnitude = exponent == 0 ? std::ldexp(fraction / one, 1 - bias)
                                              : std::ldexp(1 + fraction / one, exponent - bias);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The format's finite values in rising order, each with its bits; -0 is left out.
struct Known {
  long double value;
  std::uint16_t bits;
};
std::vector<Known> values_of(int fraction_bits) {
  const std::uint32_t infinite = 0x8000u - (1u << fraction_bits);
  std::vector<Known> known;
  for (std::uint32_t bits = infinite; bits-- > 1;) {
    known.push_back(
        {value_of(bits | 0x8000u, fraction_bits), static_cast<std::uint16_t>(bits | 0x8000u)});
  }
  for (std::uint32_t bits = 0; bits < infinite; ++bits) {
    known.push_back({value_of(bits, fraction_bits), static_cast<std::uint16_t>(bits)});
  }
  return known;
}

/// Rounds by looking for the neighbours.
std::uint16_t rounded(const std::vector<Known>& known, int fraction_bits, double value,
                      Rounding mode) {
  const auto infinite = static_cast<std::uint16_t>(0x8000u - (1u << fraction_bits));
  const bool negative = std::signbit(value);
  const std::uint16_t sign = negative ? 0x8000 : 0;
  if (value == 0) return sign;
  const auto above =
      std::ranges::lower_bound(known, static_cast<long double>(value), {}, &Known::value);
  const bool away = (mode == Rounding::up && !negative) || (mode == Rounding::down && negative);
  if (above == known.end() || (above == known.begin() && above->value > value)) {
    // Beyond the greatest: to nearest, infinity begins half a step further.
    const auto greatest = std::fabs(known.back().value);
    const auto step = greatest - known[known.size() - 2].value;
    const bool far = std::fabs(static_cast<long double>(value)) >= greatest + step / 2;
    const bool grows = mode == Rounding::nearest ? far : away;
    return static_cast<std::uint16_t>(sign | (grows ? infinite : infinite - 1));
  }
  if (above->value == value) return above->bits == 0 ? sign : above->bits;
  const Known& high = *above;
  const Known& low = *std::prev(above);
  const auto with_sign = [&](const Known& k) {
    return static_cast<std::uint16_t>(k.value == 0 ? sign : k.bits);
  };
  switch (mode) {
    case Rounding::down:
      return with_sign(low);
    case Rounding::up:
      return with_sign(high);
    case Rounding::zero:
      return with_sign(negative ? high : low);
    case Rounding::nearest:
      break;
  }
  const long double to_low = value - low.value;
  const long double to_high = high.value - value;
  if (to_low != to_high) return with_sign(to_low < to_high ? low : high);
  return with_sign(low.bits % 2 == 0 ? low : high);
}

TEST(Half, AllValuesReturnFromDouble) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double value = half_to_double(half);
    const bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    ASSERT_EQ(std::isnan(value), is_nan);
    if (!is_nan && (bits & 0x7fff) != 0x7c00) {
      ASSERT_EQ(value, static_cast<double>(value_of(bits, 10)));
      ASSERT_EQ(std::signbit(value), bits >= 0x8000);
    }
    for (const Rounding mode : modes) {
      ASSERT_EQ(double_to_half(value, mode), is_nan ? 0x7fff : half) << bits;
    }
  }
}

TEST(Bfloat, AllValuesReturnFromDouble) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double value = bfloat_to_double(half);
    const bool is_nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
    ASSERT_EQ(std::isnan(value), is_nan);
    if (!is_nan && (bits & 0x7fff) != 0x7f80) {
      ASSERT_EQ(value, static_cast<double>(value_of(bits, 7)));
    }
    for (const Rounding mode : modes) {
      ASSERT_EQ(double_to_bfloat(value, mode), is_nan ? 0x7fff : half) << bits;
    }
  }
}

TEST(Half, RoundsToANeighbourInEveryMode) {
  std::mt19937_64 random(1);
  for (const int fraction_bits : {10, 7}) {
    const auto known = values_of(fraction_bits);
    const auto check = [&](double value) {
      for (const Rounding mode : modes) {
        const std::uint16_t got =
            fraction_bits == 10 ? double_to_half(value, mode) : double_to_bfloat(value, mode);
        ASSERT_EQ(got, rounded(known, fraction_bits, value, mode))
            << value << " in mode " << static_cast<int>(mode) << " with " << fraction_bits;
      }
    };
    for (std::size_t i = 0; i + 1 < known.size(); i += 1 + random() % 3) {
      const auto low = static_cast<double>(known[i].value);
      const auto high = static_cast<double>(known[i + 1].value);
      const double middle = low / 2 + high / 2;
      for (const double value : {middle, std::nextafter(middle, low), std::nextafter(middle, high),
                                 std::nextafter(low, high), std::nextafter(high, low)}) {
        check(value);
      }
    }
    const auto greatest = static_cast<double>(known.back().value);
    for (const double value :
         {greatest * 1.0001, greatest * 1.5, greatest * 4, 1e300, 5e-324, 1e-60}) {
      check(value);
      check(-value);
    }
    for (int n = 0; n < 20000; ++n) {
      const int range = fraction_bits == 10 ? 20 : 140;
      const double fraction = std::bit_cast<double>((random() >> 12) | 0x3ff0000000000000u);
      const double value = std::ldexp(fraction, static_cast<int>(random() % (2 * range)) - range);
      check(random() % 2 == 0 ? value : -value);
    }
  }
}

TEST(Half, InfinityStays) {
  for (const Rounding mode : modes) {
    EXPECT_EQ(double_to_half(HUGE_VAL, mode), 0x7c00);
    EXPECT_EQ(double_to_bfloat(-HUGE_VAL, mode), 0xff80);
  }
}

TEST(Half, FusedArithmeticRoundsOnce) {
  std::mt19937 random(2);
  const auto known = values_of(10);
  for (int n = 0; n < 200000; ++n) {
    const auto draw = [&] {
      const auto exponent = 10 + random() % 12;
      return static_cast<std::uint16_t>((random() & 0x83ff) | exponent << 10);
    };
    const double a = half_to_double(draw());
    const double b = half_to_double(draw());
    const double c = half_to_double(draw());
    // 22 bits and 11 bits whose exponents are at most 24 apart: exact in a double.
    const double exact = a * b + c;
    ASSERT_EQ(double_to_half(fma_to_odd(a, b, c)), rounded(known, 10, exact, Rounding::nearest));
    ASSERT_EQ(exact, fma_to_odd(a, b, c));
  }
  // 1 + 2^-9 is halfway between two bf16; what is too small for a double decides.
  EXPECT_EQ(double_to_bfloat(fma_to_odd(1, 1 + 0x1p-7, 0x1p-8)), 0x3f82);
  EXPECT_EQ(double_to_bfloat(fma_to_odd(1 + 0x1p-7, 0x1p-1 + 0x1p-8, 0)), 0x3f02);
  EXPECT_EQ(double_to_bfloat(fma_to_odd(0x1.01p0, 1, 0x1p-130)), 0x3f81);
  EXPECT_EQ(double_to_bfloat(fma_to_odd(0x1.01p0, 1, -0x1p-130)), 0x3f80);
  EXPECT_EQ(double_to_bfloat(fma_to_odd(0x1.03p0, 1, 0x1p-130)), 0x3f82);
  EXPECT_EQ(double_to_bfloat(fma_to_odd(0x1.03p0, 1, -0x1p-130)), 0x3f81);
}

TEST(Half, FloatsAreTheDoublesOfAllBits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = half_to_double(static_cast<std::uint16_t>(bits));
    const float got = half_to_float(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(std::isnan(got), std::isnan(expected)) << bits;
    if (std::isnan(got)) continue;
    ASSERT_EQ(got, expected) << bits;
    ASSERT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
  }
}

TEST(Half, FloatsAreRoundedAsDoublesAre) {
  // All floats in steps that end just below, at and above ties of f16.
  for (std::uint64_t high = 0; high <= 0xffffffffu; high += 0x800) {
    for (const std::uint64_t low : {0u, 1u, 0x7ffu, 0x3a5u}) {
      const auto bits = static_cast<std::uint32_t>(high + low);
      const auto value = std::bit_cast<float>(bits);
      ASSERT_EQ(float_to_half(value), double_to_half(static_cast<double>(value))) << bits;
    }
  }
}

}  // namespace
