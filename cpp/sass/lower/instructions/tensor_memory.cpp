#include <string>
#include <utility>
#include <vector>

#include "sass/lower/handlers.h"
#include "sass/lower/memory_operands.h"
#include "simt/program/address_space.h"

// The memory of the tensor cores, PTX's tcgen05: products (UTCHMMA and its kin), transfers (LDTM,
// STTM), copies (UTCCP), shifts, commits (UTCBAR) and allocations (UTCATOMSWS). Operands but those
// of transfers are uniform: a warp does each operation once, here in the first lane of the path.

namespace warpstack::sass {
namespace {

using simt::AddressOperand;
using simt::AddressSpace;
using simt::TensorAllocation;
using simt::TensorCommit;
using simt::TensorFill;
using simt::TensorKind;
using simt::TensorProduct;
using simt::TensorShape;
using simt::TensorTransfer;

/// The uniform register in brackets, and others behind it.
Slot uniform_in(Lowerer& to, const Operand& operand, Operand::Kind kind, std::uint32_t further) {
  if (operand.kind != kind || operand.base != Operand::no_base ||
      operand.uniform_base == Operand::no_base) {
    to.refuse("operand " + operand.text + " is not what this place needs, with uniform registers");
  }
  Operand word;
  word.kind = Operand::Kind::uniform;
  const bool is_zero = operand.uniform_base == zero_uniform;
  word.index = is_zero ? zero_uniform : operand.uniform_base + further;
  word.text = operand.text;
  return to.word(word);
}

AddressOperand tensor_address(Lowerer& to, const Operand& operand, std::uint32_t further = 0) {
  return {.space = AddressSpace::shared,
          .slot = uniform_in(to, operand, Operand::Kind::tensor_memory, further),
          .is_64_bits = false,
          .offset = operand.integer};
}

/// A descriptor of 64 bits in one slot. Its suffix says what the tensor cores keep for later.
Slot descriptor_of(Lowerer& to, const Operand& operand) {
  const Slot words = uniform_in(to, operand, Operand::Kind::descriptors, 0);
  const Slot descriptor = to.temporary();
  to.applies(operand, suffix);
  to.emit(Operation::pack, Type::b64, descriptor, {words});
  return descriptor;
}

template <class T>
void emit_once(Lowerer& to, Action action, std::vector<T>& table, T entry) {
  to.guard_by_first_lane();
  to.row_follows();
  to.emit(action, static_cast<std::uint32_t>(table.size()));
  table.push_back(std::move(entry));
}

/// The lanes of D that stay as they are, a word for each 32; of a pair, of both blocks.
void take_disabled(Lowerer& to, const Operand& operand, TensorProduct& product) {
  if (product.weights_stationary) to.refuse("masks of columns are not executed");
  for (std::uint32_t i = 0; i < 4 * product.num_blocks(); ++i) {
    Operand word = operand;
    if (operand.index != zero_uniform) word.index += i;
    product.disabled[i] = to.word(word);
  }
}

/// A, B, D, where the places of a sparse A's elements are (not looked at), the instruction
/// descriptor; then scales or lanes to leave, whether D counts, and its scale.
void multiply(Lowerer& to, Form& form, TensorProduct product) {
  product.is_of_pair = form.take("2CTA");
  const Operand& a = form.next();
  if (a.kind == Operand::Kind::tensor_memory) {
    product.a = tensor_address(to, a);
    to.applies(a, suffix);
  } else {
    product.a_descriptor = descriptor_of(to, a);
  }
  product.b_descriptor = descriptor_of(to, form.next());
  product.d = tensor_address(to, form.next());
  tensor_address(to, form.next());
  product.instruction = uniform_in(to, form.next(), Operand::Kind::product, 0);
  if (form.peek().kind == Operand::Kind::tensor_memory) {
    const Operand& scales = form.next();
    product.scale_a = tensor_address(to, scales);
    product.scale_b = tensor_address(to, scales, 1);
    if (product.elements_per_scale == 0) {
      product.kind = TensorKind::mxf8f6f4;
      product.elements_per_scale = 32;
    }
  } else if (product.elements_per_scale != 0) {
    to.refuse("its scales are missing");
  } else if (form.peek().kind == Operand::Kind::uniform) {
    take_disabled(to, form.next(), product);
  }
  product.accumulates = to.positive(form.next());
  if (form.more()) {
    const std::int64_t shift = to.number(form.next());
    if (product.kind != TensorKind::f16_tf32 || shift < 0 || shift > 15) {
      to.refuse("its last operand is no shift of D from 0 to 15");
    }
    product.shift_of_d = static_cast<std::uint32_t>(shift);
  }
  emit_once(to, Action::tensor_product, to.program().tensor_products, product);
}

void multiply_plain(Lowerer& to, Form& form, TensorKind kind) {
  TensorProduct product{.kind = kind};
  product.weights_stationary = form.take("WS");
  multiply(to, form, product);
}

/// Registers of a transfer: so many for each repetition of its shape.
std::uint32_t take_shape(Lowerer& to, Form& form, TensorTransfer& transfer) {
  std::uint32_t registers = 1;
  if (form.take("16dp64bit")) {
    transfer.shape = TensorShape::l16b64;
  } else if (form.take("16dp128bit")) {
    transfer.shape = TensorShape::l16b128;
    registers = 2;
  } else if (form.take("16dp256bit")) {
    transfer.shape = TensorShape::l16b256;
    registers = 4;
  } else if (form.take("16dp32bit_t0_t15")) {
    transfer.shape = TensorShape::l16b32x2;
    transfer.end_lane = 16;
  } else if (form.take("16dp32bit_t16_t31")) {
    transfer.shape = TensorShape::l16b32x2;
    transfer.first_lane = 16;
  }
  for (std::uint32_t repeats = 2; repeats <= 128; repeats *= 2) {
    if (!form.take("x" + std::to_string(repeats))) continue;
    registers *= repeats;
    break;
  }
  if (registers > 128) to.refuse("it would have more than 128 registers");
  return registers;
}

void transfer(Lowerer& to, Form& form, bool is_store) {
  TensorTransfer transfer;
  transfer.is_store = is_store;
  const std::uint32_t count = take_shape(to, form, transfer);
  transfer.is_packed = form.take(is_store ? "EXPAND16BIT" : "PACK16BIT");
  const Operand& first = form.next();
  const Operand& second = form.next();
  const Operand& values = is_store ? second : first;
  transfer.address = tensor_address(to, is_store ? first : second);
  const bool is_zero = values.index == zero_register;
  if (values.kind != Operand::Kind::reg ||
      (!is_zero && !to.frame().has_register(values.index + count - 1))) {
    to.refuse("operand " + values.text + ": its " + std::to_string(count) +
              " registers are more than the kernel has");
  }
  const Slot slot = is_store ? to.word(values) : to.target(values);
  for (std::uint32_t i = 0; i < count; ++i) {
    transfer.values.push_back(is_zero ? slot : slot + i * Frame::slot_bytes);
  }
  to.row_follows();
  to.emit(Action::tensor_transfer,
          static_cast<std::uint32_t>(to.program().tensor_transfers.size()));
  to.program().tensor_transfers.push_back(std::move(transfer));
}

TensorFill take_fill(Form& form) {
  if (form.take("128dp128bit")) return {.bytes = 16};
  if (form.take("4dp256bit")) return {.rows = 4, .lane_step = simt::lanes_of_warp};
  if (form.take("2x64dp128bit_lw02_lw13")) {
    return {.rows = 64, .bytes = 16, .copies = 2, .copy_step = 64};
  }
  if (form.take("2x64dp128bit_lw01_lw23")) {
    return {.rows = 64, .bytes = 16, .upper_rows = 64, .copies = 2, .copy_step = 32};
  }
  if (form.take("4x32dp128bit")) return {.rows = 32, .bytes = 16, .copies = 4, .copy_step = 32};
  return {};
}

}  // namespace

void handlers::utchmma(Lowerer& to, Form& form) { multiply_plain(to, form, TensorKind::f16_tf32); }
void handlers::utcqmma(Lowerer& to, Form& form) { multiply_plain(to, form, TensorKind::f8f6f4); }
void handlers::utcimma(Lowerer& to, Form& form) { multiply_plain(to, form, TensorKind::i8); }

/// Factors of 4 bits with scales: for 32 elements each, with .4X for 16.
void handlers::utcomma(Lowerer& to, Form& form) {
  multiply(to, form,
           {.kind = TensorKind::mxf4nvf4,
            .elements_per_scale = form.take("4X") ? std::uint32_t{16} : std::uint32_t{32}});
}

void handlers::ldtm(Lowerer& to, Form& form) { transfer(to, form, false); }
void handlers::sttm(Lowerer& to, Form& form) { transfer(to, form, true); }

void handlers::utccp(Lowerer& to, Form& form) {
  if (!form.take("T") || !form.take("S")) to.refuse("it is no copy from shared to tensor memory");
  TensorFill fill = take_fill(form);
  fill.is_of_pair = form.take("2CTA");
  if (form.take("U4x16P64")) {
    fill.format = TensorFill::Format::b4;
  } else if (form.take("U6x16P32")) {
    fill.format = TensorFill::Format::b6;
  }
  fill.address = tensor_address(to, form.next());
  fill.descriptor = descriptor_of(to, form.next());
  emit_once(to, Action::tensor_fill, to.program().tensor_fills, fill);
}

void handlers::utcshift(Lowerer& to, Form& form) {
  if (!form.take("DOWN")) to.refuse("only DOWN is executed");
  const bool is_of_pair = form.take("2CTA");
  emit_once(to, Action::tensor_shift, to.program().tensor_shifts,
            {tensor_address(to, form.next()), is_of_pair});
}

/// An arrival at an mbarrier, with .MULTICAST at those of the blocks of a mask.
void handlers::utcbar(Lowerer& to, Form& form) {
  form.take("2CTA");
  const bool to_many = form.take("MULTICAST");
  simt::MemoryAccess access;
  set_address(to, access, form.next(), false);
  if (to.word(form.next()) != Frame::zero) to.refuse("its second operand is not URZ");
  TensorCommit commit{.barrier = simt::ranked_address(access.address, access.offset)};
  if (to_many) commit.blocks = to.word(form.next());
  emit_once(to, Action::tensor_commit, to.program().tensor_commits, commit);
}

/// FIND_AND_SET allocates groups of 32 columns and gives the number of the first; AND frees those
/// that its mask has not. An allocation waits until there is room, so it always succeeds.
void handlers::utcatomsws(Lowerer& to, Form& form) {
  using Kind = TensorAllocation::Kind;
  const bool is_of_pair = form.take("2CTA");
  const auto emit = [&to](const TensorAllocation& made) {
    to.row_follows();
    to.emit(Action::tensor_allocate,
            static_cast<std::uint32_t>(to.program().tensor_allocations.size()));
    to.program().tensor_allocations.push_back(made);
  };
  if (form.take("AND")) {
    if (to.target(form.next()) != Frame::sink) to.refuse("its old value is not executed");
    emit({.kind = Kind::free_groups, .columns = to.word(form.next())});
    return;
  }
  if (!form.take("FIND_AND_SET") || !form.take("ALIGN")) to.refuse("this form is not executed");
  to.program().has_pair_allocations |= is_of_pair;
  const Slot success = to.predicate_target(form.next());
  const Slot first = to.target(form.next());
  emit({.kind = Kind::find_groups,
        .is_of_pair = is_of_pair,
        .address = first,
        .columns = to.word(form.next())});
  to.move(success, Frame::truth);
}

/// From here on other blocks of the SM may allocate, which here have a tensor memory each.
void handlers::uvirtcount(Lowerer& to, Form& form) {
  if (!form.take("DEALLOC") || !form.take("SMPOOL")) to.refuse("this form is not executed");
  to.number(form.next());
}

}  // namespace warpstack::sass
