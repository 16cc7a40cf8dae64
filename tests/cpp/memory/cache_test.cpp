#include "memory/cache.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace warpstack {
namespace {

CacheConfig config(WritePolicy policy, WriteMiss miss, std::uint32_t sector_bytes = 32) {
  CacheConfig result;
  result.size_bytes = 256;  // one set of two lines
  result.ways = 2;
  result.line_bytes = 128;
  result.sector_bytes = sector_bytes;
  result.write_policy = policy;
  result.write_miss = miss;
  return result;
}

constexpr ByteMasks all_of_sector_0{0xffffffff};
constexpr ByteMasks half_of_sector_0{0x0000ffff};

TEST(Cache, SectorsAreFetchedOneByOne) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write));
  Cache::Eviction eviction;
  EXPECT_EQ(cache.read(1, 0b0001, eviction).fetch, 0b0001);
  const Cache::ReadResult second = cache.read(1, 0b0011, eviction);
  EXPECT_EQ(second.hit, 0b0001);
  EXPECT_EQ(second.fetch, 0b0010);
}

TEST(Cache, WithoutSectorsTheLineIsFetched) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write, 128));
  Cache::Eviction eviction;
  EXPECT_EQ(cache.read(1, 0b0001, eviction).fetch, 0b1111);
  EXPECT_EQ(cache.read(1, 0b1000, eviction).hit, 0b1000);
}

TEST(Cache, LeastRecentlyUsedLineLeaves) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write));
  Cache::Eviction eviction;
  cache.write(1, 1, all_of_sector_0, 0, eviction);
  cache.read(2, 1, eviction);
  cache.read(1, 1, eviction);
  cache.read(3, 1, eviction);  // takes the place of 2, which is clean
  EXPECT_EQ(eviction.dirty, 0);
  cache.read(4, 1, eviction);  // takes the place of 1
  EXPECT_EQ(eviction.line, 1u);
  EXPECT_EQ(eviction.dirty, 1);
  EXPECT_EQ(eviction.bytes[0], 0xffffffffu);
}

TEST(Cache, WriteThroughForwardsEveryWrite) {
  for (const WriteMiss miss :
       {WriteMiss::no_allocate, WriteMiss::fetch_on_write, WriteMiss::write_validate}) {
    Cache cache(config(WritePolicy::write_through, miss));
    for (int i = 0; i < 2; ++i) {
      Cache::Eviction eviction;
      EXPECT_EQ(cache.write(1, 1, all_of_sector_0, 0, eviction).forward, 1);
    }
    EXPECT_EQ(cache.dirty_sectors(), 0u);
  }
}

TEST(Cache, WriteBackWithoutAllocationForwardsMisses) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::no_allocate));
  Cache::Eviction eviction;
  EXPECT_EQ(cache.write(1, 0b11, all_of_sector_0, 0, eviction).forward, 0b11);
  cache.read(1, 0b01, eviction);
  EXPECT_EQ(cache.write(1, 0b11, all_of_sector_0, 0, eviction).forward, 0b10);
  EXPECT_EQ(cache.dirty_sectors(), 1u);
}

TEST(Cache, WriteValidateNeedsAFetchOnlyForMissingBytes) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::write_validate));
  Cache::Eviction eviction;
  EXPECT_EQ(cache.write(1, 1, half_of_sector_0, 0, eviction).fetch, 0);
  EXPECT_EQ(cache.read(1, 1, eviction).fetch, 1) << "half of the sector is not known";
  EXPECT_EQ(cache.read(1, 1, eviction).hit, 1);
  cache.write(2, 1, half_of_sector_0, 0, eviction);
  cache.write(2, 1, ByteMasks{0xffff0000}, 0, eviction);
  EXPECT_EQ(cache.read(2, 1, eviction).hit, 1) << "two halves make a sector";
  cache.write(3, 1, half_of_sector_0, 0, eviction);
  cache.read(4, 1, eviction);
  cache.read(5, 1, eviction);
  EXPECT_EQ(eviction.line, 3u);
  EXPECT_EQ(eviction.bytes[0], 0x0000ffffu) << "only known bytes are written back";
}

TEST(Cache, SlicesTakeTurnsAndSetsCountWithin) {
  CacheConfig c = config(WritePolicy::write_back, WriteMiss::fetch_on_write);
  c.slices = 3;
  c.ways = 1;
  c.size_bytes = 128 * 3 * 4;  // four sets in each slice
  c.slice_interleave_bytes = 256;
  const Cache cache(c);
  // Lines 0 1 | 2 3 | 4 5 belong to slices 0, 1, 2; lines 6 7 are the second pair of slice 0.
  EXPECT_EQ(cache.set_of(0), 0u);
  EXPECT_EQ(cache.set_of(1), 1u);
  EXPECT_EQ(cache.set_of(2), 4u);
  EXPECT_EQ(cache.set_of(5), 9u);
  EXPECT_EQ(cache.set_of(6), 2u);
  EXPECT_EQ(cache.set_of(7), 3u);
  EXPECT_EQ(cache.set_of(12), 0u);
}

TEST(Cache, ClearForgetsEverything) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write));
  Cache::Eviction eviction;
  cache.write(1, 1, all_of_sector_0, 0, eviction);
  cache.clear();
  EXPECT_EQ(cache.dirty_sectors(), 0u);
  EXPECT_EQ(cache.read(1, 1, eviction).hit, 0);
  EXPECT_EQ(eviction.dirty, 0);
}

TEST(CacheConfig, ImpossibleGeometry) {
  const auto attempt = [](auto change) {
    CacheConfig c = config(WritePolicy::write_back, WriteMiss::fetch_on_write);
    change(c);
    c.validate("cache");
  };
  EXPECT_NO_THROW(attempt([](CacheConfig&) {}));
  EXPECT_THROW(attempt([](CacheConfig& c) { c.line_bytes = 48; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.line_bytes = 512; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.sector_bytes = 96; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.ways = 0; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.slices = 0; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.slice_interleave_bytes = 100; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.size_bytes = 0; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.size_bytes = 300; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.size_bytes = std::uint64_t{1} << 60; }), InputError);
}

}  // namespace
}  // namespace warpstack
