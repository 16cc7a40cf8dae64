#include "memory/cache/counters.h"

#include "memory/cache/totals.h"

namespace warpstack::memory {

Total total_of(const trace::StaticInstruction& instruction) {
  if (instruction.is_atomic()) return Total::atomic_instructions;
  return instruction.kind == trace::MemoryKind::store ? Total::store_instructions
                                                      : Total::load_instructions;
}

InstructionCounters& InstructionCounters::operator+=(const InstructionCounters& other) {
  executions += other.executions;
  active_executions += other.active_executions;
  sectors += other.sectors;
  requests += other.requests;
  l2_requests += other.l2_requests;
  l2_request_sectors += other.l2_request_sectors;
  dram_requests += other.dram_requests;
  dram_sectors += other.dram_sectors;
  shared_wavefronts += other.shared_wavefronts;
  l1_passes += other.l1_passes;
  repeats += other.repeats;
  for (std::size_t e = 0; e < num_miss_events; ++e) {
    events[e] += other.events[e];
    waits[e] += other.waits[e];
    wait_cycles[e] += other.wait_cycles[e];
    repeat_cycles[e] += other.repeat_cycles[e];
  }
  return *this;
}

}  // namespace warpstack::memory
