#include "simt/state/launch.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "common/error.h"
#include "kernels.h"
#include "simt/arithmetic/atomics.h"
#include "simt/hand_written.h"

// Programs written by hand: the engine runs them without PTX or machine code.

namespace warpstack::simt {
namespace {

using testing::HandWritten;

constexpr LaneForm add_u32{.operation = Operation::add, .type = Type::u32};

class Launch : public ::testing::Test {
 protected:
  Launch() : device_(std::uint64_t{1} << 20), out_(device_.memory.allocate(4096)) {
    device_.memory.fill(out_, 0, 4096);
    options_.trace = false;
  }

  /// A register with the address of `out_` plus 4 bytes times `index`.
  std::uint32_t address_of(HandWritten& kernel, std::uint32_t index, std::uint32_t base,
                           std::uint32_t four) {
    const std::uint32_t address = kernel.slot(8);
    kernel.lanes({.operation = Operation::mad_wide, .type = Type::u32}, address,
                 {index, four, base});
    return address;
  }

  LaunchResult run(HandWritten& kernel) { return launch(device_, kernel.program(), {}, options_); }

  std::vector<std::uint32_t> output(std::size_t count) {
    std::vector<std::uint32_t> values(count);
    device_.memory.read(out_, values.data(), 4 * count);
    return values;
  }

