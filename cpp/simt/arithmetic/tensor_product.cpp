#include "simt/arithmetic/tensor_product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "simt/arithmetic/half_bits.h"

namespace warpstack::simt {
namespace {

using trace::ProductElement;

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

/// A float of so many exponent and fraction bits, without infinities and NaN.
float small_float(std::uint32_t bits, unsigned exponent_bits, unsigned fraction_bits) {
  const std::uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const std::uint32_t exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int scale =
      std::max(static_cast<int>(exponent), 1) - bias - static_cast<int>(fraction_bits);
  const std::uint32_t whole = exponent == 0 ? fraction : fraction | 1u << fraction_bits;
  const float size = std::ldexp(static_cast<float>(whole), scale);
  return (bits >> (exponent_bits + fraction_bits) & 1) != 0 ? -size : size;
}

float value_of(ProductElement element, std::uint32_t bits) {
  switch (element) {
    case ProductElement::f16:
      return half_to_float(static_cast<std::uint16_t>(bits));
    case ProductElement::bf16:
      return std::bit_cast<float>(bits << 16);
    case ProductElement::tf32:
      return std::bit_cast<float>(bits & 0xffffe000u);
    case ProductElement::e4m3:
      return (bits & 0x7f) == 0x7f ? quiet_nan : small_float(bits, 4, 3);
    case ProductElement::e5m2:
      return half_to_float(static_cast<std::uint16_t>(bits << 8));
    case ProductElement::e2m3:
      return small_float(bits, 2, 3);
    case ProductElement::e3m2:
      return small_float(bits, 3, 2);
    case ProductElement::e2m1:
      return small_float(bits, 2, 1);
    case ProductElement::s8:
      return static_cast<std::int8_t>(bits);
    default:
      return static_cast<float>(bits & 0xff);
  }
}

/// The values of all numbers of at most 8 bits.
const std::array<float, 256>& values_of(ProductElement element) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, static_cast<std::size_t>(ProductElement::f32)> made{};
    for (std::size_t e = static_cast<std::size_t>(ProductElement::e4m3); e < made.size(); ++e) {
      for (std::uint32_t bits = 0; bits < 256; ++bits) {
        made[e][bits] = value_of(static_cast<ProductElement>(e), bits);
      }
    }
    return made;
  }();
  return tables[static_cast<std::size_t>(element)];
}

/// So many bits of a row from bit `at` on, at most 8.
std::uint32_t bits_at(const FactorRow& row, std::uint32_t at, std::uint32_t count) {
  std::uint32_t word = static_cast<std::uint32_t>(row[at / 8]);
  if (at / 8 + 1 < factor_bytes) word |= static_cast<std::uint32_t>(row[at / 8 + 1]) << 8;
  return word >> at % 8 & ((1u << count) - 1);
}

std::optional<ProductElement> element_of(TensorKind kind, std::uint32_t number) {
  using enum ProductElement;
  switch (kind) {
    case TensorKind::f16:
      if (number == 0) return f16;
      if (number == 1) return bf16;
      return {};
    case TensorKind::tf32:
      if (number == 2) return tf32;
      return {};
    case TensorKind::i8:
      if (number == 0) return u8;
      if (number == 1) return s8;
      return {};
    case TensorKind::f8f6f4:
    case TensorKind::mxf8f6f4:
      switch (number) {
        case 0:
          return e4m3;
        case 1:
          return e5m2;
        case 3:
          return e2m3;
        case 4:
          return e3m2;
        case 5:
          return e2m1;
        default:
          return {};
      }
    default:
      if (number == 1) return e2m1;
      return {};
  }
}

/// The type of D by its number; that of block-scaled kinds is f32.
std::optional<ProductElement> sum_of(TensorKind kind, std::uint32_t number) {
  using enum ProductElement;
  if (is_block_scaled(kind)) return f32;
  if (kind == TensorKind::i8) return number == 2 ? std::optional(s32) : std::nullopt;
  if (number == 1) return f32;
  const bool may_be_half = kind == TensorKind::f16 || kind == TensorKind::f8f6f4;
  return number == 0 && may_be_half ? std::optional(f16) : std::nullopt;
}

