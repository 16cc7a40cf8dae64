#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "simt/arithmetic/half_bits.h"

// Products of matrices, tile by tile. A tile of a factor has 8 rows (of B: columns) of 4 words,
// each of which holds 1 to 8 neighbours of the row (column). A register of a warp is such a tile:
// lane 4 * g + t holds word t of row g. So are 16 bytes each of 8 rows in shared memory. Tiles of
// sums have 8 x 8 elements. The loops over a tile have constant bounds, for the compiler's vectors.
// All of it has internal linkage.

#ifndef WARPSTACK_ISA
#define WARPSTACK_ISA baseline
#endif

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

constexpr std::uint32_t tile_rows = 8;
constexpr std::uint32_t row_words = 4;
constexpr std::uint32_t tile_words = tile_rows * row_words;
/// Sums of a tile.
constexpr std::uint32_t tile_sums = tile_rows * tile_rows;

/// The column at a place in a row of 8 sums: even columns come first, as a lane has the columns
/// 2 * t and 2 * t + 1 in two registers.
constexpr std::uint32_t column_at(std::uint32_t place) {
  return place < row_words ? 2 * place : 2 * (place - row_words) + 1;
}

/// The types of elements: how many a word holds, and the value of the one in its low bits.
template <class WordType, class ValueType, std::uint32_t count>
struct ElementOf {
  using Word = WordType;
  using Value = ValueType;
  static constexpr std::uint32_t per_word = count;
  static constexpr std::uint32_t bits = 8 * sizeof(Word) / count;
};
struct Half : ElementOf<std::uint32_t, float, 2> {
  // half_to_float() without types of 16 bits, which slow vectors down.
  static float value(std::uint32_t word) {
    const std::uint32_t magnitude = (word & 0x7fffu) << 13;
    auto bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    // Compared as signed numbers, as vectors are.
    bits |= static_cast<std::int32_t>(magnitude) >= 0x7c00 << 13 ? 0x7f800000u : 0;
    return std::bit_cast<float>(bits | (word & 0x8000u) << 16);
  }
};
struct Bfloat : ElementOf<std::uint32_t, float, 2> {
  static float value(std::uint32_t word) { return std::bit_cast<float>(word << 16); }
};
struct TensorFloat : ElementOf<std::uint32_t, float, 1> {  // the units ignore the low bits
  static float value(std::uint32_t word) { return std::bit_cast<float>(word & 0xffffe000u); }
};
/// An 8-bit float of four exponent bits, without infinities (OCP 8-bit floating point).
struct E4m3 : ElementOf<std::uint32_t, float, 4> {
  static float value(std::uint32_t word) {
    const std::uint32_t magnitude = (word & 0x7fu) << 20;
    // Increases the exponent's bias by 120, for subnormal values, too.
    auto bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p120f);
    bits = (word & 0x7fu) == 0x7fu ? 0x7fc00000u : bits;
    return std::bit_cast<float>(bits | (word & 0x80u) << 24);
  }
};
struct E5m2 : ElementOf<std::uint32_t, float, 4> {  // the upper half of an f16
  static float value(std::uint32_t word) { return Half::value(word << 8); }
};
/// A float of so many exponent and fraction bits behind its sign in bit 5 of a byte, without
/// infinities and NaN (OCP microscaling formats).
template <std::uint32_t exponent_bits, std::uint32_t fraction_bits>
struct SmallFloat : ElementOf<std::uint32_t, float, 4> {
  static float value(std::uint32_t word) {
    constexpr std::uint32_t unused = 5 - exponent_bits - fraction_bits;
    constexpr std::uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    constexpr float scale = std::bit_cast<float>((127 + 127 - bias) << 23);
    const std::uint32_t magnitude = (word & 0x1fu) >> unused << (23 - fraction_bits);
    const auto bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * scale);
    return std::bit_cast<float>(bits | (word & 0x20u) << 26);
  }
};
using E2m3 = SmallFloat<2, 3>;
using E3m2 = SmallFloat<3, 2>;
using E2m1 = SmallFloat<2, 1>;
struct Single : ElementOf<std::uint32_t, float, 1> {
  static float value(std::uint32_t word) { return std::bit_cast<float>(word); }
};
struct Double : ElementOf<std::uint64_t, double, 1> {
  static double value(std::uint64_t word) { return std::bit_cast<double>(word); }
};
/// Integers of 4 and 8 bits are multiplied as floats, which is faster: all sums have at most 24
/// bits and are exact.
template <std::uint32_t count>
struct Signed : ElementOf<std::uint32_t, float, count> {
  static_assert(count >= 4);
  static float value(std::uint32_t word) {
    constexpr std::uint32_t unused = 32 - 32 / count;
    return static_cast<float>(static_cast<std::int32_t>(word << unused) >> unused);
  }
};
template <std::uint32_t count>
struct Unsigned : ElementOf<std::uint32_t, float, count> {
  static_assert(count >= 4);
  static float value(std::uint32_t word) {
    return static_cast<float>(static_cast<std::int32_t>(word & ((1u << 32 / count) - 1)));
  }
};
struct Bits : ElementOf<std::uint32_t, std::int32_t, 1> {
  static std::int32_t value(std::uint32_t word) { return static_cast<std::int32_t>(word); }
};

