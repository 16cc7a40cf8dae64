#include "simt/device/device_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "common/error.h"

namespace {

using warpstack::InputError;
using warpstack::simt::AllocationLayout;
using warpstack::simt::device_base;
using warpstack::simt::DeviceMemory;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(DeviceMemory, AllocatesFirstFitFromTheFixedBase) {
  DeviceMemory memory(1 << 20);
  const auto a = memory.allocate(1);
  const auto b = memory.allocate(300);
  const auto c = memory.allocate(256);
  EXPECT_EQ(a, device_base);
  EXPECT_EQ(b, device_base + 256);
  EXPECT_EQ(c, device_base + 768);
  EXPECT_EQ(memory.used(), 256u + 512u + 256u);
  memory.free(b);
  EXPECT_EQ(memory.used(), 512u);
  EXPECT_EQ(memory.allocate(257), b) << "the hole is large enough";
  memory.free(a);
  memory.free(b);
  EXPECT_EQ(memory.allocate(700), a) << "neighbouring holes are one";
}

TEST(DeviceMemory, NothingHasAnAddressToo) {
  DeviceMemory memory(1 << 16);
  const auto a = memory.allocate(0);
  const auto b = memory.allocate(0);
  EXPECT_NE(a, b);
  memory.write(a, nullptr, 0);
  memory.free(a);
  memory.free(b);
  EXPECT_EQ(memory.used(), 0u);
}

TEST(DeviceMemory, SaysWhatIsFreeWhenItIsFull) {
  DeviceMemory memory(1024);
  memory.allocate(256);
  const auto b = memory.allocate(256);
  memory.allocate(256);
  memory.free(b);
  EXPECT_EQ(message_of([&] { memory.allocate(257); }),
            "the simulated device has no room for 257 bytes: 512 of 1024 bytes are free, the "
            "largest piece has 256");
  EXPECT_EQ(message_of([&] { memory.allocate(~std::uint64_t{0}); }).substr(0, 40),
            "the simulated device has no room for 184");
  EXPECT_EQ(memory.allocate(256), b);
}

TEST(DeviceMemory, ChecksBounds) {
  DeviceMemory memory(1 << 16);
  const auto a = memory.allocate(100);
  memory.allocate(50, "table");
  const int value = 7;
  memory.write(a + 96, &value, 4);
  EXPECT_EQ(message_of([&] { memory.write(a + 97, &value, 4); }),
            "cannot write 4 bytes at 0x700000000061 of the simulated device: it is 97 bytes into "
            "the 100-byte allocation at 0x700000000000");
  EXPECT_EQ(message_of([&] { memory.fill(a + 100, 0, 1); }),
            "cannot fill 1 bytes at 0x700000000064 of the simulated device: it is 0 bytes past the "
            "end of the 100-byte allocation at 0x700000000000");
  int back = 0;
  EXPECT_EQ(message_of([&] { memory.read(a + 255, &back, 1); }),
            "cannot read 1 bytes at 0x7000000000ff of the simulated device: it is 1 bytes before "
            "the 50-byte variable table at 0x700000000100");
  EXPECT_EQ(message_of([&] { memory.copy(a, 12, 4); }),
            "cannot copy from 4 bytes at 0xc of the simulated device: it is far from every "
            "allocation");
  EXPECT_EQ(message_of([&] { memory.free(a + 1); }),
            "no allocation of the simulated device starts at 0x700000000001; it may have been "
            "freed already");
  EXPECT_EQ(memory.find(a + 100), nullptr);
  ASSERT_NE(memory.find(a + 99), nullptr);
  EXPECT_EQ(memory.find(a + 99)->address, a);
}

TEST(DeviceMemory, RemembersWhatIsWritten) {
  DeviceMemory memory(1 << 16);
  const auto a = memory.allocate(8);
  const auto* const allocation = memory.find(a);
  ASSERT_NE(allocation->written, nullptr);
  const std::uint16_t value = 3;
  memory.write(a + 2, &value, 2);
  EXPECT_EQ(allocation->written[1], 0);
  EXPECT_EQ(allocation->written[2], 1);
  EXPECT_EQ(allocation->written[3], 1);
  EXPECT_EQ(allocation->written[4], 0);
  memory.fill(a, 0xab, 8);
  EXPECT_EQ(allocation->written, nullptr) << "all of it is known";
  std::uint64_t back = 0;
  memory.read(a, &back, 8);
  EXPECT_EQ(back, 0xababababababababu);
}

TEST(DeviceMemory, RandomUseKeepsAllocationsApart) {
  DeviceMemory memory(1 << 20);
  std::mt19937 random(1);
  std::map<std::uint64_t, std::vector<std::uint8_t>> held;
  for (int n = 0; n < 4000; ++n) {
    if (held.empty() || random() % 5 < 3) {
      std::vector<std::uint8_t> data(random() % 3000);
      std::iota(data.begin(), data.end(), static_cast<std::uint8_t>(random()));
      std::uint64_t address = 0;
      try {
        address = memory.allocate(data.size());
      } catch (const InputError&) {
        held.size() > 10 ? memory.free(held.begin()->first) : void();
        if (held.size() > 10) held.erase(held.begin());
        continue;
      }
      ASSERT_EQ(address % 256, 0u);
      memory.write(address, data.data(), data.size());
      ASSERT_TRUE(held.emplace(address, std::move(data)).second);
    } else {
      const auto chosen = std::next(held.begin(), static_cast<long>(random() % held.size()));
      std::vector<std::uint8_t> back(chosen->second.size());
      memory.read(chosen->first, back.data(), back.size());
      ASSERT_EQ(back, chosen->second);
      memory.free(chosen->first);
      held.erase(chosen);
    }
  }
  std::uint64_t used = 0;
  for (const auto& [address, data] : held)
    used += (std::max<std::size_t>(data.size(), 1) + 255) / 256 * 256;
  EXPECT_EQ(memory.used(), used);
  for (const auto& [address, data] : held) memory.free(address);
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_EQ(memory.allocate(1 << 20), device_base) << "all holes have grown together";
}

TEST(DeviceMemory, SecondDeviceHasTheSameAddresses) {
  DeviceMemory one(1 << 16), two(1 << 16);
  const auto a = one.allocate(64);
  EXPECT_EQ(a, two.allocate(64));
  one.fill(a, 1, 64);
  two.fill(a, 2, 64);
  std::uint8_t value = 0;
  one.read(a, &value, 1);
  EXPECT_EQ(value, 1);
}

/// Bytes of the process that are mapped, and those of them that take memory.
struct Sizes {
  std::uint64_t mapped = 0;
  std::uint64_t resident = 0;
};

Sizes sizes() {
  Sizes result;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return result;
  unsigned long mapped = 0;
  unsigned long resident = 0;
  if (std::fscanf(file, "%lu %lu", &mapped, &resident) == 2) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    result = {mapped * page, resident * page};
  }
  std::fclose(file);
  return result;
}

