#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/columns/kernel_trace.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::memory {

/// One executed access to global or local memory by a warp.
struct MemoryAccess {
  std::uint32_t row = 0;                        ///< in the static instruction table
  std::span<const std::uint64_t> sectors;       ///< touched sectors, at least one
  std::span<const std::uint32_t> store_bytes;   ///< byte masks of written sectors; empty for loads
  std::span<const trace::AtomicLanes> atomics;  ///< of its sectors; empty unless it is an atomic
  std::uint32_t wavefronts = 0;                 ///< of an access to shared memory; else 0
  std::uint32_t kept_passes = 0;                ///< of the trace; 0: as the sectors imply

  /// Passes over the banks of L1.
  [[nodiscard]] std::uint32_t l1_passes() const {
    return kept_passes != 0 ? kept_passes : trace::implied_passes(sectors);
  }
};

/// Which rows of the instruction table a WarpStream yields, and which have store masks and lanes.
struct RowFlags {
  explicit RowFlags(const std::vector<trace::StaticInstruction>& instructions);
  std::vector<std::uint8_t> uses_caches;
  std::vector<std::uint8_t> writes;
  std::vector<std::uint8_t> is_atomic;
  /// All rows but atomics whose result no instruction reads or rewrites: for these no warp waits.
  /// Loads that nobody reads are awaited; compilers leave none.
  std::vector<std::uint8_t> is_read;
};

/// The accesses of one warp in program order: instructions of global and local space with at least
/// one active lane, and on request those of shared memory. A trace in a file is read in windows, so
/// that a resident warp costs a few kilobytes whatever its length.
class WarpStream {
 public:
  WarpStream(const trace::KernelTrace& trace, const RowFlags& flags, trace::WarpPosition position,
             bool with_shared = false);
  // Spans point into the stream's own buffer: it moves, but does not copy.
  WarpStream(WarpStream&&) = default;
  WarpStream& operator=(WarpStream&&) = default;

  [[nodiscard]] bool done() const { return done_; }
  /// The access at the cursor; only while not done(). Valid until advance().
  [[nodiscard]] const MemoryAccess& current() const { return current_; }
  void advance();
  /// Prefetches the sectors of the access at the cursor.
  void prefetch() const {
    const std::span<const std::uint64_t> sectors = current_.sectors;
    for (std::size_t i = 0; i < sectors.size(); i += 8) __builtin_prefetch(&sectors[i]);
    if (!sectors.empty()) __builtin_prefetch(&sectors.back());
  }
  [[nodiscard]] trace::WarpPosition position() const { return position_; }

 private:
  bool load_window();

  // Thousands of warps take turns, so what an access needs lies together.
  MemoryAccess current_;
  const RowFlags* flags_;
  trace::WarpPosition position_;
  bool done_ = false;
  bool with_shared_;
  // The rest of the window, behind the access at the cursor:
  std::span<const std::uint32_t> rows_;
  const std::uint16_t* counts_ = nullptr;
  const std::uint64_t* sectors_ = nullptr;
  const std::uint32_t* stores_ = nullptr;
  const trace::AtomicLanes* lanes_ = nullptr;  ///< of the stores; null in blocks without atomics
  const std::uint8_t* passes_ = nullptr;       ///< null in blocks where sectors imply them all

  const trace::KernelTrace* trace_;
  trace::ColumnCounts window_end_;  ///< one past the window, within the block
  trace::ColumnCounts warp_end_;    ///< one past the warp
  std::vector<std::byte> scratch_;
};

}  // namespace warpstack::memory
