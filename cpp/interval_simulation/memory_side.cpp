#include "interval_simulation/memory_side.h"

#include <algorithm>

#include "memory/cache/atomic_turns.h"
#include "memory/cache/count.h"
#include "memory/cache/store_turns.h"

namespace warpstack::interval_simulation {

MemorySide::MemorySide(const Machine& machine, memory::Cache& l2, std::uint32_t sms,
                       std::function<void(std::uint32_t, Time)> departed)
    : machine_(machine),
      l2_(l2),
      departed_(std::move(departed)),
      sharers_(l2.config().slices / machine.channels),
      rows_(machine.gpu, l2.config(), machine.channels),
      senders_(sms),
      slices_(l2.config().slices),
      under_way_(l2.config().slices,
                 LinesUnderWay<std::uint32_t>(machine.gpu.l2_mshrs, machine.gpu.l2_mshr_targets)),
      channels_(machine.channels),
      reply_port_free_(sms),
      replies_(sms),
      dram_latency_(machine.gpu.dram_latency),
      write_latency_(machine.gpu.dram_latency) {
  bytes_.emplace_back();
  const gpu::Gpu& gpu = machine.gpu;
  if (gpu.dram_row_bytes == 0) return;
  for (Channel& channel : channels_) {
    channel.banks.resize(gpu.dram_banks);
    channel.group_free.resize(gpu.dram_bank_groups);
    channel.next_refresh = gpu.dram_trefi > 0 ? gpu.dram_trefi * machine.dram_period : never;
  }
  // An access to an idle bank takes dram_latency, the opening of its row included.
  const double period = machine.dram_period;
  dram_latency_ = std::max(dram_latency_ - gpu.dram_trcd * period, 0.0);
  write_latency_ =
      std::max(dram_latency_ - (static_cast<double>(gpu.dram_cl) - gpu.dram_wl) * period, 0.0);
}

void MemorySide::take(std::uint32_t sm, Requests& sent) {
  for (const Request& request : sent.requests) send(sm, request, sent.bytes);
  sent.requests.clear();
  sent.bytes.clear();
}

void MemorySide::send(std::uint32_t sm, const Request& request,
                      const std::vector<memory::ByteMasks>& bytes) {
  l2_.prefetch(request.set, request.line);
  std::uint32_t id = 0;
  if (free_packets_.empty()) {
    id = static_cast<std::uint32_t>(packets_.size());
    packets_.emplace_back();
  } else {
    id = free_packets_.back();
    free_packets_.pop_back();
  }
  Packet& packet = packets_[id];
  packet.request = request;
  packet.sm = sm;
  packet.fetches = 0;
  packet.noc = packet.queue = packet.dram = 0;
  if (request.kind != Request::Kind::read) {
    std::uint32_t& place = packet.request.bytes;
    if (free_bytes_.empty()) {
      place = static_cast<std::uint32_t>(bytes_.size());
      bytes_.emplace_back();
    } else {
      place = free_bytes_.back();
      free_bytes_.pop_back();
    }
    bytes_[place] = bytes[request.bytes];
  }
  senders_[sm].waiting.push(id);
  wake_sender(sm, 0);
}

void MemorySide::release(std::uint32_t id) {
  if (packets_[id].request.kind != Request::Kind::read) {
    free_bytes_.push_back(packets_[id].request.bytes);
  }
  free_packets_.push_back(id);
}

void MemorySide::wake_sender(std::uint32_t sm, Time now) {
  Sender& sender = senders_[sm];
  if (sender.is_queued || sender.waiting.empty()) return;
  sender.is_queued = true;
  if (sender.waiting.size() > 1) __builtin_prefetch(&packets_[sender.waiting[1]]);
  const Time sent = packets_[sender.waiting.front()].request.sent;
  const Time port = sender.port_free - machine_.l2_period;
  schedule(std::max({now, sent, port}), Kind::sender, sm);
}

void MemorySide::run(Cycle end) {
  events_.run(
      end,
      [this](Time now, const Event& event) {
        switch (event.kind) {
          case Kind::sender:
            waiting_senders_.push(event.index);
            if (!requests_are_awake_) step_requests(now);
            return;
          case Kind::requests:
            requests_are_awake_ = false;
            return step_requests(now);
          case Kind::slice:
            slices_[event.index].is_awake = false;
            return take_turn(event.index, now);
          case Kind::channel:
            channels_[event.index].awake = never;
            return step_channel(event.index, now);
          case Kind::bank:
            bank_is_ready(channels_[event.index], event.data);
            return step_channel(event.index, now);
          case Kind::fill:
            return fill(event.index, event.data, now);
          case Kind::write:
            return take_transfer(event.data, now - write_latency_, now);
          case Kind::replies:
            replies_are_awake_ = false;
            return step_replies(now);
          case Kind::reply:
            return send_reply(event.data, now);
        }
      },
      [this](const Event& event) { prefetch(event); });
}

void MemorySide::prefetch(const Event& event) const {
  switch (event.kind) {
    case Kind::sender:
      return __builtin_prefetch(&packets_[senders_[event.index].waiting.front()]);
    case Kind::slice: {
      const Fifo<std::uint32_t>& requests = slices_[event.index].requests;
      if (!requests.empty()) __builtin_prefetch(&packets_[requests.front()]);
      return;
    }
    case Kind::fill:
      return under_way_[event.index].prefetch(event.data);
    case Kind::write:
    case Kind::reply:
      return __builtin_prefetch(&packets_[event.data]);
    default:
      return;
  }
}

void MemorySide::step_requests(Time now) {
  while (!waiting_senders_.empty()) {
    // The NoC serves one after the other, each when it gets free or up to a period before.
    const Time turn = requests_free_ - machine_.l2_period;
    if (turn > now) {
      requests_are_awake_ = true;
      schedule(turn, Kind::requests, 0);
      return;
    }
    const std::uint32_t sm = waiting_senders_.front();
    waiting_senders_.pop();
    grant(sm, now);
  }
}

void MemorySide::grant(std::uint32_t sm, Time now) {
  Sender& sender = senders_[sm];
  const std::uint32_t id = sender.waiting.front();
  Packet& packet = packets_[id];
  const std::uint32_t s = packet.request.slice;
  Slice& slice = slices_[s];
  if (slice.requests.size() >= machine_.gpu.l2_queue_entries) {
    slice.senders.push(sm);
    return;
  }
  if (machine_.is_crossbar) {
    const Time free = slice.request_port_free - machine_.l2_period;
    if (free > now) {
      schedule(free, Kind::sender, sm);
      return;
    }
    slice.request_port_free =
        std::max(slice.request_port_free, now) + machine_.slice_request_cycles;
  }
  const double bytes = packet.request.bytes_there(machine_.gpu);
  requests_free_ = std::max(requests_free_, now) + bytes * machine_.noc_cycles_per_byte;
  sender.port_free = std::max(sender.port_free, now) + bytes * machine_.port_cycles_per_byte;
  packet.noc += static_cast<float>(std::max(now - packet.request.sent, 0.0));
  packet.request.sent = now;
  sender.waiting.pop();
  sender.is_queued = false;
  slice.requests.push(id);
  l2_.prefetch(packet.request.set, packet.request.line);
  if (slice.requests.size() == 1) wake_slice(s, now);
  departed_(sm, now);
  wake_sender(sm, now);
}

void MemorySide::wake_slice(std::uint32_t s, Time now) {
  Slice& slice = slices_[s];
  if (slice.is_awake || slice.requests.empty()) return;
  const Time turn = slice.free - machine_.l2_period;
  if (turn <= now) return take_turn(s, now);
  call_slice(s, turn);
}

void MemorySide::call_slice(std::uint32_t s, Time at) {
  if (slices_[s].is_awake) return;
  slices_[s].is_awake = true;
  schedule(at, Kind::slice, s);
}

void MemorySide::take_turn(std::uint32_t s, Time now) {
  Slice& slice = slices_[s];
  while (!slice.requests.empty()) {
    const Time turn = slice.free - machine_.l2_period;
    if (turn > now) return call_slice(s, turn);
    const Wait wait = serve(s, slice.requests.front(), now);
    if (wait == Wait::reply) {
      slice.waits_for_reply = true;
      return;
    }
    if (wait == Wait::dram) {
      std::vector<std::uint32_t>& waiting = channels_[channel_of(s)].slices;
      if (std::ranges::find(waiting, s) == waiting.end()) waiting.push_back(s);
      return;
    }
    slice.requests.pop();
    if (!slice.senders.empty()) {
      const std::uint32_t sm = slice.senders.front();
      slice.senders.pop();
      schedule(now, Kind::sender, sm);
    }
  }
}

MemorySide::Wait MemorySide::serve(std::uint32_t s, std::uint32_t id, Time now) {
  const bool is_write = packets_[id].request.kind == Request::Kind::write;
  const Wait wait = is_write ? write(s, id, now) : read(s, id, now);
  if (wait != Wait::none) return wait;
  packets_[id].request.sent = now;
  if (packets_[id].fetches == 0) finish(id, now);
  return Wait::none;
}

MemorySide::Wait MemorySide::read(std::uint32_t s, std::uint32_t id, Time now) {
  const Request& request = packets_[id].request;
  LinesUnderWay<std::uint32_t>& mshrs = under_way_[s];
  const bool modifies = request.kind != Request::Kind::read;
  memory::Cache::Finding found = l2_.look(request.set, request.line);
  const memory::SectorMask fetched = l2_.missing(found, request.mask);
  bool has_targets = true;
  std::uint32_t waits_for = 0;
  if (mshrs.size() > 0)
    mshrs.for_each(request.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
      if ((mask & request.mask & ~fetched) == 0) return;
      ++waits_for;
      has_targets = has_targets && mshrs.has_room(mshr);
    });
  if (!has_targets || (fetched && mshrs.is_full())) return Wait::dram;
  const bool writes_through =
      modifies && machine_.memory.l2.write_policy == memory::WritePolicy::write_through;
  if ((fetched || writes_through) && !has_room(channels_[channel_of(s)])) return Wait::dram;
  const bool needs_reply = request.owner != Request::nobody;
  if (!fetched && waits_for == 0 && needs_reply &&
      slices_[s].replies >= machine_.gpu.l2_queue_entries) {
    return Wait::reply;
  }
  if (fetched && machine_.reserves && !l2_.make_room(request.set, request.line, found)) {
    return Wait::dram;
  }
  if (waits_for > 0)
    mshrs.for_each(request.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
      if (mask & request.mask & ~fetched) mshrs.add_target(mshr, id);
    });
  packets_[id].fetches = waits_for + (fetched != 0);
  memory::Cache::Eviction eviction;
  const memory::Cache::ReadResult result =
      l2_.read(request.set, request.line, request.mask, found, request.evict_first, eviction);
  if (modifies) {
    memory::count_l2_atomic(totals_, request.mask, result.hit);
    last_write_ = std::max(last_write_, now);
  } else {
    memory::count_l2_read(totals_, request.mask, result.hit);
  }
  const memory::AtomicRule atomics{machine_.memory.atomics_per_lane,
                                   machine_.memory.atomic_lane_turns};
  use_slice(s, packets_[id].fetches == 0 ? request.mask : eviction.dirty,
            atomics.turns_of_request(request.lanes), now);
  if (fetched) fetch(s, request.line, request.set, fetched, id, now);
  write_to_dram(s, eviction.line, eviction.dirty, Request::nobody, now);
  if (modifies) {
    const memory::Cache::WriteResult written =
        l2_.write(request.set, request.line, request.mask, bytes_[request.bytes], 0,
                  request.evict_first, eviction);
    write_to_dram(s, request.line, written.forward, Request::nobody, now);
  }
  return Wait::none;
}

