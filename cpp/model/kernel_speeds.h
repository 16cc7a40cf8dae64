#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/mixed_network.h"

namespace warpstack::model {

/// Blocks of a launch that run, and as many as would run in its place alone.
struct RunningBlocks {
  std::int32_t of_class = -1;  ///< negative: nothing is known of it
  double blocks = 0;           ///< on the GPU
  double alone = 0;
};

/// How fast launches are that run together, each relative to itself alone, where all blocks are
/// spread over all SMs.
class KernelSpeeds {
 public:
  KernelSpeeds(std::vector<std::optional<CustomerClass>> classes, double sms, double mshrs)
      : classes_(std::move(classes)), sms_(sms), mshrs_(mshrs) {}

  /// One for each launch; 1 where nothing is known.
  std::vector<double> of(std::span<const RunningBlocks> launches);

 private:
  [[nodiscard]] bool is_known(std::int32_t of_class) const {
    return of_class >= 0 && static_cast<std::size_t>(of_class) < classes_.size() &&
           classes_[static_cast<std::size_t>(of_class)];
  }
  /// Times of classes of which so many blocks run, by class and blocks.
  const std::vector<double>& times(const std::map<std::int32_t, double>& blocks);

  std::vector<std::optional<CustomerClass>> classes_;
  double sms_;
  double mshrs_;
  std::mutex mutex_;
  std::map<std::map<std::int32_t, double>, std::vector<double>> known_;
};

}  // namespace warpstack::model
