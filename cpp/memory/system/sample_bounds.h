#pragma once

#include "memory/system/memory_system.h"

namespace warpstack::memory {

/// The profile if every value that a sample leaves uncertain were at one end of its 95 % confidence
/// interval: with `sign` 1 more requests leave L1 and warps wait longer, with -1 fewer and shorter.
/// As all values are at the same end at once, the two profiles lie farther apart than a 95 %
/// interval would. A profile of all SMs is returned unchanged.
MemoryProfile bound_of(const MemoryProfile& profile, double sign);

}  // namespace warpstack::memory