MemorySide::Wait MemorySide::write(std::uint32_t s, std::uint32_t id, Time now) {
  const Request& request = packets_[id].request;
  const memory::CacheConfig& l2 = machine_.memory.l2;
  LinesUnderWay<std::uint32_t>& mshrs = under_way_[s];
  const bool needs_reply = request.owner != Request::nobody;
  const memory::SectorMask fetched =
      l2_.write_fetch(request.set, request.line, request.mask, bytes_[request.bytes]);
  if (fetched && mshrs.is_full()) return Wait::dram;
  memory::SectorMask passed = 0;  // what is on its way, which a store that misses does not change
  bool has_targets = true;
  if (l2.write_miss == memory::WriteMiss::write_and_fetch) {
    mshrs.for_each(request.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
      if ((mask & request.mask & ~fetched) == 0) return;
      passed |= mask & request.mask & ~fetched;
      has_targets = has_targets && mshrs.has_room(mshr);
    });
  }
  if (!has_targets) return Wait::dram;
  const bool needs_dram =
      fetched || passed || l2.write_policy == memory::WritePolicy::write_through ||
      !l2_.contains(request.set, request.line) || l2.write_miss == memory::WriteMiss::no_allocate;
  if (needs_dram && !has_room(channels_[channel_of(s)])) return Wait::dram;
  if (needs_reply && slices_[s].replies >= machine_.gpu.l2_queue_entries) return Wait::reply;
  if (l2.write_miss != memory::WriteMiss::no_allocate && !can_take(request)) return Wait::dram;
  if (passed) {
    mshrs.for_each(request.line, [&](std::uint32_t mshr, memory::SectorMask mask) {
      if (mask & passed) mshrs.add_target(mshr, Request::nobody);
    });
  }
  memory::Cache::Eviction eviction;
  memory::Cache::WriteResult result =
      l2_.write(request.set, request.line, static_cast<memory::SectorMask>(request.mask & ~passed),
                bytes_[request.bytes], 0, request.evict_first, eviction);
  result.hit |= passed;
  result.forward |= passed;
  memory::count_l2_write(totals_, request.mask, result.hit);
  const memory::StoreRule stores{machine_.memory.partial_write_turns};
  use_slice(s, result.fetch == 0 && result.forward == 0 ? request.mask : eviction.dirty,
            stores.counts_bytes() ? stores.turns(request.mask, bytes_[request.bytes]) : 1, now);
  // What it is acknowledged for: its own data in DRAM, or in L2 beside the rest of their sectors.
  const bool waits_for_line = result.fetch && result.forward == 0 && needs_reply;
  const bool waits_for_data = result.forward != 0 && needs_reply;
  packets_[id].fetches = std::uint32_t{waits_for_line} + std::uint32_t{waits_for_data};
  write_to_dram(s, request.line, result.forward, waits_for_data ? id : Request::nobody, now);
  if (result.fetch) {
    fetch(s, request.line, request.set, result.fetch, waits_for_line ? id : Request::nobody, now);
  }
  write_to_dram(s, eviction.line, eviction.dirty, Request::nobody, now);
  last_write_ = std::max(last_write_, now);
  return Wait::none;
}

