#pragma once

#include <cstdint>

namespace warpstack::simt {

/// Means that there is no register, row or table entry.
inline constexpr std::uint32_t none = ~std::uint32_t{0};

enum class AddressSpace : std::uint8_t { global, shared, local, generic };

/// Computes a new value from the old one and one or two operands.
using AtomicFunction = std::uint64_t (*)(std::uint64_t old, std::uint64_t b, std::uint64_t c);

/// An address operand: a slot and an offset.
struct AddressOperand {
  AddressSpace space = AddressSpace::shared;
  std::uint32_t slot = none;  ///< none: the address is the offset alone
  bool is_64_bits = true;
  std::int64_t offset = 0;
};

}  // namespace warpstack::simt
