#pragma once

#include <cstdint>

namespace warpstack::simt {

/// The narrow formats of cvt, and the other formats to which it rounds an f32.
enum class NarrowFormat : std::uint8_t {
  e4m3,
  e5m2,
  e2m3,
  e3m2,
  e2m1,
  ue8m0,  ///< only exponents, without a sign
  s2f6,   ///< 64ths, in two's complement
  f16,
  bf16,
  tf32,
};

enum class NarrowRounding : std::uint8_t {
  nearest,  ///< ties to even
  away,     ///< to nearest, ties away from zero
  zero,
  up,
  random,  ///< .rs: away from zero if random bits plus the cut-off bits carry
};

/// `LaneOperands::immediate` of the operations narrow and widen.
///
/// narrow rounds the f32 of source[0], or its two halves, and for a pair also the f32 of source[1],
/// which becomes the lower one. source[2] holds the scales of a pair (two ue8m0), or random bits.
/// widen converts a pair in source[0] to two f16 or bf16, each times its scale in source[1].
struct NarrowConversion {
  /// The type of the other side: f32, or a pair of f16 or bf16.
  enum class Wide : std::uint8_t { f32, f16x2, bf16x2 };

  NarrowFormat format = NarrowFormat::e4m3;
  Wide wide = Wide::f32;
  NarrowRounding rounding = NarrowRounding::nearest;
  bool is_pair = true;
  bool saturates = false;  ///< .satfinite: numbers that are too large become the largest
  bool clips = false;      ///< .relu
  bool is_scaled = false;

  [[nodiscard]] constexpr std::uint32_t encoded() const {
    return static_cast<std::uint32_t>(format) | static_cast<std::uint32_t>(wide) << 4 |
           static_cast<std::uint32_t>(rounding) << 6 | std::uint32_t{is_pair} << 9 |
           std::uint32_t{saturates} << 10 | std::uint32_t{clips} << 11 |
           std::uint32_t{is_scaled} << 12;
  }
  static constexpr NarrowConversion decoded(std::uint32_t bits) {
    return {.format = static_cast<NarrowFormat>(bits & 15),
            .wide = static_cast<Wide>(bits >> 4 & 3),
            .rounding = static_cast<NarrowRounding>(bits >> 6 & 7),
            .is_pair = (bits >> 9 & 1) != 0,
            .saturates = (bits >> 10 & 1) != 0,
            .clips = (bits >> 11 & 1) != 0,
            .is_scaled = (bits >> 12 & 1) != 0};
  }
};

/// Bits between the values of a pair.
constexpr std::uint32_t stride_of(NarrowFormat format) {
  switch (format) {
    case NarrowFormat::e2m1:
      return 4;
    case NarrowFormat::f16:
    case NarrowFormat::bf16:
      return 16;
    case NarrowFormat::tf32:
      return 32;
    default:
      return 8;
  }
}

}  // namespace warpstack::simt