bool has_columns(const TensorProduct& product, const trace::ProductStep& shape) {
  const std::uint32_t n = shape.n;
  if (product.is_of_pair) {
    return n != 0 && n <= 256 && n % (product.kind == TensorKind::i8 ? 32 : 16) == 0;
  }
  if (product.weights_stationary) return n == 64 || n == 128 || n == 256;
  if (n < 8 || n > 256) return false;
  if (is_block_scaled(product.kind)) return n % 8 == 0;
  if (shape.m == 128) return n % 16 == 0;
  // Integers have fewer shapes.
  return n % 8 == 0 && (product.kind != TensorKind::i8 || n <= 24 || n % 16 == 0);
}

bool has_rows(const TensorProduct& product, std::uint32_t m) {
  if (m == 128) return true;
  if (product.is_of_pair) return m == 256;
  if (is_block_scaled(product.kind)) return false;
  return m == 64 || (m == 32 && product.weights_stationary);
}

}  // namespace

std::uint32_t bits_of(ProductElement element) {
  switch (element) {
    case ProductElement::f16:
    case ProductElement::bf16:
      return 16;
    case ProductElement::e4m3:
    case ProductElement::e5m2:
    case ProductElement::s8:
    case ProductElement::u8:
      return 8;
    case ProductElement::e2m3:
    case ProductElement::e3m2:
      return 6;
    case ProductElement::e2m1:
      return 4;
    default:
      return 32;
  }
}

std::optional<ProductDescriptor> ProductDescriptor::unpack(TensorKind kind, std::uint32_t bits) {
  const auto field = [bits](unsigned first, unsigned count) {
    return bits >> first & ((1u << count) - 1);
  };
  if (kind == TensorKind::f16_tf32) kind = field(7, 3) == 2 ? TensorKind::tf32 : TensorKind::f16;
  const bool scaled = is_block_scaled(kind);
  const auto d = sum_of(kind, field(4, 2));
  const auto a = element_of(kind, field(7, 3));
  const auto b = element_of(kind, field(10, 3));
  if (!d || !a || !b) return {};
  // 32 bytes of each row, whatever pads them.
  const bool is_dense = kind == TensorKind::mxf4 || kind == TensorKind::mxf4nvf4;
  const std::uint32_t element_bits = is_dense ? 4 : std::max(bits_of(*a), 8u);
  const std::uint32_t k = 8 * factor_bytes / element_bits;
  ProductDescriptor result;
  result.shape = {.m = scaled ? field(27, 2) << 7 : field(24, 5) << 4,
                  .n = field(17, 6) << 3,
                  .k = k,
                  .d = *d,
                  .a = *a,
                  .b = *b};
  result.is_sparse = field(2, 1) != 0;
  result.is_long = is_dense && field(31, 1) != 0;
  result.saturate = kind == TensorKind::i8 && field(3, 1) != 0;
  result.negate_a = field(13, 1) != 0;
  result.negate_b = field(14, 1) != 0;
  result.transpose_a = field(15, 1) != 0;
  result.transpose_b = field(16, 1) != 0;
  if (scaled) {
    result.scale_b_byte = field(4, 2);
    result.scale_a_byte = field(29, 2);
    result.scales_are_exponents = field(23, 1) != 0;
  }
  return result;
}

