#include <string_view>
#include <utility>

#include "sass/lower/handlers.h"
#include "sass/lower/memory_operands.h"
#include "simt/program/address_space.h"

// Barriers in shared memory, PTX's mbarrier: SYNCS and ARRIVES.
//
// In machine code their word counts up. With n arrivals still to come, bits 43 to 62 hold 2^20 - n,
// bits 1 to 20 the same for the next phase, and bit 63 is the phase's parity (what ptxas makes of
// mbarrier.init, .pending_count and .test_wait.parity). Here words are those of
// simt/async/async_barriers.h, and what code computes is translated.

namespace warpstack::sass {
namespace {

using simt::AsyncBarrier;

constexpr std::uint32_t full = 1u << 20;

void emit_barrier(Lowerer& to, AsyncBarrier& barrier, const Operand& place) {
  simt::MemoryAccess access;
  set_address(to, access, place, false);
  barrier.address = simt::ranked_address(access.address, access.offset);
  to.row_follows();
  to.emit(Action::async_barrier, static_cast<std::uint32_t>(to.program().async_barriers.size()));
  to.program().async_barriers.push_back(barrier);
}

/// Initialises a barrier with a word that the code has computed.
void initialise(Lowerer& to, Form& form) {
  if (!form.take("64")) to.refuse("only the form with 64 bits is executed");
  if (to.target(form.next()) != Frame::sink) to.refuse("its old value is not executed");
  const Operand& place = form.next();
  const Operand& word = form.next();
  to.check_tuple(word, 2);
  AsyncBarrier barrier;
  barrier.count = to.temporary();
  to.emit(Operation::bfe, Type::u32, barrier.count,
          {to.word(word), to.frame().literal(1), to.frame().literal(21)});
  to.emit(Operation::sub, Type::u32, barrier.count, {to.frame().literal(full), barrier.count});
  to.guard_by_first_lane();  // its operands are uniform: the warp does it once
  emit_barrier(to, barrier, place);
}

/// Translates the word before an arrival. With .TMASK its lower half has the lanes whose arrivals
/// were joined to one; here each lane has a word of its own.
void write_state(Lowerer& to, Slot state, Slot target, bool is_mask) {
  const auto literal = [&to](std::uint32_t value) { return to.frame().literal(value); };
  const Slot words = to.temporary();
  const Slot upper = words + Frame::slot_bytes;
  to.emit(Operation::unpack, Type::b64, words, {state});
  const Slot pending = to.temporary();
  to.emit(Operation::bit_and, Type::b32, pending, {words, literal(full - 1)});
  to.emit(Operation::sub, Type::u32, pending, {literal(full), pending});
  to.emit(Operation::bit_and, Type::b32, pending, {pending, literal(full - 1)});
  to.emit(Operation::shl, Type::b32, pending, {pending, literal(11)});
  const Slot parity = to.temporary();
  to.emit(Operation::bfe, Type::u32, parity, {upper, literal(29), literal(1)});
  to.emit(Operation::shl, Type::b32, parity, {parity, literal(31)});
  const Slot expected = to.temporary();
  to.emit(Operation::shr, Type::u32, expected, {words, literal(20)});
  to.emit(Operation::bit_and, Type::b32, upper, {upper, literal(0xff)});
  to.emit(Operation::shl, Type::b32, upper, {upper, literal(12)});
  to.emit(Operation::bit_or, Type::b32, expected, {expected, upper});
  to.emit(Operation::sub, Type::u32, expected, {literal(full), expected});
  to.emit(Operation::shl, Type::b32, expected, {expected, literal(1)});
  to.move(target, is_mask ? Slot{Frame::zero} : expected);
  to.emit(Operation::bit_or, Type::b32, target + Frame::slot_bytes, {pending, parity});
}

/// .A1T0 arrives once, .ART0 as often as the register says, and without either the register says
/// how many bytes the arrival expects.
void arrive(Lowerer& to, Form& form) {
  AsyncBarrier barrier{.kind = AsyncBarrier::Kind::arrive};
  if (!form.take("TRANS64")) to.refuse("only TRANS64 is executed");
  const bool without_result = form.take("RED");
  const bool is_mask = form.take("TMASK");
  barrier.drops = form.take("OPTOUT");
  const bool once = form.take("A1T0");
  const bool counts = !once && form.take("ART0");
  const bool expects_one = form.take("A0T1");
  if (form.take("A0TX")) {
    barrier.kind = AsyncBarrier::Kind::complete;
  } else if (form.take("A0TR")) {
    barrier.kind = AsyncBarrier::Kind::expect;
  }
  const Operand& result = form.next();
  const Operand& place = form.next();
  const Operand& number = form.next();
  // Copies of this warp complete the one at once: ARRIVES.LDGSTSBAR.64.TRANSCNT.
  if (expects_one) {
    simt::MemoryAccess access;
    set_address(to, access, place, false);
    to.word(number);
    return;
  }
  if (counts) {
    barrier.count = to.integer(number);
  } else if (!once) {
    barrier.bytes = to.integer(number);
  } else if (to.word(number) != Frame::zero) {
    to.refuse("operand " + number.text + " has no meaning");
  }
  const Slot target = to.target(result, 2);
  if (target != Frame::sink && barrier.kind == AsyncBarrier::Kind::arrive) {
    if (without_result) to.refuse("a result of .RED is not executed");
    barrier.result = to.temporary();
  }
  emit_barrier(to, barrier, place);
  if (barrier.result != simt::none) write_state(to, barrier.result, target, is_mask);
}

/// Waits until the phase whose parity is in bit 31 is over, or gives up.
void wait(Lowerer& to, Form& form) {
  if (!form.take("TRANS64")) to.refuse("only TRANS64 is executed");
  form.take("TRYWAIT");
  AsyncBarrier barrier{.kind = AsyncBarrier::Kind::wait, .by_parity = true};
  const Operand& done = form.next();
  const Operand& place = form.next();
  barrier.state = to.temporary();
  to.emit(Operation::shr, Type::u32, barrier.state,
          {to.integer(form.next()), to.frame().literal(31)});
  barrier.result = to.predicate_target(done);
  emit_barrier(to, barrier, place);
}

}  // namespace

void handlers::syncs(Lowerer& to, Form& form) {
  if (form.take("EXCH")) return initialise(to, form);
  if (form.take("ARRIVE")) return arrive(to, form);
  if (form.take("PHASECHK")) return wait(to, form);
  if (!form.take("CCTL") || !form.take("IV")) to.refuse("this form is not executed");
  AsyncBarrier barrier{.kind = AsyncBarrier::Kind::invalidate};
  to.guard_by_first_lane();
  emit_barrier(to, barrier, form.next());
}

/// The arrival of a warp's asynchronous copies.
void handlers::arrives(Lowerer& to, Form& form) {
  if (!form.take("LDGSTSBAR") || !form.take("64")) to.refuse("this form is not executed");
  const bool counts = form.take("ARVCNT");
  if (!counts && !form.take("TRANSCNT")) to.refuse("it counts neither arrivals nor copies");
  AsyncBarrier barrier{.kind = counts ? AsyncBarrier::Kind::arrive : AsyncBarrier::Kind::copies};
  emit_barrier(to, barrier, form.next());
}

}  // namespace warpstack::sass
