#include "model/kernel_speeds.h"

#include <algorithm>
#include <cmath>

namespace warpstack::model {

double network_share(const CustomerClass& customers, const LaunchAlone& launch, double sms,
                     double mshrs) {
  const SmGroup group{sms, {std::min(launch.blocks, launch.places) / sms}};
  const double time = mixed_network_times(std::span(&customers, 1), std::span(&group, 1), mshrs)[0];
  const double waves = std::ceil(launch.blocks / launch.places);
  return launch.cycles > 0 ? std::min(waves * launch.instructions * time / launch.cycles, 1.0) : 1;
}

const std::vector<double>& KernelSpeeds::times(const std::map<std::int32_t, double>& blocks) {
  const auto known = known_.find(blocks);
  if (known != known_.end()) return known->second;
  std::vector<CustomerClass> classes;
  SmGroup group{sms_, {}};
  for (const auto& [of_class, count] : blocks) {
    classes.push_back(classes_[static_cast<std::size_t>(of_class)]->first);
    group.blocks.push_back(count / sms_);
  }
  return known_.emplace(blocks, mixed_network_times(classes, std::span(&group, 1), mshrs_))
      .first->second;
}

std::vector<double> KernelSpeeds::of(std::span<const RunningBlocks> launches) {
  const std::lock_guard lock(mutex_);
  std::map<std::int32_t, double> together;
  for (const RunningBlocks& one : launches) {
    if (is_known(one.of_class)) together[one.of_class] += one.blocks;
  }
  std::vector<double> speeds(launches.size(), 1);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const RunningBlocks& one = launches[i];
    if (!is_known(one.of_class)) continue;
    const auto place = std::distance(together.begin(), together.find(one.of_class));
    const double mixed = times(together)[static_cast<std::size_t>(place)];
    const double longer = mixed / times({{one.of_class, one.alone}})[0];
    const double share = classes_[static_cast<std::size_t>(one.of_class)]->second;
    speeds[i] = 1 / (1 - share + share * longer);
  }
  return speeds;
}

}  // namespace warpstack::model
