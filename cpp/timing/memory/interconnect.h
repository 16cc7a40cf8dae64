#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "timing/base/clock.h"

namespace warpstack::timing {

/// One direction of the NoC: sources with queues share a bandwidth, in turn, one packet each. The
/// port of an SM may have a bandwidth of its own, and so may that of a slice. In a crossbar each
/// destination takes a packet from one source after the other, in turns of its own, so that a
/// source whose first packet waits for a busy destination loses no turn anywhere. When no packet
/// can move it sleeps until a port gets free, a packet is added, or it is told that a destination
/// has room.
class Interconnect {
 public:
  struct Transfer {
    Ticks time;       ///< that the packet takes of the bandwidth
    Ticks port_time;  ///< and of its port; 0: no limit
    std::uint32_t port;
    Ticks slice_time = 0;  ///< and of the port of its slice; 0: no limit
    std::uint32_t slice_port = 0;
    std::uint32_t destination = 0;  ///< read where destinations choose
  };

  /// `ports`: of SMs and of slices.
  /// `destinations` choose from the sources, each in turns of its own; 0: the sources take turns.
  Interconnect(Clock clock, std::uint32_t sources, std::uint32_t ports,
               std::uint32_t destinations = 0)
      : link_(clock),
        ports_(ports, Server(clock)),
        waiting_(sources),
        heads_(destinations > 0 ? sources : 0),
        turn_of_(destinations) {}

  /// When it next has something to do.
  [[nodiscard]] Ticks next() const { return next_; }
  /// Says that a source has one packet more, at `now`; its queue is looked at from the first edge
  /// at or after `now` on.
  void add(std::uint32_t source, Ticks now) {
    ++num_waiting_;
    ++waiting_[source];
    look_at(link_.clock().at_or_after(now));
  }
  /// A destination got room at `now`, after the network's own turn of this instant.
  void wake(Ticks now) {
    if (num_waiting_ > 0) look_at(link_.clock().after(now));
  }

  /// At the edge next(): `head(source, transfer)` describes the first packet of a queue that is not
  /// empty and returns whether its destination has room; `move(source)` takes it out.
  template <typename Head, typename Move>
  void step(Head head, Move move) {
    if (turn_of_.empty()) {
      step_sources(head, move);
    } else {
      step_destinations(head, move);
    }
  }

 private:
  template <typename Head, typename Move>
  void step_sources(Head head, Move move) {
    const Ticks edge = next_;
    auto refused = static_cast<std::uint32_t>(0);
    Ticks port_free = never;
    const auto count = static_cast<std::uint32_t>(waiting_.size());
    while (num_waiting_ > 0 && refused < count && link_.is_free(edge)) {
      const std::uint32_t source = turn_;
      turn_ = turn_ + 1 == count ? 0 : turn_ + 1;
      Transfer transfer;
      if (waiting_[source] == 0 || !head(source, transfer)) {
        ++refused;
        continue;
      }
      const Ticks free = free_edge(transfer, edge);
      if (free > edge) {
        port_free = std::min(port_free, free);
        ++refused;
        continue;
      }
      link_.take(edge, transfer.time);
      take(transfer, edge);
      move(source);
      --waiting_[source];
      --num_waiting_;
      refused = 0;
      port_free = never;
    }
    // A round in vain changes no turn: those that are slept over would begin where this one did.
    if (num_waiting_ == 0) {
      next_ = never;
    } else {
      next_ = refused == count ? port_free : link_.next_edge(edge);
    }
  }

  /// One destination after the other takes a packet from the next source, in its own turns, whose
  /// first packet is for it.
  template <typename Head, typename Move>
  void step_destinations(Head head, Move move) {
    const Ticks edge = next_;
    const auto count = static_cast<std::uint32_t>(waiting_.size());
    const auto look = [&](std::uint32_t source) {
      heads_[source].destination = nowhere;
      if (waiting_[source] > 0 && !head(source, heads_[source])) {
        heads_[source].destination = nowhere;
      }
    };
    for (std::uint32_t source = 0; source < count; ++source) look(source);
    for (std::uint32_t to = 0; to < turn_of_.size(); ++to) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t next = turn_of_[to] + i;
        const std::uint32_t source = next < count ? next : next - count;
        const Transfer& transfer = heads_[source];
        if (transfer.destination != to || free_edge(transfer, edge) > edge) continue;
        take(transfer, edge);
        turn_of_[to] = source + 1 == count ? 0 : source + 1;
        move(source);
        --waiting_[source];
        --num_waiting_;
        look(source);
        break;
      }
    }
    next_ = never;
    for (const Transfer& transfer : heads_) {
      if (transfer.destination == nowhere) continue;
      next_ = std::min(next_, std::max(free_edge(transfer, edge), link_.clock().after(edge)));
    }
  }

  /// The edge from `edge` on at which a port takes a packet.
  [[nodiscard]] Ticks free_edge(std::uint32_t port, Ticks time, Ticks edge) const {
    return time == 0 || ports_[port].is_free(edge) ? edge : ports_[port].next_edge(edge);
  }
  [[nodiscard]] Ticks free_edge(const Transfer& transfer, Ticks edge) const {
    return std::max(free_edge(transfer.port, transfer.port_time, edge),
                    free_edge(transfer.slice_port, transfer.slice_time, edge));
  }
  void take(const Transfer& transfer, Ticks edge) {
    if (transfer.port_time > 0) ports_[transfer.port].take(edge, transfer.port_time);
    if (transfer.slice_time > 0) ports_[transfer.slice_port].take(edge, transfer.slice_time);
  }
  void look_at(Ticks edge) {
    next_ = std::min(next_, link_.is_free(edge) ? edge : link_.next_edge(edge));
  }

  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  Server link_;
  std::vector<Server> ports_;
  std::vector<std::uint32_t> waiting_;  ///< packets of each source
  std::uint32_t num_waiting_ = 0;
  std::uint32_t turn_ = 0;
  std::vector<Transfer> heads_;         ///< of the sources, where destinations choose
  std::vector<std::uint32_t> turn_of_;  ///< of a destination: the source that it looks at first
  Ticks next_ = never;
};

}  // namespace warpstack::timing
