#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace warpstack::trace {

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

}  // namespace warpstack::trace
