#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/interrupt.h"
#include "memory/cache/request.h"
#include "memory/system/memory_system.h"
#include "memory/system/order_recording.h"

// What other caches would do with a recorded order of accesses: L1 once for each L1, and behind it
// L2 for each L2, of which it is enough to follow a part of the sets.

namespace warpstack::memory {

/// Which sets of several L2 caches that differ in size and ways are followed: classes of lines that
/// are whole sets in each of them.
class SetSample {
 public:
  /// `share` of the sets, 1: all. The caches have the same slices and lines. Follows all sets where
  /// there are too few classes: few slices, and sets found by a hash.
  SetSample(std::span<const CacheConfig> caches, double share);

  [[nodiscard]] bool has(std::uint64_t line) const {
    return followed_.empty() || followed_[grid_.set_of(line)];
  }
  [[nodiscard]] bool is_whole() const { return followed_.empty(); }
  [[nodiscard]] std::uint32_t slice_of(std::uint64_t line) const {
    return grid_.slice_of(grid_.set_of(line));
  }

 private:
  /// A cache whose sets are the classes.
  [[nodiscard]] static CacheConfig grid_of(std::span<const CacheConfig> caches);

  Cache grid_;
  std::vector<char> followed_;  ///< by class; empty: all are
};

/// Which waits of a launch are followed: with all accesses of a warp between two times at which it
/// waits for what it asked for. Without times each access is one.
struct WaitSample {
  WaitSample(const OrderRecording& recording, double share);

  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> place;     ///< of an access in `accesses`, or none
  std::vector<std::uint32_t> accesses;  ///< followed ones, wait by wait
  std::vector<std::uint32_t> begin;     ///< of each wait in `accesses`, and the end of the last one
};

/// What leaves the L1 caches of a recorded launch, and what of it does not depend on L2.
struct FilteredLaunch {
  /// What an access that is followed asks of L2, or waits for.
  struct Asked {
    std::uint32_t request;  ///< in `requests`; of a set that is not followed: one of the same row
    std::int32_t arrival;   ///< at the SM less the round trip, after the first line of the wait
    bool is_own;            ///< not asked for by another access that is under way
    bool is_awaited;
  };

  MemoryProfile profile;  ///< without what L2 decides
  /// To L2, in order, of sets that are followed. The first one is none of them.
  std::vector<Request> requests;
  std::vector<ByteMasks> bytes;
  std::vector<Asked> asked;                ///< by access
  std::vector<std::uint32_t> first_asked;  ///< by place in WaitSample::accesses, and the end
  std::vector<std::int32_t> hit_arrival;   ///< by that place: of lines in L1; negative: none
  std::vector<std::uint64_t> asking;       ///< by row: accesses that ask L2 for something
  std::vector<std::uint64_t> waiting;      ///< by row: accesses whose data are awaited
  std::vector<std::uint32_t> rows;         ///< by that place
  std::vector<std::int32_t> sent;          ///< by that place, after the first line of the wait
  std::vector<char> is_awaited;            ///< by that place
};

/// Sends a recorded launch through L1 caches of another size.
FilteredLaunch filter(const OrderRecording& recording, const trace::KernelTrace& trace,
                      const MemoryConfig& config, const SetSample& sets, const WaitSample& waits);

/// A launch and the order in which it accesses memory.
struct RecordedLaunch {
  const trace::KernelTrace* trace;
  const OrderRecording* recording;
};

/// What several memory systems make of launches in order.
struct ReplayedLaunches {
  std::vector<std::vector<MemoryProfile>> distinct;    ///< by launch, all different
  std::vector<std::vector<std::uint32_t>> of_configs;  ///< by configuration and launch: which
};

/// Replays launches in order through memory systems that differ in the size and ways of L1 and L2
/// only: once through each L1, and behind it through all of its L2 together. `share` of L2's sets
/// and of the waits are followed, the others estimated by row; 1: all. `flush_l2`: before each
/// launch.
ReplayedLaunches replay(std::span<const RecordedLaunch> launches,
                        std::span<const MemoryConfig> configs, double share, bool flush_l2,
                        const InterruptCheck& interrupt = {});

}  // namespace warpstack::memory
