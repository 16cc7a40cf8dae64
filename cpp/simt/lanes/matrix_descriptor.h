#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "simt/program/async_operations.h"
#include "simt/program/tensor_map.h"

namespace warpstack::simt {

/// Rows of a product of four warps that one warp has.
inline constexpr std::uint32_t warp_rows = 16;
/// Every row of A, and every column of B, is so long.
inline constexpr std::uint32_t factor_bytes = 32;
inline constexpr std::uint32_t max_warpgroup_columns = 256;

/// A row of A or a column of B.
using FactorRow = std::array<std::byte, factor_bytes>;

/// What a 64-bit descriptor says of a factor in shared memory (PTX ISA, "Matrix descriptor").
struct MatrixDescriptor {
  std::uint64_t start = 0;    ///< byte address in shared memory
  std::uint64_t leading = 0;  ///< bytes, see address()
  std::uint64_t stride = 0;
  std::uint64_t phase = 0;  ///< 128-byte rows between the start of the swizzle's pattern and a
                            ///< multiple of its size
  Swizzle swizzle = Swizzle::none;

  [[nodiscard]] static MatrixDescriptor unpack(std::uint64_t bits);

  /// Address of the byte `k` of row `row` of a factor that lies by rows (K-major). It consists of
  /// blocks of 8 rows, `stride` bytes apart. Without a swizzle 16 bytes of 8 rows are neighbours,
  /// and the other 16 bytes of each are `leading` bytes behind; with one, rows are as long as its
  /// pattern.
  [[nodiscard]] std::uint64_t by_rows(std::uint32_t row, std::uint32_t k) const;
  /// Address of the element `k` of row `row` of a factor of 16-bit elements that lies by columns
  /// (M- or N-major). It consists of blocks of 8 k by as many rows as its pattern holds, `leading`
  /// bytes apart along the rows and `stride` along k; without a swizzle, of 8 by 8 and the other
  /// way round.
  [[nodiscard]] std::uint64_t by_columns(std::uint32_t row, std::uint32_t k) const;
};

/// D = A * B + D of a warp: 16 rows of A, `multiply.columns` columns of B. Sums are as those of
/// multiply_matrices(): in the order of increasing k, of f32 for floats, and those of f16 are
/// rounded once, at the end. `accumulates`: D counts, else it is zero.
void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b);

}  // namespace warpstack::simt
