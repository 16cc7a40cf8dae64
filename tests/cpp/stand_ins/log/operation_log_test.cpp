#include "stand_ins/log/operation_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

namespace warpstack::cudart {
namespace {

class OperationLogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string place = testing::TempDir() + "warpstack-log-XXXXXX";
    ASSERT_NE(::mkdtemp(place.data()), nullptr);
    folder_ = place;
    log_thread() = {};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string content(const char* name) const {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  [[nodiscard]] std::vector<LogRow> rows() const {
    const std::string bytes = content("operations");
    EXPECT_EQ(bytes.size() % sizeof(LogRow), 0U);
    std::vector<LogRow> result(bytes.size() / sizeof(LogRow));
    std::memcpy(result.data(), bytes.data(), result.size() * sizeof(LogRow));
    return result;
  }

  [[nodiscard]] std::map<std::pair<std::int64_t, std::uint64_t>, std::string> names() const {
    std::map<std::pair<std::int64_t, std::uint64_t>, std::string> result;
    const std::string bytes = content("operation-names");
    for (std::size_t place = 0; place < bytes.size();) {
      std::uint64_t head[3];
      std::memcpy(head, bytes.data() + place, sizeof head);
      place += sizeof head;
      result[{static_cast<std::int64_t>(head[0]), head[1]}] = bytes.substr(place, head[2]);
      place += head[2];
    }
    return result;
  }

  std::string folder_;
};

Operation allocation(std::uint64_t bytes) {
  Operation operation;
  operation.kind = OperationKind::allocate;
  operation.bytes = bytes;
  return operation;
}

TEST_F(OperationLogTest, WritesWhatTheOutermostFunctionDoes) {
  OperationLog log(folder_, true);
  const ApiCall outer("cuMemAlloc");
  {
    const ApiCall inner("cudaMalloc");
    Operation kernel;
    kernel.name = "_Z4workPf";
    kernel.stream = {3, true, -2};
    kernel.launch = 7;
    kernel.asynchronous = true;
    EXPECT_EQ(log.add(kernel), 0);
  }
  EXPECT_EQ(log.add(allocation(64)), 1);
  const auto found = rows();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].stream, 3);
  EXPECT_EQ(found[0].priority, -2);
  EXPECT_EQ(found[0].launch, 7U);
  EXPECT_EQ(found[0].blocking + found[0].asynchronous, 2);
  EXPECT_EQ(found[1].kind, static_cast<std::uint8_t>(OperationKind::allocate));
  EXPECT_EQ(found[1].bytes, 64U);
  EXPECT_EQ(found[1].stream, -1);
  const auto texts = names();
  EXPECT_EQ(texts.size(), 2U);  // each once
  EXPECT_EQ(texts.at({found[0].process, found[0].name}), "_Z4workPf");
  for (const LogRow& row : found) EXPECT_EQ(texts.at({row.process, row.api}), "cuMemAlloc");
  EXPECT_EQ(found[1].name, found[1].api);
}

TEST_F(OperationLogTest, CountsTheTimeBetweenCallsAndNotWithinThem) {
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  for (const bool measures : {true, false}) {
    std::filesystem::remove(folder_ + "/operations");
    log_thread() = {};
    OperationLog log(folder_, measures);
    nap();  // before the first call: not known since when
    {
      const ApiCall call("first");
      nap();
      log.add(allocation(1));
    }
    nap();
    {
      const ApiCall call("without a row");
    }
    nap();
    {
      const ApiCall call("second");
      log.add(allocation(2));
      log.add(allocation(3));
    }
    const auto found = rows();
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].host_ns, 0U);
    EXPECT_EQ(found[2].host_ns, 0U);  // it belongs to the same call
    if (measures) {
      EXPECT_GE(found[1].host_ns, 40'000'000U);
    } else {
      EXPECT_EQ(found[1].host_ns, 0U);
    }
  }
}

TEST_F(OperationLogTest, WritesWhatANodeWaitsForOnce) {
  OperationLog log(folder_, true);
  const ApiCall call("cudaGraphLaunch");
  log.add(allocation(1));
  log.add(allocation(2));
  const std::vector<std::int64_t> after{0, 1};
  CallContext& context = log_thread().call;
  context.graph = log.next_graph();
  context.after = &after;
  context.first_row = -1;
  EXPECT_EQ(log.add(allocation(3)), 2);
  EXPECT_EQ(log.add(allocation(4)), 3);
  EXPECT_EQ(context.first_row, 2);
  const auto found = rows();
  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(found[2].graph, 0);
  for (const std::size_t i : {3, 4}) {
    EXPECT_EQ(found[i].kind, LogRow::edge);
    EXPECT_EQ(found[i].number, 2);
    EXPECT_EQ(found[i].bytes, i - 3);
  }
  EXPECT_EQ(found[5].number, 3);
}

