#pragma once

#include <atomic>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warpstack {

/// A barrier for threads that meet every millisecond or so: they watch for each other for a while
/// before they sleep, because waking takes long. (std::barrier sleeps almost at once.)
class SpinBarrier {
 public:
  explicit SpinBarrier(std::uint32_t num_threads) : num_threads_(num_threads) {}

  /// Returns when all threads have called it. The last to arrive calls `then` before the others go
  /// on. Returns whether this thread had to sleep because the last one was late.
  template <typename Then>
  bool wait(Then then) {
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_) {
      then();
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      round_.notify_all();
      return false;
    }
    for (int i = 0; i < patience; ++i) {
      if (round_.load(std::memory_order_acquire) != round) return false;
#if defined(__SSE2__)
      _mm_pause();
#endif
    }
    round_.wait(round, std::memory_order_acquire);
    return true;
  }

  /// For `then`: from now on fewer threads meet. The others are released once more.
  void shrink(std::uint32_t num_threads) { num_threads_ = num_threads; }

 private:
  static constexpr int patience = 20000;  // some 300 microseconds

  std::uint32_t num_threads_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};
};

}  // namespace warpstack
