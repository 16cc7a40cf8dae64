#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/interrupt.h"
#include "memory/cache/request.h"
#include "memory/system/memory_system.h"
#include "memory/system/order_recording.h"

// Replays a recorded order of accesses on other caches: once through each L1, and behind it through
// each L2, of whose sets only a part need be followed.

namespace warpstack::memory {

/// The sample of followed sets of several L2 caches that differ in size and ways. It consists of
/// classes of lines, each of which is made of whole sets in every cache.
class SetSample {
 public:
  /// Follows `share` of the sets; 1: all. The caches have the same slices and lines. All sets are
  /// followed if there are too few classes, as with few slices and hashed sets.
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
  std::vector<char> followed_;  ///< by class; empty: all are followed
};

/// The sample of followed waits of a launch. A wait has all accesses of a warp since its last wait
/// for data; in orders without times, each access is a wait.
struct WaitSample {
  WaitSample(const OrderRecording& recording, double share);

  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> place;     ///< by access: its position in `accesses`, or none
  std::vector<std::uint32_t> accesses;  ///< those that are followed, wait by wait
  std::vector<std::uint32_t> begin;     ///< where each wait begins in `accesses`; then the end
};

/// What leaves the L1 caches of a recorded launch, and its statistics that do not depend on L2.
struct FilteredLaunch {
  /// What a followed access asks of L2 or waits for.
  struct Asked {
    std::uint32_t request;  ///< in `requests`; if its set is not followed, another one of its row
    std::int32_t arrival;   ///< at the SM, without the round trip, since the first line of the wait
    bool is_own;            ///< not yet asked for by another access
    bool is_awaited;
  };

  MemoryProfile profile;  ///< without what depends on L2
  /// Requests to followed sets of L2, in order. The first entry is a placeholder.
  std::vector<Request> requests;
  std::vector<ByteMasks> bytes;
  std::vector<Asked> asked;                ///< by access
  std::vector<std::uint32_t> first_asked;  ///< by place in WaitSample::accesses; then the end
  std::vector<std::int32_t> hit_arrival;   ///< by that place: of L1 hits; negative: none
  std::vector<std::uint64_t> asking;       ///< by row: accesses that ask L2 for something
  std::vector<std::uint64_t> waiting;      ///< by row: accesses whose data are awaited
  std::vector<std::uint32_t> rows;         ///< by that place
  std::vector<std::int32_t> sent;          ///< by that place, since the first line of the wait
  std::vector<char> is_awaited;            ///< by that place
  std::vector<char> is_repeat;             ///< by that place
};

/// Sends a recorded launch through L1 caches of another size.
FilteredLaunch filter(const OrderRecording& recording, const trace::KernelTrace& trace,
                      const MemoryConfig& config, const SetSample& sets, const WaitSample& waits);

/// A launch and the order in which it accesses memory.
struct RecordedLaunch {
  const trace::KernelTrace* trace;
  const OrderRecording* recording;
};

/// The profiles of launches in order on several memory systems.
struct ReplayedLaunches {
  std::vector<std::vector<MemoryProfile>> distinct;  ///< by launch: its different profiles
  std::vector<std::vector<std::uint32_t>>
      of_configs;  ///< by configuration and launch: index in `distinct`
};

/// Replays launches in order through memory systems that differ in the size and ways of L1 and L2
/// only: once through each L1, and behind it through all of its L2 together. Only `share` of L2's
/// sets and of the waits are followed, the others are estimated by row; 1: all are followed.
/// `flush_l2` empties L2 before each launch, which then has the lines of strangers again.
ReplayedLaunches replay(std::span<const RecordedLaunch> launches,
                        std::span<const MemoryConfig> configs, double share, bool flush_l2,
                        const InterruptCheck& interrupt = {});

}  // namespace warpstack::memory
