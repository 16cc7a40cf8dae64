#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "stand_ins/log/computation.h"

namespace warpstack::cudart {

/// What the host of a program does, call by call, for `App.operations`. Numbers are places in
/// OPERATIONS of python/warpstack/traces/operations.py.
enum class OperationKind : std::uint8_t {
  kernel,
  copy,
  fill,
  event_record,
  event_wait,
  event_synchronize,
  stream_synchronize,
  device_synchronize,
  allocate,
  free,
  graph_launch,
  host_function,
  range_push,
  range_pop,
  stream_create,
  stream_destroy,
  nccl,
  library,
};

/// Places in DIRECTIONS of the same file.
enum class Direction : std::uint8_t {
  none,
  host_to_device,
  device_to_host,
  device_to_device,
  host_to_host,
};

/// A stream as operations name it.
struct StreamOfOperation {
  std::int64_t number = -1;  ///< 0: the legacy default stream; -1: none
  bool blocking = false;     ///< it and the legacy default stream wait for each other
  std::int32_t priority = 0;
};

struct Operation {
  OperationKind kind = OperationKind::kernel;
  std::string name;  ///< empty: that of the API function
  StreamOfOperation stream;
  std::uint64_t launch = 0;  ///< number of a kernel's launch; 0: it is none
  std::int64_t event = -1;
  Direction direction = Direction::none;
  std::uint64_t bytes = 0;
  bool pinned = false;
  bool asynchronous = false;
  bool programmatic = false;  ///< a kernel that may start once those right before it let it
  Computation computation;
};

/// What operations of a thread have in common, because they belong to one call of the program.
struct CallContext {
  const char* function = "";  ///< the API function that the program called
  /// The stream in whose order the call's work is; without one the call waits for its work.
  std::uintptr_t stream = 0;
  bool in_order = false;
  /// Of the launch of a graph that runs, and the numbers of the rows which its next node waits for.
  std::int64_t graph = -1;
  const std::vector<std::int64_t>* after = nullptr;
  std::int64_t first_row = -1;  ///< of those that were added since it was set to -1
  std::uint64_t parent = 0;  ///< launch of the kernel whose threads ask for the work; 0: the host
};

/// A row of the log of all processes.
struct RowOfProcess {
  std::int64_t process = 0;
  std::int64_t number = -1;  ///< -1: there is none
};

/// What is known of a thread to the one that makes or joins it. None is ever freed.
struct ThreadNotes {
  RowOfProcess last;  ///< its last row
  // When its last call returned:
  std::chrono::steady_clock::time_point returned;
  std::chrono::nanoseconds in_calls{};
  ThreadNotes* next = nullptr;      ///< of those that a thread has joined since its last row
  std::atomic<bool> is_used{true};  ///< else another thread may have the place
};

/// The log's state of a thread. Nothing of it is destroyed: programs still call at exit.
struct LogThread {
  std::uint32_t depth = 0;  ///< of API functions that call each other
  bool per_thread_default = false;
  CallContext call;
  std::int64_t number = -1;          ///< -1: it has no operation yet
  std::int64_t process = 0;          ///< in which it has this number
  std::int64_t default_stream = -1;  ///< number of its own default stream, once it has one
  /// The row before the thread was made, or, where that is not known, before its first call.
  RowOfProcess begins_after;
  bool has_begun = false;
  bool in_host_function = false;  ///< it plays CUDA's own thread, see HostFunctionTime
  ThreadNotes* notes = nullptr;   ///< its own, where they are kept
  ThreadNotes* joined = nullptr;  ///< threads that it has joined since its last row
  std::int64_t last = -1;         ///< its last row
  std::uint64_t host_ns = 0;
  bool has_returned = false;
  // When its last call returned:
  std::chrono::steady_clock::time_point returned;
  std::chrono::nanoseconds in_calls{};  ///< see CallClock
  std::chrono::nanoseconds computed{};  ///< of the thread's own processor time
};
static_assert(std::is_trivially_destructible_v<LogThread>);
LogThread& log_thread();
/// The last row of the process, of whatever thread.
RowOfProcess last_row_of_process();

/// How long the threads of a process have been in API functions: the time in which at least one
/// was.
class CallClock {
 public:
  using Clock = std::chrono::steady_clock;
  struct Reading {
    Clock::time_point now;
    std::chrono::nanoseconds in_calls{};
  };

  static CallClock& of_process();
  /// A thread begins a call that is not within another one of it.
  Reading enter();
  Reading leave();
  /// Neither.
  Reading now();

 private:
  CallClock();
  [[nodiscard]] Reading read() const;

