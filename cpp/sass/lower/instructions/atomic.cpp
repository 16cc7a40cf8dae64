#include <string>
#include <utility>

#include "sass/lower/handlers.h"
#include "sass/lower/memory_operands.h"
#include "simt/arithmetic/atomics.h"

namespace warpstack::sass {
namespace {

using simt::AddressSpace;
using simt::MemoryAccess;

constexpr std::pair<std::string_view, std::string_view> operations[] = {
    {"ADD", "add"}, {"MIN", "min"}, {"MAX", "max"}, {"INC", "inc"},   {"DEC", "dec"},
    {"AND", "and"}, {"OR", "or"},   {"XOR", "xor"}, {"EXCH", "exch"}, {"CAS", "cas"}};

/// The type and number of elements. Halves are taken two at a time.
struct Elements {
  Type type = Type::u32;
  std::uint32_t count = 1;
};

Elements elements_in(Form& form) {
  static constexpr std::pair<std::string_view, Elements> vectors[] = {
      {"F32x2", {Type::f32, 2}},   {"F32x4", {Type::f32, 4}},     {"F16x4", {Type::f16x2, 2}},
      {"F16x8", {Type::f16x2, 4}}, {"BF16x4", {Type::bf16x2, 2}}, {"BF16x8", {Type::bf16x2, 4}}};
  for (const auto& [name, elements] : vectors) {
    if (form.take(name)) return elements;
  }
  return {};
}

Type type_in(Form& form) {
  if (form.take("F32")) return Type::f32;
  if (form.take("F64")) return Type::f64;
  if (form.take("F16x2")) return Type::f16x2;
  if (form.take("BF16x2") || form.take("BF16_V2")) return Type::bf16x2;
  if (form.take("S32")) return Type::s32;
  if (form.take("S64")) return Type::s64;
  if (form.take("U64") || form.take("64")) return Type::u64;
  form.take_all({"U32", "32"});
  return Type::u32;
}

/// The slot of a value; a 64-bit value has both words in one slot.
Slot operand_of(Lowerer& to, const Operand& operand, Type type) {
  if (bytes_of(type) < 8) return to.word(operand);
  const Slot value = to.temporary();
  to.emit(Operation::pack, Type::b64, value, {to.pair(operand)});
  return value;
}

void emit_update(Lowerer& to, MemoryAccess access, const Operand* result) {
  const bool is_wanted =
      result != nullptr && !(result->kind == Operand::Kind::reg && result->index == zero_register);
  const bool is_pair = access.bytes == 8;
  if (is_wanted) access.result = is_pair ? to.temporary() : to.target(*result, access.elements);
  for (std::uint32_t i = 1; is_wanted && i < access.elements; ++i) {
    access.more_results[i - 1] = access.result + i * Frame::slot_bytes;
  }
  to.row_follows();
  to.emit(Action::atomic, static_cast<std::uint32_t>(to.program().memory.size()));
  to.program().memory.push_back(access);
  if (is_wanted && is_pair) {
    to.emit(Operation::unpack, Type::b64, to.target(*result, 2), {access.result});
  }
}

/// ATOMS.CAST.SPIN and ATOM.E.CAST.SPIN: give whether the word was as expected and has been
/// exchanged, as 1 or 0, or since sm_100 as a predicate.
void cast(Lowerer& to, Form& form, AddressSpace space) {
  form.take("SPIN");
  const Type type = type_in(form);
  MemoryAccess access;
  access.space = space;
  take_order(form, access);
  access.strong = true;
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  const Operand* first = &form.next();
  if (space == AddressSpace::generic && Lowerer::is_unused(*first)) first = &form.next();
  const Operand& result = *first;
  const Slot target = result.is_predicate() ? to.predicate_target(result)
                                            : to.target(result, bytes_of(type) == 8 ? 2 : 1);
  set_address(to, access, form.next(), space == AddressSpace::generic);
  const Slot expected = operand_of(to, form.next(), type);
  access.operand_b = expected;
  access.operand_c = operand_of(to, form.next(), type);
  access.atomic = simt::find_atomic("cas", type, false);
  access.takes_locks = true;
  // The result is put aside, because it is compared afterwards.
  const Slot old = to.temporary();
  access.result = old;
  to.row_follows();
  to.emit(Action::atomic, static_cast<std::uint32_t>(to.program().memory.size()));
  to.program().memory.push_back(access);
  const Slot same = to.temporary();
  to.emit({.operation = Operation::setp, .type = type, .comparison = simt::Comparison::eq}, same,
          {old, expected});
  if (result.is_predicate()) return to.move(target, same);
  to.emit(Operation::selp, Type::b32, target, {to.frame().literal(1), Frame::zero, same});
  if (access.bytes == 8) {
    to.emit(Operation::mov, Type::b32, target + Frame::slot_bytes, {Frame::zero});
  }
}

/// Whether the memory's units compute at an address. Code checks the predicate and updates other
/// places by itself.
Condition reached_by(Lowerer& to, const MemoryAccess& access, bool is_global) {
  if (access.offset != 0 || access.address == simt::none ||
      access.address_high != access.address + Frame::slot_bytes) {
    to.refuse("its predicate with such an address is not executed");
  }
  const Slot address = to.temporary();
  to.emit(Operation::pack, Type::b64, address, {access.address});
  const Slot holds = to.temporary();
  simt::Step& step = to.emit(Action::address_query);
  step.operands.target = holds;
  step.operands.source[0] = address;
  step.operands.immediate = is_global ? 1 : 3;  // tests for global, or local
  return {holds, !is_global};
}

template <AddressSpace space, bool has_result>
void atomic(Lowerer& to, Form& form) {
  MemoryAccess access;
  access.space = space;
  const bool is_64_bits = form.take("E");
  if (space != AddressSpace::global && form.take("CAST")) return cast(to, form, space);
  take_order(form, access);
  access.strong = true;
  const bool counts_lanes = form.take("POPC");
  std::string_view operation;
  for (const auto& [name, ours] : operations) {
    if (operation.empty() && form.take(name)) operation = ours;
  }
  if (operation.empty()) to.refuse("its operation is not known");
  const Elements elements = elements_in(form);
  const Type type = elements.count > 1 ? elements.type : type_in(form);
  const bool flush = is_float(type) && form.take("FTZ");
  if (is_float(type)) form.take("RN");
  access.bytes = static_cast<std::uint8_t>(bytes_of(type));
  access.elements = static_cast<std::uint8_t>(elements.count);
  if (elements.count > 1 && space == AddressSpace::shared)
    to.refuse("vectors are not in shared memory");
  if (counts_lanes && operation != "inc") to.refuse("lanes are counted by POPC.INC alone");
  if (counts_lanes) operation = "add";
  access.atomic = simt::find_atomic(operation, type, flush);
  if (access.atomic == nullptr) to.refuse("this operation is not executed on its type");
  access.takes_locks = operation == "cas" || operation == "exch";
  const Operand* result = nullptr;
  const Operand* done = nullptr;
  if constexpr (has_result) {
    if (form.peek().is_predicate()) done = &form.next();
    if (done != nullptr && Lowerer::is_unused(*done)) done = nullptr;
    if (done != nullptr && space != AddressSpace::generic)
      to.refuse("its predicate is not executed");
    result = &form.next();
  }
  set_address(to, access, form.next(), is_64_bits && space != AddressSpace::shared);
  if (counts_lanes) {
    // Each lane adds one; the result that the unit returns is not known.
    if (result != nullptr && result->index != zero_register)
      to.refuse("its result is not executed");
    access.operand_b = to.frame().literal(1);
  } else {
    const Operand& operand = form.next();
    if (elements.count > 1) to.check_tuple(operand, elements.count);
    access.operand_b = operand_of(to, operand, type);
    for (std::uint32_t i = 1; i < elements.count; ++i) {
      const bool is_nothing = access.operand_b == Frame::zero;
      access.more_operands[i - 1] =
          is_nothing ? Frame::zero : access.operand_b + i * Frame::slot_bytes;
    }
    if (operation == "cas") access.operand_c = operand_of(to, form.next(), type);
  }
  access.overwrites =
      operation == "exch" && (result == nullptr || to.target(*result) == Frame::sink);
  // As in PTX, whether anybody reads its result or not.
  access.counts = operation == "add" && !is_float(type) && elements.count == 1 && !counts_lanes &&
                  result != nullptr;
  if (done == nullptr) return emit_update(to, access, result);
  // Shared memory has units for words and for exchanges.
  const bool is_global = !access.takes_locks && (access.bytes == 8 || is_float(type));
  const Condition guard = to.guard();
  const Condition reached = reached_by(to, access, is_global);
  to.require(reached);
  emit_update(to, access, result);
  to.guard_by(guard);
  to.move(to.predicate_target(*done), to.positive(reached));
}

}  // namespace

void handlers::atomg(Lowerer& to, Form& form) { atomic<AddressSpace::global, true>(to, form); }
void handlers::atom(Lowerer& to, Form& form) { atomic<AddressSpace::generic, true>(to, form); }
void handlers::atoms(Lowerer& to, Form& form) { atomic<AddressSpace::shared, true>(to, form); }
void handlers::red(Lowerer& to, Form& form) { atomic<AddressSpace::global, false>(to, form); }

}  // namespace warpstack::sass
