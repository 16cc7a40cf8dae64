#pragma once

#include <cstddef>
#include <cstdint>

#include "stand_ins/library/numbers.h"

namespace warpstack::cusparse {

using library::Complex;

/// Bytes of a number of a cudaDataType. Throws Failure(not_supported) if it is none that the
/// stand-in knows; `name` is the argument's.
std::size_t bytes_of_type(int type, const char* name);
bool is_complex(int type);
bool is_integer(int type);

/// Number `index` of an array, and its replacement: rounded to nearest.
Complex load_value(int type, const std::byte* numbers, std::int64_t index);
void store_value(int type, std::byte* numbers, std::int64_t index, Complex value);

/// a * b, where an imaginary part of zero stands for a real number: infinity times it is no NaN.
inline Complex product(Complex a, Complex b) {
  if (a.imag() == 0 && b.imag() == 0) return a.real() * b.real();
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// a / b, likewise.
inline Complex quotient(Complex a, Complex b) {
  if (b.imag() == 0) {
    return {a.real() / b.real(), a.imag() == 0 ? 0.0 : a.imag() / b.real()};
  }
  return a / b;
}

}  // namespace warpstack::cusparse
