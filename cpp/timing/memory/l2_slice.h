#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "common/fifo.h"
#include "memory/cache/cache.h"
#include "memory/cache/dram_rows.h"
#include "memory/cache/totals.h"
#include "timing/base/wait_details.h"
#include "timing/memory/dram.h"
#include "timing/memory/interconnect.h"
#include "timing/memory/mshr.h"
#include "timing/memory/packet.h"

namespace warpstack::timing {

/// A slice of L2: it takes one request per cycle of its clock, in order, or as many as its data
/// port has time for, and waits where a request needs what is not there: an MSHR or one of its
/// targets, room in the DRAM queue, room for the reply.
class L2Slice {
 public:
  /// `tags` are those of all slices.
  L2Slice(const TimingConfig& config, std::uint32_t index, memory::Cache& tags,
          DramChannel& channel, Interconnect& reply_network, PacketPool& packets,
          memory::MemoryTotals& totals, TrafficCounters& counters);

  [[nodiscard]] bool has_room() const { return requests_.size() < capacity_; }
  /// Appends a request that the NoC delivers at `now`.
  void add(std::uint32_t packet, Ticks now);
  /// DRAM has served a request at `time`; its transfer began at `start`.
  void finish(const DramRequest& request, Ticks start, Ticks time);
  /// Something that the slice may wait for happened at `now`, after its own turn of this instant.
  void wake(Ticks now) {
    // What DRAM has sent waits for room among the replies, but not for the port.
    if (!ready_.empty() || (!fills_.empty() && edge_of(fills_.front()) <= now)) {
      next_ = std::min(next_, clock_.after(now));
    }
    if (!requests_.empty()) next_ = std::min(next_, next_turn(now));
  }
  /// Another slice took the last room of the DRAM queue, so that at `edge` a request that waits for
  /// room among the replies may wait for DRAM instead.
  void channel_is_full(Ticks edge) {
    if (waits_ == Wait::reply) next_ = std::min(next_, edge);
  }

  /// When it next has something to do.
  [[nodiscard]] Ticks next() const { return next_; }
  /// At the edge next().
  void step();
  /// When the last write was served.
  [[nodiscard]] Ticks last_write() const { return last_write_; }

  // Replies, for the reply network:
  [[nodiscard]] std::uint32_t first_reply() const { return replies_.front(); }
  void pop_reply() { replies_.pop(); }

  [[nodiscard]] std::size_t queued_requests() const { return requests_.size(); }
  /// Requests, misses and replies that it holds.
  [[nodiscard]] std::size_t waiting() const {
    return requests_.size() + mshrs_.size() + ready_.size() + replies_.size();
  }
  /// Appends a line about what it holds and what its first request waits for.
  void explain(std::string& text) const;
  [[nodiscard]] std::size_t queued_replies() const { return replies_.size(); }
  [[nodiscard]] std::uint32_t misses_in_flight() const { return mshrs_.size(); }
  /// What it was busy with, and what requests waited for in it.
  [[nodiscard]] const SliceWaits& waits() const { return waited_for_; }

 private:
  enum class Wait : std::uint8_t { none, dram, reply };
  /// What has come back from DRAM: data for a register, or word that a packet's data were written.
  struct Fill {
    std::uint32_t mshr = DramRequest::write;
    std::uint32_t packet = Packet::nobody;
    Ticks start = 0;
    Ticks time = 0;
  };

  /// When the slice sees a fill: it has had its turn at the instant at which the transfer started.
  [[nodiscard]] Ticks edge_of(const Fill& fill) const {
    return std::max(clock_.at_or_after(fill.time), clock_.after(fill.start));
  }
  /// The first edge after `now` at which it can serve a request.
  [[nodiscard]] Ticks next_turn(Ticks now) const { return port_.next_edge(now); }
  /// Takes the time that sectors spend on the way to or from the data of the slice.
  /// Takes the slice for a request of so many lanes (0: no atomic) that moves these sectors.
  /// `turns` are those of the request itself, `mask` the data that it moves.
  void use_port(memory::SectorMask mask, double turns, Ticks now);
  [[nodiscard]] Ticks port_time(std::uint32_t sectors, double turns) const;
  /// Takes what DRAM has sent next, and serves one of the requests whose lines have come.
  void take_fills(Ticks now);
  /// Word of a write, or a line, which takes the fill port the time of its bytes.
  void take_fill(Ticks now);
  /// Hands a packet what DRAM did for it. Returns whether there was room for its reply.
  bool take(const Fill& fill, Ticks now);
  /// Whether there is room for the reply that a packet may be due with a fill.
  [[nodiscard]] bool can_answer(const Fill& fill) const {
    return fill.packet == Packet::nobody || packets_[fill.packet].fetches > 1 ||
           !packets_[fill.packet].needs_reply() || replies_.size() < capacity_;
  }
  Wait serve(std::uint32_t id, Ticks now);
  Wait wait_for_mshr() {
    lacks_mshr_ = true;
    return Wait::dram;
  }
  Wait read(std::uint32_t id, Ticks now);
  Wait write(std::uint32_t id, Ticks now);
  /// Everything that a packet asked for is done: it goes back, or ends here.
  void finish(std::uint32_t id, Ticks now);
  void fetch(const Packet& packet, memory::SectorMask mask, std::uint32_t target, Ticks now);
  /// Writes sectors to DRAM; `packet` is to know when they are there.
  void write_to_dram(std::uint64_t line, memory::SectorMask mask, std::uint32_t packet, Ticks now);
  void send_to_dram(std::uint64_t line, memory::SectorMask mask, std::uint32_t mshr,
                    std::uint32_t packet, Ticks now);
  /// Whether a line that a request needs is there or can take a place. To be asked last: the order
  /// in which lines make room may change, for good.
  [[nodiscard]] bool can_take(const Packet& packet) const {
    return !reserves_ || tags_.make_room(packet.set, packet.line);
  }
  /// How long it has waited so far.
  [[nodiscard]] Ticks waited(Wait cause, Ticks now) const {
    return (cause == Wait::dram ? waited_for_dram_ : waited_for_reply_) +
           (waits_ == cause ? now - waits_since_ : 0);
  }

  const TimingConfig& config_;
  std::uint32_t index_;
  std::size_t capacity_;
  bool reserves_;  ///< lines under way keep their place
  Clock clock_;
  memory::Cache& tags_;
  DramChannel& channel_;
  Interconnect& reply_network_;
  PacketPool& packets_;
  memory::MemoryTotals& totals_;
  TrafficCounters& counters_;
  MshrFile<std::uint32_t> mshrs_;  ///< targets: packets
  Server port_;
  Server fill_port_;
  std::array<Ticks, memory::max_sectors_per_line + 1> fill_times_{};  ///< by sectors
  std::array<Ticks, memory::max_sectors_per_line + 1> port_times_{};  ///< by sectors, of one turn
  memory::DramRows rows_;
  Fifo<std::uint32_t> requests_;
  Fifo<std::uint32_t> replies_;
  Fifo<Fill> fills_;  ///< in order of time
  Fifo<Fill> ready_;  ///< targets of lines that have come, one by one
  Ticks next_ = never;
  Wait waits_ = Wait::none;
  Ticks waits_since_ = 0;
  Ticks waited_for_dram_ = 0;
  Ticks waited_for_reply_ = 0;
  bool lacks_mshr_ = false;  ///< it waits for DRAM: for an MSHR or a target of one
  SliceWaits waited_for_;
  Ticks last_write_ = -1;
};

}  // namespace warpstack::timing
