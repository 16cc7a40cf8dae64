#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ptx/text/module.h"

namespace warpstack::ptx {

/// A special register, and the part of the operand that its name decides.
struct SpecialRegister {
  Special special;
  bool is_vector = false;   ///< has components: `%tid.x`
  std::uint8_t number = 0;  ///< of `%envreg` and `%pm`
};

/// Empty for a name that is not a special register (PTX ISA, Section 10). The name starts with `%`.
std::optional<SpecialRegister> special_register_named(std::string_view name);
/// The name without `%`; of `%envreg` and `%pm` without their number.
std::string_view name_of(Special special);

}  // namespace warpstack::ptx