template <class Word>
using TileWords = std::array<Word, tile_words>;

/// A tile whose rows begin every `stride` bytes.
template <class Word>
inline TileWords<Word> load_words(const std::byte* from,
                                  std::size_t stride = row_words * sizeof(Word)) {
  TileWords<Word> words;
  for (std::uint32_t row = 0; row < tile_rows; ++row) {
    std::memcpy(&words[row * row_words], from + row * stride, row_words * sizeof(Word));
  }
  return words;
}

/// Values of a tile of A: for each part of the words, those of all words.
template <class Element>
inline void spread_a(const TileWords<typename Element::Word>& words,
                     typename Element::Value* values) {
  for (std::uint32_t part = 0; part < Element::per_word; ++part) {
    for (std::uint32_t i = 0; i < tile_words; ++i) {
      values[part * tile_words + i] = Element::value(words[i] >> part * Element::bits);
    }
  }
}

/// The transpose of a tile of B, its columns in the order of column_at().
template <class Word>
inline void turn(const TileWords<Word>& words, TileWords<Word>& turned) {
  for (std::uint32_t t = 0; t < row_words; ++t) {
    for (std::uint32_t place = 0; place < tile_rows; ++place) {
      turned[t * tile_rows + place] = words[column_at(place) * row_words + t];
    }
  }
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
/// The same by vectors of two columns each, whose halves are transposed like matrices of 4 x 4.
inline void turn(const TileWords<std::uint32_t>& words, TileWords<std::uint32_t>& turned) {
  using Vector [[gnu::vector_size(32)]] = std::uint32_t;
  Vector pairs[row_words];
  std::memcpy(pairs, words.data(), sizeof pairs);
  const Vector a = __builtin_shufflevector(pairs[0], pairs[1], 0, 8, 1, 9, 4, 12, 5, 13);
  const Vector b = __builtin_shufflevector(pairs[2], pairs[3], 0, 8, 1, 9, 4, 12, 5, 13);
  const Vector c = __builtin_shufflevector(pairs[0], pairs[1], 2, 10, 3, 11, 6, 14, 7, 15);
  const Vector d = __builtin_shufflevector(pairs[2], pairs[3], 2, 10, 3, 11, 6, 14, 7, 15);
  const Vector rows[row_words] = {__builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13),
                                  __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15),
                                  __builtin_shufflevector(c, d, 0, 1, 8, 9, 4, 5, 12, 13),
                                  __builtin_shufflevector(c, d, 2, 3, 10, 11, 6, 7, 14, 15)};
  std::memcpy(turned.data(), rows, sizeof rows);
}
#endif
#endif

/// Values of a tile of B: for each part of the words, those of its 8 columns for each word of them.
template <class Element>
inline void spread_b(const TileWords<typename Element::Word>& words,
                     typename Element::Value* values) {
  TileWords<typename Element::Word> turned;
  turn(words, turned);
  spread_a<Element>(turned, values);
}

/// A row of 8 sums, or of 8 elements of B. The compiler keeps its vectors in registers.
template <class T>
struct Row {
  using Vector [[gnu::vector_size(32)]] = T;
  static constexpr std::size_t num_vectors = tile_rows * sizeof(T) / 32;
  Vector vectors[num_vectors];
};

/// What a factor and a row of B add to a row of sums: a product, of which the sum alone is rounded.
struct Fused {
  static void add(Row<float>& sums, float factor, const Row<float>& other) {
#if defined(__FMA__)
    sums.vectors[0] = _mm256_fmadd_ps(_mm256_set1_ps(factor), other.vectors[0], sums.vectors[0]);
#else
    add_each(sums, factor, other);
#endif
  }
  static void add(Row<double>& sums, double factor, const Row<double>& other) {
#if defined(__FMA__)
    for (std::size_t v = 0; v < Row<double>::num_vectors; ++v) {
      sums.vectors[v] = _mm256_fmadd_pd(_mm256_set1_pd(factor), other.vectors[v], sums.vectors[v]);
    }
#else
    add_each(sums, factor, other);
#endif
  }