void MemorySide::use_slice(std::uint32_t s, memory::SectorMask mask, double turns, Time now) {
  double cycles = machine_.slice_request_cycles * turns;
  cycles = std::max(cycles, memory::count_sectors(mask) * static_cast<double>(trace::sector_bytes) *
                                machine_.slice_cycles_per_byte);
  slices_[s].free = std::max(slices_[s].free, now) + cycles;
}

void MemorySide::fetch(std::uint32_t s, std::uint64_t line, std::uint32_t set,
                       memory::SectorMask mask, std::uint32_t target, Time now) {
  const std::uint32_t mshr = under_way_[s].allocate(line, mask, target);
  if (machine_.reserves) l2_.reserve(set, line);
  totals_[memory::Total::dram_read_sectors] += memory::count_sectors(mask);
  add_transfer({s, mshr, Request::nobody,
                memory::count_sectors(mask) * static_cast<std::uint32_t>(trace::sector_bytes),
                rows_.row_of(s, line)},
               now);
}

void MemorySide::write_to_dram(std::uint32_t s, std::uint64_t line, memory::SectorMask mask,
                               std::uint32_t packet, Time now) {
  if (mask == 0) return;
  totals_[memory::Total::dram_write_sectors] += memory::count_sectors(mask);
  add_transfer({s, Transfer::write, packet,
                memory::count_sectors(mask) * static_cast<std::uint32_t>(trace::sector_bytes),
                rows_.row_of(s, line)},
               now);
}

