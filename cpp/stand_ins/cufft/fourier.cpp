#include "stand_ins/cufft/fourier.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace warpstack::cufft {
namespace {

/// exp(-pi i numerator / denominator).
Complex root(std::int64_t numerator, std::int64_t denominator) {
  const double angle =
      -std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), std::sin(angle)};
}

/// Without the test for infinite parts that operator* makes.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

std::vector<std::int64_t> prime_factors(std::int64_t length) {
  std::vector<std::int64_t> factors;
  for (std::int64_t prime = 2; prime * prime <= length; ++prime) {
    for (; length % prime == 0; length /= prime) factors.push_back(prime);
  }
  if (length > 1) factors.push_back(length);
  return factors;
}

std::int64_t convolution_length(std::int64_t length) {
  std::int64_t wide = 1;
  while (wide < 2 * length - 1) wide *= 2;
  return wide;
}

Fourier::Fourier(std::int64_t length) : length_(length), factors_(prime_factors(length)) {
  if (factors_.empty() || factors_.back() <= largest_factor) {
    for (std::int64_t k = 0; k < length; ++k) roots_.push_back(root(2 * k, length));
    other_.resize(static_cast<std::size_t>(length));
    return;
  }
  wide_ = std::make_unique<Fourier>(convolution_length(length));
  const auto width = static_cast<std::size_t>(wide_->length());
  filter_.resize(width);
  other_.resize(width);
  std::int64_t square = 0;  // of k, modulo twice the length
  for (std::int64_t k = 0; k < length; ++k) {
    chirp_.push_back(root(square, length));
    square = (square + 2 * k + 1) % (2 * length);
    const auto at = static_cast<std::size_t>(k);
    filter_[at] = filter_[(width - at) % width] = std::conj(chirp_.back());
  }
  wide_->transform(filter_.data(), false);
}

void Fourier::transform(Complex* numbers, bool inverse) {
  const auto conjugate = [&] {
    for (std::int64_t k = 0; k < length_; ++k) numbers[k] = std::conj(numbers[k]);
  };
  if (inverse) conjugate();
  if (wide_ == nullptr) {
    divide(numbers);
  } else {
    convolve(numbers);
  }
  if (inverse) conjugate();
}

void Fourier::divide(Complex* numbers) {
  Complex* from = numbers;
  Complex* to = other_.data();
  std::int64_t length = length_;  // of each of the transforms that are left
  std::int64_t count = 1;
  Complex parts[largest_factor];
  for (const std::int64_t factor : factors_) {
    const std::int64_t shorter = length / factor;
    for (std::int64_t q = 0; q < shorter; ++q) {
      for (std::int64_t k = 0; k < count; ++k) {
        for (std::int64_t j = 0; j < factor; ++j) parts[j] = from[k + count * (q + shorter * j)];
        for (std::int64_t r = 0; r < factor; ++r) {
          Complex sum = parts[0];
          if (factor == 2) {
            sum = r == 0 ? sum + parts[1] : sum - parts[1];
          } else {
            for (std::int64_t j = 1; j < factor; ++j) {
              sum += product(parts[j], roots_[j * r % factor * (length_ / factor)]);
            }
          }
          to[k + count * (factor * q + r)] = product(sum, roots_[q * r * count]);
        }
      }
    }
    length = shorter;
    count *= factor;
    std::swap(from, to);
  }
  if (from == numbers) return;
  for (std::int64_t k = 0; k < length_; ++k) numbers[k] = from[k];
}

void Fourier::convolve(Complex* numbers) {
  std::vector<Complex>& wide = other_;
  const std::size_t width = wide.size();
  for (std::size_t k = 0; k < width; ++k) {
    wide[k] = k < chirp_.size() ? product(numbers[k], chirp_[k]) : Complex{};
  }
  wide_->transform(wide.data(), false);
  for (std::size_t k = 0; k < width; ++k) wide[k] = product(wide[k], filter_[k]);
  wide_->transform(wide.data(), true);
  const double share = 1.0 / static_cast<double>(width);
  for (std::size_t k = 0; k < chirp_.size(); ++k) {
    numbers[k] = product(wide[k] * share, chirp_[k]);
  }
}

}  // namespace warpstack::cufft
