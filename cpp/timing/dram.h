#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "timing/packet.h"

namespace warpstack::timing {

/// A transfer between a slice of L2 and its DRAM channel.
struct DramRequest {
  static constexpr std::uint32_t write = ~std::uint32_t{0};

  std::uint32_t slice = 0;
  std::uint32_t mshr = write;  ///< of the slice, for a read
  std::uint32_t bytes = 0;
  std::uint64_t row = 0;  ///< counted over all banks of the channel
};

/// A DRAM channel: a queue and a data bus. With a row-buffer model, the oldest request whose row is
/// open goes first, and another row opens in a bank where no request wants the open one.
class DramChannel {
 public:
  DramChannel(const TimingConfig& config, TrafficCounters& counters);

  [[nodiscard]] bool has_room() const { return queue_.size() < capacity_; }
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }
  /// When it next has something to do.
  [[nodiscard]] Ticks next() const { return next_; }
  /// Appends a request at `now`; it may start at the first edge at or after that.
  void add(const DramRequest& request, Ticks now);

  /// At the edge next(): calls `start(request)` for each request whose transfer starts.
  template <typename Start>
  void step(Start start) {
    const Ticks edge = next_;
    while (bus_.is_free(edge)) {
      const std::size_t position = first_ready(edge);
      if (position == queue_.size()) break;
      const DramRequest request = queue_[position];
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(position));
      bus_.take(edge, request.bytes * ticks_per_byte_numerator_ / ticks_per_byte_denominator);
      ++(request.mshr == DramRequest::write ? counters_->dram_writes : counters_->dram_reads);
      start(request);
    }
    if (has_rows_) open_rows(edge);
    next_ = queue_.empty() ? never : std::max(bus_.next_edge(edge), next_ready_edge(edge));
  }

 private:
  struct Bank {
    std::uint64_t row = ~std::uint64_t{0};
    Ticks ready = 0;
  };

  /// Position of the request that goes first, or the queue's length.
  [[nodiscard]] std::size_t first_ready(Ticks edge) const;
  /// Opens rows that no bank has open.
  void open_rows(Ticks edge);
  /// The first edge after `edge` at which a request can go as far as its row is concerned.
  [[nodiscard]] Ticks next_ready_edge(Ticks edge) const;
  [[nodiscard]] const Bank& bank_of(const DramRequest& request) const {
    return banks_[request.row % banks_.size()];
  }

  // Ticks per byte times 2^10: a transfer's time is rounded to a tick once.
  static constexpr std::int64_t ticks_per_byte_denominator = 1024;

  std::size_t capacity_;
  std::int64_t ticks_per_byte_numerator_;
  bool has_rows_;
  Ticks row_miss_;
  TrafficCounters* counters_;
  Server bus_;
  std::deque<DramRequest> queue_;
  std::vector<Bank> banks_;
  Ticks next_ = never;
};

}  // namespace warpstack::timing
