#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"

// Barriers.

namespace warpstack::ptx::handlers {

void bar(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("warp")) {
    modifiers.take("sync");
    const Collective collective{.members = e.in(0, Type::b32)};
    e.emit(Action::warp_sync, e.program().collectives, collective, {}, {collective.members});
    e.set_class(OpClass::control);
    return;
  }
  modifiers.take("cta");
  if (modifiers.take("cluster")) {
    cluster_barrier(e, modifiers);
    return;
  }
  const bool aligned = modifiers.take("aligned");
  Barrier barrier;
  barrier.may_diverge = e.opcode().mnemonic == "barrier" && !aligned;
  std::size_t next = 0;
  if (modifiers.take("red")) {
    const auto mode = modifiers.take_one_of({"popc", "and", "or"});
    const Type type = modifiers.need_type();
    static constexpr BarrierKind kinds[] = {BarrierKind::count, BarrierKind::all, BarrierKind::any};
    barrier.kind = kinds[mode.value_or(0)];
    barrier.result = e.out(0, type);
    const std::size_t last_operand = e.num_operands() - 1;
    barrier.number = e.in(1, Type::u32);
    if (last_operand == 3) barrier.threads = e.in(2, Type::u32);
    barrier.predicate = e.in(last_operand, Type::pred);
  } else {
    if (modifiers.take("arrive")) {
      barrier.kind = BarrierKind::arrive;
    } else {
      modifiers.take("sync");
    }
    barrier.number = e.in(next++, Type::u32);
    if (e.num_operands() > next) barrier.threads = e.in(next, Type::u32);
  }
  e.emit(Action::barrier, e.program().barriers, barrier, {barrier.result},
         {barrier.number, barrier.threads, barrier.predicate});
}

}  // namespace warpstack::ptx::handlers