void MemorySide::add_transfer(const Transfer& transfer, Time now) {
  const std::uint32_t c = channel_of(transfer.slice);
  Channel& channel = channels_[c];
  ++channel.queued;
  if (!channel.banks.empty()) {
    if (channel.choosing < machine_.gpu.dram_queue_entries) return offer(c, transfer, now);
    channel.requests.push(transfer);
    return;
  }
  channel.requests.push(transfer);
  if (channel.awake == never) step_channel(c, now);
}

void MemorySide::offer(std::uint32_t c, const Transfer& transfer, Time now) {
  Channel& channel = channels_[c];
  const auto b = static_cast<std::uint32_t>(transfer.row % channel.banks.size());
  channel.banks[b].waiting.push_back(transfer);
  ++channel.choosing;
  if (!channel.banks[b].is_busy) give_work(c, b, now);
}

void MemorySide::step_channel(std::uint32_t c, Time now) {
  Channel& channel = channels_[c];
  const bool has_banks = !channel.banks.empty();
  const std::uint32_t before = channel.queued;
  while (has_banks ? !channel.ready_banks.empty() : !channel.requests.empty()) {
    Time start = channel.free - machine_.dram_period;
    if (start > now && start >= channel.awake) break;  // it is looked at again before
    auto chosen = channel.ready_banks.begin();
    if (has_banks) {
      // Reads and writes do not wait for one another.
      Time first = first_transfer(channel, *chosen);
      for (auto other = chosen + 1; other != channel.ready_banks.end(); ++other) {
        const Time at = first_transfer(channel, *other);
        if (at >= first) continue;
        first = at;
        chosen = other;
      }
      start = std::max(start, first);
    }
    if (start > now) {
      if (start < channel.awake) {
        channel.awake = start;
        schedule(start, Kind::channel, c);
      }
      break;
    }
    if (has_banks) {
      const ReadyBank ready = *chosen;
      channel.ready_banks.erase(chosen);
      transfer_of_bank(c, ready, now);
      continue;
    }
    const Transfer transfer = channel.requests.front();
    channel.requests.pop();
    --channel.queued;
    channel.free = std::max(channel.free, now) + transfer.bytes * machine_.dram_cycles_per_byte;
    last_transfer_ = std::max(last_transfer_, channel.free);
    transferred(transfer, now);
  }
  if (channel.queued < before && !channel.slices.empty()) {
    std::vector<std::uint32_t> waiting;
    waiting.swap(channel.slices);
    for (const std::uint32_t s : waiting) wake_slice(s, now);
  }
}

