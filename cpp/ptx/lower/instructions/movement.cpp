#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/emitter.h"
#include "ptx/lower/instructions.h"
#include "simt/program/address_space.h"

// Data movement: mov, conversions and addresses.

namespace warpstack::ptx::handlers {
namespace {

bool is_part(std::uint32_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4; }
Type unsigned_part(std::uint32_t bytes) {
  return bytes == 4 ? Type::u32 : bytes == 2 ? Type::u16 : Type::u8;
}

/// mov.b64 {lo, hi}, x and the like.
void unpack(Emitter& e, const Operand& target, const Operand& source, Type type) {
  if (target.elements.empty()) throw Unsupported{"its vector is empty"};
  const std::uint32_t bytes = bytes_of(type) / static_cast<std::uint32_t>(target.elements.size());
  const std::uint32_t value = e.in(source, type);
  if (!is_part(bytes)) throw Unsupported{"parts of this width are not supported"};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> parts;
  for (std::size_t i = 0; i < target.elements.size(); ++i) {
    // Parts go through temporaries: a target may be the source.
    const std::uint32_t shifted = e.temporary(bytes_of(type));
    e.lanes({.operation = Operation::shr, .type = bytes_of(type) == 8 ? Type::u64 : Type::u32},
            shifted, {value, e.constant(8 * bytes * i, 4)});
    const std::uint32_t part = e.temporary(bytes);
    e.lanes({.operation = Operation::cvt,
             .type = unsigned_part(bytes),
             .source = bytes_of(type) == 8 ? Type::u64 : Type::u32},
            part, {shifted});
    parts.emplace_back(e.out(target.elements[i], bits_type(bytes)), part);
  }
  for (const auto& [place, part] : parts) e.copy(place, part, bits_type(bytes));
}

/// mov.b64 x, {lo, hi}
void pack(Emitter& e, const Operand& target, const Operand& source, Type type) {
  if (source.elements.empty()) throw Unsupported{"its vector is empty"};
  const std::uint32_t bytes = bytes_of(type) / static_cast<std::uint32_t>(source.elements.size());
  if (!is_part(bytes)) throw Unsupported{"parts of this width are not supported"};
  const Type whole = bytes_of(type) == 8 ? Type::u64 : Type::u32;
  std::uint32_t joined = none;
  for (std::size_t i = 0; i < source.elements.size(); ++i) {
    const std::uint32_t part = e.in(source.elements[i], bits_type(bytes));
    const std::uint32_t extended = e.temporary(bytes_of(type));
    e.lanes({.operation = Operation::cvt, .type = whole, .source = unsigned_part(bytes)}, extended,
            {part});
    std::uint32_t placed = extended;
    if (i > 0) {
      placed = e.temporary(bytes_of(type));
      e.lanes({.operation = Operation::shl, .type = whole}, placed,
              {extended, e.constant(8 * bytes * i, 4)});
      const std::uint32_t both = e.temporary(bytes_of(type));
      e.lanes({.operation = Operation::bit_or, .type = whole}, both, {joined, placed});
      placed = both;
    }
    joined = placed;
  }
  e.copy(e.out(target, type), joined, type);
}

/// mov.b128 of registers, from or to a vector of two halves.
void move_wide(Emitter& e, const Operand& target, const Operand& source) {
  const auto need_halves = [](const Operand& vector) {
    if (vector.elements.size() != 2) throw Unsupported{"parts of this width are not supported"};
  };
  std::array<std::uint32_t, 2> from{};
  if (source.kind == Operand::Kind::vector) {
    need_halves(source);
    // Through temporaries: a target may be a source.
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = e.temporary(8);
      e.copy(from[i], e.in(source.elements[i], Type::b64), Type::b64);
    }
  } else {
    from = e.halves_in(source);
  }
  std::array<std::uint32_t, 2> to{};
  if (target.kind == Operand::Kind::vector) {
    need_halves(target);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = e.out(target.elements[i], Type::b64);
  } else {
    to = e.halves_out(target);
  }
  for (std::size_t i = 0; i < to.size(); ++i) e.copy(to[i], from[i], Type::b64);
}

/// Takes the state space of a generic address and returns the index of its word in this list. The
/// cluster's shared memory begins with the block's own, in the same window.
std::optional<std::size_t> take_window(Modifiers& modifiers) {
  if (modifiers.take("shared::cta")) return 2;
  return modifiers.take_one_of({"global", "const", "shared", "local", "param", "shared::cluster"});
}

}  // namespace

