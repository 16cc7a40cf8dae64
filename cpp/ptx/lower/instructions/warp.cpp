#include <string_view>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"
#include "simt/arithmetic/atomics.h"

// Warp-wide instructions.

namespace warpstack::ptx::handlers {
namespace {

void add_collective(Emitter& e, Action action, const Collective& collective) {
  e.emit(action, e.program().collectives, collective, {collective.result, collective.predicate},
         {collective.a, collective.b, collective.c, collective.members});
}

}  // namespace

void shfl(Emitter& e, Modifiers& modifiers) {
  const bool sync = modifiers.take("sync");
  const auto mode = modifiers.take_one_of({"up", "down", "bfly", "idx"});
  if (!mode) throw Unsupported{"it names no mode"};
  modifiers.need_type();
  Collective collective{.mode = static_cast<std::uint8_t>(*mode)};
  const bool paired = e.operand(0).paired;
  const std::size_t first = paired ? 2 : 1;
  collective.a = e.in(first, Type::b32);
  collective.b = e.in(first + 1, Type::b32);
  collective.c = e.in(first + 2, Type::b32);
  if (sync) collective.members = e.in(first + 3, Type::b32);
  collective.result = e.out(0, Type::b32);
  if (paired) collective.predicate = e.out(1, Type::pred);
  add_collective(e, Action::shuffle, collective);
}

void vote(Emitter& e, Modifiers& modifiers) {
  const bool sync = modifiers.take("sync");
  const auto mode = modifiers.take_one_of({"all", "any", "uni", "ballot"});
  if (!mode) throw Unsupported{"it names no mode"};
  const Type type = modifiers.need_type();
  Collective collective{.mode = static_cast<std::uint8_t>(*mode)};
  collective.a = e.in(1, Type::pred);
  if (sync) collective.members = e.in(2, Type::b32);
  collective.result = e.out(0, type);
  add_collective(e, Action::vote, collective);
}

void match(Emitter& e, Modifiers& modifiers) {
  const bool all = modifiers.take("all");
  modifiers.take("any");
  modifiers.take("sync");
  const Type type = modifiers.need_type();
  Collective collective{.mode = static_cast<std::uint8_t>(all ? 1 : 0), .type = type};
  const bool paired = e.operand(0).paired;
  const std::size_t first = paired ? 2 : 1;
  collective.a = e.in(first, type);
  collective.members = e.in(first + 1, Type::b32);
  collective.result = e.out(0, Type::b32);
  if (paired) collective.predicate = e.out(1, Type::pred);
  add_collective(e, Action::match, collective);
}

void redux(Emitter& e, Modifiers& modifiers) {
  modifiers.take("sync");
  static constexpr std::string_view names[] = {"add", "min", "max", "and", "or", "xor"};
  std::string_view name;
  for (const std::string_view candidate : names) {
    if (modifiers.take(candidate)) name = candidate;
  }
  const bool is_of_sizes = modifiers.take("abs");
  const bool keeps_nan = modifiers.take("NaN");
  const Type type = modifiers.need_type();
  Collective collective{.type = type};
  if (type == Type::f32 && (name == "min" || name == "max")) {
    collective.combine = find_float_extreme(name == "min", keeps_nan);
  } else if (!is_of_sizes && !keeps_nan) {
    collective.combine = find_atomic(name, type, false);
  }
  if (collective.combine == nullptr || bytes_of(type) != 4 ||
      (type == Type::f32 && name == "add")) {
    throw Unsupported{"this reduction is not supported"};
  }
  collective.a = e.in(1, type == Type::f32 ? Type::f32 : Type::b32);
  if (is_of_sizes) {
    const std::uint32_t size = e.temporary(4);
    e.lanes({.operation = Operation::abs, .type = Type::f32}, size, {collective.a});
    collective.a = size;
  }
  collective.members = e.in(2, Type::b32);
  collective.result = e.out(0, type == Type::f32 ? Type::f32 : Type::b32);
  add_collective(e, Action::reduce, collective);
}

void activemask(Emitter& e, Modifiers& modifiers) {
  modifiers.need_type();
  add_collective(e, Action::active_mask, {.result = e.out(0, Type::b32)});
}

void elect(Emitter& e, Modifiers& modifiers) {
  modifiers.take("sync");
  const bool paired = e.operand(0).paired;
  Collective collective;
  collective.members = e.in(paired ? 2 : 1, Type::b32);
  collective.result = e.out(0, Type::b32);
  if (paired) collective.predicate = e.out(1, Type::pred);
  add_collective(e, Action::elect, collective);
}

}  // namespace warpstack::ptx::handlers
