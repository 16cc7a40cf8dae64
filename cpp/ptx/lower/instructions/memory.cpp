#include <algorithm>
#include <array>
#include <vector>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"
#include "trace/instructions/copy_groups.h"

// Loads, stores and copies.

namespace warpstack::ptx::handlers {
namespace {

/// Registers that a load of `type` fills; they may be wider than the type.
template <class Access>
std::vector<std::uint32_t> load_targets(Emitter& e, Access& access, const Operand& operand,
                                        Type type) {
  const auto elements = elements_of(operand);
  if (elements.size() != access.elements) throw Unsupported{"it has too few or many registers"};
  std::vector<std::uint32_t> targets;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::uint32_t bytes = elements[i]->kind == Operand::Kind::reg
                                    ? e.register_bytes(*elements[i])
                                    : std::max(bytes_of(type), 2u);
    if (bytes < std::min(bytes_of(type), 2u) || bytes > 8 || bytes_of(type) > bytes) {
      throw Unsupported{"its register is narrower than its type"};
    }
    const std::uint32_t value = e.out(*elements[i], bits_type(bytes));
    access.values[i] = value;
    access.value_bytes[i] = static_cast<std::uint8_t>(bytes);
    targets.push_back(value);
  }
  return targets;
}
/// Immediate operands need the type, registers their width.
Type stored_type(const Operand& operand, Type type, std::uint32_t bytes) {
  return operand.kind == Operand::Kind::reg ? bits_type(bytes) : type;
}

/// Values that a store of `type` reads; their registers may be wider than the type.
template <class Access>
std::vector<std::uint32_t> store_sources(Emitter& e, Access& access, const Operand& operand,
                                         Type type) {
  const auto elements = elements_of(operand);
  if (elements.size() != access.elements) throw Unsupported{"it has too few or many registers"};
  std::vector<std::uint32_t> sources;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::uint32_t bytes = std::max(bytes_of(type), 2u);
    if (elements[i]->kind == Operand::Kind::reg) bytes = e.register_bytes(*elements[i]);
    if (bytes < bytes_of(type)) throw Unsupported{"its register is narrower than its type"};
    const std::uint32_t value = e.in(*elements[i], stored_type(*elements[i], type, bytes));
    access.values[i] = value;
    access.value_bytes[i] = static_cast<std::uint8_t>(bytes);
    sources.push_back(value);
  }
  return sources;
}

/// Of an access to a 128-bit register: that to its halves.
template <class Access>
std::vector<std::uint32_t> take_halves(Access& access, const std::array<std::uint32_t, 2>& halves) {
  if (access.elements != 1) throw Unsupported{"vectors of 128 bits are not supported"};
  access.elements = 2;
  access.bytes = 8;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    access.values[i] = halves[i];
    access.value_bytes[i] = 8;
  }
  return {halves.begin(), halves.end()};
}

/// The place of a `.param` operand: an offset in its area, or a computed address.
void place_parameter(Emitter& e, ParameterAccess& access, const Operand& operand,
                     const Variables::Offsets& offsets) {
  const Operand& base = base_of(operand);
  if (base.kind == Operand::Kind::variable) {
    const auto found = offsets.find(base.name);
    if (found == offsets.end()) throw Unsupported{"it names no parameter of this function"};
    if (!base.elements.empty()) throw Unsupported{"parameters are not indexed by registers"};
    access.offset = found->second + static_cast<std::uint64_t>(base.integer) +
                    static_cast<std::uint64_t>(operand.integer);
    return;
  }
  if (base.kind != Operand::Kind::reg) throw Unsupported{"its address is not supported"};
  access.address = e.value_of(base);
  access.address_is_64_bits = e.width_of(access.address) == 8;
  access.offset = static_cast<std::uint64_t>(operand.integer);
}

void load_parameter(Emitter& e, Type type, std::uint8_t elements) {
  ParameterAccess access;
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  access.elements = elements;
  access.sign_extend = is_signed(type);
  const Operand& from = e.operand(1);
  const Operand& base = base_of(from);
  const bool own = e.in_kernel() && (base.kind == Operand::Kind::reg ||
                                     e.variables().kernel_parameters().contains(base.name));
  place_parameter(e, access, from,
                  own ? e.variables().kernel_parameters() : e.variables().parameters());
  const auto targets = load_targets(e, access, e.operand(0), type);
  e.emit(own ? Action::kernel_parameter : Action::parameter_load, e.program().parameter_accesses,
         access, targets, {access.address});
  // Machine code has kernel parameters in the constant bank and call parameters in registers.
  e.fold();
}

void store_parameter(Emitter& e, Type type, std::uint8_t elements) {
  ParameterAccess access;
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  access.elements = elements;
  place_parameter(e, access, e.operand(0), e.variables().parameters());
  auto uses = store_sources(e, access, e.operand(1), type);
  uses.push_back(access.address);
  e.emit(Action::parameter_store, e.program().parameter_accesses, access, {}, uses);
  e.fold();
}

}  // namespace

