#include "timing/memory/dram.h"

#include <algorithm>

namespace warpstack::timing {

DramChannel::DramChannel(const TimingConfig& config, TrafficCounters& counters)
    : capacity_(config.gpu.dram_queue_entries +
                std::size_t{config.gpu.l2_miss_queue_entries} *
                    (config.memory.l2.slices / config.dram_channels)),
      choice_(config.gpu.dram_queue_entries),
      ticks_per_byte_numerator_(config.transfer_time(
          static_cast<double>(ticks_per_byte_denominator) * config.dram_channels,
          config.dram_bandwidth_gbs)),
      gpu_(config.gpu),
      latency_(to_ticks(config.gpu.dram_latency)),
      write_latency_(latency_),
      counters_(&counters),
      bus_(config.dram_clock()),
      banks_(config.gpu.dram_row_bytes > 0 ? config.gpu.dram_banks : 0),
      next_of_bank_(banks_.size(), never),
      group_free_(config.gpu.dram_bank_groups) {
  if (banks_.empty()) return;
  for (std::size_t b = 0; b < banks_.size(); ++b) {
    banks_[b].group = static_cast<std::uint32_t>(b % group_free_.size());
  }
  // An access to an idle bank takes dram_latency, the opening of its row included.
  latency_ = std::max<Ticks>(latency_ - cycles(gpu_.dram_trcd), 0);
  const std::int64_t sooner = std::int64_t{gpu_.dram_cl} - gpu_.dram_wl;
  write_latency_ = std::max<Ticks>(latency_ - cycles(sooner), 0);
  if (gpu_.dram_trefi > 0) next_refresh_ = cycles(gpu_.dram_trefi);
}

void DramChannel::add(const DramRequest& request, Ticks now) {
  ++queued_;
  const Ticks edge = bus_.clock().at_or_after(now);
  if (!banks_.empty() && choosing_ < choice_) {
    offer(request);
    next_ = std::min(next_, edge);
    return;
  }
  queue_.push_back(request);
  if (!banks_.empty()) return;
  if (queue_.size() > 1) return;
  next_ = std::min(next_, bus_.is_free(edge) ? edge : bus_.next_edge(edge));
}

void DramChannel::offer(const DramRequest& request) {
  const std::size_t b = request.row % banks_.size();
  Bank& bank = banks_[b];
  if (bank.bytes_left == 0 && bank.waiting.empty()) wants_work_.push_back(b);
  bank.waiting.push_back(request);
  ++choosing_;
}

[[gnu::always_inline]] inline Ticks DramChannel::earliest(std::size_t b) const {
  const Bank& bank = banks_[b];
  if (!bank.is_open) return std::max(bank.activate, activate_);
  if (bank.row != bank.current.row) return bank.precharge;
  const bool is_write = bank.current.mshr == DramRequest::write;
  // The bus may take the next burst when it gets free before the next edge.
  const Ticks bus_free = bus_.busy_until() - bus_.clock().period() + 1;
  return std::max({bus_free, is_write ? bank.write : bank.read, is_write ? write_ : read_,
                   group_free_[bank.group]});
}

inline void DramChannel::look_ahead(std::size_t b) {
  next_of_bank_[b] = banks_[b].bytes_left > 0 ? earliest(b) : never;
}

bool DramChannel::issue_command(DramRequest& request) {
  const Ticks edge = next_;
  refresh(edge);
  give_work();
  const std::size_t count = banks_.size();
  bool has_burst = false;
  bool is_last = false;
  bool has_changed_row = false;
  // A row command moves the turn, so that the pass goes on from there.
  for (std::size_t i = 0; i < count && !has_burst; ++i) {
    const std::size_t b = turn_ + i < count ? turn_ + i : turn_ + i - count;
    if (next_of_bank_[b] > edge) continue;
    Bank& bank = banks_[b];
    if (wants_burst(bank)) {
      transfer_burst(b, edge);
      has_burst = true;
      is_last = bank.bytes_left == 0;
      request = bank.current;
      if (is_last && !bank.waiting.empty()) wants_work_.push_back(b);
    } else if (!has_changed_row) {
      change_row(b, edge);
      look_ahead(b);
      has_changed_row = true;
    }
  }
  // A command changes when the other banks can take theirs.
  Ticks next = wants_work_.empty() ? never : edge;
  for (std::size_t b = 0; b < count; ++b) {
    if (next_of_bank_[b] == never) continue;
    look_ahead(b);
    next = std::min(next, next_of_bank_[b]);
  }
  // A refresh closes rows, so that a bank that waits to use or to close its row opens one instead.
  if (next != never) next = std::min(next, next_refresh_);
  next_ =
      next == never ? never : std::max(bus_.clock().after(edge), bus_.clock().at_or_after(next));
  return is_last;
}

void DramChannel::give_work() {
  if (!wants_work_.empty()) {
    const auto distance = [&](std::size_t b) {
      return b >= turn_ ? b - turn_ : b + banks_.size() - turn_;
    };
    const auto first = std::ranges::min_element(wants_work_, {}, distance);
    const std::size_t b = *first;
    wants_work_.erase(first);
    turn_ = turn_ + 1 == banks_.size() ? 0 : turn_ + 1;
    Bank& bank = banks_[b];
    auto chosen = bank.waiting.begin();
    if (bank.is_open) {
      const auto hit = std::ranges::find(bank.waiting, bank.row, &DramRequest::row);
      if (hit != bank.waiting.end()) chosen = hit;
    }
    bank.current = *chosen;
    bank.bytes_left = chosen->bytes;
    bank.since = next_;
    bank.has_changed_row = false;
    bank.waiting.erase(chosen);
    --queued_;
    --choosing_;
    look_ahead(b);
  }
  for (; !queue_.empty() && choosing_ < choice_; queue_.pop_front()) offer(queue_.front());
}

void DramChannel::count_wait(Bank& bank, Ticks edge) {
  const Ticks waited = edge - std::max(bus_.busy_until(), bank.since);
  if (waited > 0) {
    const bool is_write = bank.current.mshr == DramRequest::write;
    const Ticks turn = is_write ? write_ : read_;
    const bool is_for_row = bank.has_changed_row && (is_write ? bank.write : bank.read) >= turn;
    const bool is_for_turn = turn > bus_.busy_until();
    (is_for_row    ? waited_for_.rows
     : is_for_turn ? waited_for_.turnarounds
                   : waited_for_.transfers) += waited;
  }
  bank.has_changed_row = false;
}

void DramChannel::transfer_burst(std::size_t b, Ticks edge) {
  Bank& bank = banks_[b];
  count_wait(bank, edge);
  const bool is_write = bank.current.mshr == DramRequest::write;
  const std::uint32_t bytes = std::min(bank.bytes_left, gpu_.dram_burst_bytes);
  bank.bytes_left -= bytes;
  const Ticks burst = transfer_time(bytes);
  bus_.take(edge, burst);
  waited_for_.transfers += burst;
  last_transfer_ = bus_.busy_until();
  // At another bandwidth, commands of a bank group are as far apart in proportion.
  group_free_[bank.group] =
      edge + transfer_time(gpu_.dram_burst_bytes) * gpu_.dram_tccdl / std::max(gpu_.dram_tccd, 1u);
  if (is_write) {
    read_ = edge + cycles(gpu_.dram_wl + gpu_.dram_twtr) + burst;
    bank.precharge = std::max(bank.precharge, edge + cycles(gpu_.dram_wl + gpu_.dram_twr) + burst);
  } else {
    const std::int64_t turn = std::int64_t{gpu_.dram_cl} + 2 - gpu_.dram_wl;
    write_ = edge + cycles(std::max<std::int64_t>(turn, 0)) + burst;
    bank.precharge = std::max(bank.precharge, edge + cycles(gpu_.dram_trtp));
  }
}

void DramChannel::change_row(std::size_t b, Ticks edge) {
  Bank& bank = banks_[b];
  turn_ = b + 1 == banks_.size() ? 0 : b + 1;
  bank.has_changed_row = true;
  if (bank.is_open) {
    bank.is_open = false;
    bank.activate = std::max(bank.activate, edge + cycles(gpu_.dram_trp));
    return;
  }
  ++counters_->dram_row_misses;
  bank.is_open = true;
  bank.row = bank.current.row;
  activate_ = edge + cycles(gpu_.dram_trrd);
  bank.read = edge + cycles(gpu_.dram_trcd);
  // A write's data come later than its command.
  const std::int64_t write = std::int64_t{gpu_.dram_trcd} - gpu_.dram_wl - 1;
  bank.write = edge + cycles(std::max<std::int64_t>(write, 0));
  bank.precharge = edge + cycles(gpu_.dram_tras);
  bank.activate = edge + cycles(std::int64_t{gpu_.dram_tras} + gpu_.dram_trp);
}

void DramChannel::refresh(Ticks edge) {
  // What no request noticed costs nobody.
  while (next_refresh_ <= edge) {
    const Ticks end = next_refresh_ + cycles(gpu_.dram_trfc);
    for (Bank& bank : banks_) {
      bank.is_open = false;
      bank.activate = std::max(bank.activate, end);
    }
    for (std::size_t b = 0; b < banks_.size(); ++b) look_ahead(b);
    next_refresh_ += cycles(gpu_.dram_trefi);
  }
}

}  // namespace warpstack::timing
