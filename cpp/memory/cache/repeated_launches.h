#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/digest.h"
#include "memory/cache/cache.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// What earlier launches did. One that is equal to an earlier launch and finds L2 as that one found
/// it does the same and leaves the same, so that it need not run: iterations of an application come
/// to this soon. Both are found by their digests.
template <typename Result>
class RepeatedLaunches {
 public:
  explicit RepeatedLaunches(const CacheConfig& l2)
      : worth_(l2.num_lines()),
        most_kept_(
            std::clamp<std::size_t>(most_bytes / (bytes_per_line * l2.num_lines()), 4, 256)) {}

  /// What a launch with these settings does: run() says so, which leaves L2 as the launch does,
  /// unless it is known and L2 takes what was left then.
  template <typename Run>
  Result result_of(const trace::KernelTrace& trace, const std::string& settings, Cache& l2,
                   const Run& run) {
    // A digest and a copy of L2 must cost less than the launch.
    if (trace.totals().sectors < worth_) return run();
    const auto [entry, is_new] = tries_.try_emplace(trace.content_digest(), 0);
    if (is_new || entry->second == most_tries) return run();
    Digest state;
    l2.add_to(state);
    std::string key = trace.content_digest() + ' ' + settings + ' ' + state.hex();
    if (const auto found = std::ranges::find(kept_, key, &Kept::key); found != kept_.end()) {
      entry->second = 0;
      kept_.splice(kept_.begin(), kept_, found);
      l2 = found->l2;
      return found->result;
    }
    ++entry->second;
    Result result = run();
    kept_.push_front({std::move(key), result, l2});
    if (kept_.size() > most_kept_) kept_.pop_back();
    return result;
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;
  static constexpr std::size_t bytes_per_line = 16;  ///< about, of a cache
  /// After so many in vain nobody looks for a launch any more: its L2 is another each time.
  static constexpr std::uint32_t most_tries = 4;

  struct Kept {
    std::string key;
    Result result;
    Cache l2;  ///< afterwards
  };

  std::uint64_t worth_;  ///< sectors
  std::size_t most_kept_;
  std::unordered_map<std::string, std::uint32_t> tries_;  ///< in vain, by digest of the launch
  std::list<Kept> kept_;                                  ///< the one used last first
};

}  // namespace warpstack::memory
