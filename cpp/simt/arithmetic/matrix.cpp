// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include "simt/program/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "simt/arithmetic/half_bits.h"
#include "simt/arithmetic/lane_functions.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

constexpr std::uint32_t num_lanes = 32;
/// The largest matrix: 32 x 16, or 16 x 64 of four-bit integers.
constexpr std::size_t max_elements = 1024;

template <class T>
using Matrix = std::array<T, max_elements>;

template <class T>
T word_of(const std::byte* registers, std::uint32_t slot, std::uint32_t lane) {
  T word;
  std::memcpy(&word, registers + slot + sizeof(T) * lane, sizeof(T));
  return word;
}

/// Calls f(index in row-major order, register, part of it, lane) for all elements.
template <class F>
inline void for_each_element(const MatrixFragment& fragment, F f) {
  const std::uint32_t tile_elements = fragment.per_tile();
  const std::uint32_t per_register = fragment.per_register();
  const std::uint32_t step = fragment.role == MatrixRole::b ? fragment.columns : 1;
  for (std::uint32_t tile = 0; tile < fragment.num_tiles(); ++tile) {
    for (std::uint32_t lane = 0; lane < num_lanes; ++lane) {
      const MatrixPosition first = fragment.position(tile, lane);
      std::uint32_t index = first.row * fragment.columns + first.column;
      for (std::uint32_t i = 0; i < tile_elements; ++i, index += step) {
        const std::uint32_t element = tile * tile_elements + i;
        f(index, element / per_register, element % per_register, lane);
      }
    }
  }
}

/// Spreads a fragment to a matrix in row-major order; `convert` takes the bits of an element.
template <class Word, class T, class Convert>
inline void gather(const std::byte* registers, const MatrixFragment& fragment,
                   const std::array<std::uint32_t, 8>& slots, Matrix<T>& matrix, Convert convert) {
  const std::uint32_t bits = bits_of(fragment.element);
  for_each_element(fragment, [&](std::uint32_t index, std::uint32_t number, std::uint32_t part,
                                 std::uint32_t lane) {
    matrix[index] =
        convert(static_cast<Word>(word_of<Word>(registers, slots[number], lane) >> part * bits));
  });
}

/// The reverse, for accumulators.
template <class Word, class T, class Convert>
inline void scatter(std::byte* registers, const MatrixFragment& fragment,
                    const std::array<std::uint32_t, 8>& slots, const Matrix<T>& matrix,
                    Convert convert) {
  const std::uint32_t bits = bits_of(fragment.element);
  for_each_element(fragment, [&](std::uint32_t index, std::uint32_t number, std::uint32_t part,
                                 std::uint32_t lane) {
    Word word = part == 0 ? 0 : word_of<Word>(registers, slots[number], lane);
    word |= static_cast<Word>(convert(matrix[index])) << part * bits;
    std::memcpy(registers + slots[number] + sizeof(Word) * lane, &word, sizeof(Word));
  });
}

void gather_floats(const std::byte* registers, const MatrixFragment& fragment,
                   const std::array<std::uint32_t, 8>& slots, Matrix<float>& matrix) {
  const auto convert = [&](auto f) {
    gather<std::uint32_t>(registers, fragment, slots, matrix, f);
  };
  switch (fragment.element) {
    case MatrixElement::f16:
      convert([](std::uint32_t bits) { return half_to_float(static_cast<std::uint16_t>(bits)); });
      break;
    case MatrixElement::bf16:
      convert([](std::uint32_t bits) { return std::bit_cast<float>(bits << 16); });
      break;
    case MatrixElement::tf32:  // the units ignore the low bits
      convert([](std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); });
      break;
    default:
      convert([](std::uint32_t bits) { return std::bit_cast<float>(bits); });
      break;
  }
}

void gather_integers(const std::byte* registers, const MatrixFragment& fragment,
                     const std::array<std::uint32_t, 8>& slots, Matrix<std::int32_t>& matrix) {
  const auto convert = [&](auto f) {
    gather<std::uint32_t>(registers, fragment, slots, matrix, f);
  };
  switch (fragment.element) {
    case MatrixElement::s8:
      convert([](std::uint32_t bits) { return std::int32_t{static_cast<std::int8_t>(bits)}; });
      break;
    case MatrixElement::u8:
      convert([](std::uint32_t bits) { return static_cast<std::int32_t>(bits & 255); });
      break;
    case MatrixElement::s4:
      convert([](std::uint32_t bits) { return static_cast<std::int32_t>(bits << 28) >> 28; });
      break;
    case MatrixElement::u4:
      convert([](std::uint32_t bits) { return static_cast<std::int32_t>(bits & 15); });
      break;
    default:
      convert([](std::uint32_t bits) { return static_cast<std::int32_t>(bits); });
      break;
  }
}

