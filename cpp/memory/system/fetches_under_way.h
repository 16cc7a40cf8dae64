#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/zeroed_array.h"
#include "gpu/reference_machine.h"
#include "memory/cache/request.h"
#include "memory/order/timed_schedule.h"

namespace warpstack::memory {

/// What L2 has fetched lately: the tags have it, but the data come only when DRAM sends them. Those
/// who ask for it meanwhile wait with the first one. One object serves launch after launch, so that
/// a launch costs nothing for the sets that it does not use.
class FetchesUnderWay {
 public:
  explicit FetchesUnderWay(std::uint64_t sets) : sets_(sets) {}

  /// Forgets everything.
  void begin_launch() { ++launch_; }

  /// Whether a request is answered about when DRAM answers, though its sectors are in the tags.
  /// Each set is for one thread.
  bool is_awaited(const Request& request, const Outcome& outcome, ReferenceCycle now) {
    Set& set = sets_[request.set];
    if (set.launch != launch_) set = {{}, launch_};
    if (!outcome.asks_dram) {
      return std::ranges::any_of(set.fetches, [&](const Fetch& fetch) {
        return fetch.line == request.line && (fetch.mask & request.mask) != 0 &&
               now < fetch.sent + nearer_to_dram;
      });
    }
    set.fetches[set.next++ % set.fetches.size()] = {request.line, now, request.mask};
    return false;
  }

 private:
  /// After half of DRAM's latency the data come nearer to the time that L2 takes for its own.
  static constexpr ReferenceCycle nearer_to_dram = gpu::ReferenceMachine::dram / 2;
  struct Fetch {
    std::uint64_t line = ~std::uint64_t{0};
    ReferenceCycle sent = 0;
    SectorMask mask = 0;
  };
  struct Set {
    std::array<Fetch, 4> fetches;
    std::uint64_t launch = 0;  ///< that it is about
    std::uint32_t next = 0;
  };
  ZeroedArray<Set> sets_;
  std::uint64_t launch_ = 0;  ///< counted from 1 while one runs
};

}  // namespace warpstack::memory
