// The products of matrices of every shape and types, bit by bit against sums written out one after
// the other.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "simt/arithmetic/half_bits.h"
#include "simt/arithmetic/matrix_descriptor.h"
#include "simt/program/matrix.h"

namespace {

using namespace warpstack::simt;
using Element = MatrixElement;
using Role = MatrixRole;
using Random = std::mt19937_64;

constexpr std::uint32_t lanes = 32;
/// Bytes of a slot, which may hold 64 bits per lane.
constexpr std::uint32_t slot_bytes = 8 * lanes;
/// C and D in the slots of one another, in another order.
enum class Places { apart, same, turned, one_c };

Random seeded_by(const std::string& name) {
  std::seed_seq seeds(name.begin(), name.end());
  return Random(seeds);
}

/// Of factors; C has twice as much.
constexpr std::array<int, 5> exponents{0, 0, -71, 0, 61};

struct Form {
  std::uint32_t m, n, k;
  Element a, b, c, d;
};

std::string name_of(Element element) {
  constexpr const char* names[] = {"none", "f16", "bf16", "tf32", "f32", "f64",
                                   "s32",  "s8",  "u8",   "s4",   "u4",  "b1"};
  return names[static_cast<int>(element)];
}

std::string name_of(const Form& form) {
  return "m" + std::to_string(form.m) + "n" + std::to_string(form.n) + "k" +
         std::to_string(form.k) + "_" + name_of(form.d) + "_" + name_of(form.a) + "_" +
         name_of(form.b) + "_" + name_of(form.c);
}

/// All forms of mma and wmma; K of b1 in words.
std::vector<Form> forms() {
  std::vector<Form> all;
  struct Shape {
    std::uint32_t m, n, k;
  };
  const auto add = [&](std::vector<Shape> shapes, std::vector<Element> factors,
                       std::vector<Element> accumulators, bool mixed_factors) {
    for (const Shape& s : shapes) {
      for (const Element a : factors) {
        for (const Element b : factors) {
          if (a != b && !mixed_factors) continue;
          for (const Element c : accumulators) {
            for (const Element d : accumulators) all.push_back({s.m, s.n, s.k, a, b, c, d});
          }
        }
      }
    }
  };
  const std::vector<Shape> wide{{16, 16, 16}, {8, 32, 16}, {32, 8, 16}};
  std::vector<Shape> half{{16, 8, 8}, {16, 8, 16}};
  std::vector<Shape> bytes{{8, 8, 16}, {16, 8, 16}, {16, 8, 32}};
  half.insert(half.end(), wide.begin(), wide.end());
  bytes.insert(bytes.end(), wide.begin(), wide.end());
  add(half, {Element::f16}, {Element::f16, Element::f32}, false);
  add(half, {Element::bf16}, {Element::f32}, false);
  add({{16, 8, 4}, {16, 8, 8}, {16, 16, 8}}, {Element::tf32}, {Element::f32}, false);
  add({{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}, {Element::f64}, {Element::f64}, false);
  add(bytes, {Element::s8, Element::u8}, {Element::s32}, true);
  add({{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}, {Element::s4, Element::u4}, {Element::s32}, true);
  add({{8, 8, 4}, {16, 8, 4}, {16, 8, 8}}, {Element::b1}, {Element::s32}, false);
  return all;
}

/// The value of an element's bits. A double holds the values of all types.
double value_of(Element element, std::uint64_t bits) {
  switch (element) {
    case Element::f16:
      return half_to_double(static_cast<std::uint16_t>(bits));
    case Element::bf16:
      return bfloat_to_double(static_cast<std::uint16_t>(bits));
    case Element::tf32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits) & 0xffffe000u);
    case Element::f32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case Element::f64:
      return std::bit_cast<double>(bits);
    case Element::s8:
      return static_cast<std::int8_t>(bits);
    case Element::s4:
      return static_cast<double>(bits) - (bits >= 8 ? 16 : 0);
    case Element::s32:
      return static_cast<std::int32_t>(bits);
    default:  // without a sign
      return static_cast<double>(bits);
  }
}

/// One more product in a sum; of b1 the ones of two words.
double next_sum(Element element, bool by_and, double sum, double x, double y) {
  switch (element) {
    case Element::f64:
      return std::fma(x, y, sum);
    case Element::f16:
    case Element::bf16:
    case Element::tf32:
      return std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(sum));
    case Element::b1: {
      const auto p = static_cast<std::uint32_t>(x), q = static_cast<std::uint32_t>(y);
      return sum + std::popcount(by_and ? p & q : p ^ q);
    }
    default:
      return sum + x * y;
  }
}

