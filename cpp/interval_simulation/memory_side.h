#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "common/fifo.h"
#include "interval_simulation/machine.h"
#include "interval_simulation/timeline.h"
#include "interval_simulation/under_way.h"
#include "memory/cache/cache.h"
#include "memory/cache/dram_rows.h"
#include "memory/cache/totals.h"

namespace warpstack::interval_simulation {

/// What an SM asks of one L2 line.
struct Request {
  enum class Kind : std::uint8_t { read, write, atomic, reduction };
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  Time sent = 0;  ///< when it came to the queue of its SM
  std::uint64_t line = 0;
  std::uint32_t set = 0;
  std::uint32_t owner = nobody;  ///< who waits for the answer, in its SM
  float lanes = 0;               ///< of an atomic
  std::uint32_t bytes = 0;       ///< of a write, position of its byte masks
  std::uint16_t slice = 0;
  memory::SectorMask mask = 0;
  Kind kind = Kind::read;
  bool evict_first = false;

  /// Bytes of its packet on the way to L2, and of the answer.
  [[nodiscard]] double bytes_there(const gpu::Gpu& gpu) const {
    return kind == Kind::read ? gpu.noc_control_bytes : bytes_of_sectors();
  }
  [[nodiscard]] double bytes_back(const gpu::Gpu& gpu) const {
    return kind == Kind::read || kind == Kind::atomic ? bytes_of_sectors() : gpu.noc_control_bytes;
  }
  [[nodiscard]] double bytes_of_sectors() const {
    return memory::count_sectors(mask) * double{trace::sector_bytes};
  }
};

/// The requests of an SM that the memory side has not taken.
struct Requests {
  std::vector<Request> requests;
  std::vector<memory::ByteMasks> bytes;
};

/// An answer on its way to an SM.
struct Reply {
  Time time = 0;  ///< when it is there
  std::uint32_t owner = 0;
  // What it waited for:
  float noc = 0;
  float queue = 0;  ///< of DRAM
  float dram = 0;
};

/// Everything behind the SMs, whose requests it serves in the order of time: the NoC, the slices of
/// L2 and the channels of DRAM are queues with servers of finite rates. A queue that is full holds
/// up who would join it.
class MemorySide {
 public:
  /// `departed(sm, now)` is called when the NoC takes a request of an SM, which may then send more.
  MemorySide(const Machine& machine, memory::Cache& l2, std::uint32_t sms,
             std::function<void(std::uint32_t, Time)> departed);

  /// Takes the requests of an SM, which were sent at or after the times of its earlier ones and of
  /// the last run().
  void take(std::uint32_t sm, Requests& sent);
  /// Serves what happens before `end`.
  void run(Cycle end);
  /// The answers to an SM, in the order of time; the SM takes them out.
  [[nodiscard]] Fifo<Reply>& replies(std::uint32_t sm) { return replies_[sm]; }
  /// Requests of an SM that have not left its queue.
  [[nodiscard]] std::size_t queued(std::uint32_t sm) const { return senders_[sm].waiting.size(); }
  [[nodiscard]] Cycle next() const { return events_.first(); }
  [[nodiscard]] Time last_write() const { return last_write_; }
  [[nodiscard]] Time last_transfer() const { return last_transfer_; }
  [[nodiscard]] const memory::MemoryTotals& totals() const { return totals_; }

 private:
  static constexpr Time never = std::numeric_limits<Time>::infinity();
  struct Packet {
    Request request;  ///< `sent`: until when its time is accounted for
    std::uint32_t sm = 0;
    std::uint32_t fetches = 0;  ///< transfers of DRAM that it waits for
    float noc = 0;
    float queue = 0;
    float dram = 0;
  };
  enum class Kind : std::uint8_t {
    sender,
    requests,
    slice,
    channel,
    bank,
    fill,
    write,
    replies,
    reply
  };
  struct Event {
    Kind kind{};
    std::uint16_t index = 0;  ///< of an SM, slice or channel
    std::uint32_t data = 0;   ///< a bank, an entry of a slice's lines under way, or a packet
  };
  struct Sender {
    Fifo<std::uint32_t> waiting;
    Time port_free = 0;
    bool is_queued = false;  ///< its first request has an event, or waits for a slice
  };
  struct Slice {
    Fifo<std::uint32_t> requests;
    Time free = 0;
    Time request_port_free = 0;  ///< of a crossbar
    Time reply_port_free = 0;
    Time fill_port_free = 0;       ///< for lines from DRAM
    bool is_awake = false;         ///< it has an event
    bool waits_for_reply = false;  ///< its first request needs room among the replies
    std::uint32_t replies = 0;     ///< that wait for the NoC
    Fifo<std::uint32_t> senders;   ///< SMs whose first request waits for room
  };
  struct Transfer {
    std::uint32_t slice = 0;
    std::uint32_t mshr = write;
    std::uint32_t packet = Request::nobody;
    std::uint32_t bytes = 0;
    std::uint64_t row = 0;
    static constexpr std::uint32_t write = ~std::uint32_t{0};
  };
  struct Bank {
    std::vector<Transfer> waiting;
    Transfer current;
    bool is_busy = false;
    bool is_open = false;
    std::uint64_t row = 0;
    Time activate = 0;  ///< the earliest times of commands
    Time precharge = 0;
  };
  /// A bank whose row is open, and what says when its data can go.
  struct ReadyBank {
    std::uint32_t bank = 0;
    std::uint16_t group = 0;
    bool is_write = false;
  };
  struct Channel {
    std::uint32_t queued = 0;
    std::uint32_t choosing = 0;  ///< of these, from which banks choose
    Fifo<Transfer> requests;     ///< without rows; with them what waits for banks to choose from it
    std::vector<ReadyBank> ready_banks;  ///< in the order in which their rows were opened
    std::vector<Bank> banks;
    std::vector<Time> group_free;
    Time free = 0;
    Time activate = 0;
    Time read = 0;
    Time write = 0;
    Time next_refresh = 0;
    Time awake = never;                 ///< when its next event is
    std::vector<std::uint32_t> slices;  ///< that wait for room
  };
  enum class Wait : std::uint8_t { none, dram, reply };

