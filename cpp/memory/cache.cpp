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

std::string_view name_of(Allocation allocation) {
  static constexpr std::string_view names[num_allocations] = {"on_miss", "on_fill"};
  return names[static_cast<std::size_t>(allocation)];
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
  require(replacement != Replacement::plru || std::has_single_bit(ways),
          "ways = " + text(ways) + " is not a power of two, which plru replacement needs");
  require(num_lines() <= std::uint64_t{1} << 31, "more than 2^31 lines");
}

Cache::Cache(const CacheConfig& config)
    : config_(config),
      sets_per_slice_(config.num_sets() / config.slices),
      lines_per_interleave_(config.slice_interleave_bytes / config.line_bytes),
      by_interleave_(lines_per_interleave_),
      by_slices_(config.slices),
      slice_(config.slices, config.slice_index),
      set_in_slice_(sets_per_slice_, config.set_index),
      sectors_per_unit_(config.sector_bytes / sector_bytes),
      tags_(config.num_sets(), config.ways),
      order_(config.num_sets(), config.ways, config.replacement),
      states_(config.num_lines()) {
  if (config.write_miss == WriteMiss::write_validate) {
    partial_.resize(states_.size());
    bytes_.resize(states_.size());
  }
  if (config.write_policy == WritePolicy::write_back) writers_.resize(states_.size());
}

SectorMask Cache::widen_to_units(SectorMask mask) const {
  unsigned widened = 0;
  const unsigned unit = (1u << sectors_per_unit_) - 1;
  for (unsigned first = 0; first < config_.line_bytes / sector_bytes; first += sectors_per_unit_) {
    if (mask & (unit << first)) widened |= unit << first;
  }
  return static_cast<SectorMask>(widened);
}

void Cache::place_last(std::uint32_t set, std::uint32_t way) {
  std::uint32_t empty = 0;
  for (std::uint32_t w = 0; w < config_.ways; ++w) empty += tags_.line(set, w) == TagStore::no_line;
  order_.place_last(set, way, empty);
}

void Cache::describe(std::uint64_t line, std::size_t slot, Eviction& eviction) const {
  eviction.line = line;
  eviction.dirty = states_[slot].dirty;
  eviction.writer = writers_[slot];
  for_each_sector(eviction.dirty, [&](int s) {
    eviction.bytes[s] = partial(slot) >> s & 1 ? bytes_[slot][s] : all_bytes;
  });
}

Cache::WriteResult Cache::write(std::uint32_t set, std::uint64_t line, SectorMask mask,
                                const ByteMasks& bytes, std::uint32_t writer, bool evict_first,
                                Eviction& eviction) {
  WriteResult result;
  const bool through = config_.write_policy == WritePolicy::write_through;
  if (through) result.forward = mask;
  const int found = tags_.find(set, line);
  SectorMask written = mask;
  std::uint32_t way = 0;
  if (found >= 0) {
    way = static_cast<std::uint32_t>(found);
    order_.use(set, way);
  } else if (config_.write_miss == WriteMiss::no_allocate) {
    result.forward = mask;
    return result;
  } else {
    way = allocate(set, line, eviction);
  }
  if (evict_first) place_last(set, way);
  const std::size_t slot = std::size_t{set} * config_.ways + way;
  State& state = states_[slot];
  result.hit = mask & (state.valid | partial(slot));
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
      write_bytes(slot, written, bytes);
      break;
  }
  if (!through && written) {
    // Without sectors a line has one dirty bit.
    state.dirty |= widen(written) & (state.valid | partial(slot));
    writers_[slot] = writer;
  }
  return result;
}

void Cache::write_bytes(std::size_t slot, SectorMask written, const ByteMasks& bytes) {
  State& state = states_[slot];
  for_each_sector(written & ~state.valid, [&](int s) {
    const auto bit = static_cast<SectorMask>(1u << s);
    std::uint32_t& valid_bytes = bytes_[slot][s];
    valid_bytes = (partial_[slot] & bit ? valid_bytes : 0) | bytes[s];
    if (valid_bytes == all_bytes) {
      partial_[slot] &= ~bit;
      state.valid |= bit;
    } else {
      partial_[slot] |= bit;
    }
  });
}

void Cache::invalidate(std::uint32_t set, std::uint64_t line, SectorMask mask) {
  const int way = tags_.find(set, line);
  if (way < 0) return;
  const std::size_t slot = std::size_t{set} * config_.ways + static_cast<std::uint32_t>(way);
  const SectorMask kept = ~widen(mask);
  states_[slot].valid &= kept;
  states_[slot].dirty &= kept;
  if (!partial_.empty()) partial_[slot] &= kept;
}

std::uint64_t Cache::dirty_sectors() const {
  std::uint64_t count = 0;
  for (const State& state : states_) count += count_sectors(state.dirty);
  return count;
}

void Cache::flush(const std::function<void(const Eviction&)>& write_back) {
  if (config_.write_policy == WritePolicy::write_through) return clear();
  Eviction eviction;
  std::vector<std::uint32_t> ways;
  for (std::uint32_t set = 0; set < config_.num_sets(); ++set) {
    order_.ways_of(set, ways);
    for (const std::uint32_t way : ways) {
      const std::size_t slot = std::size_t{set} * config_.ways + way;
      if (!states_[slot].dirty) continue;
      describe(tags_.line(set, way), slot, eviction);
      write_back(eviction);
    }
  }
  clear();
}

void Cache::clear() {
  tags_.clear();
  order_.clear();
  std::ranges::fill(states_, State{});
  std::ranges::fill(partial_, SectorMask{0});
}

}  // namespace warpstack