void MemorySide::refresh(Channel& channel, Time now) const {
  const gpu::Gpu& gpu = machine_.gpu;
  const double period = machine_.dram_period;
  for (; channel.next_refresh <= now; channel.next_refresh += gpu.dram_trefi * period) {
    const Time end = channel.next_refresh + gpu.dram_trfc * period;
    for (Bank& bank : channel.banks) {
      bank.is_open = false;
      bank.activate = std::max(bank.activate, end);
    }
    // Who has its row open already opens it again.
    channel.read = std::max(channel.read, end + gpu.dram_trcd * period);
    channel.write = std::max(channel.write, end + gpu.dram_trcd * period);
  }
}

void MemorySide::give_work(std::uint32_t c, std::uint32_t b, Time now) {
  Channel& channel = channels_[c];
  Bank& bank = channel.banks[b];
  if (bank.waiting.empty()) {
    bank.is_busy = false;
    return;
  }
  const gpu::Gpu& gpu = machine_.gpu;
  const double period = machine_.dram_period;
  refresh(channel, now);
  auto chosen = bank.waiting.begin();
  if (bank.is_open) {
    const auto hit = std::ranges::find(bank.waiting, bank.row, &Transfer::row);
    if (hit != bank.waiting.end()) chosen = hit;
  }
  bank.current = *chosen;
  bank.waiting.erase(chosen);
  bank.is_busy = true;
  --channel.queued;
  --channel.choosing;
  Time ready = now;
  if (!bank.is_open || bank.row != bank.current.row) {
    Time activate = std::max({now, bank.activate, channel.activate});
    if (bank.is_open) {
      const Time closed = std::max(now, bank.precharge) + gpu.dram_trp * period;
      activate = std::max(activate, closed);
    }
    channel.activate = activate + gpu.dram_trrd * period;
    bank.is_open = true;
    bank.row = bank.current.row;
    const bool is_write = bank.current.mshr == Transfer::write;
    const double to_column =
        is_write ? std::max(static_cast<double>(gpu.dram_trcd) - gpu.dram_wl - 1, 0.0)
                 : static_cast<double>(gpu.dram_trcd);
    ready = activate + to_column * period;
    bank.precharge = activate + gpu.dram_tras * period;
    bank.activate = activate + (gpu.dram_tras + gpu.dram_trp) * period;
  }
  schedule(ready, Kind::bank, c, b);
  while (!channel.requests.empty() && channel.choosing < gpu.dram_queue_entries) {
    const Transfer next = channel.requests.front();
    channel.requests.pop();
    offer(c, next, now);
  }
  if (!channel.slices.empty()) {
    std::vector<std::uint32_t> waiting;
    waiting.swap(channel.slices);
    for (const std::uint32_t s : waiting) call_slice(s, now);
  }
}

