#pragma once

#include <cstdint>
#include <string>

#include "common/enum_names.h"

namespace warpstack::trace {

/// The elements of products whose shape and types a descriptor in a register says (`tcgen05.mma`).
enum class ProductElement : std::uint8_t {
  f16,
  bf16,
  tf32,
  e4m3,
  e5m2,
  e2m3,
  e3m2,
  e2m1,
  s8,
  u8,
  f32,
  s32,
};
constexpr auto names_of(ProductElement) {
  return enum_names("element of a product", "f16", "bf16", "tf32", "e4m3", "e5m2", "e2m3", "e3m2",
                    "e2m1", "s8", "u8", "f32", "s32");
}

/// What such a product multiplies. Its opcode ends with it:
/// `tcgen05.mma.cta_group::1.kind::f16.m128n256k16.f32.bf16.bf16`, `UTCHMMA.128x256x16.F32.BF16`.
struct ProductStep {
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  ProductElement d = ProductElement::f32;
  ProductElement a = ProductElement::f16;
  ProductElement b = ProductElement::f16;

  bool operator==(const ProductStep&) const = default;
};

/// The opcode of an instruction that multiplies so.
std::string product_opcode(const std::string& opcode, const ProductStep& step);

}  // namespace warpstack::trace
