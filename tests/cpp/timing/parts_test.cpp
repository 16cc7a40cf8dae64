#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "kernels.h"
#include "timing/memory/dram.h"
#include "timing/memory/interconnect.h"
#include "timing/memory/l2_slice.h"
#include "timing/memory/mshr.h"
#include "timing/sm/control_barriers.h"
#include "timing/sm/instruction_stream.h"
#include "timing/sm/wake_wheel.h"
#include "timing/sm/warp_scheduler.h"

namespace warpstack::timing {
namespace {

constexpr Ticks cycle = ticks_per_cycle;

TEST(Server, FractionalServiceTimesCostNoBandwidth) {
  // 3/4 of a cycle each: busy until 3/4 and 3/2 after edge 0, 9/4 after edge 1, 3 after edge 2,
  // 15/4 and 9/2 after edge 3.
  Server server{Clock(cycle)};
  std::vector<int> started;
  for (int edge = 0; edge < 4; ++edge) {
    int count = 0;
    while (server.is_free(edge * cycle)) {
      server.take(edge * cycle, 3 * cycle / 4);
      ++count;
    }
    started.push_back(count);
  }
  EXPECT_EQ(started, (std::vector<int>{2, 1, 1, 2}));
}

TEST(Server, NextEdgeIsTheFirstAtWhichItIsFree) {
  Server server{Clock(cycle)};
  server.take(0, 5 * cycle / 2);
  EXPECT_EQ(server.next_edge(0), 2 * cycle);
  EXPECT_FALSE(server.is_free(cycle));
  EXPECT_TRUE(server.is_free(2 * cycle));
  EXPECT_EQ(server.next_edge(7 * cycle), 8 * cycle);
}

constexpr auto dep = static_cast<std::uint32_t>(StackComponent::dep);
constexpr auto l1 = static_cast<std::uint32_t>(StackComponent::l1);

TEST(ControlBarriers, TheLastToEndDecides) {
  ControlBarriers barriers(2);
  barriers.hold(1, 0, 20, 0);
  barriers.hold_for_load(1, 0, 7, 1);
  barriers.hold(1, 3, 30, 2);
  EXPECT_EQ(barriers.wait(1, {.wait_mask = 1}).until, never);
  EXPECT_EQ(barriers.wait(1, {.wait_mask = 1}).cause, first_load_cause + 7);
  EXPECT_EQ(barriers.wait(0, {.wait_mask = 63}).until, -1);  // another warp
  EXPECT_EQ(barriers.wait(1, {.wait_mask = 8}).until, 30);
  barriers.load_is_done(1, 0, 7, 25, l1);
  EXPECT_EQ(barriers.wait(1, {.wait_mask = 1}).until, 25);
  EXPECT_EQ(barriers.wait(1, {.wait_mask = 1}).cause, l1);
  EXPECT_EQ(barriers.wait(1, {.wait_mask = 9}).until, 30);
  barriers.clear(1);
  EXPECT_EQ(barriers.wait(1, {.wait_mask = 63}).until, -1);
}

TEST(ControlBarriers, SourcesAreReadInOrder) {
  ControlBarriers barriers(1);
  barriers.hold_for_reading(0, 2, 0);
  barriers.hold_for_reading(0, 2, 1);
  barriers.sources_are_read(0, 2, 5);
  EXPECT_EQ(barriers.wait(0, {.wait_mask = 4}).cause, load_store_unit_cause);
  EXPECT_EQ(barriers.wait(0, {.counted_barrier = 2, .counted_most = 1}).until, 5);
  barriers.sources_are_read(0, 2, 9);
  EXPECT_EQ(barriers.wait(0, {.wait_mask = 4}).until, 9);
  EXPECT_EQ(barriers.wait(0, {.wait_mask = 4}).cause,
            static_cast<std::uint32_t>(StackDetail::arithmetic));
}

TEST(ControlBarriers, GroupsOfCopiesEndInOrder) {
  // Two groups of one copy each; the data of the second come first, at 50, those of the first
  // at 60.
  ControlBarriers barriers(1);
  for (const std::uint32_t load : {4u, 9u}) {
    barriers.add_copy(0, load);
    barriers.hold_for_copies(0, 0, load);
  }
  barriers.copy_is_done(0, 9, 50, l1);
  const trace::Control at_most_one{.counted_barrier = 0, .counted_most = 1};
  EXPECT_EQ(barriers.wait(0, at_most_one).until, never);
  EXPECT_EQ(barriers.wait(0, at_most_one).cause, first_load_cause + 4);
  barriers.copy_is_done(0, 4, 60, l1);
  EXPECT_EQ(barriers.wait(0, at_most_one).until, 60);
  EXPECT_EQ(barriers.wait(0, {.wait_mask = 1}).until, 60);
  // A group without copies is there at once, but not before those before it.
  barriers.hold_for_copies(0, 1, 55);
  EXPECT_EQ(barriers.wait(0, {.wait_mask = 2}).until, 60);
  barriers.hold_for_copies(0, 2, 70);
  EXPECT_EQ(barriers.wait(0, {.wait_mask = 4}).until, 71);
}

TEST(IssueSlots, FractionsOfASlotAddUp) {
  const IssueSlots third(1.0 / 3);
  std::int64_t count = 0;
  for (Cycle t = 0; t < 300; ++t) count += third.in(t);
  EXPECT_EQ(third.in(0), 1);
  EXPECT_EQ(count, 100);
  for (Cycle t = 0; t < 10; ++t) EXPECT_EQ(IssueSlots(4).in(t), 4);
}

/// Warps by their age that issue when only those in `ready` can.
std::vector<std::uint32_t> picks(WarpScheduler& scheduler,
                                 const std::vector<std::vector<std::uint32_t>>& ready) {
  std::vector<std::uint32_t> result;
  for (const auto& now : ready) {
    WarpBits can_issue(scheduler.warps().size());
    for (const std::uint32_t age : now) can_issue[age / 64] |= bit_of(age);
    result.push_back(scheduler.pick(can_issue));
  }
  return result;
}

// Warps 10, 63 and 70 by age, in two words. All are ready, then the one that issued last stalls
// twice. Warp 64 is another scheduler's.
const std::vector<std::vector<std::uint32_t>> readiness{
    {10, 63, 64, 70}, {10, 63, 70}, {63, 70}, {10, 63, 70}, {10, 64, 70}, {64}, {10, 63, 70}};
constexpr std::uint32_t nobody = WarpScheduler::nobody;

WarpScheduler scheduler_with_three_warps(gpu::Scheduler order) {
  WarpScheduler scheduler(order, 2);
  for (const std::uint32_t age : {10u, 63u, 70u}) scheduler.add(age);
  return scheduler;
}

TEST(WarpScheduler, GreedyThenOldest) {
  WarpScheduler scheduler = scheduler_with_three_warps(gpu::Scheduler::gto);
  EXPECT_EQ(picks(scheduler, readiness),
            (std::vector<std::uint32_t>{10, 10, 63, 63, 10, nobody, 10}));
}

TEST(WarpScheduler, LooseRoundRobin) {
  WarpScheduler scheduler = scheduler_with_three_warps(gpu::Scheduler::lrr);
  EXPECT_EQ(picks(scheduler, readiness),
            (std::vector<std::uint32_t>{10, 63, 70, 10, 70, nobody, 10}));
}

TEST(WarpScheduler, OldestFirst) {
  WarpScheduler scheduler = scheduler_with_three_warps(gpu::Scheduler::oldest);
  EXPECT_EQ(picks(scheduler, readiness),
            (std::vector<std::uint32_t>{10, 10, 63, 10, 10, nobody, 10}));
}

TEST(WarpScheduler, GreedyThenYoungest) {
  WarpScheduler scheduler = scheduler_with_three_warps(gpu::Scheduler::gty);
  EXPECT_EQ(picks(scheduler, readiness),
            (std::vector<std::uint32_t>{70, 70, 70, 70, 70, nobody, 70}));
  EXPECT_EQ(picks(scheduler, {{10, 63}, {10, 63, 70}}), (std::vector<std::uint32_t>{63, 63}));
}

TEST(WarpScheduler, AnAgeThatIsTakenAgainIsNotTheLastWarp) {
  WarpScheduler scheduler = scheduler_with_three_warps(gpu::Scheduler::gto);
  picks(scheduler, {{63}});
  scheduler.remove(63);
  scheduler.renumber(std::vector<std::uint32_t>{10, 64, 70});  // now 0, 1 and 2
  scheduler.add(63);
  EXPECT_EQ(picks(scheduler, {{0, 2, 63}}), std::vector<std::uint32_t>{0});
}

TEST(WarpScheduler, NewAgesChangeNoTurn) {
  WarpScheduler scheduler = scheduler_with_three_warps(gpu::Scheduler::lrr);
  picks(scheduler, {{63}});
  scheduler.remove(63);
  scheduler.renumber(std::vector<std::uint32_t>{10, 64, 70});
  EXPECT_EQ(picks(scheduler, {{0, 2}, {0, 2}}), (std::vector<std::uint32_t>{2, 0}));
}

TEST(WakeWheel, WakesWhoAListWouldWake) {
  std::mt19937_64 random(1);
  const auto below = [&random](std::uint64_t most) { return random() % most; };
  for (const std::size_t slots : {3, 64, 150}) {
    WakeWheel wheel(slots);
    std::map<std::uint32_t, Cycle> list;
    Cycle now = -1;
    for (int step = 0; step < 20000; ++step) {
      const auto slot = static_cast<std::uint32_t>(below(slots));
      if (list.erase(slot) > 0) {
        wheel.remove(slot);
      } else {
        list[slot] = now + 1 + static_cast<Cycle>(below(step % 3 == 0 ? 300 : 70));
        wheel.add(slot, list[slot]);
      }
      Cycle next = never;
      for (const auto& [one, at] : list) next = std::min(next, at);
      ASSERT_EQ(wheel.next(), next);
      if (below(3) > 0) continue;
      now += static_cast<Cycle>(below(step % 1000 == 0 ? 500 : 8));
      std::set<std::uint32_t> woken;
      wheel.advance(now, [&](std::uint32_t one) { woken.insert(one); });
      std::set<std::uint32_t> due;
      std::erase_if(list, [&](const auto& one) {
        if (one.second > now) return false;
        due.insert(one.first);
        return true;
      });
      ASSERT_EQ(woken, due);
      ASSERT_EQ(wheel.now(), now);
    }
  }
}

TEST(MshrFile, HoldsLinesAndTargetsUpToItsLimits) {
  MshrFile<int> mshrs(2, 2);
  const std::uint32_t first = mshrs.allocate(10, 0b0011);
  mshrs.add_target(first, 1);
  EXPECT_TRUE(mshrs.has_room(first));
  mshrs.add_target(first, 2);
  EXPECT_FALSE(mshrs.has_room(first));
  EXPECT_FALSE(mshrs.is_full());
  const std::uint32_t second = mshrs.allocate(10, 0b0100);
  EXPECT_TRUE(mshrs.is_full());
  memory::SectorMask under_way = 0;
  mshrs.for_each(10, [&](std::uint32_t, memory::SectorMask mask) { under_way |= mask; });
  EXPECT_EQ(under_way, 0b0111);
  mshrs.for_each(11, [](std::uint32_t, memory::SectorMask) { FAIL(); });
  mshrs.release(first);
  EXPECT_EQ(mshrs.size(), 1u);
  const std::uint32_t third = mshrs.allocate(11, 1);
  EXPECT_TRUE(mshrs.targets(third).empty());
  EXPECT_EQ(mshrs.mask(second), 0b0100);
}

TEST(MshrFile, WithoutACapacityItNeverFills) {
  MshrFile<int> mshrs(0, 1);
  for (std::uint64_t line = 0; line < 10000; ++line) mshrs.allocate(line, 1);
  EXPECT_FALSE(mshrs.is_full());
  EXPECT_EQ(mshrs.size(), 10000u);
}

TEST(Interconnect, SourcesTakeTurns) {
  // Half a cycle each: two per edge. Source 1 has one packet only.
  Interconnect network(Clock(cycle), 3, 0);
  for (const std::uint32_t source : {0u, 0u, 0u, 1u, 2u, 2u, 2u}) network.add(source, 0);
  std::vector<std::pair<Ticks, std::uint32_t>> moved;
  while (network.next() < never) {
    const Ticks now = network.next();
    network.step(
        [](std::uint32_t, Interconnect::Transfer& transfer) {
          transfer = {cycle / 2, 0, 0};
          return true;
        },
        [&](std::uint32_t source) { moved.emplace_back(now / cycle, source); });
  }
  const std::vector<std::pair<Ticks, std::uint32_t>> expected{{0, 0}, {0, 1}, {1, 2}, {1, 0},
                                                              {2, 2}, {2, 0}, {3, 2}};
  EXPECT_EQ(moved, expected);
}

TEST(Interconnect, DestinationsOfACrossbarTakeTurnsOfTheirOwn) {
  // Sources 0 and 1 have packets for destination 0. Those of source 2 are for destinations 0 and 1
  // in turn: destination 1 takes the second one as soon as destination 0 has taken the first.
  Interconnect network(Clock(cycle), 3, 0, 2);
  for (const std::uint32_t source : {0u, 0u, 1u, 1u, 2u, 2u}) network.add(source, 0);
  std::vector<std::pair<Ticks, std::uint32_t>> moved;
  std::uint32_t of_last = 0;
  while (network.next() < never) {
    const Ticks now = network.next();
    network.step(
        [&](std::uint32_t source, Interconnect::Transfer& transfer) {
          transfer = {0, 0, 0};
          transfer.destination = source == 2 ? of_last : 0;
          return true;
        },
        [&](std::uint32_t source) {
          moved.emplace_back(now / cycle, source);
          if (source == 2) ++of_last;
        });
  }
  const std::vector<std::pair<Ticks, std::uint32_t>> expected{{0, 0}, {1, 1}, {2, 2},
                                                              {2, 2}, {3, 0}, {4, 1}};
  EXPECT_EQ(moved, expected);
}

TEST(Interconnect, AFullDestinationHoldsUpOnlyItsOwnQueue) {
  Interconnect network(Clock(cycle), 2, 0);
  network.add(0, 0);
  network.add(1, 0);
  bool has_room = false;
  std::vector<std::uint32_t> moved;
  for (int i = 0; i < 3; ++i) {
    network.step(
        [&](std::uint32_t source, Interconnect::Transfer& transfer) {
          transfer = {cycle, 0, 0};
          return source == 1 || has_room;
        },
        [&](std::uint32_t source) { moved.push_back(source); });
    if (i == 0) {
      EXPECT_EQ(network.next(), cycle);
    }
    if (i == 1) {
      // It sleeps until it hears of room, and looks at the next edge then.
      EXPECT_EQ(network.next(), never);
      has_room = true;
      network.wake(5 * cycle);
      EXPECT_EQ(network.next(), 6 * cycle);
    }
  }
  EXPECT_EQ(moved, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(network.next(), never);
  network.wake(9 * cycle);  // nobody waits
  EXPECT_EQ(network.next(), never);
}

TEST(Interconnect, APortLimitsItsSm) {
  // The NoC could take ten packets per cycle, the port takes one in four cycles.
  Interconnect network(Clock(cycle), 1, 1);
  for (int i = 0; i < 5; ++i) network.add(0, 0);
  std::vector<Ticks> edges;
  while (network.next() < never) {
    const Ticks now = network.next();
    network.step(
        [](std::uint32_t, Interconnect::Transfer& transfer) {
          transfer = {cycle / 10, 4 * cycle, 0};
          return true;
        },
        [&](std::uint32_t) { edges.push_back(now / cycle); });
  }
  // It gets free before edge 4 ends: 4 < 3 + 1 is false at edge 3, so the next goes at edge 4.
  EXPECT_EQ(edges, (std::vector<Ticks>{0, 4, 8, 12, 16}));
}

/// Commands of DRAM that follow each other at once.
void without_timing(gpu::Gpu& gpu) {
  gpu.dram_bank_groups = gpu.dram_tccd = gpu.dram_tccdl = 1;
  gpu.dram_trrd = gpu.dram_trcd = gpu.dram_tras = gpu.dram_trp = gpu.dram_trtp = 0;
  gpu.dram_cl = gpu.dram_wl = gpu.dram_twtr = gpu.dram_twr = 0;
}

TimingConfig dram_config() {
  TimingConfig config;
  without_timing(config.gpu);
  config.gpu.clock_ghz = 1;
  config.dram_bandwidth_gbs = 32;  // 32 bytes take a cycle of the one channel
  config.dram_channels = 1;
  config.gpu.dram_queue_entries = 4;
  return config;
}

DramRequest request(std::uint32_t mshr, std::uint32_t bytes, std::uint64_t row) {
  return {.slice = 0, .mshr = mshr, .bytes = bytes, .row = row};
}

/// Runs a channel until it is idle: edge and row of each transfer.
std::vector<std::pair<Ticks, std::uint64_t>> transfers(DramChannel& channel) {
  std::vector<std::pair<Ticks, std::uint64_t>> result;
  while (channel.next() < never) {
    const Ticks now = channel.next();
    channel.step(
        [&](const DramRequest& request) { result.emplace_back(now / cycle, request.row); });
  }
  return result;
}

TEST(DramChannel, ServesInOrderAtItsBandwidth) {
  TrafficCounters counters;
  DramChannel channel(dram_config(), counters);
  channel.add(request(0, 128, 0), 0);
  channel.add(request(DramRequest::write, 64, 0), 0);
  EXPECT_TRUE(channel.has_room());
  channel.add(request(1, 32, 0), 0);
  channel.add(request(2, 32, 0), 0);
  EXPECT_FALSE(channel.has_room());
  const std::vector<std::pair<Ticks, std::uint64_t>> expected{{0, 0}, {4, 0}, {6, 0}, {7, 0}};
  EXPECT_EQ(transfers(channel), expected);
  EXPECT_EQ(counters.dram_reads, 3u);
  EXPECT_EQ(counters.dram_writes, 1u);
}

TEST(DramChannel, OpenRowsGoFirst) {
  TimingConfig config = dram_config();
  config.gpu.dram_row_bytes = 1024;
  config.gpu.dram_banks = 2;
  config.gpu.dram_trcd = 10;
  config.gpu.dram_trp = 5;
  TrafficCounters counters;
  DramChannel channel(config, counters);
  // Rows 0 and 2 share bank 0, row 1 is in bank 1. Row 0 opens at 0 and row 1 at 1, for bursts at
  // 10 and 11, where bank 1 has the turn; the second request to row 0 goes before that to row 2.
  // Row 0 is closed at 13, once nobody wants it; row 2 opens at 18, for a burst at 28.
  channel.add(request(0, 32, 0), 0);
  channel.add(request(0, 32, 2), 0);
  channel.add(request(0, 32, 0), 0);
  channel.add(request(0, 32, 1), 0);
  const std::vector<std::pair<Ticks, std::uint64_t>> expected{{10, 0}, {11, 1}, {12, 0}, {28, 2}};
  EXPECT_EQ(transfers(channel), expected);
  EXPECT_EQ(counters.dram_row_misses, 3u);
}

TEST(DramChannel, BanksChooseAmongThoseInTheQueue) {
  TimingConfig config = dram_config();
  config.gpu.dram_row_bytes = 1024;
  config.gpu.dram_banks = 2;
  config.gpu.dram_trcd = 10;
  config.gpu.dram_trp = 5;
  config.gpu.dram_queue_entries = 1;
  config.gpu.l2_miss_queue_entries = 2;
  config.memory.l2.slices = config.dram_channels;
  TrafficCounters counters;
  DramChannel channel(config, counters);
  // When row 0 has had its burst, at 10, the second request to it still waits for the queue.
  for (const std::uint64_t row : {0, 2, 0}) {
    EXPECT_TRUE(channel.has_room());
    channel.add(request(0, 32, row), 0);
  }
  EXPECT_FALSE(channel.has_room());
  const std::vector<std::pair<Ticks, std::uint64_t>> expected{{10, 0}, {26, 2}, {42, 0}};
  EXPECT_EQ(transfers(channel), expected);
}

TEST(DramChannel, BurstsOfABankGroupAreApart) {
  TimingConfig config = dram_config();
  config.dram_bandwidth_gbs = 16;  // a burst of 32 bytes takes two cycles
  config.gpu.dram_row_bytes = 1024;
  config.gpu.dram_banks = 2;
  config.gpu.dram_tccd = 2;
  config.gpu.dram_tccdl = 6;
  TrafficCounters counters;
  DramChannel one_group(config, counters);
  // Opened at 0; a burst every six cycles, three times the two that it takes.
  for (int i = 0; i < 3; ++i) one_group.add(request(0, 32, 0), 0);
  const std::vector<std::pair<Ticks, std::uint64_t>> apart{{1, 0}, {7, 0}, {13, 0}};
  EXPECT_EQ(transfers(one_group), apart);
  config.gpu.dram_bank_groups = 2;
  DramChannel two_groups(config, counters);
  // The other bank, of another group, opens at 2 and has its bursts in between.
  for (const std::uint64_t row : {0, 1, 0, 1}) two_groups.add(request(0, 32, row), 0);
  const std::vector<std::pair<Ticks, std::uint64_t>> between{{1, 0}, {3, 1}, {7, 0}, {9, 1}};
  EXPECT_EQ(transfers(two_groups), between);
}

TEST(DramChannel, TheBusTurnsAroundAndRefreshesCloseRows) {
  TimingConfig config = dram_config();
  config.gpu.dram_row_bytes = 1024;
  config.gpu.dram_wl = 3;
  config.gpu.dram_twtr = 4;
  config.gpu.dram_cl = 6;
  TrafficCounters counters;
  DramChannel channel(config, counters);
  // Opened at 0, written at 1; read 3 + 4 cycles after the end of that burst, at 9; written again
  // 6 + 2 - 3 cycles after the end of the read's, at 15.
  channel.add(request(DramRequest::write, 32, 0), 0);
  channel.add(request(0, 32, 0), 0);
  channel.add(request(DramRequest::write, 32, 0), 0);
  const std::vector<std::pair<Ticks, std::uint64_t>> turned{{1, 0}, {9, 0}, {15, 0}};
  EXPECT_EQ(transfers(channel), turned);

  without_timing(config.gpu);
  config.gpu.dram_trefi = 20;
  config.gpu.dram_trfc = 10;
  DramChannel refreshed(config, counters);
  // The refresh at 20 ends at 30, where the row opens.
  refreshed.add(request(0, 32, 0), 25 * cycle);
  const std::vector<std::pair<Ticks, std::uint64_t>> late{{31, 0}};
  EXPECT_EQ(transfers(refreshed), late);
}

TEST(DramChannel, ARefreshClosesTheRowOfARequestThatWaits) {
  TimingConfig config = dram_config();
  config.gpu.dram_row_bytes = 1024;
  config.gpu.dram_wl = 3;
  config.gpu.dram_twtr = 37;
  config.gpu.dram_trefi = 30;
  config.gpu.dram_trfc = 5;
  TrafficCounters counters;
  DramChannel channel(config, counters);
  // Opened at 0, written at 1; the read waits until 3 + 37 cycles after the end of that burst, at
  // 42. The refresh at 30 closes the row, which is open again from 35 on, well before that.
  channel.add(request(DramRequest::write, 32, 0), 0);
  channel.add(request(0, 32, 0), 0);
  const std::vector<std::pair<Ticks, std::uint64_t>> expected{{1, 0}, {42, 0}};
  EXPECT_EQ(transfers(channel), expected);
  EXPECT_EQ(counters.dram_row_misses, 2u);
}

/// A slice of L2 with queues of one entry, whose lines of 32 bytes DRAM serves when a test says so.
struct SliceInParts {
  static TimingConfig slice_config() {
    TimingConfig config = dram_config();
    config.memory.l2 = {.size_bytes = 1024,
                        .ways = 8,
                        .line_bytes = 32,
                        .sector_bytes = 32,
                        .write_policy = memory::WritePolicy::write_through,
                        .slices = 1,
                        .slice_interleave_bytes = 256};
    config.gpu.l2_mshrs = 4;
    config.gpu.l2_mshr_targets = 4;
    config.gpu.l2_queue_entries = 1;
    config.gpu.l2_slice_request_cycles = 10;
    config.gpu.dram_queue_entries = 1;
    return config;
  }

  TimingConfig config = slice_config();
  TrafficCounters counters;
  memory::MemoryTotals totals;
  memory::Cache tags{config.memory.l2};
  PacketPool packets;
  DramChannel channel{config, counters};
  Interconnect replies{config.l2_clock(), 1, 0};
  L2Slice slice{config, 0, tags, channel, replies, packets, totals, counters};

  /// Brings a request that is to be answered, and lets the slice look at it.
  std::uint32_t bring(Packet::Kind kind, std::uint64_t line, Ticks now) {
    const std::uint32_t id = packets.add({});
    packets[id].kind = kind;
    packets[id].line = line;
    packets[id].set = tags.set_of(line);
    packets[id].mask = 1;
    packets[id].owner = 0;
    packets[id].mark = now;
    slice.add(id, now);
    EXPECT_EQ(slice.next(), now);
    slice.step();
    return id;
  }
  /// Lets DRAM take its request.
  DramRequest take() {
    DramRequest taken;
    channel.step([&](const DramRequest& request) { taken = request; });
    return taken;
  }
};

TEST(L2Slice, DataOfDramDoNotWaitForThePort) {
  SliceInParts parts;
  const std::uint32_t miss = parts.bring(Packet::Kind::read, 0, 0);
  const DramRequest request = parts.take();
  memory::Cache::Eviction eviction;
  parts.tags.read(parts.tags.set_of(1), 1, 1, false, eviction);
  parts.bring(Packet::Kind::read, 1, 10 * cycle);
  // The reply of the hit fills the queue and its data the port, until 20. The data that come at 12
  // wait for room; the reply leaves at 13, so that they have it at the next edge.
  parts.slice.finish(request, 11 * cycle, 12 * cycle);
  EXPECT_EQ(parts.slice.next(), 12 * cycle);
  parts.slice.step();
  parts.slice.pop_reply();
  parts.slice.wake(13 * cycle);
  EXPECT_EQ(parts.slice.next(), 14 * cycle);
  parts.slice.step();
  ASSERT_EQ(parts.slice.queued_replies(), 1u);
  EXPECT_EQ(parts.slice.first_reply(), miss);
}

TEST(L2Slice, TakesALineFromDramAtATime) {
  SliceInParts parts;
  parts.config.gpu.l2_slice_bytes_per_cycle = 8;  // 4 cycles for a sector
  parts.config.gpu.l2_queue_entries = 4;
  parts.config.gpu.l2_slice_request_cycles = 1;
  parts.config.gpu.dram_queue_entries = 4;
  DramChannel channel(parts.config, parts.counters);
  L2Slice slice(parts.config, 0, parts.tags, channel, parts.replies, parts.packets, parts.totals,
                parts.counters);
  const auto replies_at = [&](Ticks now) {
    while (slice.next() <= now) slice.step();
    return slice.queued_replies();
  };
  // Two requests wait for line 0, one for line 1; both lines come at 20.
  for (const std::uint64_t line : {0u, 0u, 1u}) {
    const std::uint32_t id = parts.packets.add({});
    parts.packets[id].line = line;
    parts.packets[id].set = parts.tags.set_of(line);
    parts.packets[id].mask = 1;
    parts.packets[id].owner = 0;
    slice.add(id, 0);
  }
  EXPECT_EQ(replies_at(10 * cycle), 0u);
  for (int i = 0; i < 2; ++i) {
    channel.step(
        [&](const DramRequest& request) { slice.finish(request, 11 * cycle, 20 * cycle); });
  }
  EXPECT_EQ(replies_at(20 * cycle), 1u);
  EXPECT_EQ(replies_at(21 * cycle), 2u);
  EXPECT_EQ(replies_at(23 * cycle), 2u);
  EXPECT_EQ(replies_at(24 * cycle), 3u);  // the first line is in
}

TEST(L2Slice, WaitsForDramWhenAnotherSliceTookItsRoom) {
  SliceInParts parts;
  memory::Cache::Eviction eviction;
  parts.tags.read(parts.tags.set_of(1), 1, 1, false, eviction);
  parts.bring(Packet::Kind::read, 1, 0);
  // The write waits for room among the replies from 10 on. From 16 on it waits for DRAM instead,
  // until it is served at 21.
  const std::uint32_t write = parts.bring(Packet::Kind::write, 2, 10 * cycle);
  parts.channel.add(request(0, 32, 0), 15 * cycle);
  parts.slice.channel_is_full(16 * cycle);
  EXPECT_EQ(parts.slice.next(), 16 * cycle);
  parts.slice.step();
  parts.slice.pop_reply();
  parts.take();
  parts.slice.wake(20 * cycle);
  EXPECT_EQ(parts.slice.next(), 21 * cycle);
  parts.slice.step();
  EXPECT_EQ(parts.slice.queued_requests(), 0u);
  EXPECT_EQ(parts.packets[write].noc, 6 * cycle);
  EXPECT_EQ(parts.packets[write].dram_queue, 5 * cycle);
  // What waits for DRAM already has no use for the news.
  parts.slice.channel_is_full(22 * cycle);
  EXPECT_EQ(parts.slice.next(), never);
}

TEST(Stack, DividesInProportionWithoutLoss) {
  CpiStack<std::int64_t> shares;
  shares[StackComponent::l2] = 2;
  shares[StackComponent::dram] = 5;
  shares[StackComponent::mshr] = 5;
  CpiStack<std::int64_t> stack;
  add_in_proportion(stack, 101, shares);
  // 16.83, 42.08 and 42.08, rounded down; the first of the largest takes the rest, one.
  EXPECT_EQ(stack[StackComponent::l2], 16);
  EXPECT_EQ(stack[StackComponent::dram], 43);
  EXPECT_EQ(stack[StackComponent::mshr], 42);
  EXPECT_EQ(stack.sum(), 101);
}

TEST(InstructionStream, WindowsOfAFileGiveTheSameInstructions) {
  std::vector<testing::Step> steps;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto address = [i](std::uint64_t thread) { return thread * (i % 40) * 4; };
    switch (i % 4) {
      case 0:
        steps.push_back({"STG.E", {}, {2, 6}, address});
        break;
      case 1:
        steps.push_back({"LDG.E", {4}, {2}, address});
        break;
      case 2:
        steps.push_back({"LDS", {4}, {2}, address});
        break;
      default:
        steps.push_back({"FADD", {4}, {2}, {}});
    }
  }
  const trace::KernelTrace in_memory = testing::make_kernel(2, 64, steps);
  const trace::KernelTrace in_file =
      testing::make_kernel(2, 64, steps, testing::memory_budget(1000));
  ASSERT_TRUE(in_file.blocks().spilled());
  std::vector<InstructionStream::RowKind> kinds;
  for (const trace::StaticInstruction& row : in_memory.instructions()) kinds.emplace_back(row);
  for (std::uint32_t warp = 0; warp < 2; ++warp) {
    InstructionStream expected(in_memory, kinds, {1, warp});
    InstructionStream found(in_file, kinds, {1, warp});
    std::size_t count = 0;
    for (; !expected.done(); expected.advance(), found.advance(), ++count) {
      ASSERT_FALSE(found.done());
      ASSERT_EQ(found.row(), expected.row());
      ASSERT_EQ(found.mask(), expected.mask());
      ASSERT_EQ(found.memory_count(), expected.memory_count());
      if (!kinds[found.row()].uses_caches) continue;
      ASSERT_TRUE(std::ranges::equal(found.access().sectors, expected.access().sectors));
      ASSERT_TRUE(std::ranges::equal(found.access().store_bytes, expected.access().store_bytes));
      ASSERT_EQ(found.access().l1_passes(), expected.access().l1_passes());
    }
    EXPECT_TRUE(found.done());
    EXPECT_EQ(count, 300u);
  }
}

}  // namespace
}  // namespace warpstack::timing
