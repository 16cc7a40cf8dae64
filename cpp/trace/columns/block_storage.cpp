#include "trace/columns/block_storage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace warpstack::trace {
namespace {

/// Blocks share allocations, whose sizes double from the first to the last of these bounds, so that
/// a short trace is small. A larger block has its own.
constexpr std::uint64_t min_chunk_bytes = 1 << 12;
constexpr std::uint64_t max_chunk_bytes = StorageBudget::chunk_bytes;

/// Byte offsets of the columns in a packed block; the widest elements come first, so that all are
/// aligned.
struct Layout {
  std::uint64_t sector, instruction, active_mask, memory_static, store_bytes, memory_count,
      atomic_lanes, l1_passes, end;

  Layout(const ColumnCounts& counts, bool has_lanes, bool has_passes) {
    std::uint64_t next = 0;
    const auto place = [&next](std::uint64_t elements, std::uint64_t size) {
      return std::exchange(next, next + elements * size);
    };
    sector = place(counts.sectors, 8);
    instruction = place(counts.instructions, 4);
    active_mask = place(counts.instructions, 4);
    memory_static = place(counts.memory, 4);
    store_bytes = place(counts.stores, 4);
    memory_count = place(counts.memory, 2);
    atomic_lanes = place(has_lanes ? counts.stores : 0, sizeof(AtomicLanes));
    l1_passes = place(has_passes ? counts.memory : 0, 1);
    end = (next + 7) / 8 * 8;
  }
};

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// Repeats a partial read or write until all bytes are done.
template <typename Call>
void transfer_all(std::uint64_t bytes, const char* what, Call call) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t count = call(done, bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error(what);
    if (count == 0) throw std::system_error(EIO, std::generic_category(), what);
    done += static_cast<std::uint64_t>(count);
  }
}

/// Packs a column that pieces may lack, and that then is zero for each entry of `others`.
template <typename T, typename Other>
std::span<const T> pack_optional(std::span<const ColumnView> pieces,
                                 std::span<const T> ColumnView::* column,
                                 std::span<const Other> ColumnView::* others, std::byte* target) {
  const std::byte* const begin = target;
  for (const ColumnView& piece : pieces) {
    const std::size_t bytes = (piece.*others).size() * sizeof(T);
    if (bytes == 0) continue;
    if ((piece.*column).empty()) {
      std::memset(target, 0, bytes);
    } else {
      std::memcpy(target, (piece.*column).data(), bytes);
    }
    target += bytes;
  }
  return {reinterpret_cast<const T*>(begin), reinterpret_cast<const T*>(target)};
}

}  // namespace

SpillFile::SpillFile(const std::string& folder) {
  std::string path = folder + "/warpstack-XXXXXX";
  file_ = ::mkstemp(path.data());
  if (file_ < 0) throw_system_error("cannot create a temporary trace file " + path);
  ::fcntl(file_, F_SETFD, FD_CLOEXEC);
  ::unlink(path.c_str());
}

SpillFile::~SpillFile() { ::close(file_); }

std::uint64_t SpillFile::append(const void* data, std::uint64_t bytes) {
  const std::uint64_t begin = end_.fetch_add(bytes);
  transfer_all(bytes, "cannot write the temporary trace file",
               [&](std::uint64_t done, std::uint64_t rest) {
                 return ::pwrite(file_, static_cast<const char*>(data) + done, rest,
                                 static_cast<off_t>(begin + done));
               });
  return begin;
}

void SpillFile::read(std::uint64_t offset, void* target, std::uint64_t bytes) const {
  transfer_all(bytes, "cannot read the temporary trace file",
               [&](std::uint64_t done, std::uint64_t rest) {
                 return ::pread(file_, static_cast<char*>(target) + done, rest,
                                static_cast<off_t>(offset + done));
               });
}

bool StorageBudget::try_take(std::uint64_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

SpillFile& StorageBudget::spill_file() {
  const std::scoped_lock lock(mutex_);
  if (!file_) file_ = std::make_unique<SpillFile>(spill_folder_);
  return *file_;
}

StorageBudget::Chunk StorageBudget::take_chunk() {
  {
    const std::scoped_lock lock(mutex_);
    if (!spare_chunks_.empty()) {
      Chunk chunk = std::move(spare_chunks_.back());
      spare_chunks_.pop_back();
      return chunk;
    }
  }
  return std::make_unique_for_overwrite<std::byte[]>(chunk_bytes);
}

void StorageBudget::leave_chunk(Chunk chunk) {
  const std::scoped_lock lock(mutex_);
  if (spare_chunks_.size() < most_spare_chunks) spare_chunks_.push_back(std::move(chunk));
}

BlockStorage::~BlockStorage() {
  leave_chunks();
  budget_->give_back(bytes_in_memory_);
}

void BlockStorage::leave_chunks() {
  for (StorageBudget::Chunk& chunk : chunks_) budget_->leave_chunk(std::move(chunk));
  chunks_.clear();
  odd_chunks_.clear();
}

ColumnCounts BlockStorage::begin(std::size_t block, std::size_t warp) const {
  ColumnCounts sum;
  for (const WarpEntry& entry : warps(block).first(warp)) sum += entry.counts();
  return sum;
}

std::byte* BlockStorage::allocate(std::uint64_t bytes) {
  if (chunk_ == nullptr || chunk_used_ + bytes > chunk_size_) {
    chunk_size_ = std::max(std::clamp(2 * chunk_size_, min_chunk_bytes, max_chunk_bytes), bytes);
    chunk_used_ = 0;
    const bool is_usual = chunk_size_ == max_chunk_bytes;
    auto& chunks = is_usual ? chunks_ : odd_chunks_;
    chunks.push_back(is_usual ? budget_->take_chunk()
                              : std::make_unique_for_overwrite<std::byte[]>(chunk_size_));
    chunk_ = chunks.back().get();
  }
  std::byte* const place = chunk_ + chunk_used_;
  chunk_used_ += bytes;
  return place;
}

void BlockStorage::move_to_file() {
  SpillFile& file = budget_->spill_file();
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const Layout layout(counts(b), blocks_[b].has_lanes, blocks_[b].has_passes);
    blocks_[b].offset = file.append(blocks_[b].data, layout.end);
  }
  spilled_ = true;
  leave_chunks();
  budget_->give_back(std::exchange(bytes_in_memory_, 0));
}