  std::mutex mutex_;
  std::uint64_t num_inside_ = 0;
  Clock::time_point since_;  ///< while there are some
  std::chrono::nanoseconds before_{};
};

/// What of the time between two calls of a thread is its own. While other threads are in calls it
/// may wait for them, on a machine on which kernels take far longer than on a GPU: of that time
/// only what it computed counts for certain. `passed` is all of the time, `in_calls` that in which
/// another thread was in a call, `computed` the thread's processor time.
[[nodiscard]] std::chrono::nanoseconds own_time(std::chrono::nanoseconds passed,
                                                std::chrono::nanoseconds in_calls,
                                                std::chrono::nanoseconds computed);

/// While it exists, the thread waits for the end of another one. What passes meanwhile is no time
/// of the host, but for what the other one does after its last call.
class ThreadJoin {
 public:
  ThreadJoin() noexcept;
  /// The other thread has ended. The next row of this one begins after its last row, and `notes`
  /// are free then.
  void end(ThreadNotes& notes) noexcept;

 private:
  CallClock::Reading begin_;
  std::chrono::nanoseconds before_{};  ///< what passed before, of the thread's own time
};

/// While it exists, the program is in an API function: what passes then is no time of the host, and
/// operations are those of the outermost function.
class ApiCall {
 public:
  explicit ApiCall(const char* function) noexcept;
  ~ApiCall();
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
};

/// While it exists, the default stream is that of the thread: functions whose names end in _ptsz or
/// _ptds, which programs of `nvcc --default-stream per-thread` call.
class PerThreadDefault {
 public:
  PerThreadDefault() noexcept : before_(log_thread().per_thread_default) {
    log_thread().per_thread_default = true;
  }
  ~PerThreadDefault() { log_thread().per_thread_default = before_; }
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;

 private:
  bool before_;
};

/// Writes operations into the folder of `warpstack trace`:
///
///     operations       rows of LogRow, in the order of the calls of all processes
///     operation-names  texts, each behind its process, its number and its length (64 bits each)
///
/// Processes that a traced program starts share the files: each row is appended by one call of the
/// operating system. Without a folder nothing is written.
class OperationLog {
 public:
  /// `measures` says whether the host's time is measured or 0.
  OperationLog(const std::string& folder, bool measures);
  ~OperationLog();
  OperationLog(const OperationLog&) = delete;
  OperationLog& operator=(const OperationLog&) = delete;

  [[nodiscard]] bool is_on() const { return rows_ >= 0; }
  /// Appends an operation of the calling thread's call. Returns its number in this process, or -1
  /// where none is written.
  std::int64_t add(const Operation& operation);
  /// Appends what the work of a row took, which the machine has done itself.
  void add_work(const RowOfProcess& row, std::chrono::nanoseconds work);
  /// The number of a launch of a graph.
  std::int64_t next_graph() { return next_graph_++; }

 private:
  [[nodiscard]] std::uint64_t name(const std::string& text);
  void begin_process();

  int rows_ = -1;  ///< file descriptors
  int names_ = -1;
  bool measures_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> known_;
  int pid_ = 0;
  std::int64_t process_ = 0;
  std::int64_t next_row_ = 0;
  std::int32_t connections_ = -1;  ///< not known yet
  std::int64_t next_graph_ = 0;
  std::int64_t next_thread_ = 0;
};

/// While it exists, a host function of a stream runs: what it takes belongs to the last row of the
/// thread. The thread is outside of calls meanwhile, and waits for others that are in calls do not
/// count, as between calls.
class HostFunctionTime {
 public:
  explicit HostFunctionTime(OperationLog& log) noexcept;
  ~HostFunctionTime();
  HostFunctionTime(const HostFunctionTime&) = delete;
  HostFunctionTime& operator=(const HostFunctionTime&) = delete;

 private:
  OperationLog& log_;
  RowOfProcess row_;
  int pid_;
  bool is_outermost_;
  CallClock::Reading begin_;
  std::chrono::nanoseconds computed_{};
};

/// A row of the file; python/warpstack/cuda/operation_log.py reads it.
struct LogRow {
  std::uint8_t kind = 0;  ///< an OperationKind, `edge`, `begin` or `work`
  std::uint8_t direction = 0;
  std::uint8_t blocking = 0;
  std::uint8_t pinned = 0;
  std::uint8_t asynchronous = 0;
  std::uint8_t programmatic = 0;
  std::uint8_t arithmetic = 0;
  std::uint8_t tensor_cores = 0;
  std::int32_t priority = 0;
  std::int32_t connections = 0;  ///< that the process asks for; 0: it does not
  std::int64_t process = 0;
  std::int64_t number = 0;  ///< within the process; of edges and `work`: of the row concerned
  std::int64_t thread = 0;
  std::int64_t stream = -1;
  std::int64_t event = -1;
  std::int64_t graph = -1;
  std::uint64_t bytes = 0;  ///< of an edge: the row that it waits for; of `work`: nanoseconds
  std::uint64_t launch = 0;
  std::uint64_t parent = 0;  ///< a launch; of `begin`: the process of the row in `bytes`
  std::uint64_t host_ns = 0;
  std::uint64_t name = 0;
  std::uint64_t api = 0;
  std::uint64_t flops = 0;

  static constexpr std::uint8_t edge = 255;   ///< the other row ends before the row starts
  static constexpr std::uint8_t begin = 254;  ///< it returns before the row's thread begins
  static constexpr std::uint8_t work = 253;   ///< what a row took that was written before
};
static_assert(sizeof(LogRow) == 120);

}  // namespace warpstack::cudart
