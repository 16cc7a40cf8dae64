#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
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

/// An unnamed temporary file that grows at its end. Its space is freed with the object, however the
/// process ends. Safe to use from several threads.
class SpillFile {
 public:
  /// Throws std::system_error when `folder` cannot hold a file.
  explicit SpillFile(const std::string& folder);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Appends bytes and returns where they begin.
  std::uint64_t append(const void* data, std::uint64_t bytes);
  void read(std::uint64_t offset, void* target, std::uint64_t bytes) const;

 private:
  int file_ = -1;
  std::atomic<std::uint64_t> end_{0};
};

/// Storage for the columns of an application's kernels: memory until `limit` bytes are used, then
/// one temporary file in `spill_folder`. Safe to use from several threads.
class StorageBudget {
 public:
  StorageBudget(std::uint64_t limit, std::string spill_folder)
      : limit_(limit), spill_folder_(std::move(spill_folder)) {
    spare_chunks_.reserve(most_spare_chunks);
  }

  /// The most bytes of the columns of one thread block, which is wholly in memory while it is
  /// built. Blocks of ordinary size fit however small the budget is.
  [[nodiscard]] std::uint64_t block_limit() const { return std::max(limit_, least_block_limit); }

  /// Takes `bytes` from the budget unless that would exceed it.
  bool try_take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { used_ -= bytes; }
  /// The file, made at the first call.
  SpillFile& spill_file();

  /// Columns in memory lie in chunks of this size, smaller ones at first.
  static constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 20;
  using Chunk = std::unique_ptr<std::byte[]>;
  /// A chunk of `chunk_bytes` with arbitrary contents, reused if possible: the first touch of new
  /// pages takes longer than filling them.
  Chunk take_chunk();
  /// Keeps a few chunks for later kernels.
  void leave_chunk(Chunk chunk);

 private:
  static constexpr std::uint64_t least_block_limit = std::uint64_t{64} << 20;
  static constexpr std::size_t most_spare_chunks = 32;

  std::uint64_t limit_;
  std::string spill_folder_;
  std::atomic<std::uint64_t> used_{0};
  std::mutex mutex_;
  std::unique_ptr<SpillFile> file_;
  std::vector<Chunk> spare_chunks_;
};

/// A warp of a stored block: its number in the block and its entries in each column.
struct WarpEntry {
  std::uint32_t number = 0;
  std::uint32_t instructions = 0;
  std::uint32_t memory = 0;
  std::uint32_t sectors = 0;
  std::uint32_t stores = 0;

  [[nodiscard]] ColumnCounts counts() const { return {instructions, memory, sectors, stores}; }
};

/// Append-only store of the thread blocks of a kernel with random access. Reading is safe from
/// several threads. The table of blocks and warps, 24 and 20 bytes each, stays in memory.
class BlockStorage {
 public:
  explicit BlockStorage(std::shared_ptr<StorageBudget> budget) : budget_(std::move(budget)) {}
  ~BlockStorage();
  BlockStorage(const BlockStorage&) = delete;
  BlockStorage& operator=(const BlockStorage&) = delete;

  /// Packs and stores the columns of a block, whose entries come warp after warp, in any number of
  /// pieces. Returns the stored columns, valid until the next call.
  ColumnView append(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                    std::span<const ColumnView> pieces);

  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  /// The index x + grid.x * (y + grid.y * z) of a block.
  [[nodiscard]] std::uint64_t linear_index(std::size_t block) const {
    return blocks_[block].linear_index;
  }
  /// The warps of a block in trace order.
  [[nodiscard]] std::span<const WarpEntry> warps(std::size_t block) const {
    const std::uint64_t last =
        block + 1 < blocks_.size() ? blocks_[block + 1].first_warp : warps_.size();
    return std::span(warps_).subspan(blocks_[block].first_warp, last - blocks_[block].first_warp);
  }
  [[nodiscard]] std::uint64_t num_warps() const { return warps_.size(); }
  /// First entry of a warp within its block, or, one past the last warp, the block's totals.
  [[nodiscard]] ColumnCounts begin(std::size_t block, std::size_t warp) const;
  [[nodiscard]] ColumnCounts counts(std::size_t block) const {
    return begin(block, warps(block).size());
  }
  [[nodiscard]] bool spilled() const { return spilled_; }
  /// Whether an access takes other passes over the banks of L1 than its sectors imply.
  [[nodiscard]] bool has_passes() const { return has_passes_; }
  /// Bytes of all columns.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Columns `first` to `last` (per column) of a block. Spans point into the store, or into
  /// `scratch` when the block lives in the file. Columns with an empty range cost nothing.
  [[nodiscard]] ColumnView read(std::size_t block, const ColumnCounts& first,
                                const ColumnCounts& last, std::vector<std::byte>& scratch) const;

 private:
  struct BlockEntry {
    std::uint64_t linear_index;
    std::uint64_t first_warp : 62;
    std::uint64_t has_lanes : 1;   ///< of atomics
    std::uint64_t has_passes : 1;  ///< of L1, other than implied
    /// The packed columns: an address in memory, or an offset in the file.
    union {
      const std::byte* data;
      std::uint64_t offset;
    };
  };

  std::byte* allocate(std::uint64_t bytes);
  void leave_chunks();
  void move_to_file();

  std::shared_ptr<StorageBudget> budget_;
  std::vector<BlockEntry> blocks_;
  std::vector<WarpEntry> warps_;
  std::vector<StorageBudget::Chunk> chunks_;      ///< each holds many blocks
  std::vector<StorageBudget::Chunk> odd_chunks_;  ///< of unusual sizes
  std::byte* chunk_ = nullptr;                    ///< for the next block
  std::uint64_t chunk_used_ = 0;
  std::uint64_t chunk_size_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_in_memory_ = 0;
  bool spilled_ = false;
  bool has_passes_ = false;
  std::vector<std::byte> packed_;  ///< the last block on its way into the file
};

}  // namespace warpstack::trace