TEST(DeviceMemory, OnlyTouchedPagesTakeMemory) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const std::uint64_t before = sizes().resident;
  DeviceMemory memory(16 * gib);
  const auto a = memory.allocate(12 * gib);
  std::uint32_t value = 7;
  memory.write(a + 11 * gib, &value, 4);
  memory.fill(a, 0, 12 * gib);
  memory.read(a + 11 * gib, &value, 4);
  EXPECT_EQ(value, 0u);
  memory.write(a + 5, "xyz", 3);
  EXPECT_LT(sizes().resident, before + (64 << 20));
}

TEST(DeviceMemory, ZerosReachTheEdgesOfLongRanges) {
  constexpr std::uint64_t bytes = 3 << 20;
  DeviceMemory memory(16 << 20);
  const auto a = memory.allocate(bytes);
  memory.fill(a, 0xaa, bytes);
  memory.fill(a + 3, 0, bytes - 8);
  std::vector<std::uint8_t> back(bytes);
  memory.read(a, back.data(), bytes);
  EXPECT_EQ(back[2], 0xaa);
  EXPECT_EQ(std::count(back.begin(), back.end(), 0), static_cast<long>(bytes - 8));
  EXPECT_EQ(back[bytes - 5], 0xaa);
}

TEST(DeviceMemory, GivesItsAddressSpaceBack) {
  const std::uint64_t before = sizes().mapped;
  for (int i = 0; i < 20'000; ++i) {
    DeviceMemory memory(std::uint64_t{16} << 30);
    memory.fill(memory.allocate(std::uint64_t{1} << 30), 0, 1000);
  }
  EXPECT_LT(sizes().mapped, before + (64 << 20));
}

TEST(DeviceMemory, CopiesOfUnwrittenBytesStayUnwritten) {
  DeviceMemory memory(1 << 20);
  const auto a = memory.allocate(64);
  const auto b = memory.allocate(64);
  const std::uint32_t value = 5;
  memory.write(a + 8, &value, 4);
  memory.fill(b, 1, 32);
  memory.copy(b + 4, a + 4, 32);
  const auto* const written = memory.find(b)->written.get();
  ASSERT_NE(written, nullptr);
  for (std::uint64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(written[i], i < 4 || (i >= 8 && i < 12) ? 1 : 0) << i;
  }
  memory.fill(a, 0, 64);
  memory.copy(b, a, 64);
  EXPECT_EQ(memory.find(b)->written, nullptr) << "all of it is written";
}

