#pragma once

#include "memory/cache/cache.h"
#include "memory/cache/count.h"
#include "memory/cache/line_parts.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// What is left of a kernel when its warps have ended: the dirty lines of an L1 go to L2, in no
/// time.
inline void flush_into_l2(Cache& l1, Cache& l2, MemoryTotals& totals) {
  l1.flush([&](const Cache::Eviction& line) {
    totals[Total::l1_flush_sectors] += count_sectors(line.dirty);
    for_each_part(line.line, line.dirty, &line.bytes, l1.config().line_bytes / trace::sector_bytes,
                  l2.config().line_bytes / trace::sector_bytes,
                  [&](std::uint64_t l2_line, SectorMask mask, const ByteMasks* bytes) {
                    Cache::Eviction evicted;
                    const Cache::WriteResult written =
                        l2.write(l2.set_of(l2_line), l2_line, mask, *bytes, 0, false, evicted);
                    count_l2_write(totals, mask, written.hit);
                    count_dram(totals, written.fetch, written.forward);
                    count_dram(totals, 0, evicted.dirty);
                  });
  });
}

/// The instructions of a trace that use the caches, by kind.
inline void count_instructions(const trace::KernelTrace& trace, MemoryTotals& totals) {
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const trace::StaticInstruction& instruction = trace.instructions()[row];
    if (instruction.uses_caches()) totals[total_of(instruction)] += trace.row_counts()[row].issued;
  }
}

}  // namespace warpstack::memory
