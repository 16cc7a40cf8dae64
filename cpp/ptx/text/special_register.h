#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ptx/text/module.h"

namespace warpstack::ptx {

/// A special register, and what its name says about the operand.
struct SpecialRegister {
  Special special;
  bool is_vector = false;   ///< has components: `%tid.x`
  std::uint8_t number = 0;  ///< of `%envreg` and `%pm`
};

/// Empty for a name that is not a special register (PTX ISA, Section 10). The name starts with `%`.
std::optional<SpecialRegister> special_register_named(std::string_view name);
/// The name without `%`; `%envreg` and `%pm` also lose their number.
std::string_view name_of(Special special);

}  // namespace warpstack::ptx
