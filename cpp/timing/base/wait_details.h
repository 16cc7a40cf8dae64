#pragma once

#include <cstdint>
#include <vector>

#include "common/cpi_stack.h"
#include "timing/base/clock.h"

namespace warpstack::timing {

/// How long requests or units waited for what, in ticks. Slots that were lost to a component are
/// divided among its details as these are.
using WaitedFor = DetailedStack<Ticks>;

/// Parts of issue slots of an SM.
struct LostSlots {
  DetailedStack<std::int64_t> known;  ///< their detail is known in the cycle in which they are lost
  std::int64_t of_requests = 0;  ///< while there was no room in the SM's queue to the NoC (noc)
  /// To loads in flight, by the parts of their latency.
  CpiStack<std::int64_t> of_loads;

  [[nodiscard]] CpiStack<std::int64_t> stack() const;
};

/// The slots of an SM by detail; the details of a component sum to it. `waited` is for loads in
/// flight, `requests` only for the way to L2.
DetailedStack<std::int64_t> attribute(const LostSlots& slots, const WaitedFor& waited,
                                      const WaitedFor& requests);

/// What a slice of L2 was busy with, and what requests waited for in it.
struct SliceWaits {
  Ticks requests = 0;  ///< turns of requests, one each
  Ticks atomics = 0;   ///< further turns, of lanes that meet in a word
  // Of its first request, and so of all behind it:
  Ticks for_mshr = 0;
  Ticks for_channel = 0;
  Ticks for_reply = 0;
  // Sums over the requests:
  Ticks queued = 0;           ///< in its queue, not counting
  Ticks queued_for_dram = 0;  ///< behind one that waited for MSHR or channel
  Ticks in_channel = 0;       ///< in the queue of DRAM
  Ticks late = 0;             ///< until there was room among the replies
};

/// How long the bus of a DRAM channel with work was busy or waited.
struct ChannelWaits {
  Ticks transfers = 0;
  Ticks rows = 0;
  Ticks turnarounds = 0;
};

/// What requests and replies wait for between SMs and slices.
class NocWaits {
 public:
  /// In a crossbar a request that waits neither for its port nor for room waits for the turn of
  /// its SM at the slice, otherwise for the bandwidth that all share.
  NocWaits(std::size_t sms, std::size_t slices, bool is_crossbar)
      : is_crossbar_(is_crossbar), heads_(sms), room_since_(slices), for_slice_(slices) {}

  /// A slice whose queue was full has room.
  void has_room(std::uint32_t slice, Ticks now) { room_since_[slice] = now; }
  /// A request that entered the queue of its SM at `entered` leaves it.
  void count_request(std::uint32_t sm, std::uint32_t slice, Ticks entered, Ticks port_time,
                     Ticks now) {
    Head& head = heads_[sm];
    requests_ += now - entered;
    // Only the first one of the queue waits for something else than those before it.
    const Ticks since = entered > head.since ? entered : head.since;
    Ticks waited = now - since;
    if (waited > 0) {
      const Ticks port = clamp(head.port_free - since, waited);
      send_port_ += port;
      waited -= port;
      const Ticks full = is_crossbar_ ? waited : clamp(room_since_[slice] - since - port, waited);
      for_slice_[slice] += full;
      network_ += waited - full;
    }
    head.since = now;
    head.port_free = (head.port_free > now ? head.port_free : now) + port_time;
  }
  /// A reply leaves a slice at `now`, and is sent when the port of its SM is free.
  void count_reply(Ticks queued, Ticks now, Ticks sent, Ticks latency) {
    replies_ += now - queued;
    receive_port_ += sent - now;
    l2_latency_ += latency;
  }

  /// Adds all that requests and replies waited for to `waited`, and to `requests` what requests
  /// waited for on their way to L2.
  void add_to(WaitedFor& waited, WaitedFor& requests, const std::vector<SliceWaits>& slices,
              const std::vector<ChannelWaits>& channels) const;

 private:
  struct Head {
    Ticks since = 0;      ///< the first request of the queue is its first one
    Ticks port_free = 0;  ///< from when on the SM's port is
  };
  static Ticks clamp(Ticks time, Ticks most) { return time < 0 ? 0 : time > most ? most : time; }

  bool is_crossbar_;
  std::vector<Head> heads_;
  std::vector<Ticks> room_since_;
  std::vector<Ticks> for_slice_;
  Ticks requests_ = 0;
  Ticks send_port_ = 0;
  Ticks network_ = 0;
  Ticks replies_ = 0;
  Ticks receive_port_ = 0;
  Ticks l2_latency_ = 0;
};

}  // namespace warpstack::timing
