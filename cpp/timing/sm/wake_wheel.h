#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/base/clock.h"

namespace warpstack::timing {

/// When warps have what they wait for. Those of the next cycles lie in a wheel with a bucket per
/// cycle, so that who wakes and when the next one does cost nothing per warp that sleeps on.
class WakeWheel {
 public:
  explicit WakeWheel(std::size_t slots)
      : words_((slots + 63) / 64), buckets_(num_buckets * words_), later_(words_), at_(slots) {}

  /// Who waits until then has been woken.
  [[nodiscard]] Cycle now() const { return now_; }
  /// A warp that is not here waits until a cycle after now().
  void add(std::uint32_t slot, Cycle at) {
    at_[slot] = at;
    const std::size_t word = slot / 64;
    const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    if (at - now_ <= num_buckets) {
      const std::uint32_t bucket = bucket_of(at);
      buckets_[bucket * words_ + word] |= bit;
      used_ |= std::uint64_t{1} << bucket;
    } else {
      later_[word] |= bit;
      later_from_ = std::min(later_from_, at);
    }
  }
  /// It does not wait for its time any more.
  void remove(std::uint32_t slot) {
    const std::size_t word = slot / 64;
    const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    if (later_[word] & bit) {
      later_[word] &= ~bit;
      if (at_[slot] == later_from_) find_later();
      return;
    }
    const std::uint32_t bucket = bucket_of(at_[slot]);
    std::uint64_t* first = &buckets_[bucket * words_];
    first[word] &= ~bit;
    if (std::all_of(first, first + words_, [](std::uint64_t one) { return one == 0; })) {
      used_ &= ~(std::uint64_t{1} << bucket);
    }
  }
  /// Goes on to a cycle: calls `wake(slot)` for each warp that waits until then, which leaves.
  template <typename Wake>
  void advance(Cycle now, Wake wake) {
    if (now <= now_) return;
    if (next() > now) {
      now_ = now;
    } else {
      wake_until(now, wake);
    }
  }
  /// When the next one wakes.
  [[nodiscard]] Cycle next() const {
    return used_ != 0 ? std::min(next_in_buckets(), later_from_) : later_from_;
  }

 private:
  static constexpr std::uint32_t num_buckets = 64;

  template <typename Wake>
  void wake_until(Cycle now, Wake wake) {
    while (used_ != 0) {
      const Cycle at = next_in_buckets();
      if (at > now) break;
      const std::uint32_t bucket = bucket_of(at);
      used_ &= ~(std::uint64_t{1} << bucket);
      for (std::size_t w = 0; w < words_; ++w) {
        std::uint64_t& bits = buckets_[bucket * words_ + w];
        for (; bits != 0; bits &= bits - 1) {
          wake(static_cast<std::uint32_t>(w * 64) +
               static_cast<std::uint32_t>(std::countr_zero(bits)));
        }
      }
    }
    if (later_from_ <= now) {
      for (std::size_t w = 0; w < words_; ++w) {
        for (std::uint64_t bits = later_[w]; bits != 0; bits &= bits - 1) {
          const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
          const std::uint32_t slot = static_cast<std::uint32_t>(w * 64) + bit;
          if (at_[slot] > now) continue;
          later_[w] &= ~(std::uint64_t{1} << bit);
          wake(slot);
        }
      }
      find_later();
    }
    now_ = now;
  }

  [[nodiscard]] static std::uint32_t bucket_of(Cycle at) {
    return static_cast<std::uint32_t>(at) % num_buckets;
  }
  /// All buckets are of the num_buckets cycles after now().
  [[nodiscard]] Cycle next_in_buckets() const {
    const auto first = static_cast<int>(bucket_of(now_ + 1));
    return now_ + 1 + std::countr_zero(std::rotr(used_, first));
  }
  void find_later() {
    later_from_ = never;
    for (std::size_t w = 0; w < words_; ++w) {
      for (std::uint64_t bits = later_[w]; bits != 0; bits &= bits - 1) {
        later_from_ =
            std::min(later_from_, at_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
      }
    }
  }

  std::size_t words_;
  std::uint64_t used_ = 0;  ///< buckets that are not empty
  Cycle now_ = -1;
  Cycle later_from_ = never;            ///< the first of those that wait for longer
  std::vector<std::uint64_t> buckets_;  ///< a bit per slot
  std::vector<std::uint64_t> later_;
  std::vector<Cycle> at_;
};

}  // namespace warpstack::timing
