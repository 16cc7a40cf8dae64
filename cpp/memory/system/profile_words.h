#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/system/memory_system.h"

namespace warpstack::memory {

/// A memory profile as a sequence of 64-bit words for a file. A change of the sequence needs a new
/// format version of the caches on disk that keep it.
std::vector<std::uint64_t> words_of(const MemoryProfile& profile);

/// The profile that words_of() wrote. Throws InputError when the words are not such a profile.
MemoryProfile memory_profile_of(std::span<const std::uint64_t> words);

}  // namespace warpstack::memory
