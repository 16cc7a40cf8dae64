#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/interrupt.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// Takes streams of lines in pieces.
class LineSink {
 public:
  virtual ~LineSink() = default;
  /// The next accesses of the stream: line numbers (address / line_bytes), and an AccessKind each.
  virtual void lines(std::span<const std::uint64_t> lines, std::span<const std::uint8_t> kinds) = 0;
  /// The next access begins another stream.
  virtual void end_stream() = 0;
};

/// An L1 cache that keeps load hits out of the stream to L2. Stores go through it.
struct LineFilter {
  std::uint64_t sets = 1;
  std::uint32_t ways = 1;
  bool allocate_stores = false;  ///< a store that misses brings its line in
};

/// How a kernel's accesses become streams of lines.
struct LineStreamConfig {
  std::uint32_t num_sms = 1;
  std::uint32_t blocks_per_sm = 1;   ///< resident at once
  std::uint32_t line_bytes = 32;     ///< a multiple of 32
  bool merged = false;               ///< false: a stream per SM; true: one of all SMs
  std::optional<LineFilter> filter;  ///< of a merged stream

  /// Throws InputError on impossible values.
  void validate() const;
};

/// Sends a kernel's accesses to global and local memory to the sink, in the order of the memory
/// stage (MemorySystem): blocks go to SMs round robin, SmSchedule orders each SM, the SMs take
/// turns. An instruction accesses each line that it touches once, in order of first touch.
///
/// The streams of SMs hold what L1 caches see: stores, and loads that do not bypass L1. The merged
/// stream holds all accesses, or with a filter those that leave the L1 caches: load misses,
/// bypassing loads, stores, and atomics, which drop L1's copy.
void stream_lines(const trace::KernelTrace& trace, const LineStreamConfig& config, LineSink& sink,
                  const InterruptCheck& interrupt = {});

}  // namespace warpstack::memory
