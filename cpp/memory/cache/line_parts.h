#pragma once

#include <bit>
#include <cstdint>

#include "memory/cache/cache.h"

namespace warpstack::memory {

/// Splits the sectors of a line, in order, among the lines of the next level, whose size may
/// differ. Calls `visit(line, mask, bytes)`; `bytes` are the byte masks of the part's sectors, or
/// null if none are given.
template <typename Visit>
void for_each_part(std::uint64_t line, SectorMask mask, const ByteMasks* bytes,
                   std::uint32_t sectors_per_line, std::uint32_t sectors_per_next_line,
                   Visit visit) {
  if (sectors_per_line == sectors_per_next_line) {
    visit(line, mask, bytes);
    return;
  }
  while (mask != 0) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
    const std::uint64_t next_line = (line * sectors_per_line + first) / sectors_per_next_line;
    SectorMask part = 0;
    ByteMasks part_bytes{};
    for (std::uint32_t s = first; s < sectors_per_line; ++s) {
      const std::uint64_t sector = line * sectors_per_line + s;
      if (!(mask >> s & 1) || sector / sectors_per_next_line != next_line) continue;
      part |= static_cast<SectorMask>(1u << sector % sectors_per_next_line);
      if (bytes) part_bytes[sector % sectors_per_next_line] = (*bytes)[s];
      mask &= static_cast<SectorMask>(~(1u << s));
    }
    visit(next_line, part, bytes ? &part_bytes : nullptr);
  }
}

}  // namespace warpstack::memory
