#include "trace/instructions/coalescing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "trace/columns/atomic_lanes.h"

namespace warpstack::trace {
namespace {

LaneAddresses lanes_of(std::uint32_t mask, std::uint64_t (*address)(std::uint64_t lane)) {
  LaneAddresses lanes;
  lanes.mask = mask;
  for (std::uint64_t lane = 0; lane < warp_size; ++lane) lanes.address[lane] = address(lane);
  return lanes;
}

TEST(Coalesce, NeighbouringLanesShareSectors) {
  std::vector<std::uint64_t> sectors;
  const auto lanes = lanes_of(0xffffffff, [](std::uint64_t i) { return 0x1000 + 4 * i; });
  EXPECT_EQ(coalesce(lanes, 4, sectors, nullptr), 4u);
  EXPECT_EQ(sectors, (std::vector<std::uint64_t>{128, 129, 130, 131}));
}

TEST(Coalesce, KeepsTheOrderOfFirstTouchAndAppends) {
  std::vector<std::uint64_t> sectors{7};
  const auto lanes = lanes_of(0b1111, [](std::uint64_t i) {
    return std::uint64_t{32} * (i == 0 ? 5 : i == 1 ? 9 : i == 2 ? 7 : 5);
  });
  EXPECT_EQ(coalesce(lanes, 4, sectors, nullptr), 3u);
  EXPECT_EQ(sectors, (std::vector<std::uint64_t>{7, 5, 9, 7}));
}

TEST(Coalesce, ByteMasksOfMisalignedStores) {
  std::vector<std::uint64_t> sectors;
  std::vector<std::uint32_t> bytes;
  const auto lanes = lanes_of(0b1, [](std::uint64_t) -> std::uint64_t { return 24; });
  EXPECT_EQ(coalesce(lanes, 16, sectors, &bytes), 2u);
  EXPECT_EQ(bytes, (std::vector<std::uint32_t>{0xff000000, 0x000000ff}));
}

// Against the definition: sectors in the order of first touch, and their bytes.
TEST(Coalesce, ScatteredLanes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    LaneAddresses lanes;
    lanes.mask = static_cast<std::uint32_t>(random());
    const std::uint64_t range = std::uint64_t{1} << (5 + round % 20);
    for (std::uint64_t& address : lanes.address) address = 0x7000 + random() % range;
    const std::uint32_t width = 1u << round % 6;
    std::vector<std::uint64_t> expected;
    std::vector<std::uint32_t> expected_bytes;
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      if ((lanes.mask >> lane & 1) == 0) continue;
      for (std::uint64_t byte = lanes.address[lane]; byte < lanes.address[lane] + width; ++byte) {
        const auto found = std::ranges::find(expected, byte / sector_bytes);
        const auto index = static_cast<std::size_t>(found - expected.begin());
        if (found == expected.end()) {
          expected.push_back(byte / sector_bytes);
          expected_bytes.push_back(0);
        }
        expected_bytes[index] |= 1u << byte % sector_bytes;
      }
    }
    std::vector<std::uint64_t> sectors;
    std::vector<std::uint32_t> bytes;
    EXPECT_EQ(coalesce(lanes, width, sectors, &bytes), expected.size());
    EXPECT_EQ(sectors, expected);
    EXPECT_EQ(bytes, expected_bytes);
    sectors.clear();
    EXPECT_EQ(coalesce(lanes, width, sectors, nullptr), expected.size());
    EXPECT_EQ(sectors, expected);
  }
}

TEST(Coalesce, NoLaneNoSector) {
  std::vector<std::uint64_t> sectors;
  const auto lanes = lanes_of(0, [](std::uint64_t i) { return i; });
  EXPECT_EQ(coalesce(lanes, 4, sectors, nullptr), 0u);
}

TEST(Coalesce, HighestAddressDoesNotWrap) {
  std::vector<std::uint64_t> sectors;
  const auto lanes = lanes_of(1, [](std::uint64_t) { return max_address; });
  EXPECT_EQ(coalesce(lanes, 32, sectors, nullptr), 2u);
}

TEST(CoalesceLocal, WarpsHaveRegionsOfTheirOwn) {
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> second;
  const auto lanes = lanes_of(0xffffffff, [](std::uint64_t) { return window_bytes - 4; });
  EXPECT_EQ(coalesce_local(lanes, 4, 0, first, nullptr), 4u);
  EXPECT_EQ(coalesce_local(lanes, 4, 1, second, nullptr), 4u);
  // Word 2^22 - 1 of a warp is the last row of 128 bytes of its 512 MiB.
  EXPECT_EQ(first[0], local_region_sector + (std::uint64_t{512} << 20) / 32 - 4);
  EXPECT_EQ(second[0] - first[0], (std::uint64_t{512} << 20) / 32);
}