/// sums[i][j] = f(sums[i][j], a[i][k], b[k][j]) in the order of increasing k.
template <class T, class F>
inline void accumulate(const MatrixMultiply& multiply, const Matrix<T>& a, const Matrix<T>& b,
                       Matrix<T>& sums, F f) {
  const std::uint32_t inner = multiply.a.columns;
  const std::uint32_t columns = multiply.b.columns;
  for (std::uint32_t i = 0; i < multiply.a.rows; ++i) {
    T* const row = sums.data() + std::size_t{i} * columns;
    for (std::uint32_t k = 0; k < inner; ++k) {
      const T factor = a[i * inner + k];
      const T* const other = b.data() + std::size_t{k} * columns;
      for (std::uint32_t j = 0; j < columns; ++j) row[j] = f(row[j], factor, other[j]);
    }
  }
}

void multiply_doubles(std::byte* registers, const MatrixMultiply& multiply) {
  Matrix<double> a, b, sums;
  const auto convert = [](std::uint64_t bits) { return std::bit_cast<double>(bits); };
  gather<std::uint64_t>(registers, multiply.a, multiply.a_values, a, convert);
  gather<std::uint64_t>(registers, multiply.b, multiply.b_values, b, convert);
  gather<std::uint64_t>(registers, multiply.c, multiply.c_values, sums, convert);
  accumulate(multiply, a, b, sums,
             [](double sum, double x, double y) { return std::fma(x, y, sum); });
  scatter<std::uint64_t>(registers, multiply.d, multiply.d_values, sums, [](double value) {
    return std::isnan(value) ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(value);
  });
}

void multiply_floats(std::byte* registers, const MatrixMultiply& multiply) {
  Matrix<float> a, b, sums;
  gather_floats(registers, multiply.a, multiply.a_values, a);
  gather_floats(registers, multiply.b, multiply.b_values, b);
  gather_floats(registers, multiply.c, multiply.c_values, sums);
  if (multiply.a.element == MatrixElement::f16) {
    // Products of f16 are exact in f32: no fused operation is needed.
    accumulate(multiply, a, b, sums, [](float sum, float x, float y) { return sum + x * y; });
  } else {
    accumulate(multiply, a, b, sums,
               [](float sum, float x, float y) { return std::fma(x, y, sum); });
  }
  if (multiply.d.element == MatrixElement::f16) {
    scatter<std::uint32_t>(registers, multiply.d, multiply.d_values, sums, [](float value) {
      return std::uint32_t{double_to_half(static_cast<double>(value))};
    });
    return;
  }
  scatter<std::uint32_t>(registers, multiply.d, multiply.d_values, sums, [](float value) {
    return std::isnan(value) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(value);
  });
}

void multiply_integers(std::byte* registers, const MatrixMultiply& multiply) {
  Matrix<std::int32_t> a, b, c, sums{};
  gather_integers(registers, multiply.a, multiply.a_values, a);
  gather_integers(registers, multiply.b, multiply.b_values, b);
  gather_integers(registers, multiply.c, multiply.c_values, c);
  using Word = std::int32_t;
  // The sums without C have at most 24 bits.
  if (multiply.a.element != MatrixElement::b1) {
    accumulate(multiply, a, b, sums, [](Word sum, Word x, Word y) { return sum + x * y; });
  } else if (multiply.by_and) {
    accumulate(multiply, a, b, sums, [](Word sum, Word x, Word y) {
      return sum + std::popcount(static_cast<std::uint32_t>(x & y));
    });
  } else {
    accumulate(multiply, a, b, sums, [](Word sum, Word x, Word y) {
      return sum + std::popcount(static_cast<std::uint32_t>(x ^ y));
    });
  }
  const std::size_t size = std::size_t{multiply.c.rows} * multiply.c.columns;
  for (std::size_t i = 0; i < size; ++i) {
    std::int64_t sum = std::int64_t{c[i]} + sums[i];
    if (multiply.saturate) {
      sum = std::clamp<std::int64_t>(sum, std::numeric_limits<Word>::min(),
                                     std::numeric_limits<Word>::max());
    }
    sums[i] = static_cast<Word>(sum);
  }
  scatter<std::uint32_t>(registers, multiply.d, multiply.d_values, sums,
                         [](Word value) { return static_cast<std::uint32_t>(value); });
}

}  // namespace

void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply) {
  switch (multiply.c.element) {
    case MatrixElement::f64:
      multiply_doubles(registers, multiply);
      break;
    case MatrixElement::s32:
      multiply_integers(registers, multiply);
      break;
    default:
      multiply_floats(registers, multiply);
      break;
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
