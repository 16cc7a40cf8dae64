#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "simt/program/async_operations.h"
#include "simt/program/tensor_map.h"

namespace warpstack::simt {

/// Rows that one warp has of a product of four warps.
inline constexpr std::uint32_t warp_rows = 16;
/// Length of every row of A and of every column of B.
inline constexpr std::uint32_t factor_bytes = 32;
inline constexpr std::uint32_t max_warpgroup_columns = 256;

/// A row of A or a column of B.
using FactorRow = std::array<std::byte, factor_bytes>;

/// A decoded 64-bit descriptor of a factor in shared memory (PTX ISA, "Matrix descriptor").
struct MatrixDescriptor {
  std::uint64_t start = 0;    ///< byte address in shared memory
  std::uint64_t leading = 0;  ///< bytes, see address()
  std::uint64_t stride = 0;
  std::uint64_t phase = 0;  ///< 128-byte rows between the start of the swizzle's pattern and a
                            ///< multiple of its size
  Swizzle swizzle = Swizzle::none;

  [[nodiscard]] static MatrixDescriptor unpack(std::uint64_t bits);
  /// The same for operations on tensor memory, which have swizzles in other bits. Nothing if it
  /// names none of them, or an absolute address in place of `leading`.
  [[nodiscard]] static std::optional<MatrixDescriptor> unpack_of_tensor(std::uint64_t bits);

  /// Address of byte `k` of row `row` of a factor stored by rows (K-major). It consists of blocks
  /// of 8 rows, `stride` bytes apart. Without a swizzle, the first 16 bytes of 8 rows are
  /// neighbours, and the other 16 bytes of each row are `leading` bytes behind; with one, rows are
  /// as long as its pattern.
  [[nodiscard]] std::uint64_t by_rows(std::uint32_t row, std::uint32_t k) const;
  /// Address of element `k` of row `row` of a factor of elements of 1, 2 or 4 bytes stored by
  /// columns (M- or N-major). It consists of blocks of 8 k by as many rows as its pattern holds,
  /// `leading` bytes apart along the rows and `stride` along k; without a swizzle, of blocks of 8 k
  /// by 16 bytes, with `leading` and `stride` exchanged; of 4 k where pieces have 32 bytes.
  [[nodiscard]] std::uint64_t by_columns(std::uint32_t row, std::uint32_t k,
                                         std::uint32_t element_bytes = 2) const;
};

/// Computes D = A * B + D for a warp: 16 rows of A, `multiply.columns` columns of B. Sums are
/// formed as in multiply_matrices(): in the order of increasing k, in f32 for floats; those of f16
/// are rounded once, at the end. Unless `accumulates`, D counts as zero.
void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b);

}  // namespace warpstack::simt
