#include "memory/cache/cache.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

/// The fill units that a mask touches, by sectors per unit and mask.
constexpr auto touched_units = [] {
  std::array<std::array<SectorMask, 256>, max_sectors_per_line + 1> table{};
  for (unsigned size = 1; size <= max_sectors_per_line; ++size) {
    for (unsigned mask = 0; mask < 256; ++mask) {
      for (unsigned first = 0; first < max_sectors_per_line; first += size) {
        const unsigned unit = ((1u << size) - 1) << first;
        if (mask & unit) table[size][mask] |= static_cast<SectorMask>(unit);
      }
    }
  }
  return table;
}();

}  // namespace

void CacheConfig::validate(const char* level) const {
  const auto require = [level](bool holds, const std::string& what) {
    if (!holds) throw InputError(std::string(level) + ": " + what);
  };
  const auto text = [](std::uint64_t value) { return std::to_string(value); };
  require(line_bytes >= warpstack::trace::sector_bytes && line_bytes <= 256 &&
              line_bytes % warpstack::trace::sector_bytes == 0,
          "line_bytes = " + text(line_bytes) + " is not a multiple of 32 from 32 to 256");
  require(sector_bytes >= warpstack::trace::sector_bytes && sector_bytes <= line_bytes &&
              sector_bytes % warpstack::trace::sector_bytes == 0 && line_bytes % sector_bytes == 0,
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
  require(replacement != Replacement::plru || std::has_single_bit(ways),
          "ways = " + text(ways) + " is not a power of two, which plru replacement needs");
  require(written_by_strangers >= 0 && written_by_strangers <= 1,
          "a share of " + std::to_string(written_by_strangers) +
              " of the lines, written by strangers, is not from 0 to 1");
  require(num_lines() <= std::uint64_t{1} << 31, "more than 2^31 lines");
}

Cache::Cache(const CacheConfig& config)
    : config_(config),
      sets_per_slice_(config.num_sets() / config.slices),
      by_sets_per_slice_(sets_per_slice_),
      lines_per_interleave_(config.slice_interleave_bytes / config.line_bytes),
      by_interleave_(lines_per_interleave_),
      by_slices_(config.slices),
      slice_(config.slices, config.slice_index),
      set_in_slice_(sets_per_slice_, config.set_index),
      units_(touched_units[config.sector_bytes / trace::sector_bytes].data()),
      sets_(config.num_sets(), config.ways, config.replacement, config.line_bytes),
      // A cache that writes through holds no written lines.
      strangers_(config.write_policy == WritePolicy::write_back ? config.written_by_strangers : 0),
      bytes_(config.write_miss == WriteMiss::write_validate ? config.num_lines() : 0),
      writers_(config.write_policy == WritePolicy::write_back ? config.num_lines() : 0),
      num_dirty_(config.write_policy == WritePolicy::write_back ? config.num_sets() : 0) {
  place_strangers();
}

void Cache::describe(std::uint32_t set, std::uint32_t way, Eviction& eviction) const {
  const LineState& state = sets_.state(set, way);
  eviction.line = sets_.line(set, way);
  if (eviction.line == SetStore::no_line) eviction.line = line_of_stranger(set, way);
  eviction.dirty = state.dirty;
  eviction.writer = writers_[slot(set, way)];
  for_each_sector(eviction.dirty, [&](int s) {
    eviction.bytes[s] = state.partial >> s & 1 ? bytes_[slot(set, way)][s] : all_bytes;
  });
}

void Cache::evict(std::uint32_t set, std::uint32_t way, Eviction& eviction) {
  describe(set, way, eviction);
  if (sets_.line(set, way) != SetStore::no_line) num_dirty_[set] -= count_sectors(eviction.dirty);
}

Cache::WriteResult Cache::write(std::uint32_t set, std::uint64_t line, SectorMask mask,
                                const ByteMasks& bytes, std::uint32_t writer, bool evict_first,
                                Eviction& eviction) {
  WriteResult result;
  const bool through = config_.write_policy == WritePolicy::write_through;
  if (through) result.forward = mask;
  SectorMask written = mask;
  if (config_.write_miss == WriteMiss::no_allocate && !contains(set, line)) {
    result.forward = mask;
    return result;
  }
  const auto [way, state] = use(set, line, eviction);
  if (evict_first) sets_.place_last(set, way);
  result.hit = mask & (state.valid | state.partial);
  switch (config_.write_miss) {
    case WriteMiss::no_allocate:
      written = result.hit;
      result.forward |= mask & ~result.hit;
      break;
    case WriteMiss::fetch_on_write:
      result.fetch = widen(written & ~state.valid) & ~state.valid;
      state.valid |= result.fetch;
      break;
    case WriteMiss::write_validate:
      write_bytes(state, bytes_[slot(set, way)], written, bytes);
      break;
    case WriteMiss::fetch_on_partial_write: {
      const SectorMask absent = widen(written & ~state.valid) & ~state.valid;
      result.fetch = without_whole_units(absent, mask, bytes);
      state.valid |= absent;
      break;
    }
    case WriteMiss::write_and_fetch:
      written = result.hit;
      result.forward |= mask & ~result.hit;
      result.fetch = widen(mask & ~state.valid) & ~state.valid;
      state.valid |= result.fetch;
      break;
  }
  if (!through && written) {
    // A line that is not sectored has one dirty bit.
    const SectorMask made = widen(written) & (state.valid | state.partial) & ~state.dirty;
    state.dirty |= made;
    num_dirty_[set] += count_sectors(made);
    writers_[slot(set, way)] = writer;
  }
  return result;
}

SectorMask Cache::without_whole_units(SectorMask fetched, SectorMask mask,
                                      const ByteMasks& bytes) const {
  SectorMask unfilled = fetched & ~mask;
  for_each_sector(fetched & mask, [&](int s) {
    if (bytes[s] != all_bytes) unfilled |= static_cast<SectorMask>(1u << s);
  });
  return fetched & widen(unfilled);
}

SectorMask Cache::write_fetch(std::uint32_t set, std::uint64_t line, SectorMask mask,
                              const ByteMasks& bytes) const {
  switch (config_.write_miss) {
    case WriteMiss::no_allocate:
    case WriteMiss::write_validate:
      return 0;
    case WriteMiss::fetch_on_write:
    case WriteMiss::write_and_fetch:
      return missing(set, line, mask);
    case WriteMiss::fetch_on_partial_write:
      return without_whole_units(missing(set, line, mask), mask, bytes);
  }
  return 0;
}

void Cache::write_bytes(LineState& state, ByteMasks& valid_bytes, SectorMask written,
                        const ByteMasks& bytes) {
  for_each_sector(written & ~state.valid, [&](int s) {
    const auto bit = static_cast<SectorMask>(1u << s);
    // Whole sectors, the usual ones, do not touch the array.
    std::uint32_t valid = bytes[s];
    if (valid != all_bytes && (state.partial & bit) != 0) valid |= valid_bytes[s];
    if (valid == all_bytes) {
      state.partial &= ~bit;
      state.valid |= bit;
    } else {
      valid_bytes[s] = valid;
      state.partial |= bit;
    }
  });
}

void Cache::invalidate(std::uint32_t set, std::uint64_t line, SectorMask mask) {
  const int way = sets_.find(set, line);
  if (way < 0) return;
  LineState& state = sets_.state(set, static_cast<std::uint32_t>(way));
  const SectorMask kept = ~widen(mask);
  const SectorMask forgotten = state.dirty & ~kept;
  if (forgotten != 0) num_dirty_[set] -= count_sectors(forgotten);
  state.valid &= kept;
  state.dirty &= kept;
  state.partial &= kept;
}

void Cache::add_to(Digest& digest) {
  std::vector<std::uint32_t> ways;
  for (std::uint32_t set = 0; set < config_.num_sets(); ++set) {
    sets_.ways_of(set, ways);
    for (const std::uint32_t way : ways) {
      const std::uint64_t line = sets_.line(set, way);
      digest.add(line);
      if (line == SetStore::no_line) continue;  // how many there are says which strangers are left
      const LineState& state = sets_.state(set, way);
      digest.add(std::bit_cast<std::uint32_t>(state));
      if (state.dirty != 0) digest.add(writers_[slot(set, way)]);
      for_each_sector(state.partial, [&](int s) { digest.add(bytes_[slot(set, way)][s]); });
    }
  }
  sets_.add_trees_to(digest);
}

std::uint64_t Cache::dirty_sectors() const {
  return std::accumulate(num_dirty_.data(), num_dirty_.data() + num_dirty_.size(),
                         std::uint64_t{0});
}

void Cache::flush(const std::function<void(const Eviction&)>& write_back) {
  if (config_.write_policy == WritePolicy::write_through) return clear();
  Eviction eviction;
  std::vector<std::uint32_t> ways;
  for (std::uint32_t set = 0; set < config_.num_sets(); ++set) {
    sets_.ways_of(set, ways);
    for (const std::uint32_t way : ways) {
      if (sets_.state(set, way).dirty == 0) continue;
      describe(set, way, eviction);
      write_back(eviction);
    }
  }
  clear();
}

void Cache::clear() {
  sets_.clear();
  num_dirty_.clear();
  place_strangers();
}

void Cache::place_strangers() {
  if (!strangers_.have_written()) return;
  const auto whole_line =
      static_cast<SectorMask>((1u << config_.line_bytes / trace::sector_bytes) - 1);
  for (std::uint32_t set = 0; set < config_.num_sets(); ++set) {
    for (std::uint32_t way = 0; way < config_.ways; ++way) {
      if (!strangers_.have_written(set, sets_.turn_of(way))) continue;
      sets_.state(set, way).dirty = whole_line;
      writers_[slot(set, way)] = 0;
    }
  }
}

std::uint64_t Cache::line_of_stranger(std::uint32_t set, std::uint32_t way) const {
  // Above the memory of applications and below their local memory.
  const std::uint64_t first = (std::uint64_t{1} << 61) / config_.line_bytes / config_.slices /
                              lines_per_interleave_ * lines_per_interleave_;
  const std::uint64_t slice = slice_of(set);
  const std::uint64_t local =
      first + sets_.turn_of(way) * sets_per_slice_ + (set - slice * sets_per_slice_);
  const std::uint64_t chunk = local / lines_per_interleave_ * config_.slices + slice;
  return chunk * lines_per_interleave_ + local % lines_per_interleave_;
}

}  // namespace warpstack::memory
