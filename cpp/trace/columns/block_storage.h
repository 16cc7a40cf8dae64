#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trace/columns/block_classes.h"
#include "trace/columns/block_columns.h"
#include "trace/columns/storage_budget.h"

namespace warpstack::trace {

/// Append-only store of the thread blocks of a kernel with random access. Blocks whose columns are
/// equal, but for a shift of the sectors of each row, are of one class, whose columns are stored
/// once: those of its first block. Reading is safe from several threads. The table of blocks, 24
/// bytes each, and that of classes, 72 bytes each and 20 per warp, stay in memory.
class BlockStorage {
 public:
  explicit BlockStorage(std::shared_ptr<StorageBudget> budget) : budget_(std::move(budget)) {}
  ~BlockStorage();
  BlockStorage(const BlockStorage&) = delete;
  BlockStorage& operator=(const BlockStorage&) = delete;

  /// Stores the columns of a block, whose entries come warp after warp, in any number of pieces.
  /// `has_sectors` says by row whether its memory instructions have sectors; without it, and once
  /// sealed, the block becomes a class of its own. Returns the columns, packed, valid until the
  /// next call.
  ColumnView append(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                    std::span<const ColumnView> pieces,
                    std::span<const std::uint8_t> has_sectors = {});
  /// Stores a block of class `number` by its shifts, one per row with sectors in the order in which
  /// the class touches them, or none at all. Returns its columns like `append`, or nothing if the
  /// number of shifts is another.
  std::optional<ColumnView> append_like(std::uint64_t linear_index, std::uint32_t number,
                                        std::span<const std::int32_t> shifts,
                                        std::span<const std::uint8_t> has_sectors);
  /// Frees what only appending needs.
  void seal();

  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  /// The index x + grid.x * (y + grid.y * z) of a block.
  [[nodiscard]] std::uint64_t linear_index(std::size_t block) const {
    return blocks_[block].linear_index;
  }
  /// The warps of a block in trace order.
  [[nodiscard]] std::span<const WarpEntry> warps(std::size_t block) const {
    const ClassEntry& own = classes_[blocks_[block].of_class];
    return std::span(warps_).subspan(own.first_warp, own.num_warps);
  }
  [[nodiscard]] std::uint64_t num_warps() const { return num_warps_; }
  /// First entry of a warp within its block, or, one past the last warp, the block's totals.
  [[nodiscard]] ColumnCounts begin(std::size_t block, std::size_t warp) const;
  [[nodiscard]] const ColumnCounts& counts(std::size_t block) const {
    return classes_[blocks_[block].of_class].counts;
  }
  /// How many blocks are distinct. Classes are numbered in the order of their first blocks.
  [[nodiscard]] std::size_t num_classes() const { return classes_.size(); }
  [[nodiscard]] std::uint32_t class_of(std::size_t block) const { return blocks_[block].of_class; }
  /// The block whose columns are those of class `number`.
  [[nodiscard]] std::size_t first_of_class(std::uint32_t number) const {
    return classes_[number].first_block;
  }
  /// Whether the columns of the class are those of this block.
  [[nodiscard]] bool is_first_of_class(std::size_t block) const {
    return classes_[blocks_[block].of_class].first_block == block;
  }
  /// How far the sectors of each row lie from those of the class; empty: nowhere else. The span
  /// points into the store or into `scratch`.
  [[nodiscard]] std::span<const std::int32_t> shifts(std::size_t block,
                                                     std::vector<std::byte>& scratch) const;
  [[nodiscard]] bool spilled() const { return spilled_; }
  /// Whether reading copies sectors of the block into `scratch`, so that it is better read in
  /// parts.
  [[nodiscard]] bool copies_sectors(std::size_t block) const {
    return spilled_ || blocks_[block].is_moved != 0;
  }
  /// Whether an access takes other passes over the banks of L1 than its sectors imply.
  [[nodiscard]] bool has_passes() const { return has_passes_; }
  /// Bytes of all columns of all blocks.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Bytes that are stored for them, wherever.
  [[nodiscard]] std::uint64_t stored_bytes() const { return stored_bytes_; }
  /// Bytes that are stored for the block: of its class if it is the first.
  [[nodiscard]] std::uint64_t stored_bytes(std::size_t block) const;

  /// Columns `first` to `last` (per column) of a block. Spans point into the store, or into
  /// `scratch` when the block lives in the file; so do sectors if they are not where the class has
  /// them. Columns with an empty range cost nothing.
  [[nodiscard]] ColumnView read(std::size_t block, const ColumnCounts& first,
                                const ColumnCounts& last, std::vector<std::byte>& scratch) const;

 private:
  /// Where bytes are: an address in memory, or an offset in the file.
  union Place {
    const std::byte* data;
    std::uint64_t offset;
  };
  struct BlockEntry {
    std::uint64_t linear_index;
    std::uint32_t of_class;
    std::uint32_t is_moved;  ///< whether it has shifts
    Place shifts;
  };
  struct ClassEntry {
    ColumnCounts counts;
    std::uint64_t first_warp : 62;
    std::uint64_t has_lanes : 1;   ///< of atomics
    std::uint64_t has_passes : 1;  ///< of L1, other than implied
    std::uint32_t num_warps;
    std::uint32_t first_block;
    Place columns;  ///< packed
    /// The number of the row of each sector, 16 bits each; once a block of the class has shifts.
    Place rows;
    std::uint32_t num_rows;  ///< 0: `rows` is not there
  };

  ColumnView pack(std::span<const ColumnView> pieces, const ColumnCounts& counts, bool has_lanes,
                  bool has_passes, std::byte* target);
  std::optional<std::uint32_t> find_class(std::span<const WarpEntry> warps,
                                          const ColumnView& columns,
                                          std::span<const std::uint8_t> has_sectors,
                                          std::optional<std::uint64_t>& hash);
  ColumnView columns_of_class(std::uint32_t number);
  [[nodiscard]] std::uint64_t packed_bytes(const ClassEntry& entry) const;
  void number_rows(std::uint32_t number, std::span<const std::uint8_t> has_sectors);
  void add_block(std::uint64_t linear_index, std::uint32_t number,
                 std::span<const std::int32_t> shifts, std::span<const std::uint8_t> has_sectors);
  std::uint64_t place_warps(std::span<const WarpEntry> warps);

  std::byte* reserve(std::uint64_t bytes);
  Place put(const void* data, std::uint64_t bytes);
  std::byte* allocate(std::uint64_t bytes);
  void leave_chunks();
  void move_to_file();

  std::shared_ptr<StorageBudget> budget_;
  std::vector<BlockEntry> blocks_;
  std::vector<ClassEntry> classes_;
  std::vector<WarpEntry> warps_;                  ///< of the classes
  std::vector<StorageBudget::Chunk> chunks_;      ///< each holds many blocks
  std::vector<StorageBudget::Chunk> odd_chunks_;  ///< of unusual sizes
  std::byte* chunk_ = nullptr;                    ///< for the next block
  std::uint64_t chunk_used_ = 0;
  std::uint64_t chunk_size_ = 0;
  std::uint64_t num_warps_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t bytes_in_memory_ = 0;
  bool spilled_ = false;
  bool has_passes_ = false;

  // While blocks are appended:
  ClassFinder finder_;
  std::vector<std::byte> packed_;  ///< the last block
  std::vector<std::byte> known_;   ///< a class of the file
  std::optional<std::uint32_t> known_class_;
  std::vector<std::int32_t> shifts_;
  std::vector<std::uint64_t> firsts_;  ///< of hash_of()
};

}  // namespace warpstack::trace
