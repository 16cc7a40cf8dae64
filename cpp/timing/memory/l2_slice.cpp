#include "timing/memory/l2_slice.h"

#include <algorithm>
#include <cmath>

#include "memory/cache/atomic_turns.h"
#include "memory/cache/count.h"
#include "memory/cache/store_turns.h"

namespace warpstack::timing {

L2Slice::L2Slice(const TimingConfig& config, std::uint32_t index, memory::Cache& tags,
                 DramChannel& channel, Interconnect& reply_network, PacketPool& packets,
                 memory::MemoryTotals& totals, TrafficCounters& counters)
    : config_(config),
      index_(index),
      capacity_(config.gpu.l2_queue_entries),
      reserves_(config.gpu.lines_under_way == LinesUnderWay::reserved),
      clock_(config.l2_clock()),
      tags_(tags),
      channel_(channel),
      reply_network_(reply_network),
      packets_(packets),
      totals_(totals),
      counters_(counters),
      mshrs_(config.gpu.l2_mshrs, config.gpu.l2_mshr_targets),
      port_(clock_),
      fill_port_(clock_),
      rows_(config.gpu, config.memory.l2, config.dram_channels) {
  for (std::uint32_t sectors = 0; sectors < port_times_.size(); ++sectors) {
    port_times_[sectors] = port_time(sectors, 1);
    const double bytes = sectors * trace::sector_bytes;
    const double cycles = config.gpu.l2_slice_bytes_per_cycle > 0
                              ? std::max(bytes / config.gpu.l2_slice_bytes_per_cycle, 1.0)
                              : 1;
    fill_times_[sectors] =
        static_cast<Ticks>(std::floor(cycles * static_cast<double>(clock_.period()) + 0.5));
  }
}

void L2Slice::add(std::uint32_t packet, Ticks now) {
  packets_[packet].queue_mark = waited(Wait::dram, now);
  packets_[packet].noc_mark = waited(Wait::reply, now);
  requests_.push(packet);
  if (requests_.size() > 1) return;
  const Ticks edge = clock_.at_or_after(now);
  next_ = std::min(next_, port_.is_free(edge) ? edge : port_.next_edge(edge));
}

void L2Slice::finish(const DramRequest& request, Ticks start, Ticks time) {
  if (request.mshr == DramRequest::write && request.packet == Packet::nobody) return;
  fills_.push({request.mshr, request.packet, start, time});
  next_ = std::min(next_, edge_of({request.mshr, request.packet, start, time}));
  // Until the data are there, who waits for them can come close.
  if (request.mshr == DramRequest::write) return;
  for (const std::uint32_t packet : mshrs_.targets(request.mshr)) {
    if (packet != Packet::nobody) packets_.prefetch(packet);
  }
}

void L2Slice::step() {
  const Ticks now = next_;
  next_ = never;
  take_fills(now);
  if (!requests_.empty() && !port_.is_free(now)) {
    next_ = next_turn(now);
  } else if (!requests_.empty()) {
    if (waits_ == Wait::dram) {
      waited_for_dram_ += now - waits_since_;
      (lacks_mshr_ ? waited_for_.for_mshr : waited_for_.for_channel) += now - waits_since_;
    }
    if (waits_ == Wait::reply) {
      waited_for_reply_ += now - waits_since_;
      waited_for_.for_reply += now - waits_since_;
    }
    waits_since_ = now;
    lacks_mshr_ = false;
    waits_ = serve(requests_.front(), now);
    if (waits_ == Wait::none) {
      requests_.pop();
      if (!requests_.empty()) next_ = next_turn(now);
    }
  }
  if (!ready_.empty() && can_answer(ready_.front())) next_ = std::min(next_, clock_.after(now));
  if (fills_.empty()) return;
  const Fill& fill = fills_.front();
  if (fill.mshr != DramRequest::write) {
    next_ = std::min(next_, std::max(edge_of(fill), fill_port_.next_edge(now)));
  } else if (edge_of(fill) > now || can_answer(fill)) {
    next_ = std::min(next_, std::max(edge_of(fill), clock_.after(now)));
  }
}

void L2Slice::take_fills(Ticks now) {
  take_fill(now);
  if (!ready_.empty() && take(ready_.front(), now)) ready_.pop();
}

void L2Slice::take_fill(Ticks now) {
  if (fills_.empty() || edge_of(fills_.front()) > now) return;
  const Fill& fill = fills_.front();
  if (fill.mshr == DramRequest::write) {
    if (take(fill, now)) fills_.pop();
    return;
  }
  if (!fill_port_.is_free(now)) return;
  for (const std::uint32_t target : mshrs_.targets(fill.mshr)) {
    ready_.push({fill.mshr, target, fill.start, fill.time});
  }
  const std::uint64_t line = mshrs_.line(fill.mshr);
  if (reserves_) tags_.release(tags_.set_of(line), line);
  fill_port_.take(now, fill_times_[memory::count_sectors(mshrs_.mask(fill.mshr))]);
  mshrs_.release(fill.mshr);
  fills_.pop();
}

bool L2Slice::take(const Fill& fill, Ticks now) {
  const std::uint32_t id = fill.packet;
  if (id == Packet::nobody) return true;
  Packet& packet = packets_[id];
  if (!can_answer(fill)) return false;
  // In the DRAM queue, in DRAM, and then waiting for room among the replies.
  const Ticks queued = std::clamp<Ticks>(fill.start - packet.mark, 0, now - packet.mark);
  const Ticks late = std::max<Ticks>(now - std::max(packet.mark, edge_of(fill)), 0);
  packet.dram_queue += queued;
  packet.noc += late;
  waited_for_.in_channel += queued;
  waited_for_.late += late;
  packet.dram += now - packet.mark - queued - late;
  packet.mark = now;
  if (--packet.fetches == 0) finish(id, now);
  return true;
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
  const Ticks for_dram = waited_for_dram_ - packets_[id].queue_mark;
  const Ticks for_reply = waited_for_reply_ - packets_[id].noc_mark;
  const bool is_write = packets_[id].kind == Packet::Kind::write;
  const Wait wait = is_write ? write(id, now) : read(id, now);
  if (wait != Wait::none) return wait;
  // What is left of the time in the queue counts as time of L2.
  packets_[id].dram_queue += for_dram;
  packets_[id].noc += for_reply;
  waited_for_.queued += now - packets_[id].mark - for_dram - for_reply;
  waited_for_.queued_for_dram += for_dram;
  waited_for_.late += for_reply;
  packets_[id].mark = now;
  if (packets_[id].fetches == 0) finish(id, now);
  return Wait::none;
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
  if (!has_targets) return wait_for_mshr();
  if (fetched && mshrs_.is_full()) return wait_for_mshr();
  const bool writes_through =
      modifies && config_.memory.l2.write_policy == memory::WritePolicy::write_through;
  if ((fetched || writes_through) && !channel_.has_room()) return Wait::dram;
  if (!fetched && waits_for == 0 && packet.needs_reply() && replies_.size() >= capacity_) {
    return Wait::reply;
  }
  if (fetched && !can_take(packet)) return Wait::dram;

  mshrs_.for_each(packet.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
    if (mask & packet.mask & ~fetched) mshrs_.add_target(mshr, id);
  });
  packet.fetches = waits_for + (fetched != 0);
  memory::Cache::Eviction eviction;
  const memory::Cache::ReadResult result =
      tags_.read(packet.set, packet.line, packet.mask, packet.evict_first, eviction);
  if (modifies) {
    memory::count_l2_atomic(totals_, packet.mask, result.hit);
    last_write_ = now;
  } else {
    memory::count_l2_read(totals_, packet.mask, result.hit);
    counters_.l2_pending_sector_hits += memory::count_sectors(pending);
  }
  const memory::AtomicRule atomics{.lane_turns = config_.gpu.l2_atomic_lane_turns};
  const memory::SectorMask moved = packet.fetches == 0 ? packet.mask : eviction.dirty;
  const double turns = atomics.turns_of_request(packet.lanes);
  use_port(moved, turns, now);
  if (turns > 1) {
    const std::uint32_t sectors = memory::count_sectors(moved);
    const Ticks further = port_time(sectors, turns) - port_times_[sectors];
    waited_for_.requests -= further;
    waited_for_.atomics += further;
  }
  if (fetched) fetch(packet, fetched, id, now);
  write_to_dram(eviction.line, eviction.dirty, Packet::nobody, now);
  if (modifies) {
    const memory::Cache::WriteResult written = tags_.write(
        packet.set, packet.line, packet.mask, packet.bytes, 0, packet.evict_first, eviction);
    write_to_dram(packet.line, written.forward, Packet::nobody, now);
  }
  return Wait::none;
}