ColumnView BlockStorage::append(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                                std::span<const ColumnView> pieces) {
  ColumnCounts counts;
  for (const WarpEntry& warp : warps) counts += warp.counts();
  const bool has_lanes = std::ranges::any_of(pieces, [](const ColumnView& piece) {
    return std::ranges::any_of(piece.atomic_lanes, &AtomicLanes::word);
  });
  const bool has_passes = std::ranges::any_of(pieces, [](const ColumnView& piece) {
    return std::ranges::any_of(piece.l1_passes, [](std::uint8_t passes) { return passes != 0; });
  });
  const Layout layout(counts, has_lanes, has_passes);
  if (!spilled_ && budget_->try_take(layout.end)) {
    bytes_in_memory_ += layout.end;
  } else if (!spilled_) {
    move_to_file();
  }
  if (spilled_) packed_.resize(layout.end);
  std::byte* const target = spilled_ ? packed_.data() : allocate(layout.end);
  const auto pack = [&]<typename T>(std::uint64_t offset, std::span<const T> ColumnView::* column) {
    std::byte* next = target + offset;
    for (const ColumnView& piece : pieces) {
      const std::span<const T> part = piece.*column;
      if (!part.empty()) std::memcpy(next, part.data(), part.size_bytes());
      next += part.size_bytes();
    }
    const auto* const begin = reinterpret_cast<const T*>(target + offset);
    return std::span(begin, reinterpret_cast<const T*>(next));
  };
  ColumnView stored;
  stored.sector = pack(layout.sector, &ColumnView::sector);
  stored.instruction = pack(layout.instruction, &ColumnView::instruction);
  stored.active_mask = pack(layout.active_mask, &ColumnView::active_mask);
  stored.memory_static = pack(layout.memory_static, &ColumnView::memory_static);
  stored.store_bytes = pack(layout.store_bytes, &ColumnView::store_bytes);
  stored.memory_count = pack(layout.memory_count, &ColumnView::memory_count);
  if (has_lanes) {
    stored.atomic_lanes = pack_optional(pieces, &ColumnView::atomic_lanes, &ColumnView::store_bytes,
                                        target + layout.atomic_lanes);
  }
  if (has_passes) {
    stored.l1_passes = pack_optional(pieces, &ColumnView::l1_passes, &ColumnView::memory_static,
                                     target + layout.l1_passes);
    has_passes_ = true;
  }

  BlockEntry block{linear_index, warps_.size(), has_lanes, has_passes, {target}};
  if (spilled_) block.offset = budget_->spill_file().append(target, layout.end);
  bytes_ += layout.end;
  blocks_.push_back(block);
  warps_.insert(warps_.end(), warps.begin(), warps.end());
  return stored;
}

ColumnView BlockStorage::read(std::size_t block, const ColumnCounts& first,
                              const ColumnCounts& last, std::vector<std::byte>& scratch) const {
  const bool has_lanes = blocks_[block].has_lanes;
  const bool has_passes = blocks_[block].has_passes;
  const Layout layout(counts(block), has_lanes, has_passes);
  struct Range {
    std::uint64_t offset, bytes;
    const std::byte* data;
  };
  const auto range = [](std::uint64_t column, std::uint64_t size, std::uint64_t from,
                        std::uint64_t to) {
    return Range{column + from * size, (to - from) * size, nullptr};
  };
  std::array<Range, 8> ranges{
      range(layout.sector, 8, first.sectors, last.sectors),
      range(layout.instruction, 4, first.instructions, last.instructions),
      range(layout.active_mask, 4, first.instructions, last.instructions),
      range(layout.memory_static, 4, first.memory, last.memory),
      range(layout.store_bytes, 4, first.stores, last.stores),
      range(layout.memory_count, 2, first.memory, last.memory),
      range(layout.atomic_lanes, has_lanes ? sizeof(AtomicLanes) : 0, first.stores, last.stores),
      range(layout.l1_passes, has_passes ? 1 : 0, first.memory, last.memory),
  };
  if (!spilled_) {
    for (Range& r : ranges) r.data = blocks_[block].data + r.offset;
  } else {
    const SpillFile& file = budget_->spill_file();
    std::uint64_t total = 0;
    for (const Range& r : ranges) total += r.bytes;
    scratch.resize(total);
    std::byte* target = scratch.data();
    for (Range& r : ranges) {
      if (r.bytes > 0) file.read(blocks_[block].offset + r.offset, target, r.bytes);
      r.data = target;
      target += r.bytes;
    }
  }
  const auto as = []<typename T>(const Range& r, T) {
    return std::span<const T>(reinterpret_cast<const T*>(r.data), r.bytes / sizeof(T));
  };
  return {as(ranges[1], std::uint32_t{}), as(ranges[2], std::uint32_t{}),
          as(ranges[3], std::uint32_t{}), as(ranges[5], std::uint16_t{}),
          as(ranges[0], std::uint64_t{}), as(ranges[4], std::uint32_t{}),
          as(ranges[6], AtomicLanes{}),   as(ranges[7], std::uint8_t{})};
}

}  // namespace warpstack::trace
