// Compiled once per instruction set of the host, see arithmetic/lane_functions.h.

#include "simt/arithmetic/matrix_tiles.h"
#include "simt/arithmetic/tensor_product.h"

namespace warpstack::simt::WARPSTACK_ISA {

void add_products(float* sums, const float* a, const float* b, const trace::ProductStep& shape,
                  std::uint32_t first, std::uint32_t end, bool is_exact);

namespace {

/// Rows of 8 sums stay in registers: four of them beside each other.
template <class Step>
void add_all(float* sums, const float* a, const float* b, const trace::ProductStep& shape,
             std::uint32_t first, std::uint32_t end) {
  constexpr std::uint32_t rows_at_once = 4;
  for (std::uint32_t column = 0; column < shape.n; column += tile_rows) {
    for (std::uint32_t row = 0; row < shape.m; row += rows_at_once) {
      Row<float> held[rows_at_once];
      for (std::uint32_t i = 0; i < rows_at_once; ++i) {
        std::memcpy(&held[i], sums + (row + i) * shape.n + column, sizeof held[i]);
      }
      for (std::uint32_t k = first; k < end; ++k) {
        Row<float> other;
        std::memcpy(&other, b + k * shape.n + column, sizeof other);
        for (std::uint32_t i = 0; i < rows_at_once; ++i) {
          Step::add(held[i], a[(row + i) * shape.k + k], other);
        }
      }
      for (std::uint32_t i = 0; i < rows_at_once; ++i) {
        std::memcpy(sums + (row + i) * shape.n + column, &held[i], sizeof held[i]);
      }
    }
  }
}

}  // namespace

void add_products(float* sums, const float* a, const float* b, const trace::ProductStep& shape,
                  std::uint32_t first, std::uint32_t end, bool is_exact) {
  if (is_exact) {
    add_all<Exact>(sums, a, b, shape, first, end);
  } else {
    add_all<Fused>(sums, a, b, shape, first, end);
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