L2Slice::Wait L2Slice::write(std::uint32_t id, Ticks now) {
  Packet& packet = packets_[id];
  const memory::CacheConfig& l2 = config_.memory.l2;
  const memory::SectorMask fetched =
      tags_.write_fetch(packet.set, packet.line, packet.mask, packet.bytes);
  if (fetched && mshrs_.is_full()) return wait_for_mshr();
  memory::SectorMask passed = 0;  // what is on its way, which a store that misses does not change
  bool has_targets = true;
  if (l2.write_miss == memory::WriteMiss::write_and_fetch) {
    mshrs_.for_each(packet.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
      if ((mask & packet.mask & ~fetched) == 0) return;
      passed |= mask & packet.mask & ~fetched;
      has_targets = has_targets && mshrs_.has_room(mshr);
    });
  }
  if (!has_targets) return wait_for_mshr();
  const bool needs_dram =
      fetched || passed || l2.write_policy == memory::WritePolicy::write_through ||
      !tags_.contains(packet.set, packet.line) || l2.write_miss == memory::WriteMiss::no_allocate;
  if (needs_dram && !channel_.has_room()) return Wait::dram;
  if (packet.needs_reply() && replies_.size() >= capacity_) return Wait::reply;
  if (l2.write_miss != memory::WriteMiss::no_allocate && !can_take(packet)) return Wait::dram;

  mshrs_.for_each(packet.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
    if (mask & passed) mshrs_.add_target(mshr, Packet::nobody);
  });
  memory::Cache::Eviction eviction;
  memory::Cache::WriteResult result =
      tags_.write(packet.set, packet.line, static_cast<memory::SectorMask>(packet.mask & ~passed),
                  packet.bytes, 0, packet.evict_first, eviction);
  result.hit |= passed;
  result.forward |= passed;
  memory::count_l2_write(totals_, packet.mask, result.hit);
  const memory::StoreRule stores{config_.gpu.l2_partial_write_turns};
  use_port(result.fetch == 0 && result.forward == 0 ? packet.mask : eviction.dirty,
           stores.counts_bytes() ? stores.turns(packet.mask, packet.bytes) : 1, now);
  // What it is acknowledged for: its own data in DRAM, or in L2 beside the rest of their sectors.
  const bool waits_for_line = result.fetch && result.forward == 0 && packet.needs_reply();
  const bool waits_for_write = result.forward && packet.needs_reply();
  packet.fetches = waits_for_line + waits_for_write;
  write_to_dram(packet.line, result.forward, waits_for_write ? id : Packet::nobody, now);
  if (result.fetch) fetch(packet, result.fetch, waits_for_line ? id : Packet::nobody, now);
  write_to_dram(eviction.line, eviction.dirty, Packet::nobody, now);
  last_write_ = now;
  return Wait::none;
}

