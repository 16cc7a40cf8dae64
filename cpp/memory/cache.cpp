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
          "a size of " + text(size_bytes) + " bytes is not a positive multiple of line_bytes * ways" +
              (slices > 1 ? " * slices" : "") + " = " + text(unit));
  require(num_lines() <= std::uint64_t{1} << 31, "more than 2^31 lines");
}

Cache::Cache(const CacheConfig& config)
    : config_(config),
      sets_per_slice_(config.num_sets() / config.slices),
      lines_per_interleave_(config.slice_interleave_bytes / config.line_bytes),
      sectors_per_unit_(config.sector_bytes / sector_bytes),
      line_(config.num_lines(), no_line),
      last_use_(config.num_lines(), 0),
      state_(config.num_lines()) {
  if (config.write_miss == WriteMiss::write_validate) bytes_.resize(config.num_lines());
}

std::uint64_t Cache::set_of(std::uint64_t line) const {
  if (config_.slices == 1) return line % sets_per_slice_;
  const std::uint64_t chunk = line / lines_per_interleave_;
  const std::uint64_t slice = chunk % config_.slices;
  const std::uint64_t local =
      chunk / config_.slices * lines_per_interleave_ + line % lines_per_interleave_;
  return slice * sets_per_slice_ + local % sets_per_slice_;
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

std::size_t Cache::find(std::uint64_t line, std::uint64_t set) const {
  const std::size_t first = set * config_.ways;
  for (std::size_t slot = first; slot < first + config_.ways; ++slot) {
    if (line_[slot] == line) return slot;
  }
  return not_found;
}

std::size_t Cache::allocate(std::uint64_t line, std::uint64_t set, Eviction& eviction) {
  const auto begin = last_use_.begin() + static_cast<std::ptrdiff_t>(set * config_.ways);
  const auto victim = static_cast<std::size_t>(std::min_element(begin, begin + config_.ways) -
                                               last_use_.begin());
  State& state = state_[victim];
  if (state.dirty) {
    eviction.line = line_[victim];
    eviction.dirty = state.dirty;
    for_each_sector(state.dirty, [&](int s) {
      eviction.bytes[s] = state.partial >> s & 1 ? bytes_[victim][s] : all_bytes;
    });
  }
  line_[victim] = line;
  state = State{};
  return victim;
}

Cache::ReadResult Cache::read(std::uint64_t line, SectorMask mask, Eviction& eviction) {
  const std::uint64_t set = set_of(line);
  std::size_t slot = find(line, set);
  if (slot == not_found) slot = allocate(line, set, eviction);
  touch(slot);
  State& state = state_[slot];
  ReadResult result;
  result.hit = mask & state.valid;
  // A partly valid sector misses: the bytes around the written ones come from below.
  result.fetch = widen(mask & ~state.valid) & ~state.valid;
  state.valid |= result.fetch;
  state.partial &= ~result.fetch;
  return result;
}

Cache::WriteResult Cache::write(std::uint64_t line, SectorMask mask, const ByteMasks& bytes,
                                Eviction& eviction) {
  const std::uint64_t set = set_of(line);
  std::size_t slot = find(line, set);
  WriteResult result;
  const bool through = config_.write_policy == WritePolicy::write_through;
  if (slot != not_found) {
    result.hit = mask & (state_[slot].valid | state_[slot].partial);
    touch(slot);
  }
  SectorMask written = mask;
  if (config_.write_miss == WriteMiss::no_allocate) {
    written = result.hit;
    result.forward = through ? mask : mask & ~result.hit;
    if (slot == not_found) return result;
  } else {
    if (through) result.forward = mask;
    if (slot == not_found) {
      slot = allocate(line, set, eviction);
      touch(slot);
    }
  }
  State& state = state_[slot];
  const SectorMask absent = written & ~(state.valid | state.partial);
  if (config_.write_miss == WriteMiss::fetch_on_write) {
    result.fetch = widen(absent) & ~state.valid;
    state.valid |= result.fetch;
  } else if (config_.write_miss == WriteMiss::write_validate) {
    for_each_sector(written & ~state.valid, [&](int s) {
      std::uint32_t& valid_bytes = bytes_[slot][s];
      if (!(state.partial >> s & 1)) valid_bytes = 0;
      valid_bytes |= bytes[s];
      const auto bit = static_cast<SectorMask>(1u << s);
      if (valid_bytes == all_bytes) {
        state.partial &= ~bit;
        state.valid |= bit;
      } else {
        state.partial |= bit;
      }
    });
  }
  // Without sectors a line has one dirty bit.
  if (!through) state.dirty |= widen(written) & (state.valid | state.partial);
  return result;
}

void Cache::invalidate(std::uint64_t line, SectorMask mask) {
  const std::size_t slot = find(line, set_of(line));
  if (slot == not_found) return;
  const SectorMask lost = widen(mask);
  State& state = state_[slot];
  state.valid &= ~lost;
  state.partial &= ~lost;
  state.dirty &= ~lost;
}

std::uint64_t Cache::dirty_sectors() const {
  std::uint64_t count = 0;
  for (const State& state : state_) count += static_cast<std::uint64_t>(std::popcount(state.dirty));
  return count;
}

void Cache::clear() {
  std::ranges::fill(line_, no_line);
  std::ranges::fill(last_use_, 0);
  std::ranges::fill(state_, State{});
}

}  // namespace warpstack
