#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/interrupt.h"
#include "memory/reuse/reuse_distance.h"

namespace warpstack::memory {

/// The kind of an access; distances are counted separately for each.
enum class AccessKind : std::uint8_t { load, store, atomic };
inline constexpr std::size_t num_access_kinds = 3;

/// How often each stack distance occurs.
struct DistanceHistogram {
  std::vector<std::uint64_t> count;  ///< by distance
  std::uint64_t cold = 0;            ///< accesses without a distance

  void add(std::uint64_t distance) {
    if (distance == cold_access) {
      ++cold;
      return;
    }
    if (distance >= count.size()) count.resize(distance + distance / 2 + 64);
    ++count[distance];
  }
};

/// Which lines to follow: all, or a sample by a hash of the line number (SHARDS: Waldspurger et
/// al., FAST 2015, Section 3). A line is in the sample with all its accesses or with none.
struct LineSampling {
  double rate = 1;            ///< share of the lines, above 0 and at most 1; 1 follows all
  std::uint32_t batches = 0;  ///< parts of the sampled hash space, each with a stack of its own
  std::uint64_t seed = 0;     ///< chooses the hash

  /// Throws InputError on impossible values.
  void validate() const;
};

/// Hash that decides which lines are sampled: the mixing function of SplitMix64.
std::uint64_t sampling_hash(std::uint64_t line, std::uint64_t seed);

/// Histograms of the stack distances of one or several streams of lines. Distances and counts of a
/// sample are those within the sample: both must be divided by the rate.
class ReuseProfiler {
 public:
  using Histograms = std::array<DistanceHistogram, num_access_kinds>;

  /// Throws InputError on an impossible sampling.
  explicit ReuseProfiler(const LineSampling& sampling);

  /// Continues the stream. `kinds` has the length of `lines`, or is empty when all are loads.
  void access(std::span<const std::uint64_t> lines, std::span<const std::uint8_t> kinds,
              const InterruptCheck& interrupt = {});
  /// The next access begins another stream, which shares no contents with this one.
  void end_stream();

  /// Accesses so far, sampled or not.
  [[nodiscard]] const std::array<std::uint64_t, num_access_kinds>& accesses() const {
    return accesses_;
  }
  [[nodiscard]] const Histograms& histograms() const { return whole_.histograms; }
  [[nodiscard]] std::size_t num_batches() const { return batches_.size(); }
  /// The same within one batch, as if only its lines had been sampled.
  [[nodiscard]] const Histograms& batch(std::size_t index) const {
    return batches_[index].histograms;
  }

 private:
  /// A stack, its histograms, and the accesses that wait to enter it together.
  struct Part {
    StackDistances stack;
    Histograms histograms;
    std::vector<std::uint64_t> lines;
    std::vector<std::uint8_t> kinds;
  };
  void sample(std::span<const std::uint64_t> lines, std::span<const std::uint8_t> kinds);
  void settle(Part& part, std::span<const std::uint64_t> lines,
              std::span<const std::uint8_t> kinds);

  LineSampling sampling_;
  std::uint64_t threshold_;    ///< hashes below it are sampled, unless all are
  std::uint64_t batch_width_;  ///< hashes per batch
  std::array<std::uint64_t, num_access_kinds> accesses_{};
  Part whole_;
  std::vector<Part> batches_;
  std::vector<std::uint64_t> distances_;
};

}  // namespace warpstack::memory
