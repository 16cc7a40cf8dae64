#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simt/arithmetic/matrix_descriptor.h"
#include "simt/program/tensor_memory.h"
#include "trace/instructions/product_step.h"

namespace warpstack::simt {

/// A decoded 32-bit descriptor of a product (PTX ISA, "Instruction descriptor").
struct ProductDescriptor {
  trace::ProductStep shape;
  bool is_sparse = false;
  bool is_long = false;  ///< K of 96 instead of 64
  bool saturate = false;
  bool negate_a = false;
  bool negate_b = false;
  bool transpose_a = false;        ///< A is stored by columns in shared memory
  bool transpose_b = false;        ///< B is stored by rows
  std::uint32_t scale_a_byte = 0;  ///< of the words of scales
  std::uint32_t scale_b_byte = 0;
  bool scales_are_exponents = false;  ///< ue8m0, else ue4m3

  /// Numbers that stand for no type give none.
  [[nodiscard]] static std::optional<ProductDescriptor> unpack(TensorKind kind, std::uint32_t bits);
  /// Why a product cannot be so; nothing if it can.
  [[nodiscard]] std::optional<std::string> fault(const TensorProduct& product) const;
};

/// Bits of an element in memory.
[[nodiscard]] std::uint32_t bits_of(trace::ProductElement element);

/// How elements of less than 8 bits lie in the 32 bytes of a row.
enum class ElementPacking : std::uint8_t {
  padded,  ///< 16 of them side by side, padded to 16 bytes
  bytes,   ///< one in each byte; those of 4 bits in the middle of it
  dense,   ///< side by side
};

/// The lane, and the column from D's first one on, of an element of D ("Data Path Layout
/// Organization"). Each block of a pair has half of the rows.
struct TensorPlace {
  std::uint32_t lane = 0;
  std::uint32_t column = 0;
};
[[nodiscard]] constexpr TensorPlace place_of_sum(const trace::ProductStep& shape,
                                                 const TensorProduct& product, std::uint32_t row,
                                                 std::uint32_t column) {
  const std::uint32_t rows = shape.m / product.num_blocks();
  if (product.is_of_pair) row %= rows;
  if (rows == tensor_lanes) return {row, column};
  if (!product.weights_stationary && !product.is_of_pair) {
    return {row / 16 * 32 + row % 16, column};
  }
  const std::uint32_t wide = shape.n / (tensor_lanes / rows);
  return {row + column / wide * rows, column % wide};
}
/// Parts of the columns of D that are below each other.
[[nodiscard]] constexpr std::uint32_t folds_of(const trace::ProductStep& shape,
                                               const TensorProduct& product) {
  const std::uint32_t rows = shape.m / product.num_blocks();
  return product.weights_stationary || product.is_of_pair ? tensor_lanes / rows : 1;
}

/// A factor as numbers: rows of K.
class FactorValues {
 public:
  void read(trace::ProductElement element, ElementPacking packing, std::uint32_t k,
            std::span<const FactorRow> rows, bool negate);
  /// Rows become columns.
  void turn(std::uint32_t rows, std::uint32_t k);
  [[nodiscard]] const float* data() const { return values_.data(); }

 private:
  std::vector<float> values_;
  std::vector<float> turned_;
};

/// The value of a scale of a block.
[[nodiscard]] float scale_of(std::uint8_t bits, bool is_exponent);

/// Adds to `sums`, m rows of n, the products of elements first to end of the rows of `a`, which
/// have k, and of the rows of `b`, which have n and are k: in the order of increasing k, as
/// multiply_rows() does. `is_exact`: products of two elements have at most 24 bits.
void add_products(float* sums, const float* a, const float* b, const trace::ProductStep& shape,
                  std::uint32_t first, std::uint32_t end, bool is_exact);

/// Where a register of a lane is in tensor memory, from the address of the transfer on. Packed
/// registers are in the column twice as far and in the one behind it.
[[nodiscard]] TensorPlace place_of_register(TensorShape shape, std::uint32_t lane,
                                            std::uint32_t number);

/// The bytes of 16 numbers of a TensorFill::Format other than bytes.
[[nodiscard]] std::array<std::byte, 16> spread_numbers(const std::byte* packed,
                                                       TensorFill::Format format);

}  // namespace warpstack::simt