void mov(Emitter& e, Modifiers& modifiers) {
  const Type type = modifiers.need_type();
  const Operand& target = e.operand(0);
  const Operand& source = e.operand(1);
  if (type == Type::b128) {
    move_wide(e, target, source);
  } else if (target.kind == Operand::Kind::vector) {
    unpack(e, target, source, type);
  } else if (source.kind == Operand::Kind::vector) {
    pack(e, target, source, type);
  } else if (source.kind == Operand::Kind::special) {
    e.read_special(source, e.out(target, type));
  } else {
    const std::uint32_t value = e.in(source, type);
    e.copy(e.out(target, type), value, type);
  }
}

void cvt(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("pack")) return convert_packed(e, modifiers);
  if (is_narrow_conversion(e.instruction())) return convert_narrow(e, modifiers);
  LaneForm form{.operation = Operation::cvt};
  static constexpr std::pair<std::string_view, Rounding> integral[] = {{"rni", Rounding::nearest},
                                                                       {"rzi", Rounding::zero},
                                                                       {"rmi", Rounding::down},
                                                                       {"rpi", Rounding::up}};
  bool has_integral = false;
  for (const auto& [name, rounding] : integral) {
    if (modifiers.take(name)) {
      form.rounding = rounding;
      has_integral = true;
    }
  }
  if (!has_integral) form.rounding = take_rounding(modifiers);
  form.flush = modifiers.take("ftz");
  form.saturate = modifiers.take("sat");
  form.relu = modifiers.take("relu");
  form.type = modifiers.need_type();
  form.source = modifiers.need_type();
  form.integer_rounding = has_integral && is_float(form.type);
  const bool same = !is_float(form.type) && !is_float(form.source);
  e.set_class(same ? OpClass::integer : OpClass::sfu);
  if (form.type == Type::f16x2 || form.type == Type::bf16x2) {
    // F2FP, which the pipe of half-precision arithmetic executes and not the special function unit.
    e.set_class(OpClass::fp16);
    const std::uint32_t a = e.in(1, form.source);
    const std::uint32_t b = e.in(2, form.source);
    const auto rounding = static_cast<std::uint32_t>(form.rounding);
    LaneForm pair = form;
    pair.rounding = Rounding::nearest;
    e.lanes(pair, e.out(0, Type::b32), {a, b}, rounding);
    return;
  }
  // The source register may be wider than the source type, the target register wider than the
  // target type (PTX ISA, "Operand size exceeding instruction-type size").
  std::uint32_t source;
  if (e.operand(1).kind == Operand::Kind::reg && e.register_bytes(e.operand(1)) == 8 &&
      bytes_of(form.source) < 8) {
    const std::uint32_t whole = e.in(1, Type::u64);
    source = e.temporary(4);
    e.lanes({.operation = Operation::cvt, .type = Type::u32, .source = Type::u64}, source, {whole});
  } else {
    source = e.in(1, form.source);
  }
  const std::uint32_t target_bytes = e.register_bytes(e.operand(0));
  const bool widen = !is_float(form.type) && e.operand(0).kind == Operand::Kind::reg &&
                     (is_signed(form.type) ? bytes_of(form.type) < target_bytes
                                           : bytes_of(form.type) < 8 && target_bytes == 8);
  if (!widen) {
    const Type width = bytes_of(form.type) == 1 ? Type::b16 : form.type;
    e.lanes(form, e.out(0, width), {source});
    return;
  }
  const std::uint32_t narrow = e.temporary(bytes_of(form.type));
  e.lanes(form, narrow, {source});
  const bool to_64 = target_bytes == 8;
  const Type whole = is_signed(form.type) ? (to_64               ? Type::s64
                                             : target_bytes == 4 ? Type::s32
                                                                 : Type::s16)
                                          : Type::u64;
  e.lanes({.operation = Operation::cvt, .type = whole, .source = form.type},
          e.out(0, bits_type(target_bytes)), {narrow});
}