void MemorySide::bank_is_ready(Channel& channel, std::uint32_t bank) {
  channel.ready_banks.push_back({bank, static_cast<std::uint16_t>(bank % channel.group_free.size()),
                                 channel.banks[bank].current.mshr == Transfer::write});
}

void MemorySide::transfer_of_bank(std::uint32_t c, const ReadyBank& ready, Time now) {
  Channel& channel = channels_[c];
  const gpu::Gpu& gpu = machine_.gpu;
  const double period = machine_.dram_period;
  Bank& bank = channel.banks[ready.bank];
  refresh(channel, now);
  const bool is_write = ready.is_write;
  Time& group = channel.group_free[ready.group];
  const Time start = std::max({now, is_write ? channel.write : channel.read, group});
  const std::uint32_t bursts =
      (bank.current.bytes + gpu.dram_burst_bytes - 1) / gpu.dram_burst_bytes;
  const double burst = gpu.dram_burst_bytes * machine_.dram_cycles_per_byte;
  const double apart = std::max(burst, burst * gpu.dram_tccdl / std::max(gpu.dram_tccd, 1u));
  const Time last = start + (bursts - 1) * apart;
  group = last + apart;
  channel.free = std::max(channel.free, now) + bank.current.bytes * machine_.dram_cycles_per_byte;
  last_transfer_ = std::max(last_transfer_, last + burst);
  if (is_write) {
    channel.read = std::max(channel.read, last + (gpu.dram_wl + gpu.dram_twtr) * period + burst);
    bank.precharge = std::max(bank.precharge, last + (gpu.dram_wl + gpu.dram_twr) * period + burst);
  } else {
    const double turn = std::max(static_cast<double>(gpu.dram_cl) + 2 - gpu.dram_wl, 0.0);
    channel.write = std::max(channel.write, last + turn * period + burst);
    bank.precharge = std::max(bank.precharge, last + gpu.dram_trtp * period);
  }
  transferred(bank.current, last);
  give_work(c, ready.bank, std::max(now, last));
}

