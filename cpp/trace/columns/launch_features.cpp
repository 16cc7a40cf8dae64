#include "trace/columns/launch_features.h"

#include <cstddef>

namespace warpstack::trace {

LaunchFeatures launch_features(const KernelTrace& trace) {
  LaunchFeatures features;
  for (std::size_t row = 0; row < trace.instructions().size(); ++row) {
    const StaticInstruction& instruction = trace.instructions()[row];
    const RowCounts& counts = trace.row_counts()[row];
    if (!instruction.is_memory()) {
      features.units[static_cast<std::size_t>(trace.effects()[row].unit)] += counts.issued;
    } else if (!instruction.uses_caches()) {
      features.shared_wavefronts += counts.shared_wavefronts;
    } else if (instruction.is_atomic()) {
      features.atomics += counts.active;
    } else if (instruction.writes_memory()) {
      features.stores += counts.active;
    } else {
      features.loads += counts.active;
    }
  }
  features.written_sectors = trace.totals().stores;
  features.read_sectors = trace.totals().sectors - trace.totals().stores;
  return features;
}

}  // namespace warpstack::trace