 private:
  template <class T>
  [[maybe_unused]] static void add_each(Row<T>& sums, T factor, const Row<T>& other) {
    for (std::size_t v = 0; v < Row<T>::num_vectors; ++v) {
      for (std::size_t i = 0; i < 32 / sizeof(T); ++i) {
        sums.vectors[v][i] = std::fma(factor, other.vectors[v][i], sums.vectors[v][i]);
      }
    }
  }
};
/// The same for products that are exact, where it makes no difference.
struct Exact {
  static void add(Row<float>& sums, float factor, const Row<float>& other) {
#if defined(__FMA__)
    Fused::add(sums, factor, other);
#else
    sums.vectors[0] += factor * other.vectors[0];
#endif
  }
};
/// The ones of two words' `and` or `xor`.
template <bool by_and>
struct Ones {
  static void add(Row<std::int32_t>& sums, std::int32_t factor, const Row<std::int32_t>& other) {
    using Words [[gnu::vector_size(32)]] = std::uint32_t;
    const auto words = reinterpret_cast<Words>(other.vectors[0]);
    Words ones = by_and ? words & static_cast<std::uint32_t>(factor)
                        : words ^ static_cast<std::uint32_t>(factor);
    ones -= ones >> 1 & 0x55555555u;  // per two bits, four and eight
    ones = (ones & 0x33333333u) + (ones >> 2 & 0x33333333u);
    ones = (ones + (ones >> 4)) & 0x0f0f0f0fu;
    ones += ones >> 8;
    ones += ones >> 16;
    sums.vectors[0] += reinterpret_cast<Row<std::int32_t>::Vector>(ones & 63u);
  }
};

/// Adds the products of `chunks` tiles of A and of B to a tile of sums, in the order of rising k.
template <class Step, class T>
inline void multiply_tile(const T* a, const T* b, std::uint32_t chunks, std::uint32_t per_word,
                          T* sums) {
  Row<T> rows[tile_rows];
  std::memcpy(rows, sums, sizeof rows);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::uint32_t t = 0; t < row_words; ++t) {
      for (std::uint32_t part = 0; part < per_word; ++part) {
        const T* const factors = a + part * tile_words + t;
        Row<T> other;
        std::memcpy(&other, b + part * tile_words + t * tile_rows, sizeof other);
        for (std::uint32_t g = 0; g < tile_rows; ++g) {
          Step::add(rows[g], factors[g * row_words], other);
        }
      }
    }
    a += per_word * tile_words;
    b += per_word * tile_words;
  }
  std::memcpy(sums, rows, sizeof rows);
}

/// Sums of a tile from the registers at `slots`: two of f32, s32 or f64, the first of which has the
/// even columns.
template <class T>
inline void load_sums(const std::byte* registers, const std::uint32_t* slots, T* sums) {
  for (std::uint32_t odd = 0; odd < 2; ++odd) {
    const std::byte* const from = registers + slots[odd];
    for (std::uint32_t row = 0; row < tile_rows; ++row) {
      std::memcpy(sums + row * tile_rows + odd * row_words, from + row * row_words * sizeof(T),
                  row_words * sizeof(T));
    }
  }
}

template <class T>
inline void store_sums(std::byte* registers, const std::uint32_t* slots, const T* sums) {
  for (std::uint32_t odd = 0; odd < 2; ++odd) {
    std::byte* const to = registers + slots[odd];
    for (std::uint32_t row = 0; row < tile_rows; ++row) {
      std::memcpy(to + row * row_words * sizeof(T), sums + row * tile_rows + odd * row_words,
                  row_words * sizeof(T));
    }
  }
}

/// The same for one register of pairs of f16.
inline void load_half_sums(const std::byte* registers, std::uint32_t slot, float* sums) {
  const auto words = load_words<std::uint32_t>(registers + slot);
  for (std::uint32_t row = 0; row < tile_rows; ++row) {
    for (std::uint32_t place = 0; place < tile_rows; ++place) {
      const std::uint32_t word = words[row * row_words + place % row_words];
      sums[row * tile_rows + place] = Half::value(word >> place / row_words * 16);
    }
  }
}

inline void store_half_sums(std::byte* registers, std::uint32_t slot, const float* sums) {
  TileWords<std::uint32_t> words;
  for (std::uint32_t row = 0; row < tile_rows; ++row) {
    const float* const from = sums + row * tile_rows;
    for (std::uint32_t t = 0; t < row_words; ++t) {
      words[row * row_words + t] = float_to_half(from[t]) | float_to_half(from[row_words + t])
                                                                << 16;
    }
  }
  std::memcpy(registers + slot, words.data(), sizeof words);
}

/// The one NaN that products give.
inline void make_nans_equal(float* sums, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    sums[i] = sums[i] != sums[i] ? std::bit_cast<float>(0x7fffffffu) : sums[i];
  }
}

inline void make_nans_equal(double* sums, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    sums[i] = sums[i] != sums[i] ? std::bit_cast<double>(0x7ff8000000000000u) : sums[i];
  }
}

/// Adds sums of products, which have at most 24 bits, to C: wraps around or saturates.
template <class T>
inline void add_integers(std::int32_t* c, const T* sums, std::uint32_t count, bool saturate) {
  const std::int32_t ones = saturate ? -1 : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto added = static_cast<std::int32_t>(sums[i]);
    const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(added) +
                                               static_cast<std::uint32_t>(c[i]));
    // It overflows where its sign is that of neither summand.
    const std::int32_t overflows = ((sum ^ added) & (sum ^ c[i])) >> 31 & ones;
    const std::int32_t limit = c[i] >> 31 ^ 0x7fffffff;
    c[i] = (limit & overflows) | (sum & ~overflows);
  }
}

}  // namespace
}  // namespace warpstack::simt::WARPSTACK_ISA
