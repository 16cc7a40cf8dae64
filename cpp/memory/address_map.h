#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string_view>

namespace warpstack {

/// Division by a number that is fixed early: a shift by powers of two, a multiplication for numbers
/// below 2^32.
class Divisor {
 public:
  explicit Divisor(std::uint64_t value)
      : value_(value),
        shift_(std::has_single_bit(value) ? std::countr_zero(value) : -1),
        reciprocal_(~std::uint64_t{0} / value + 1) {}
  [[nodiscard]] std::uint64_t quotient(std::uint64_t n) const {
    if (shift_ >= 0) return n >> shift_;
    // The reciprocal is too large by less than value / 2^64: below 2^32 that never carries.
    if ((n | value_) >> 32 == 0) return high_product(n, reciprocal_);
    return n / value_;
  }
  [[nodiscard]] std::uint64_t remainder(std::uint64_t n) const {
    return shift_ >= 0 ? n & (value_ - 1) : n - quotient(n) * value_;
  }

 private:
  /// Upper 64 bits of the product of a number below 2^32 and another one.
  static std::uint64_t high_product(std::uint64_t small, std::uint64_t n) {
    const std::uint64_t low = small * (n & 0xffffffff);
    return (small * (n >> 32) + (low >> 32)) >> 32;
  }

  std::uint64_t value_;
  int shift_;
  std::uint64_t reciprocal_;  ///< 2^64 / value, rounded up
};

/// How line numbers spread over sets, or chunks of the address space over slices.
enum class Indexing : std::uint8_t {
  modulo,
  xor_hash,  ///< the bits above the index are folded onto it by exclusive or
  ipoly,     ///< remainder of the division by an irreducible polynomial over GF(2) (Rau, ISCA 1991)
};
inline constexpr std::size_t num_indexings = 3;
std::string_view name_of(Indexing indexing);

/// A map from numbers to `buckets` buckets. The hashes work on the next power of two; where the
/// number of buckets is none, their result is taken modulo that number.
class AddressMap {
 public:
  AddressMap(std::uint64_t buckets, Indexing indexing);

  [[nodiscard]] std::uint64_t operator()(std::uint64_t n) const {
    switch (indexing_) {
      case Indexing::modulo:
        break;
      case Indexing::xor_hash:
        n = fold(n);
        break;
      case Indexing::ipoly:
        n = divide(n);
        break;
    }
    return by_buckets_.remainder(n);
  }

 private:
  /// Remainders of each byte of a number.
  using Remainders = std::array<std::array<std::uint32_t, 256>, 8>;

  [[nodiscard]] std::uint64_t fold(std::uint64_t n) const {
    if (bits_ == 0) return 0;
    std::uint64_t result = 0;
    for (; n != 0; n >>= bits_) result ^= n & ((std::uint64_t{1} << bits_) - 1);
    return result;
  }
  [[nodiscard]] std::uint64_t divide(std::uint64_t n) const {
    std::uint64_t result = 0;
    for (std::size_t byte = 0; n != 0; ++byte, n >>= 8) result ^= (*remainders_)[byte][n & 255];
    return result;
  }

  Indexing indexing_;
  Divisor by_buckets_;
  unsigned bits_;  ///< of the next power of two
  std::shared_ptr<const Remainders> remainders_;
};

}  // namespace warpstack
