#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/columns/atomic_lanes.h"

namespace warpstack::trace {

/// The number of entries of a warp or a block in each dynamic column.
struct ColumnCounts {
  std::uint64_t instructions = 0;  ///< issued warp instructions
  std::uint64_t memory = 0;        ///< those with an address operand
  std::uint64_t sectors = 0;       ///< touched sectors of accesses that go through the caches
  std::uint64_t stores = 0;        ///< those that are written

  ColumnCounts& operator+=(const ColumnCounts& other) {
    instructions += other.instructions;
    memory += other.memory;
    sectors += other.sectors;
    stores += other.stores;
    return *this;
  }
  bool operator==(const ColumnCounts&) const = default;
};

/// Bytes that the entries take.
constexpr std::uint64_t bytes_of(const ColumnCounts& counts) {
  return 8 * counts.instructions + 6 * counts.memory + 8 * counts.sectors + 4 * counts.stores;
}

/// The dynamic columns of one or several consecutive warps. An instruction costs 8 bytes; each
/// memory instruction 6 more, and 1 in blocks with passes of L1 other than implied; each sector 8,
/// each written sector 4 more, and 2 in blocks with atomics.
struct ColumnView {
  std::span<const std::uint32_t> instruction;    ///< row of the static instruction table
  std::span<const std::uint32_t> active_mask;    ///< active lanes that pass the guard predicate
  std::span<const std::uint32_t> memory_static;  ///< row of each memory instruction, in order
  /// Per memory instruction: touched sectors, or shared-memory wavefronts; 0: no active lane.
  std::span<const std::uint16_t> memory_count;
  std::span<const std::uint64_t> sector;       ///< address / 32, in order of first touch
  std::span<const std::uint32_t> store_bytes;  ///< byte mask of each written sector
  /// The lanes of each written sector, none for stores; empty if no atomic was executed.
  std::span<const AtomicLanes> atomic_lanes;
  /// Per memory instruction: passes over the banks of L1, 0: as its sectors imply; empty if all
  /// are.
  std::span<const std::uint8_t> l1_passes;
};

/// The same columns under construction.
struct ColumnBuffers {
  std::vector<std::uint32_t> instruction;
  std::vector<std::uint32_t> active_mask;
  std::vector<std::uint32_t> memory_static;
  std::vector<std::uint16_t> memory_count;
  std::vector<std::uint64_t> sector;
  std::vector<std::uint32_t> store_bytes;
  std::vector<AtomicLanes> atomic_lanes;  ///< empty, or as long as store_bytes
  std::vector<std::uint8_t> l1_passes;    ///< empty, or as long as memory_static

  [[nodiscard]] ColumnCounts counts() const {
    return {instruction.size(), memory_static.size(), sector.size(), store_bytes.size()};
  }
  [[nodiscard]] ColumnView view() const {
    return {instruction, active_mask, memory_static, memory_count,
            sector,      store_bytes, atomic_lanes,  l1_passes};
  }
  /// Entries `first` to `last` (per column).
  [[nodiscard]] ColumnView view(const ColumnCounts& first, const ColumnCounts& last) const {
    const auto part = [](const auto& column, std::uint64_t from, std::uint64_t to) {
      return std::span(column).subspan(from, to - from);
    };
    return {part(instruction, first.instructions, last.instructions),
            part(active_mask, first.instructions, last.instructions),
            part(memory_static, first.memory, last.memory),
            part(memory_count, first.memory, last.memory),
            part(sector, first.sectors, last.sectors),
            part(store_bytes, first.stores, last.stores),
            atomic_lanes.empty() ? std::span<const AtomicLanes>()
                                 : part(atomic_lanes, first.stores, last.stores),
            l1_passes.empty() ? std::span<const std::uint8_t>()
                              : part(l1_passes, first.memory, last.memory)};
  }
  /// Makes the lanes as long as the stores, if there are any.
  void fill_lanes() {
    if (!atomic_lanes.empty()) atomic_lanes.resize(store_bytes.size());
  }
  /// Makes the passes as long as the memory instructions, if there are any.
  void fill_passes() {
    if (!l1_passes.empty()) l1_passes.resize(memory_static.size());
  }
  void append(const ColumnView& columns) {
    const auto extend = [](auto& target, const auto& source) {
      target.insert(target.end(), source.begin(), source.end());
    };
    extend(instruction, columns.instruction);
    extend(active_mask, columns.active_mask);
    if (!columns.l1_passes.empty()) {
      l1_passes.resize(memory_static.size());
      extend(l1_passes, columns.l1_passes);
    }
    extend(memory_static, columns.memory_static);
    extend(memory_count, columns.memory_count);
    extend(sector, columns.sector);
    if (!columns.atomic_lanes.empty()) {
      atomic_lanes.resize(store_bytes.size());
      extend(atomic_lanes, columns.atomic_lanes);
    }
    extend(store_bytes, columns.store_bytes);
    fill_lanes();
    fill_passes();
  }
  void clear() {
    instruction.clear();
    active_mask.clear();
    memory_static.clear();
    memory_count.clear();
    sector.clear();
    store_bytes.clear();
    atomic_lanes.clear();
    l1_passes.clear();
  }
};

/// A warp of a stored block: its number in the block and its entries in each column.
struct WarpEntry {
  std::uint32_t number = 0;
  std::uint32_t instructions = 0;
  std::uint32_t memory = 0;
  std::uint32_t sectors = 0;
  std::uint32_t stores = 0;

  [[nodiscard]] ColumnCounts counts() const { return {instructions, memory, sectors, stores}; }
  bool operator==(const WarpEntry&) const = default;
};

}  // namespace warpstack::trace
