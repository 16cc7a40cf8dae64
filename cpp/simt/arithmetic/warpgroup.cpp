// Compiled once per instruction set of the host, see arithmetic/lane_functions.h.

#include <algorithm>
#include <array>

#include "simt/arithmetic/matrix_descriptor.h"
#include "simt/arithmetic/matrix_tiles.h"

namespace warpstack::simt::WARPSTACK_ISA {

void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b);

namespace {

/// 16 bytes of 8 rows each are a tile.
constexpr std::uint32_t chunks = factor_bytes / (row_words * 4);
constexpr std::uint32_t tiles_down = warp_rows / tile_rows;
/// Elements of 8 rows of a factor: of 8 bits at most.
constexpr std::size_t max_elements = std::size_t{factor_bytes} * tile_rows;

template <class T>
using RowsOfA = std::array<std::array<T, max_elements>, tiles_down>;

const std::byte* bytes_of(std::span<const FactorRow> rows, std::uint32_t tile,
                          std::uint32_t chunk) {
  return rows[tile * tile_rows].data() + chunk * row_words * 4;
}

template <class Element, class T>
void read_a(std::span<const FactorRow> rows, RowsOfA<T>& values) {
  for (std::uint32_t tile = 0; tile < tiles_down; ++tile) {
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      spread_a<Element>(load_words<std::uint32_t>(bytes_of(rows, tile, chunk), factor_bytes),
                        values[tile].data() + chunk * Element::per_word * tile_words);
    }
  }
}

/// Multiplies one tile of 8 columns of B after the other. load(tile, sums) and store(tile, sums)
/// move the sums of a tile of the result.
template <class Element, class Step, class T, class Load, class Store>
void multiply_columns(const RowsOfA<T>& a, std::span<const FactorRow> b, Load load, Store store) {
  std::array<T, max_elements> right;
  std::array<T, tile_sums> sums;
  for (std::uint32_t column = 0; column < b.size() / tile_rows; ++column) {
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      spread_b<Element>(load_words<std::uint32_t>(bytes_of(b, column, chunk), factor_bytes),
                        right.data() + chunk * Element::per_word * tile_words);
    }
    for (std::uint32_t row = 0; row < tiles_down; ++row) {
      const std::uint32_t tile = column * tiles_down + row;
      load(tile, sums.data());
      multiply_tile<Step>(a[row].data(), right.data(), chunks, Element::per_word, sums.data());
      store(tile, sums.data());
    }
  }
}

void multiply_floats(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                     std::span<const FactorRow> a, std::span<const FactorRow> b) {
  const bool is_half = multiply.d == FactorElement::f16;
  const std::uint32_t* const slots = multiply.d_values.data();
  const auto load = [&](std::uint32_t tile, float* sums) {
    if (!accumulates) {
      std::fill_n(sums, tile_sums, 0.0f);
    } else if (is_half) {
      load_half_sums(registers, slots[tile], sums);
    } else {
      load_sums(registers, slots + std::size_t{2} * tile, sums);
    }
  };
  const auto store = [&](std::uint32_t tile, float* sums) {
    if (is_half) {
      store_half_sums(registers, slots[tile], sums);
      return;
    }
    make_nans_equal(sums, tile_sums);
    store_sums(registers, slots + std::size_t{2} * tile, sums);
  };
  RowsOfA<float> left{};
  const auto multiply_as = [&]<class Element, class Step>(Element, Step) {
    multiply_columns<Element, Step>(left, b, load, store);
  };
  switch (multiply.a) {
    case FactorElement::f16:
      read_a<Half>(a, left);
      break;
    case FactorElement::bf16:
      read_a<Bfloat>(a, left);
      break;
    case FactorElement::e4m3:
      read_a<E4m3>(a, left);
      break;
    case FactorElement::e5m2:
      read_a<E5m2>(a, left);
      break;
    default:
      read_a<TensorFloat>(a, left);
      break;
  }
  // Products do not depend on which factor is negated.
  if (multiply.negate_a != multiply.negate_b) {
    for (auto& tile : left) {
      for (float& value : tile) value = -value;
    }
  }
  // Products of the formats shorter than bf16 are exact in f32.
  switch (multiply.b) {
    case FactorElement::f16:
      multiply_as(Half{}, Exact{});
      break;
    case FactorElement::bf16:
      multiply_as(Bfloat{}, Fused{});
      break;
    case FactorElement::e4m3:
      multiply_as(E4m3{}, Exact{});
      break;
    case FactorElement::e5m2:
      multiply_as(E5m2{}, Exact{});
      break;
    default:
      multiply_as(TensorFloat{}, Fused{});
      break;
  }
}

void multiply_integers(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                       std::span<const FactorRow> a, std::span<const FactorRow> b) {
  const auto load = [](std::uint32_t, auto* sums) { std::fill_n(sums, tile_sums, 0); };
  const auto store = [&](std::uint32_t tile, const auto* products) {
    const std::uint32_t* const slots = &multiply.d_values[std::size_t{2} * tile];
    std::array<std::int32_t, tile_sums> sums{};
    if (accumulates) load_sums(registers, slots, sums.data());
    add_integers(sums.data(), products, tile_sums, multiply.saturate);
    store_sums(registers, slots, sums.data());
  };
  if (multiply.a == FactorElement::b1) {
    RowsOfA<std::int32_t> left;
    read_a<Bits>(a, left);
    multiply_columns<Bits, Ones<true>>(left, b, load, store);
    return;
  }
  RowsOfA<float> left;
  if (multiply.a == FactorElement::s8) {
    read_a<Signed<4>>(a, left);
  } else {
    read_a<Unsigned<4>>(a, left);
  }
  if (multiply.b == FactorElement::s8) {
    multiply_columns<Signed<4>, Exact>(left, b, load, store);
  } else {
    multiply_columns<Unsigned<4>, Exact>(left, b, load, store);
  }
}

}  // namespace

void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b) {
  if (multiply.d == FactorElement::s32) {
    multiply_integers(registers, multiply, accumulates, a, b);
  } else {
    multiply_floats(registers, multiply, accumulates, a, b);
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
