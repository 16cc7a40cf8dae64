#include "timing/load_store_unit.h"

#include <algorithm>

#include "memory/line_parts.h"

namespace warpstack::timing {

LoadStoreUnit::LoadStoreUnit(const TimingConfig& config, const memory::CacheConfig& l1,
                             const memory::Cache& l2, std::uint32_t sm, PacketPool& packets,
                             Interconnect& request_network, memory::MemoryTotals& totals,
                             TrafficCounters& counters)
    : config_(config),
      l1_(l1),
      l2_(l2),
      sm_(sm),
      packets_(packets),
      request_network_(request_network),
      totals_(totals),
      counters_(counters),
      grouper_(l1.line_bytes),
      l1_sectors_(l1.line_bytes / trace::sector_bytes),
      l2_sectors_(l2.config().line_bytes / trace::sector_bytes),
      first_local_line_(trace::local_region_sector / l1_sectors_),
      fills_late_(l1.allocation == memory::Allocation::on_fill),
      noc_queue_entries_(config.noc_queue_entries),
      l1_latency_(whole_cycles(config.l1_latency)),
      shared_latency_(whole_cycles(config.latency.shared_memory)),
      mshrs_(config.l1_mshrs, config.l1_mshr_targets) {}

StackComponent LoadStoreUnit::cause_of_waiting() const {
  if (blocked_on_ != StackComponent::base) return blocked_on_;
  return !queue_.empty() && queue_.front().wavefronts > 0 ? StackComponent::dep
                                                          : StackComponent::l1;
}

std::uint32_t LoadStoreUnit::allocate_load() {
  if (free_loads_.empty()) {
    loads_.emplace_back();
    return static_cast<std::uint32_t>(loads_.size() - 1);
  }
  const std::uint32_t id = free_loads_.back();
  free_loads_.pop_back();
  loads_[id] = {};
  return id;
}

LoadStoreUnit::Entry& LoadStoreUnit::append(const trace::StaticInstruction& instruction,
                                            std::uint32_t row, std::uint32_t warp,
                                            std::uint32_t fetches, Cycle now) {
  Entry& entry = queue_.push();
  accepted_ = now;
  const bool returns = instruction.reads_memory() || instruction.kind == trace::MemoryKind::atomic;
  entry.load = returns ? allocate_load() : no_load;
  if (returns) {
    loads_[entry.load].warp = warp;
    loads_[entry.load].row = row;
    loads_[entry.load].fetches = fetches;
    loads_[entry.load].critical_before = critical_path_;
  }
  entry.row = row;
  entry.kind = instruction.kind;
  entry.evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
  entry.bypasses = instruction.cache_operator == trace::CacheOperator::bypass_l1;
  entry.next = 0;
  entry.issued = now;
  entry.mshr_mark = waited_for_mshr_;
  entry.noc_mark = waited_for_noc_;
  if (blocked_on_ == StackComponent::mshr) entry.mshr_mark += now - blocked_since_;
  if (blocked_on_ == StackComponent::noc) entry.noc_mark += now - blocked_since_;
  return entry;
}

std::uint32_t LoadStoreUnit::issue(const trace::StaticInstruction& instruction,
                                   const memory::MemoryAccess& access, std::uint32_t warp,
                                   Cycle now) {
  const std::span<const memory::LineAccess> lines = grouper_.group(access);
  Entry& entry =
      append(instruction, access.row, warp, static_cast<std::uint32_t>(lines.size()), now);
  entry.wavefronts = 0;
  entry.lines.assign(lines.begin(), lines.end());
  entry.bytes.clear();
  if (!access.store_bytes.empty()) {
    for (std::size_t i = 0; i < lines.size(); ++i) entry.bytes.push_back(grouper_.bytes(i));
  }
  return entry.load;
}

std::uint32_t LoadStoreUnit::issue_shared(const trace::StaticInstruction& instruction,
                                          std::uint32_t row, std::uint32_t wavefronts,
                                          std::uint32_t warp, Cycle now) {
  Entry& entry = append(instruction, row, warp, 1, now);
  entry.wavefronts = wavefronts;
  return entry.load;
}

void LoadStoreUnit::step(Cycle now) {
  if (queue_.empty()) return;
  Entry& entry = queue_.front();
  if (blocked_on_ == StackComponent::mshr) waited_for_mshr_ += now - blocked_since_;
  if (blocked_on_ == StackComponent::noc) waited_for_noc_ += now - blocked_since_;
  blocked_since_ = now;
  retry_ = false;
  bool is_last = false;
  if (entry.wavefronts > 0) {
    is_last = ++entry.next == entry.wavefronts;
    if (is_last && entry.load != no_load) {
      CpiStack<std::int64_t> latency = time_before(entry, now);
      latency[StackComponent::dep] +=
          latency[StackComponent::l1] + shared_latency_ * ticks_per_cycle;
      latency[StackComponent::l1] = 0;
      arrive(entry.load, now + shared_latency_, latency);
    }
  } else {
    blocked_on_ = look_up(entry, now);
    if (blocked_on_ != StackComponent::base) return;
    is_last = ++entry.next == entry.lines.size();
  }
  if (is_last) queue_.pop();
}

StackComponent LoadStoreUnit::look_up(Entry& entry, Cycle now) {
  const memory::LineAccess& access = entry.lines[entry.next];
  switch (entry.kind) {
    case trace::MemoryKind::store:
      return look_up_store(entry, access, entry.bytes[entry.next], now);
    case trace::MemoryKind::atomic:
    case trace::MemoryKind::reduction:
      return look_up_atomic(entry, access, entry.bytes[entry.next], now);
    case trace::MemoryKind::none:
    case trace::MemoryKind::load:
    case trace::MemoryKind::async_copy:
      break;
  }
  return look_up_load(entry, access, now);
}

StackComponent LoadStoreUnit::look_up_load(Entry& entry, const memory::LineAccess& access,
                                           Cycle now) {
  const bool is_local = access.line >= first_local_line_;
  const std::uint32_t sectors = memory::count_sectors(access.mask);
  const bool bypasses = entry.bypasses || (!is_local && !config_.memory.l1_caches_global);
  const auto count = [&] {
    ++totals_[memory::Total::l1_read_requests];
    totals_[memory::Total::l1_read_sectors] += sectors;
    if (is_local) totals_[memory::Total::l1_local_read_sectors] += sectors;
  };
  if (bypasses) {
    if (!noc_has_room()) return StackComponent::noc;
    count();
    send(access.line, access.mask, Packet::Kind::read, entry.evict_first, nullptr,
         start_fetch(entry, no_mshr, now), now);
    return StackComponent::base;
  }

  const std::uint32_t set = l1_.set_of(access.line);
  const memory::SectorMask absent = l1_.missing(set, access.line, access.mask);
  memory::SectorMask fetched = absent;
  if (fills_late_ && fetched) {
    // What is under way is not in the tags yet.
    memory::SectorMask under_way = 0;
    mshrs_.for_each(access.line,
                    [&](std::uint32_t, memory::SectorMask mask) { under_way |= mask; });
    fetched &= ~under_way;
  }
  std::uint32_t waits_for = 0;
  bool has_targets = true;
  memory::SectorMask pending = 0;
  mshrs_.for_each(access.line, [&](std::uint32_t id, memory::SectorMask mask) {
    if ((mask & access.mask & ~fetched) == 0) return;
    ++waits_for;
    pending |= mask & access.mask & ~fetched;
    has_targets = has_targets && mshrs_.has_room(id);
  });
  if (!has_targets || (fetched && mshrs_.is_full())) return StackComponent::mshr;
  if (fetched && !noc_has_room()) return StackComponent::noc;

  count();
  const CpiStack<std::int64_t> before = time_before(entry, now);
  mshrs_.for_each(access.line, [&](std::uint32_t id, memory::SectorMask mask) {
    if (mask & access.mask & ~fetched) mshrs_.add_target(id, {entry.load, before});
  });
  const std::uint32_t hits = memory::count_sectors(access.mask & ~fetched);
  totals_[memory::Total::l1_read_sector_hits] += hits;
  if (is_local) totals_[memory::Total::l1_local_read_sector_hits] += hits;
  totals_[memory::Total::l1_read_request_hits] += (access.mask & fetched) == 0;
  counters_.l1_pending_sector_hits += memory::count_sectors(pending);

  memory::Cache::Eviction eviction;
  if (!fills_late_) {
    l1_.read(set, access.line, access.mask, entry.evict_first, eviction);
  } else if (l1_.contains(set, access.line)) {
    l1_.read(set, access.line, access.mask & ~absent, entry.evict_first, eviction);
  }
  write_back(eviction, now);
  // Every line counts as one arrival; what it waits for is added.
  loads_[entry.load].fetches += waits_for + (fetched != 0);
  if (fetched) {
    const std::uint32_t mshr = mshrs_.allocate(access.line, fetched);
    mshrs_.add_target(mshr, {entry.load, before});
    send(access.line, fetched, Packet::Kind::read, entry.evict_first, nullptr,
         start_fetch(entry, mshr, now), now);
  }
  if (waits_for == 0 && fetched == 0) {
    CpiStack<std::int64_t> latency = before;
    latency[StackComponent::l1] += l1_latency_ * ticks_per_cycle;
    ++loads_[entry.load].fetches;
    arrive(entry.load, now + l1_latency_, latency);
  }
  // The line itself: it has been looked up.
  arrive(entry.load, now, {});
  return StackComponent::base;
}

StackComponent LoadStoreUnit::look_up_store(Entry& entry, const memory::LineAccess& access,
                                            const memory::ByteMasks& bytes, Cycle now) {
  if (!noc_has_room()) return StackComponent::noc;
  const std::uint32_t set = l1_.set_of(access.line);
  const bool fetches = l1_.config().write_miss == memory::WriteMiss::fetch_on_write &&
                       l1_.missing(set, access.line, access.mask) != 0;
  if (fetches && mshrs_.is_full()) return StackComponent::mshr;

  const bool is_local = access.line >= first_local_line_;
  const std::uint32_t sectors = memory::count_sectors(access.mask);
  memory::Cache::Eviction eviction;
  const memory::Cache::WriteResult result =
      l1_.write(set, access.line, access.mask, bytes, entry.row, entry.evict_first, eviction);
  const std::uint32_t hits = memory::count_sectors(result.hit);
  ++totals_[memory::Total::l1_write_requests];
  totals_[memory::Total::l1_write_sectors] += sectors;
  totals_[memory::Total::l1_write_sector_hits] += hits;
  if (is_local) {
    totals_[memory::Total::l1_local_write_sectors] += sectors;
    totals_[memory::Total::l1_local_write_sector_hits] += hits;
  }
  write_back(eviction, now);
  if (result.fetch) {
    send(access.line, result.fetch, Packet::Kind::read, entry.evict_first, nullptr,
         start_fetch(entry, mshrs_.allocate(access.line, result.fetch), now), now);
  }
  if (result.forward) {
    send(access.line, result.forward, Packet::Kind::write, entry.evict_first, &bytes, no_fetch,
         now);
  }
  return StackComponent::base;
}

StackComponent LoadStoreUnit::look_up_atomic(Entry& entry, const memory::LineAccess& access,
                                             const memory::ByteMasks& bytes, Cycle now) {
  if (!noc_has_room()) return StackComponent::noc;
  l1_.invalidate(l1_.set_of(access.line), access.line, access.mask);
  const bool returns = entry.kind == trace::MemoryKind::atomic;
  send(access.line, access.mask, returns ? Packet::Kind::atomic : Packet::Kind::reduction,
       entry.evict_first, &bytes, returns ? start_fetch(entry, no_mshr, now) : no_fetch, now);
  return StackComponent::base;
}

std::uint32_t LoadStoreUnit::start_fetch(const Entry& entry, std::uint32_t mshr, Cycle now) {
  std::uint32_t id = 0;
  if (free_fetches_.empty()) {
    id = static_cast<std::uint32_t>(fetches_.size());
    fetches_.emplace_back();
  } else {
    id = free_fetches_.back();
    free_fetches_.pop_back();
  }
  fetches_[id] = {entry.load, mshr, 0, entry.evict_first, time_before(entry, now)};
  return id;
}

void LoadStoreUnit::send(std::uint64_t l1_line, memory::SectorMask mask, Packet::Kind kind,
                         bool evict_first, const memory::ByteMasks* bytes, std::uint32_t fetch,
                         Cycle now) {
  memory::for_each_part(
      l1_line, mask, bytes, l1_sectors_, l2_sectors_,
      [&](std::uint64_t line, memory::SectorMask part, const memory::ByteMasks* part_bytes) {
        const std::uint32_t id = packets_.allocate();
        Packet& packet = packets_[id];
        packet.line = line;
        packet.set = l2_.set_of(line);
        packet.slice = l2_.slice_of(packet.set);
        packet.sm = sm_;
        packet.owner = fetch;
        packet.mask = part;
        packet.kind = kind;
        packet.evict_first = evict_first;
        if (part_bytes) packet.bytes = *part_bytes;
        packet.entered = packet.mark = now * ticks_per_cycle;
        if (fetch != no_fetch) ++fetches_[fetch].packets;
        outbox_.push(id);
        request_network_.add(sm_, packet.entered);
      });
}

void LoadStoreUnit::write_back(const memory::Cache::Eviction& eviction, Cycle now) {
  if (!eviction.dirty) return;
  send(eviction.line, eviction.dirty, Packet::Kind::write, false, &eviction.bytes, no_fetch, now);
}

void LoadStoreUnit::deliver(std::uint32_t id, Cycle now) {
  const Packet& packet = packets_[id];
  const std::uint32_t fetch_id = packet.owner;
  Fetch& fetch = fetches_[fetch_id];
  CpiStack<std::int64_t> latency = packet.waited;
  latency[StackComponent::l2] = now * ticks_per_cycle - packet.entered - latency.sum();
  packets_.release(id);
  if (--fetch.packets > 0) return;
  if (blocked_on_ != StackComponent::base) retry_ = true;

  if (fetch.load != no_load) {
    ++miss_latency_.misses;
    miss_latency_.ticks += latency;
    miss_latency_.ticks += fetch.before;
  }
  const auto reach = [&](std::uint32_t load, const CpiStack<std::int64_t>& before) {
    if (load == no_load) return;
    CpiStack<std::int64_t> whole = latency;
    whole += before;
    arrive(load, now, whole);
  };
  if (fetch.mshr == no_mshr) {
    // Each of its lines is one arrival.
    reach(fetch.load, fetch.before);
  } else {
    if (fills_late_) {
      const std::uint64_t line = mshrs_.line(fetch.mshr);
      memory::Cache::Eviction eviction;
      l1_.read(l1_.set_of(line), line, mshrs_.mask(fetch.mshr), fetch.evict_first, eviction);
      write_back(eviction, now);
    }
    for (const Target& target : mshrs_.targets(fetch.mshr)) reach(target.load, target.before);
    mshrs_.release(fetch.mshr);
  }
  free_fetches_.push_back(fetch_id);
}

void LoadStoreUnit::arrive(std::uint32_t id, Cycle done, const CpiStack<std::int64_t>& latency) {
  Load& load = loads_[id];
  if (done >= load.done) {
    load.done = done;
    if (latency.sum() > 0) load.latency = latency;
  }
  if (--load.fetches > 0) return;
  completed_.push_back(id);
  Ticks memory = 0;
  for (const StackComponent part :
       {StackComponent::mshr, StackComponent::noc, StackComponent::queue, StackComponent::dram}) {
    memory += load.latency[part];
  }
  if (config_.l2_clock_ghz != 0) memory += load.latency[StackComponent::l2];
  critical_path_ = std::max(critical_path_, load.critical_before + memory);
}

CpiStack<std::int64_t> LoadStoreUnit::time_before(const Entry& entry, Cycle now) const {
  CpiStack<std::int64_t> result;
  const Cycle for_mshr = waited_for_mshr_ - entry.mshr_mark;
  const Cycle for_noc = waited_for_noc_ - entry.noc_mark;
  result[StackComponent::mshr] = for_mshr * ticks_per_cycle;
  result[StackComponent::noc] = for_noc * ticks_per_cycle;
  result[StackComponent::l1] = (now - entry.issued - for_mshr - for_noc) * ticks_per_cycle;
  return result;
}

}  // namespace warpstack::timing
