#include "timing/l2_slice.h"

#include <algorithm>

namespace warpstack::timing {

L2Slice::L2Slice(const TimingConfig& config, std::uint32_t index, memory::Cache& tags,
                 DramChannel& channel, Interconnect& reply_network, PacketPool& packets,
                 memory::MemoryTotals& totals, TrafficCounters& counters)
    : config_(config),
      index_(index),
      capacity_(config.l2_queue_entries),
      clock_(config.l2_clock()),
      tags_(tags),
      channel_(channel),
      reply_network_(reply_network),
      packets_(packets),
      totals_(totals),
      counters_(counters),
      mshrs_(config.l2_mshrs, config.l2_mshr_targets) {}

void L2Slice::add(std::uint32_t packet, Ticks now) {
  packets_[packet].queue_mark = waited(Wait::dram, now);
  packets_[packet].noc_mark = waited(Wait::reply, now);
  requests_.push(packet);
  if (requests_.size() == 1) next_ = std::min(next_, clock_.at_or_after(now));
}

void L2Slice::fill(std::uint32_t mshr, Ticks start, Ticks time) {
  fills_.push({mshr, start, time});
  next_ = std::min(next_, edge_of({mshr, start, time}));
}

void L2Slice::step() {
  const Ticks now = next_;
  next_ = never;
  take_fills(now);
  if (!requests_.empty()) {
    if (waits_ == Wait::dram) waited_for_dram_ += now - waits_since_;
    if (waits_ == Wait::reply) waited_for_reply_ += now - waits_since_;
    waits_since_ = now;
    waits_ = serve(requests_.front(), now);
    if (waits_ == Wait::none) {
      requests_.pop();
      if (!requests_.empty()) next_ = clock_.after(now);
    }
  }
  if (!fills_.empty() && fills_.front().time > now) {
    next_ = std::min(next_, edge_of(fills_.front()));
  }
}

void L2Slice::take_fills(Ticks now) {
  while (!fills_.empty() && fills_.front().time <= now) {
    const Fill& fill = fills_.front();
    const std::span<const std::uint32_t> targets = mshrs_.targets(fill.mshr);
    for (; filled_ < targets.size(); ++filled_) {
      Packet& packet = packets_[targets[filled_]];
      if (packet.fetches == 1 && packet.needs_reply() && replies_.size() >= capacity_) {
        return;
      }
      // In the DRAM queue, in DRAM, and then waiting for room among the replies.
      const Ticks queued = std::clamp<Ticks>(fill.start - packet.mark, 0, now - packet.mark);
      const Ticks late = std::max<Ticks>(now - std::max(packet.mark, edge_of(fill)), 0);
      packet.waited[StackComponent::queue] += queued;
      packet.waited[StackComponent::noc] += late;
      packet.waited[StackComponent::dram] += now - packet.mark - queued - late;
      packet.mark = now;
      if (--packet.fetches > 0) continue;
      if (packet.needs_reply()) {
        reply(targets[filled_], now);
      } else {
        packets_.release(targets[filled_]);
      }
    }
    mshrs_.release(fill.mshr);
    fills_.pop();
    filled_ = 0;
  }
}

void L2Slice::explain(std::string& text) const {
  text += "\n  L2 slice " + std::to_string(index_) + ": " + std::to_string(requests_.size()) +
          " requests in a queue of " + std::to_string(capacity_);
  if (!requests_.empty() && waits_ != Wait::none) {
    text += waits_ == Wait::dram ? ", the first waits for an MSHR or the DRAM queue"
                                 : ", the first waits for room among the replies";
  }
  text += "; MSHRs in use: " + std::to_string(mshrs_.size()) +
          "; replies that wait: " + std::to_string(replies_.size());
}

L2Slice::Wait L2Slice::serve(std::uint32_t id, Ticks now) {
  const Packet::Kind kind = packets_[id].kind;
  const Ticks for_dram = waited_for_dram_ - packets_[id].queue_mark;
  const Ticks for_reply = waited_for_reply_ - packets_[id].noc_mark;
  const Wait result = kind == Packet::Kind::write ? write(id, now) : read(id, now);
  if (result == Wait::none && kind != Packet::Kind::write) {
    // What is left of the time in the queue counts as time of L2.
    packets_[id].waited[StackComponent::queue] += for_dram;
    packets_[id].waited[StackComponent::noc] += for_reply;
    packets_[id].mark = now;
  }
  return result;
}

/// Reads and read-modify-writes.
L2Slice::Wait L2Slice::read(std::uint32_t id, Ticks now) {
  Packet& packet = packets_[id];
  const bool modifies = packet.kind != Packet::Kind::read;
  const memory::SectorMask fetched = tags_.missing(packet.set, packet.line, packet.mask);
  bool has_targets = true;
  std::uint32_t waits_for = 0;
  memory::SectorMask pending = 0;
  mshrs_.for_each(packet.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
    if ((mask & packet.mask & ~fetched) == 0) return;
    ++waits_for;
    pending |= mask & packet.mask & ~fetched;
    has_targets = has_targets && mshrs_.has_room(mshr);
  });
  if (!has_targets) return Wait::dram;
  if (fetched && mshrs_.is_full()) return Wait::dram;
  const bool writes_through =
      modifies && config_.memory.l2.write_policy == memory::WritePolicy::write_through;
  if ((fetched || writes_through) && !channel_.has_room()) return Wait::dram;
  if (!fetched && waits_for == 0 && packet.needs_reply() && replies_.size() >= capacity_) {
    return Wait::reply;
  }

