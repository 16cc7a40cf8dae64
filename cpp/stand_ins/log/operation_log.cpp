#include "stand_ins/log/operation_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace warpstack::cudart {
namespace {

int open_for_rows(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/// The last row of the process, for threads that begin.
std::atomic<std::int64_t> last_row{-1};
std::atomic<std::int64_t> process_of_rows{0};

/// Whether anybody wants to know the host's time: a thread's processor time is dear to ask for.
std::atomic<bool> is_timed{true};

std::chrono::nanoseconds processor_time() {
  timespec time{};
  if (!is_timed) return {};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// What of the time between two readings is the thread's own; `computed` is its processor time at
/// the first.
std::chrono::nanoseconds own_between(const CallClock::Reading& begin,
                                     std::chrono::nanoseconds computed,
                                     const CallClock::Reading& end) {
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(end.now - begin.now);
  const std::chrono::nanoseconds in_calls = end.in_calls - begin.in_calls;
  if (in_calls.count() == 0) return passed;
  return own_time(passed, in_calls, processor_time() - computed);
}

/// The number of connections in the environment; 0 where it has none that CUDA takes.
std::int32_t asked_connections() {
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  std::int32_t number = 0;
  if (text == nullptr) return 0;
  const char* const end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, number);
  return read.ec == std::errc() && read.ptr == end && number >= 1 && number <= 32 ? number : 0;
}

/// A number of operations, at most what the column can hold.
std::uint64_t whole(double operations) {
  constexpr double most = 9e18;
  return static_cast<std::uint64_t>(std::llround(std::clamp(operations, 0.0, most)));
}

LogRow edge_of(std::uint8_t kind, const LogRow& row, std::int64_t before) {
  LogRow edge;
  edge.kind = kind;
  edge.process = row.process;
  edge.number = row.number;
  edge.bytes = static_cast<std::uint64_t>(before);
  return edge;
}

}  // namespace

CallClock& CallClock::of_process() {
  static auto* const clock = new CallClock;  // programs still call at exit
  return *clock;
}

CallClock::CallClock() {
  // A child of fork() has the one thread that called it, and the lock as that thread left it.
  ::pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                   [] {
                     CallClock& clock = of_process();
                     const LogThread& thread = log_thread();
                     clock.num_inside_ = thread.depth > 0 && !thread.in_host_function ? 1 : 0;
                     last_row = -1;
                     clock.mutex_.unlock();
                   });
}

CallClock::Reading CallClock::read() const {
  const auto now = Clock::now();
  const auto running = num_inside_ > 0 ? now - since_ : Clock::duration{};
  return {now, before_ + std::chrono::duration_cast<std::chrono::nanoseconds>(running)};
}

CallClock::Reading CallClock::enter() {
  const std::lock_guard lock(mutex_);
  const Reading reading = read();
  if (num_inside_++ == 0) since_ = reading.now;
  return reading;
}

CallClock::Reading CallClock::leave() {
  const std::lock_guard lock(mutex_);
  const Reading reading = read();
  if (--num_inside_ == 0) before_ = reading.in_calls;
  return reading;
}

CallClock::Reading CallClock::now() {
  const std::lock_guard lock(mutex_);
  return read();
}

std::chrono::nanoseconds own_time(std::chrono::nanoseconds passed,
                                  std::chrono::nanoseconds in_calls,
                                  std::chrono::nanoseconds computed) {
  return std::clamp(std::max(computed, passed - in_calls), std::chrono::nanoseconds{}, passed);
}

LogThread& log_thread() {
  static thread_local LogThread thread;
  return thread;
}

ThreadJoin::ThreadJoin() noexcept {
  LogThread& thread = log_thread();
  if (thread.depth > 0 || !thread.has_returned) return;
  begin_ = CallClock::of_process().now();
  before_ = own_between({thread.returned, thread.in_calls}, thread.computed, begin_);
}