  void send(std::uint32_t sm, const Request& request, const std::vector<memory::ByteMasks>& bytes);
  void release(std::uint32_t packet);
  void step_requests(Time now);
  void grant(std::uint32_t sm, Time now);
  void wake_sender(std::uint32_t sm, Time now);
  void prefetch(const Event& event) const;
  void take_turn(std::uint32_t slice, Time now);
  /// It can go on with its first request, now or when it is free.
  void wake_slice(std::uint32_t slice, Time now);
  /// It takes its turn at some time, unless it has an event already.
  void call_slice(std::uint32_t slice, Time at);
  Wait serve(std::uint32_t slice, std::uint32_t packet, Time now);
  Wait read(std::uint32_t slice, std::uint32_t packet, Time now);
  Wait write(std::uint32_t slice, std::uint32_t packet, Time now);
  void use_slice(std::uint32_t slice, memory::SectorMask mask, double turns, Time now);
  void fetch(std::uint32_t slice, std::uint64_t line, std::uint32_t set, memory::SectorMask mask,
             std::uint32_t target, Time now);
  void write_to_dram(std::uint32_t slice, std::uint64_t line, memory::SectorMask mask,
                     std::uint32_t packet, Time now);
  void add_transfer(const Transfer& transfer, Time now);
  static void bank_is_ready(Channel& channel, std::uint32_t bank);
  void step_channel(std::uint32_t channel, Time now);
  /// Closes the rows of all banks where a refresh before `now` was not yet taken into account.
  void refresh(Channel& channel, Time now) const;
  void give_work(std::uint32_t channel, std::uint32_t bank, Time now);
  /// When the data of a bank whose row is open can go.
  [[nodiscard]] static Time first_transfer(const Channel& channel, const ReadyBank& ready) {
    return std::max(ready.is_write ? channel.write : channel.read, channel.group_free[ready.group]);
  }
  void transfer_of_bank(std::uint32_t channel, const ReadyBank& ready, Time now);
  void transferred(const Transfer& transfer, Time start);
  void fill(std::uint32_t slice, std::uint32_t line, Time now);
  void take_transfer(std::uint32_t packet, Time start, Time now);
  void finish(std::uint32_t packet, Time now);
  void step_replies(Time now);
  void send_reply(std::uint32_t packet, Time now);
  void offer(std::uint32_t channel, const Transfer& transfer, Time now);
  [[nodiscard]] bool has_room(const Channel& channel) const {
    return channel.queued <
           machine_.gpu.dram_queue_entries + machine_.gpu.l2_miss_queue_entries * sharers_;
  }
  [[nodiscard]] std::uint32_t channel_of(std::uint32_t slice) const { return slice / sharers_; }
  void schedule(Time time, Kind kind, std::uint32_t index, std::uint32_t data = 0) {
    events_.add(time, {kind, static_cast<std::uint16_t>(index), data});
  }
  [[nodiscard]] bool can_take(const Request& request) {
    return !machine_.reserves || l2_.make_room(request.set, request.line);
  }

  const Machine& machine_;
  memory::Cache& l2_;
  std::function<void(std::uint32_t, Time)> departed_;
  std::uint32_t sharers_;  ///< slices of a channel
  memory::DramRows rows_;
  memory::MemoryTotals totals_;
  Timeline<Event> events_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_packets_;
  std::vector<memory::ByteMasks> bytes_;  ///< of packets; the first one is of those without
  std::vector<std::uint32_t> free_bytes_;
  std::vector<Sender> senders_;
  Fifo<std::uint32_t> waiting_senders_;
  Time requests_free_ = 0;  ///< when the NoC takes the next request
  bool requests_are_awake_ = false;
  std::vector<Slice> slices_;
  std::vector<LinesUnderWay<std::uint32_t>> under_way_;  ///< by slice; targets: packets
  std::vector<Channel> channels_;
  Fifo<std::uint32_t> waiting_replies_;
  Time replies_free_ = 0;
  bool replies_are_awake_ = false;
  std::vector<Time> reply_port_free_;
  std::vector<Fifo<Reply>> replies_;
  Time last_write_ = -1;
  Time last_transfer_ = -1;
  Time dram_latency_ = 0;
  Time write_latency_ = 0;
};

}  // namespace warpstack::interval_simulation
