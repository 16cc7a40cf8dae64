#include "simt/arithmetic/matrix_descriptor.h"

namespace warpstack::simt {

MatrixDescriptor MatrixDescriptor::unpack(std::uint64_t bits) {
  // Fields of addresses count in 16 bytes.
  const auto field = [bits](unsigned first) { return (bits >> first & 0x3fff) << 4; };
  static constexpr Swizzle swizzles[] = {Swizzle::none, Swizzle::bytes_128, Swizzle::bytes_64,
                                         Swizzle::bytes_32};
  return {.start = field(0),
          .leading = field(16),
          .stride = field(32),
          .phase = bits >> 49 & 7,
          .swizzle = swizzles[bits >> 62]};
}

std::uint64_t MatrixDescriptor::by_rows(std::uint32_t row, std::uint32_t k) const {
  const std::uint64_t block = start + row / 8 * stride;
  if (swizzle == Swizzle::none) return block + row % 8 * 16 + k / 16 * leading + k % 16;
  const std::uint64_t span = std::uint64_t{16} << static_cast<unsigned>(swizzle);
  return swizzled(block + row % 8 * span + k, swizzle, phase);
}

std::uint64_t MatrixDescriptor::by_columns(std::uint32_t row, std::uint32_t k) const {
  if (swizzle == Swizzle::none) {
    return start + row / 8 * stride + row % 8 * 2 + k / 8 * leading + k % 8 * 16;
  }
  const std::uint64_t span = std::uint64_t{16} << static_cast<unsigned>(swizzle);
  const std::uint64_t rows = span / 2;
  return swizzled(start + row / rows * leading + row % rows * 2 + k % 8 * span + k / 8 * stride,
                  swizzle, phase);
}

}  // namespace warpstack::simt
