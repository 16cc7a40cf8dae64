#pragma once

#include <string_view>

#include "ptx/program.h"

namespace warpstack::ptx {

/// The function of an atomic, reduction or warp-wide reduction ("add", "cas", "inc", …) on values
/// of a type, or null when PTX has none. Values are the bits, zero-extended.
AtomicFunction find_atomic(std::string_view operation, Type type);

}  // namespace warpstack::ptx
