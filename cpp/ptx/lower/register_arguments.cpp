#include "ptx/lower/register_arguments.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ptx/lower/memory_operands.h"

namespace warpstack::ptx {
namespace {

ParameterAccess access_of(const Call::Piece& piece, std::size_t element, Type type) {
  ParameterAccess access;
  access.bytes = static_cast<std::uint8_t>(parameter_bytes_of(type));
  access.offset = piece.offset + element * access.bytes;
  access.sign_extend = is_signed(type);
  return access;
}

void require_room(const Call::Piece& piece, std::size_t elements, Type type) {
  if (bytes_of(type) > 8) throw Unsupported{"128-bit registers are not supported"};
  if (elements * parameter_bytes_of(type) > piece.bytes) {
    throw Unsupported{"an argument has another size than the parameter"};
  }
}

/// Bytes of the register that holds a value of the type.
std::uint32_t bytes_in_register(Emitter& e, const Operand& operand, Type type) {
  const std::uint32_t bytes =
      operand.kind == Operand::Kind::reg ? e.register_bytes(operand) : std::max(bytes_of(type), 2u);
  if (bytes < bytes_of(type)) throw Unsupported{"an argument is narrower than the parameter"};
  return bytes;
}

}  // namespace

void load_from_piece(Emitter& e, const Call::Piece& piece, const Operand& target, Type type) {
  const auto elements = elements_of(target);
  require_room(piece, elements.size(), type);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ParameterAccess access = access_of(piece, i, type);
    const bool is_predicate = type == Type::pred;
    const std::uint32_t bytes = is_predicate ? 4 : bytes_in_register(e, *elements[i], type);
    const std::uint32_t value =
        is_predicate ? e.temporary(4) : e.out(*elements[i], bits_type(bytes));
    access.values[0] = value;
    access.value_bytes[0] = static_cast<std::uint8_t>(bytes);
    e.emit(Action::parameter_load, e.program().parameter_accesses, access, {value}, {});
    if (!is_predicate) continue;
    e.lanes({.operation = Operation::setp, .type = Type::u32, .comparison = simt::Comparison::ne},
            e.out(*elements[i], Type::pred), {value, e.constant(0, 4)});
  }
}

void store_to_piece(Emitter& e, const Call::Piece& piece, const Operand& source, Type type) {
  const auto elements = elements_of(source);
  require_room(piece, elements.size(), type);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ParameterAccess access = access_of(piece, i, type);
    std::uint32_t bytes = 4;
    std::uint32_t value = none;
    if (type == Type::pred) {
      value = e.temporary(4);
      e.lanes({.operation = Operation::selp, .type = Type::b32}, value,
              {e.constant(1, 4), e.constant(0, 4), e.in(*elements[i], Type::pred)});
    } else {
      bytes = bytes_in_register(e, *elements[i], type);
      value = e.in(*elements[i], elements[i]->kind == Operand::Kind::reg ? bits_type(bytes) : type);
    }
    access.values[0] = value;
    access.value_bytes[0] = static_cast<std::uint8_t>(bytes);
    e.emit(Action::parameter_store, e.program().parameter_accesses, access, {}, {value});
  }
}

void load_value(Emitter& e, const Call::Piece& piece, std::uint32_t target, std::uint32_t bytes) {
  ParameterAccess access = access_of(piece, 0, bits_type(bytes));
  access.values[0] = target;
  access.value_bytes[0] = access.bytes;
  e.emit(Action::parameter_load, e.program().parameter_accesses, access, {target}, {});
}

void store_value(Emitter& e, const Call::Piece& piece, std::uint32_t source, std::uint32_t bytes) {
  ParameterAccess access = access_of(piece, 0, bits_type(bytes));
  access.values[0] = source;
  access.value_bytes[0] = access.bytes;
  e.emit(Action::parameter_store, e.program().parameter_accesses, access, {}, {source});
}

Operand register_of(const Function& function, const Variable& parameter) {
  Operand reg;
  reg.kind = Operand::Kind::reg;
  reg.index = parameter.reg.value();
  const std::uint32_t count = function.registers[reg.index].vector;
  if (count == 1) return reg;
  Operand vector;
  vector.kind = Operand::Kind::vector;
  for (std::uint32_t i = 0; i < count; ++i) {
    reg.component = static_cast<std::uint8_t>(i);
    vector.elements.push_back(reg);
  }
  return vector;
}

}  // namespace warpstack::ptx
