#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"

// mbarrier: barriers in shared memory.

namespace warpstack::ptx::handlers {
namespace {

using simt::AsyncBarrier;

/// Skips orders and scopes: everything is in order here.
void take_orders(Modifiers& modifiers) {
  for (const char* word : {"release", "acquire", "relaxed", "cta", "cluster"}) {
    modifiers.take(word);
  }
}

void emit_barrier(Emitter& e, Modifiers& modifiers, AsyncBarrier& barrier, std::size_t operand) {
  take_orders(modifiers);
  const bool is_shared =
      modifiers.take_one_of({"shared", "shared::cta", "shared::cluster"}).has_value();
  if (!modifiers.take("b64")) throw Unsupported{"it does not name .b64"};
  barrier.address = address_operand(e, e.operand(operand),
                                    is_shared ? AddressSpace::shared : AddressSpace::generic);
  e.emit(Action::async_barrier, e.program().async_barriers, barrier, {barrier.result},
         {barrier.address.slot, barrier.count, barrier.bytes, barrier.state});
}

std::uint32_t result_of(Emitter& e, std::size_t i, Type type) {
  return e.operand(i).kind == Operand::Kind::sink ? none : e.out(i, type);
}

void arrive(Emitter& e, Modifiers& modifiers, bool drops) {
  AsyncBarrier barrier{.kind = AsyncBarrier::Kind::arrive, .drops = drops};
  const bool expects = modifiers.take("expect_tx");
  modifiers.take("noComplete");
  // The operand is `_` or missing if the barrier is in another block: there is no state.
  const std::size_t at = e.operand(0).kind == Operand::Kind::address ? 0 : 1;
  if (at == 1) barrier.result = result_of(e, 0, Type::b64);
  if (e.num_operands() > at + 1) {
    (expects ? barrier.bytes : barrier.count) = e.in(at + 1, Type::u32);
  }
  emit_barrier(e, modifiers, barrier, at);
}

void wait(Emitter& e, Modifiers& modifiers) {
  AsyncBarrier barrier{.kind = AsyncBarrier::Kind::wait};
  barrier.by_parity = modifiers.take("parity");
  barrier.state = e.in(2, barrier.by_parity ? Type::u32 : Type::b64);
  // A hint on how long to wait may follow.
  barrier.result = e.out(0, Type::pred);
  emit_barrier(e, modifiers, barrier, 1);
}

}  // namespace

void mbarrier(Emitter& e, Modifiers& modifiers) {
  AsyncBarrier barrier;
  if (modifiers.take("init")) {
    barrier.count = e.in(1, Type::u32);
    emit_barrier(e, modifiers, barrier, 0);
  } else if (modifiers.take("inval")) {
    barrier.kind = AsyncBarrier::Kind::invalidate;
    emit_barrier(e, modifiers, barrier, 0);
  } else if (modifiers.take("arrive")) {
    arrive(e, modifiers, false);
  } else if (modifiers.take("arrive_drop")) {
    arrive(e, modifiers, true);
  } else if (modifiers.take_one_of({"test_wait", "try_wait"})) {
    wait(e, modifiers);
  } else if (modifiers.take("expect_tx")) {
    barrier.kind = AsyncBarrier::Kind::expect;
    barrier.bytes = e.in(1, Type::u32);
    emit_barrier(e, modifiers, barrier, 0);
  } else if (modifiers.take("complete_tx")) {
    barrier.kind = AsyncBarrier::Kind::complete;
    barrier.bytes = e.in(1, Type::u32);
    emit_barrier(e, modifiers, barrier, 0);
  } else if (modifiers.take("pending_count")) {
    if (!modifiers.take("b64")) throw Unsupported{"it does not name .b64"};
    barrier.kind = AsyncBarrier::Kind::pending;
    barrier.state = e.in(1, Type::b64);
    barrier.result = e.out(0, Type::u32);
    e.emit(Action::async_barrier, e.program().async_barriers, barrier, {barrier.result},
           {barrier.state});
  } else {
    throw Unsupported{"this operation of a barrier is not supported"};
  }
}

void copies_arrive(Emitter& e, Modifiers& modifiers) {
  modifiers.take("arrive");
  const bool counts = modifiers.take("noinc");
  AsyncBarrier barrier{.kind = counts ? AsyncBarrier::Kind::arrive : AsyncBarrier::Kind::copies};
  emit_barrier(e, modifiers, barrier, 0);
}

}  // namespace warpstack::ptx::handlers