/// The bits of a sum as an element of D.
std::uint64_t bits_of_sum(Element element, bool saturate, double sum) {
  switch (element) {
    case Element::f16:
      return double_to_half(sum);
    case Element::f32:
      return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(static_cast<float>(sum));
    case Element::f64:
      return std::isnan(sum) ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(sum);
    default: {
      auto whole = static_cast<std::int64_t>(sum);
      using Limits = std::numeric_limits<std::int32_t>;
      if (saturate) whole = std::clamp<std::int64_t>(whole, Limits::min(), Limits::max());
      return static_cast<std::uint32_t>(whole);
    }
  }
}

class Registers {
 public:
  Registers(std::size_t slots, Random& random) : words_(slots * slot_bytes / 4) {
    for (std::uint32_t& word : words_) word = static_cast<std::uint32_t>(random());
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  [[nodiscard]] const std::vector<std::uint32_t>& words() const { return words_; }

  /// Element `i` of those a lane holds, in the order of tiles.
  [[nodiscard]] std::uint64_t element(const MatrixFragment& fragment,
                                      const std::array<std::uint32_t, 8>& slots, std::uint32_t i,
                                      std::uint32_t lane) const {
    const std::uint32_t bits = bits_of(fragment.element);
    const std::uint64_t word = read(fragment, slots[i / fragment.per_register()], lane);
    const std::uint64_t value = word >> i % fragment.per_register() * bits;
    return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
  }
  void put(const MatrixFragment& fragment, const std::array<std::uint32_t, 8>& slots,
           std::uint32_t i, std::uint32_t lane, std::uint64_t value) {
    const std::uint32_t bits = bits_of(fragment.element);
    const std::uint32_t slot = slots[i / fragment.per_register()];
    const std::uint32_t shift = i % fragment.per_register() * bits;
    const std::uint64_t ones =
        bits == 64 ? ~std::uint64_t{0} : ((std::uint64_t{1} << bits) - 1) << shift;
    const std::uint64_t word = (read(fragment, slot, lane) & ~ones) | value << shift;
    std::memcpy(data() + slot + fragment.register_bytes() * lane, &word, fragment.register_bytes());
  }

 private:
  [[nodiscard]] std::uint64_t read(const MatrixFragment& fragment, std::uint32_t slot,
                                   std::uint32_t lane) const {
    std::uint64_t word = 0;
    const std::uint32_t size = fragment.register_bytes();
    std::memcpy(&word, reinterpret_cast<const std::byte*>(words_.data()) + slot + size * lane,
                size);
    return word;
  }

  std::vector<std::uint32_t> words_;
};

/// Mostly ordinary numbers; else anything, zeros of both signs, infinities and NaNs. A single NaN
/// spoils its row: few of them.
/// `exponent` scales floats of 8 exponent bits, to where products leave the range but sums do not.
std::uint64_t random_bits(Element element, Random& random, int exponent = 0) {
  const std::uint64_t any = random();
  const std::uint64_t choice = random() % 1000;
  const bool is_wide =
      element == Element::bf16 || element == Element::tf32 || element == Element::f32;
  const double near =
      std::ldexp(std::normal_distribution<double>(0, 2)(random), is_wide ? exponent : 0);
  const bool is_float = element >= Element::f16 && element <= Element::f64;
  if (!is_float) {
    const std::uint64_t ones =
        bits_of(element) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits_of(element)) - 1;
    // Near the ends of the range of C, so that sums leave it.
    if (element == Element::s32 && choice < 400) {
      return (choice % 2 == 0 ? 0x7fffffffu : 0x80000000u) ^ (any & 63);
    }
    return any & ones;
  }
  const double tiny = std::ldexp(near, -static_cast<int>(any % 160));
  constexpr std::array<double, 6> edges{0.0, -0.0, HUGE_VAL, -HUGE_VAL, 65520, 1e-45};
  const double value = choice < 800   ? near
                       : choice < 980 ? tiny
                       : choice < 994 ? edges[any % (choice < 992 ? 2 : edges.size())]
                                      : std::nan("");
  const bool is_any = choice >= 996;
  switch (element) {
    case Element::f16:
      return is_any ? any & 0xffff : double_to_half(value);
    case Element::bf16:
      return is_any ? any & 0xffff : double_to_bfloat(value);
    case Element::f64:
      return is_any ? any : std::bit_cast<std::uint64_t>(value);
    default:
      return is_any ? any & 0xffffffffu : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
}

void fill(Registers& registers, const MatrixFragment& fragment,
          const std::array<std::uint32_t, 8>& slots, Random& random, int exponent) {
  const std::uint32_t count = fragment.num_tiles() * fragment.per_tile();
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      registers.put(fragment, slots, i, lane, random_bits(fragment.element, random, exponent));
    }
  }
}