void ThreadJoin::end(ThreadNotes& notes) noexcept {
  LogThread& thread = log_thread();
  if (notes.last.number < 0 || thread.depth > 0) {  // such a wait is as any other
    notes.is_used = false;
    return;
  }
  if (thread.has_returned) {
    const CallClock::Reading end = CallClock::of_process().now();
    const bool has_called = notes.returned > begin_.now;
    const auto since = has_called ? CallClock::Reading{notes.returned, notes.in_calls} : begin_;
    const auto after = std::chrono::duration_cast<std::chrono::nanoseconds>(end.now - since.now) -
                       (end.in_calls - since.in_calls);
    const auto own = before_ + std::max(after, std::chrono::nanoseconds{});
    thread.host_ns += static_cast<std::uint64_t>(own.count());
    thread.returned = end.now;
    thread.in_calls = end.in_calls;
    thread.computed = processor_time();
  }
  notes.next = thread.joined;
  thread.joined = &notes;
}

RowOfProcess last_row_of_process() { return {process_of_rows, last_row}; }

ApiCall::ApiCall(const char* function) noexcept {
  LogThread& thread = log_thread();
  if (thread.depth++ > 0) return;
  const CallClock::Reading reading = CallClock::of_process().enter();
  if (thread.has_returned) {
    const auto own = own_between({thread.returned, thread.in_calls}, thread.computed, reading);
    thread.host_ns += static_cast<std::uint64_t>(own.count());
  }
  if (!thread.has_begun) {
    thread.has_begun = true;
    thread.begins_after = last_row_of_process();
  }
  thread.call = {};
  thread.call.function = function;
}

ApiCall::~ApiCall() {
  LogThread& thread = log_thread();
  if (--thread.depth > 0) return;
  thread.has_returned = true;
  thread.computed = processor_time();
  const CallClock::Reading reading = CallClock::of_process().leave();
  thread.returned = reading.now;
  thread.in_calls = reading.in_calls;
  if (thread.notes != nullptr) {
    thread.notes->returned = thread.returned;
    thread.notes->in_calls = thread.in_calls;
  }
}

HostFunctionTime::HostFunctionTime(OperationLog& log) noexcept
    : log_(log), pid_(::getpid()), is_outermost_(!log_thread().in_host_function) {
  LogThread& thread = log_thread();
  row_ = {thread.process, thread.last};
  if (!is_outermost_) return;
  thread.in_host_function = true;
  computed_ = processor_time();
  begin_ = CallClock::of_process().leave();
}

HostFunctionTime::~HostFunctionTime() {
  if (!is_outermost_) return;
  const CallClock::Reading end = CallClock::of_process().enter();
  log_thread().in_host_function = false;
  // A child of fork() has no such row.
  if (pid_ == ::getpid()) log_.add_work(row_, own_between(begin_, computed_, end));
}

OperationLog::OperationLog(const std::string& folder, bool measures) : measures_(measures) {
  is_timed = measures && !folder.empty();
  if (folder.empty()) return;
  rows_ = open_for_rows(folder + "/operations");
  names_ = open_for_rows(folder + "/operation-names");
  begin_process();
}

OperationLog::~OperationLog() {
  if (rows_ >= 0) ::close(rows_);
  if (names_ >= 0) ::close(names_);
}

void OperationLog::begin_process() {
  pid_ = ::getpid();
  // A program that exec() puts in place of another one has its number, too.
  const auto now =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  constexpr std::uint64_t low = 0xffffffff;
  process_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(pid_) << 32 | (now & low));
  next_row_ = next_thread_ = 0;
  connections_ = -1;
  last_row = -1;
  process_of_rows = process_;
  known_.clear();
}

