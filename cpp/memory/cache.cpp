#include "memory/cache.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace warpstack {
namespace {

constexpr std::uint32_t all_bytes = ~std::uint32_t{0};

template <typename Visit>
void for_each_sector(SectorMask mask, Visit visit) {
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

}  // namespace

std::string_view name_of(WritePolicy policy) {
  static constexpr std::string_view names[num_write_policies] = {"write_through", "write_back"};
  return names[static_cast<std::size_t>(policy)];
}

std::string_view name_of(WriteMiss policy) {
  static constexpr std::string_view names[num_write_misses] = {"no_allocate", "fetch_on_write",
                                                               "write_validate"};
  return names[static_cast<std::size_t>(policy)];
}

void CacheConfig::validate(const char* level) const {
  const auto require = [level](bool holds, const std::string& what) {
    if (!holds) throw InputError(std::string(level) + ": " + what);
  };
  const auto text = [](std::uint64_t value) { return std::to_string(value); };
  require(line_bytes >= warpstack::sector_bytes && line_bytes <= 256 &&
              line_bytes % warpstack::sector_bytes == 0,
          "line_bytes = " + text(line_bytes) + " is not a multiple of 32 from 32 to 256");
  require(sector_bytes >= warpstack::sector_bytes && sector_bytes <= line_bytes &&
              sector_bytes % warpstack::sector_bytes == 0 && line_bytes % sector_bytes == 0,
          "sector_bytes = " + text(sector_bytes) +
              " is not a multiple of 32 that divides the line of " + text(line_bytes) + " bytes");
  require(ways >= 1, "ways = 0; a cache has at least one way");
  require(slices >= 1, "slices = 0; a cache has at least one slice");
  require(slice_interleave_bytes >= line_bytes && slice_interleave_bytes % line_bytes == 0,
          "slice_interleave_bytes = " + text(slice_interleave_bytes) +
              " is not a multiple of the line of " + text(line_bytes) + " bytes");
  const std::uint64_t unit = std::uint64_t{line_bytes} * ways * slices;
  require(size_bytes >= unit && size_bytes % unit == 0,
          "a size of " + text(size_bytes) +
              " bytes is not a positive multiple of line_bytes * ways" +
              (slices > 1 ? " * slices" : "") + " = " + text(unit));
  require(num_lines() <= std::uint64_t{1} << 31, "more than 2^31 lines");
}

Cache::Cache(const CacheConfig& config)
    : config_(config),
      sets_per_slice_(config.num_sets() / config.slices),
      lines_per_interleave_(config.slice_interleave_bytes / config.line_bytes),
      by_sets_(sets_per_slice_),
      by_interleave_(lines_per_interleave_),
      by_slices_(config.slices),
      sectors_per_unit_(config.sector_bytes / sector_bytes),
      ways_(config.num_lines()) {
  if (config.write_miss == WriteMiss::write_validate) bytes_.resize(ways_.size());
  if (config.write_policy == WritePolicy::write_back) writers_.resize(ways_.size());
  for (std::size_t i = 0; i < ways_.size(); ++i) ways_[i].slot = static_cast<std::uint32_t>(i);
}

std::uint64_t Cache::set_of(std::uint64_t line) const {
  if (config_.slices == 1) return by_sets_.remainder(line);
  const std::uint64_t chunk = by_interleave_.quotient(line);
  const std::uint64_t chunk_in_slice = by_slices_.quotient(chunk);
  const std::uint64_t slice = chunk - chunk_in_slice * config_.slices;
  const std::uint64_t local =
      chunk_in_slice * lines_per_interleave_ + by_interleave_.remainder(line);
  return slice * sets_per_slice_ + by_sets_.remainder(local);
}

SectorMask Cache::widen(SectorMask mask) const {
  if (sectors_per_unit_ == 1) return mask;
  unsigned widened = 0;
  const unsigned unit = (1u << sectors_per_unit_) - 1;
  for (unsigned first = 0; first < config_.line_bytes / sector_bytes; first += sectors_per_unit_) {
    if (mask & (unit << first)) widened |= unit << first;
  }
  return static_cast<SectorMask>(widened);
}

Cache::Way* Cache::find(Way* set, std::uint64_t line) {
  for (Way* way = set; way != set + config_.ways; ++way) {
    if (way->line == line) return way;
  }
  return nullptr;
}

void Cache::move_to_front(Way* set, Way* way) {
  if (way == set) return;
  const Way used = *way;
  std::copy_backward(set, way, way + 1);
  *set = used;
}

void Cache::describe(const Way& way, Eviction& eviction) const {
  eviction.line = way.line;
  eviction.dirty = way.dirty;
  eviction.writer = writers_[way.slot];
  for_each_sector(way.dirty, [&](int s) {
    eviction.bytes[s] = way.partial >> s & 1 ? bytes_[way.slot][s] : all_bytes;
  });
}

Cache::Way* Cache::make_room(Way* set, std::uint64_t line, Eviction& eviction) {
  Way* victim = set + config_.ways - 1;
  if (victim->dirty) describe(*victim, eviction);
  *victim = {line, 0, 0, 0, victim->slot};
  move_to_front(set, victim);
  return set;
}

Cache::ReadResult Cache::read(std::uint64_t line, SectorMask mask, Eviction& eviction) {
  Way* set = set_begin(line);
  if (Way* found = find(set, line)) {
    move_to_front(set, found);
  } else {
    make_room(set, line, eviction);
  }
  Way& way = *set;
  ReadResult result;
  result.hit = mask & way.valid;
  // A partly valid sector misses: the bytes around the written ones come from below.
  result.fetch = widen(mask & ~way.valid) & ~way.valid;
  way.valid |= result.fetch;
  way.partial &= ~result.fetch;
  return result;
}

Cache::WriteResult Cache::write(std::uint64_t line, SectorMask mask, const ByteMasks& bytes,
                                std::uint32_t writer, Eviction& eviction) {
  Way* set = set_begin(line);
  WriteResult result;
  Way* found = find(set, line);
  if (found) {
    result.hit = mask & (found->valid | found->partial);
    move_to_front(set, found);
  }
  const bool through = config_.write_policy == WritePolicy::write_through;
  SectorMask written = mask;
  if (config_.write_miss == WriteMiss::no_allocate) {
    written = result.hit;
    result.forward = through ? mask : mask & ~result.hit;
    if (!found) return result;
  } else {
    if (through) result.forward = mask;
    if (!found) make_room(set, line, eviction);
  }
  Way& way = *set;
  if (config_.write_miss == WriteMiss::fetch_on_write) {
    result.fetch = widen(written & ~way.valid) & ~way.valid;
    way.valid |= result.fetch;
  } else if (config_.write_miss == WriteMiss::write_validate) {
    for_each_sector(written & ~way.valid, [&](int s) {
      const auto bit = static_cast<SectorMask>(1u << s);
      std::uint32_t& valid_bytes = bytes_[way.slot][s];
      valid_bytes = (way.partial & bit ? valid_bytes : 0) | bytes[s];
      if (valid_bytes == all_bytes) {
        way.partial &= ~bit;
        way.valid |= bit;
      } else {
        way.partial |= bit;
      }
    });
  }
  // Without sectors a line has one dirty bit.
  if (!through) {
    way.dirty |= widen(written) & (way.valid | way.partial);
    if (written) writers_[way.slot] = writer;
  }
  return result;
}

void Cache::invalidate(std::uint64_t line, SectorMask mask) {
  Way* way = find(set_begin(line), line);
  if (!way) return;
  const SectorMask kept = ~widen(mask);
  way->valid &= kept;
  way->partial &= kept;
  way->dirty &= kept;
}

std::uint64_t Cache::dirty_sectors() const {
  std::uint64_t count = 0;
  for (const Way& way : ways_) count += count_sectors(way.dirty);
  return count;
}

void Cache::flush(const std::function<void(const Eviction&)>& write_back) {
  Eviction eviction;
  for (const Way& way : ways_) {
    if (!way.dirty) continue;
    describe(way, eviction);
    write_back(eviction);
  }
  clear();
}

void Cache::clear() {
  for (Way& way : ways_) way = {no_line, 0, 0, 0, way.slot};
}

}  // namespace warpstack
