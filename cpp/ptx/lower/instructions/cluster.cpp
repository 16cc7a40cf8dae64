#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"
#include "simt/program/address_space.h"

// Blocks of a cluster, and the addresses of each other's shared memory.

namespace warpstack::ptx::handlers {

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
