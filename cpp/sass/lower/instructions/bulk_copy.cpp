#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sass/lower/handlers.h"
#include "simt/arithmetic/atomics.h"
#include "simt/program/address_space.h"

// Copies of blocks of bytes (UBLKCP, UBLKRED) and of tiles of tensors (UTMALDG, UTMASTG, UTMAREDG).
// Their operands are uniform: a warp makes each copy once, here in the first lane of the path.

namespace warpstack::sass {
namespace {

using simt::AddressOperand;
using simt::AddressSpace;
using simt::BulkCopy;
using simt::ranked_address;
using simt::TensorCopy;

constexpr std::pair<std::string_view, std::string_view> operations[] = {
    {"ADD", "add"}, {"MIN", "min"}, {"MAX", "max"}, {"INC", "inc"},
    {"DEC", "dec"}, {"AND", "and"}, {"OR", "or"},   {"XOR", "xor"}};

/// The slots of the registers from the one in brackets on.
Slot registers_in(Lowerer& to, const Operand& operand) {
  if (operand.kind != Operand::Kind::address || operand.base != Operand::no_base ||
      operand.uniform_base == Operand::no_base || operand.uniform_base == zero_uniform ||
      operand.integer != 0) {
    to.refuse("operand " + operand.text + " is not like [UR4]");
  }
  Operand first;
  first.kind = Operand::Kind::uniform;
  first.index = operand.uniform_base;
  first.text = operand.text;
  return to.word(first);
}

/// An address of 64 bits in two registers.
AddressOperand pair_at(Lowerer& to, Slot words, AddressSpace space) {
  const Slot address = to.temporary();
  to.emit(Operation::pack, Type::b64, address, {words});
  return {.space = space, .slot = address, .is_64_bits = true, .offset = 0};
}

/// A half of a word.
Slot half_of(Lowerer& to, Slot word, bool upper) {
  const Slot half = to.temporary();
  to.emit(Operation::bfe, Type::u32, half,
          {word, to.frame().literal(upper ? 16 : 0), to.frame().literal(16)});
  return half;
}

std::string_view take_operation(Lowerer& to, Form& form) {
  for (const auto& [name, ours] : operations) {
    if (form.take(name)) return ours;
  }
  to.refuse("its operation is not known");
}

Type take_type(Form& form) {
  constexpr std::pair<std::string_view, Type> names[] = {
      {"F16", Type::f16}, {"BF16", Type::bf16}, {"BF16_V2", Type::bf16}, {"F32", Type::f32},
      {"F64", Type::f64}, {"S32", Type::s32},   {"S64", Type::s64},      {"64", Type::u64},
      {"U64", Type::u64}, {"U32", Type::u32}};
  for (const auto& [name, type] : names) {
    if (!form.take(name)) continue;
    form.take("RN");
    return type;
  }
  return Type::u32;
}

/// A policy for the cache may follow.
void skip_policy(Lowerer& to, Form& form) {
  if (form.more() && form.peek().text.starts_with("desc[")) to.skip(form);
}

void copy_bytes(Lowerer& to, Form& form, bool reduces) {
  // The target's space, then the source's.
  const bool to_shared = form.left() == "S";
  if (!to_shared && form.left() != "G") to.refuse("its spaces are not known");
  form.take(form.left());
  const bool from_global = to_shared && form.left() == "G";
  if (!form.take(from_global ? "G" : "S")) to.refuse("its spaces are not known");
  const bool to_many = form.take("MULTICAST");
  BulkCopy copy;
  if (reduces) {
    const std::string_view operation = take_operation(to, form);
    const Type type = take_type(form);
    copy.reduction = simt::find_atomic(operation, type, !to_shared);
    copy.element_bytes = static_cast<std::uint8_t>(bytes_of(type));
    if (copy.reduction == nullptr) to.refuse("this reduction is not executed");
  }
  const Slot target = registers_in(to, form.next());
  const Slot source = registers_in(to, form.next());
  const Slot size = to.integer(form.next());
  skip_policy(to, form);
  // The lower half counts pieces of 16 bytes, the upper one is a mask of blocks.
  copy.bytes = half_of(to, size, false);
  to.emit(Operation::shl, Type::b32, copy.bytes, {copy.bytes, to.frame().literal(4)});
  if (to_many) copy.blocks = half_of(to, size, true);
  copy.to = to_shared ? ranked_address(target) : pair_at(to, target, AddressSpace::global);
  copy.from = from_global ? pair_at(to, source, AddressSpace::global) : ranked_address(source);
  if (to_shared) copy.barrier = ranked_address(target + Frame::slot_bytes);
  to.guard_by_first_lane();
  to.row_follows();
  to.emit(Action::bulk_copy, static_cast<std::uint32_t>(to.program().bulk_copies.size()));
  to.program().bulk_copies.push_back(copy);
}

/// The registers of a tile are its address in shared memory, that of the barrier of a load, and the
/// coordinates.
void copy_tile(Lowerer& to, Form& form, bool to_shared, bool reduces) {
  TensorCopy copy;
  copy.to_shared = to_shared;
  copy.reduces = reduces;
  copy.dimensions = 0;
  for (std::uint8_t d = 1; d <= 5; ++d) {
    if (form.take(std::to_string(d) + "D")) copy.dimensions = d;
  }
  if (copy.dimensions == 0) to.refuse("it names no number of dimensions");
  const bool to_many = form.take("MULTICAST");
  copy.is_of_pair = form.take("2CTA");
  if (reduces) copy.reductions = simt::tensor_reductions(take_operation(to, form));
  const Slot tile = registers_in(to, form.next());
  copy.tile = ranked_address(tile);
  Slot next = tile + Frame::slot_bytes;
  if (to_shared) {
    copy.barrier = ranked_address(next);
    next += Frame::slot_bytes;
  }
  for (std::uint32_t d = 0; d < copy.dimensions; ++d) {
    copy.coordinates[d] = next + d * Frame::slot_bytes;
  }
  copy.map = pair_at(to, registers_in(to, form.next()), AddressSpace::generic);
  if (to_many) copy.blocks = half_of(to, to.integer(form.next()), true);
  skip_policy(to, form);
  to.guard_by_first_lane();
  to.row_follows();
  to.emit(Action::tensor_copy, static_cast<std::uint32_t>(to.program().tensor_copies.size()));
  to.program().tensor_copies.push_back(copy);
}

}  // namespace

void handlers::ublkcp(Lowerer& to, Form& form) { copy_bytes(to, form, false); }
void handlers::ublkred(Lowerer& to, Form& form) { copy_bytes(to, form, true); }
void handlers::utmaldg(Lowerer& to, Form& form) { copy_tile(to, form, true, false); }
void handlers::utmastg(Lowerer& to, Form& form) { copy_tile(to, form, false, false); }
void handlers::utmaredg(Lowerer& to, Form& form) { copy_tile(to, form, false, true); }

/// Prefetches of bytes, tiles and maps, and what makes copied maps visible: they change no value.
void handlers::utmapf(Lowerer& to, Form& form) {
  form.take_all({"L2", "1D", "2D", "3D", "4D", "5D", "PF", "IV", "IVALL"});
  while (form.more()) to.skip(form);
}

}  // namespace warpstack::sass