std::optional<std::string> ProductDescriptor::fault(const TensorProduct& product) const {
  if (is_sparse) return "it is of a sparse matrix, and products of these are not supported";
  if (is_long) return "it has K = 96, which is not supported";
  if (!has_rows(product, shape.m) || !has_columns(product, shape)) {
    return "M = " + std::to_string(shape.m) + " and N = " + std::to_string(shape.n) +
           ", which this kind of product does not have";
  }
  if (product.kind == TensorKind::i8 && (negate_a || negate_b)) {
    return "integers cannot be negated";
  }
  for (const bool of_a : {true, false}) {
    if (!(of_a ? transpose_a : transpose_b)) continue;
    const std::string name = of_a ? "A" : "B";
    if (of_a && product.a_descriptor == none) return "A in tensor memory cannot be transposed";
    const ProductElement element = of_a ? shape.a : shape.b;
    if (bits_of(element) < 8)
      return name + " of " + std::string(name_of(element)) + " cannot be transposed";
  }
  if (!is_block_scaled(product.kind)) return {};
  const std::uint32_t scales = shape.k / product.elements_per_scale;
  if (scale_a_byte % scales != 0 || scale_b_byte % scales != 0) {
    return "the scales' byte is no multiple of their number, " + std::to_string(scales);
  }
  if (!scales_are_exponents &&
      (product.kind != TensorKind::mxf4nvf4 || product.elements_per_scale != 16)) {
    return "scales of ue4m3 are only those of mxf4nvf4 with 16 elements for each";
  }
  return {};
}

void FactorValues::read(ProductElement element, ElementPacking packing, std::uint32_t k,
                        std::span<const FactorRow> rows, bool negate) {
  values_.resize(rows.size() * k);
  const std::uint32_t bits = bits_of(element);
  float* to = values_.data();
  for (const FactorRow& row : rows) {
    for (std::uint32_t i = 0; i < k; ++i, ++to) {
      if (bits > 8) {
        std::uint32_t word = 0;
        std::memcpy(&word, row.data() + i * bits / 8, bits / 8);
        *to = value_of(element, word);
      } else if (bits == 8) {
        *to = values_of(element)[static_cast<std::uint8_t>(row[i])];
      } else if (packing == ElementPacking::bytes) {
        const auto byte = static_cast<std::uint32_t>(row[i]);
        *to = values_of(element)[bits == 4 ? byte >> 2 & 0xf : byte & 0x3f];
      } else {
        const std::uint32_t at =
            packing == ElementPacking::dense ? i * bits : i / 16 * 128 + i % 16 * bits;
        *to = values_of(element)[bits_at(row, at, bits)];
      }
    }
  }
  if (!negate) return;
  for (float& value : values_) value = -value;
}

void FactorValues::turn(std::uint32_t rows, std::uint32_t k) {
  turned_.resize(values_.size());
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t i = 0; i < k; ++i) turned_[i * rows + row] = values_[row * k + i];
  }
  values_.swap(turned_);
}

float scale_of(std::uint8_t bits, bool is_exponent) {
  if (!is_exponent) return value_of(ProductElement::e4m3, bits & 0x7f);
  return bits == 0xff ? quiet_nan : std::ldexp(1.0f, int{bits} - 127);
}

TensorPlace place_of_register(TensorShape shape, std::uint32_t lane, std::uint32_t number) {
  switch (shape) {
    case TensorShape::l16b64:
      return {lane % 2 * 8 + lane / 4, 2 * number + lane / 2 % 2};
    case TensorShape::l16b128:
      return {lane / 4 + number % 2 * 8, number / 2 * 4 + lane % 4};
    case TensorShape::l16b256:
      return {lane / 4 + number / 2 % 2 * 8, number / 4 * 8 + lane % 4 * 2 + number % 2};
    case TensorShape::l16b32x2:
      return {lane % 16, number};
    default:
      return {lane, number};
  }
}

std::array<std::byte, 16> spread_numbers(const std::byte* packed, TensorFill::Format format) {
  FactorRow row{};
  std::memcpy(row.data(), packed, 16);
  std::array<std::byte, 16> bytes{};
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    const std::uint32_t bits =
        format == TensorFill::Format::b4 ? bits_at(row, 4 * i, 4) << 2 : bits_at(row, 6 * i, 6);
    bytes[i] = static_cast<std::byte>(bits);
  }
  return bytes;
}

}  // namespace warpstack::simt
