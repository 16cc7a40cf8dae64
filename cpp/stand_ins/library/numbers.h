#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Numbers in a program's memory, which libraries compute with in f64.
namespace warpstack::library {

using Complex = std::complex<double>;

/// Of the numbers in the program's memory.
enum class Precision { f16, bf16, f32, f64 };

namespace of_16_bits {

/// A format of 16 bits.
struct Format {
  int fraction_bits;
  int least_exponent;  ///< of normal numbers
};
inline constexpr Format half{10, -14}, brain{7, -126};

inline double widen(std::uint16_t bits, Format format) {
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const int field = (bits & 0x7fff) >> format.fraction_bits;
  const int most = (1 << (15 - format.fraction_bits)) - 1;
  double size = 0;
  if (field == most) {
    size = fraction == 0 ? INFINITY : NAN;
  } else {
    const int hidden = field == 0 ? 0 : 1 << format.fraction_bits;
    size = std::ldexp(hidden + fraction,
                      std::max(field, 1) - 1 + format.least_exponent - format.fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

inline std::uint16_t narrow(double value, Format format) {
  const unsigned sign = std::signbit(value) ? 0x8000 : 0;
  const unsigned infinite = 0x7fff >> format.fraction_bits << format.fraction_bits;
  const double size = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinite | 1);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinite);
  if (size == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(size), format.least_exponent);
  const double units = std::nearbyint(std::ldexp(size, format.fraction_bits - exponent));
  // The hidden bit of a normal number counts as one of the exponent.
  const double bits = std::ldexp(exponent - format.least_exponent, format.fraction_bits) + units;
  return static_cast<std::uint16_t>(
      sign |
      std::min(infinite, static_cast<unsigned>(std::min(bits, static_cast<double>(infinite)))));
}

}  // namespace of_16_bits

template <typename T>
T element(const std::byte* numbers, std::int64_t index) {
  T value;
  std::memcpy(&value, numbers + index * static_cast<std::int64_t>(sizeof(T)), sizeof value);
  return value;
}

template <typename T>
void put(std::byte* numbers, std::int64_t index, T value) {
  std::memcpy(numbers + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof value);
}

/// Bytes of a real number.
inline std::size_t bytes_of(Precision precision) {
  return precision == Precision::f64 ? 8 : precision == Precision::f32 ? 4 : 2;
}

/// Number `index` of an array.
inline double load(Precision precision, const std::byte* numbers, std::int64_t index) {
  switch (precision) {
    case Precision::f16:
      return of_16_bits::widen(element<std::uint16_t>(numbers, index), of_16_bits::half);
    case Precision::bf16:
      return of_16_bits::widen(element<std::uint16_t>(numbers, index), of_16_bits::brain);
    case Precision::f32:
      return element<float>(numbers, index);
    default:
      return element<double>(numbers, index);
  }
}

/// Rounds to nearest, ties to even; what is too large becomes infinite.
inline void store(Precision precision, std::byte* numbers, std::int64_t index, double value) {
  switch (precision) {
    case Precision::f16:
      return put(numbers, index, of_16_bits::narrow(value, of_16_bits::half));
    case Precision::bf16:
      return put(numbers, index, of_16_bits::narrow(value, of_16_bits::brain));
    case Precision::f32:
      return put(numbers, index, static_cast<float>(value));
    default:
      return put(numbers, index, value);
  }
}

}  // namespace warpstack::library
