#include "trace/columns/block_storage.h"

#include <algorithm>
#include <array>
#include <cstring>
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

/// Classes of one hash that a block is compared with, at most. It then is a class of its own.
constexpr std::size_t most_compared = 16;

/// Rounded up, so that what follows is aligned.
constexpr std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

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

/// The columns of a packed block.
ColumnView view_of(const std::byte* packed, const ColumnCounts& counts, bool has_lanes,
                   bool has_passes) {
  const Layout layout(counts, has_lanes, has_passes);
  const auto column = [packed]<typename T>(std::uint64_t offset, std::uint64_t size, T) {
    return std::span<const T>(reinterpret_cast<const T*>(packed + offset), size);
  };
  return {column(layout.instruction, counts.instructions, std::uint32_t{}),
          column(layout.active_mask, counts.instructions, std::uint32_t{}),
          column(layout.memory_static, counts.memory, std::uint32_t{}),
          column(layout.memory_count, counts.memory, std::uint16_t{}),
          column(layout.sector, counts.sectors, std::uint64_t{}),
          column(layout.store_bytes, counts.stores, std::uint32_t{}),
          column(layout.atomic_lanes, has_lanes ? counts.stores : 0, AtomicLanes{}),
          column(layout.l1_passes, has_passes ? counts.memory : 0, std::uint8_t{})};
}

/// Adds its row's shift to each sector; `source` may be `target`.
void move_sectors(const std::byte* source, const std::byte* rows, const std::byte* shifts,
                  std::size_t count, std::byte* target) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(source);
  const auto* const row = reinterpret_cast<const std::uint16_t*>(rows);
  const auto* const shift = reinterpret_cast<const std::int32_t*>(shifts);
  auto* const to = reinterpret_cast<std::uint64_t*>(target);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = from[i] + static_cast<std::uint64_t>(std::int64_t{shift[row[i]]});
  }
}

}  // namespace

BlockStorage::~BlockStorage() {
  leave_chunks();
  budget_->give_back(bytes_in_memory_);
}

void BlockStorage::leave_chunks() {
  for (StorageBudget::Chunk& chunk : chunks_) budget_->leave_chunk(std::move(chunk));
  chunks_.clear();
  odd_chunks_.clear();
}

void BlockStorage::seal() {
  finder_.stop();
  packed_ = {};
  known_ = {};
  known_class_.reset();
  firsts_ = {};
}

ColumnCounts BlockStorage::begin(std::size_t block, std::size_t warp) const {
  if (warp == warps(block).size()) return counts(block);
  ColumnCounts sum;
  for (const WarpEntry& entry : warps(block).first(warp)) sum += entry.counts();
  return sum;
}

std::uint64_t BlockStorage::packed_bytes(const ClassEntry& entry) const {
  return Layout(entry.counts, entry.has_lanes, entry.has_passes).end;
}

