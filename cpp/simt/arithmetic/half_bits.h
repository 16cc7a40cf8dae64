#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/program/rounding.h"

namespace warpstack::simt {

// binary16 (f16) and bfloat16 as bits. Arithmetic is done in double, where products and sums of
// such values are exact or nearly so, and is rounded once. `static`: this folder is compiled for
// several instruction sets, whose copies must not be merged.

static inline double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = fraction * 0x1p-24;
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

static inline float half_to_float(std::uint16_t bits) {
  const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
  // Increases the exponent's bias by 112, for subnormal values, too.
  std::uint32_t result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  if ((bits & 0x7c00) == 0x7c00) result = magnitude | 0x7f800000u;
  return std::bit_cast<float>(result | (bits & 0x8000u) << 16);
}

static inline double bfloat_to_double(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to a format with `fraction_bits` and normal exponents (of 2) from `min_exponent` to
/// `max_exponent`. Returns the bits without the sign.
static inline std::uint32_t round_to_format(double magnitude, bool negative, int fraction_bits,
                                            int min_exponent, int max_exponent, Rounding rounding) {
  const auto bias = static_cast<std::uint32_t>(max_exponent);
  const std::uint32_t infinity = (2 * bias + 1) << fraction_bits;
  if (std::isinf(magnitude)) return infinity;
  if (magnitude == 0) return 0;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, min_exponent);
  const double scaled = std::ldexp(magnitude, fraction_bits - exponent);  // exact
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  const bool away =
      (rounding == Rounding::up && !negative) || (rounding == Rounding::down && negative);
  if (rounding == Rounding::nearest ? rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1)
                                    : away && rest > 0) {
    whole += 1;
  }
  // The implicit bit of `whole` carries into the exponent; subnormal values have none.
  const std::uint64_t bits =
      (static_cast<std::uint64_t>(exponent - min_exponent) << fraction_bits) +
      static_cast<std::uint64_t>(whole);
  if (bits < infinity) return static_cast<std::uint32_t>(bits);
  return rounding == Rounding::nearest || away ? infinity : infinity - 1;
}

static inline std::uint16_t double_to_half(double value, Rounding rounding = Rounding::nearest) {
  if (std::isnan(value)) return 0x7fff;
  const bool negative = std::signbit(value);
  const std::uint32_t bits = round_to_format(std::fabs(value), negative, 10, -14, 15, rounding);
  return static_cast<std::uint16_t>(bits | (negative ? 0x8000u : 0u));
}

static inline std::uint16_t double_to_bfloat(double value, Rounding rounding = Rounding::nearest) {
  if (std::isnan(value)) return 0x7fff;
  const bool negative = std::signbit(value);
  const std::uint32_t bits = round_to_format(std::fabs(value), negative, 7, -126, 127, rounding);
  return static_cast<std::uint16_t>(bits | (negative ? 0x8000u : 0u));
}

/// double_to_half(value) to nearest, without branches; additions must be rounded to nearest, too.
static inline std::uint32_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // The last bit of 0.5 is that of subnormal f16: the sum is rounded there.
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  // Ties go to even; the exponent's bias decreases by 112. A carry may make it an infinity.
  const std::uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  std::uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
  result |= bits >> 16 & 0x8000u;
  return magnitude > 0x7f800000u ? 0x7fffu : result;
}

/// a * b + c, rounded to odd in double, so that a later rounding to a shorter format gives the
/// correctly rounded result.
static inline double fma_to_odd(double a, double b, double c) {
  const double product = a * b;  // exact for 11- and 8-bit significands
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double rounded_c = sum - product;
  const double error = (product - (sum - rounded_c)) + (c - rounded_c);
  if (error == 0) return sum;
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if ((bits & 1) != 0) return sum;
  // Rounds towards zero first, then to odd: the magnitude decreases if the error opposes the sum.
  if ((error < 0) == (sum > 0)) --bits;
  return std::bit_cast<double>(bits | 1);
}

}  // namespace warpstack::simt
