#include "memory/cache/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "common/error.h"

namespace warpstack::memory {
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

Cache::ReadResult read(Cache& cache, std::uint64_t line, SectorMask mask, Cache::Eviction& eviction,
                       bool evict_first = false) {
  return cache.read(cache.set_of(line), line, mask, evict_first, eviction);
}

Cache::WriteResult write(Cache& cache, std::uint64_t line, SectorMask mask, const ByteMasks& bytes,
                         Cache::Eviction& eviction) {
  return cache.write(cache.set_of(line), line, mask, bytes, 0, false, eviction);
}

TEST(Cache, SectorsAreFetchedOneByOne) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write));
  Cache::Eviction eviction;
  EXPECT_EQ(read(cache, 1, 0b0001, eviction).fetch, 0b0001);
  const Cache::ReadResult second = read(cache, 1, 0b0011, eviction);
  EXPECT_EQ(second.hit, 0b0001);
  EXPECT_EQ(second.fetch, 0b0010);
}

/// Of each set and of all sets about the same share is written, wherever a set begins.
TEST(Strangers, AreSpreadEvenly) {
  constexpr std::uint32_t ways = 16;
  constexpr std::uint64_t sets = 1000;
  for (const double share : {0.0, 0.1, 1.0 / 3, 0.5, 0.77, 1.0}) {
    const Strangers strangers(share);
    EXPECT_EQ(strangers.have_written(), share > 0);
    std::uint64_t all = 0;
    for (std::uint64_t set = 0; set < sets; ++set) {
      std::uint32_t written = 0;
      for (std::uint32_t turn = 0; turn < ways; ++turn) {
        written += strangers.have_written(set, turn);
        EXPECT_LT(std::abs(written - share * (turn + 1)), 1 + 1e-6) << set << ' ' << turn;
      }
      all += written;
    }
    EXPECT_NEAR(static_cast<double>(all), share * ways * sets, 8);
  }
}

TEST(Cache, StrangersMakeRoomFirstAndAreNeverFound) {
  CacheConfig dirty = config(WritePolicy::write_back, WriteMiss::fetch_on_write);
  dirty.written_by_strangers = 1;
  Cache cache(dirty);
  EXPECT_EQ(cache.dirty_sectors(), 0u) << "their sectors are not the application's";
  for (int round = 0; round < 2; ++round) {
    std::set<std::uint64_t> strangers;
    for (const std::uint64_t line : {1, 2}) {
      Cache::Eviction eviction;
      // Even a line that is to be evicted first is younger than they are.
      EXPECT_EQ(read(cache, line, 1, eviction, true).hit, 0);
      EXPECT_EQ(eviction.dirty, 0b1111) << "a whole line";
      strangers.insert(eviction.line);
    }
    EXPECT_EQ(strangers.size(), 2u) << "each is a line of its own";
    Cache::Eviction eviction;
    EXPECT_EQ(read(cache, 1, 1, eviction).hit, 1);
    read(cache, 3, 1, eviction);
    EXPECT_EQ(eviction.dirty, 0) << "there are no more of them";
    for (const std::uint64_t line : strangers) {
      EXPECT_FALSE(cache.contains(cache.set_of(line), line));
    }
    cache.clear();
  }
}

TEST(Cache, WithoutSectorsTheLineIsFetched) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write, 128));
  Cache::Eviction eviction;
  EXPECT_EQ(read(cache, 1, 0b0001, eviction).fetch, 0b1111);
  EXPECT_EQ(read(cache, 1, 0b1000, eviction).hit, 0b1000);
}

TEST(Cache, LeastRecentlyUsedLineLeaves) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write));
  Cache::Eviction eviction;
  write(cache, 1, 1, all_of_sector_0, eviction);
  read(cache, 2, 1, eviction);
  read(cache, 1, 1, eviction);
  read(cache, 3, 1, eviction);  // takes the place of 2, which is clean
  EXPECT_EQ(eviction.dirty, 0);
  read(cache, 4, 1, eviction);  // takes the place of 1
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
      EXPECT_EQ(write(cache, 1, 1, all_of_sector_0, eviction).forward, 1);
    }
    EXPECT_EQ(cache.dirty_sectors(), 0u);
  }
}

