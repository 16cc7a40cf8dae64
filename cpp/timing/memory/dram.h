#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "timing/base/wait_details.h"
#include "timing/memory/packet.h"

namespace warpstack::timing {

/// A transfer between a slice of L2 and its DRAM channel.
struct DramRequest {
  static constexpr std::uint32_t write = ~std::uint32_t{0};

  std::uint32_t slice = 0;
  std::uint32_t mshr = write;             ///< of the slice, for a read
  std::uint32_t packet = Packet::nobody;  ///< that waits until its data are written
  std::uint32_t bytes = 0;
  std::uint64_t row = 0;  ///< counted over all banks of the channel
};

/// A DRAM channel: a queue and a data bus. Without rows it serves its requests in order, each for
/// the time of its bytes at the channel's bandwidth. With rows it has banks, each of which works on
/// one request: the oldest one to its open row, or else the oldest one, of those in the queue; what
/// waits for room in it enters in order, after the banks have chosen. In each cycle of its clock
/// one bank gets a request, and the channel passes the banks in turn until it finds one that can
/// read or write a burst; the first one on the way that can open or close a row does so. The time
/// between two commands is that of the GPU.
class DramChannel {
 public:
  DramChannel(const TimingConfig& config, TrafficCounters& counters);

  [[nodiscard]] bool has_room() const { return queued_ < capacity_; }
  [[nodiscard]] std::size_t queued() const { return queued_; }
  /// Time from the transfer of a request, or of its last burst, until the slice has its data or
  /// knows that they are written.
  [[nodiscard]] Ticks latency(const DramRequest& request) const {
    return request.mshr == DramRequest::write ? write_latency_ : latency_;
  }
  /// When the last transfer ended, or -1.
  [[nodiscard]] Ticks last_transfer() const { return last_transfer_; }
  /// How long its bus was busy or waited, with rows.
  [[nodiscard]] const ChannelWaits& waits() const { return waited_for_; }
  /// When it next has something to do.
  [[nodiscard]] Ticks next() const { return next_; }
  /// Appends a request at `now`; it may start at the first edge at or after that.
  void add(const DramRequest& request, Ticks now);

  /// At the edge next(): calls `transferred(request)` for each request whose transfer starts, or,
  /// with rows, whose last burst does. Returns whether the queue has more room than before.
  template <typename Transferred>
  bool step(Transferred transferred) {
    const std::size_t before = queued_;
    if (banks_.empty()) {
      serve_in_order(transferred);
    } else if (DramRequest request; issue_command(request)) {
      count(request);
      transferred(request);
    }
    return queued_ < before;
  }

 private:
  struct Bank {
    std::vector<DramRequest> waiting;  ///< oldest first
    DramRequest current;
    std::uint32_t bytes_left = 0;  ///< of the current request; 0: there is none
    std::uint32_t group = 0;
    bool is_open = false;
    std::uint64_t row = 0;
    bool has_changed_row = false;  ///< for its current request, of which no burst has gone yet
    Ticks since = 0;               ///< it has that request
    // The earliest times of commands:
    Ticks read = 0;
    Ticks write = 0;
    Ticks activate = 0;
    Ticks precharge = 0;
  };

  template <typename Transferred>
  void serve_in_order(Transferred transferred) {
    const Ticks edge = next_;
    while (!queue_.empty() && bus_.is_free(edge)) {
      const DramRequest request = queue_.front();
      queue_.pop_front();
      --queued_;
      bus_.take(edge, transfer_time(request.bytes));
      count(request);
      last_transfer_ = bus_.busy_until();
      transferred(request);
    }
    next_ = queue_.empty() ? never : bus_.next_edge(edge);
  }
  /// Issues commands at the edge next(). Returns whether the last one of `request` is among them.
  bool issue_command(DramRequest& request);
  /// Gives the next bank that waits for it a request, and fills up the queue.
  void give_work();
  /// Puts a request into the queue from which banks choose.
  void offer(const DramRequest& request);
  /// Works out when a bank can take its next command: `never` without a request.
  void look_ahead(std::size_t bank);
  /// The earliest time of the next command of a bank that has a request.
  [[nodiscard]] Ticks earliest(std::size_t bank) const;
  void transfer_burst(std::size_t bank, Ticks edge);
  /// Counts the time for which the bus has waited for this burst.
  void count_wait(Bank& bank, Ticks edge);
  void change_row(std::size_t bank, Ticks edge);
  /// Makes all banks wait where the refresh before `edge` was not yet taken into account.
  void refresh(Ticks edge);
  [[nodiscard]] bool wants_burst(const Bank& bank) const {
    return bank.is_open && bank.row == bank.current.row;
  }
  void count(const DramRequest& request) {
    ++(request.mshr == DramRequest::write ? counters_->dram_writes : counters_->dram_reads);
  }
  [[nodiscard]] Ticks transfer_time(std::uint32_t bytes) const {
    return bytes * ticks_per_byte_numerator_ / ticks_per_byte_denominator;
  }
  /// Time of some cycles of the DRAM clock.
  [[nodiscard]] Ticks cycles(std::int64_t count) const { return count * bus_.clock().period(); }

  // Ticks per byte times 2^10: a transfer's time is rounded to a tick once.
  static constexpr std::int64_t ticks_per_byte_denominator = 1024;

  std::size_t capacity_;  ///< of the queue and of what waits for room in it
  std::size_t choice_;    ///< of the queue alone
  std::int64_t ticks_per_byte_numerator_;
  const gpu::Gpu& gpu_;
  Ticks latency_;
  Ticks write_latency_;
  TrafficCounters* counters_;
  Server bus_;
  std::size_t queued_ = 0;    ///< in the queue or waiting for it
  std::size_t choosing_ = 0;  ///< in the queue, with rows
  Ticks last_transfer_ = -1;
  Ticks next_ = never;
  std::deque<DramRequest> queue_;        ///< without rows; with them what waits for the queue
  std::vector<Bank> banks_;              ///< with rows
  std::vector<Ticks> next_of_bank_;      ///< when each can take its next command
  std::vector<std::size_t> wants_work_;  ///< banks that have no request, though some wait for them
  std::size_t turn_ = 0;                 ///< the bank that is looked at first
  std::vector<Ticks> group_free_;        ///< by bank group, for column commands
  Ticks activate_ = 0;                   ///< the earliest activation of any bank
  Ticks read_ = 0;  ///< the earliest read and write, because of the turnaround of the bus
  Ticks write_ = 0;
  Ticks next_refresh_ = never;
  ChannelWaits waited_for_;
};

}  // namespace warpstack::timing