TEST(DeviceMemoryApart, GapsKeepAlignmentAndTheBase) {
  DeviceMemory packed(1 << 26);
  DeviceMemory apart(1 << 26, AllocationLayout::apart);
  std::uint64_t end = 0;
  for (const std::uint64_t bytes : {100u, 5000u, 3u << 20, 1u, 0u, 256u}) {
    const auto a = packed.allocate(bytes);
    const auto b = apart.allocate(bytes);
    EXPECT_EQ(a % (2 << 20), b % (2 << 20));
    EXPECT_EQ(apart.packed(b), a);
    if (bytes > 0) EXPECT_EQ(apart.packed(b + bytes - 1), a + bytes - 1);
    if (end != 0) EXPECT_GE(b - end, 32u << 20);
    EXPECT_EQ(apart.find(b + bytes + 1000), nullptr);
    end = b + bytes;
  }
  EXPECT_EQ(packed.used(), apart.used());
  EXPECT_EQ(apart.packed(device_base), device_base);
}

TEST(DeviceMemoryApart, NamesTheNearestAllocationHoweverFar) {
  DeviceMemory memory(1 << 20, AllocationLayout::apart);
  const auto a = memory.allocate(400);
  const auto b = memory.allocate(100, "table");
  EXPECT_EQ(memory.describe(a + 400),
            "0 bytes past the end of the 400-byte allocation at 0x700000000000");
  EXPECT_EQ(memory.describe(b - 4).substr(0, 45), "4 bytes before the 100-byte variable table at");
  EXPECT_EQ(memory.describe(b + (std::uint64_t{2} << 30)).substr(0, 60),
            "2147483548 bytes past the end of the 100-byte variable table");
  EXPECT_EQ(memory.describe(12), "far from every allocation");
}

TEST(DeviceMemoryApart, MapsThePagesThatAGpuMaps) {
  constexpr std::uint64_t page = 2 << 20;
  DeviceMemory packed(1 << 24);
  DeviceMemory apart(1 << 24, AllocationLayout::apart);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
  for (const std::uint64_t bytes : {3 * page, page, page - 256, std::uint64_t{256}}) {
    pairs.emplace_back(packed.allocate(bytes), apart.allocate(bytes));
  }
  packed.free(pairs[1].first);
  apart.free(pairs[1].second);
  for (const std::size_t i : {0, 2, 3}) {
    for (std::uint64_t offset = 0; offset < 4 * page; offset += page / 4) {
      EXPECT_EQ(packed.is_mapped(pairs[i].first + offset),
                apart.is_mapped(pairs[i].second + offset))
          << i << " " << offset;
    }
  }
}

TEST(DeviceMemoryApart, RandomUseIsThatOfThePackedLayout) {
  // Thousands of allocations in a small device, so that gaps shrink and holes are used again.
  DeviceMemory packed(1 << 22);
  DeviceMemory apart(1 << 22, AllocationLayout::apart);
  std::mt19937 random(7);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
  for (int i = 0; i < 8'000; ++i) {
    if (!held.empty() && random() % 5 < 2) {
      const std::size_t which = random() % held.size();
      packed.free(held[which].first);
      apart.free(held[which].second);
      held[which] = held.back();
      held.pop_back();
      continue;
    }
    const std::uint64_t bytes = random() % 700;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    const std::string one = message_of([&] { a = packed.allocate(bytes); });
    const std::string other = message_of([&] { b = apart.allocate(bytes); });
    ASSERT_EQ(one, other);
    if (a == 0) continue;
    ASSERT_EQ(apart.packed(b), a);
    ASSERT_EQ(b % 256, 0u);
    held.emplace_back(a, b);
  }
  std::ranges::sort(held, {}, [](const auto& pair) { return pair.second; });
  for (std::size_t i = 1; i < held.size(); ++i) {
    const auto* const before = apart.find(held[i - 1].second);
    if (before != nullptr) ASSERT_LT(before->address + before->bytes, held[i].second + 1);
  }
  for (const auto& [a, b] : held) {
    packed.free(a);
    apart.free(b);
  }
  EXPECT_EQ(apart.used(), 0u);
  EXPECT_EQ(apart.allocate(1 << 22), device_base) << "all is in one piece again";
}

}  // namespace
