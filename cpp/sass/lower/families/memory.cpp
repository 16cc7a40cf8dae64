#include <optional>
#include <tuple>
#include <utility>

#include "sass/lower/families.h"
#include "sass/lower/memory_operands.h"

namespace warpstack::sass {
namespace {

using simt::AddressSpace;
using simt::MemoryAccess;

constexpr std::tuple<std::string_view, std::uint8_t, std::uint8_t, bool> widths[] = {
    {"U8", 1, 1, false}, {"S8", 1, 1, true},  {"U16", 2, 1, false}, {"S16", 2, 1, true},
    {"32", 4, 1, false}, {"64", 4, 2, false}, {"128", 4, 4, false}};

/// Elements are words, so that each has a register of its own.
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

/// Global to shared memory without a register.
void ldgsts(Lowerer& to, Form& form) {
  MemoryAccess access;
  access.space = AddressSpace::shared;
  form.take("E");
  form.take("BYPASS");
  take_width(form, access);
  take_order(form, access);
  access.bytes = static_cast<std::uint8_t>(access.bytes * access.elements);
  access.elements = 1;
  MemoryAccess from;
  set_address(to, access, form.next(), false);
  set_address(to, from, form.next(), true);
  if (form.more()) {
    // Lanes whose predicate fails write zeros.
    const Condition condition = to.condition(form.next());
    if (!condition.is_true()) {
      const Slot bytes = to.temporary();
      to.emit(Operation::selp, Type::b32, bytes,
              {to.frame().literal(access.bytes), Frame::zero, to.positive(condition)});
      access.source_bytes = bytes;
    }
  }
  if (from.address_high == simt::none) to.refuse("its source has no register");
  // The engine reads both halves of the source's address in one slot.
  const Slot packed = to.temporary();
  if (from.address_high != from.address + Frame::slot_bytes) {
    to.refuse("a source of 32 bits is not executed");
  }
  to.emit(Operation::pack, Type::b64, packed, {from.address});
  access.second_address = packed;
  access.second_is_64_bits = true;
  access.second_offset = from.offset;
  emit_access(to, Action::async_copy, access);
}

void fence(Lowerer& to, Form& form) {
  form.take_all({"SC", "ALL", "CTA", "GPU", "SYS", "SM", "VC", "COHERENCY"});
  to.emit(Action::fence);
}

/// What changes no value: caches, and waiting for what is done already.
template <std::size_t operands>
void ignore(Lowerer& to, Form& form) {
  form.take_all({"IVALL", "E", "PF1", "PF2", "LE", "DEFER_BLOCKING", "LTC", "IV", "WB", "RS"});
  for (std::size_t i = 0; i < operands && form.more(); ++i) to.skip(form);
}

/// Whether a generic address is one of a space.
void query_space(Lowerer& to, Form& form) {
  form.take("E");
  const bool shared = form.take("S");
  const bool local = !shared && form.take("L");
  if (!shared && !local && !form.take("G")) to.refuse("its space is not known");
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
  step.operands.immediate = shared ? 2 : local ? 3 : 1;
}

}  // namespace

Family memory_family(std::string_view base) {
  if (base == "LDG") return load_store<AddressSpace::global, true>;
  if (base == "STG") return load_store<AddressSpace::global, false>;
  if (base == "LDS") return load_store<AddressSpace::shared, true>;
  if (base == "STS") return load_store<AddressSpace::shared, false>;
  if (base == "LDL") return load_store<AddressSpace::local, true>;
  if (base == "STL") return load_store<AddressSpace::local, false>;
  if (base == "LD") return load_store<AddressSpace::generic, true>;
  if (base == "ST") return load_store<AddressSpace::generic, false>;
  if (base == "LDGSTS") return ldgsts;
  if (base == "MEMBAR") return fence;
  if (base == "QSPC") return query_space;
  if (base == "ERRBAR" || base == "CGAERRBAR" || base == "LDGDEPBAR") return ignore<0>;
  if (base == "CCTL") return ignore<1>;    // a place
  if (base == "DEPBAR") return ignore<3>;  // a barrier, how many may be left, others
  return nullptr;
}

}  // namespace warpstack::sass
