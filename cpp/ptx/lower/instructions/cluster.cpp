#include <cstddef>
#include <cstdint>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"
#include "simt/program/address_space.h"

// Blocks of a cluster, and the addresses of each other's shared memory.

namespace warpstack::ptx::handlers {
namespace {

constexpr std::uint32_t answer_bytes = 16;

/// Asks for a cluster that has not begun, to do its work instead. Here all clusters begin, so the
/// answer is that there is none: zeros. It goes to the block's own memory, and from there, or to
/// where it is, as a bulk copy, which signals the mbarriers.
void try_cancel(Emitter& e, Modifiers& modifiers) {
  modifiers.take("async");
  const bool is_shared = modifiers.take("shared::cta");
  if (!modifiers.take("mbarrier::complete_tx::bytes")) {
    throw Unsupported{"it does not name .mbarrier::complete_tx::bytes"};
  }
  const bool to_all = modifiers.take("multicast::cluster::all");
  if (!modifiers.take("b128")) throw Unsupported{"it does not name .b128"};
  const AddressSpace space = is_shared ? AddressSpace::shared : AddressSpace::generic;
  simt::BulkCopy copy;
  copy.to = copy.from = address_operand(e, e.operand(0), space);
  copy.barrier = address_operand(e, e.operand(1), space);
  copy.bytes = e.constant(answer_bytes, 4);
  MemoryAccess answer;
  answer.space = space;
  answer.bytes = 8;
  answer.elements = 2;
  answer.address = copy.to.slot;
  answer.address_is_64_bits = copy.to.is_64_bits;
  answer.offset = copy.to.offset;
  for (std::size_t i = 0; i < answer.elements; ++i) {
    answer.values[i] = e.constant(0, 8);
    answer.value_bytes[i] = 8;
  }
  e.emit(Action::store, e.program().memory, answer, {}, {answer.address, answer.values[0]});
  if (to_all) {
    // A bit for each block of the cluster.
    Operand size;
    size.kind = Operand::Kind::special;
    size.special = simt::Special::cluster_nctarank;
    const std::uint32_t blocks = e.temporary(4);
    e.read_special(size, blocks);
    const std::uint32_t end = e.temporary(4);
    e.lanes({.operation = Operation::shl, .type = Type::u32}, end, {e.constant(1, 4), blocks});
    copy.blocks = e.temporary(4);
    e.lanes({.operation = Operation::sub, .type = Type::u32}, copy.blocks, {end, e.constant(1, 4)});
  }
  e.emit(Action::bulk_copy, e.program().bulk_copies, copy, {},
         {copy.to.slot, copy.bytes, copy.barrier.slot, copy.blocks});
  e.set_class(OpClass::memory);
  set_memory_row(e, AddressSpace::shared, MemoryKind::load, answer_bytes);
}

/// Reads an answer: three coordinates of a block, and whether there is one.
void query_cancel(Emitter& e, Modifiers& modifiers) {
  const bool asks_whether = modifiers.take("is_canceled");
  const auto one = modifiers.take_one_of(
      {"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z", "get_first_ctaid"});
  if (asks_whether == one.has_value()) throw Unsupported{"it names no part of the answer"};
  modifiers.take_all();
  const auto halves = e.halves_in(e.operand(1));
  const auto word = [&](std::size_t number) {
    const std::uint32_t found = e.temporary(4);
    std::uint32_t half = halves[number / 2];
    if (number % 2 == 1) {
      half = e.temporary(8);
      e.lanes({.operation = Operation::shr, .type = Type::u64}, half,
              {halves[number / 2], e.constant(32, 4)});
    }
    e.lanes({.operation = Operation::cvt, .type = Type::u32, .source = Type::u64}, found, {half});
    return found;
  };
  if (asks_whether) {
    e.lanes({.operation = Operation::setp, .type = Type::u32, .comparison = Comparison::ne},
            e.out(0, Type::pred), {word(3), e.constant(0, 4)});
    return;
  }
  const auto targets = elements_of(e.operand(0));
  if (targets.size() != (*one == 3 ? 4 : 1)) throw Unsupported{"it has too few or many registers"};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    e.copy(e.out(*targets[i], Type::b32), word(*one == 3 ? i : *one), Type::b32);
  }
}

}  // namespace

void cluster_launch_control(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("try_cancel")) {
    try_cancel(e, modifiers);
  } else if (modifiers.take("query_cancel")) {
    query_cancel(e, modifiers);
  } else {
    throw Unsupported{"it neither cancels nor reads an answer"};
  }
}

void mapa(Emitter& e, Modifiers& modifiers) {
  modifiers.take("shared::cluster");
  const Type type = modifiers.need_type();
  std::uint32_t address = e.in(1, type);
  const std::uint32_t rank = e.in(2, Type::u32);
  const std::uint32_t target = e.out(0, type);
  const bool is_wide = bytes_of(type) == 8;
  // address + first window + rank * window
  const std::uint32_t bytes = is_wide ? 8 : 4;
  const std::uint32_t begin = e.temporary(bytes);
  if (e.program().has_pairs) {
    // The address has a rank, which is in the same bits of a generic one.
    const std::uint32_t offset = e.temporary(bytes);
    e.lanes({.operation = Operation::bit_and, .type = is_wide ? Type::b64 : Type::b32}, offset,
            {address, e.constant(~std::uint64_t{0xff000000}, bytes)});
    address = offset;
  }
  e.lanes({.operation = Operation::add, .type = type}, begin,
          {address, e.constant(simt::cluster_offset, bytes)});
  e.lanes({.operation = is_wide ? Operation::mad_wide : Operation::mad_lo, .type = Type::u32},
          target, {rank, e.constant(trace::window_bytes, 4), begin});
}

void getctarank(Emitter& e, Modifiers& modifiers) {
  modifiers.take("shared::cluster");
  const Type type = modifiers.need_type();
  const std::uint32_t address = e.in(1, type);
  const std::uint32_t target = e.out(0, Type::u32);
  Step& step = e.emit(Action::cluster_rank, {target}, {address});
  step.operands.target = target;
  step.operands.source[0] = address;
  step.operands.immediate = bytes_of(type);
}

void cluster_barrier(Emitter& e, Modifiers& modifiers) {
  modifiers.take("aligned");
  modifiers.take("release");
  modifiers.take("relaxed");
  modifiers.take("acquire");
  const auto verb = modifiers.take_one_of({"arrive", "wait"});
  if (!verb) throw Unsupported{"it neither arrives nor waits"};
  e.emit(*verb == 0 ? Action::cluster_arrive : Action::cluster_wait, {}, {});
}

}  // namespace warpstack::ptx::handlers
