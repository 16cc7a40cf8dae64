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

/// Results of earlier launches. A launch that equals an earlier one and finds L2 in the same state
/// has the same result and leaves L2 in the same state, so it need not run; iterations of an
/// application soon reach this point. Launches and states are compared by digest.
template <typename Result>
class RepeatedLaunches {
 public:
  explicit RepeatedLaunches(const CacheConfig& l2)
      : worth_(l2.num_lines()),
        most_kept_(
            std::clamp<std::size_t>(most_bytes / (bytes_per_line * l2.num_lines()), 4, 256)) {}

  /// The result of a launch with these settings. If it is known, L2 takes the state that the launch
  /// left then; otherwise run() computes it and changes L2 as the launch does.
  template <typename Run>
  Result result_of(const trace::KernelTrace& trace, const std::string& settings, Cache& l2,
                   const Run& run) {
    // A digest and a copy of L2 must cost less than the launch, and an own policy has no digest.
    if (trace.totals().sectors < worth_ || gpu::is_own(l2.config().replacement)) return run();
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
  static constexpr std::size_t bytes_per_line = 16;  ///< of a cache, about
  /// A launch is not looked up any more after so many failed tries: it finds L2 in another state
  /// each time.
  static constexpr std::uint32_t most_tries = 4;

  struct Kept {
    std::string key;
    Result result;
    Cache l2;  ///< afterwards
  };

  std::uint64_t worth_;  ///< sectors
  std::size_t most_kept_;
  std::unordered_map<std::string, std::uint32_t> tries_;  ///< failed ones, by digest of the launch
  std::list<Kept> kept_;                                  ///< most recently used first
};

}  // namespace warpstack::memory
