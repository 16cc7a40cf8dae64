#include "memory/cache/repeated_launches.h"

#include <gtest/gtest.h>

#include "kernels.h"
#include "memory/small_memory.h"
#include "memory/system/memory_system.h"
#include "memory/system/profile_words.h"

namespace warpstack::memory {
namespace {

using testing::make_kernel;
using testing::memory_budget;
using testing::Step;

/// L2 has 128 lines, fewer than the launches below touch sectors.
MemoryConfig config(Replacement replacement, std::uint32_t ways, WriteMiss write_miss) {
  MemoryConfig result = testing::small_memory();
  result.num_sms = 2;
  result.sm.blocks = 8;
  result.l1.sector_bytes = result.l2.sector_bytes = 32;
  result.l2.size_bytes = 1 << 14;
  result.l2.ways = ways;
  result.l2.write_policy = WritePolicy::write_back;
  result.l2.write_miss = write_miss;
  result.l2.replacement = replacement;
  result.access_order = AccessOrder::timed;
  return result;
}

/// Loads of a sector per thread and stores of some of its bytes, from `first` on, of more than L2
/// holds or of less.
trace::KernelTrace launch(std::uint64_t first, std::uint64_t lines, const std::string& name,
                          std::uint64_t number = 0) {
  const auto scattered = [=](std::uint64_t thread) {
    return first + thread * 2654435761 % lines * 128 + thread % 4 * 32;
  };
  const std::vector<Step> steps = {{"LDG.E", {4}, {2}, scattered},
                                   {"STG.E.U8", {}, {2, 4}, scattered},
                                   {"LDG.E", {5}, {4}, scattered}};
  return make_kernel(6, 128, steps, memory_budget(), name, number);
}

TEST(RepeatedLaunches, NumberOfALaunchIsNotItsContent) {
  const trace::KernelTrace first = launch(0, 300, "a", 1);
  const trace::KernelTrace second = launch(0, 300, "a", 2);
  EXPECT_NE(first.digest(), second.digest());
  EXPECT_EQ(first.content_digest(), second.content_digest());
  EXPECT_NE(first.content_digest(), launch(0, 300, "b", 1).content_digest());
  EXPECT_NE(first.content_digest(), launch(128, 300, "a", 1).content_digest());
}

TEST(RepeatedLaunches, IterationsDoWhatTheyWouldDoIfEachWasSimulated) {
  for (const auto& [replacement, ways] : {std::pair{Replacement::lru, 4u},
                                          {Replacement::fifo, 8u},
                                          {Replacement::plru, 8u},
                                          {Replacement::lru, 32u},
                                          {Replacement::lru, 64u}}) {
    for (const WriteMiss write_miss : {WriteMiss::fetch_on_write, WriteMiss::write_validate}) {
      for (const std::uint64_t lines : {60u, 300u}) {
        MemoryConfig own = config(replacement, ways, write_miss);
        own.l2.written_by_strangers = lines == 60 ? 0.5 : 0;
        MemorySystem system(own);
        MemorySystem reference(own);
        std::size_t simulated = 0;
        const auto count = [&] { ++simulated; };
        std::size_t last = 0;
        const std::vector<trace::KernelTrace> kernels = [&] {
          std::vector<trace::KernelTrace> both;
          both.push_back(launch(0, lines, "a"));
          both.push_back(launch(4096, lines, "b"));
          return both;
        }();
        for (int iteration = 0; iteration < 12; ++iteration) {
          last = simulated;
          for (const trace::KernelTrace& kernel : kernels) {
            // With another name each time, none repeats one that the system knows.
            const bool is_first = &kernel == &kernels.front();
            const trace::KernelTrace renamed = launch(
                is_first ? 0 : 4096, lines, kernel.header().name + std::to_string(iteration));
            const MemoryProfile profile = system.run(kernel, {}, count);
            EXPECT_EQ(words_of(profile), words_of(reference.run(renamed)));
          }
        }
        // From the first one that finds L2 as one before did, nothing is simulated.
        if (replacement != Replacement::plru) {
          EXPECT_EQ(simulated, last);
        }
        EXPECT_GT(simulated, 0u);
        // What was not simulated has left what it would have left.
        const trace::KernelTrace other = launch(2048, lines, "other");
        EXPECT_EQ(words_of(system.run(other)), words_of(reference.run(other)));
      }
    }
  }
}

TEST(RepeatedLaunches, TheObservedWarpBelongsToTheLaunch) {
  MemorySystem system(config(Replacement::lru, 4, WriteMiss::fetch_on_write));
  const trace::KernelTrace kernel = launch(0, 300, "a");
  for (int i = 0; i < 4; ++i) system.run(kernel, trace::WarpPosition{0, 0});
  MemorySystem reference(config(Replacement::lru, 4, WriteMiss::fetch_on_write));
  for (int i = 0; i < 4; ++i) reference.run(launch(0, 300, "a" + std::to_string(i)));
  const trace::WarpPosition other{1, 2};
  EXPECT_EQ(words_of(system.run(kernel, other)), words_of(reference.run(kernel, other)));
}

TEST(RepeatedLaunches, ALaunchOfFewSectorsIsNotWorthIt) {
  MemorySystem system(config(Replacement::lru, 4, WriteMiss::fetch_on_write));
  const trace::KernelTrace kernel =
      make_kernel(1, 32, {{"LDG.E", {4}, {2}, [](std::uint64_t t) { return 4 * t; }}});
  std::size_t simulated = 0;
  for (int i = 0; i < 4; ++i) system.run(kernel, {}, [&] { ++simulated; });
  EXPECT_GE(simulated, 4u);
}

}  // namespace
}  // namespace warpstack::memory