  /// The message of the fault that a kernel stops with.
  std::string fault_of(HandWritten& kernel) {
    try {
      run(kernel);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no fault";
  }

  Device device_;
  std::uint64_t out_;
  LaunchOptions options_;
};

/// total = lane + (lane - 1) + … + 1, in a loop that each lane leaves by itself.
HandWritten loop_kernel(std::uint64_t out) {
  HandWritten kernel;
  const std::uint32_t base = kernel.constant(out, 8);
  const std::uint32_t zero = kernel.constant(0);
  const std::uint32_t one = kernel.constant(1);
  const std::uint32_t four = kernel.constant(4);
  const std::uint32_t lane = kernel.slot();
  const std::uint32_t k = kernel.slot();
  const std::uint32_t total = kernel.slot();
  const std::uint32_t done = kernel.slot();
  const std::uint32_t address = kernel.slot(8);
  kernel.special(Special::laneid, lane);
  kernel.lanes({.operation = Operation::mov, .type = Type::u32}, k, {lane});
  kernel.lanes({.operation = Operation::mov, .type = Type::u32}, total, {zero});
  const std::uint32_t loop = kernel.here();
  kernel.lanes({.operation = Operation::setp, .type = Type::u32, .comparison = Comparison::eq},
               done, {k, zero});
  Step& leave = kernel.step(Action::branch);
  leave.guard = done;
  leave.jump = leave.reconvergence = loop + 5;
  kernel.lanes(add_u32, total, {total, k});
  kernel.row("IADD");
  kernel.lanes({.operation = Operation::sub, .type = Type::u32}, k, {k, one});
  kernel.step(Action::branch).jump = loop;
  kernel.lanes({.operation = Operation::mad_wide, .type = Type::u32}, address, {lane, four, base})
      .reconverges = true;
  kernel.access(Action::store, AddressSpace::global, address, true, total);
  kernel.row("STG.E");
  kernel.step(Action::exit);
  return kernel;
}

TEST_F(Launch, LanesLeaveALoopOneByOneAndMeetBehindIt) {
  HandWritten kernel = loop_kernel(out_);
  options_.block = {32, 1, 1};
  const LaunchResult result = run(kernel);
  const std::vector<std::uint32_t> totals = output(32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(totals[lane], lane * (lane + 1) / 2);
  // Before the loop 3, in it 32 tests and branches and 31 bodies, behind it 3 by all lanes
  // together.
  EXPECT_EQ(result.warp_instructions, 3u + 2 * 32 + 3 * 31 + 3);
  // Lane l tests l + 1 times, leaves once and goes through the body l times; the sum of l is 496.
  EXPECT_EQ(result.thread_instructions, 3u * 32 + (496 + 32) + 32 + 3 * 496 + 3 * 32);
  EXPECT_FALSE(result.trace.has_value());
}

TEST_F(Launch, TheTraceHasTheActiveLanesOfEachInstruction) {
  HandWritten kernel = loop_kernel(out_);
  options_.block = {32, 1, 1};
  options_.trace = true;
  options_.storage = warpstack::testing::memory_budget();
  const LaunchResult result = run(kernel);
  ASSERT_TRUE(result.trace.has_value());
  const trace::KernelTrace& trace = *result.trace;
  EXPECT_EQ(trace.header().name, "by_hand");
  EXPECT_EQ(trace.header().source, "hand");
  EXPECT_EQ(trace.header().binary_version, 75u);
  std::vector<std::byte> scratch;
  const trace::ColumnView warp = trace.warp({0, 0}, scratch);
  ASSERT_EQ(warp.instruction.size(), 32u);  // 31 additions and the store
  EXPECT_EQ(warp.instruction.back(), 1u);
  EXPECT_EQ(trace.num_thread_instructions(), 496u + 32);
  EXPECT_EQ(warp.sector.size(), 4u);  // 128 bytes side by side
  EXPECT_EQ(warp.sector.front(), out_ / 32);
}

/// Each thread writes shared memory and reads what the thread at the other end of the block wrote.
HandWritten mirror_kernel(std::uint64_t out, bool with_barrier) {
  HandWritten kernel;
  const std::uint32_t base = kernel.constant(out, 8);
  const std::uint32_t number = kernel.constant(0);
  const std::uint32_t four = kernel.constant(4);
  const std::uint32_t last = kernel.constant(63 * 4);
  const std::uint32_t thread = kernel.slot();
  const std::uint32_t place = kernel.slot();
  const std::uint32_t mirrored = kernel.slot();
  const std::uint32_t value = kernel.slot();
  const std::uint32_t address = kernel.slot(8);
  kernel.program().shared_bytes = 256;
  kernel.program().dynamic_shared_offset = 256;
  kernel.program().shared_variables = {{"tile", 0, 256}};
  kernel.special(Special::tid, thread);
  kernel.lanes({.operation = Operation::mul_lo, .type = Type::u32}, place, {thread, four});
  kernel.lanes({.operation = Operation::sub, .type = Type::u32}, mirrored, {last, place});
  kernel.access(Action::store, AddressSpace::shared, place, false, thread);
  if (with_barrier) {
    kernel.program().barriers.push_back({.number = number});
    kernel.step(Action::barrier, 0);
  }
  kernel.access(Action::load, AddressSpace::shared, mirrored, false, value);
  kernel.lanes({.operation = Operation::mad_wide, .type = Type::u32}, address,
               {thread, four, base});
  kernel.access(Action::store, AddressSpace::global, address, true, value);
  kernel.step(Action::exit);
  return kernel;
}

TEST_F(Launch, WarpsMeetAtABarrier) {
  HandWritten kernel = mirror_kernel(out_, true);
  options_.block = {64, 1, 1};
  run(kernel);
  const std::vector<std::uint32_t> values = output(64);
  for (std::uint32_t thread = 0; thread < 64; ++thread) EXPECT_EQ(values[thread], 63 - thread);
}

TEST_F(Launch, FaultsQuoteTheProgramsOwnText) {
  HandWritten kernel = mirror_kernel(out_, false);
  options_.block = {64, 1, 1};
  EXPECT_EQ(fault_of(kernel),
            "kernel by_hand (step 4, op), block (0, 0, 0), thread (0, 0, 0): load of 4 bytes at "
            "0xfc of shared memory, which nobody has written: 252 bytes into the shared variable "
            "tile (write it first, or launch with check_uninitialized off)");
  kernel.kernel().instructions[4].source = "mirror.cu:7";
  EXPECT_TRUE(fault_of(kernel).starts_with("kernel by_hand (mirror.cu:7, step 4, op), block"));
}

TEST_F(Launch, FaultsThatAGpuLetsPassBecomeNotes) {
  HandWritten kernel = mirror_kernel(out_, false);
  options_.block = {64, 1, 1};
  options_.on_fault = OnFault::proceed;
  std::vector<Note> notes;
  options_.note = [&](const Note& note) { notes.push_back(note); };
  run(kernel);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].kind, "uninitialised");
  EXPECT_EQ(notes[0].count, 32u);  // warp 0 reads what warp 1 has not written yet
}

TEST_F(Launch, ABarrierThatOneWarpNeverReachesIsADeadlock) {
  HandWritten kernel;
  const std::uint32_t number = kernel.constant(3);
  const std::uint32_t threads = kernel.constant(64);
  kernel.program().barriers.push_back({.number = number, .threads = threads});
  kernel.step(Action::barrier, 0);
  kernel.step(Action::exit);
  options_.block = {32, 1, 1};
  EXPECT_EQ(fault_of(kernel),
            "kernel by_hand, block (0, 0, 0): deadlock: all warps that have not finished wait: "
            "warp 0 at barrier 3 (step 0, op)");
}

TEST_F(Launch, LanesAddUpByShuffles) {
  HandWritten kernel;
  const std::uint32_t base = kernel.constant(out_, 8);
  const std::uint32_t four = kernel.constant(4);
  const std::uint32_t control = kernel.constant(31);
  const std::uint32_t all = kernel.constant(0xffffffff);
  std::array<std::uint32_t, 5> distances{};
  for (std::uint32_t i = 0; i < 5; ++i) distances[i] = kernel.constant(16u >> i);
  const std::uint32_t lane = kernel.slot();
  const std::uint32_t sum = kernel.slot();
  const std::uint32_t other = kernel.slot();
  kernel.special(Special::laneid, lane);
  kernel.lanes({.operation = Operation::mov, .type = Type::u32}, sum, {lane});
  for (std::uint32_t i = 0; i < 5; ++i) {
    kernel.program().collectives.push_back(
        {.mode = static_cast<std::uint8_t>(ShuffleMode::butterfly),
         .result = other,
         .a = sum,
         .b = distances[i],
         .c = control,
         .members = all});
    kernel.step(Action::shuffle, i);
    kernel.lanes(add_u32, sum, {sum, other});
  }
  const std::uint32_t address = address_of(kernel, lane, base, four);
  kernel.access(Action::store, AddressSpace::global, address, true, sum);
  kernel.step(Action::exit);
  options_.block = {32, 1, 1};
  run(kernel);
  EXPECT_EQ(output(32), std::vector<std::uint32_t>(32, 496));
}

TEST_F(Launch, AMaskThatNamesLanesWhichNeverComeIsAFault) {
  HandWritten kernel;
  const std::uint32_t control = kernel.constant(31);
  const std::uint32_t all = kernel.constant(0xffff);
  const std::uint32_t lane = kernel.slot();
  kernel.program().collectives.push_back({.mode = static_cast<std::uint8_t>(ShuffleMode::index),
                                          .result = lane,
                                          .a = lane,
                                          .b = control,
                                          .c = control,
                                          .members = all});
  kernel.special(Special::laneid, lane);
  kernel.step(Action::shuffle, 0);
  kernel.step(Action::exit);
  options_.block = {32, 1, 1};
  EXPECT_NE(fault_of(kernel).find("masks leave out lanes that execute this with them: lanes 16-31"),
            std::string::npos);
}

TEST_F(Launch, AtomicsOfAllBlocksAddUp) {
  HandWritten kernel;
  const std::uint32_t counter = kernel.constant(out_, 8);
  const std::uint32_t tickets = kernel.constant(out_ + 4, 8);
  const std::uint32_t one = kernel.constant(1);
  const std::uint32_t four = kernel.constant(4);
  const std::uint32_t ticket = kernel.slot();
  kernel.access(Action::atomic, AddressSpace::global, counter, true, none);
  MemoryAccess& access = kernel.program().memory.back();
  access.atomic = find_atomic("add", Type::u32, false);
  access.operand_b = one;
  access.result = ticket;
  const std::uint32_t address = address_of(kernel, ticket, tickets, four);
  kernel.access(Action::store, AddressSpace::global, address, true, one);
  kernel.step(Action::exit);
  options_.grid = {2, 1, 1};
  options_.block = {48, 1, 1};
  run(kernel);
  std::vector<std::uint32_t> expected(98, 1);  // each ticket once
  expected.front() = 96;
  expected.back() = 0;
  EXPECT_EQ(output(98), expected);
}

/// Block 0 waits until block 1 has stored a one.
HandWritten waiting_kernel(std::uint64_t flag_address) {
  HandWritten kernel;
  const std::uint32_t flag = kernel.constant(flag_address, 8);
  const std::uint32_t zero = kernel.constant(0);
  const std::uint32_t one = kernel.constant(1);
  const std::uint32_t block = kernel.slot();
  const std::uint32_t value = kernel.slot();
  const std::uint32_t holds = kernel.slot();
  kernel.special(Special::ctaid, block);
  kernel.lanes({.operation = Operation::setp, .type = Type::u32, .comparison = Comparison::ne},
               holds, {block, zero});
  Step& to_store = kernel.step(Action::branch);
  to_store.guard = holds;
  to_store.jump = 7;
  kernel.access(Action::load, AddressSpace::global, flag, true, value);
  kernel.program().memory.back().strong = true;
  kernel.lanes({.operation = Operation::setp, .type = Type::u32, .comparison = Comparison::eq},
               holds, {value, zero});
  Step& again = kernel.step(Action::branch);
  again.guard = holds;
  again.jump = 3;
  kernel.step(Action::exit);
  kernel.access(Action::store, AddressSpace::global, flag, true, one);
  kernel.step(Action::exit);
  return kernel;
}

TEST_F(Launch, ABlockThatSpinsLetsOthersRun) {
  options_.check_uninitialized = false;
  options_.grid = {2, 1, 1};
  options_.block = {64, 1, 1};
  HandWritten kernel = waiting_kernel(out_);
  run(kernel);
  EXPECT_EQ(output(1), std::vector<std::uint32_t>{1});
}

TEST_F(Launch, ABlockThatSpinsForOneThatCannotBeginIsADeadlock) {
  options_.check_uninitialized = false;
  options_.grid = {2, 1, 1};
  options_.block = {64, 1, 1};
  options_.resident_blocks = 1;
  HandWritten kernel = waiting_kernel(out_);
  const std::string fault = fault_of(kernel);
  EXPECT_TRUE(fault.starts_with(
      "kernel by_hand: deadlock: the block that is resident waits for memory that nobody changes, "
      "and 1 begins only when another ends (this GPU holds 1): block (0, 0, 0): warp 0 reads 0x"))
      << fault;
  EXPECT_TRUE(fault.ends_with(" again and again (step 3, op), and so does 1 more warp")) << fault;
}

TEST_F(Launch, ImpossibleLaunchesAreErrors) {
  HandWritten kernel = loop_kernel(out_);
  kernel.program().max_threads = 64;
  options_.block = {96, 1, 1};
  EXPECT_EQ(fault_of(kernel), "kernel by_hand: a block of 96 threads is too large: at most 64");
  options_.block = {32, 1, 1};
  kernel.program().parameter_bytes = 8;
  EXPECT_EQ(fault_of(kernel), "kernel by_hand: its parameters take 8 bytes, 0 are given");
}

TEST_F(Launch, AnEndlessLoopEndsAtTheStepLimit) {
  HandWritten kernel;
  kernel.step(Action::branch).jump = 0;
  options_.block = {32, 1, 1};
  options_.step_limit = 100;
  EXPECT_EQ(fault_of(kernel),
            "kernel by_hand (step 0, op), block (0, 0, 0): the launch has executed more than 100 "
            "warp instructions; raise step_limit if it is not an endless loop");
}

}  // namespace
}  // namespace warpstack::simt