std::uint64_t OperationLog::name(const std::string& text) {
  const auto [found, is_new] = known_.try_emplace(text, known_.size());
  if (is_new) {
    const std::array<std::uint64_t, 3> head{static_cast<std::uint64_t>(process_), found->second,
                                            text.size()};
    std::string record(reinterpret_cast<const char*>(head.data()), sizeof head);
    record += text;
    [[maybe_unused]] const ssize_t written = ::write(names_, record.data(), record.size());
  }
  return found->second;
}

std::int64_t OperationLog::add(const Operation& operation) {
  if (rows_ < 0 || names_ < 0) return -1;
  LogThread& thread = log_thread();
  const std::lock_guard lock(mutex_);
  if (pid_ != ::getpid()) begin_process();  // a child of fork()
  RowOfProcess begins_after;
  if (thread.number < 0 || thread.process != process_) {
    // A child of fork() goes on where the thread that called it was.
    begins_after =
        thread.number < 0 ? thread.begins_after : RowOfProcess{thread.process, thread.last};
    thread.number = next_thread_++;
    thread.process = process_;
  }
  LogRow row;
  row.kind = static_cast<std::uint8_t>(operation.kind);
  row.direction = static_cast<std::uint8_t>(operation.direction);
  row.blocking = operation.stream.blocking ? 1 : 0;
  row.pinned = operation.pinned ? 1 : 0;
  row.asynchronous = operation.asynchronous ? 1 : 0;
  row.programmatic = operation.programmatic ? 1 : 0;
  row.arithmetic = static_cast<std::uint8_t>(operation.computation.arithmetic);
  row.tensor_cores = operation.computation.tensor_cores ? 1 : 0;
  row.flops = whole(operation.computation.operations);
  row.process = process_;
  row.priority = operation.stream.priority;
  // CUDA reads it when it connects to the GPU. Before, the program can change it.
  if (connections_ < 0) connections_ = asked_connections();
  row.connections = connections_;
  row.number = next_row_++;
  row.thread = thread.number;
  row.stream = operation.stream.number;
  row.event = operation.event;
  row.graph = thread.call.graph;
  row.bytes = operation.bytes;
  row.launch = operation.launch;
  row.parent = thread.call.parent;
  const std::uint64_t host_ns = std::exchange(thread.host_ns, 0);
  row.host_ns = measures_ ? host_ns : 0;
  const std::string api = thread.call.function;
  row.name = name(operation.name.empty() ? api : operation.name);
  row.api = name(api);
  std::vector<LogRow> rows{row};
  const auto begin_after = [&](const RowOfProcess& before) {
    if (before.number < 0) return;
    rows.push_back(edge_of(LogRow::begin, row, before.number));
    rows.back().parent = static_cast<std::uint64_t>(before.process);
  };
  while (thread.joined != nullptr) {
    ThreadNotes& notes = *std::exchange(thread.joined, thread.joined->next);
    begin_after(notes.last);
    notes.is_used = false;
  }
  begin_after(begins_after);
  std::reverse(rows.begin() + 1, rows.end());  // in the order of the joins
  if (const auto* after = std::exchange(thread.call.after, nullptr)) {
    for (const std::int64_t before : *after) {
      rows.push_back(edge_of(LogRow::edge, row, before));
    }
  }
  const auto bytes = rows.size() * sizeof(LogRow);
  [[maybe_unused]] const ssize_t written = ::write(rows_, rows.data(), bytes);
  thread.last = row.number;
  if (thread.notes != nullptr) thread.notes->last = {process_, row.number};
  last_row = row.number;
  if (thread.call.first_row < 0) thread.call.first_row = row.number;
  return row.number;
}

void OperationLog::add_work(const RowOfProcess& row, std::chrono::nanoseconds work) {
  if (!measures_ || rows_ < 0 || row.number < 0) return;
  LogRow found;
  found.kind = LogRow::work;
  found.process = row.process;
  found.number = row.number;
  found.bytes = static_cast<std::uint64_t>(work.count());
  [[maybe_unused]] const ssize_t written = ::write(rows_, &found, sizeof found);
}

}  // namespace warpstack::cudart
