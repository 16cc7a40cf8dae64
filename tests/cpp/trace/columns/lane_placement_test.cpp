#include "trace/columns/lane_placement.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpstack::trace {
namespace {

using Sectors = std::vector<std::uint64_t>;
using Bytes = std::vector<std::uint32_t>;

TEST(PlaceLanes, CoalescedLoadsLieSideBySide) {
  LaneAddresses lanes;
  ASSERT_TRUE(place_lanes(0xffffffff, 4, Sectors{8, 9, 10, 11}, {}, lanes));
  for (std::uint64_t lane = 0; lane < 32; ++lane) EXPECT_EQ(lanes.address[lane], 256 + 4 * lane);
}

TEST(PlaceLanes, SectorsKeepTheirOrder) {
  LaneAddresses lanes;
  ASSERT_TRUE(place_lanes(0b10110, 4, Sectors{9, 3, 7}, {}, lanes));
  EXPECT_EQ(lanes.address[1], 288u);
  EXPECT_EQ(lanes.address[2], 96u);
  EXPECT_EQ(lanes.address[4], 224u);
}

TEST(PlaceLanes, MoreSectorsThanLanesStraddle) {
  // One lane of 4 bytes touches two sectors only from byte 29 to 31 of the first.
  LaneAddresses lanes;
  ASSERT_TRUE(place_lanes(0b11, 4, Sectors{5, 6, 1}, {}, lanes));
  EXPECT_EQ(lanes.address[0], 5u * 32 + 31);
  EXPECT_EQ(lanes.address[1], 32u);
  EXPECT_FALSE(place_lanes(0b11, 4, Sectors{5, 1, 6}, {}, lanes));
  EXPECT_FALSE(place_lanes(0b11, 1, Sectors{5, 6, 1}, {}, lanes));
  EXPECT_FALSE(place_lanes(0, 4, Sectors{5}, {}, lanes));
}

TEST(PlaceLanes, StoresWriteTheirBytes) {
  // Words 1 and 0 of sector 9 and word 7 of sector 2: three words for three lanes.
  LaneAddresses lanes;
  const Bytes bytes{0x000000ff, 0xf0000000};
  ASSERT_TRUE(place_lanes(0b10101, 4, Sectors{9, 2}, bytes, lanes));
  EXPECT_EQ(lanes.address[0], 288u);
  EXPECT_EQ(lanes.address[2], 292u);
  EXPECT_EQ(lanes.address[4], 92u);
  EXPECT_FALSE(place_lanes(0b101, 4, Sectors{9, 2}, bytes, lanes));
}

TEST(PlaceLanes, AtomicsKeepTheLanesOfSectorsAndWords) {
  // Words 0 and 1 of sector 9 have 3 and 1 of four lanes, word 7 of sector 2 two.
  LaneAddresses lanes;
  const Bytes bytes{0x000000ff, 0xf0000000};
  const std::vector<AtomicLanes> atomics{{4, 3}, {2, 2}};
  ASSERT_TRUE(place_lanes(0x3f, 4, Sectors{9, 2}, bytes, lanes, atomics));
  std::vector<AtomicLanes> found;
  append_atomic_lanes(lanes, Sectors{9, 2}, found);
  EXPECT_EQ(found, atomics);
  EXPECT_EQ(lanes.address[2], 288u);
  EXPECT_EQ(lanes.address[3], 292u);
  EXPECT_EQ(lanes.address[5], 92u);
}

TEST(PlaceLanes, MisalignedStores) {
  // Bytes 30 to 35 in two accesses of 4: 30 to 33 and 32 to 35. Sector 1 first, so the second
  // first.
  LaneAddresses lanes;
  ASSERT_TRUE(place_lanes(0b11, 4, Sectors{1, 0}, Bytes{0xf, 0xc0000000}, lanes));
  EXPECT_EQ(lanes.address[0], 32u);
  EXPECT_EQ(lanes.address[1], 30u);
  // Three bytes are not accesses of four.
  EXPECT_FALSE(place_lanes(0b11, 4, Sectors{1}, Bytes{0x7}, lanes));
}

TEST(PlaceLocalLanes, BytesTellTheLane) {
  // Warp 2: lane 9 writes two words from private offset 12; its words lie in sectors 3 * 4 + 1 and
  // 4 * 4 + 1 of the warp's region, at bytes 4 to 7.
  const std::uint64_t base = local_region_sector + 2 * warp_size * window_bytes / sector_bytes;
  LaneAddresses lanes;
  const Sectors sectors{base + 13, base + 17};
  ASSERT_TRUE(place_local_lanes(1u << 9, 8, 2, sectors, Bytes{0xf0, 0xf0}, lanes));
  EXPECT_EQ(lanes.address[9], 12u);
  EXPECT_FALSE(place_local_lanes(1u << 10, 8, 2, sectors, Bytes{0xf0, 0xf0}, lanes));
  EXPECT_FALSE(place_local_lanes(1u << 9, 8, 1, sectors, Bytes{0xf0, 0xf0}, lanes));
}

TEST(PlaceSharedLanes, AsManyWavefrontsAsAskedFor) {
  for (const std::uint32_t width : {1u, 2u, 4u, 8u, 12u, 16u}) {
    for (const std::uint32_t mask : {0xffffffffu, 0x80000001u, 0x0f0f1234u}) {
      LaneAddresses lanes;
      std::uint32_t found = 0;
      for (std::uint32_t wavefronts = 0; wavefronts <= 40; ++wavefronts) {
        if (!place_shared_lanes(mask, width, wavefronts, lanes)) continue;
        EXPECT_EQ(shared_wavefronts(lanes, width), wavefronts);
        ++found;
      }
      // Between one per group of lanes that proceed together and one per lane.
      const std::uint32_t group = 32 / std::max((width + 3) / 4, 1u);
      std::uint32_t groups = 0;
      for (std::uint32_t first = 0; first < 32; first += group) {
        groups += (mask >> first & ((std::uint64_t{1} << group) - 1)) != 0;
      }
      EXPECT_EQ(found, static_cast<std::uint32_t>(std::popcount(mask)) - groups + 1);
    }
  }
}

TEST(PlaceSharedLanes, LoadsInPairs) {
  // 16 pairs take 2 wavefronts at least and 16 at most, single lanes from 4 on.
  for (const std::uint32_t mask : {0xffffffffu, 0x80000001u, 0x0f0f1234u, 0x11111111u}) {
    for (const std::uint32_t width : {8u, 16u}) {
      LaneAddresses lanes;
      const auto most = static_cast<std::uint32_t>(std::popcount(mask));
      lanes.mask = mask;
      lanes.address.fill(0);
      const std::uint32_t least = shared_wavefronts(lanes, width, SharedAccess::load);
      for (std::uint32_t wavefronts = least; wavefronts <= most; ++wavefronts) {
        ASSERT_TRUE(place_shared_lanes(mask, width, wavefronts, lanes, SharedAccess::load))
            << mask << ' ' << width << ' ' << wavefronts;
        EXPECT_EQ(shared_wavefronts(lanes, width, SharedAccess::load), wavefronts);
      }
      EXPECT_FALSE(place_shared_lanes(mask, width, least - 1, lanes, SharedAccess::load));
      EXPECT_FALSE(place_shared_lanes(mask, width, most + 1, lanes, SharedAccess::load));
    }
  }
}

TEST(PlaceGenericLanes, LanesOfThreeSpaces) {
  const GenericWindows windows{std::uint64_t{1} << 40, std::uint64_t{1} << 41};
  LaneAddresses lanes;
  // A global sector alone: one lane was in shared memory, or the access would be global.
  ASSERT_TRUE(place_generic_lanes(0b111, 4, 0, windows, Sectors{5}, {}, lanes));
  EXPECT_EQ(lanes.address[0] / 32, 5u);
  EXPECT_EQ(lanes.address[1] / 32, 5u);
  EXPECT_EQ(lanes.address[2], windows.shared);
  // A local sector of lanes 0 to 7 beside it: lane 0 goes there.
  ASSERT_TRUE(
      place_generic_lanes(0b111, 4, 0, windows, Sectors{5, local_region_sector + 8}, {}, lanes));
  EXPECT_EQ(lanes.address[0], windows.local + 8);
  EXPECT_EQ(lanes.address[2] / 32, 5u);
  EXPECT_FALSE(place_generic_lanes(0b1, 4, 0, windows, Sectors{5}, {}, lanes));
  EXPECT_FALSE(place_generic_lanes(0b11, 4, 0, {}, Sectors{5}, {}, lanes));
}

}  // namespace
}  // namespace warpstack::trace
