#include "memory/cache/address_map.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

/// Primitive polynomials over GF(2) by degree, from 1; bit i is the coefficient of x^i.
constexpr std::uint32_t polynomials[] = {
    0x3,     0x7,     0xb,     0x13,     0x25,     0x43,     0x83,     0x11d,
    0x211,   0x409,   0x805,   0x1053,   0x201b,   0x4443,   0x8003,   0x1100b,
    0x20009, 0x40081, 0x80027, 0x100009, 0x200005, 0x400003, 0x800021, 0x1000087};

}  // namespace

Divisor::Divisor(std::uint64_t value)
    : value_(value),
      is_power_(std::has_single_bit(value)),
      shift_(static_cast<unsigned>(std::bit_width(value - 1)) - (is_power_ ? 0 : 1)) {
  if (is_power_) return;
  // Long division of 2^(64 + bits) - 2^64 * value, bit by bit; the dividend's upper half is less
  // than value.
  std::uint64_t rest = (std::uint64_t{2} << shift_) - value;
  for (int bit = 0; bit < 64; ++bit) {
    const bool carries = rest >> 63 != 0;
    rest <<= 1;
    reciprocal_ <<= 1;
    if (carries || rest >= value) {
      rest -= value;
      reciprocal_ |= 1;
    }
  }
  ++reciprocal_;
}

AddressMap::AddressMap(std::uint64_t buckets, Indexing indexing)
    : indexing_(indexing),
      buckets_(buckets),
      by_buckets_(buckets),
      bits_(static_cast<unsigned>(indexing == Indexing::ipoly ? std::countr_zero(buckets)
                                                              : std::bit_width(buckets - 1))),
      by_odd_(buckets >> std::countr_zero(buckets)),
      turn_(0x9e3779b97f4a7c15 / by_odd_.value()),
      is_split_(!std::has_single_bit(buckets)),
      first_fold_(std::max(bits_, 1u)) {
  while (2 * first_fold_ < 64) first_fold_ *= 2;
  if (indexing != Indexing::ipoly) return;
  if (bits_ > std::size(polynomials)) {
    throw InputError("ipoly indexing spreads over at most 2^24 sets, not " +
                     std::to_string(buckets) + "; use xor or modulo");
  }
  auto remainders = std::make_shared<Remainders>();
  if (bits_ > 0) {
    // The remainder of x^k; that of a byte is the sum over its bits.
    const std::uint32_t polynomial = polynomials[bits_ - 1];
    std::uint32_t power = 1;
    for (auto& of_byte : *remainders) {
      std::array<std::uint32_t, 8> of_bit{};
      for (std::uint32_t& bit : of_bit) {
        bit = power;
        power <<= 1;
        if (power >> bits_ & 1) power ^= polynomial;
      }
      for (std::size_t value = 0; value < 256; ++value) {
        for (std::size_t i = 0; i < 8; ++i) {
          if (value >> i & 1) of_byte[value] ^= of_bit[i];
        }
      }
    }
  }
  remainders_ = std::move(remainders);
}

}  // namespace warpstack::memory
