#include "timing/memory/load_store_unit.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "memory/cache/count.h"
#include "memory/cache/line_parts.h"

namespace warpstack::timing {

LoadStoreUnit::LoadStoreUnit(const TimingConfig& config, const memory::CacheConfig& l1,
                             const memory::Cache& l2, std::uint32_t sm)
    : config_(config),
      l1_(l1),
      l2_(l2),
      sm_(sm),
      grouper_(l1.line_bytes),
      atomics_{config.gpu.atomic_requests == AtomicRequests::per_lane,
               config.gpu.l2_atomic_lane_turns, config.gpu.l2_atomic_words_at_once},
      l1_sectors_(l1.line_bytes / trace::sector_bytes),
      l2_sectors_(l2.config().line_bytes / trace::sector_bytes),
      first_local_line_(trace::local_region_sector / l1_sectors_),
      fills_late_(l1.allocation == memory::Allocation::on_fill),
      reserves_(config.gpu.lines_under_way == LinesUnderWay::reserved && !fills_late_),
      awaits_stores_(config.gpu.store_acknowledgement == StoreAcknowledgement::awaited),
      noc_queue_entries_(config.noc_queue_entries),
      l1_latency_(whole_cycles(config.gpu.l1_latency)),
      shared_latency_(whole_cycles(config.latency.shared_memory)),
      lines_per_turn_(std::max(config.gpu.l1_tags_per_cycle, 1u)),
      pipeline_entries_(config.gpu.l1_latency_place == L1Latency::before_tags
                            ? static_cast<std::size_t>(l1_latency_) * lines_per_turn_
                            : 0),
      mshrs_(config.l1_mshrs, config.gpu.l1_mshr_targets) {
  const std::size_t parts =
      l1_sectors_ > l2_sectors_ ? (l1_sectors_ + l2_sectors_ - 1) / l2_sectors_ : 1;
  const bool has_dirty_lines = l1.write_policy != memory::WritePolicy::write_through;
  const bool stores_fetch = l1.write_miss != memory::WriteMiss::no_allocate &&
                            l1.write_miss != memory::WriteMiss::write_validate;
  const std::size_t look_ups = std::size_t{lines_per_turn_} * (pipeline_entries_ > 0 ? 2 : 1);
  most_sent_before_last_ = (look_ups - 1) * parts * (1u + has_dirty_lines + stores_fetch);
  most_sent_by_arrival_ = fills_late_ && has_dirty_lines ? parts : 0;
}

StackDetail LoadStoreUnit::cause_of_waiting() const {
  if (tags_wait_for_ != nothing) return tags_wait_for_;
  if (dispatch_waits_for_ != nothing) return dispatch_waits_for_;
  if (queue_.empty()) return StackDetail::load_store_unit;
  const Entry& first = queue_.front();
  if (first.wavefronts == 0) {
    return first.lines.size() > 1 || first.passes > 1 ? StackDetail::tags
                                                      : StackDetail::load_store_unit;
  }
  return first.wavefronts > first.needed ? StackDetail::bank_conflicts : StackDetail::shared_memory;
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
                                            std::uint32_t fetches, Cycle now, bool awaits) {
  Entry& entry = queue_.push();
  accepted_ = now;
  const bool returns = instruction.reads_memory() || instruction.kind == trace::MemoryKind::atomic;
  const bool is_awaited = returns || awaits || (awaits_stores_ && instruction.uses_caches());
  Origin& origin = entry.origin;
  origin.load = is_awaited ? allocate_load() : no_load;
  if (is_awaited) {
    Load& load = loads_[origin.load];
    load.warp = warp;
    load.row = row;
    load.fetches = fetches;
    load.issued = now;
    load.returns_data = returns;
    load.critical_before = critical_path_;
  }
  origin.row = row;
  origin.kind = instruction.kind;
  origin.evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
  origin.bypasses = instruction.cache_operator == trace::CacheOperator::bypass_l1;
  origin.read_only = instruction.cache_operator == trace::CacheOperator::read_only;
  origin.issued = now;
  origin.mshr_mark = waited_for_mshr_;
  origin.noc_mark = waited_for_noc_;
  if (is_blocked()) {
    (cause_of_waiting() == room ? origin.noc_mark : origin.mshr_mark) += now - blocked_since_;
  }
  entry.passes = 0;
  entry.next = 0;
  entry.begun = -1;
  return entry;
}

std::uint32_t LoadStoreUnit::issue(const trace::StaticInstruction& instruction,
                                   const memory::MemoryAccess& access, std::uint32_t warp,
                                   Cycle now, bool awaits) {
  const std::span<const memory::LineAccess> lines = grouper_.group(access);
  Entry& entry =
      append(instruction, access.row, warp, static_cast<std::uint32_t>(lines.size()), now, awaits);
  entry.wavefronts = 0;
  if (config_.gpu.l1_tags_per_cycle > 0 && !entry.origin.is_atomic()) {
    entry.passes = access.l1_passes();
  }
  entry.lines.assign(lines.begin(), lines.end());
  entry.bytes.clear();
  if (!access.store_bytes.empty()) {
    for (std::size_t i = 0; i < lines.size(); ++i) entry.bytes.push_back(grouper_.bytes(i));
  }
  entry.lanes.clear();
  if (entry.origin.is_atomic()) {
    for (std::size_t i = 0; i < lines.size(); ++i) entry.lanes.push_back(grouper_.lanes(i));
  }
  if (atomics_.per_lane && entry.origin.is_atomic()) {
    memory::split_by_lanes(entry.lines, entry.bytes, entry.lanes);
    if (entry.origin.load != no_load) {
      loads_[entry.origin.load].fetches = static_cast<std::uint32_t>(entry.lines.size());
    }
  }
  return entry.origin.load;
}

std::uint32_t LoadStoreUnit::issue_shared(const trace::StaticInstruction& instruction,
                                          std::uint32_t row, std::uint32_t wavefronts, int lanes,
                                          std::uint32_t warp, Cycle now) {
  Entry& entry = append(instruction, row, warp, 1, now, false);
  entry.wavefronts = wavefronts;
  // What the banks move at once.
  constexpr std::uint32_t bytes_of_banks = 128;
  const std::uint32_t bytes = static_cast<std::uint32_t>(lanes) * instruction.width;
  entry.needed = std::max((bytes + bytes_of_banks - 1) / bytes_of_banks, 1u);
  return entry.origin.load;
}

void LoadStoreUnit::step(Cycle now) {
  if (is_blocked()) {
    const StackDetail cause = cause_of_waiting();
    (cause == room ? waited_for_noc_ : waited_for_mshr_) += now - blocked_since_;
    if (cause != room) waited_for_[cause] += now - blocked_since_;
  }
  blocked_since_ = now;
  retry_ = false;
  for (std::uint32_t turn = 0; turn < lines_per_turn_; ++turn) {
    if (pipeline_.empty() || pipeline_.front().ready > now) break;
    const Request& request = pipeline_.front();
    at_tags_ = true;
    tags_wait_for_ = look_up(request.origin, request.access, &request.bytes, nullptr, now);
    at_tags_ = false;
    if (tags_wait_for_ != nothing) break;
    pipeline_.pop();
  }
  if (!queue_.empty() && free_at_ <= now) dispatch(now);
}

void LoadStoreUnit::begin(Entry& entry, Cycle now) {
  entry.begun = now;
  const Origin& origin = entry.origin;
  if (entry.passes == 0 || origin.load == no_load) return;
  Load& load = loads_[origin.load];
  if (!load.returns_data) return;
  // Its last pass brings the last of its data.
  const Cycle after = entry.passes - 1 + l1_latency_;
  load.done = now + after;
  load.latency = {};
  time_before(origin, now).add_to(load.latency);
  load.latency[StackComponent::l1] += after * ticks_per_cycle;
}

void LoadStoreUnit::dispatch(Cycle now) {
  Entry& entry = queue_.front();
  const Origin& origin = entry.origin;
  if (entry.begun < 0) begin(entry, now);
  free_at_ = now + 1;
  const bool is_first = entry.next == 0;
  bool is_last = false;
  if (entry.wavefronts > 0) {
    free_at_ = now + config_.gpu.shared_wavefront_cycles;
    waited_for_[entry.next < entry.needed ? StackDetail::shared_memory
                                          : StackDetail::bank_conflicts] += free_at_ - now;
    is_last = ++entry.next == entry.wavefronts;
    if (is_last && origin.load != no_load) {
      CpiStack<std::int64_t> latency;
      time_before(origin, now).add_to(latency);
      latency[StackComponent::dep] =
          latency[StackComponent::l1] + shared_latency_ * ticks_per_cycle;
      latency[StackComponent::l1] = 0;
      arrive(origin.load, now + shared_latency_, latency);
    }
  }
  const std::uint32_t most = entry.wavefronts > 0 ? 0 : entry.passes > 0 ? lines_per_turn_ : 1;
  for (std::uint32_t turn = 0; turn < most && !is_last; ++turn) {
    const memory::ByteMasks* bytes = entry.bytes.empty() ? nullptr : &entry.bytes[entry.next];
    if (goes_to_pipeline(entry)) {
      if (pipeline_.size() == pipeline_entries_) return;
      Request& request = pipeline_.push();
      request.origin = origin;
      request.access = entry.lines[entry.next];
      if (bytes) request.bytes = *bytes;
      request.ready = now + l1_latency_ - 1;  // the data of a hit are there a cycle later
    } else {
      const memory::SectorLanes* lanes = entry.lanes.empty() ? nullptr : &entry.lanes[entry.next];
      dispatch_waits_for_ = look_up(origin, entry.lines[entry.next], bytes, lanes, now);
      if (dispatch_waits_for_ != nothing) return;
      // It overtook what waits at the tags, which may now wait for room in the NoC queue instead.
      if (tags_wait_for_ != nothing) retry_ = true;
    }
    is_last = ++entry.next == entry.lines.size();
  }
  if (most > 0) ++waited_for_[is_first ? StackDetail::load_store_unit : StackDetail::tags];
  if (!is_last) return;
  const Cycle until = entry.begun + interval_of(entry);
  if (until > free_at_) {
    const bool is_for_banks = entry.passes > config_.gpu.lsu_interval;
    waited_for_[most == 0      ? StackDetail::shared_memory
                : is_for_banks ? StackDetail::tags
                               : StackDetail::load_store_unit] += until - free_at_;
    free_at_ = until;
  }
  queue_.pop();
}

StackDetail LoadStoreUnit::look_up(const Origin& origin, const memory::LineAccess& access,
                                   const memory::ByteMasks* bytes, const memory::SectorLanes* lanes,
                                   Cycle now) {
  if (origin.kind == trace::MemoryKind::store) return look_up_store(origin, access, *bytes, now);
  if (origin.is_atomic()) return look_up_atomic(origin, access, *bytes, *lanes, now);
  return look_up_load(origin, access, now);
}

StackDetail LoadStoreUnit::look_up_load(const Origin& origin, const memory::LineAccess& access,
                                        Cycle now) {
  const bool is_local = access.line >= first_local_line_;
  if (!reaches_l1(origin, access.line)) {
    if (!noc_has_room()) return room;
    ++totals_[memory::Total::l1_read_requests];
    memory::count_l1_bypass(totals_, access.mask, is_local);
    send(access.line, access.mask, Packet::Kind::read, origin.evict_first, nullptr,
         start_fetch(origin, origin.load, no_mshr, now), now);
    return nothing;
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
  if (!has_targets) return StackDetail::mshr_targets;
  if (fetched && mshrs_.is_full()) return StackDetail::mshrs;
  if (fetched && !noc_has_room()) return room;
  if (fetched && !can_take(set, access.line)) return StackDetail::places;

  ++totals_[memory::Total::l1_read_requests];
  memory::count_l1_load(totals_, access.mask,
                        static_cast<memory::SectorMask>(access.mask & ~fetched), is_local);
  const Before before = time_before_miss(origin, now);
  mshrs_.for_each(access.line, [&](std::uint32_t id, memory::SectorMask mask) {
    if (mask & access.mask & ~fetched) mshrs_.add_target(id, {origin.load, before});
  });
  pending_sector_hits_ += memory::count_sectors(pending);

  memory::Cache::Eviction eviction;
  if (!fills_late_) {
    l1_.read(set, access.line, access.mask, origin.evict_first, eviction);
  } else if (l1_.contains(set, access.line)) {
    l1_.read(set, access.line, access.mask & ~absent, origin.evict_first, eviction);
  }
  write_back(eviction, now);
  // Every line counts as one arrival; what it waits for is added.
  loads_[origin.load].fetches += waits_for + (fetched != 0);
  if (fetched) {
    if (reserves_) l1_.reserve(set, access.line);
    const std::uint32_t mshr = mshrs_.allocate(access.line, fetched);
    mshrs_.add_target(mshr, {origin.load, before});
    send(access.line, fetched, Packet::Kind::read, origin.evict_first, nullptr,
         start_fetch(origin, origin.load, mshr, now), now);
  }
  if (waits_for == 0 && fetched == 0) {
    // Before the tags it has passed already.
    const Cycle after = pipeline_entries_ > 0 ? 1 : l1_latency_;
    CpiStack<std::int64_t> latency;
    time_before(origin, now).add_to(latency);
    latency[StackComponent::l1] += after * ticks_per_cycle;
    ++loads_[origin.load].fetches;
    arrive(origin.load, now + after, latency);
  }
  // The line itself: it has been looked up.
  arrive(origin.load, now);
  return nothing;
}

StackDetail LoadStoreUnit::look_up_store(const Origin& origin, const memory::LineAccess& access,
                                         const memory::ByteMasks& bytes, Cycle now) {
  if (!noc_has_room()) return room;
  const std::uint32_t set = l1_.set_of(access.line);
  const memory::SectorMask fetched = l1_.write_fetch(set, access.line, access.mask, bytes);
  if (fetched != 0 && mshrs_.is_full()) return StackDetail::mshrs;
  memory::SectorMask passed = 0;  // what is on its way, which a store that misses does not change
  bool has_targets = true;
  if (l1_.config().write_miss == memory::WriteMiss::write_and_fetch) {
    mshrs_.for_each(access.line, [&](std::uint32_t id, memory::SectorMask mask) {
      if ((mask & access.mask & ~fetched) == 0) return;
      passed |= mask & access.mask & ~fetched;
      has_targets = has_targets && mshrs_.has_room(id);
    });
  }
  if (!has_targets) return StackDetail::mshr_targets;
  if (l1_.config().write_miss != memory::WriteMiss::no_allocate && !can_take(set, access.line)) {
    return StackDetail::places;
  }

  mshrs_.for_each(access.line, [&](std::uint32_t id, memory::SectorMask mask) {
    if (mask & passed) mshrs_.add_target(id, {no_load, {}});
  });
  memory::Cache::Eviction eviction;
  memory::Cache::WriteResult result =
      l1_.write(set, access.line, static_cast<memory::SectorMask>(access.mask & ~passed), bytes,
                origin.row, origin.evict_first, eviction);
  result.hit |= passed;
  result.forward |= passed;
  memory::count_l1_store(totals_, access.mask, result.hit, access.line >= first_local_line_);
  write_back(eviction, now);
  if (result.fetch) {
    if (reserves_) l1_.reserve(set, access.line);
    send(access.line, result.fetch, Packet::Kind::read, origin.evict_first, nullptr,
         start_fetch(origin, no_load, mshrs_.allocate(access.line, result.fetch), now), now);
  }
  if (result.forward) {
    if (origin.load != no_load) ++loads_[origin.load].fetches;
    send(access.line, result.forward, Packet::Kind::write, origin.evict_first, &bytes,
         origin.load != no_load ? start_fetch(origin, origin.load, no_mshr, now) : Packet::nobody,
         now);
  }
  if (origin.load != no_load) arrive(origin.load, now);
  return nothing;
}

StackDetail LoadStoreUnit::look_up_atomic(const Origin& origin, const memory::LineAccess& access,
                                          const memory::ByteMasks& bytes,
                                          const memory::SectorLanes& lanes, Cycle now) {
  if (!noc_has_room()) return room;
  l1_.invalidate(l1_.set_of(access.line), access.line, access.mask);
  send(access.line, access.mask,
       origin.kind == trace::MemoryKind::atomic ? Packet::Kind::atomic : Packet::Kind::reduction,
       origin.evict_first, &bytes,
       origin.load != no_load ? start_fetch(origin, origin.load, no_mshr, now) : Packet::nobody,
       now, &lanes);
  return nothing;
}

std::uint32_t LoadStoreUnit::start_fetch(const Origin& origin, std::uint32_t load,
                                         std::uint32_t mshr, Cycle now) {
  std::uint32_t id = 0;
  if (free_fetches_.empty()) {
    id = static_cast<std::uint32_t>(fetches_.size());
    fetches_.emplace_back();
  } else {
    id = free_fetches_.back();
    free_fetches_.pop_back();
  }
  fetches_[id] = {load, mshr, 0, origin.evict_first, time_before_miss(origin, now)};
  return id;
}

void LoadStoreUnit::send(std::uint64_t l1_line, memory::SectorMask mask, Packet::Kind kind,
                         bool evict_first, const memory::ByteMasks* bytes, std::uint32_t fetch,
                         Cycle now, const memory::SectorLanes* lanes) {
  memory::for_each_part(
      l1_line, mask, bytes, l1_sectors_, l2_sectors_,
      [&](std::uint64_t line, memory::SectorMask part, const memory::ByteMasks* part_bytes) {
        Packet& packet = packets_.push();
        packet = {};
        packet.line = line;
        packet.set = l2_.set_of(line);
        packet.slice = l2_.slice_of(packet.set);
        packet.sm = sm_;
        packet.owner = fetch;
        packet.mask = part;
        packet.kind = kind;
        packet.evict_first = evict_first;
        if (part_bytes) packet.bytes = *part_bytes;
        if (lanes) {
          packet.lanes = atomics_.lanes_of_request(
              memory::lanes_of_part(*lanes, l1_line, l1_sectors_, line, l2_sectors_), part);
        }
        packet.entered = packet.mark = now * ticks_per_cycle;
        if (fetch != Packet::nobody) ++fetches_[fetch].packets;
        outbox_.push({packet.slice, memory::count_sectors(part), kind != Packet::Kind::read});
        entered_.push_back(now);
      });
}

void LoadStoreUnit::write_back(const memory::Cache::Eviction& eviction, Cycle now) {
  if (!eviction.dirty) return;
  send(eviction.line, eviction.dirty, Packet::Kind::write, false, &eviction.bytes, Packet::nobody,
       now);
}

void LoadStoreUnit::deliver(const Reply& reply, Cycle now) {
  const std::uint32_t fetch_id = reply.owner;
  Fetch& fetch = fetches_[fetch_id];
  CpiStack<std::int64_t> latency;
  latency[StackComponent::noc] = reply.noc;
  latency[StackComponent::queue] = reply.dram_queue;
  latency[StackComponent::dram] = reply.dram;
  latency[StackComponent::l2] = now * ticks_per_cycle - reply.entered - latency.sum();
  if (--fetch.packets > 0) return;
  if (is_blocked()) retry_ = true;

  if (fetch.load != no_load && loads_[fetch.load].returns_data) {
    ++miss_latency_.misses;
    miss_latency_.ticks += latency;
    fetch.before.add_to(miss_latency_.ticks);
  }
  const auto reach = [&](std::uint32_t load, const Before& before) {
    if (load == no_load) return;
    CpiStack<std::int64_t> whole = latency;
    before.add_to(whole);
    arrive(load, now, whole);
  };
  if (fetch.mshr == no_mshr) {
    // Each of its requests is one arrival.
    reach(fetch.load, fetch.before);
  } else {
    const std::uint64_t line = mshrs_.line(fetch.mshr);
    if (reserves_) l1_.release(l1_.set_of(line), line);
    if (fills_late_) {
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
  if (done >= load.done && latency.sum() > 0) load.latency = latency;
  arrive(id, done);
}

void LoadStoreUnit::arrive(std::uint32_t id, Cycle done) {
  Load& load = loads_[id];
  load.done = std::max(load.done, done);
  if (--load.fetches > 0) return;
  completed_.push_back(id);
  if (!load.returns_data) return;
  Ticks memory = 0;
  for (const StackComponent part :
       {StackComponent::mshr, StackComponent::noc, StackComponent::queue, StackComponent::dram}) {
    memory += load.latency[part];
  }
  if (config_.gpu.l2_clock_ghz != 0) memory += load.latency[StackComponent::l2];
  // Of a line that was on its way before, only what the load itself waited.
  memory = std::min(memory, (done - load.issued) * ticks_per_cycle);
  critical_path_ = std::max(critical_path_, load.critical_before + memory);
}

}  // namespace warpstack::timing
