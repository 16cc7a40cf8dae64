// Compiled once per instruction set of the host, see arithmetic/lane_functions.h.

#include "simt/program/matrix.h"

#include <array>
#include <bit>

#include "simt/arithmetic/lane_functions.h"
#include "simt/arithmetic/matrix_tiles.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

/// The largest factor: 16 x 64 of four-bit integers; the largest result: 16 x 16.
constexpr std::size_t max_elements = 1024;
constexpr std::size_t max_sums = 256;

template <class T>
using Factor = std::array<T, max_elements>;
template <class T>
using Sums = std::array<T, max_sums>;

/// The shape of a product in tiles.
struct Tiles {
  std::uint32_t down;      ///< of A and of the result
  std::uint32_t across;    ///< of B and of the result
  std::uint32_t per_word;  ///< elements, a power of two
  std::uint32_t chunks;    ///< along k

  explicit Tiles(const MatrixMultiply& multiply)
      : down(multiply.a.rows / tile_rows),
        across(multiply.b.columns / tile_rows),
        per_word(multiply.a.per_register()),
        chunks(multiply.a.columns / row_words >> std::countr_zero(per_word)) {}

  [[nodiscard]] std::uint32_t results() const { return down * across; }
  [[nodiscard]] std::uint32_t num_sums() const { return results() * tile_sums; }
};

/// A's registers go down the rows first, B's along k.
template <class Element, class T>
void gather_a(const std::byte* registers, const MatrixMultiply& multiply, const Tiles& tiles,
              Factor<T>& values) {
  T* to = values.data();
  for (std::uint32_t row = 0; row < tiles.down; ++row) {
    for (std::uint32_t chunk = 0; chunk < tiles.chunks; ++chunk) {
      const std::uint32_t slot = multiply.a_values[chunk * tiles.down + row];
      spread_a<Element>(load_words<typename Element::Word>(registers + slot), to);
      to += Element::per_word * tile_words;
    }
  }
}

template <class Element, class T>
void gather_b(const std::byte* registers, const MatrixMultiply& multiply, const Tiles& tiles,
              Factor<T>& values) {
  T* to = values.data();
  for (std::uint32_t i = 0; i < tiles.across * tiles.chunks; ++i) {
    spread_b<Element>(load_words<typename Element::Word>(registers + multiply.b_values[i]), to);
    to += Element::per_word * tile_words;
  }
}

template <class Element, class T>
void gather(const std::byte* registers, const MatrixMultiply& multiply, const Tiles& tiles,
            Factor<T>& a, Factor<T>& b) {
  gather_a<Element>(registers, multiply, tiles, a);
  gather_b<Element>(registers, multiply, tiles, b);
}

/// Integers, whose signs may differ.
template <std::uint32_t per_word>
void gather_integers(const std::byte* registers, const MatrixMultiply& multiply, const Tiles& tiles,
                     Factor<float>& a, Factor<float>& b) {
  const auto has_sign = [](MatrixElement element) {
    return element == MatrixElement::s8 || element == MatrixElement::s4;
  };
  if (has_sign(multiply.a.element)) {
    gather_a<Signed<per_word>>(registers, multiply, tiles, a);
  } else {
    gather_a<Unsigned<per_word>>(registers, multiply, tiles, a);
  }
  if (has_sign(multiply.b.element)) {
    gather_b<Signed<per_word>>(registers, multiply, tiles, b);
  } else {
    gather_b<Unsigned<per_word>>(registers, multiply, tiles, b);
  }
}

/// Floats of at most 8 bits, whose formats may differ.
void gather_small_floats(const std::byte* registers, const MatrixMultiply& multiply,
                         const Tiles& tiles, Factor<float>& a, Factor<float>& b) {
  const auto as = [](MatrixElement element, auto gather) {
    switch (element) {
      case MatrixElement::e4m3:
        return gather(E4m3{});
      case MatrixElement::e5m2:
        return gather(E5m2{});
      case MatrixElement::e2m3:
        return gather(E2m3{});
      case MatrixElement::e3m2:
        return gather(E3m2{});
      default:
        return gather(E2m1{});
    }
  };
  as(multiply.a.element,
     [&]<class Element>(Element) { gather_a<Element>(registers, multiply, tiles, a); });
  as(multiply.b.element,
     [&]<class Element>(Element) { gather_b<Element>(registers, multiply, tiles, b); });
}

template <class Step, class T>
void multiply_tiles(const Tiles& tiles, const Factor<T>& a, const Factor<T>& b, Sums<T>& sums) {
  const std::size_t size = std::size_t{tiles.chunks} * tiles.per_word * tile_words;
  T* to = sums.data();
  for (std::uint32_t column = 0; column < tiles.across; ++column) {
    for (std::uint32_t row = 0; row < tiles.down; ++row, to += tile_sums) {
      multiply_tile<Step>(a.data() + row * size, b.data() + column * size, tiles.chunks,
                          tiles.per_word, to);
    }
  }
}