/// Calls f(row, column, element of the lane, lane) for all elements, as PTX ISA lists them.
template <class F>
void for_each(const MatrixFragment& fragment, F f) {
  for (std::uint32_t tile = 0; tile < fragment.num_tiles(); ++tile) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      MatrixPosition at = fragment.position(tile, lane);
      for (std::uint32_t i = 0; i < fragment.per_tile(); ++i) {
        f(at.row, at.column, tile * fragment.per_tile() + i, lane);
        ++(fragment.role == Role::b ? at.row : at.column);
      }
    }
  }
}

std::vector<double> values_of(const Registers& registers, const MatrixFragment& fragment,
                              const std::array<std::uint32_t, 8>& slots) {
  std::vector<double> values(std::size_t{fragment.rows} * fragment.columns);
  for_each(fragment,
           [&](std::uint32_t row, std::uint32_t column, std::uint32_t i, std::uint32_t lane) {
             values[row * fragment.columns + column] =
                 value_of(fragment.element, registers.element(fragment, slots, i, lane));
           });
  return values;
}

void multiply_slowly(Registers& registers, const MatrixMultiply& multiply) {
  const std::vector<double> a = values_of(registers, multiply.a, multiply.a_values);
  const std::vector<double> b = values_of(registers, multiply.b, multiply.b_values);
  const std::vector<double> c = values_of(registers, multiply.c, multiply.c_values);
  for_each(multiply.d,
           [&](std::uint32_t row, std::uint32_t column, std::uint32_t i, std::uint32_t lane) {
             double sum = c[row * multiply.c.columns + column];
             for (std::uint32_t k = 0; k < multiply.a.columns; ++k) {
               sum = next_sum(multiply.a.element, multiply.by_and, sum,
                              a[row * multiply.a.columns + k], b[k * multiply.b.columns + column]);
             }
             registers.put(multiply.d, multiply.d_values, i, lane,
                           bits_of_sum(multiply.d.element, multiply.saturate, sum));
           });
}

class MatrixProduct : public testing::TestWithParam<Form> {};

