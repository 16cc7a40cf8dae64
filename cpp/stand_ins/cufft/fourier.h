#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stand_ins/library/numbers.h"

namespace warpstack::cufft {

using library::Complex;

/// Discrete Fourier transforms of one length, unnormalised.
///
/// Lengths whose prime factors are small are divided into them (Stockham's order, which needs no
/// reversal of digits); another one is a convolution of a power of two (Bluestein, A linear
/// filtering approach to the computation of discrete Fourier transform, IEEE Transactions on Audio
/// and Electroacoustics 18, 1970).
class Fourier {
 public:
  /// The largest prime factor that a length may be divided into, as NVIDIA's guide has it.
  static constexpr std::int64_t largest_factor = 127;

  explicit Fourier(std::int64_t length);

  [[nodiscard]] std::int64_t length() const { return length_; }
  /// Replaces `length` numbers by their transform.
  void transform(Complex* numbers, bool inverse);

 private:
  void divide(Complex* numbers);
  void convolve(Complex* numbers);

  std::int64_t length_;
  std::vector<std::int64_t> factors_;
  std::vector<Complex> roots_;  ///< exp(-2 pi i k / length)
  std::vector<Complex> other_;
  // Of a convolution: its transform, exp(-pi i k^2 / length), and the transform of the filter.
  std::unique_ptr<Fourier> wide_;
  std::vector<Complex> chirp_;
  std::vector<Complex> filter_;
};

/// The prime factors of a length, ascending.
std::vector<std::int64_t> prime_factors(std::int64_t length);
/// The length of the transforms of a convolution of this length.
std::int64_t convolution_length(std::int64_t length);

}  // namespace warpstack::cufft