TEST(Cache, WriteBackWithoutAllocationForwardsMisses) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::no_allocate));
  Cache::Eviction eviction;
  EXPECT_EQ(write(cache, 1, 0b11, all_of_sector_0, eviction).forward, 0b11);
  read(cache, 1, 0b01, eviction);
  EXPECT_EQ(write(cache, 1, 0b11, all_of_sector_0, eviction).forward, 0b10);
  EXPECT_EQ(cache.dirty_sectors(), 1u);
}

TEST(Cache, WriteValidateNeedsAFetchOnlyForMissingBytes) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::write_validate));
  Cache::Eviction eviction;
  EXPECT_EQ(write(cache, 1, 1, half_of_sector_0, eviction).fetch, 0);
  EXPECT_EQ(read(cache, 1, 1, eviction).fetch, 1) << "half of the sector is not known";
  EXPECT_EQ(read(cache, 1, 1, eviction).hit, 1);
  write(cache, 2, 1, half_of_sector_0, eviction);
  write(cache, 2, 1, ByteMasks{0xffff0000}, eviction);
  EXPECT_EQ(read(cache, 2, 1, eviction).hit, 1) << "two halves make a sector";
  write(cache, 3, 1, half_of_sector_0, eviction);
  read(cache, 4, 1, eviction);
  read(cache, 5, 1, eviction);
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
  write(cache, 1, 1, all_of_sector_0, eviction);
  cache.clear();
  EXPECT_EQ(cache.dirty_sectors(), 0u);
  EXPECT_EQ(read(cache, 1, 1, eviction).hit, 0);
  EXPECT_EQ(eviction.dirty, 0);
}

TEST(Cache, EvictFirstMakesRoomNext) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::fetch_on_write));
  Cache::Eviction eviction;
  read(cache, 1, 1, eviction);
  read(cache, 2, 1, eviction, true);
  read(cache, 3, 1, eviction);  // takes the place of 2, though 1 was used before it
  EXPECT_EQ(read(cache, 1, 1, eviction).hit, 1);
}

TEST(Cache, FlushHandsOverDirtySectorsOnce) {
  Cache cache(config(WritePolicy::write_back, WriteMiss::write_validate));
  Cache::Eviction eviction;
  write(cache, 1, 1, all_of_sector_0, eviction);
  write(cache, 2, 1, half_of_sector_0, eviction);
  std::vector<std::uint64_t> lines;
  cache.flush([&lines](const Cache::Eviction& line) { lines.push_back(line.line); });
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{2, 1})) << "the last used first";
  EXPECT_EQ(cache.dirty_sectors(), 0u);
  EXPECT_EQ(read(cache, 1, 1, eviction).hit, 0);
}

/// What dirty_sectors() adds up, by a walk through a copy. Lines of strangers have high numbers.
std::uint64_t walk_dirty_sectors(Cache copy) {
  std::uint64_t count = 0;
  copy.flush([&count](const Cache::Eviction& line) {
    if (line.line < std::uint64_t{1} << 40) count += count_sectors(line.dirty);
  });
  return count;
}

/// Random accesses of all kinds; the count of dirty sectors is that of a walk after each of them.
void compare_dirty_counts(const CacheConfig& config, std::mt19937_64& random) {
  Cache cache(config);
  const std::uint64_t lines = 2 * config.num_lines();
  std::uint64_t most = 0;
  for (int step = 0; step < 300; ++step) {
    const std::uint64_t line = random() % lines;
    const std::uint32_t set = cache.set_of(line);
    const auto mask = static_cast<SectorMask>(1 + random() % 15);
    const bool evict_first = random() % 4 == 0;
    ByteMasks bytes;
    for (std::uint32_t& of_sector : bytes) {
      of_sector = random() % 2 ? all_bytes : static_cast<std::uint32_t>(random());
    }
    Cache::Eviction eviction;
    switch (random() % 16) {
      case 0:
        cache.invalidate(set, line, mask);
        break;
      case 1:
        if (random() % 8 == 0) cache.clear();
        break;
      case 2:
        if (random() % 8 == 0 && config.written_by_strangers == 0) cache.flush([](const auto&) {});
        break;
      case 3:
        cache = Cache(cache);
        break;
      case 4:
      case 5:
        cache.read(set, line, mask, evict_first, eviction);
        break;
      case 6: {
        Cache::Finding found = cache.look(set, line);
        if (cache.make_room(set, line, found)) {
          cache.read(set, line, mask, found, evict_first, eviction);
        }
        break;
      }
      default:
        cache.write(set, line, mask, bytes, 0, evict_first, eviction);
    }
    const std::uint64_t expected = walk_dirty_sectors(cache);
    most = std::max(most, expected);
    ASSERT_EQ(cache.dirty_sectors(), expected) << "step " << step;
  }
  EXPECT_EQ(most > 0, config.write_policy == WritePolicy::write_back);
}

