#include "simt/address_spaces.h"

#include <gtest/gtest.h>

#include <array>

#include "simt/device.h"
#include "simt/hand_written.h"

namespace {

using namespace warpstack::simt;
using warpstack::trace::LaneAddresses;

// Lanes 0 to 31 at words one after another.
LaneAddresses words_from(std::uint64_t address) {
  LaneAddresses lanes;
  lanes.mask = ~0u;
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) lanes.address[lane] = address + 4 * lane;
  return lanes;
}

struct Launch {
  explicit Launch(Device& device)
      : execution(device, program, {}, options, {}), faults(execution), spaces(execution, faults) {}

  KernelProgram program;
  LaunchOptions options;
  Execution execution;
  Faults faults;
  AddressSpaces spaces;
};

// One device lies at its own addresses, of two that exist at a time one cannot. A range was once
// told by the host address of device address 0: null in the first, which was taken for "there is
// none", so that every access went lane by lane.
TEST(AddressSpaces, LanesInOneAllocationHaveARangeWhereverTheDeviceLies) {
  Device first(1 << 20);
  Device second(1 << 20);
  for (Device* device : {&first, &second}) {
    DeviceMemory& memory = device->memory;
    const std::uint64_t a = memory.allocate(256);
    memory.fill(a, 1, 256);
    Launch launch(*device);
    const HostRange range = launch.spaces.common_range(words_from(a), 4);
    ASSERT_TRUE(range);
    EXPECT_EQ(range.at(a + 124), memory.data(a + 124));
    EXPECT_TRUE(launch.spaces.common_range(words_from(a + 128), 4)) << "up to the last byte";
    EXPECT_FALSE(launch.spaces.common_range(words_from(a + 132), 4)) << "beyond";
    EXPECT_FALSE(launch.spaces.common_range(words_from(a + 2), 4)) << "misaligned";
    const std::uint64_t b = memory.allocate(256);
    EXPECT_FALSE(launch.spaces.common_range(words_from(b), 4)) << "nobody has written it";
  }
}

}  // namespace
