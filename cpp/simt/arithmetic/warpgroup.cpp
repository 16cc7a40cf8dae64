// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "simt/arithmetic/half_bits.h"
#include "simt/arithmetic/matrix_descriptor.h"

#ifndef WARPSTACK_ISA
#define WARPSTACK_ISA baseline
#endif

namespace warpstack::simt::WARPSTACK_ISA {

void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b);

namespace {

constexpr std::uint32_t num_lanes = 32;

/// Sums of a warp, row by row.
template <class T>
using Sums = std::array<std::array<T, max_warpgroup_columns>, warp_rows>;

template <class T>
T element_of(const FactorRow& row, std::uint32_t k) {
  T value;
  std::memcpy(&value, row.data() + k * sizeof(T), sizeof(T));
  return value;
}

/// An 8-bit float of four exponent bits, without infinities (OCP 8-bit floating point).
float e4m3_to_float(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const int fraction = bits & 7;
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  const float value = exponent == 0 ? static_cast<float>(fraction) * 0x1p-9f
                                    : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return (bits & 0x80) != 0 ? -value : value;
}

float float_of(const FactorRow& row, FactorElement element, std::uint32_t k) {
  switch (element) {
    case FactorElement::f16:
      return half_to_float(element_of<std::uint16_t>(row, k));
    case FactorElement::bf16:
      return std::bit_cast<float>(std::uint32_t{element_of<std::uint16_t>(row, k)} << 16);
    case FactorElement::e4m3:
      return e4m3_to_float(element_of<std::uint8_t>(row, k));
    case FactorElement::e5m2:  // the upper half of an f16
      return half_to_float(static_cast<std::uint16_t>(element_of<std::uint8_t>(row, k) << 8));
    default:  // tf32: the units ignore the low bits
      return std::bit_cast<float>(element_of<std::uint32_t>(row, k) & 0xffffe000u);
  }
}

std::int32_t integer_of(const FactorRow& row, FactorElement element, std::uint32_t k) {
  if (element == FactorElement::s8) return element_of<std::int8_t>(row, k);
  if (element == FactorElement::u8) return element_of<std::uint8_t>(row, k);
  return element_of<std::int32_t>(row, k);  // b1
}

/// Calls f(row, column, slot, lane) for the accumulators, two neighbours of 16 bits as one word.
template <class F>
inline void for_each_word(const WarpgroupMultiply& multiply, F f) {
  const std::uint32_t words = multiply.d == FactorElement::f16 ? 1 : 2;  // of a row, per lane
  for (std::uint32_t i = 0; i < multiply.d_values.size(); ++i) {
    const std::uint32_t chunk = i / (2 * words);
    const std::uint32_t half = i / words % 2;
    for (std::uint32_t lane = 0; lane < num_lanes; ++lane) {
      f(8 * half + lane / 4, 8 * chunk + lane % 4 * 2 + i % words, multiply.d_values[i], lane);
    }
  }
}

std::uint32_t word_of(const std::byte* registers, std::uint32_t slot, std::uint32_t lane) {
  std::uint32_t word;
  std::memcpy(&word, registers + slot + 4 * lane, 4);
  return word;
}

void put_word(std::byte* registers, std::uint32_t slot, std::uint32_t lane, std::uint32_t word) {
  std::memcpy(registers + slot + 4 * lane, &word, 4);
}

/// sums[i][j] = f(sums[i][j], a[i][k], b[k][j]) in the order of increasing k.
template <class T, class Value, class F>
inline void accumulate(std::span<const FactorRow> a, std::span<const FactorRow> b,
                       std::uint32_t inner, Sums<T>& sums, Value value_of, F f) {
  const auto columns = static_cast<std::uint32_t>(b.size());
  std::array<std::array<T, max_warpgroup_columns>, factor_bytes> right;
  for (std::uint32_t j = 0; j < columns; ++j) {
    for (std::uint32_t k = 0; k < inner; ++k) right[k][j] = value_of(b[j], k, false);
  }
  for (std::uint32_t i = 0; i < warp_rows; ++i) {
    T* const row = sums[i].data();
    for (std::uint32_t k = 0; k < inner; ++k) {
      const T factor = value_of(a[i], k, true);
      const T* const other = right[k].data();
      for (std::uint32_t j = 0; j < columns; ++j) row[j] = f(row[j], factor, other[j]);
    }
  }
}

void multiply_floats(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                     std::span<const FactorRow> a, std::span<const FactorRow> b) {
  Sums<float> sums{};
  const bool is_half = multiply.d == FactorElement::f16;
  if (accumulates) {
    for_each_word(multiply, [&](std::uint32_t row, std::uint32_t column, std::uint32_t slot,
                                std::uint32_t lane) {
      const std::uint32_t word = word_of(registers, slot, lane);
      if (!is_half) {
        sums[row][column] = std::bit_cast<float>(word);
        return;
      }
      sums[row][column] = half_to_float(static_cast<std::uint16_t>(word));
      sums[row][column + 1] = half_to_float(static_cast<std::uint16_t>(word >> 16));
    });
  }
  const std::uint32_t inner = factor_bytes * 8 / bits_of(multiply.a);
  const auto value_of = [&](const FactorRow& row, std::uint32_t k, bool is_a) {
    const float value = float_of(row, is_a ? multiply.a : multiply.b, k);
    return (is_a ? multiply.negate_a : multiply.negate_b) ? -value : value;
  };
  if (multiply.a == FactorElement::bf16 || multiply.a == FactorElement::tf32) {
    accumulate(a, b, inner, sums, value_of,
               [](float sum, float x, float y) { return std::fma(x, y, sum); });
  } else {
    // Products of the shorter formats are exact in f32: no fused operation is needed.
    accumulate(a, b, inner, sums, value_of,
               [](float sum, float x, float y) { return sum + x * y; });
  }
  for_each_word(multiply, [&](std::uint32_t row, std::uint32_t column, std::uint32_t slot,
                              std::uint32_t lane) {
    const float value = sums[row][column];
    if (!is_half) {
      put_word(registers, slot, lane,
               std::isnan(value) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(value));
      return;
    }
    put_word(registers, slot, lane,
             double_to_half(static_cast<double>(value)) |
                 std::uint32_t{double_to_half(static_cast<double>(sums[row][column + 1]))} << 16);
  });
}

void multiply_integers(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                       std::span<const FactorRow> a, std::span<const FactorRow> b) {
  using Word = std::int32_t;
  Sums<Word> sums{};  // without D they have at most 24 bits
  const auto value_of = [&](const FactorRow& row, std::uint32_t k, bool is_a) {
    return integer_of(row, is_a ? multiply.a : multiply.b, k);
  };
  if (multiply.a == FactorElement::b1) {
    accumulate(a, b, factor_bytes / 4, sums, value_of, [](Word sum, Word x, Word y) {
      return sum + std::popcount(static_cast<std::uint32_t>(x & y));
    });
  } else {
    accumulate(a, b, factor_bytes, sums, value_of,
               [](Word sum, Word x, Word y) { return sum + x * y; });
  }
  for_each_word(multiply, [&](std::uint32_t row, std::uint32_t column, std::uint32_t slot,
                              std::uint32_t lane) {
    std::int64_t sum = sums[row][column];
    if (accumulates) sum += static_cast<Word>(word_of(registers, slot, lane));
    if (multiply.saturate) {
      sum = std::clamp<std::int64_t>(sum, std::numeric_limits<Word>::min(),
                                     std::numeric_limits<Word>::max());
    }
    put_word(registers, slot, lane, static_cast<std::uint32_t>(sum));
  });
}

}  // namespace

void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b) {
  if (multiply.d == FactorElement::s32) {
    multiply_integers(registers, multiply, accumulates, a, b);
  } else {
    multiply_floats(registers, multiply, accumulates, a, b);
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
