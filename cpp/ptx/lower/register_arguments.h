#pragma once

#include <cstdint>

#include "ptx/lower/emitter.h"

namespace warpstack::ptx {

/// Arguments and results of functions in registers (`.reg` parameters, and calls that name
/// registers or constants). They are passed in pieces of the parameter area, like `.param` ones.

/// Bytes of a parameter in a register: a predicate takes a word.
constexpr std::uint32_t parameter_bytes_of(Type type) {
  return type == Type::pred ? 4 : bytes_of(type);
}

/// Loads a register, or the elements of a vector register, from a piece of the parameter area.
void load_from_piece(Emitter& e, const Call::Piece& piece, const Operand& target, Type type);
/// Stores a register, the elements of a vector register, or a constant to a piece.
void store_to_piece(Emitter& e, const Call::Piece& piece, const Operand& source, Type type);

/// The same for a value of 4 or 8 bytes.
void load_value(Emitter& e, const Call::Piece& piece, std::uint32_t target, std::uint32_t bytes);
void store_value(Emitter& e, const Call::Piece& piece, std::uint32_t source, std::uint32_t bytes);

/// The register, or vector register, of a parameter.
Operand register_of(const Function& function, const Variable& parameter);

}  // namespace warpstack::ptx
