#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"

// tcgen05: the memory of the tensor cores and their products.

namespace warpstack::ptx::handlers {
namespace {

using simt::TensorAllocation;
using simt::TensorCommit;
using simt::TensorFill;
using simt::TensorKind;
using simt::TensorProduct;
using simt::TensorShape;
using simt::TensorShift;
using simt::TensorTransfer;

/// Returns whether it is an operation of a pair of blocks.
bool take_group(Modifiers& modifiers) {
  const auto group = modifiers.take_one_of({"cta_group::1", "cta_group::2"});
  if (!group) throw Unsupported{"it names no .cta_group"};
  return *group == 1;
}

void take_whole_warp(Modifiers& modifiers) {
  if (!modifiers.take("sync") || !modifiers.take("aligned")) {
    throw Unsupported{"it does not name .sync.aligned"};
  }
}

void allocate(Emitter& e, Modifiers& modifiers, TensorAllocation::Kind kind) {
  using Kind = TensorAllocation::Kind;
  TensorAllocation request{.kind = kind, .is_of_pair = take_group(modifiers)};
  take_whole_warp(modifiers);
  if (kind == Kind::allocate) {
    const bool is_shared = modifiers.take_one_of({"shared::cta", "shared"}).has_value();
    request.result =
        address_operand(e, e.operand(0), is_shared ? AddressSpace::shared : AddressSpace::generic);
  } else if (kind == Kind::release) {
    request.address = e.in(0, Type::b32);
  }
  if (kind != Kind::relinquish) {
    if (!modifiers.take("b32")) throw Unsupported{"it does not name .b32"};
    request.columns = e.in(1, Type::u32);
  }
  e.emit(Action::tensor_allocate, e.program().tensor_allocations, request, {},
         {request.result.slot, request.address, request.columns});
  e.set_class(OpClass::uniform);
}

TensorKind take_kind(Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, TensorKind> kinds[] = {
      {"kind::f16", TensorKind::f16},           {"kind::tf32", TensorKind::tf32},
      {"kind::f8f6f4", TensorKind::f8f6f4},     {"kind::i8", TensorKind::i8},
      {"kind::mxf8f6f4", TensorKind::mxf8f6f4}, {"kind::mxf4", TensorKind::mxf4},
      {"kind::mxf4nvf4", TensorKind::mxf4nvf4}};
  for (const auto& [name, kind] : kinds) {
    if (modifiers.take(name)) return kind;
  }
  throw Unsupported{"it names no .kind that is supported"};
}

/// Elements with one scale; 0 if products of the kind have none.
std::uint32_t take_scales(Modifiers& modifiers, TensorKind kind) {
  if (!simt::is_block_scaled(kind)) return 0;
  if (!modifiers.take("block_scale")) throw Unsupported{"it does not name .block_scale"};
  if (modifiers.take("block32")) return 32;
  if (modifiers.take("block16")) return 16;
  if (modifiers.take("scale_vec::4X")) return 16;
  modifiers.take_one_of({"scale_vec::1X", "scale_vec::2X"});
  return 32;
}

/// The lanes of D that stay as they are; a vector of one word for each 32.
void take_disabled(Emitter& e, TensorProduct& product, const Operand& operand) {
  const auto words = elements_of(operand);
  const std::size_t needed = std::size_t{4} * product.num_blocks();
  if (words.size() != needed) {
    throw Unsupported{"its vector of lanes has " + std::to_string(words.size()) +
                      " words instead of " + std::to_string(needed)};
  }
  for (std::size_t i = 0; i < needed; ++i) product.disabled[i] = e.in(*words[i], Type::b32);
}

/// Takes the operands behind the instruction descriptor.
void take_options(Emitter& e, TensorProduct& product) {
  std::size_t next = 4;
  if (simt::is_block_scaled(product.kind)) {
    product.scale_a = address_operand(e, e.operand(next++), AddressSpace::shared);
    product.scale_b = address_operand(e, e.operand(next++), AddressSpace::shared);
  } else if (e.operand(next).kind == Operand::Kind::vector) {
    take_disabled(e, product, e.operand(next++));
  }
  product.accumulates = e.in(next++, Type::pred);
  if (e.num_operands() <= next) return;
  if (product.weights_stationary) throw Unsupported{"masks of columns are not supported"};
  const bool may_shift = product.kind == TensorKind::f16 || product.kind == TensorKind::tf32;
  const Operand& shift = e.operand(next);
  if (!may_shift || shift.kind != Operand::Kind::integer || shift.integer < 0 ||
      shift.integer > 15) {
    throw Unsupported{"its last operand is no shift of D from 0 to 15"};
  }
  product.shift_of_d = static_cast<std::uint32_t>(shift.integer);
}

void multiply(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("sp")) throw Unsupported{"sparse matrices are not supported"};
  TensorProduct product;
  product.weights_stationary = modifiers.take("ws");
  product.is_of_pair = take_group(modifiers);
  if (product.weights_stationary && product.is_of_pair) {
    throw Unsupported{"products of pairs of blocks have no .ws"};
  }
  product.kind = take_kind(modifiers);
  product.elements_per_scale = take_scales(modifiers, product.kind);
  if (product.weights_stationary && simt::is_block_scaled(product.kind)) {
    throw Unsupported{"block-scaled products have no .ws"};
  }
  if (modifiers.take("ashift")) throw Unsupported{"a shift of A is not supported"};
  modifiers.take_prefix("collector::");
  product.d = address_operand(e, e.operand(0), AddressSpace::shared);
  if (e.operand(1).kind == Operand::Kind::address) {
    product.a = address_operand(e, e.operand(1), AddressSpace::shared);
  } else {
    product.a_descriptor = e.in(1, Type::b64);
  }
  product.b_descriptor = e.in(2, Type::b64);
  product.instruction = e.in(3, Type::b32);
  take_options(e, product);
  std::vector<std::uint32_t> uses{product.d.slot,       product.a_descriptor, product.a.slot,
                                  product.b_descriptor, product.instruction,  product.accumulates,
                                  product.scale_a.slot, product.scale_b.slot};
  uses.insert(uses.end(), product.disabled.begin(), product.disabled.end());
  e.emit(Action::tensor_product, e.program().tensor_products, product, {}, uses);
  std::erase(uses, none);
  // Its reads of factors from shared memory are a row of their own.
  trace::StaticInstruction reads;
  reads.opcode = "tcgen05.operands.shared";
  reads.op_class = OpClass::memory;
  reads.space = MemorySpace::shared;
  reads.kind = MemoryKind::load;
  reads.width = 16;
  std::vector<std::uint32_t> descriptors{product.b_descriptor};
  if (product.a_descriptor != none) descriptors.push_back(product.a_descriptor);
  e.add_part(std::move(reads), {}, std::move(descriptors));
  e.set_class(OpClass::tensor);
  e.add_part({}, std::move(uses));
}

/// Registers of a transfer: so many for each repetition of its shape.
TensorShape take_shape(Modifiers& modifiers, std::uint32_t& registers) {
  static constexpr std::array<std::uint32_t, 5> per_unit{1, 2, 4, 1, 1};
  const auto shape = modifiers.take_one_of({"16x64b", "16x128b", "16x256b", "32x32b", "16x32bx2"});
  if (!shape) throw Unsupported{"it names no shape"};
  const auto repeats = modifiers.take_one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  if (!repeats) throw Unsupported{"it does not say how often its shape is repeated"};
  registers = per_unit[*shape] << *repeats;
  if (registers > 128) throw Unsupported{"it would have more than 128 registers"};
  return static_cast<TensorShape>(*shape);
}

void transfer(Emitter& e, Modifiers& modifiers, bool is_store) {
  if (modifiers.take("red")) throw Unsupported{"reductions of what is loaded are not supported"};
  take_whole_warp(modifiers);
  TensorTransfer transfer{.is_store = is_store};
  std::uint32_t needed = 0;
  transfer.shape = take_shape(modifiers, needed);
  transfer.is_packed = modifiers.take(is_store ? "unpack::16b" : "pack::16b");
  if (!modifiers.take("b32")) throw Unsupported{"it does not name .b32"};
  transfer.address = address_operand(e, e.operand(is_store ? 0 : 1), AddressSpace::shared);
  const bool is_halves = transfer.shape == TensorShape::l16b32x2;
  if (is_halves) {
    const Operand& second = e.operand(is_store ? 1 : 2);
    if (second.kind != Operand::Kind::integer) throw Unsupported{"its offset is not a number"};
    transfer.second = static_cast<std::uint32_t>(second.integer);
  }
  const auto registers = elements_of(e.operand(!is_store ? 0 : is_halves ? 2 : 1));
  if (registers.size() != needed) {
    throw Unsupported{"it has " + std::to_string(registers.size()) + " registers instead of " +
                      std::to_string(needed)};
  }
  for (const Operand* reg : registers) {
    transfer.values.push_back(is_store ? e.in(*reg, Type::b32) : e.out(*reg, Type::b32));
  }
  std::vector<std::uint32_t> uses{transfer.address.slot};
  if (is_store) uses.insert(uses.end(), transfer.values.begin(), transfer.values.end());
  e.emit(Action::tensor_transfer, e.program().tensor_transfers, transfer,
         is_store ? std::vector<std::uint32_t>{} : transfer.values, std::move(uses));
  e.set_class(OpClass::shuffle);
}

TensorFill take_fill(Modifiers& modifiers) {
  if (modifiers.take("128x256b")) return {};
  if (modifiers.take("128x128b")) return {.bytes = 16};
  if (modifiers.take("4x256b")) return {.rows = 4, .lane_step = simt::lanes_of_warp};
  if (modifiers.take("64x128b")) {
    if (modifiers.take("warpx2::02_13")) {
      return {.rows = 64, .bytes = 16, .copies = 2, .copy_step = 64};
    }
    if (modifiers.take("warpx2::01_23")) {
      return {.rows = 64, .bytes = 16, .upper_rows = 64, .copies = 2, .copy_step = 32};
    }
  } else if (modifiers.take("32x128b") && modifiers.take("warpx4")) {
    return {.rows = 32, .bytes = 16, .copies = 4, .copy_step = 32};
  }
  throw Unsupported{"it names no shape, or not the warps that get it"};
}

void fill(Emitter& e, Modifiers& modifiers) {
  const bool is_of_pair = take_group(modifiers);
  TensorFill fill = take_fill(modifiers);
  fill.is_of_pair = is_of_pair;
  if (modifiers.take("b8x16")) {
    const auto format = modifiers.take_one_of({"b4x16_p64", "b6x16_p32"});
    if (!format) throw Unsupported{"it names no format of its source"};
    fill.format = *format == 0 ? TensorFill::Format::b4 : TensorFill::Format::b6;
  }
  fill.address = address_operand(e, e.operand(0), AddressSpace::shared);
  fill.descriptor = e.in(1, Type::b64);
  e.emit(Action::tensor_fill, e.program().tensor_fills, fill, {},
         {fill.address.slot, fill.descriptor});
  e.set_class(OpClass::memory);
  set_memory_row(e, AddressSpace::shared, MemoryKind::load, 16);
}

void commit(Emitter& e, Modifiers& modifiers) {
  take_group(modifiers);
  if (!modifiers.take("mbarrier::arrive::one")) {
    throw Unsupported{"it does not name .mbarrier::arrive::one"};
  }
  const bool is_shared =
      modifiers.take_one_of({"shared::cluster", "shared::cta", "shared"}).has_value();
  const bool to_many = modifiers.take("multicast::cluster");
  if (!modifiers.take("b64")) throw Unsupported{"it does not name .b64"};
  TensorCommit commit;
  commit.barrier =
      address_operand(e, e.operand(0), is_shared ? AddressSpace::shared : AddressSpace::generic);
  if (to_many) commit.blocks = e.in(1, Type::b16);
  e.emit(Action::tensor_commit, e.program().tensor_commits, commit, {},
         {commit.barrier.slot, commit.blocks});
}

}  // namespace

