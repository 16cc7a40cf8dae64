#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "gpu/choices.h"

namespace warpstack::memory {

/// Divides by a fixed number: with a shift if it is a power of two, else with a multiplication
/// (Granlund and Montgomery, PLDI 1994, Figure 4.1).
class Divisor {
 public:
  explicit Divisor(std::uint64_t value);
  [[nodiscard]] std::uint64_t quotient(std::uint64_t n) const {
    if (is_power_) return n >> shift_;
    const std::uint64_t product = high_product(n, reciprocal_);
    return (product + (n - product) / 2) >> shift_;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }
  [[nodiscard]] std::uint64_t remainder(std::uint64_t n) const {
    return is_power_ ? n & (value_ - 1) : n - quotient(n) * value_;
  }
  /// Upper 64 bits of a product.
  [[nodiscard]] static std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{a} * b >> 64);
#else
    const std::uint64_t a_low = a & 0xffffffff;
    const std::uint64_t b_low = b & 0xffffffff;
    const std::uint64_t middle = (a >> 32) * b_low + (a_low * b_low >> 32);
    const std::uint64_t other = a_low * (b >> 32) + (middle & 0xffffffff);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
#endif
  }

 private:
  std::uint64_t value_;
  bool is_power_;
  unsigned shift_;
  /// 2^(64 + bits) / value - 2^64, rounded up, where `bits` is the bit width of value - 1.
  std::uint64_t reciprocal_ = 0;
};

using gpu::Indexing;

/// A map from numbers to `buckets` buckets. `xor_hash` works on the next power of two; where the
/// number of buckets is not one, its result is taken modulo that number.
class AddressMap {
 public:
  AddressMap(std::uint64_t buckets, Indexing indexing);

  [[nodiscard, gnu::always_inline]] std::uint64_t operator()(std::uint64_t n) const {
    return indexing_ == Indexing::modulo ? by_buckets_.remainder(n) : hash(n);
  }

 private:
  /// Remainders of each byte of a number.
  using Remainders = std::array<std::array<std::uint32_t, 256>, 8>;

  [[nodiscard]] std::uint64_t hash(std::uint64_t n) const {
    if (indexing_ == Indexing::scatter) return Divisor::high_product(mix(n), buckets_);
    if (indexing_ == Indexing::ipoly) {
      return divide(n) | (is_split_ ? turned(n >> bits_) << bits_ : 0);
    }
    n = fold(n);
    // Less than twice the number of buckets.
    return n < buckets_ ? n : n - buckets_;
  }
  /// Each bit of the result depends on all of the number (two steps of multiply and fold).
  [[nodiscard]] static std::uint64_t mix(std::uint64_t n) {
    n = (n + 1) * 0x9e3779b97f4a7c15;
    n = (n ^ (n >> 32)) * 0xbf58476d1ce4e5b9;
    return (n ^ (n >> 29)) * 0x94d049bb133111eb;
  }
  /// The remainder by the odd factor, turned on with each run of that many numbers by the golden
  /// ratio, so that strides that are multiples of the factor spread over all remainders, too. It
  /// goes on by none or one, so that neighbours never meet.
  [[nodiscard]] std::uint64_t turned(std::uint64_t n) const {
    const std::uint64_t odd = by_odd_.value();
    const std::uint64_t run = by_odd_.quotient(n);
    const std::uint64_t result = n - run * odd + Divisor::high_product(run * turn_, odd);
    return result < odd ? result : result - odd;
  }
  [[nodiscard]] std::uint64_t fold(std::uint64_t n) const {
    if (bits_ == 0) return 0;
    // Folds the upper half of the digits onto the lower one until one digit is left.
    for (unsigned shift = first_fold_; shift >= bits_; shift /= 2) n ^= n >> shift;
    return n & ((std::uint64_t{1} << bits_) - 1);
  }
  [[nodiscard]] std::uint64_t divide(std::uint64_t n) const {
    std::uint64_t result = 0;
    for (std::size_t byte = 0; n != 0; ++byte, n >>= 8) result ^= (*remainders_)[byte][n & 255];
    return result;
  }

  Indexing indexing_;
  std::uint64_t buckets_;
  Divisor by_buckets_;
  unsigned bits_;       ///< of the next power of two; ipoly: of the greatest that divides `buckets`
  Divisor by_odd_;      ///< the other factor, of ipoly
  std::uint64_t turn_;  ///< of 2^64, with each run of as many numbers: the golden ratio of one
  bool is_split_;
  unsigned first_fold_;  ///< the greatest bits_ * 2^k below 64; unused without bits
  std::shared_ptr<const Remainders> remainders_;
};

}  // namespace warpstack::memory