void cvta(Emitter& e, Modifiers& modifiers) {
  const bool to = modifiers.take("to");
  const auto space = take_window(modifiers);
  if (!space) throw Unsupported{"it names no state space"};
  const Type type = modifiers.need_type();
  if (bytes_of(type) != 8) throw Unsupported{"32-bit generic addresses are not supported"};
  std::uint64_t window = 0;
  if (*space == 2 || *space == 5) window = shared_window;
  if (*space == 3) window = local_window;
  const std::uint32_t source = e.in(1, type);
  const std::uint32_t target = e.out(0, type);
  // Addresses of these spaces are already generic. ptxas removes such a cvta, and turns others into
  // an addition.
  if (window == 0 && *space != 4) e.fold_copy(target, source);
  if (*space == 4) {
    if (to) throw Unsupported{"cvta.to.param is not supported"};
    const std::uint32_t base = e.temporary(8);
    e.emit(Action::parameter_base, {base}, {}).operands.target = base;
    e.lanes({.operation = Operation::add, .type = Type::u64}, target, {source, base});
    return;
  }
  if (window == 0) {
    e.copy(target, source, Type::u64);
    return;
  }
  e.lanes({.operation = to ? Operation::sub : Operation::add, .type = Type::u64}, target,
          {source, e.constant(window, 8)});
}

/// alloca: the stack grows upwards, so the address is the number of bytes that were in use.
void stack_allocate(Emitter& e, Modifiers& modifiers) {
  const Type type = modifiers.need_type();
  constexpr std::int64_t usual_alignment = 8;
  constexpr std::int64_t largest_alignment = std::int64_t{1} << 23;
  std::int64_t alignment = usual_alignment;
  if (e.num_operands() > 2) {
    alignment = e.operand(2).integer;
    if (e.operand(2).kind != Operand::Kind::integer || alignment < 1 ||
        alignment > largest_alignment || (alignment & (alignment - 1)) != 0) {
      throw Unsupported{"its alignment is not a power of two up to 2^23"};
    }
  }
  const auto binary = [&e](Operation operation, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t result = e.temporary(8);
    e.lanes({.operation = operation, .type = Type::u64}, result, {a, b});
    return result;
  };
  const std::uint32_t size = e.temporary(8);
  e.lanes({.operation = Operation::cvt, .type = Type::u64, .source = type}, size, {e.in(1, type)});
  const auto mask = static_cast<std::uint64_t>(alignment - 1);
  const std::uint32_t past = binary(Operation::add, e.stack_top(), e.constant(mask, 8));
  const std::uint32_t address = binary(Operation::bit_and, past, e.constant(~mask, 8));
  const std::uint32_t room = e.constant(e.layout().stack_bytes, 8);
  // A size beyond the whole stack must not wrap around.
  const std::uint32_t end =
      binary(Operation::add, address,
             binary(Operation::min, size, e.constant(e.layout().stack_bytes + 1, 8)));
  const std::uint32_t overflows = e.temporary_predicate();
  e.lanes({.operation = Operation::setp, .type = Type::u64, .comparison = Comparison::gt},
          overflows, {end, room});
  e.trap_where(overflows);
  e.copy(e.stack_top(), end, Type::u64);
  e.lanes({.operation = Operation::cvt, .type = type, .source = Type::u64}, e.out(0, type),
          {address});
}

void stack_save(Emitter& e, Modifiers& modifiers) {
  const Type type = modifiers.need_type();
  e.lanes({.operation = Operation::cvt, .type = type, .source = Type::u64}, e.out(0, type),
          {e.stack_top()});
}

void stack_restore(Emitter& e, Modifiers& modifiers) {
  const Type type = modifiers.need_type();
  e.lanes({.operation = Operation::cvt, .type = Type::u64, .source = type}, e.stack_top(),
          {e.in(0, type)});
}

void isspacep(Emitter& e, Modifiers& modifiers) {
  const auto space = take_window(modifiers);
  if (!space || *space == 4) throw Unsupported{"this state space is not supported"};
  const std::uint32_t address = e.in(1, Type::u64);
  const std::uint32_t target = e.out(0, Type::pred);
  Step& step = e.emit(Action::address_query, {target}, {address});
  step.operands.target = target;
  step.operands.source[0] = address;
  step.operands.immediate = static_cast<std::uint32_t>(*space);
}

}  // namespace warpstack::ptx::handlers
