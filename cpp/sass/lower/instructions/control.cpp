#include <algorithm>

#include "sass/lower/handlers.h"
#include "sass/text/built_ins.h"

namespace warpstack::sass {
namespace {

/// Takes a predicate before the target, which must hold in addition to the guard. The trace's mask
/// is that of the guard.
void take_condition(Lowerer& to, Form& form) {
  if (!form.more() || !form.peek().is_predicate()) return;
  const Condition condition = to.condition(form.next());
  if (condition.is_true()) return;
  to.emit(Action::nothing);
  to.require(condition);
}

/// The places of argument registers in a thread's argument area; the result is behind them.
constexpr std::uint32_t first_argument = 4;
constexpr std::uint32_t argument_registers = 8;
constexpr std::uint32_t result_at = 4 * argument_registers;

void emit_argument_access(Lowerer& to, Action action, std::uint32_t offset,
                          std::uint8_t registers) {
  simt::ParameterAccess access;
  access.offset = offset;
  access.elements = registers;
  for (std::uint32_t i = 0; i < registers; ++i) {
    access.values[i] = to.frame().reg(first_argument + i);
    access.value_bytes[i] = 4;
  }
  to.emit(action, static_cast<std::uint32_t>(to.program().parameter_accesses.size()));
  to.program().parameter_accesses.push_back(access);
}

/// The call returns to the instruction behind it.
void call_built_in(Lowerer& to, simt::Call::BuiltIn kind) {
  to.reserve_arguments(result_at + 8);
  emit_argument_access(to, Action::parameter_store, 0, argument_registers);
  simt::Call call;
  call.built_in = kind;
  call.arguments = {{0, 8}, {8, 8}, {16, 4}};
  call.results = {{result_at, 8}};
  to.emit(Action::call, static_cast<std::uint32_t>(to.program().calls.size()));
  to.program().calls.push_back(call);
  if (kind == simt::Call::BuiltIn::print) {
    emit_argument_access(to, Action::parameter_load, result_at, 1);
  } else if (kind == simt::Call::BuiltIn::allocate) {
    emit_argument_access(to, Action::parameter_load, result_at, 2);
  }
}

/// Calls an address in a register, which may be that of a library function.
void call_by_address(Lowerer& to, Slot address) {
  const Condition guard = to.guard();
  if (!guard.is_true()) to.refuse("under a guard it is not executed");
  const Slot is_known = to.temporary();
  to.move(is_known, Frame::zero);
  for (const BuiltIn& function : built_ins) {
    const bool is_used = std::ranges::any_of(to.module().sections, [&](const Section& section) {
      return std::ranges::any_of(section.addresses, [&](const AddressField& field) {
        return field.symbol == function.name;
      });
    });
    if (!is_used) continue;
    const Slot same = to.temporary();
    to.emit({.operation = Operation::setp, .type = Type::u32, .comparison = simt::Comparison::eq},
            same, {address, to.frame().literal(function.address)});
    to.emit(Operation::bit_or, Type::b32, is_known, {is_known, same});
    to.guard_by({same, false});
    call_built_in(to, function.kind);
    to.guard_by(guard);
  }
  // Other addresses are functions of the module, whose code follows the kernel's own.
  to.guard_by({is_known, true});
  if (to.kernel().labels.empty()) {
    to.emit(Action::trap);
  } else {
    to.computed_jump(address, 0);
  }
  to.guard_by(guard);
}

template <Action action>
void convergence(Lowerer& to, Form& form) {
  form.take_all({"RECONVERGENT", "RELIABLE"});  // what the compiler knows about the lanes
  take_condition(to, form);
  const Operand& barrier = form.next();
  if (barrier.kind != Operand::Kind::convergence) {
    to.refuse(barrier.text + " is not a convergence barrier");
  }
  take_condition(to, form);  // BREAK has its condition here
  auto& convergences = to.program().convergences;
  to.emit(action, static_cast<std::uint32_t>(convergences.size()));
  convergences.push_back({to.frame().convergence(barrier.index)});
  // Lanes reconverge where they wait, so the address that BSSY names is not needed.
  if (action == Action::begin_convergence) to.address_of(form.next());
}

/// Takes the barrier's number and, unless it is for the whole block, its number of threads. If the
/// same register is there twice, it holds both: the number in the lower half, the threads in bits
/// 16 to 27 (ptxas does so for `bar.sync a, b`).
void take_barrier(Lowerer& to, Form& form, simt::Barrier& barrier) {
  const Operand& number = form.next();
  const Slot first = to.word(number);
  barrier.number = first;
  if (!form.more() || form.peek().is_predicate()) return;
  const Operand& threads = form.next();
  barrier.threads = to.word(threads);
  if (!number.is_register() || !threads.is_register()) return;
  if (first != barrier.threads) to.refuse("number and threads in two registers are not executed");
  barrier.number = to.temporary();
  barrier.threads = to.temporary();
  to.emit(Operation::bit_and, Type::b32, barrier.number, {first, to.frame().literal(0xffff)});
  to.emit(Operation::bfe, Type::u32, barrier.threads,
          {first, to.frame().literal(16), to.frame().literal(12)});
}

template <std::size_t operands>
void nothing(Lowerer& to, Form& form) {
  form.take("WARP");
  for (std::size_t i = 0; i < operands && form.more(); ++i) to.skip(form);
}

}  // namespace

void handlers::bra(Lowerer& to, Form& form) {
  form.take_all({"U", "INC", "DEC"});
  if (form.take("ANY")) {  // all lanes go if one lane's guard holds
    const Condition guard = to.guard();
    to.emit(Action::nothing);
    to.guard_off();
    simt::Collective vote;
    vote.mode = static_cast<std::uint8_t>(simt::VoteMode::any);
    vote.a = to.positive(guard);
    vote.result = to.temporary();
    to.emit(Action::vote, static_cast<std::uint32_t>(to.program().collectives.size()));
    to.program().collectives.push_back(vote);
    to.guard_by({vote.result, false});
    return to.jump(to.address_of(form.next()));
  }
  const bool when_parted = form.take("DIV");
  if (when_parted || form.take("CONV")) {
    // All lanes of the path go or stay together. A guard says which of them count: after `R2UR
    // P1,URZ,R0`, `@!P1 BRA.DIV UR6` branches if the lanes have different masks.
    const Condition guard = to.guard();
    simt::Collective test;
    if (!guard.is_true()) {
      to.emit(Action::nothing);
      to.guard_off();
      test.a = to.positive(guard);
    }
    const bool names_lanes = form.peek().kind != Operand::Kind::integer;
    test.members = names_lanes ? to.integer(form.next()) : to.frame().literal(~0u);
    test.result = to.temporary();
    to.emit(Action::divergence_test, static_cast<std::uint32_t>(to.program().collectives.size()));
    to.program().collectives.push_back(test);
    to.require({test.result, !when_parted});
  }
  take_condition(to, form);
  to.jump(to.address_of(form.next()));
}

/// Jumps to the sum of a register, a number and the address behind the instruction.
void handlers::brx(Lowerer& to, Form& form) {
  take_condition(to, form);
  const Slot place = to.integer(form.next());
  const std::int64_t behind = form.instruction().address + instruction_bytes;
  to.computed_jump(place, behind + to.number(form.next()));
}

void handlers::call(Lowerer& to, Form& form) {
  const bool relative = form.take("REL");
  if (!relative) form.take("ABS");
  form.take_all({"NOINC", "INC"});
  take_condition(to, form);
  if (!relative) {
    const Operand& address = form.next();
    if (address.is_register()) return call_by_address(to, to.integer(address));
    if (const BuiltIn* const function = find_built_in(address.text)) {  // as -G has it
      return call_built_in(to, function->kind);
    }
    return to.jump(to.address_of(address));
  }
  const Operand& first = form.next();
  if (!first.is_register()) {
    to.jump(to.address_of(first));
  } else {
    to.computed_jump(to.integer(first), to.address_of(form.next()));
  }
}

/// The address of an instruction; without an operand, its own. Code begins at 0.
void handlers::lepc(Lowerer& to, Form& form) {
  const Slot target = to.target(form.next(), 2);
  const std::uint32_t address =
      form.more() ? to.address_of(form.next()) : form.instruction().address;
  to.move(target, to.frame().literal(address));
  to.move(target + Frame::slot_bytes, Frame::zero);
}

/// Returns to an address in a pair of registers, relative to the start of a function.
void handlers::ret(Lowerer& to, Form& form) {
  const bool relative = form.take("REL");
  form.take_all({"NODEC", "DEC"});
  if (!relative) form.take("ABS");
  take_condition(to, form);
  const Slot place = to.integer(form.next());
  to.computed_jump(place, form.more() ? to.address_of(form.next()) : 0);
}

void handlers::exit(Lowerer& to, Form& form) {
  take_condition(to, form);
  to.emit(Action::exit);
}

void handlers::bssy(Lowerer& to, Form& form) { convergence<Action::begin_convergence>(to, form); }
void handlers::bsync(Lowerer& to, Form& form) { convergence<Action::converge>(to, form); }
void handlers::leave_convergence(Lowerer& to, Form& form) {
  convergence<Action::leave_convergence>(to, form);
}

/// Saves and restores convergence barriers.
void handlers::bmov(Lowerer& to, Form& form) {
  if (!form.take("32")) to.refuse("only BMOV.32 is executed");
  const bool to_barrier = form.peek().kind == Operand::Kind::convergence;
  form.take("PQUAD");
  const Operand& d = form.next();
  const Operand& s = form.next();
  if (s.kind != Operand::Kind::convergence) {
    if (!to_barrier) to.refuse("neither operand is a convergence barrier");
    to.move(to.frame().convergence(d.index), to.integer(s));
    return;
  }
  const Slot barrier = to.frame().convergence(s.index);
  const Slot target = to_barrier ? to.frame().convergence(d.index) : to.target(d);
  to.move(target, barrier);
  if (form.take("CLEAR") && target != barrier) to.move(barrier, Frame::zero);
}

void handlers::warpsync(Lowerer& to, Form& form) {
  simt::Collective collective;
  const bool is_collective = form.take("COLLECTIVE");
  bool is_exclusive = false;
  if (form.take("ALL")) {
    collective.members = to.frame().literal(~0u);
  } else {
    is_exclusive = form.take("EXCLUSIVE");
    take_condition(to, form);
    collective.members = to.integer(form.next());
  }
  // The lanes of a mask run the code up to ENDCOLLECTIVE together, and go on behind it.
  if (is_collective) {
    const std::uint32_t behind = to.address_of(form.next());
    const auto& code = to.kernel().code;
    const auto end = std::ranges::find_if(code, [&](const Instruction& other) {
      return other.address > form.instruction().address && other.opcode == "ENDCOLLECTIVE";
    });
    if (end != code.end() && end->address + instruction_bytes != behind) {
      to.refuse("it does not go on behind the next ENDCOLLECTIVE");
    }
  }
  const auto detail = static_cast<std::uint32_t>(to.program().collectives.size());
  to.emit(Action::warp_sync, detail);
  // The code that follows has no mask of its own: it is for the lanes that arrive together.
  if (is_exclusive) to.emit(Action::separate, detail);
  to.program().collectives.push_back(collective);
}

void handlers::bar(Lowerer& to, Form& form) {
  form.take("DEFER_BLOCKING");
  simt::Barrier barrier;
  barrier.may_diverge = true;  // since Volta barriers count threads
  const bool reduces = form.take("RED");
  if (reduces) {
    if (form.take("POPC")) {
      barrier.kind = simt::BarrierKind::count;
    } else if (form.take("AND")) {
      barrier.kind = simt::BarrierKind::all;
    } else if (form.take("OR")) {
      barrier.kind = simt::BarrierKind::any;
    } else {
      to.refuse("its reduction is not known");
    }
    barrier.result = to.frame().barrier_result();
  } else if (form.take("ARV")) {
    barrier.kind = simt::BarrierKind::arrive;
  } else if (!form.take("SYNC")) {
    to.refuse("this form is not executed");
  }
  take_barrier(to, form, barrier);
  if (reduces) barrier.predicate = to.positive(form.next());
  to.row_follows();
  to.emit(Action::barrier, static_cast<std::uint32_t>(to.program().barriers.size()));
  to.program().barriers.push_back(barrier);
}

void handlers::arrive_at_cluster(Lowerer& to, Form& /*form*/) { to.emit(Action::cluster_arrive); }
void handlers::wait_for_cluster(Lowerer& to, Form& /*form*/) { to.emit(Action::cluster_wait); }

/// Registers are always there.
void handlers::setmaxreg(Lowerer& to, Form& form) {
  form.take("CTAPOOL");
  if (form.take("TRY_ALLOC")) {
    to.move(to.predicate_target(form.next()), Frame::truth);
  } else if (!form.take("DEALLOC")) {
    to.refuse("this form is not executed");
  }
  to.number(form.next());
}

/// The result of the block's last BAR.RED.
void handlers::b2r(Lowerer& to, Form& form) {
  if (!form.take("RESULT")) to.refuse("only B2R.RESULT is executed");
  const Slot result = to.frame().barrier_result();
  to.move(to.target(form.next()), result);
  if (form.more()) {
    to.emit({.operation = Operation::setp, .type = Type::u32, .comparison = simt::Comparison::ne},
            to.predicate_target(form.next()), {result, Frame::zero});
  }
}

void handlers::bpt(Lowerer& to, Form& form) {
  if (!form.take("TRAP")) to.refuse("only BPT.TRAP is executed");
  if (form.more()) to.number(form.next());
  to.emit(Action::trap);
}

void handlers::nop(Lowerer& to, Form& form) { nothing<0>(to, form); }

/// Its operand is a predicate.
void handlers::yield(Lowerer& to, Form& form) { nothing<1>(to, form); }

void handlers::nanosleep(Lowerer& to, Form& form) {
  form.take_all({"WARP", "SYNCS"});
  if (form.peek().is_predicate()) to.skip(form);
  const Slot ticks = to.word(form.next());
  to.row_follows();
  to.emit(Action::sleep).operands.source[0] = ticks;
}

}  // namespace warpstack::sass
