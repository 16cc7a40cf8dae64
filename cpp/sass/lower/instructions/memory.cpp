#include <optional>
#include <tuple>
#include <utility>

#include "sass/lower/handlers.h"
#include "sass/lower/memory_operands.h"
#include "simt/program/address_space.h"

namespace warpstack::sass {
namespace {

using simt::AddressSpace;
using simt::MemoryAccess;

constexpr std::tuple<std::string_view, std::uint8_t, std::uint8_t, bool> widths[] = {
    {"U8", 1, 1, false}, {"S8", 1, 1, true},  {"U16", 2, 1, false}, {"S16", 2, 1, true},
    {"32", 4, 1, false}, {"64", 4, 2, false}, {"128", 4, 4, false}};

/// Elements are words: each has a register of its own.
void take_width(Form& form, MemoryAccess& access) {
  access.bytes = 4;
  access.elements = 1;
  for (const auto& [name, bytes, elements, is_signed] : widths) {
    if (!form.take(name)) continue;
    access.bytes = bytes;
    access.elements = elements;
    access.sign_extend = is_signed;
    break;
  }
}

void set_values(Lowerer& to, MemoryAccess& access, const Operand& operand, bool is_load) {
  to.check_tuple(operand, access.elements);
  const Slot first = is_load ? to.target(operand) : to.word(operand);
  const bool is_zero = operand.kind == Operand::Kind::reg && operand.index == zero_register;
  for (std::uint32_t e = 0; e < access.elements; ++e) {
    access.values[e] = is_zero ? first : first + e * Frame::slot_bytes;
    access.value_bytes[e] = 4;
  }
}

void emit_access(Lowerer& to, Action action, const MemoryAccess& access) {
  to.row_follows();
  to.emit(action, static_cast<std::uint32_t>(to.program().memory.size()));
  to.program().memory.push_back(access);
}

template <AddressSpace space, bool is_load>
void load_store(Lowerer& to, Form& form) {
  MemoryAccess access;
  access.space = space;
  const bool is_64_bits = form.take("E");
  take_width(form, access);
  take_order(form, access);
  form.take("U");  // the address is not known to be a multiple of the width
  const Operand* target = nullptr;
  if constexpr (is_load) {
    if (form.peek().is_predicate() && !Lowerer::is_unused(form.next())) {
      to.refuse("its predicate is not executed");
    }
    target = &form.next();
  }
  const bool is_wide = is_64_bits && space != AddressSpace::shared && space != AddressSpace::local;
  set_address(to, access, form.next(), is_wide);
  if constexpr (!is_load) target = &form.next();
  if (form.more() && !(form.peek().is_predicate() && Lowerer::is_unused(form.next()))) {
    to.refuse("its last operand is not executed");
  }
  set_values(to, access, *target, is_load);
  emit_access(to, is_load ? Action::load : Action::store, access);
}

/// The address of an access of 64 bits in one slot, with its offset.
Slot whole_address(Lowerer& to, const MemoryAccess& access) {
  const Slot words = to.temporary();
  const bool has_register = access.address != simt::none;
  to.move(words, has_register ? access.address : Frame::zero);
  to.move(words + Frame::slot_bytes, has_register ? access.address_high : Frame::zero);
  const Slot address = to.temporary();
  to.emit(Operation::pack, Type::b64, address, {words});
  if (access.offset == 0) return address;
  const Slot offset = to.temporary();
  to.emit(Operation::pack, Type::b64, offset,
          {to.frame().literal_pair(static_cast<std::uint64_t>(access.offset))});
  to.emit(Operation::add, Type::u64, address, {address, offset});
  return address;
}

/// With .ZFILL the source's address says how much is copied: its distance from a multiple of the
/// width is the number of zero bytes at the end. Returns the bytes to copy and rounds the address
/// down.
Slot take_fill(Lowerer& to, std::uint32_t width, Slot address) {
  const auto in_64_bits = [&](std::uint64_t value) {
    const Slot slot = to.temporary();
    to.emit(Operation::pack, Type::b64, slot, {to.frame().literal_pair(value)});
    return slot;
  };
  const Slot bytes = to.temporary();
  to.emit({.operation = Operation::cvt, .type = Type::u32, .source = Type::u64}, bytes, {address});
  to.emit(Operation::bit_and, Type::b32, bytes, {bytes, to.frame().literal(width - 1)});
  to.emit(Operation::sub, Type::u32, bytes, {to.frame().literal(width), bytes});
  to.emit(Operation::bit_and, Type::b64, address,
          {address, in_64_bits(~(std::uint64_t{width} - 1))});
  return bytes;
}

/// Instructions that change no value: caches, and waits for what is already done.
template <std::size_t operands>
void ignore(Lowerer& to, Form& form) {
  form.take_all({"IVALL", "E", "PF1", "PF2", "LE", "DEFER_BLOCKING", "LTC", "IV", "WB", "RS"});
  form.take_all({"C", "LDCU", "DEEP"});
  for (std::size_t i = 0; i < operands && form.more(); ++i) to.skip(form);
}

}  // namespace

void handlers::ldg(Lowerer& to, Form& form) { load_store<AddressSpace::global, true>(to, form); }
void handlers::stg(Lowerer& to, Form& form) { load_store<AddressSpace::global, false>(to, form); }
void handlers::lds(Lowerer& to, Form& form) { load_store<AddressSpace::shared, true>(to, form); }
void handlers::sts(Lowerer& to, Form& form) { load_store<AddressSpace::shared, false>(to, form); }
void handlers::ldl(Lowerer& to, Form& form) { load_store<AddressSpace::local, true>(to, form); }
void handlers::stl(Lowerer& to, Form& form) { load_store<AddressSpace::local, false>(to, form); }
void handlers::ld(Lowerer& to, Form& form) { load_store<AddressSpace::generic, true>(to, form); }
void handlers::st(Lowerer& to, Form& form) { load_store<AddressSpace::generic, false>(to, form); }

/// Global to shared memory without a register.
void handlers::ldgsts(Lowerer& to, Form& form) {
  MemoryAccess access;
  access.space = AddressSpace::shared;
  form.take("E");
  form.take("BYPASS");
  const bool fills = form.take("ZFILL");
  take_width(form, access);
  take_order(form, access);
  access.bytes = static_cast<std::uint8_t>(access.bytes * access.elements);
  access.elements = 1;
  MemoryAccess from;
  set_address(to, access, form.next(), false);
  set_address(to, from, form.next(), true);
  access.second_address = whole_address(to, from);
  access.second_is_64_bits = true;
  if (fills) access.source_bytes = take_fill(to, access.bytes, access.second_address);
  if (form.more()) {
    // Lanes whose predicate fails write zeros.
    const Condition condition = to.condition(form.next());
    if (!condition.is_true()) {
      const Slot bytes = to.temporary();
      const Slot all = fills ? access.source_bytes : to.frame().literal(access.bytes);
      to.emit(Operation::selp, Type::b32, bytes, {all, Frame::zero, to.positive(condition)});
      access.source_bytes = bytes;
    }
  }
  emit_access(to, Action::async_copy, access);
}

void handlers::membar(Lowerer& to, Form& form) {
  form.take_all({"SC", "ALL", "CTA", "GPU", "SYS", "SM", "VC", "COHERENCY"});
  form.take_all({"VIEW", "ASYNC", "S", "G", "T"});  // FENCE
  to.emit(Action::fence);
}

/// Whether a generic address is one of a space.
void handlers::qspc(Lowerer& to, Form& form) {
  form.take("E");
  const bool shared = form.take("S");
  const bool local = !shared && form.take("L");
  const bool cluster = !shared && !local && form.take("D");
  if (!shared && !local && !cluster && !form.take("G")) to.refuse("its space is not known");
  const Slot target = to.predicate_target(form.next());
  if (to.target(form.next()) != Frame::sink) to.refuse("its register is not executed");
  MemoryAccess access;
  set_address(to, access, form.next(), true);
  if (access.offset != 0 || access.address_high != access.address + Frame::slot_bytes) {
    to.refuse("an address with an offset is not executed");
  }
  const Slot address = to.temporary();
  to.emit(Operation::pack, Type::b64, address, {access.address});
  simt::Step& step = to.emit(Action::address_query);
  step.operands.target = target;
  step.operands.source[0] = address;
  step.operands.immediate = shared ? 2 : local ? 3 : cluster ? 5 : 1;
}

void handlers::errbar(Lowerer& to, Form& form) { ignore<0>(to, form); }

/// Its operand is an address.
void handlers::cctl(Lowerer& to, Form& form) { ignore<1>(to, form); }

/// Its operands are a barrier, how many may be pending, and other barriers.
void handlers::depbar(Lowerer& to, Form& form) { ignore<3>(to, form); }

/// A store to shared memory of the cluster, and its bytes at an mbarrier. Registers have both
/// addresses.
void handlers::stas(Lowerer& to, Form& form) {
  MemoryAccess access;
  access.space = AddressSpace::shared;
  take_width(form, access);
  take_order(form, access);
  const Operand& place = form.next();
  if (place.suffix != "64" || place.integer != 0 || place.uniform_base != Operand::no_base) {
    to.refuse("operand " + place.text + " is not like [R2.64]");
  }
  set_address(to, access, place, true);
  access.address_is_64_bits = false;
  const simt::AddressOperand address = simt::ranked_address(access.address);
  access.offset = address.offset;
  simt::AsyncBarrier barrier{.kind = simt::AsyncBarrier::Kind::complete};
  barrier.address = simt::ranked_address(access.address_high);
  access.address_high = simt::none;
  barrier.bytes = to.frame().literal(4u * access.elements);
  set_values(to, access, form.next(), false);
  emit_access(to, Action::store, access);
  to.emit(Action::async_barrier, static_cast<std::uint32_t>(to.program().async_barriers.size()));
  to.program().async_barriers.push_back(barrier);
}

}  // namespace warpstack::sass
