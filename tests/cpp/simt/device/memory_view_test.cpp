#include "simt/device/memory_view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "simt/device/device_memory.h"

namespace warpstack::simt {
namespace {

constexpr std::uint64_t capacity = std::uint64_t{1} << 20;

void put(MemoryView& view, std::uint64_t address, std::uint32_t value) {
  std::memcpy(view.place(address, 4, false, true), &value, 4);
}

std::uint32_t get(MemoryView& view, std::uint64_t address) {
  std::uint32_t value = 0;
  std::memcpy(&value, view.place(address, 4, true, false), 4);
  return value;
}

std::uint32_t get(const DeviceMemory& memory, std::uint64_t address) {
  std::uint32_t value = 0;
  memory.read(address, &value, 4);
  return value;
}

class MemoryViews : public ::testing::Test {
 protected:
  MemoryViews() : memory_(capacity), first_(memory_), second_(memory_) {
    array_ = memory_.allocate(4096);
    memory_.fill(array_, 0, 4096);
    begin();
  }

  void begin() {
    first_.begin(false);
    second_.begin(true);
  }

  DeviceMemory memory_;
  MemoryView first_;
  MemoryView second_;
  std::uint64_t array_ = 0;
};

TEST_F(MemoryViews, AWriteIsSeenInItsViewAloneUntilItIsCommitted) {
  put(first_, array_ + 8, 7);
  EXPECT_EQ(get(first_, array_ + 8), 7u);
  EXPECT_EQ(get(first_, array_ + 12), 0u);
  EXPECT_EQ(get(second_, array_ + 8), 0u);
  EXPECT_EQ(get(memory_, array_ + 8), 0u);
  first_.commit();
  EXPECT_EQ(get(memory_, array_ + 8), 7u);
  begin();
  EXPECT_EQ(get(second_, array_ + 8), 7u);
}

TEST_F(MemoryViews, OnlyWrittenBytesAreCommitted) {
  // Both copy the line; the second does not put back the first one's bytes.
  put(first_, array_, 1);
  put(second_, array_ + 4, 2);
  *second_.place(array_ + 9, 1, false, true) = std::byte{3};
  EXPECT_FALSE(second_.conflicts_with(first_));
  first_.commit();
  second_.commit();
  EXPECT_EQ(get(memory_, array_), 1u);
  EXPECT_EQ(get(memory_, array_ + 4), 2u);
  EXPECT_EQ(get(memory_, array_ + 8), 0x300u);
}

TEST_F(MemoryViews, TheLastOfTwoWritesStays) {
  put(second_, array_, 2);
  put(first_, array_, 1);
  EXPECT_FALSE(second_.conflicts_with(first_));  // nobody has read it
  first_.commit();
  second_.commit();
  EXPECT_EQ(get(memory_, array_), 2u);
}

TEST_F(MemoryViews, AReadOfWhatTheFirstOneWritesIsAConflict) {
  put(first_, array_ + 16, 1);
  get(second_, array_ + 12);
  get(second_, array_ + 20);
  EXPECT_FALSE(second_.conflicts_with(first_));
  get(second_, array_ + 16);
  EXPECT_TRUE(second_.conflicts_with(first_));
  // It is forgotten with the round, for as many rounds as there may be.
  for (int round = 0; round < 600; ++round) {
    begin();
    put(first_, array_ + 16, 1);
    EXPECT_FALSE(second_.conflicts_with(first_));
  }
}

TEST_F(MemoryViews, RangesAreReadAndWritten) {
  const std::uint64_t line = array_ + 1024;
  std::byte* const place = first_.write_range(line + 64, 128);
  ASSERT_NE(place, nullptr);
  std::memset(place, 5, 128);
  // 192 bytes from 128 bytes before the end of a line on lie in two.
  EXPECT_EQ(first_.write_range(line + 128, 192), nullptr);
  EXPECT_EQ(first_.read_range(line + 128, 192), nullptr);
  EXPECT_EQ(second_.read_range(line + 128, 192), memory_.data(line + 128));
  EXPECT_TRUE(second_.conflicts_with(first_));
  first_.commit();
  for (std::uint64_t at = 0; at < 256; at += 4) {
    EXPECT_EQ(get(memory_, line + at), at >= 64 && at < 192 ? 0x05050505u : 0u);
  }
}

TEST_F(MemoryViews, BytesOfTwoLinesMustWait) {
  EXPECT_THROW(first_.place(array_ + 254, 4, true, false), NeedsItsTurn);
  EXPECT_NO_THROW(first_.place(array_ + 252, 4, true, false));
}

TEST_F(MemoryViews, NotesWhichBytesHaveBeenWrittenForTheFirstTime) {
  const std::uint64_t fresh = memory_.allocate(300);
  Allocation& allocation = *memory_.find(fresh);
  EXPECT_FALSE(first_.is_written(allocation, fresh + 8, 4));
  put(first_, fresh + 8, 1);
  EXPECT_TRUE(first_.is_written(allocation, fresh + 8, 4));
  EXPECT_FALSE(first_.is_written(allocation, fresh + 8, 8));
  EXPECT_FALSE(second_.is_written(allocation, fresh + 8, 4));
  EXPECT_EQ(allocation.written[8], 0);
  first_.write_range(fresh + 128, 64);
  first_.commit();
  for (std::uint64_t byte = 0; byte < 300; ++byte) {
    const bool expected = (byte >= 8 && byte < 12) || (byte >= 128 && byte < 192);
    EXPECT_EQ(allocation.written[byte], expected ? 1 : 0) << byte;
  }
}

TEST_F(MemoryViews, RandomAccessesAreThoseOfOneAfterTheOther) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> plain(4096);
  for (int round = 0; round < 200; ++round) {
    begin();
    std::vector<std::uint8_t> by_first = plain;
    std::vector<bool> written(4096);
    bool conflict = false;
    const auto access = [&](MemoryView& view, std::vector<std::uint8_t>& expected, bool is_first) {
      LaneAddresses lanes;
      LaneAddresses places;
      const std::uint32_t bytes = 1u << random() % 4;
      const bool writes = random() % 4 == 0;
      lanes.mask = static_cast<std::uint32_t>(random()) | 1;
      for (std::uint64_t& address : lanes.address) {
        address = array_ + random() % (4096 / bytes) * bytes;
      }
      view.place_lanes(lanes, bytes, writes, places);
      EXPECT_EQ(places.mask, lanes.mask);
      for (int lane = 0; lane < 32; ++lane) {
        if ((lanes.mask >> lane & 1) == 0) continue;
        const std::uint64_t at = lanes.address[lane] - array_;
        auto* const place = reinterpret_cast<std::uint8_t*>(
            memory_.data(array_) + static_cast<std::ptrdiff_t>(places.address[lane] - array_));
        for (std::uint32_t b = 0; b < bytes; ++b) {
          if (writes) {
            place[b] = expected[at + b] = static_cast<std::uint8_t>(random());
            if (is_first) written[at + b] = true;
          } else {
            // Before a commit the second one sees the memory without what the first one wrote.
            EXPECT_EQ(place[b], expected[at + b]);
          }
        }
        if (writes || is_first) continue;
        for (std::uint64_t byte = at / 4 * 4; byte < (at + bytes + 3) / 4 * 4; ++byte) {
          conflict = conflict || written[byte];
        }
      }
    };
    std::vector<std::uint8_t> by_second = plain;
    for (int i = 0; i < 2; ++i) access(first_, by_first, true);
    for (int i = 0; i < 2; ++i) access(second_, by_second, false);
    EXPECT_EQ(second_.conflicts_with(first_), conflict);
    first_.commit();
    memory_.read(array_, plain.data(), plain.size());
    EXPECT_EQ(plain, by_first);
  }
}

}  // namespace
}  // namespace warpstack::simt
