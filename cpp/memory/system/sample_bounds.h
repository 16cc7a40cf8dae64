#pragma once

#include "memory/system/memory_system.h"

namespace warpstack::memory {

/// The profile as it would be if everything that a sample left uncertain were at one end of its
/// interval of 95 % confidence: with `sign` 1 more requests leave L1 and warps wait longer, with -1
/// fewer and shorter. That all is at the same end at once makes the two profiles lie farther apart
/// than what is between them in 95 % of cases. Of a profile of all SMs, the same profile.
MemoryProfile bound_of(const MemoryProfile& profile, double sign);

}  // namespace warpstack::memory