void MemorySide::transferred(const Transfer& transfer, Time start) {
  if (transfer.mshr != Transfer::write) {
    schedule(start + dram_latency_, Kind::fill, transfer.slice, transfer.mshr);
  } else if (transfer.packet != Request::nobody) {
    schedule(start + write_latency_, Kind::write, transfer.slice, transfer.packet);
  }
}

void MemorySide::take_transfer(std::uint32_t id, Time start, Time now) {
  Packet& packet = packets_[id];
  const Time queued = std::clamp(start - packet.request.sent, 0.0, now - packet.request.sent);
  packet.queue += static_cast<float>(queued);
  packet.dram += static_cast<float>(now - packet.request.sent - queued);
  packet.request.sent = now;
  if (--packet.fetches == 0) finish(id, now);
}

void MemorySide::fill(std::uint32_t s, std::uint32_t entry, Time now) {
  LinesUnderWay<std::uint32_t>& lines = under_way_[s];
  Time& port = slices_[s].fill_port_free;
  if (port - machine_.l2_period > now)
    return schedule(port - machine_.l2_period, Kind::fill, s, entry);
  const double bytes =
      memory::count_sectors(lines.mask(entry)) * static_cast<double>(trace::sector_bytes);
  port = std::max(port, now) + std::max(machine_.l2_period, bytes * machine_.slice_cycles_per_byte);
  lines.for_each_target(entry, [&](std::uint32_t id) {
    if (id != Request::nobody) take_transfer(id, now - dram_latency_, now);
  });
  if (machine_.reserves) {
    const std::uint64_t line = lines.line(entry);
    l2_.release(l2_.set_of(line), line);
  }
  lines.release(entry);
  // Who waits for a register or a place may go on.
  std::vector<std::uint32_t>& waiting = channels_[channel_of(s)].slices;
  if (waiting.empty()) return;
  if (const auto found = std::ranges::find(waiting, s); found != waiting.end()) {
    waiting.erase(found);
    wake_slice(s, now);
  }
}

void MemorySide::finish(std::uint32_t id, Time now) {
  Packet& packet = packets_[id];
  if (packet.request.owner == Request::nobody) return release(id);
  Slice& slice = slices_[packet.request.slice];
  ++slice.replies;
  if (machine_.is_crossbar) {
    const Time start = std::max(now, slice.reply_port_free - machine_.l2_period);
    slice.reply_port_free = std::max(slice.reply_port_free, start) + machine_.slice_request_cycles;
    if (start <= now) return send_reply(id, now);
    schedule(start, Kind::reply, 0, id);
    return;
  }
  waiting_replies_.push(id);
  if (!replies_are_awake_) step_replies(now);
}

void MemorySide::step_replies(Time now) {
  while (!waiting_replies_.empty()) {
    const Time turn = replies_free_ - machine_.l2_period;
    if (turn > now) {
      replies_are_awake_ = true;
      schedule(turn, Kind::replies, 0);
      return;
    }
    const std::uint32_t id = waiting_replies_.front();
    waiting_replies_.pop();
    send_reply(id, now);
  }
}

void MemorySide::send_reply(std::uint32_t id, Time now) {
  const Packet& packet = packets_[id];
  const double bytes = packet.request.bytes_back(machine_.gpu);
  replies_free_ = std::max(replies_free_, now) + bytes * machine_.noc_cycles_per_byte;
  // A reply that finds the port of its SM busy waits there, where it holds nobody up.
  Time& port = reply_port_free_[packet.sm];
  const Time sent = std::max(now, port);
  port = sent + bytes * machine_.port_cycles_per_byte;
  replies_[packet.sm].push(
      {sent + machine_.gpu.l2_latency - static_cast<double>(machine_.pipeline),
       packet.request.owner,
       packet.noc + static_cast<float>(std::max(sent - packet.request.sent, 0.0)), packet.queue,
       packet.dram});
  const std::uint32_t s = packet.request.slice;
  release(id);
  --slices_[s].replies;
  if (!slices_[s].waits_for_reply) return;
  slices_[s].waits_for_reply = false;
  call_slice(s, now);
}

}  // namespace warpstack::interval_simulation
