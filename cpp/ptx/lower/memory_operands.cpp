#include "ptx/lower/memory_operands.h"

namespace warpstack::ptx {
namespace {

MemorySpace memory_space(AddressSpace space) {
  switch (space) {
    case AddressSpace::global:
      return MemorySpace::global;
    case AddressSpace::shared:
      return MemorySpace::shared;
    case AddressSpace::local:
      return MemorySpace::local;
    case AddressSpace::generic:
      return MemorySpace::generic;
  }
  return MemorySpace::generic;
}

}  // namespace

const Operand& base_of(const Operand& operand) {
  if (operand.kind != Operand::Kind::address || operand.elements.empty()) {
    throw Unsupported{"its address operand is missing"};
  }
  return operand.elements[0];
}

Address address(Emitter& e, const Operand& operand) {
  const Operand& base = base_of(operand);
  Address result{.offset = operand.integer};
  switch (base.kind) {
    case Operand::Kind::reg:
      result.value = e.value_of(base);
      e.note_read(result.value);
      result.is_64_bits = e.width_of(result.value) == 8;
      return result;
    case Operand::Kind::variable:
      if (e.variables().local().contains(base.name) || !base.elements.empty()) {
        result.value = e.address_of(base, 8);
        return result;
      }
      result.offset +=
          static_cast<std::int64_t>(e.variables().static_address(base.name)) + base.integer;
      return result;
    case Operand::Kind::integer:
      result.offset += base.integer;
      return result;
    default:
      throw Unsupported{"an address operand of this kind is not supported"};
  }
}

simt::AddressOperand address_operand(Emitter& e, const Operand& operand, AddressSpace space) {
  const Address at = address(e, operand);
  return {.space = space, .slot = at.value, .is_64_bits = at.is_64_bits, .offset = at.offset};
}

MemoryModifiers take_space(Emitter& e, Modifiers& modifiers) {
  MemoryModifiers result;
  const auto space =
      modifiers.take_one_of({"global", "const", "shared", "local", "param", "shared::cta",
                             "param::entry", "param::func", "shared::cluster"});
  if (space) {
    static constexpr AddressSpace spaces[] = {
        AddressSpace::global, AddressSpace::global, AddressSpace::shared,
        AddressSpace::local,  AddressSpace::local,  AddressSpace::shared,
        AddressSpace::local,  AddressSpace::local,  AddressSpace::shared};
    result.space = spaces[*space];
    result.constant = *space == 1;
    result.parameter = *space == 4 || *space == 6 || *space == 7;
  }
  auto cache = CacheOperator::none;
  if (modifiers.take("cs") || modifiers.take("L1::evict_first") ||
      modifiers.take("L1::no_allocate")) {
    cache = CacheOperator::evict_first;
  }
  if (modifiers.take("L1::evict_last")) cache = CacheOperator::evict_last;
  if (modifiers.take("cg") || modifiers.take("cv") || modifiers.take("wt"))
    cache = CacheOperator::bypass_l1;
  const bool both = modifiers.take("acq_rel");
  result.acquires = both || modifiers.take("acquire");
  result.releases = both || modifiers.take("release");
  const bool strong = result.acquires || result.releases || modifiers.take("volatile") ||
                      modifiers.take("relaxed") || modifiers.take("mmio");
  result.strong = strong;
  const bool block = modifiers.take("cta");
  modifiers.take("cluster");
  modifiers.take("gpu");
  modifiers.take("sys");
  if (strong && !block) cache = CacheOperator::bypass_l1;
  modifiers.take("weak");
  if (modifiers.take("nc") && cache == CacheOperator::none) cache = CacheOperator::read_only;
  modifiers.take("ca");
  modifiers.take("lu");
  modifiers.take("wb");
  modifiers.take_prefix("L1::");
  modifiers.take_prefix("L2::");
  modifiers.take("unified");
  e.row().cache_operator = cache;
  return result;
}

std::uint8_t take_elements(Modifiers& modifiers) {
  const auto found = modifiers.take_one_of({"v2", "v4", "v8"});
  return static_cast<std::uint8_t>(found ? 2u << *found : 1u);
}

std::vector<const Operand*> elements_of(const Operand& operand) {
  std::vector<const Operand*> result;
  if (operand.kind == Operand::Kind::vector) {
    for (const Operand& element : operand.elements) result.push_back(&element);
  } else {
    result.push_back(&operand);
  }
  return result;
}

void set_memory_row(Emitter& e, AddressSpace space, MemoryKind kind, std::uint32_t width) {
  e.row().space = memory_space(space);
  e.row().kind = kind;
  e.row().width = width;
  if (space == AddressSpace::shared) e.row().cache_operator = CacheOperator::none;
}

}  // namespace warpstack::ptx
