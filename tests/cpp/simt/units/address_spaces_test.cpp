#include "simt/units/address_spaces.h"

#include <gtest/gtest.h>

#include <array>

#include "simt/device/device.h"
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
    const Step step;
    LaneAddresses places;
    const auto range_from = [&](std::uint64_t address) {
      return launch.spaces.common_range(step, words_from(address), 4, true, places);
    };
    const HostRange range = range_from(a);
    ASSERT_TRUE(range);
    EXPECT_EQ(range.at(a + 124), memory.data(a + 124));
    EXPECT_TRUE(range_from(a + 128)) << "up to the last byte";
    EXPECT_FALSE(range_from(a + 132)) << "beyond";
    EXPECT_FALSE(range_from(a + 2)) << "misaligned";
    const std::uint64_t b = memory.allocate(256);
    EXPECT_FALSE(range_from(b)) << "nobody has written it";
  }
}

TEST(AddressSpaces, StoresMarkWhatLoadsMayRead) {
  Device device(1 << 20);
  const std::uint64_t a = device.memory.allocate(4096);
  Launch launch(device);
  const Step step;
  LaneAddresses places;
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u, 16u, 32u}) {
    LaneAddresses lanes;
    lanes.mask = 0x80000005;  // 0, 2 and 31
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) lanes.address[lane] = a + bytes * lane;
    device.memory.free(a);
    launch.spaces.forget_allocation();
    ASSERT_EQ(device.memory.allocate(4096), a);
    EXPECT_FALSE(launch.spaces.common_range(step, lanes, bytes, true, places)) << bytes;
    EXPECT_TRUE(launch.spaces.common_range(step, lanes, bytes, false, places)) << bytes;
    EXPECT_TRUE(launch.spaces.common_range(step, lanes, bytes, true, places)) << bytes;
    lanes.mask |= 2;
    EXPECT_FALSE(launch.spaces.common_range(step, lanes, bytes, true, places))
        << bytes << ", lane 1";
    lanes.mask = 4;
    lanes.address[2] -= bytes;
    EXPECT_FALSE(launch.spaces.common_range(step, lanes, bytes, true, places))
        << bytes << ", before";
  }
}

// The first lanes lie at the end of the address space, the last ones at the beginning.
TEST(AddressSpaces, ConsecutiveAddressesThatWrapAround) {
  Device device(1 << 20);
  Launch launch(device);
  launch.execution.block.shared.resize(1024);
  EXPECT_TRUE(launch.spaces.common_shared_range(words_from(0), 4, false));
  EXPECT_FALSE(launch.spaces.common_shared_range(words_from(std::uint64_t{0} - 64), 4, false));
}

// Each thread has its own bytes, and what one has written no other has.
TEST(AddressSpaces, LanesOfLocalMemory) {
  Device device(1 << 20);
  Launch launch(device);
  launch.execution.local_bytes = 24;
  Warp warp;
  assign_zeros(warp.local, 24 * warp_size);
  warp.local_written.reset(24 * warp_size);
  LaneAddresses lanes;
  lanes.mask = 0b1001;
  lanes.address.fill(8);
  LaneAddresses places;
  const auto range_of = [&](std::uint32_t bytes, bool is_load) {
    return launch.spaces.common_local_range(warp, lanes, bytes, is_load, places);
  };
  EXPECT_FALSE(range_of(8, true)) << "nobody has written it";
  const HostRange range = range_of(8, false);
  ASSERT_TRUE(range);
  EXPECT_EQ(range.at(places.address[3]),
            reinterpret_cast<std::byte*>(warp.local.get()) + 3 * 24 + 8);
  EXPECT_TRUE(range_of(8, true));
  lanes.mask = 0b0010;
  EXPECT_FALSE(range_of(8, true)) << "another thread";
  lanes.address.fill(12);
  EXPECT_FALSE(range_of(8, false)) << "misaligned";
  lanes.address.fill(24);
  EXPECT_FALSE(range_of(8, false)) << "beyond";
  lanes.address.fill(0);
  EXPECT_FALSE(range_of(16, false)) << "threads' memory does not begin at multiples of 16";
}

}  // namespace
