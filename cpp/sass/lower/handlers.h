#pragma once

#include "sass/lower/lowerer.h"
#include "trace/instructions/opcode.h"

namespace warpstack::sass {

/// Emits the steps of an instruction.
using Handler = void (*)(Lowerer& to, Form& form);

/// The handlers that trace/instructions/sass.inc names. The files of `instructions/` define them;
/// one that is missing does not link.
namespace handlers {

#define SASS_OPERATION(name, op_class, registers, handler) void handler(Lowerer& to, Form& form);
#define SASS_MEMORY(name, space, kind, registers, handler) void handler(Lowerer& to, Form& form);
#define SASS_MATRIX(name, factors, warps, handler) void handler(Lowerer& to, Form& form);
#include "trace/instructions/sass.inc"

}  // namespace handlers

/// The handler of an opcode; that of an unknown one, null, refuses it.
Handler handler_of(const trace::SassOpcode* opcode);

}  // namespace warpstack::sass