TEST_P(MatrixProduct, IsTheSumOfProductsInOrder) {
  const Form& form = GetParam();
  Random random = seeded_by(name_of(form));
  for (int round = 0; round < 24; ++round) {
    MatrixMultiply multiply{.a = {Role::a, form.a, form.m, form.k},
                            .b = {Role::b, form.b, form.k, form.n},
                            .c = {Role::accumulator, form.c, form.m, form.n},
                            .d = {Role::accumulator, form.d, form.m, form.n}};
    multiply.saturate = form.d == Element::s32 && round % 2 == 1;
    multiply.by_and = form.a == Element::b1 && round / 2 % 2 == 1;
    std::vector<std::uint32_t> slots(40);
    std::iota(slots.begin(), slots.end(), 0);
    std::ranges::shuffle(slots, random);
    for (std::uint32_t& slot : slots) slot *= slot_bytes;
    std::size_t next = 0;
    const auto take = [&](std::array<std::uint32_t, 8>& values) {
      for (std::uint32_t& value : values) value = slots[next++];
    };
    take(multiply.a_values);
    take(multiply.b_values);
    take(multiply.c_values);
    take(multiply.d_values);
    switch (static_cast<Places>(round % 4)) {
      case Places::apart:
        break;
      case Places::same:
        multiply.d_values = multiply.c_values;
        break;
      case Places::turned:  // D also takes registers of A and B
        std::ranges::reverse_copy(multiply.c_values, multiply.d_values.begin());
        multiply.d_values[0] = multiply.a_values[0];
        multiply.d_values[1] = multiply.b_values[0];
        break;
      case Places::one_c:  // as the zero register of machine code
        multiply.c_values.fill(multiply.c_values[0]);
        break;
    }
    Registers registers(slots.size(), random);
    const int exponent = exponents[round % 5];
    fill(registers, multiply.a, multiply.a_values, random, exponent);
    fill(registers, multiply.b, multiply.b_values, random, exponent);
    fill(registers, multiply.c, multiply.c_values, random, 2 * exponent);
    Registers expected = registers;
    multiply_slowly(expected, multiply);
    multiply_matrices(registers.data(), multiply);
    ASSERT_EQ(registers.words(), expected.words()) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MatrixProduct, testing::ValuesIn(forms()),
                         [](const auto& info) { return name_of(info.param); });

/// A wgmma's types.
struct Types {
  FactorElement a, b, d;
};

std::string name_of(const Types& types) {
  constexpr const char* names[] = {"none", "f16", "bf16", "tf32", "e4m3", "e5m2",
                                   "s8",   "u8",  "b1",   "f32",  "s32"};
  const auto name = [&](FactorElement element) {
    return std::string(names[static_cast<int>(element)]);
  };
  return name(types.d) + "_" + name(types.a) + "_" + name(types.b);
}

std::vector<Types> all_types() {
  using F = FactorElement;
  std::vector<Types> all{{F::bf16, F::bf16, F::f32}, {F::tf32, F::tf32, F::f32}};
  for (const F d : {F::f16, F::f32}) {
    all.push_back({F::f16, F::f16, d});
    for (const F a : {F::e4m3, F::e5m2}) {
      for (const F b : {F::e4m3, F::e5m2}) all.push_back({a, b, d});
    }
  }
  for (const F a : {F::s8, F::u8}) {
    for (const F b : {F::s8, F::u8}) all.push_back({a, b, F::s32});
  }
  all.push_back({F::b1, F::b1, F::s32});
  return all;
}

/// The value of an 8-bit float by its definition (OCP 8-bit floating point).
double short_float(std::uint32_t bits, int exponent_bits) {
  const int fraction_bits = 7 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const bool is_e5m2 = exponent_bits == 5;
  const bool is_last = exponent == (1 << exponent_bits) - 1;
  double magnitude = std::ldexp(fraction + (exponent == 0 ? 0 : 1 << fraction_bits),
                                std::max(exponent, 1) - bias - fraction_bits);
  if (is_last && is_e5m2) magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  if (is_last && !is_e5m2 && fraction == 7) magnitude = std::nan("");
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

Element plain(FactorElement element) {
  switch (element) {
    case FactorElement::f16:
      return Element::f16;
    case FactorElement::bf16:
      return Element::bf16;
    case FactorElement::tf32:
      return Element::tf32;
    case FactorElement::s8:
      return Element::s8;
    case FactorElement::u8:
      return Element::u8;
    case FactorElement::b1:
      return Element::b1;
    case FactorElement::f32:
      return Element::f32;
    case FactorElement::s32:
      return Element::s32;
    default:  // products of 8-bit floats are as exact as those of f16
      return Element::f16;
  }
}

double value_of(FactorElement element, const FactorRow& row, std::uint32_t k) {
  std::uint32_t bits = 0;
  const std::uint32_t size = bits_of(element) / 8;
  std::memcpy(&bits, row.data() + std::size_t{size} * k, size);
  if (element == FactorElement::e4m3) return short_float(bits, 4);
  if (element == FactorElement::e5m2) return short_float(bits, 5);
  return value_of(plain(element), bits);
}

std::vector<FactorRow> random_rows(std::size_t count, FactorElement element, Random& random,
                                   int exponent) {
  std::vector<FactorRow> rows(count);
  const std::uint32_t size = bits_of(element) / 8;
  const bool is_short = element == FactorElement::e4m3 || element == FactorElement::e5m2;
  for (FactorRow& row : rows) {
    for (std::uint32_t k = 0; k < factor_bytes / size; ++k) {
      std::uint64_t bits =
          is_short ? random() & 0xff : random_bits(plain(element), random, exponent);
      // Most of the 8-bit floats are finite.
      if (is_short && (bits & 0x7c) == 0x7c && random() % 20 != 0) bits ^= 0x40;
      std::memcpy(row.data() + std::size_t{size} * k, &bits, size);
    }
  }
  return rows;
}

/// PTX ISA, "Matrix fragments for wgmma": register i of lane 4 * g + t holds columns 2 * t and
/// 2 * t + 1 of a chunk of 8 columns, in row g or g + 8.
void multiply_rows_slowly(Registers& registers, const WarpgroupMultiply& multiply, bool accumulates,
                          const std::vector<FactorRow>& a, const std::vector<FactorRow>& b) {
  const Element d = multiply.d == FactorElement::f16 ? Element::f16 : plain(multiply.d);
  const MatrixFragment tile{Role::accumulator, d, 8, 8};
  const std::uint32_t per_tile = tile.num_registers();
  for (std::uint32_t column = 0; column < b.size(); column += 8) {
    for (std::uint32_t row = 0; row < warp_rows; row += 8) {
      std::array<std::uint32_t, 8> slots{};
      for (std::uint32_t r = 0; r < per_tile; ++r) {
        slots[r] = multiply.d_values[(column / 8 * 2 + row / 8) * per_tile + r];
      }
      for_each(tile, [&](std::uint32_t i, std::uint32_t j, std::uint32_t part, std::uint32_t lane) {
        double sum = accumulates ? value_of(d, registers.element(tile, slots, part, lane)) : 0;
        for (std::uint32_t k = 0; k < factor_bytes * 8 / bits_of(multiply.a); ++k) {
          const double x = value_of(multiply.a, a[row + i], k);
          const double y = value_of(multiply.b, b[column + j], k);
          sum = next_sum(plain(multiply.a), true, sum, multiply.negate_a ? -x : x,
                         multiply.negate_b ? -y : y);
        }
        registers.put(tile, slots, part, lane, bits_of_sum(d, multiply.saturate, sum));
      });
    }
  }
}

class WarpgroupProduct : public testing::TestWithParam<Types> {};

TEST_P(WarpgroupProduct, IsTheSumOfProductsInOrder) {
  const Types& types = GetParam();
  Random random = seeded_by(name_of(types));
  const bool is_integer = types.d == FactorElement::s32;
  const bool has_signs = !is_integer && bits_of(types.a) == 16;
  int round = 0;
  for (const std::uint32_t columns : {8, 16, 24, 32, 40, 64, 96, 128, 136, 192, 248, 256}) {
    for (const bool accumulates : {false, true}) {
      WarpgroupMultiply multiply;
      multiply.a = types.a;
      multiply.b = types.b;
      multiply.d = types.d;
      multiply.columns = columns;
      const int exponent = exponents[++round % 5];
      multiply.saturate = is_integer && round % 3 == 1;
      multiply.negate_a = has_signs && random() % 2 == 1;
      multiply.negate_b = has_signs && random() % 2 == 1;
      std::vector<std::uint32_t> slots(columns / (types.d == FactorElement::f16 ? 4 : 2));
      std::iota(slots.begin(), slots.end(), 0);
      std::ranges::shuffle(slots, random);
      for (std::uint32_t& slot : slots) slot *= slot_bytes;
      multiply.d_values = slots;
      Registers registers(slots.size(), random);
      const Element d = multiply.d == FactorElement::f16 ? Element::f16 : plain(multiply.d);
      const MatrixFragment one{Role::accumulator, d, 8, d == Element::f16 ? 8u : 4u};
      for (const std::uint32_t slot : slots) {
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
          for (std::uint32_t i = 0; i < one.per_register(); ++i) {
            registers.put(one, {slot}, i, lane, random_bits(d, random, 2 * exponent));
          }
        }
      }
      const std::vector<FactorRow> a = random_rows(warp_rows, types.a, random, exponent);
      const std::vector<FactorRow> b = random_rows(columns, types.b, random, exponent);
      Registers expected = registers;
      multiply_rows_slowly(expected, multiply, accumulates, a, b);
      multiply_rows(registers.data(), multiply, accumulates, a, b);
      ASSERT_EQ(registers.words(), expected.words()) << columns << " columns, " << accumulates;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WarpgroupProduct, testing::ValuesIn(all_types()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
