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

/// A launch alone on the GPU.
struct LaunchAlone {
  double blocks = 1;
  double places = 1;        ///< blocks that the GPU holds at once
  double instructions = 1;  ///< of a warp
  double cycles = 1;
};
/// The share of a launch's cycles alone that its network takes, at most 1: the rest nobody makes
/// longer (see ConcurrentGrids).
double network_share(const CustomerClass& customers, const LaunchAlone& launch, double sms,
                     double mshrs);

/// How fast launches are that run together, each relative to itself alone, where all blocks are
/// spread over all SMs.
class KernelSpeeds {
 public:
  /// Each class with its network_share(); none: nothing is known of it.
  using Class = std::optional<std::pair<CustomerClass, double>>;

  KernelSpeeds(std::vector<Class> classes, double sms, double mshrs)
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

  std::vector<Class> classes_;
  double sms_;
  double mshrs_;
  std::mutex mutex_;
  std::map<std::map<std::int32_t, double>, std::vector<double>> known_;
};

}  // namespace warpstack::model
