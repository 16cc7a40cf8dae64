#include <array>
#include <cstdint>

#include "memory/order/line_grouper.h"
#include "memory/order/warp_stream.h"
#include "memory/system/memory_system.h"

namespace warpstack::memory {
namespace {

constexpr std::uint32_t no_writer = 0;

/// By mask of sectors of an L2 line: the sectors that L1 asks for, in whole fill units.
std::array<SectorMask, 256> asked_of_l2(const MemoryConfig& config) {
  const std::uint32_t unit = config.l1.sector_bytes / trace::sector_bytes;
  const std::uint32_t sectors = config.l2.line_bytes / trace::sector_bytes;
  std::array<SectorMask, 256> asked{};
  for (std::uint32_t mask = 0; mask < asked.size(); ++mask) {
    for (std::uint32_t s = 0; s < sectors; ++s) {
      // A unit longer than the line fills the line.
      const std::uint32_t first = s / unit * unit;
      for (std::uint32_t t = first; t < first + unit && t < sectors; ++t) {
        if (mask >> t & 1) asked[mask] |= static_cast<SectorMask>(1u << s);
      }
    }
  }
  return asked;
}

}  // namespace

void MemorySystem::warm(const trace::KernelTrace& trace, const InterruptCheck& interrupt) {
  const std::scoped_lock lock(mutex_);
  const std::vector<trace::StaticInstruction>& instructions = trace.instructions();
  const RowFlags flags(instructions);
  const std::array<SectorMask, 256> asked = asked_of_l2(config_);
  LineGrouper grouper(config_.l2.line_bytes);
  Cache::Eviction eviction;
  for (std::size_t block = 0; block < trace.blocks().size(); ++block) {
    if (interrupt && block % 64 == 0) interrupt();
    for (std::size_t warp = 0; warp < trace.blocks().warps(block).size(); ++warp) {
      WarpStream stream(trace, flags,
                        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(warp)});
      for (; !stream.done(); stream.advance()) {
        const MemoryAccess& access = stream.current();
        const trace::StaticInstruction& instruction = instructions[access.row];
        const bool writes = instruction.writes_memory();
        const bool evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
        const auto lines = grouper.group(access);
        for (std::size_t i = 0; i < lines.size(); ++i) {
          const std::uint64_t line = lines[i].line;
          const SectorMask mask = lines[i].mask;
          const std::uint32_t set = l2_.set_of(line);
          if (!writes) {
            l2_.read(set, line, asked[mask], evict_first, eviction);
            continue;
          }
          if (instruction.is_atomic()) l2_.read(set, line, mask, evict_first, eviction);
          l2_.write(set, line, mask, grouper.bytes(i), no_writer, evict_first, eviction);
        }
      }
    }
  }
}

}  // namespace warpstack::memory