template <class T>
void gather_sums(const std::byte* registers, const std::array<std::uint32_t, 8>& slots,
                 const Tiles& tiles, Sums<T>& sums) {
  for (std::uint32_t i = 0; i < tiles.results(); ++i) {
    load_sums(registers, &slots[2 * i], sums.data() + std::size_t{i} * tile_sums);
  }
}

template <class T>
void scatter_sums(std::byte* registers, const std::array<std::uint32_t, 8>& slots,
                  const Tiles& tiles, const Sums<T>& sums) {
  for (std::uint32_t i = 0; i < tiles.results(); ++i) {
    store_sums(registers, &slots[2 * i], sums.data() + std::size_t{i} * tile_sums);
  }
}

void multiply_doubles(std::byte* registers, const MatrixMultiply& multiply) {
  const Tiles tiles(multiply);
  Factor<double> a, b;
  Sums<double> sums;
  gather<Double>(registers, multiply, tiles, a, b);
  gather_sums(registers, multiply.c_values, tiles, sums);
  multiply_tiles<Fused>(tiles, a, b, sums);
  make_nans_equal(sums.data(), tiles.num_sums());
  scatter_sums(registers, multiply.d_values, tiles, sums);
}

void multiply_floats(std::byte* registers, const MatrixMultiply& multiply) {
  const Tiles tiles(multiply);
  Factor<float> a, b;
  Sums<float> sums;
  if (multiply.c.element == MatrixElement::f16) {
    for (std::uint32_t i = 0; i < tiles.results(); ++i) {
      load_half_sums(registers, multiply.c_values[i], sums.data() + std::size_t{i} * tile_sums);
    }
  } else {
    gather_sums(registers, multiply.c_values, tiles, sums);
  }
  switch (multiply.a.element) {
    case MatrixElement::f16:
      gather<Half>(registers, multiply, tiles, a, b);
      multiply_tiles<Exact>(tiles, a, b, sums);  // products of f16 are exact in f32
      break;
    case MatrixElement::bf16:
      gather<Bfloat>(registers, multiply, tiles, a, b);
      multiply_tiles<Fused>(tiles, a, b, sums);
      break;
    case MatrixElement::tf32:
      gather<TensorFloat>(registers, multiply, tiles, a, b);
      multiply_tiles<Fused>(tiles, a, b, sums);
      break;
    default:
      gather_small_floats(registers, multiply, tiles, a, b);
      multiply_tiles<Exact>(tiles, a, b, sums);
      break;
  }
  if (multiply.d.element == MatrixElement::f16) {
    for (std::uint32_t i = 0; i < tiles.results(); ++i) {
      store_half_sums(registers, multiply.d_values[i], sums.data() + std::size_t{i} * tile_sums);
    }
    return;
  }
  make_nans_equal(sums.data(), tiles.num_sums());
  scatter_sums(registers, multiply.d_values, tiles, sums);
}

/// C and the sums of products, which are formed apart.
template <class T>
void store_integers(std::byte* registers, const MatrixMultiply& multiply, const Tiles& tiles,
                    const Sums<T>& products) {
  Sums<std::int32_t> sums;
  gather_sums(registers, multiply.c_values, tiles, sums);
  add_integers(sums.data(), products.data(), tiles.num_sums(), multiply.saturate);
  scatter_sums(registers, multiply.d_values, tiles, sums);
}

void multiply_integers(std::byte* registers, const MatrixMultiply& multiply) {
  const Tiles tiles(multiply);
  Factor<float> a, b;
  Sums<float> products{};
  if (bits_of(multiply.a.element) == 4) {
    gather_integers<8>(registers, multiply, tiles, a, b);
  } else {
    gather_integers<4>(registers, multiply, tiles, a, b);
  }
  multiply_tiles<Exact>(tiles, a, b, products);
  store_integers(registers, multiply, tiles, products);
}

void multiply_bits(std::byte* registers, const MatrixMultiply& multiply) {
  const Tiles tiles(multiply);
  Factor<std::int32_t> a, b;
  Sums<std::int32_t> counts{};
  gather<Bits>(registers, multiply, tiles, a, b);
  if (multiply.by_and) {
    multiply_tiles<Ones<true>>(tiles, a, b, counts);
  } else {
    multiply_tiles<Ones<false>>(tiles, a, b, counts);
  }
  store_integers(registers, multiply, tiles, counts);
}

}  // namespace

void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply) {
  switch (multiply.c.element) {
    case MatrixElement::f64:
      multiply_doubles(registers, multiply);
      break;
    case MatrixElement::s32:
      if (multiply.a.element == MatrixElement::b1) {
        multiply_bits(registers, multiply);
      } else {
        multiply_integers(registers, multiply);
      }
      break;
    default:
      multiply_floats(registers, multiply);
      break;
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