void ld(Emitter& e, Modifiers& modifiers) {
  const MemoryModifiers space = take_space(e, modifiers);
  const std::uint8_t elements = take_elements(modifiers);
  const Type type = modifiers.need_type();
  const bool is_wide = type == Type::b128;
  if (space.parameter) {
    if (is_wide) throw Unsupported{"128-bit registers are not supported here"};
    load_parameter(e, type, elements);
    return;
  }
  MemoryAccess access;
  access.space = space.space;
  access.constant = space.constant;
  access.strong = space.strong;
  access.acquires = space.acquires;
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  access.elements = elements;
  access.sign_extend = is_signed(type);
  take_address(e, access, e.operand(1));
  const auto targets = is_wide ? take_halves(access, e.halves_out(e.operand(0)))
                               : load_targets(e, access, e.operand(0), type);
  e.emit(Action::load, e.program().memory, access, targets, {access.address});
  if (space.constant) {
    e.set_class(OpClass::constant_load);
    e.row().cache_operator = CacheOperator::none;
    return;
  }
  set_memory_row(e, space.space, MemoryKind::load, bytes_of(type) * elements);
}

void st(Emitter& e, Modifiers& modifiers) {
  const bool is_async = modifiers.take("async");
  if (is_async && !modifiers.take("mbarrier::complete_tx::bytes")) {
    throw Unsupported{"it does not name .mbarrier::complete_tx::bytes"};
  }
  const MemoryModifiers space = take_space(e, modifiers);
  const std::uint8_t elements = take_elements(modifiers);
  const Type type = modifiers.need_type();
  const bool is_wide = type == Type::b128;
  if (space.parameter) {
    if (is_wide) throw Unsupported{"128-bit registers are not supported here"};
    store_parameter(e, type, elements);
    return;
  }
  MemoryAccess access;
  access.space = space.space;
  access.strong = space.strong;
  access.releases = space.releases;
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  access.elements = elements;
  take_address(e, access, e.operand(0));
  auto uses = is_wide ? take_halves(access, e.halves_in(e.operand(1)))
                      : store_sources(e, access, e.operand(1), type);
  uses.push_back(access.address);
  e.emit(Action::store, e.program().memory, access, {}, uses);
  set_memory_row(e, space.space, MemoryKind::store, bytes_of(type) * elements);
  if (!is_async) return;
  e.set_row_step();
  simt::AsyncBarrier barrier{.kind = simt::AsyncBarrier::Kind::complete};
  barrier.address = address_operand(e, e.operand(2), AddressSpace::shared);
  barrier.bytes = e.constant(bytes_of(type) * elements, 4);
  e.emit(Action::async_barrier, e.program().async_barriers, barrier, {},
         {barrier.address.slot, barrier.bytes});
}

void cp(Emitter& e, Modifiers& modifiers) {
  const bool reduces = modifiers.take("reduce");
  if (!modifiers.take("async") && !reduces) throw Unsupported{"it is not asynchronous"};
  if (modifiers.take("bulk")) {
    bulk_copy(e, modifiers, reduces);
    return;
  }
  if (modifiers.take("mbarrier")) {
    copies_arrive(e, modifiers);
    return;
  }
  // Copies finish at once, so waiting for them takes no step. Models and simulator see in the trace
  // which groups are waited for.
  if (modifiers.take("commit_group") || modifiers.take("wait_all")) return;
  if (modifiers.take("wait_group")) {
    e.row().opcode =
        trace::wait_opcode("cp.async.wait_group", static_cast<std::uint32_t>(e.operand(0).integer));
    return;
  }
  modifiers.take("ca");
  const bool bypass = modifiers.take("cg");
  modifiers.take("shared");
  modifiers.take("shared::cta");
  modifiers.take("global");
  modifiers.take_prefix("L2::");
  MemoryAccess access;
  access.space = AddressSpace::shared;
  take_address(e, access, e.operand(0));
  const Address from = address(e, e.operand(1));
  access.second_address = from.value;
  access.second_is_64_bits = from.is_64_bits;
  access.second_offset = from.offset;
  access.bytes = static_cast<std::uint8_t>(e.operand(2).integer);
  if (access.bytes != 4 && access.bytes != 8 && access.bytes != 16) {
    throw Unsupported{"cp.async copies 4, 8 or 16 bytes"};
  }
  if (e.num_operands() > 3) access.source_bytes = e.in(3, Type::u32);
  e.emit(Action::async_copy, e.program().memory, access, {},
         {access.address, access.second_address, access.source_bytes});
  e.set_class(OpClass::memory);
  set_memory_row(e, AddressSpace::global, MemoryKind::async_copy, access.bytes);
  if (bypass) e.row().cache_operator = CacheOperator::bypass_l1;
}

/// Hints, which change no value and are no access in the trace.
void hint(Emitter&, Modifiers& modifiers) { modifiers.take_all(); }

void fence(Emitter& e, Modifiers& modifiers) {
  modifiers.take_all();
  e.emit(Action::fence, {}, {});
}

}  // namespace warpstack::ptx::handlers
