#pragma once

#include <string_view>

#include "sass/lower/lowerer.h"

namespace warpstack::sass {

/// Emits the steps of an instruction.
using Family = void (*)(Lowerer& to, Form& form);

/// The family of an opcode without modifiers, or null. Each file of families/ has one of the parts.
Family find_family(std::string_view base);
Family integer_family(std::string_view base);
Family extreme_family(std::string_view base);
Family bit_family(std::string_view base);
Family real_family(std::string_view base);
Family real_pair_family(std::string_view base);
Family half_family(std::string_view base);
Family conversion_family(std::string_view base);
Family narrow_family(std::string_view base);
Family predicate_family(std::string_view base);
Family movement_family(std::string_view base);
Family memory_family(std::string_view base);
Family atomic_family(std::string_view base);
Family control_family(std::string_view base);
Family warp_family(std::string_view base);
Family matrix_family(std::string_view base);
Family texture_family(std::string_view base);

}  // namespace warpstack::sass
