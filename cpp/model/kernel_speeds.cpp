#include "model/kernel_speeds.h"

namespace warpstack::model {

const std::vector<double>& KernelSpeeds::times(const std::map<std::int32_t, double>& blocks) {
  const auto known = known_.find(blocks);
  if (known != known_.end()) return known->second;
  std::vector<CustomerClass> classes;
  SmGroup group{sms_, {}};
  for (const auto& [of_class, count] : blocks) {
    classes.push_back(*classes_[static_cast<std::size_t>(of_class)]);
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
    speeds[i] = times({{one.of_class, one.alone}})[0] / mixed;
  }
  return speeds;
}

}  // namespace warpstack::model
