#pragma once

#include <cstdint>
#include <string_view>

#include "simt/program/program.h"

namespace warpstack::sass {

/// A library function that code calls by its address in a constant bank.
struct BuiltIn {
  std::string_view name;
  simt::Call::BuiltIn kind;
  std::uint32_t address;  ///< ours: the driver chooses others
};

/// All of them, for calls whose target is only known at run time.
inline constexpr BuiltIn built_ins[] = {
    {"vprintf", simt::Call::BuiltIn::print, 0xffff0000},
    {"__assertfail", simt::Call::BuiltIn::assert_fail, 0xffff0010},
    {"malloc", simt::Call::BuiltIn::allocate, 0xffff0020},
    {"free", simt::Call::BuiltIn::release, 0xffff0030},
};

/// The function of a name, or null.
inline const BuiltIn* find_built_in(std::string_view name) {
  for (const BuiltIn& known : built_ins) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

}  // namespace warpstack::sass
