#include "memory/families/cache_bundle.h"

#include <algorithm>

namespace warpstack::memory {
CacheBundle::CacheBundle(std::span<const CacheConfig> caches)
    : config_(caches.front()),
      num_members_(caches.size()),
      all_(all_members(caches.size())),
      sectors_(config_.line_bytes / trace::sector_bytes),
      unit_sectors_(config_.sector_bytes / trace::sector_bytes),
      strangers_(config_.write_policy == WritePolicy::write_back ? config_.written_by_strangers
                                                                 : 0),
      lines_(1, {std::numeric_limits<std::int64_t>::min()}),
      sectors_of_(1),
      first_slots_(caches.size()) {
  std::size_t slots = 0;
  for (CacheConfig cache : caches) {
    cache.written_by_strangers = 0;
    maps_.emplace_back(cache);
    ways_.push_back(cache.ways);
    first_slot_of_.push_back(slots);
    slots += cache.num_lines();
  }
  slots_.resize(slots, no_line);
}

std::uint32_t CacheBundle::number_of(std::uint64_t line) {
  const auto [entry, is_new] =
      numbers_.try_emplace(line, static_cast<std::uint32_t>(lines_.size()));
  if (is_new) {
    lines_.emplace_back();
    sectors_of_.emplace_back();
    for (std::size_t m = 0; m < num_members_; ++m) {
      first_slots_.push_back(
          static_cast<std::uint32_t>(first_slot_of_[m] + maps_[m].set_of(line) * ways_[m]));
    }
  }
  return entry->second;
}

void CacheBundle::clear() {
  for (Line& line : lines_) line.resident = 0;
  std::ranges::fill(slots_, no_line);
  valid_bytes_.clear();
  dirty_ = {};
}

void CacheBundle::insert(std::uint32_t number, Members where) {
  for (std::size_t s = 0; s < sectors_; ++s) {
    Sector& sector = sectors_of_[number][s];
    sector.valid &= ~where;
    sector.dirty &= ~where;
    sector.partial &= ~where;
  }
  lines_[number].resident |= where;
  lines_[number].dirty &= ~where;
  const std::uint32_t* first_slots = &first_slots_[std::size_t{number} * num_members_];
  for_each_member(where, [&](std::size_t member) {
    std::uint32_t* ways = &slots_[first_slots[member]];
    std::uint32_t way = 0;
    std::int64_t first_use = lines_[ways[0]].last_use;
    for (std::uint32_t w = 1; w < ways_[member]; ++w) {
      const std::int64_t used = lines_[ways[w]].last_use;
      way = used < first_use ? w : way;
      first_use = used < first_use ? used : first_use;
    }
    const std::uint32_t evicted = ways[way];
    ways[way] = number;
    const Members bit = Members{1} << member;
    lines_[evicted].resident &= ~bit;
    if ((lines_[evicted].dirty & bit) != 0) write_back(evicted, member);
    if (evicted != no_line || !strangers_.have_written()) return;
    // Empty ways are filled in the order of their numbers.
    const std::uint64_t set = (first_slots[member] - first_slot_of_[member]) / ways_[member];
    if (strangers_.have_written(set, way)) dram_writes_.add(bit, all_, sectors_);
  });
}

void CacheBundle::write_back(std::uint32_t number, std::size_t member) {
  std::int64_t dirty = 0;
  for (std::size_t s = 0; s < sectors_; ++s) {
    dirty += sectors_of_[number][s].dirty >> member & 1;
  }
  dirty_.add(Members{1} << member, all_, -dirty);
  dram_writes_.add(Members{1} << member, all_, dirty);
}

void CacheBundle::use(std::uint32_t number, Members where, bool evict_first) {
  const Members absent = where & ~lines_[number].resident;
  if (absent != 0) insert(number, absent);
  ++clock_;
  // If several lines are marked as next to be replaced, the one marked last goes first.
  lines_[number].last_use = evict_first ? -clock_ : clock_;
}

CacheBundle::Planes CacheBundle::fetch(Sectors& sectors, SectorMask mask) {
  Planes fetched{};
  for (std::size_t first = 0; first < sectors_; first += unit_sectors_) {
    Members missing = 0;
    for (std::size_t s = first; s < first + unit_sectors_; ++s) {
      if (mask >> s & 1) missing |= all_ & ~sectors[s].valid;
    }
    if (missing == 0) continue;
    for (std::size_t s = first; s < first + unit_sectors_; ++s) {
      Sector& sector = sectors[s];
      fetched[s] = missing & ~sector.valid;
      sector.valid |= fetched[s];
      sector.partial &= ~fetched[s];
    }
  }
  return fetched;
}

CacheBundle::Planes CacheBundle::fetch_partly_written(Sectors& sectors, SectorMask mask,
                                                      const ByteMasks& bytes) {
  Planes absent = fetch(sectors, mask);
  for (std::size_t first = 0; first < sectors_; first += unit_sectors_) {
    Members unfilled = 0;
    for (std::size_t s = first; s < first + unit_sectors_; ++s) {
      if (!(mask >> s & 1) || bytes[s] != all_bytes) unfilled |= absent[s];
    }
    for (std::size_t s = first; s < first + unit_sectors_; ++s) absent[s] &= unfilled;
  }
  return absent;
}

void CacheBundle::write_bytes(std::uint32_t number, SectorMask mask, const ByteMasks& bytes) {
  for_each_sector(mask, [&](int s) {
    Sector& sector = sectors_of_[number][s];
    const Members written = all_ & ~sector.valid;
    if (written == 0) return;
    if (bytes[s] == all_bytes) {
      sector.valid |= written;
      sector.partial &= ~written;
      return;
    }
    std::vector<SameBytes>& groups = valid_bytes_[std::uint64_t{number} * max_sectors_per_line + s];
    std::vector<SameBytes> kept;
    const auto keep = [&](Members members, std::uint32_t valid) {
      if (members == 0) return;
      for (SameBytes& group : kept) {
        if (group.bytes != valid) continue;
        group.members |= members;
        return;
      }
      kept.push_back({members, valid});
    };
    for (const SameBytes& group : groups) {
      const Members members = group.members & sector.partial & written;
      const std::uint32_t valid = group.bytes | bytes[s];
      if (valid == all_bytes) {
        sector.valid |= members;
        sector.partial &= ~members;
      } else {
        keep(members, valid);
      }
    }
    const Members fresh = written & ~sector.partial & ~sector.valid;
    sector.partial |= fresh;
    keep(fresh, bytes[s]);
    groups = std::move(kept);
  });
}

void CacheBundle::make_dirty(std::uint32_t number, SectorMask mask, const Planes& written,
                             Members where) {
  Planes added{};
  for (std::size_t first = 0; first < sectors_; first += unit_sectors_) {
    Members any = 0;
    for (std::size_t s = first; s < first + unit_sectors_; ++s) {
      if (mask >> s & 1) any |= written[s] & where;
    }
    if (any == 0) continue;
    for (std::size_t s = first; s < first + unit_sectors_; ++s) {
      Sector& sector = sectors_of_[number][s];
      added[s] = any & (sector.valid | sector.partial) & ~sector.dirty;
      sector.dirty |= added[s];
      lines_[number].dirty |= added[s];
    }
  }
  dirty_.add_each({added.data(), sectors_}, all_);
}

Members CacheBundle::missed_of(const Planes& hit, SectorMask mask) const {
  Members missed = 0;
  for_each_sector(mask, [&](int s) { missed |= all_ & ~hit[s]; });
  return missed;
}

BundleOutcome CacheBundle::read(std::uint32_t number, SectorMask mask, bool evict_first) {
  use(number, all_, evict_first);
  Sectors& sectors = sectors_of_[number];
  BundleOutcome outcome;
  for_each_sector(mask, [&](int s) {
    outcome.hit[outcome.num_hit++] = sectors[s].valid;
    outcome.missed |= all_ & ~sectors[s].valid;
  });
  if (outcome.missed == 0) return outcome;
  outcome.moved = fetch(sectors, mask);
  outcome.asks_dram = outcome.missed;  // every miss is fetched
  dram_reads_.add_each({outcome.moved.data(), sectors_}, all_);
  return outcome;
}

BundleOutcome CacheBundle::write(const Request& request, std::uint32_t number,
                                 const ByteMasks& bytes) {
  const SectorMask mask = request.mask;
  const bool is_through = config_.write_policy == WritePolicy::write_through;
  const WriteMiss policy = config_.write_miss;
  Sectors& sectors = sectors_of_[number];
  const Members where = policy == WriteMiss::no_allocate ? lines_[number].resident : all_;
  if (where != 0) use(number, where, request.evict_first);
  Planes hit{};
  for_each_sector(mask, [&](int s) { hit[s] = (sectors[s].valid | sectors[s].partial) & where; });
  const bool forwards_misses =
      policy == WriteMiss::no_allocate || policy == WriteMiss::write_and_fetch;
  const Members missed = missed_of(hit, mask);
  Planes fetched{};
  Planes written{};
  for_each_sector(mask, [&](int s) { written[s] = forwards_misses ? hit[s] : all_; });
  switch (policy) {
    case WriteMiss::no_allocate:
      break;
    case WriteMiss::fetch_on_write:
    case WriteMiss::write_and_fetch:
      fetched = fetch(sectors, mask);
      break;
    case WriteMiss::fetch_on_partial_write:
      fetched = fetch_partly_written(sectors, mask, bytes);
      break;
    case WriteMiss::write_validate:
      write_bytes(number, mask, bytes);
      break;
  }
  Members fetches = 0;
  for (std::size_t s = 0; s < sectors_; ++s) fetches |= fetched[s];
  BundleOutcome outcome;
  outcome.missed = missed;
  outcome.asks_dram = fetches;
  Planes forwarded{};
  for (std::size_t s = 0; s < sectors_; ++s) {
    // A miss without a fetch moves the written sectors.
    outcome.moved[s] = fetched[s];
    if (!(mask >> s & 1)) continue;
    outcome.hit[outcome.num_hit++] = hit[s];
    outcome.moved[s] |= all_ & ~hit[s] & ~fetches;
    forwarded[s] = is_through ? all_ : forwards_misses ? all_ & ~hit[s] : 0;
    outcome.asks_dram |= forwarded[s];
  }
  dram_reads_.add_each({fetched.data(), sectors_}, all_);
  dram_writes_.add_each({forwarded.data(), sectors_}, all_);
  if (!is_through) make_dirty(number, mask, written, where);
  return outcome;
}

BundleOutcome CacheBundle::serve(const Request& request, std::uint32_t number,
                                 const ByteMasks& bytes) {
  switch (request.kind) {
    case Request::Kind::read:
      return read(number, request.mask, request.evict_first);
    case Request::Kind::atomic: {
      // An atomic reads the old value, so a miss always fetches.
      const BundleOutcome outcome = read(number, request.mask, request.evict_first);
      write(request, number, bytes);
      return outcome;
    }
    case Request::Kind::write:
    case Request::Kind::write_back:
      break;
  }
  return write(request, number, bytes);
}

}  // namespace warpstack::memory
