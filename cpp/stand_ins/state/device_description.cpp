#include "stand_ins/state/device_description.h"

#include <charconv>
#include <map>

#include "common/error.h"

namespace warpstack::cudart {

DeviceDescription parse_device_description(std::string_view text) {
  DeviceDescription device;
  const std::map<std::string_view, std::uint32_t*> numbers{
      {"num_sms", &device.num_sms},
      {"clock_khz", &device.clock_khz},
      {"warps_per_sm", &device.warps_per_sm},
      {"threads_per_sm", &device.threads_per_sm},
      {"blocks_per_sm", &device.blocks_per_sm},
      {"registers_per_sm", &device.registers_per_sm},
      {"shared_bytes_per_sm", &device.shared_bytes_per_sm},
      {"l2_bytes", &device.l2_bytes},
      {"copy_engines", &device.copy_engines},
      {"capability", &device.capability},
  };
  const auto number = [](std::string_view field, std::string_view value, auto& target) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), target);
    if (error != std::errc() || end != value.data() + value.size() || target == 0) {
      throw InputError("device description: " + std::string(field) + " = " + std::string(value) +
                       ": expected a positive number");
    }
  };
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    const std::string_view field = pair.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    if (field == "name") {
      device.name = value;
    } else if (field == "memory_bytes") {
      number(field, value, device.memory_bytes);
    } else if (const auto found = numbers.find(field); found != numbers.end()) {
      number(field, value, *found->second);
    } else {
      throw InputError("device description: unknown field " + std::string(field));
    }
  }
  return device;
}

}  // namespace warpstack::cudart
