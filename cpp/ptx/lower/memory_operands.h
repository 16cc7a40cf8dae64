#pragma once

#include <cstdint>
#include <vector>

#include "ptx/lower/emitter.h"

namespace warpstack::ptx {

using trace::CacheOperator;
using trace::MemoryKind;
using trace::MemorySpace;

/// An address operand: a slot and an offset.
struct Address {
  std::uint32_t value = none;  ///< none: the address is the offset alone
  bool is_64_bits = true;
  std::int64_t offset = 0;
};

/// The base to which an address operand's offset is added. Throws Unsupported for other operands.
const Operand& base_of(const Operand& operand);
Address address(Emitter& e, const Operand& operand);

/// Reads the address operand of an access.
template <class Access>
void take_address(Emitter& e, Access& access, const Operand& operand) {
  const Address at = address(e, operand);
  access.address = at.value;
  access.address_is_64_bits = at.is_64_bits;
  access.offset = at.offset;
}

/// The same for an asynchronous operation, in a state space.
simt::AddressOperand address_operand(Emitter& e, const Operand& operand, AddressSpace space);

/// State space and memory ordering of an access.
struct MemoryModifiers {
  AddressSpace space = AddressSpace::generic;
  bool constant = false;
  bool parameter = false;
  bool strong = false;
  bool acquires = false;
  bool releases = false;
};

/// Reads them and the cache modifiers, which go into the trace's row.
MemoryModifiers take_space(Emitter& e, Modifiers& modifiers);
/// Elements of a vector: 1, or as `.v2`, `.v4` or `.v8` says.
std::uint8_t take_elements(Modifiers& modifiers);

/// The operands of a vector, or the operand itself.
std::vector<const Operand*> elements_of(const Operand& operand);

/// Makes the trace's row an access of `width` bytes per thread.
void set_memory_row(Emitter& e, AddressSpace space, MemoryKind kind, std::uint32_t width);

}  // namespace warpstack::ptx