TEST_F(OperationLogTest, NumbersThreadsAndProcesses) {
  OperationLog log(folder_, true);
  const auto work = [&log] {
    const ApiCall call("work");
    for (int i = 0; i < 500; ++i) log.add(allocation(1));
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    std::_Exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  work();
  std::map<std::int64_t, std::map<std::int64_t, int>> counts;
  std::map<std::int64_t, std::int64_t> next;
  for (const LogRow& row : rows()) {
    if (row.kind == LogRow::begin) continue;
    ++counts[row.process][row.thread];
    EXPECT_EQ(row.number, next[row.process]++);  // in the order of the file
  }
  EXPECT_EQ(names().size(), 2U);
  ASSERT_EQ(counts.size(), 2U);
  int threads = 0;
  for (const auto& [process, of_threads] : counts) {
    threads += static_cast<int>(of_threads.size());
    for (const auto& [thread, count] : of_threads) EXPECT_EQ(count, 500) << thread;
  }
  EXPECT_EQ(threads, 4);
}

TEST_F(OperationLogTest, SaysAfterWhichRowThreadsAndProcessesBegin) {
  OperationLog log(folder_, true);
  const auto work = [&log] {
    const ApiCall call("work");
    log.add(allocation(1));
    log.add(allocation(2));
  };
  work();
  std::thread(work).join();
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    std::thread(work).join();
    std::_Exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto found = rows();
  const std::int64_t parent = found.front().process;
  std::vector<std::array<std::int64_t, 3>> begins;  // the row, and what it begins after
  for (const LogRow& row : found) {
    if (row.kind != LogRow::begin) continue;
    begins.push_back({row.number, row.parent == static_cast<std::uint64_t>(parent) ? 1 : 0,
                      static_cast<std::int64_t>(row.bytes)});
  }
  // The first thread's second row; in the child the last row of the thread that forked, then its
  // own.
  const std::vector<std::array<std::int64_t, 3>> expected{{2, 1, 1}, {0, 1, 1}, {2, 0, 1}};
  EXPECT_EQ(begins, expected);
}

TEST_F(OperationLogTest, LeavesOutWaitsForThreadsThatAreInCalls) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  OperationLog log(folder_, true);
  const auto call = [&log](auto within) {
    const ApiCall call("work");
    within();
    log.add(allocation(1));
  };
  const auto nothing = [] {};
  const auto nap = [] { std::this_thread::sleep_for(milliseconds(200)); };
  const auto begin = Clock::now();
  call(nothing);
  std::thread([&] { call(nap); }).join();
  call(nothing);  // it waited in the join
  const auto passed = Clock::now() - begin;
  std::thread(nap).join();
  call(nothing);  // for a thread that was in no call
  std::atomic<bool> has_computed = false;
  std::thread other([&] {
    call([&] {
      while (!has_computed) std::this_thread::sleep_for(milliseconds(1));
    });
  });
  timespec computed{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &computed);
  const long until = computed.tv_sec * 1000 + computed.tv_nsec / 1'000'000 + 50;
  while (computed.tv_sec * 1000 + computed.tv_nsec / 1'000'000 < until) {
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &computed);
  }
  has_computed = true;
  other.join();
  call(nothing);  // it computed at the same time
  std::vector<std::chrono::nanoseconds> of_main;
  for (const LogRow& row : rows()) {
    if (row.kind != LogRow::begin && row.thread == 0) of_main.emplace_back(row.host_ns);
  }
  ASSERT_EQ(of_main.size(), 4U);
  EXPECT_LE(of_main[1], passed - milliseconds(199));
  EXPECT_GE(of_main[2], milliseconds(200));
  EXPECT_GE(of_main[3], milliseconds(49));
}

TEST(OwnTime, IsWhatWasComputedOrPassedWithoutTheOthers) {
  using std::chrono::nanoseconds;
  const auto own = [](int passed, int in_calls, int computed) {
    return own_time(nanoseconds(passed), nanoseconds(in_calls), nanoseconds(computed)).count();
  };
  EXPECT_EQ(own(100, 0, 10), 100);  // it slept, or read a file
  EXPECT_EQ(own(100, 90, 0), 10);   // it waited
  EXPECT_EQ(own(100, 90, 60), 60);  // it computed while another was in a call
  EXPECT_EQ(own(100, 30, 60), 70);  // and slept for 10 at least
  EXPECT_EQ(own(100, 150, 0), 0);   // clocks differ
  EXPECT_EQ(own(100, 0, 150), 100);
  EXPECT_EQ(own(100, 100, -50), 0);  // after a fork the processor time begins anew
}

TEST_F(OperationLogTest, WritesNothingWithoutAFolder) {
  OperationLog log("", true);
  EXPECT_FALSE(log.is_on());
  EXPECT_EQ(log.add(allocation(1)), -1);
}

TEST(PerThreadDefault, EndsWithItsFunction) {
  EXPECT_FALSE(log_thread().per_thread_default);
  {
    const PerThreadDefault outer;
    {
      const PerThreadDefault inner;
    }
    EXPECT_TRUE(log_thread().per_thread_default);
  }
  EXPECT_FALSE(log_thread().per_thread_default);
}

}  // namespace
}  // namespace warpstack::cudart
