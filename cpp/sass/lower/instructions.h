#pragma once

#include <string_view>

#include "sass/lower/lowerer.h"

namespace warpstack::sass {

/// Emits the steps of an instruction.
using Handler = void (*)(Lowerer& to, Form& form);

/// The handler of an opcode without modifiers, or null. Each file of instructions/ has one of the
/// functions that look for it.
Handler find_handler(std::string_view base);
Handler integer_handler(std::string_view base);
Handler extreme_handler(std::string_view base);
Handler bit_handler(std::string_view base);
Handler real_handler(std::string_view base);
Handler real_pair_handler(std::string_view base);
Handler half_handler(std::string_view base);
Handler conversion_handler(std::string_view base);
Handler narrow_handler(std::string_view base);
Handler predicate_handler(std::string_view base);
Handler movement_handler(std::string_view base);
Handler memory_handler(std::string_view base);
Handler atomic_handler(std::string_view base);
Handler control_handler(std::string_view base);
Handler warp_handler(std::string_view base);
Handler matrix_handler(std::string_view base);
Handler texture_handler(std::string_view base);

}  // namespace warpstack::sass
