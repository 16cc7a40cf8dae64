#include "memory/families/cache_bundle.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "memory/system/l2_port.h"

// Each cache of a bundle does what the same cache does alone.

namespace warpstack::memory {
namespace {

/// A cache alone, with its counters.
struct Alone {
  explicit Alone(const CacheConfig& config) : cache(config), port(cache, totals) {}

  [[nodiscard]] std::uint64_t sector_hits() const {
    return totals[Total::l2_read_sector_hits] + totals[Total::l2_write_sector_hits] +
           totals[Total::l2_atomic_sector_hits];
  }

  Cache cache;
  MemoryTotals totals;
  L2Port port;
};

std::uint32_t count_of(std::span<const Members> planes, std::size_t member) {
  std::uint32_t count = 0;
  for (const Members plane : planes) count += plane >> member & 1;
  return count;
}

class Requests {
 public:
  Requests(unsigned seed, std::uint32_t sectors) : random_(seed), sectors_(sectors) {}

  Request next(ByteMasks& bytes) {
    Request request{};
    // Some lines are used often.
    request.line = random_() % (random_() % 2 ? 40 : 400);
    request.mask = static_cast<SectorMask>(1 + random_() % ((1u << sectors_) - 1));
    request.kind = static_cast<Request::Kind>(random_() % 4);
    request.evict_first = random_() % 8 == 0;
    for (std::uint32_t& one : bytes) {
      one = random_() % 2 ? ~0u : random_() % 2 ? 0xffff0000u : 0x00ffffffu;
    }
    return request;
  }
  bool are_emptied() { return random_() % 1000 == 0; }

 private:
  std::mt19937 random_;
  std::uint32_t sectors_;
};

std::vector<CacheConfig> sizes_of(const CacheConfig& base) {
  std::vector<CacheConfig> configs;
  for (const auto& [sets, ways] : {std::pair{1u, 1u}, {2u, 3u}, {3u, 8u}, {16u, 2u}, {5u, 40u}}) {
    CacheConfig& config = configs.emplace_back(base);
    config.ways = ways;
    config.size_bytes = std::uint64_t{sets} * ways * base.line_bytes * base.slices;
    config.validate("L2");
  }
  return configs;
}

void expect_same(const CacheConfig& base, unsigned seed) {
  const std::vector<CacheConfig> configs = sizes_of(base);
  CacheBundle bundle(configs);
  std::vector<std::unique_ptr<Alone>> alone;
  for (const CacheConfig& config : configs) alone.push_back(std::make_unique<Alone>(config));
  Requests requests(seed, base.line_bytes / trace::sector_bytes);
  for (int i = 0; i < 4000; ++i) {
    if (requests.are_emptied()) {
      bundle.clear();
      for (const auto& one : alone) one->cache.clear();
    }
    ByteMasks bytes{};
    Request request = requests.next(bytes);
    const BundleOutcome outcome = bundle.serve(request, bundle.number_of(request.line), bytes);
    for (std::size_t m = 0; m < alone.size(); ++m) {
      Alone& one = *alone[m];
      const std::uint64_t hits_before = one.sector_hits();
      request.set = one.cache.set_of(request.line);
      const Outcome expected = one.port.serve(request, bytes);
      const std::string where = "request " + std::to_string(i) + " of cache " + std::to_string(m);
      ASSERT_EQ(outcome.missed >> m & 1, expected.missed) << where;
      ASSERT_EQ(outcome.asks_dram >> m & 1, expected.asks_dram) << where;
      ASSERT_EQ(count_of(outcome.moved, m), expected.dram_sectors) << where;
      ASSERT_EQ(count_of({outcome.hit.data(), outcome.num_hit}, m), one.sector_hits() - hits_before)
          << where;
      ASSERT_EQ(bundle.dram_reads(m), one.totals[Total::dram_read_sectors]) << where;
      ASSERT_EQ(bundle.dram_writes(m), one.totals[Total::dram_write_sectors]) << where;
      ASSERT_EQ(bundle.dirty_sectors(m), one.cache.dirty_sectors()) << where;
    }
  }
}

TEST(CacheBundle, DoesWhatEachCacheDoesAlone) {
  unsigned seed = 0;
  for (const WritePolicy policy : {WritePolicy::write_back, WritePolicy::write_through}) {
    for (const WriteMiss miss :
         {WriteMiss::no_allocate, WriteMiss::fetch_on_write, WriteMiss::write_validate,
          WriteMiss::fetch_on_partial_write, WriteMiss::write_and_fetch}) {
      for (const std::uint32_t sector_bytes : {32u, 64u, 128u}) {
        CacheConfig config;
        config.sector_bytes = sector_bytes;
        config.write_policy = policy;
        config.write_miss = miss;
        config.slices = 1 + seed % 3;
        config.set_index = seed % 2 ? Indexing::modulo : Indexing::ipoly;
        config.written_by_strangers = seed % 4 * 0.37 - (seed % 4 == 3 ? 0.11 : 0);
        SCOPED_TRACE("policy " + std::to_string(static_cast<int>(policy)) + ", write miss " +
                     std::to_string(static_cast<int>(miss)) + ", sectors of " +
                     std::to_string(sector_bytes) + " bytes");
        expect_same(config, ++seed);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(CacheBundle, TakesLruOnly) {
  CacheConfig config;
  EXPECT_TRUE(CacheBundle::can_have(config));
  config.replacement = Replacement::fifo;
  EXPECT_FALSE(CacheBundle::can_have(config));
  config.replacement = Replacement::plru;
  EXPECT_FALSE(CacheBundle::can_have(config));
}

TEST(MemberCounter, CountsForEach) {
  const Members all = all_members(3);
  MemberCounter counter;
  counter.add(all, all, 5);
  counter.add(0b101, all);
  const Members several[] = {0b010, 0b010, 0b111, 0};
  counter.add_each(several, all);
  EXPECT_EQ(counter.of(0), 5u + 1 + 1);
  EXPECT_EQ(counter.of(1), 5u + 2 + 1);
  EXPECT_EQ(counter.of(2), 5u + 1 + 1);
}

TEST(MemberCounter, HasRoomForThirtyTwo) {
  const Members all = all_members(32);
  MemberCounter counter;
  counter.add(Members{1} << 31, all, 2);
  counter.add(all, all);
  EXPECT_EQ(counter.of(31), 3u);
  EXPECT_EQ(counter.of(0), 1u);
}

}  // namespace
}  // namespace warpstack::memory
