#pragma once

#include <array>
#include <cstdint>

#include "common/zeroed_array.h"
#include "gpu/reference_machine.h"
#include "memory/cache/request.h"
#include "memory/order/wake_times.h"

namespace warpstack::memory {

/// What L2 has fetched lately: the tags have it, but the data come only when DRAM sends them. Those
/// who ask for it meanwhile wait with the first one. One object serves launch after launch, so that
/// a launch costs nothing for the sets that it does not use.
class FetchesUnderWay {
 public:
  explicit FetchesUnderWay(std::uint64_t sets) : sets_(sets) {}

  /// Forgets everything.
  void begin_launch() {
    if (++launch_ == launches) {
      sets_.clear();
      launch_ = 1;
    }
  }

  /// Prefetches what is_awaited() of a request to this set will touch.
  void prefetch(std::uint32_t set) const { __builtin_prefetch(&sets_[set]); }

  /// Whether a request is answered about when DRAM answers, though its sectors are in the tags.
  /// Each set is for one thread.
  bool is_awaited(const Request& request, const Outcome& outcome, ReferenceCycle now) {
    Set& set = sets_[request.set];
    if (!outcome.asks_dram) {
      bool awaited = false;
      for (std::size_t i = 0; i < set.lines.size(); ++i) {
        if (set.lines[i] != request.line) continue;
        const std::uint64_t fetch = set.fetches[i];
        awaited |= (fetch & request.mask) != 0 && fetch >> launch_shift == launch_ &&
                   now < (fetch >> time_shift & most_time) + nearer_to_dram;
      }
      return awaited;
    }
    // The oldest one goes.
    for (std::size_t i = set.lines.size() - 1; i > 0; --i) {
      set.lines[i] = set.lines[i - 1];
      set.fetches[i] = set.fetches[i - 1];
    }
    set.lines[0] = request.line;
    set.fetches[0] = launch_ << launch_shift | (now & most_time) << time_shift | request.mask;
    return false;
  }

 private:
  /// After half of DRAM's latency the data come nearer to the time that L2 takes for its own.
  static constexpr ReferenceCycle nearer_to_dram = gpu::ReferenceMachine::dram / 2;
  // A fetch is a word: its mask, when it was sent, and the launch. A launch takes less than 2^40
  // cycles: its trace would not fit into any memory.
  static constexpr unsigned time_shift = 8;
  static constexpr unsigned launch_shift = 48;
  static constexpr std::uint64_t most_time = (std::uint64_t{1} << (launch_shift - time_shift)) - 1;
  static constexpr std::uint64_t launches = std::uint64_t{1} << (64 - launch_shift);
  /// The last four fetches, the latest first: a line of the processor's cache.
  struct alignas(64) Set {
    std::array<std::uint64_t, 4> lines;
    std::array<std::uint64_t, 4> fetches;
  };
  ZeroedArray<Set> sets_;
  std::uint64_t launch_ = 0;  ///< counted from 1 while one runs
};

}  // namespace warpstack::memory
