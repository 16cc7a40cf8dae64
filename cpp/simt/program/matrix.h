#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace warpstack::simt {

/// The elements of matrix instructions. A `b1` matrix counts in words of 32 bits.
enum class MatrixElement : std::uint8_t {
  none,
  f16,
  bf16,
  tf32,
  f32,
  f64,
  s32,
  s8,
  u8,
  s4,
  u4,
  b1,
  e4m3,  ///< this and the next ones lie in bytes, that of 4 bits in the middle of one
  e5m2,
  e2m3,
  e3m2,
  e2m1
};

/// Floats of at most 8 bits.
[[nodiscard]] constexpr bool is_small_float(MatrixElement element) {
  return element >= MatrixElement::e4m3;
}

constexpr std::uint32_t bits_of(MatrixElement element) {
  if (is_small_float(element)) return 8;
  switch (element) {
    case MatrixElement::f16:
    case MatrixElement::bf16:
      return 16;
    case MatrixElement::f64:
      return 64;
    case MatrixElement::s8:
    case MatrixElement::u8:
      return 8;
    case MatrixElement::s4:
    case MatrixElement::u4:
      return 4;
    default:
      return 32;
  }
}

/// In A * B + C: A is M x K, B is K x N, the accumulators C and D are M x N.
enum class MatrixRole : std::uint8_t { a, b, accumulator };

struct MatrixPosition {
  std::uint32_t row = 0;
  std::uint32_t column = 0;
};

/// Which elements of a matrix the registers of a warp hold (PTX ISA, "Matrix fragments for mma"):
/// tiles of 8 rows (of B: 8 columns) by 4 registers. Lane 4 * g + t holds row g, register t. wmma,
/// whose layout the ISA leaves open, uses the same one, with more tiles.
struct MatrixFragment {
  MatrixRole role = MatrixRole::a;
  MatrixElement element = MatrixElement::none;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;

  /// Bytes of a register.
  [[nodiscard]] constexpr std::uint32_t register_bytes() const {
    return element == MatrixElement::f64 ? 8 : 4;
  }
  [[nodiscard]] constexpr std::uint32_t per_register() const {
    return 8 * register_bytes() / bits_of(element);
  }
  /// Neighbouring elements in a row (of B: in a column) that a lane holds.
  [[nodiscard]] constexpr std::uint32_t per_tile() const {
    return role == MatrixRole::accumulator ? 2 : per_register();
  }
  [[nodiscard]] constexpr std::uint32_t num_tiles() const {
    return rows * columns / warp / per_tile();
  }
  /// Registers per lane that hold different elements.
  [[nodiscard]] constexpr std::uint32_t num_registers() const {
    return num_tiles() * per_tile() / per_register();
  }
  /// The position of the first element of a lane's part of a tile. The others follow in the row (of
  /// B: in the column).
  [[nodiscard]] constexpr MatrixPosition position(std::uint32_t tile, std::uint32_t lane) const {
    const std::uint32_t g = lane / 4;
    const std::uint32_t along = lane % 4 * per_tile();
    if (role == MatrixRole::b) {
      const std::uint32_t chunks = rows / (4 * per_tile());
      return {tile % chunks * 4 * per_tile() + along, tile / chunks * 8 + g};
    }
    const std::uint32_t row_tiles = rows / 8;
    return {tile % row_tiles * 8 + g, tile / row_tiles * 4 * per_tile() + along};
  }

 private:
  static constexpr std::uint32_t warp = 32;
};

/// D = A * B + C by a warp.
struct MatrixMultiply {
  MatrixFragment a, b, c, d;
  bool saturate = false;                    ///< .satfinite
  bool by_and = false;                      ///< b1: counts the ones of `and`, else of `xor`
  std::array<std::uint32_t, 8> a_values{};  ///< slots
  std::array<std::uint32_t, 8> b_values{};
  std::array<std::uint32_t, 8> c_values{};
  std::array<std::uint32_t, 8> d_values{};
};

/// Multiplies and accumulates; all lanes take part. Products are exact and added to C in the order
/// of increasing k. Sums are f32 for accumulators of f16, which are rounded once at the end, and of
/// f32; f64 for f64. Integer sums are exact and wrap around or saturate at the end. The ISA leaves
/// the order and the precision of sums open.
void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply);

}  // namespace warpstack::simt
