#pragma once

#include "sass/lower/lowerer.h"
#include "simt/program/program.h"

namespace warpstack::sass {

/// Sets the address of an access from an operand such as [R2.64+UR4+0x10], [R3.X4], [UR4].
/// `is_64_bits`: the opcode says that registers are pairs.
void set_address(Lowerer& to, simt::MemoryAccess& access, const Operand& operand, bool is_64_bits);

/// Takes the modifiers for caches and memory order, which change no value.
void take_order(Form& form, simt::MemoryAccess& access);

}  // namespace warpstack::sass
