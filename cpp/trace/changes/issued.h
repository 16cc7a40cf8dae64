#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/columns/block_columns.h"
#include "trace/columns/kernel_trace.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::trace {

/// An issued warp instruction of a block, with its access if it has one.
struct Issued {
  std::size_t warp = 0;  ///< position in the block
  std::uint32_t row = 0;
  std::uint32_t mask = 0;
  bool is_memory = false;
  std::uint16_t count = 0;  ///< see ColumnView
  std::uint8_t passes = 0;
  std::span<const std::uint64_t> sectors = {};
  std::span<const std::uint32_t> bytes = {};
  std::span<const AtomicLanes> lanes = {};

  [[nodiscard]] std::uint32_t active() const {
    return static_cast<std::uint32_t>(std::popcount(mask));
  }
};

/// A block of a trace.
struct Block {
  std::uint64_t linear_index = 0;
  std::span<const WarpEntry> warps;
  ColumnView columns;

  /// Calls `visit` with each instruction, warp after warp.
  template <typename Visit>
  void for_each(std::span<const StaticInstruction> rows, Visit visit) const {
    ColumnCounts next;
    for (std::size_t warp = 0; warp < warps.size(); ++warp) {
      for (const std::uint64_t end = next.instructions + warps[warp].instructions;
           next.instructions < end; ++next.instructions) {
        Issued one{.warp = warp,
                   .row = columns.instruction[next.instructions],
                   .mask = columns.active_mask[next.instructions]};
        const StaticInstruction& row = rows[one.row];
        if (row.is_memory()) {
          one.is_memory = true;
          one.count = columns.memory_count[next.memory];
          if (!columns.l1_passes.empty()) one.passes = columns.l1_passes[next.memory];
          ++next.memory;
          if (row.uses_caches()) {
            one.sectors = columns.sector.subspan(next.sectors, one.count);
            next.sectors += one.count;
          }
          if (row.writes_memory()) {
            one.bytes = columns.store_bytes.subspan(next.stores, one.count);
            if (!columns.atomic_lanes.empty()) {
              one.lanes = columns.atomic_lanes.subspan(next.stores, one.count);
            }
            next.stores += one.count;
          }
        }
        visit(one);
      }
    }
  }
};

/// Writes the columns of a block, warp after warp. Its memory serves the next block, too.
class BlockWriter {
 public:
  void begin_block() {
    columns_.clear();
    warps_.clear();
  }
  void begin_warp(std::uint32_t number) {
    end_warp();
    warps_.push_back({.number = number});
    begin_ = columns_.counts();
  }
  void append(const Issued& one);
  void end_block() { end_warp(); }

  [[nodiscard]] std::span<const WarpEntry> warps() const { return warps_; }
  [[nodiscard]] ColumnView columns() const { return columns_.view(); }

 private:
  void end_warp();

  ColumnBuffers columns_;
  std::vector<WarpEntry> warps_;
  ColumnCounts begin_;  ///< of the open warp
};

/// A number of things of `size` that hold `bytes`.
constexpr std::uint32_t least_of(std::uint32_t bytes, std::uint32_t size) {
  return (bytes + size - 1) / size;
}

/// Whether each active lane of the row's accesses moves `width` bytes at one address: not of bulk
/// copies and matrices.
bool is_of_lanes(const StaticInstruction& row);

/// Whether others may change or await what the row accesses.
bool is_seen_by_others(const StaticInstruction& row);

/// The fewest sectors that hold what an access to them moves.
std::uint32_t least_sectors(const StaticInstruction& row, const Issued& one);

/// Bytes of shared memory that a warp moves at once.
inline constexpr std::uint32_t bytes_of_pass = 128;

/// The fewest passes through shared memory that move the bytes of an access, at most those that it
/// takes.
std::uint16_t least_passes(const StaticInstruction& row, const Issued& one);

/// A barrier of the block at the place of a row.
StaticInstruction barrier_beside(const StaticInstruction& row);

/// A store to shared memory, at the place of a row of the caches, of what the row loads; of a
/// constant where the row loads nothing.
StaticInstruction shared_store_beside(const StaticInstruction& row);

/// The first `count` lanes of a warp, at most all.
constexpr std::uint32_t first_lanes(std::uint32_t count) {
  return count >= warp_size ? ~std::uint32_t{0} : (std::uint32_t{1} << count) - 1;
}

/// The lanes of a sector if those at one word were added up before.
AtomicLanes combined(const AtomicLanes& lanes, std::uint32_t bytes, std::uint32_t width);

}  // namespace warpstack::trace
