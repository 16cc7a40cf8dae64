#include <tuple>
#include <utility>

#include "sass/lower/handlers.h"
#include "simt/arithmetic/atomics.h"

namespace warpstack::sass {
namespace {

using simt::Collective;
using simt::VoteMode;

/// All operations are for the lanes of the path.
void emit_collective(Lowerer& to, Action action, const Collective& collective) {
  to.emit(action, static_cast<std::uint32_t>(to.program().collectives.size()));
  to.program().collectives.push_back(collective);
}

}  // namespace

void handlers::shfl(Lowerer& to, Form& form) {
  Collective collective;
  simt::ShuffleMode mode = simt::ShuffleMode::index;
  if (form.take("UP")) {
    mode = simt::ShuffleMode::up;
  } else if (form.take("DOWN")) {
    mode = simt::ShuffleMode::down;
  } else if (form.take("BFLY")) {
    mode = simt::ShuffleMode::butterfly;
  } else {
    form.take("IDX");
  }
  collective.mode = static_cast<std::uint8_t>(mode);
  const Operand& valid = form.next();
  if (!Lowerer::is_unused(valid)) collective.predicate = to.predicate_target(valid);
  collective.result = to.target(form.next());
  collective.a = to.integer(form.next());
  collective.b = to.integer(form.next());
  collective.c = to.integer(form.next());
  emit_collective(to, Action::shuffle, collective);
}

void handlers::vote(Lowerer& to, Form& form) {
  VoteMode mode = VoteMode::uniform;
  if (form.take("ALL")) {
    mode = VoteMode::all;
  } else if (form.take("ANY")) {
    mode = VoteMode::any;
  } else {
    form.take("EQ");
  }
  const Operand* const ballot = form.peek().is_register() ? &form.next() : nullptr;
  const Operand& p = form.next();
  Collective collective;
  collective.a = to.positive(form.next());
  // The guard and the source may be the target.
  if (ballot != nullptr && to.target(*ballot) != Frame::sink) {
    collective.mode = static_cast<std::uint8_t>(VoteMode::ballot);
    collective.result = to.target(*ballot);
    emit_collective(to, Action::vote, collective);
  }
  if (Lowerer::is_unused(p)) return;
  collective.mode = static_cast<std::uint8_t>(mode);
  collective.result = to.predicate_target(p);
  emit_collective(to, Action::vote, collective);
}

/// Chooses the first lane: its number, and in each lane whether it is the one.
void handlers::elect(Lowerer& to, Form& form) {
  const Operand& chosen = form.next();
  const Operand& number = form.next();
  if (!to.condition(form.next()).is_true()) to.refuse("only the form with PT is executed");
  Collective collective;
  collective.result = to.target(number);
  collective.predicate = to.predicate_target(chosen);
  emit_collective(to, Action::elect, collective);
}

void handlers::match(Lowerer& to, Form& form) {
  Collective collective;
  if (form.take("ALL")) {
    collective.mode = 1;
  } else if (!form.take("ANY")) {
    to.refuse("neither ANY nor ALL");
  }
  const bool is_pair = form.take("U64");
  form.take("U32");
  collective.type = is_pair ? Type::b64 : Type::b32;
  if (form.peek().is_predicate()) {
    const Operand& p = form.next();
    if (!Lowerer::is_unused(p)) collective.predicate = to.predicate_target(p);
  }
  collective.result = to.target(form.next());
  const Operand& source = form.next();
  if (is_pair) {
    collective.a = to.temporary();
    to.emit(Operation::pack, Type::b64, collective.a, {to.pair(source)});
  } else {
    collective.a = to.integer(source);
  }
  emit_collective(to, Action::match, collective);
}

void handlers::redux(Lowerer& to, Form& form) {
  Collective collective;
  collective.type = form.take("S32") ? Type::s32 : Type::u32;
  const char* operation = "and";
  for (const auto& [name, ours] : {std::pair{"OR", "or"},
                                   {"XOR", "xor"},
                                   {"SUM", "add"},
                                   {"MIN", "min"},
                                   {"MAX", "max"},
                                   {"AND", "and"}}) {
    if (!form.take(name)) continue;
    operation = ours;
    break;
  }
  collective.combine = simt::find_atomic(operation, collective.type, false);
  collective.result = to.target(form.next());
  collective.a = to.integer(form.next());
  emit_collective(to, Action::reduce, collective);
}

/// The least or greatest float, with ABS of the sizes.
void handlers::credux(Lowerer& to, Form& form) {
  const bool of_sizes = form.left() == "MINABS" || form.left() == "MAXABS";
  const bool is_least = form.left().starts_with("MIN");
  if (!is_least && !form.left().starts_with("MAX")) to.refuse("it is neither MIN nor MAX");
  form.take(form.left());
  Collective collective;
  if (form.take("F32")) {
    collective.type = Type::f32;
    collective.combine = simt::find_float_extreme(is_least, form.take("NAN"));
  } else {
    collective.type = form.take("S32") ? Type::s32 : Type::u32;
    collective.combine = simt::find_atomic(is_least ? "min" : "max", collective.type, false);
  }
  collective.result = to.target(form.next());
  const Operand& source = form.next();
  const bool is_float = collective.type == Type::f32;
  collective.a = is_float ? to.signed_real_word(source) : to.integer(source);
  if (of_sizes) {
    const Slot size = to.temporary();
    to.emit(Operation::abs, Type::f32, size, {collective.a});
    collective.a = size;
  }
  emit_collective(to, Action::reduce, collective);
}

}  // namespace warpstack::sass
