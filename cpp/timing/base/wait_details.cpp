#include "timing/base/wait_details.h"

#include <algorithm>
#include <array>

namespace warpstack::timing {
namespace {

/// What slots of a component are lost to where nothing was seen to wait.
constexpr std::array<StackDetail, num_values<StackComponent>> usual_detail = {
    StackDetail::idle,       StackDetail::shared_memory, StackDetail::load_store_unit,
    StackDetail::l2_latency, StackDetail::dram_latency,  StackDetail::mshrs,
    StackDetail::network,    StackDetail::dram_bandwidth};

/// Divides slots of a component among its details as `waited` is, in whole numbers.
void divide(StackComponent component, std::int64_t slots, const WaitedFor& waited,
            DetailedStack<std::int64_t>& result) {
  if (slots == 0) return;
  Ticks total = 0;
  StackDetail largest = usual_detail[static_cast<std::size_t>(component)];
  for (const StackDetail detail : values_of<StackDetail>) {
    if (component_of(detail) != component) continue;
    total += waited[detail];
    if (waited[detail] > waited[largest]) largest = detail;
  }
  std::int64_t rest = slots;
  for (const StackDetail detail : values_of<StackDetail>) {
    if (component_of(detail) != component || total == 0) continue;
    const auto part =
        static_cast<std::int64_t>(static_cast<__int128>(slots) * waited[detail] / total);
    result[detail] += part;
    rest -= part;
  }
  result[largest] += rest;
}

/// `amount` times part / whole.
Ticks share(Ticks amount, Ticks part, Ticks whole) {
  if (whole <= 0) return 0;
  return static_cast<Ticks>(static_cast<__int128>(amount) * part / whole);
}

}  // namespace

CpiStack<std::int64_t> LostSlots::stack() const {
  CpiStack<std::int64_t> result = components_of(known);
  result[StackComponent::noc] += of_requests;
  result += of_loads;
  return result;
}

DetailedStack<std::int64_t> attribute(const LostSlots& slots, const WaitedFor& waited,
                                      const WaitedFor& requests) {
  DetailedStack<std::int64_t> result = slots.known;
  divide(StackComponent::noc, slots.of_requests, requests, result);
  for (const StackComponent component : values_of<StackComponent>) {
    divide(component, slots.of_loads[component], waited, result);
  }
  return result;
}

void NocWaits::add_to(WaitedFor& waited, WaitedFor& requests, const std::vector<SliceWaits>& slices,
                      const std::vector<ChannelWaits>& channels) const {
  // What the first requests of the queues waited for, those behind them waited for, too.
  WaitedFor heads;
  heads[StackDetail::send_port] = send_port_;
  heads[StackDetail::network] = network_;
  Ticks late = 0;
  Ticks in_channels = 0;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const SliceWaits& slice = slices[s];
    const Ticks busy = slice.requests + slice.atomics;
    const Ticks for_dram = slice.for_mshr + slice.for_channel;
    const Ticks all = busy + for_dram + slice.for_reply;
    const Ticks atomics = share(for_slice_[s], slice.atomics, all);
    const Ticks backlog = share(for_slice_[s], for_dram, all);
    const Ticks replies = share(for_slice_[s], slice.for_reply, all);
    heads[StackDetail::atomics] += atomics;
    heads[StackDetail::dram_backlog] += backlog;
    heads[StackDetail::network] += replies;
    heads[StackDetail::slices] += for_slice_[s] - atomics - backlog - replies;

    const Ticks queued = std::max<Ticks>(slice.queued, 0);
    const Ticks behind_atomics = share(queued, slice.atomics, busy);
    waited[StackDetail::l2_atomics] += behind_atomics;
    waited[StackDetail::l2_queue] += queued - behind_atomics;
    const Ticks for_mshrs = share(slice.queued_for_dram, slice.for_mshr, for_dram);
    waited[StackDetail::l2_mshrs] += for_mshrs;
    in_channels += slice.in_channel + slice.queued_for_dram - for_mshrs;
    late += slice.late;
  }
  waited[StackDetail::l2_latency] += l2_latency_;

  ChannelWaits bus;
  for (const ChannelWaits& channel : channels) {
    bus.transfers += channel.transfers;
    bus.rows += channel.rows;
    bus.turnarounds += channel.turnarounds;
  }
  const Ticks on_bus = bus.transfers + bus.rows + bus.turnarounds;
  const Ticks rows = share(in_channels, bus.rows, on_bus);
  const Ticks turnarounds = share(in_channels, bus.turnarounds, on_bus);
  waited[StackDetail::dram_rows] += rows;
  waited[StackDetail::dram_turnarounds] += turnarounds;
  waited[StackDetail::dram_bandwidth] += in_channels - rows - turnarounds;

  requests += heads;
  Ticks of_heads = 0;
  for (const Ticks time : heads) of_heads += time;
  for (const StackDetail detail : values_of<StackDetail>) {
    waited[detail] += share(requests_, heads[detail], of_heads);
  }
  waited[StackDetail::receive_port] += receive_port_;
  // Between a slice and its NoC: in a crossbar one reply leaves a slice at a time.
  waited[is_crossbar_ ? StackDetail::slices : StackDetail::network] += replies_ + late;
}

}  // namespace warpstack::timing