std::vector<AtomicLanes> atomic_lanes_of(std::uint32_t mask,
                                         std::uint64_t (*address)(std::uint64_t)) {
  const LaneAddresses lanes = lanes_of(mask, address);
  std::vector<std::uint64_t> sectors;
  coalesce(lanes, 4, sectors, nullptr);
  std::vector<AtomicLanes> found;
  append_atomic_lanes(lanes, sectors, found);
  return found;
}

TEST(AtomicLanes, OfSectorsAndTheirWords) {
  using Found = std::vector<AtomicLanes>;
  // All lanes on one word; each on its own, eight of a sector.
  EXPECT_EQ(atomic_lanes_of(~0u, [](std::uint64_t) -> std::uint64_t { return 96; }),
            (Found{{32, 32}}));
  EXPECT_EQ(atomic_lanes_of(~0u, [](std::uint64_t i) { return 4 * i; }),
            (Found{{8, 1}, {8, 1}, {8, 1}, {8, 1}}));
  // Lane 0 alone in a sector; of the others 16 want the first word of another one, 15 the second.
  EXPECT_EQ(atomic_lanes_of(
                ~0u, [](std::uint64_t i) { return i == 0 ? 4000 : std::uint64_t{64} + i % 2 * 4; }),
            (Found{{1, 1}, {31, 16}}));
  // Sectors are in the order of their first lanes, and idle lanes count nowhere.
  EXPECT_EQ(atomic_lanes_of(0x7, [](std::uint64_t i) { return 64 - 32 * i; }),
            (Found{{1, 1}, {1, 1}, {1, 1}}));
  // A lane across a border counts where it begins.
  EXPECT_EQ(atomic_lanes_of(0x1, [](std::uint64_t) -> std::uint64_t { return 30; }),
            (Found{{1, 1}, {0, 1}}));
}

TEST(AtomicLanes, SpreadEvenlyOverWords) {
  using Found = std::vector<AtomicLanes>;
  const auto spread = [](std::uint32_t lanes, const std::vector<std::uint32_t>& bytes,
                         std::uint32_t width) {
    Found found;
    append_even_lanes(lanes, bytes, width, found);
    return found;
  };
  EXPECT_EQ(spread(32, {0xff}, 4), (Found{{32, 16}}));
  EXPECT_EQ(spread(5, {0xff}, 4), (Found{{5, 3}}));
  EXPECT_EQ(spread(32, {0xff}, 8), (Found{{32, 32}}));
  // Two sectors of eight words each; one of three words of two sectors has 10 lanes.
  EXPECT_EQ(spread(32, {~0u, ~0u}, 4), (Found{{16, 2}, {16, 2}}));
  EXPECT_EQ(spread(32, {0xff, 0xf}, 4), (Found{{22, 11}, {10, 10}}));
  // Half a word counts as one; no width as one byte.
  EXPECT_EQ(spread(4, {0x3}, 4), (Found{{4, 4}}));
  EXPECT_EQ(spread(4, {0xf}, 0), (Found{{4, 1}}));
}

TEST(SharedWavefronts, ConflictsAndBroadcasts) {
  const auto count = [](std::uint32_t width, std::uint64_t (*address)(std::uint64_t)) {
    return shared_wavefronts(lanes_of(0xffffffff, address), width);
  };
  EXPECT_EQ(count(4, [](std::uint64_t i) { return 4 * i; }), 1u);
  EXPECT_EQ(count(4, [](std::uint64_t) -> std::uint64_t { return 64; }), 1u);
  EXPECT_EQ(count(4, [](std::uint64_t i) { return 8 * i; }), 2u);
  EXPECT_EQ(count(4, [](std::uint64_t i) { return 128 * i; }), 32u);
  EXPECT_EQ(count(8, [](std::uint64_t i) { return 8 * i; }), 2u);
  EXPECT_EQ(count(16, [](std::uint64_t i) { return 16 * i; }), 4u);
  EXPECT_EQ(count(32, [](std::uint64_t i) { return 32 * i; }), 8u);
  EXPECT_EQ(shared_wavefronts(LaneAddresses{}, 4), 0u);
}

TEST(SharedWavefronts, AreTheMostDifferentWordsOnOneBank) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    const std::uint32_t width = 1u << random() % 6;
    const std::uint32_t step = random() % 8 == 0 ? 1 : width;  // the former are misaligned
    const std::uint32_t span = 1u << random() % 9;
    LaneAddresses lanes{.mask = ~0u, .address = {}};
    if (round % 2 == 1) lanes.mask = static_cast<std::uint32_t>(random());
    for (std::uint64_t& address : lanes.address) address = 0x1000 + random() % span * step;
    std::uint32_t expected = 0;
    const std::uint32_t size = std::max(128 / std::max(width, 4u), 1u);
    for (std::uint32_t first = 0; first < warp_size; first += size) {
      std::array<std::set<std::uint64_t>, 32> words;
      for (std::uint32_t lane = first; lane < first + size; ++lane) {
        if ((lanes.mask >> lane & 1) == 0) continue;
        for (std::uint64_t byte = 0; byte < width; ++byte) {
          const std::uint64_t word = (lanes.address[lane] + byte) / 4;
          words[word % 32].insert(word);
        }
      }
      std::size_t most = 0;
      for (const auto& bank : words) most = std::max(most, bank.size());
      expected += static_cast<std::uint32_t>(most);
    }
    ASSERT_EQ(shared_wavefronts(lanes, width, SharedAccess::other), expected) << width;
    ASSERT_EQ(l1_passes(lanes, width), expected) << width;
  }
}