void L2Slice::use_port(memory::SectorMask mask, double turns, Ticks now) {
  const std::uint32_t sectors = memory::count_sectors(mask);
  const Ticks time = turns > 1 ? port_time(sectors, turns) : port_times_[sectors];
  waited_for_.requests += time;
  port_.take(now, time);
}

Ticks L2Slice::port_time(std::uint32_t sectors, double turns) const {
  double cycles = config_.gpu.l2_slice_request_cycles * turns;
  if (config_.gpu.l2_slice_bytes_per_cycle > 0) {
    const std::uint32_t bytes = sectors * trace::sector_bytes;
    cycles = std::max(cycles, bytes / config_.gpu.l2_slice_bytes_per_cycle);
  }
  return static_cast<Ticks>(std::floor(cycles * static_cast<double>(clock_.period()) + 0.5));
}

void L2Slice::finish(std::uint32_t id, Ticks now) {
  if (!packets_[id].needs_reply()) return packets_.release(id);
  replies_.push(id);
  reply_network_.add(index_, now);
}

void L2Slice::fetch(const Packet& packet, memory::SectorMask mask, std::uint32_t target,
                    Ticks now) {
  const std::uint32_t mshr = mshrs_.allocate(packet.line, mask);
  mshrs_.add_target(mshr, target);
  if (reserves_) tags_.reserve(packet.set, packet.line);
  totals_[memory::Total::dram_read_sectors] += memory::count_sectors(mask);
  send_to_dram(packet.line, mask, mshr, Packet::nobody, now);
}

void L2Slice::write_to_dram(std::uint64_t line, memory::SectorMask mask, std::uint32_t packet,
                            Ticks now) {
  if (mask == 0) return;
  totals_[memory::Total::dram_write_sectors] += memory::count_sectors(mask);
  send_to_dram(line, mask, DramRequest::write, packet, now);
}

void L2Slice::send_to_dram(std::uint64_t line, memory::SectorMask mask, std::uint32_t mshr,
                           std::uint32_t packet, Ticks now) {
  channel_.add({index_, mshr, packet, memory::count_sectors(mask) * trace::sector_bytes,
                rows_.row_of(index_, line)},
               now);
}

}  // namespace warpstack::timing
