#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace warpstack {

/// How many entries of each dynamic column a warp or a block has.
struct ColumnCounts {
  std::uint64_t instructions = 0;  ///< issued warp instructions
  std::uint64_t memory = 0;        ///< of these, instructions with an address operand
  std::uint64_t sectors = 0;       ///< touched sectors of accesses that go through the caches
  std::uint64_t stores = 0;        ///< of these, sectors that are written

  ColumnCounts& operator+=(const ColumnCounts& other) {
    instructions += other.instructions;
    memory += other.memory;
    sectors += other.sectors;
    stores += other.stores;
    return *this;
  }
  bool operator==(const ColumnCounts&) const = default;
};

/// The dynamic columns of one or several consecutive warps. An instruction costs 8 bytes; each
/// memory instruction 6 more, each sector 8, each written sector 4 more.
struct ColumnView {
  std::span<const std::uint32_t> instruction;    ///< row of the static instruction table
  std::span<const std::uint32_t> active_mask;    ///< active lanes that pass the guard predicate
  std::span<const std::uint32_t> memory_static;  ///< row of each memory instruction, in order
  /// Per memory instruction: touched sectors, or shared-memory wavefronts. 0: no active lane.
  std::span<const std::uint16_t> memory_count;
  std::span<const std::uint64_t> sector;       ///< address / 32, in order of first touch
  std::span<const std::uint32_t> store_bytes;  ///< byte mask of each written sector
};

/// The same columns while they grow.
struct ColumnBuffers {
  std::vector<std::uint32_t> instruction;
  std::vector<std::uint32_t> active_mask;
  std::vector<std::uint32_t> memory_static;
  std::vector<std::uint16_t> memory_count;
  std::vector<std::uint64_t> sector;
  std::vector<std::uint32_t> store_bytes;

  [[nodiscard]] ColumnCounts counts() const {
    return {instruction.size(), memory_static.size(), sector.size(), store_bytes.size()};
  }
  [[nodiscard]] ColumnView view() const {
    return {instruction, active_mask, memory_static, memory_count, sector, store_bytes};
  }
  void clear() {
    instruction.clear();
    active_mask.clear();
    memory_static.clear();
    memory_count.clear();
    sector.clear();
    store_bytes.clear();
  }
};

/// Where trace columns live: in memory until `limit` bytes are used, then in an unnamed temporary
/// file in `spill_folder`. One budget may serve all kernels of an application.
class StorageBudget {
 public:
  StorageBudget(std::uint64_t limit, std::string spill_folder)
      : limit_(limit), spill_folder_(std::move(spill_folder)) {}

  /// Takes `bytes` from the budget unless that would exceed it.
  bool try_take(std::uint64_t bytes) {
    std::uint64_t used = used_.load();
    do {
      if (bytes > limit_ || used > limit_ - bytes) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void give_back(std::uint64_t bytes) { used_ -= bytes; }
  [[nodiscard]] const std::string& spill_folder() const { return spill_folder_; }

 private:
  std::uint64_t limit_;
  std::string spill_folder_;
  std::atomic<std::uint64_t> used_{0};
};

/// Packed columns of one thread block, in memory or at an offset of the spill file.
struct BlockRecord {
  std::uint64_t linear_index = 0;    ///< x + grid.x * (y + grid.y * z)
  std::vector<std::uint32_t> warps;  ///< warp number in the block, in trace order
  std::vector<ColumnCounts> begin;   ///< first entry of each warp, and one past the last
  std::unique_ptr<std::byte[]> data;
  std::uint64_t file_offset = 0;

  [[nodiscard]] const ColumnCounts& counts() const { return begin.back(); }
};

/// Append-only store of block records with random access. Reading is safe from several threads.
class BlockStorage {
 public:
  explicit BlockStorage(std::shared_ptr<StorageBudget> budget);
  ~BlockStorage();
  BlockStorage(const BlockStorage&) = delete;
  BlockStorage& operator=(const BlockStorage&) = delete;

  /// Packs and stores `columns`. `record` brings its index, warps and begins.
  void append(BlockRecord record, const ColumnView& columns);

  [[nodiscard]] std::size_t size() const { return records_.size(); }
  [[nodiscard]] const BlockRecord& record(std::size_t index) const { return records_[index]; }
  [[nodiscard]] bool spilled() const { return file_ >= 0; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Columns `first` to `last` (per column) of a block. Spans point into the store, or into
  /// `scratch` when the block lives in the spill file. Columns with an empty range cost nothing.
  [[nodiscard]] ColumnView read(std::size_t block, const ColumnCounts& first,
                                const ColumnCounts& last, std::vector<std::byte>& scratch) const;

 private:
  void spill(BlockRecord& record, std::uint64_t bytes);
  void open_file();

  std::shared_ptr<StorageBudget> budget_;
  std::vector<BlockRecord> records_;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_in_memory_ = 0;
  std::uint64_t file_end_ = 0;
  int file_ = -1;
};

}  // namespace warpstack