  mshrs_.for_each(packet.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
    if (mask & packet.mask & ~fetched) mshrs_.add_target(mshr, id);
  });
  packet.fetches = waits_for + (fetched != 0);
  memory::Cache::Eviction eviction;
  const memory::Cache::ReadResult result =
      tags_.read(packet.set, packet.line, packet.mask, packet.evict_first, eviction);
  if (modifies) {
    totals_[memory::Total::l2_atomic_sectors] += memory::count_sectors(packet.mask);
    totals_[memory::Total::l2_atomic_sector_hits] += memory::count_sectors(result.hit);
    last_write_ = now;
  } else {
    ++totals_[memory::Total::l2_read_requests];
    totals_[memory::Total::l2_read_request_hits] += result.hit == packet.mask;
    totals_[memory::Total::l2_read_sectors] += memory::count_sectors(packet.mask);
    totals_[memory::Total::l2_read_sector_hits] += memory::count_sectors(result.hit);
    counters_.l2_pending_sector_hits += memory::count_sectors(pending);
  }
  if (fetched) fetch(packet.line, fetched, id, now);
  write_to_dram(eviction.line, eviction.dirty, now);
  if (modifies) {
    const memory::Cache::WriteResult written = tags_.write(
        packet.set, packet.line, packet.mask, packet.bytes, 0, packet.evict_first, eviction);
    write_to_dram(packet.line, written.forward, now);
  }
  if (packet.fetches > 0) return Wait::none;
  if (packet.needs_reply()) {
    reply(id, now);
  } else {
    packets_.release(id);
  }
  return Wait::none;
}

L2Slice::Wait L2Slice::write(std::uint32_t id, Ticks now) {
  const Packet& packet = packets_[id];
  const memory::CacheConfig& l2 = config_.memory.l2;
  const bool fetches = l2.write_miss == memory::WriteMiss::fetch_on_write &&
                       tags_.missing(packet.set, packet.line, packet.mask) != 0;
  if (fetches && mshrs_.is_full()) return Wait::dram;
  const bool needs_dram = fetches || l2.write_policy == memory::WritePolicy::write_through ||
                          !tags_.contains(packet.set, packet.line) ||
                          l2.write_miss == memory::WriteMiss::no_allocate;
  if (needs_dram && !channel_.has_room()) return Wait::dram;

  memory::Cache::Eviction eviction;
  const memory::Cache::WriteResult result = tags_.write(
      packet.set, packet.line, packet.mask, packet.bytes, 0, packet.evict_first, eviction);
  ++totals_[memory::Total::l2_write_requests];
  totals_[memory::Total::l2_write_sectors] += memory::count_sectors(packet.mask);
  totals_[memory::Total::l2_write_sector_hits] += memory::count_sectors(result.hit);
  if (result.fetch) fetch(packet.line, result.fetch, no_target, now);
  write_to_dram(packet.line, result.forward, now);
  write_to_dram(eviction.line, eviction.dirty, now);
  last_write_ = now;
  packets_.release(id);
  return Wait::none;
}

void L2Slice::reply(std::uint32_t id, Ticks now) {
  replies_.push(id);
  reply_network_.add(index_, now);
}

void L2Slice::fetch(std::uint64_t line, memory::SectorMask mask, std::uint32_t target, Ticks now) {
  const std::uint32_t mshr = mshrs_.allocate(line, mask);
  if (target != no_target) mshrs_.add_target(mshr, target);
  totals_[memory::Total::dram_read_sectors] += memory::count_sectors(mask);
  send_to_dram(line, mask, mshr, now);
}

void L2Slice::write_to_dram(std::uint64_t line, memory::SectorMask mask, Ticks now) {
  if (mask == 0) return;
  totals_[memory::Total::dram_write_sectors] += memory::count_sectors(mask);
  send_to_dram(line, mask, DramRequest::write, now);
}

void L2Slice::send_to_dram(std::uint64_t line, memory::SectorMask mask, std::uint32_t mshr,
                           Ticks now) {
  channel_.add({index_, mshr, memory::count_sectors(mask) * trace::sector_bytes, row_of(line)},
               now);
}

/// Rows of the channel's slices alternate.
std::uint64_t L2Slice::row_of(std::uint64_t line) const {
  if (config_.dram_row_bytes == 0) return 0;
  const std::uint64_t slices = config_.memory.l2.slices;
  const std::uint64_t chunk_bytes = config_.memory.l2.slice_interleave_bytes;
  const std::uint64_t address = line * config_.memory.l2.line_bytes;
  const std::uint64_t in_slice =
      address / chunk_bytes / slices * chunk_bytes + address % chunk_bytes;
  const std::uint64_t sharers = slices / config_.dram_channels;
  return in_slice / config_.dram_row_bytes * sharers + index_ % sharers;
}

}  // namespace warpstack::timing