TEST(ImpliedPasses, MostSectorsOfEightBanks) {
  const auto passes = [](std::uint32_t width, std::uint64_t stride) {
    std::vector<std::uint64_t> sectors;
    LaneAddresses lanes{.mask = ~0u, .address = {}};
    for (std::uint64_t lane = 0; lane < warp_size; ++lane) lanes.address[lane] = stride * lane;
    coalesce(lanes, width, sectors, nullptr);
    return implied_passes(sectors);
  };
  EXPECT_EQ(passes(4, 4), 1u);
  EXPECT_EQ(passes(8, 8), 2u);
  EXPECT_EQ(passes(16, 16), 4u);
  EXPECT_EQ(passes(4, 0), 1u);
  for (std::uint64_t words = 1; words <= 32; words *= 2) EXPECT_EQ(passes(4, 4 * words), words);
  EXPECT_EQ(passes(4, 4 * 64), 32u);
  EXPECT_EQ(passes(4, 4 * 33), 8u);  // eight lines have their sector at each place
  EXPECT_EQ(implied_passes(std::vector<std::uint64_t>{3, 4, 7, 11}), 3u);
}

TEST(SharedWavefronts, PairsOfALoadShareTheirWayBack) {
  const auto count = [](std::uint32_t width, std::uint64_t (*address)(std::uint64_t),
                        std::uint32_t mask = ~0u, SharedAccess access = SharedAccess::load) {
    return shared_wavefronts(lanes_of(mask, address), width, access);
  };
  const auto neighbours = [](std::uint64_t i) { return 16 * (i / 2); };
  const auto next_but_one = [](std::uint64_t i) { return 16 * ((i & 1) | (i / 4 * 2)); };
  const auto apart = [](std::uint64_t i) { return 16 * i; };
  EXPECT_EQ(count(16, neighbours), 2u);
  EXPECT_EQ(count(16, next_but_one), 2u);
  EXPECT_EQ(count(16, [](std::uint64_t) -> std::uint64_t { return 80; }), 2u);
  EXPECT_EQ(count(16, apart), 4u);
  // Lanes n and n ^ 4 do not pack, nor do pairs of both kinds in one access.
  EXPECT_EQ(count(16, [](std::uint64_t i) { return 16 * ((i & 3) | (i / 8 * 4)); }), 4u);
  EXPECT_EQ(count(16,
                  [](std::uint64_t i) {
                    return i < 16 ? 16 * (i / 2) : 256 + 16 * ((i & 1) | (i / 4 * 2));
                  }),
            4u);
  // Lanes 0, 4, 8 and so on have no other to differ from.
  EXPECT_EQ(count(16, [](std::uint64_t i) { return 16 * (i / 4); }, 0x11111111), 2u);
  EXPECT_EQ(count(8, [](std::uint64_t i) { return 8 * (i / 2); }), 1u);
  EXPECT_EQ(count(8, [](std::uint64_t i) { return 8 * i; }), 2u);
  // Pairs whose places are in one bank conflict: 8 of a group.
  EXPECT_EQ(count(16, [](std::uint64_t i) { return 128 * (i / 2); }), 16u);
  // Stores send nothing back.
  EXPECT_EQ(count(16, neighbours, ~0u, SharedAccess::other), 4u);
}

TEST(SharedWavefronts, LanesOfAWordInTurn) {
  const auto count = [](std::uint32_t width, std::uint64_t (*address)(std::uint64_t)) {
    return shared_wavefronts(lanes_of(0xffffffff, address), width, SharedAccess::in_turn);
  };
  EXPECT_EQ(count(4, [](std::uint64_t i) { return 4 * i; }), 1u);
  EXPECT_EQ(count(4, [](std::uint64_t) -> std::uint64_t { return 64; }), 32u);
  // Lanes 0 and 8 and so on share a word: four of each.
  EXPECT_EQ(count(4, [](std::uint64_t i) { return 4 * (i % 8); }), 4u);
  // Words 0 and 32 are in one bank, with 16 lanes each.
  EXPECT_EQ(count(4, [](std::uint64_t i) { return 128 * (i % 2); }), 32u);
  EXPECT_EQ(count(8, [](std::uint64_t) -> std::uint64_t { return 0; }), 32u);
}

}  // namespace
}  // namespace warpstack::trace
