#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

namespace warpstack::cufft {

using Complex = std::complex<double>;

/// Of the numbers in the program's memory.
enum class Precision { f16, bf16, f32, f64 };

/// Bytes of a real number.
std::size_t bytes_of(Precision precision);
/// Number `index` of an array.
double load(Precision precision, const std::byte* numbers, std::int64_t index);
/// Rounds to nearest, ties to even; what is too large becomes infinite.
void store(Precision precision, std::byte* numbers, std::int64_t index, double value);

}  // namespace warpstack::cufft
