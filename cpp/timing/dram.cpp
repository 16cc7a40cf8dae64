#include "timing/dram.h"

#include <algorithm>

namespace warpstack::timing {

DramChannel::DramChannel(const TimingConfig& config, TrafficCounters& counters)
    : capacity_(config.dram_queue_entries),
      ticks_per_byte_numerator_(config.transfer_time(
          static_cast<double>(ticks_per_byte_denominator) * config.dram_channels,
          config.dram_bandwidth_gbs)),
      has_rows_(config.dram_row_bytes > 0),
      row_miss_(to_ticks(config.dram_row_miss_cycles)),
      counters_(&counters),
      bus_(config.dram_clock()),
      banks_(has_rows_ ? config.dram_banks : 1) {}

void DramChannel::add(const DramRequest& request, Ticks now) {
  queue_.push_back(request);
  // With rows, each new request may open one at once.
  if (queue_.size() > 1 && !has_rows_) return;
  const Ticks edge = bus_.clock().at_or_after(now);
  next_ = std::min(next_, has_rows_ || bus_.is_free(edge) ? edge : bus_.next_edge(edge));
}

std::size_t DramChannel::first_ready(Ticks edge) const {
  if (!has_rows_) return 0;
  std::size_t i = 0;
  while (i < queue_.size() &&
         !(bank_of(queue_[i]).row == queue_[i].row && bank_of(queue_[i]).ready <= edge)) {
    ++i;
  }
  return i;
}

void DramChannel::open_rows(Ticks edge) {
  for (const DramRequest& request : queue_) {
    Bank& bank = banks_[request.row % banks_.size()];
    const bool is_wanted = std::ranges::any_of(
        queue_, [&](const DramRequest& other) { return other.row == bank.row; });
    if (is_wanted) continue;
    bank.row = request.row;
    bank.ready = edge + row_miss_;
    ++counters_->dram_row_misses;
  }
}

Ticks DramChannel::next_ready_edge(Ticks edge) const {
  if (!has_rows_) return 0;
  Ticks ready = never;
  for (const DramRequest& request : queue_) {
    // A row that opens later does so after another one has been used.
    if (bank_of(request).row == request.row) ready = std::min(ready, bank_of(request).ready);
  }
  return std::max(bus_.clock().after(edge), bus_.clock().at_or_after(ready));
}

}  // namespace warpstack::timing
