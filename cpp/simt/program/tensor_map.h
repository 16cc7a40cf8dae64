#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace warpstack::simt {

/// The elements of a tensor, numbered as tensormap.replace does (PTX ISA, Section 9.7.9.27).
enum class TensorElement : std::uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f32_ftz,
  f64,
  bf16,
  tf32,
  tf32_ftz
};
inline constexpr std::size_t num_tensor_elements = 13;

constexpr std::uint32_t bytes_of(TensorElement element) {
  switch (element) {
    case TensorElement::u8:
      return 1;
    case TensorElement::u16:
    case TensorElement::f16:
    case TensorElement::bf16:
      return 2;
    case TensorElement::u64:
    case TensorElement::s64:
    case TensorElement::f64:
      return 8;
    default:
      return 4;
  }
}

constexpr bool is_float(TensorElement element) { return element >= TensorElement::f16; }

/// The order of a tile's rows in shared memory: plain, or with the 16-byte pieces of 32, 64 or 128
/// bytes exchanged, so that columns have no bank conflicts; or larger pieces of 128 bytes. The
/// numbers are those of CUtensorMapSwizzle.
enum class Swizzle : std::uint8_t {
  none,
  bytes_32,
  bytes_64,
  bytes_128,
  bytes_128_by_32,      ///< pieces of 32 bytes
  bytes_128_by_64 = 6,  ///< pieces of 64 bytes
};

/// Whether there is one of a number.
constexpr bool is_swizzle(std::uint64_t number) { return number <= 4 || number == 6; }

/// Bytes within which pieces are exchanged; 16 without a swizzle.
constexpr std::uint32_t span_of(Swizzle swizzle) {
  return swizzle > Swizzle::bytes_128 ? 128 : 16u << static_cast<unsigned>(swizzle);
}

/// Where a byte of shared memory lies under a swizzle: bits 4 to 6 of its address change with bits
/// 7 to 9; with larger pieces, bits 5 and 6 with bits 7 and 8, or bit 6 with bit 7. `phase` counts
/// 128 bytes by which the pattern is shifted.
constexpr std::uint64_t swizzled(std::uint64_t address, Swizzle swizzle, std::uint64_t phase = 0) {
  const std::uint64_t row = (address >> 7) - phase;
  if (swizzle == Swizzle::bytes_128_by_32) return address ^ ((row & 3) << 5);
  if (swizzle == Swizzle::bytes_128_by_64) return address ^ ((row & 1) << 6);
  const std::uint64_t bits = (std::uint64_t{1} << static_cast<unsigned>(swizzle)) - 1;
  return address ^ ((row & bits) << 4);
}

enum class TensorMapField : std::uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  fill_mode,
};

/// A tensor in global memory and the box of it that a copy moves; dimension 0 is the innermost,
/// whose elements are neighbours. A CUtensorMap holds one, in the layout that machine code for
/// sm_90a assumes.
struct TensorMap {
  static constexpr std::uint32_t max_rank = 5;
  static constexpr std::size_t bytes = 128;  ///< of a CUtensorMap

  std::uint64_t address = 0;                          ///< in global memory
  std::array<std::uint64_t, max_rank - 1> strides{};  ///< bytes, of the dimensions from 1 on
  std::array<std::uint32_t, max_rank> sizes{};        ///< elements; 0 stands for 2^32
  std::array<std::uint32_t, max_rank> box{};          ///< elements
  std::array<std::uint32_t, max_rank> steps{};        ///< every how-manieth element is copied
  std::uint8_t rank = 1;
  TensorElement element = TensorElement::u8;
  std::uint8_t interleave = 0;  ///< 0: none, others are refused
  Swizzle swizzle = Swizzle::none;
  bool fills_nan = false;  ///< elements outside the tensor are NaN, else zero

  /// The map as a CUtensorMap.
  [[nodiscard]] std::array<std::byte, bytes> pack() const;
  [[nodiscard]] static TensorMap unpack(std::span<const std::byte, bytes> packed);

  /// Changes a field as tensormap.replace does. `value` is the rank less one, a number of
  /// TensorElement or Swizzle, a stride in bytes. Throws InputError that names a wrong value.
  void replace(TensorMapField field, std::uint32_t ordinal, std::uint64_t value);
  /// Throws InputError that names the first field with which a copy cannot work.
  void check() const;

  /// Elements of the tile in shared memory along a dimension.
  [[nodiscard]] std::uint32_t tile_size(std::uint32_t dimension) const {
    return (box[dimension] + steps[dimension] - 1) / steps[dimension];
  }
  [[nodiscard]] std::uint64_t size(std::uint32_t dimension) const {
    return sizes[dimension] == 0 ? std::uint64_t{1} << 32 : sizes[dimension];
  }
  /// The bytes of a tile in shared memory.
  [[nodiscard]] std::uint64_t tile_bytes() const;
};

}  // namespace warpstack::simt
