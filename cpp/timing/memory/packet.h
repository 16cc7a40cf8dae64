#pragma once

#include <cstdint>
#include <vector>

#include "memory/cache/cache.h"
#include "timing/base/timing_config.h"

namespace warpstack::timing {

/// What an SM asks of one L2 line, on its way there and back.
struct alignas(64) Packet {
  enum class Kind : std::uint8_t {
    read,
    write,
    atomic,     ///< returns the old values
    reduction,  ///< returns nothing
  };
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};
  std::uint64_t line = 0;  ///< of L2
  std::uint32_t set = 0;   ///< of L2
  std::uint32_t slice = 0;
  std::uint32_t sm = 0;
  std::uint32_t owner = nobody;  ///< who waits for the reply, in its SM
  memory::SectorMask mask = 0;
  Kind kind = Kind::read;
  bool evict_first = false;
  std::uint32_t fetches = 0;  ///< transfers of DRAM that it waits for
  double lanes = 0;           ///< of an atomic; its share, where several requests have them

  Ticks entered = 0;     ///< the queue of its SM
  Ticks mark = 0;        ///< until when its time is accounted for
  Ticks queue_mark = 0;  ///< how long its slice had waited for DRAM and for the reply network when
  Ticks noc_mark = 0;    ///< it arrived
  // How long it has waited:
  Ticks noc = 0;
  Ticks dram_queue = 0;
  Ticks dram = 0;

  memory::ByteMasks bytes{};  ///< of a write; last, because reads do without

  [[nodiscard]] bool needs_reply() const { return owner != nobody; }
  /// Whether the reply has data, or only says that the request was served.
  [[nodiscard]] bool returns_data() const { return kind == Kind::read || kind == Kind::atomic; }
  [[nodiscard]] std::uint32_t data_bytes() const {
    return memory::count_sectors(mask) * trace::sector_bytes;
  }
};

/// What comes back to an SM.
struct Reply {
  std::uint32_t owner = Packet::nobody;
  Ticks time = 0;  ///< of its arrival
  // As of the packet:
  Ticks entered = 0;
  Ticks noc = 0;
  Ticks dram_queue = 0;
  Ticks dram = 0;
};

/// The packets on the side of the memory, by number.
class PacketPool {
 public:
  std::uint32_t add(const Packet& packet) {
    if (free_.empty()) {
      packets_.push_back(packet);
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    packets_[id] = packet;
    return id;
  }
  void release(std::uint32_t id) { free_.push_back(id); }
  /// Brings a packet close that is dealt with soon.
  void prefetch(std::uint32_t id) const {
    const auto* first = reinterpret_cast<const char*>(&packets_[id]);
    for (std::size_t i = 0; i < sizeof(Packet); i += 64) __builtin_prefetch(first + i);
  }
  Packet& operator[](std::uint32_t id) { return packets_[id]; }
  const Packet& operator[](std::uint32_t id) const { return packets_[id]; }
  [[nodiscard]] std::size_t size() const { return packets_.size() - free_.size(); }

 private:
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;
};

/// What the simulator counts beside the memory stage's totals.
struct TrafficCounters {
  std::uint64_t noc_requests = 0;  ///< packets to L2
  std::uint64_t noc_request_bytes = 0;
  std::uint64_t noc_replies = 0;
  std::uint64_t noc_reply_bytes = 0;
  std::uint64_t l1_pending_sector_hits = 0;  ///< read hits on sectors still on their way
  std::uint64_t l2_pending_sector_hits = 0;
  std::uint64_t dram_reads = 0;
  std::uint64_t dram_writes = 0;
  std::uint64_t dram_row_misses = 0;

  TrafficCounters& operator+=(const TrafficCounters& other) {
    noc_requests += other.noc_requests;
    noc_request_bytes += other.noc_request_bytes;
    noc_replies += other.noc_replies;
    noc_reply_bytes += other.noc_reply_bytes;
    l1_pending_sector_hits += other.l1_pending_sector_hits;
    l2_pending_sector_hits += other.l2_pending_sector_hits;
    dram_reads += other.dram_reads;
    dram_writes += other.dram_writes;
    dram_row_misses += other.dram_row_misses;
    return *this;
  }
};

}  // namespace warpstack::timing
