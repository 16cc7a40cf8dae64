#include "interval/waves.h"

#include <algorithm>

namespace warpstack::interval {

std::vector<Wave> waves_of(std::uint64_t num_blocks, double warps_per_block,
                           std::uint32_t blocks_per_sm, std::uint32_t num_sms) {
  const std::uint64_t capacity = std::uint64_t{blocks_per_sm} * num_sms;
  std::vector<Wave> waves;
  const auto add = [&](std::uint64_t count, std::uint64_t blocks, std::uint64_t sms) {
    if (count == 0 || blocks == 0) return;
    const std::uint64_t on_fullest = (blocks + sms - 1) / sms;
    waves.push_back({static_cast<double>(count), static_cast<double>(on_fullest) * warps_per_block,
                     static_cast<double>(sms), static_cast<double>(blocks) * warps_per_block});
  };
  add(num_blocks / capacity, capacity, num_sms);
  const std::uint64_t rest = num_blocks % capacity;
  add(1, rest, std::min<std::uint64_t>(rest, num_sms));
  return waves;
}

}  // namespace warpstack::interval
