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

std::optional<MatrixDescriptor> MatrixDescriptor::unpack_of_tensor(std::uint64_t bits) {
  constexpr std::uint64_t is_absolute = std::uint64_t{1} << 52;
  MatrixDescriptor result = unpack(bits & ~(std::uint64_t{3} << 62));
  if ((bits & is_absolute) != 0) return {};
  switch (bits >> 61) {
    case 0:
      break;
    case 1:
      result.swizzle = Swizzle::bytes_128_by_32;
      break;
    case 2:
      result.swizzle = Swizzle::bytes_128;
      break;
    case 4:
      result.swizzle = Swizzle::bytes_64;
      break;
    case 6:
      result.swizzle = Swizzle::bytes_32;
      break;
    default:
      return {};
  }
  return result;
}

std::uint64_t MatrixDescriptor::by_rows(std::uint32_t row, std::uint32_t k) const {
  const std::uint64_t block = start + row / 8 * stride;
  if (swizzle == Swizzle::none) return block + row % 8 * 16 + k / 16 * leading + k % 16;
  const std::uint64_t span = span_of(swizzle);
  return swizzled(block + row % 8 * span + k, swizzle, phase);
}

std::uint64_t MatrixDescriptor::by_columns(std::uint32_t row, std::uint32_t k,
                                           std::uint32_t element_bytes) const {
  const std::uint64_t span = span_of(swizzle);
  const std::uint64_t rows = span / element_bytes;
  const std::uint64_t in_row = row % rows * element_bytes;
  if (swizzle == Swizzle::none) {
    return start + row / rows * stride + in_row + k / 8 * leading + k % 8 * span;
  }
  const std::uint64_t height = swizzle == Swizzle::bytes_128_by_32 ? 4 : 8;
  const std::uint64_t address =
      start + row / rows * leading + in_row + k % height * span + k / height * stride;
  return swizzled(address, swizzle, phase);
}

}  // namespace warpstack::simt