void tcgen05(Emitter& e, Modifiers& modifiers) {
  using Kind = TensorAllocation::Kind;
  if (modifiers.take("alloc")) {
    allocate(e, modifiers, Kind::allocate);
  } else if (modifiers.take("dealloc")) {
    allocate(e, modifiers, Kind::release);
  } else if (modifiers.take("relinquish_alloc_permit")) {
    allocate(e, modifiers, Kind::relinquish);
  } else if (modifiers.take("mma")) {
    multiply(e, modifiers);
  } else if (modifiers.take("ld")) {
    transfer(e, modifiers, false);
  } else if (modifiers.take("st")) {
    transfer(e, modifiers, true);
  } else if (modifiers.take("cp")) {
    fill(e, modifiers);
  } else if (modifiers.take("shift")) {
    const bool is_of_pair = take_group(modifiers);
    if (!modifiers.take("down")) throw Unsupported{"it does not name .down"};
    const TensorShift shift{address_operand(e, e.operand(0), AddressSpace::shared), is_of_pair};
    e.emit(Action::tensor_shift, e.program().tensor_shifts, shift, {}, {shift.address.slot});
    e.set_class(OpClass::shuffle);
  } else if (modifiers.take("commit")) {
    commit(e, modifiers);
  } else if (modifiers.take_one_of({"wait::ld", "wait::st"})) {
    take_whole_warp(modifiers);
  } else if (!modifiers.take_one_of({"fence::before_thread_sync", "fence::after_thread_sync"})) {
    throw Unsupported{"this operation on tensor memory is not supported"};
  }
}

}  // namespace warpstack::ptx::handlers
