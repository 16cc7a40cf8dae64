#include "timing/base/wait_details.h"

#include <gtest/gtest.h>

namespace warpstack::timing {
namespace {

TEST(WaitDetails, SlotsOfLoadsAreDividedAsWasWaited) {
  LostSlots slots;
  slots.known[StackDetail::issue] = 5;
  slots.of_loads[StackComponent::mshr] = 10;
  slots.of_loads[StackComponent::queue] = 7;
  WaitedFor waited;
  waited[StackDetail::mshrs] = 1;
  waited[StackDetail::places] = 2;
  const DetailedStack<std::int64_t> details = attribute(slots, waited, {});
  EXPECT_EQ(details[StackDetail::issue], 5);
  // The largest takes what rounding leaves.
  EXPECT_EQ(details[StackDetail::mshrs], 3);
  EXPECT_EQ(details[StackDetail::places], 7);
  // Nothing was seen to wait for DRAM.
  EXPECT_EQ(details[StackDetail::dram_bandwidth], 7);
  EXPECT_EQ(components_of(details).sum(), slots.stack().sum());
}

TEST(WaitDetails, TheFirstRequestWaitsForItsPortThenForItsSliceThenForTheNetwork) {
  NocWaits noc(1, 1, false);
  noc.count_request(0, 0, 0, 4, 0);  // takes the port until 4
  noc.has_room(0, 7);
  noc.count_request(0, 0, 0, 4, 10);
  WaitedFor waited;
  WaitedFor requests;
  SliceWaits slice;
  slice.requests = 2;
  slice.atomics = 1;
  noc.add_to(waited, requests, {slice}, {});
  EXPECT_EQ(requests[StackDetail::send_port], 4);
  EXPECT_EQ(requests[StackDetail::slices], 2);
  EXPECT_EQ(requests[StackDetail::atomics], 1);
  EXPECT_EQ(requests[StackDetail::network], 3);
  EXPECT_EQ(components_of(waited)[StackComponent::noc], 10);
}

TEST(WaitDetails, InACrossbarRequestsWaitForTheTurnsOfTheSlice) {
  NocWaits noc(1, 1, true);
  noc.count_request(0, 0, 3, 0, 9);
  WaitedFor waited;
  WaitedFor requests;
  SliceWaits slice;
  slice.for_channel = 1;
  noc.add_to(waited, requests, {slice}, {});
  EXPECT_EQ(requests[StackDetail::dram_backlog], 6);
}

}  // namespace
}  // namespace warpstack::timing
