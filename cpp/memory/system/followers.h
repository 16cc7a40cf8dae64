#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memory/cache/cache.h"
#include "memory/cache/counters.h"
#include "memory/cache/request.h"
#include "memory/cache/store_turns.h"
#include "memory/order/line_grouper.h"
#include "memory/order/warp_stream.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// The requests of a launch's followers for a row. All are counted, none estimated.
struct FollowerCounts {
  std::uint64_t sectors = 0;
  std::uint64_t requests = 0;       ///< lines of L1
  std::uint64_t l1_passes = 0;      ///< of loads and stores over its banks
  std::uint64_t dram_requests = 0;  ///< those with a sector that missed in L2
  std::uint64_t dram_sectors = 0;   ///< moved by these between L2 and DRAM
  std::uint64_t l2_events = 0;      ///< accesses that left the SM and were served by L2
  std::uint64_t dram_events = 0;    ///< accesses that waited for DRAM
};

/// The SMs that follow a leader, an SM of the sample that is simulated itself (sampling.h). The
/// n-th block of a follower runs beside the n-th block of the leader: each of its warps has always
/// made the same share of its accesses as the leader's warp at the same place. Two warps of equal
/// length make their n-th accesses at the same time.
///
/// Followers have no L1. If an access touches as many lines as the leader's, the lines that hit in
/// the leader's L1 count as hits; otherwise each line leaves the SM. So L2 holds what it would hold
/// if all SMs were simulated, up to the order of accesses that are close in time.
class Followers {
 public:
  /// What all followers of a launch share; must outlive them.
  struct Launch {
    const trace::KernelTrace& trace;
    const RowFlags& flags;
    const CacheConfig& l1;
    const Cache& l2;
    bool l1_caches_global;
    bool keeps_bytes;  ///< somebody asks which bytes requests write
    AtomicRule atomics;
    StoreRule stores;
  };

  /// `leader` and `followers` are the blocks of the SMs (positions in the trace), in the order in
  /// which they take them. `num_before` followers come before the leader in the order of SMs.
  Followers(const Launch& launch, const std::vector<std::uint32_t>& leader,
            std::vector<std::vector<std::uint32_t>> followers, std::size_t num_before);

  /// Whether an SM comes before or after the leader when several access L2 in one turn.
  enum class Side : std::uint8_t { before, after };

  // A batch of turns, as in SmCaches:
  void begin_batch();
  void begin_turns_until(std::size_t turn);
  [[nodiscard]] bool has_requests() const {
    return !of(Side::before).requests.empty() || !of(Side::after).requests.empty();
  }
  /// Calls `serve(request, bytes, turns)`, which returns an Outcome, for each request of a turn;
  /// `turns` are those of the slice that serves it.
  template <typename Serve>
  void serve(Side side, std::size_t turn, const Serve& serve) {
    Queue& queue = of(side);
    const std::size_t last = turn + 1 < queue.first_of_turn.size() ? queue.first_of_turn[turn + 1]
                                                                   : queue.requests.size();
    for (std::size_t i = queue.first_of_turn[turn]; i < last; ++i) {
      const Request& request = queue.requests[i];
      count(queue, request, serve(request, bytes_[request.bytes], turns(request)));
    }
  }

  /// Notes whether a line of the leader's access hit in its L1.
  void note_line(bool hit) { hits_.push_back(hit); }
  /// The leader's access is complete; `is_last` says that its warp has no other.
  void follow(const trace::WarpPosition& leader, bool is_last);
  /// The leader has no access left.
  void finish();

  [[nodiscard]] const std::vector<FollowerCounts>& per_row() const { return per_row_; }

 private:
  struct FollowerWarp {
    WarpStream stream;
    std::uint64_t made = 0;    ///< accesses
    std::uint64_t memory = 0;  ///< memory instructions, including those without an access
  };
  struct LeaderWarp {
    std::uint64_t made = 0;
    std::uint64_t memory = 0;
  };
  /// The n-th blocks of all SMs; empty before and after they run.
  struct Block {
    std::vector<LeaderWarp> leader;
    std::vector<std::vector<std::optional<FollowerWarp>>> warps;  ///< by follower; empty when done
    std::size_t running = 0;                                      ///< number of unfinished `warps`
  };

  /// Begins the blocks at place n.
  void open(std::size_t place);
  /// Makes accesses of a warp until there are `until`.
  void advance(Block& block, std::optional<FollowerWarp>& warp, std::size_t follower,
               std::uint64_t until);
  /// The requests of one side. In these, `writer` is the row, and `owner` says whether an access
  /// begins.
  struct Queue {
    std::vector<Request> requests;
    std::vector<std::uint32_t> first_of_turn;
    // The access and the line whose requests are being counted:
    std::uint32_t row = 0;
    bool is_open = false;
    bool asked_dram = false;
    bool missed = false;
  };
  [[nodiscard]] Queue& of(Side side) { return queues_[static_cast<std::size_t>(side)]; }
  [[nodiscard]] const Queue& of(Side side) const { return queues_[static_cast<std::size_t>(side)]; }
  [[nodiscard]] double turns(const Request& request) const {
    if (request.kind == Request::Kind::atomic) {
      return launch_.atomics.counts_lanes() ? turns_[request.bytes] : 1;
    }
    return launch_.stores.counts_bytes() && request.bytes != 0
               ? launch_.stores.turns(request.mask, bytes_[request.bytes])
               : 1;
  }
  void access(const MemoryAccess& access, std::size_t follower);
  /// `lanes` are those of an atomic, null for other accesses.
  void leave(Queue& queue, std::uint64_t l1_line, SectorMask mask, Request::Kind kind,
             bool evict_first, const ByteMasks* bytes, const SectorLanes* lanes, std::uint32_t row);
  /// Counts the outcome of a request; called for all of them, in order.
  void count(Queue& queue, const Request& request, const Outcome& outcome);
  void end_access(Queue& queue);

  Launch launch_;
  const std::vector<trace::StaticInstruction>& instructions_;
  std::vector<std::uint32_t> leader_blocks_;
  std::vector<std::vector<std::uint32_t>> blocks_;           ///< by follower
  std::vector<Block> state_;                                 ///< by place
  std::size_t next_ = 0;                                     ///< place to begin next
  std::unordered_map<std::uint32_t, std::size_t> place_of_;  ///< by block of the leader

  LineGrouper grouper_;
  std::vector<char> hits_;  ///< of the leader's access
  std::uint32_t l1_sectors_;
  std::uint32_t l2_sectors_;
  std::uint64_t first_local_line_;
  std::array<SectorMask, 256> units_{};  ///< by mask of sectors: what an L1 miss asks for

  std::size_t num_before_;
  std::array<Queue, 2> queues_;  ///< by side
  std::vector<ByteMasks> bytes_;
  std::vector<double> turns_;  ///< of atomics; parallel to bytes_
  std::size_t turn_ = 0;
  std::vector<FollowerCounts> per_row_;
};

}  // namespace warpstack::memory