TEST(Cache, CountsDirtySectorsAsAWalkDoes) {
  std::mt19937_64 random(41);
  for (const WritePolicy policy : {WritePolicy::write_back, WritePolicy::write_through}) {
    for (const WriteMiss miss :
         {WriteMiss::no_allocate, WriteMiss::fetch_on_write, WriteMiss::write_validate,
          WriteMiss::fetch_on_partial_write, WriteMiss::write_and_fetch}) {
      for (const Replacement replacement :
           {Replacement::lru, Replacement::fifo, Replacement::plru}) {
        for (const std::uint32_t ways : {2u, 4u, 16u, 32u, 64u}) {
          for (const double strangers : {0.0, 0.6}) {
            CacheConfig some = config(policy, miss, random() % 2 ? 32 : 128);
            some.ways = ways;
            some.slices = 2;
            some.size_bytes = std::uint64_t{128} * ways * some.slices * 2;
            some.replacement = replacement;
            some.written_by_strangers = strangers;
            compare_dirty_counts(some, random);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

/// What SetStore does, as plain as can be: the lines of a set, the last to make room first.
struct PlainSet {
  struct Line {
    std::uint64_t line;
    SectorMask dirty;
  };
  std::vector<Line> lines;

  auto find(std::uint64_t line) { return std::ranges::find(lines, line, &Line::line); }
};

TEST(SetStore, EveryAssociativityEqualsAPlainList) {
  std::mt19937_64 random(7);
  for (const std::uint32_t ways :
       {1u, 3u, 4u, 5u, 8u, 12u, 16u, 17u, 20u, 31u, 32u, 33u, 100u, 512u}) {
    for (const Replacement policy : {Replacement::lru, Replacement::fifo}) {
      constexpr std::uint32_t num_sets = 3;
      SetStore store(num_sets, ways, policy);
      std::vector<PlainSet> plain(num_sets);
      for (int i = 0; i < 6000; ++i) {
        if (i == 4000) {  // what was cleared is as new
          store.clear();
          plain.assign(num_sets, {});
        }
        const auto set = static_cast<std::uint32_t>(random() % num_sets);
        // Lines that share a half must not be taken for each other.
        const std::uint64_t line = random() % (2 * ways) | (random() % 3) << 32;
        PlainSet& of_set = plain[set];
        const auto found = of_set.find(line);
        const bool is_there = found != of_set.lines.end();
        ASSERT_EQ(store.find(set, line) >= 0, is_there);

        std::vector<PlainSet::Line> evicted;
        const auto evict = [&](std::uint32_t from) {
          evicted.push_back({store.line(set, from), store.state(set, from).dirty});
        };
        const SetStore::Finding looked = store.look(set, line);
        ASSERT_EQ(looked.is_there, is_there);
        const bool touches = is_there && random() % 3 == 0;
        if (touches) store.touch(set, line, looked);
        const auto [way, state] = touches
                                      ? SetStore::Place{looked.way, store.state(set, looked.way)}
                                  : random() % 2 ? store.access(set, line, looked, evict)
                                                 : store.access(set, line, evict);
        PlainSet::Line used{line, is_there ? found->dirty : SectorMask{0}};
        ASSERT_EQ(store.line(set, way), line);
        ASSERT_EQ(store.find(set, line), static_cast<int>(way));
        ASSERT_EQ(state.dirty, used.dirty);
        ASSERT_EQ(state.valid, is_there ? 1 : 0) << "a new line has an empty state";
        state.valid = 1;
        if (random() % 2) state.dirty = used.dirty = static_cast<SectorMask>(1 + random() % 15);
        if (!is_there && of_set.lines.size() == ways) {
          const PlainSet::Line last = of_set.lines.back();
          of_set.lines.pop_back();
          ASSERT_EQ(evicted.size(), last.dirty ? 1u : 0u) << "only dirty lines are reported";
          if (last.dirty) {
            ASSERT_EQ(evicted[0].line, last.line);
            ASSERT_EQ(evicted[0].dirty, last.dirty);
          }
        } else {
          ASSERT_TRUE(evicted.empty());
        }
        if (is_there && policy == Replacement::fifo) {
          found->dirty = used.dirty;
        } else {
          if (is_there) of_set.lines.erase(found);
          of_set.lines.insert(of_set.lines.begin(), used);
        }
        if (random() % 8 == 0) {
          store.place_last(set, way);
          of_set.lines.erase(of_set.find(line));
          of_set.lines.push_back(used);
        }

        std::vector<std::uint32_t> order;
        store.ways_of(set, order);
        ASSERT_GE(order.size(), of_set.lines.size());
        for (std::size_t place = 0; place < order.size(); ++place) {
          ASSERT_EQ(store.line(set, order[place]),
                    place < of_set.lines.size() ? of_set.lines[place].line : SetStore::no_line);
        }
      }
      store.clear();
      EXPECT_EQ(store.find(0, plain[0].lines[0].line), -1);
      EXPECT_EQ(store.state(0, 0).valid, 0);
    }
  }
}

TEST(SetStore, TreePointsAwayFromTheLastUses) {
  // Four ways, all filled: 0, 1 on the left, 2, 3 on the right. After a use of 0 and then of 2 the
  // root points left, and the left half away from 0.
  SetStore store(1, 4, Replacement::plru);
  const auto access = [&store](std::uint64_t line) {
    return store.access(0, line, [](auto) {}).way;
  };
  for (std::uint32_t way = 0; way < 4; ++way) {
    EXPECT_EQ(access(100 + way), way) << "empty ways come first";
  }
  access(100);
  access(102);
  EXPECT_EQ(access(104), 1u);
  store.place_last(0, 3);
  EXPECT_EQ(access(105), 3u);
}

TEST(SetStore, TreesOfEverySizeAgreeOnFullSets) {
  // 64 ways, kept as a list, against the same tree over plain vectors.
  constexpr std::uint32_t ways = 64;
  SetStore store(1, ways, Replacement::plru);
  std::vector<std::uint64_t> lines(ways, SetStore::no_line);
  std::vector<bool> right_makes_room(ways);
  std::uint32_t filled = 0;
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t line = random() % 100;
    const auto found = std::ranges::find(lines, line);
    auto way = static_cast<std::uint32_t>(found - lines.begin());
    if (found == lines.end() && filled < ways) {
      way = filled++;
    } else if (found == lines.end()) {
      std::uint32_t node = 1;
      while (node < ways) node = 2 * node + right_makes_room[node];
      way = node - ways;
    }
    lines[way] = line;
    for (std::uint32_t node = ways + way; node > 1; node /= 2) {
      right_makes_room[node / 2] = node % 2 == 0;
    }
    ASSERT_EQ(store.access(0, line, [](auto) {}).way, way);
  }
}

TEST(Divisor, EqualsDivision) {
  std::mt19937_64 random(7);
  for (const std::uint64_t value :
       {1ull, 2ull, 3ull, 7ull, 24ull, 4294967295ull, 4294967297ull, (1ull << 63) + 1, ~0ull}) {
    const Divisor divisor(value);
    for (const std::uint64_t n : std::initializer_list<std::uint64_t>{
             0, value - 1, value, 4294967294, 4294967295, 4294967296, ~std::uint64_t{0}}) {
      EXPECT_EQ(divisor.quotient(n), n / value);
      EXPECT_EQ(divisor.remainder(n), n % value);
    }
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t n = random() >> random() % 64;
      EXPECT_EQ(divisor.quotient(n), n / value);
    }
  }
}

TEST(AddressMap, XorFoldsTheNumber) {
  const AddressMap map(8, Indexing::xor_hash);
  EXPECT_EQ(map(0b101'011'110), 0b101u ^ 0b011u ^ 0b110u);
  EXPECT_EQ(AddressMap(1, Indexing::xor_hash)(12345), 0u);
  EXPECT_EQ(AddressMap(6, Indexing::xor_hash)(0b111), 1u) << "7 mod 6";
}

TEST(AddressMap, IpolyDividesPolynomials) {
  // x^3 + x + 1: x^3 = x + 1, x^4 = x^2 + x, x^5 = x^2 + x + 1, x^6 = x^2 + 1, x^7 = 1.
  const AddressMap map(8, Indexing::ipoly);
  for (std::uint64_t n = 0; n < 8; ++n) EXPECT_EQ(map(n), n);
  EXPECT_EQ(map(1 << 3), 0b011u);
  EXPECT_EQ(map(1 << 4), 0b110u);
  EXPECT_EQ(map(1 << 5), 0b111u);
  EXPECT_EQ(map(1 << 6), 0b101u);
  EXPECT_EQ(map(1 << 7), 0b001u);
  EXPECT_EQ(map(0b11'000'001), 0b101u ^ 0b001u ^ 0b001u);
  // Strides of powers of two do not collide: the point of the hash.
  std::set<std::uint64_t> sets;
  for (std::uint64_t i = 0; i < 8; ++i) sets.insert(map(i << 20));
  EXPECT_EQ(sets.size(), 8u);
  EXPECT_THROW(AddressMap(std::uint64_t{1} << 25, Indexing::ipoly), InputError);
}

TEST(AddressMap, IpolyTakesTheOddFactorModulo) {
  const AddressMap map(24, Indexing::ipoly), eight(8, Indexing::ipoly);
  for (std::uint64_t n : {0u, 7u, 8u, 23u}) EXPECT_EQ(map(n), eight(n) + n / 8 % 3 * 8);
  // 48 is number 6 of the odd factor, of run 2: 1.24 on. 1000 is number 125, of run 41: 25.34 on
  // from 2.
  EXPECT_EQ(map(48), eight(48) + 8);
  EXPECT_EQ(map(1000), eight(1000));
  // Neighbouring chunks of as many as the power of two never meet, wherever they begin.
  for (std::uint64_t first = 0; first < 3000; ++first) {
    std::set<std::uint64_t> used;
    for (std::uint64_t i = 0; i < 8; ++i) used.insert(map(first + i));
    EXPECT_EQ(used.size(), 8u) << first;
  }
}

TEST(AddressMap, IpolyUsesAllBucketsAlikeWhateverTheStride) {
  for (const std::uint64_t buckets : {24u, 40u, 44u, 48u, 80u, 96u}) {
    const AddressMap map(buckets, Indexing::ipoly);
    for (const std::uint64_t stride : {1, 3, 5, 8, 11, 15, 24, 40, 48, 64, 99, 120, 480, 1024}) {
      std::vector<int> uses(buckets);
      for (std::uint64_t i = 0; i < buckets * 64; ++i) ++uses[map(i * stride)];
      const auto [least, most] = std::ranges::minmax(uses);
      EXPECT_GT(least, 24) << buckets << " by " << stride;
      EXPECT_LT(most, 128) << buckets << " by " << stride;
    }
  }
}

TEST(AddressMap, ScatterUsesSetsAsIfByChance) {
  constexpr std::uint64_t sets = 1000;
  const AddressMap map(sets, Indexing::scatter);
  for (const std::uint64_t stride : {1, 4, 1000, 4096}) {
    std::vector<int> uses(sets);
    for (std::uint64_t i = 0; i < sets * 16; ++i) ++uses[map(i * stride)];
    double variance = 0;
    for (const int each : uses) variance += (each - 16.0) * (each - 16.0) / sets;
    EXPECT_GT(variance, 13) << stride << ": 16 where chance decides (Poisson)";
    EXPECT_LT(variance, 19) << stride;
  }
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
  EXPECT_THROW(attempt([](CacheConfig& c) {
                 c.replacement = Replacement::plru;
                 c.ways = 3;
                 c.size_bytes = 384;
               }),
               InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.slice_interleave_bytes = 100; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.size_bytes = 0; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.size_bytes = 300; }), InputError);
  EXPECT_THROW(attempt([](CacheConfig& c) { c.size_bytes = std::uint64_t{1} << 60; }), InputError);
}

}  // namespace
}  // namespace warpstack::memory