std::uint64_t BlockStorage::stored_bytes(std::size_t block) const {
  const ClassEntry& own = classes_[blocks_[block].of_class];
  if (is_first_of_class(block)) return packed_bytes(own);
  return sizeof(BlockEntry) + (blocks_[block].is_moved != 0 ? 4 * std::uint64_t{own.num_rows} : 0);
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

/// Room in memory for bytes, a multiple of eight; null if they belong into the file.
std::byte* BlockStorage::reserve(std::uint64_t bytes) {
  if (!spilled_ && !budget_->try_take(bytes)) move_to_file();
  stored_bytes_ += bytes;
  if (spilled_) return nullptr;
  bytes_in_memory_ += bytes;
  return allocate(bytes);
}

BlockStorage::Place BlockStorage::put(const void* data, std::uint64_t bytes) {
  std::byte* const target = reserve(aligned(bytes));
  if (target == nullptr) return {.offset = budget_->spill_file().append(data, bytes)};
  if (bytes > 0) std::memcpy(target, data, bytes);
  return {.data = target};
}

void BlockStorage::move_to_file() {
  SpillFile& file = budget_->spill_file();
  const auto move = [&file](Place& place, std::uint64_t bytes) {
    place.offset = file.append(place.data, bytes);
  };
  for (ClassEntry& entry : classes_) {
    move(entry.columns, packed_bytes(entry));
    if (entry.num_rows > 0) move(entry.rows, 2 * entry.counts.sectors);
  }
  for (BlockEntry& block : blocks_) {
    if (block.is_moved != 0) {
      move(block.shifts, 4 * std::uint64_t{classes_[block.of_class].num_rows});
    }
  }
  spilled_ = true;
  leave_chunks();
  budget_->give_back(std::exchange(bytes_in_memory_, 0));
}

ColumnView BlockStorage::pack(std::span<const ColumnView> pieces, const ColumnCounts& counts,
                              bool has_lanes, bool has_passes, std::byte* target) {
  const Layout layout(counts, has_lanes, has_passes);
  const auto column = [&]<typename T>(std::uint64_t offset, std::span<const T> ColumnView::* from) {
    std::byte* next = target + offset;
    for (const ColumnView& piece : pieces) {
      const std::span<const T> part = piece.*from;
      if (!part.empty()) std::memcpy(next, part.data(), part.size_bytes());
      next += part.size_bytes();
    }
    const auto* const begin = reinterpret_cast<const T*>(target + offset);
    return std::span(begin, reinterpret_cast<const T*>(next));
  };
  ColumnView stored;
  stored.sector = column(layout.sector, &ColumnView::sector);
  stored.instruction = column(layout.instruction, &ColumnView::instruction);
  stored.active_mask = column(layout.active_mask, &ColumnView::active_mask);
  stored.memory_static = column(layout.memory_static, &ColumnView::memory_static);
  stored.store_bytes = column(layout.store_bytes, &ColumnView::store_bytes);
  stored.memory_count = column(layout.memory_count, &ColumnView::memory_count);
  if (has_lanes) {
    stored.atomic_lanes = pack_optional(pieces, &ColumnView::atomic_lanes, &ColumnView::store_bytes,
                                        target + layout.atomic_lanes);
  }
  if (has_passes) {
    stored.l1_passes = pack_optional(pieces, &ColumnView::l1_passes, &ColumnView::memory_static,
                                     target + layout.l1_passes);
  }
  return stored;
}

std::uint64_t BlockStorage::place_warps(std::span<const WarpEntry> warps) {
  // Distinct blocks often differ in their sectors alone.
  if (!classes_.empty()) {
    const ClassEntry& last = classes_.back();
    if (std::ranges::equal(warps, std::span(warps_).subspan(last.first_warp, last.num_warps))) {
      return last.first_warp;
    }
  }
  warps_.insert(warps_.end(), warps.begin(), warps.end());
  return warps_.size() - warps.size();
}

/// The columns of a class, valid until the next call.
ColumnView BlockStorage::columns_of_class(std::uint32_t number) {
  const ClassEntry& entry = classes_[number];
  if (!spilled_)
    return view_of(entry.columns.data, entry.counts, entry.has_lanes, entry.has_passes);
  if (known_class_ != number) {
    known_class_.reset();
    known_.resize(packed_bytes(entry));
    budget_->spill_file().read(entry.columns.offset, known_.data(), known_.size());
    known_class_ = number;
  }
  return view_of(known_.data(), entry.counts, entry.has_lanes, entry.has_passes);
}

std::optional<std::uint32_t> BlockStorage::find_class(std::span<const WarpEntry> warps,
                                                      const ColumnView& columns,
                                                      std::span<const std::uint8_t> has_sectors,
                                                      std::optional<std::uint64_t>& hash) {
  std::size_t compared = 0;
  const auto is_same = [&](std::uint32_t number) {
    const ClassEntry& entry = classes_[number];
    return compared++ < most_compared &&
           std::ranges::equal(warps,
                              std::span(warps_).subspan(entry.first_warp, entry.num_warps)) &&
           find_shifts(columns_of_class(number), columns, has_sectors, shifts_);
  };
  // Neighbours are often of one class, and comparing is faster than a hash.
  if (finder_.last() && is_same(*finder_.last())) return finder_.last();
  hash = hash_of(warps, columns, has_sectors, firsts_);
  if (!hash) return std::nullopt;
  return finder_.find(*hash, is_same);
}

void BlockStorage::number_rows(std::uint32_t number, std::span<const std::uint8_t> has_sectors) {
  if (classes_[number].num_rows > 0) return;
  std::vector<std::uint16_t> of_sectors(classes_[number].counts.sectors);
  SectorRows rows(has_sectors);
  rows.for_each_access(columns_of_class(number),
                       [&](std::uint32_t row, std::size_t begin, std::size_t end) {
                         std::fill(of_sectors.begin() + static_cast<std::ptrdiff_t>(begin),
                                   of_sectors.begin() + static_cast<std::ptrdiff_t>(end),
                                   static_cast<std::uint16_t>(row));
                         return true;
                       });
  const Place place = put(of_sectors.data(), 2 * of_sectors.size());
  classes_[number].rows = place;
  classes_[number].num_rows = rows.count();
}

void BlockStorage::add_block(std::uint64_t linear_index, std::uint32_t number,
                             std::span<const std::int32_t> shifts,
                             std::span<const std::uint8_t> has_sectors) {
  BlockEntry block{linear_index, number, 0, {.data = nullptr}};
  if (std::ranges::any_of(shifts, [](std::int32_t shift) { return shift != 0; })) {
    number_rows(number, has_sectors);
    block.shifts = put(shifts.data(), shifts.size_bytes());
    block.is_moved = 1;
  }
  const ClassEntry& own = classes_[number];
  num_warps_ += own.num_warps;
  bytes_ += packed_bytes(own);
  blocks_.push_back(block);
}

ColumnView BlockStorage::append(std::uint64_t linear_index, std::span<const WarpEntry> warps,
                                std::span<const ColumnView> pieces,
                                std::span<const std::uint8_t> has_sectors) {
  ColumnCounts counts;
  for (const WarpEntry& warp : warps) counts += warp.counts();
  const bool has_lanes = std::ranges::any_of(pieces, [](const ColumnView& piece) {
    return std::ranges::any_of(piece.atomic_lanes, &AtomicLanes::word);
  });
  const bool has_passes = std::ranges::any_of(pieces, [](const ColumnView& piece) {
    return std::ranges::any_of(piece.l1_passes, [](std::uint8_t passes) { return passes != 0; });
  });
  if (has_passes) has_passes_ = true;
  const std::uint64_t bytes = Layout(counts, has_lanes, has_passes).end;
  ColumnView stored;
  std::optional<std::uint64_t> hash;
  Place place{.data = nullptr};
  if (finder_.looks() && !has_sectors.empty()) {
    packed_.resize(bytes);
    stored = pack(pieces, counts, has_lanes, has_passes, packed_.data());
    if (const auto found = find_class(warps, stored, has_sectors, hash)) {
      finder_.note_found(*found);
      add_block(linear_index, *found, shifts_, has_sectors);
      return stored;
    }
    place = put(packed_.data(), bytes);
  } else if (std::byte* const target = reserve(bytes)) {
    stored = pack(pieces, counts, has_lanes, has_passes, target);
    place.data = target;
  } else {
    packed_.resize(bytes);
    stored = pack(pieces, counts, has_lanes, has_passes, packed_.data());
    place.offset = budget_->spill_file().append(packed_.data(), bytes);
  }
  const auto number = static_cast<std::uint32_t>(classes_.size());
  const std::uint64_t first_warp = place_warps(warps);
  classes_.push_back({.counts = counts,
                      .first_warp = first_warp,
                      .has_lanes = has_lanes,
                      .has_passes = has_passes,
                      .num_warps = static_cast<std::uint32_t>(warps.size()),
                      .first_block = static_cast<std::uint32_t>(blocks_.size()),
                      .columns = place,
                      .rows = {.data = nullptr},
                      .num_rows = 0});
  if (hash) finder_.note_added(number, *hash);
  add_block(linear_index, number, {}, has_sectors);
  return stored;
}

std::optional<ColumnView> BlockStorage::append_like(std::uint64_t linear_index,
                                                    std::uint32_t number,
                                                    std::span<const std::int32_t> shifts,
                                                    std::span<const std::uint8_t> has_sectors) {
  if (!shifts.empty()) {
    number_rows(number, has_sectors);
    if (shifts.size() != classes_[number].num_rows) return std::nullopt;
  }
  add_block(linear_index, number, shifts, has_sectors);
  return read(blocks_.size() - 1, {}, classes_[number].counts, packed_);
}

std::span<const std::int32_t> BlockStorage::shifts(std::size_t block,
                                                   std::vector<std::byte>& scratch) const {
  const BlockEntry& entry = blocks_[block];
  if (entry.is_moved == 0) return {};
  const std::size_t count = classes_[entry.of_class].num_rows;
  const std::byte* data = entry.shifts.data;
  if (spilled_) {
    scratch.resize(4 * count);
    budget_->spill_file().read(entry.shifts.offset, scratch.data(), scratch.size());
    data = scratch.data();
  }
  return {reinterpret_cast<const std::int32_t*>(data), count};
}

ColumnView BlockStorage::read(std::size_t block, const ColumnCounts& first,
                              const ColumnCounts& last, std::vector<std::byte>& scratch) const {
  const BlockEntry& entry = blocks_[block];
  const ClassEntry& own = classes_[entry.of_class];
  const Layout layout(own.counts, own.has_lanes, own.has_passes);
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
      range(layout.atomic_lanes, own.has_lanes ? sizeof(AtomicLanes) : 0, first.stores,
            last.stores),
      range(layout.l1_passes, own.has_passes ? 1 : 0, first.memory, last.memory),
  };
  const std::size_t num_sectors = last.sectors - first.sectors;
  const bool moves = entry.is_moved != 0 && num_sectors > 0;
  if (!spilled_) {
    for (Range& r : ranges) r.data = own.columns.data + r.offset;
    if (moves) {
      scratch.resize(8 * num_sectors);
      move_sectors(ranges[0].data, own.rows.data + 2 * first.sectors, entry.shifts.data,
                   num_sectors, scratch.data());
      ranges[0].data = scratch.data();
    }
  } else {
    const SpillFile& file = budget_->spill_file();
    std::uint64_t total = 0;
    for (const Range& r : ranges) total += r.bytes;
    total = aligned(total);
    const std::uint64_t shifts_at = total;
    const std::uint64_t rows_at = shifts_at + 4 * std::uint64_t{own.num_rows};
    scratch.resize(moves ? rows_at + 2 * num_sectors : total);
    std::byte* target = scratch.data();
    for (Range& r : ranges) {
      if (r.bytes > 0) file.read(own.columns.offset + r.offset, target, r.bytes);
      r.data = target;
      target += r.bytes;
    }
    if (moves) {
      file.read(entry.shifts.offset, scratch.data() + shifts_at, rows_at - shifts_at);
      file.read(own.rows.offset + 2 * first.sectors, scratch.data() + rows_at, 2 * num_sectors);
      move_sectors(scratch.data(), scratch.data() + rows_at, scratch.data() + shifts_at,
                   num_sectors, scratch.data());
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
