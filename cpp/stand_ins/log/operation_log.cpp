#include "stand_ins/log/operation_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace warpstack::cudart {
namespace {

int open_for_rows(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

LogThread& log_thread() {
  static thread_local LogThread thread;
  return thread;
}

ApiCall::ApiCall(const char* function) noexcept {
  LogThread& thread = log_thread();
  if (thread.depth++ > 0) return;
  if (thread.has_returned) {
    const auto passed = std::chrono::steady_clock::now() - thread.returned;
    thread.host_ns += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count());
  }
  thread.call = {};
  thread.call.function = function;
}

ApiCall::~ApiCall() {
  LogThread& thread = log_thread();
  if (--thread.depth > 0) return;
  thread.has_returned = true;
  thread.returned = std::chrono::steady_clock::now();
}

OperationLog::OperationLog(const std::string& folder, bool measures) : measures_(measures) {
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
  if (thread.number < 0 || thread.process != process_) {
    thread.number = next_thread_++;
    thread.process = process_;
  }
  LogRow row;
  row.kind = static_cast<std::uint8_t>(operation.kind);
  row.direction = static_cast<std::uint8_t>(operation.direction);
  row.blocking = operation.stream.blocking ? 1 : 0;
  row.pinned = operation.pinned ? 1 : 0;
  row.asynchronous = operation.asynchronous ? 1 : 0;
  row.process = process_;
  row.priority = operation.stream.priority;
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
  if (const auto* after = std::exchange(thread.call.after, nullptr)) {
    for (const std::int64_t before : *after) {
      LogRow edge;
      edge.kind = LogRow::edge;
      edge.process = process_;
      edge.number = row.number;
      edge.bytes = static_cast<std::uint64_t>(before);
      rows.push_back(edge);
    }
  }
  const auto bytes = rows.size() * sizeof(LogRow);
  [[maybe_unused]] const ssize_t written = ::write(rows_, rows.data(), bytes);
  if (thread.call.first_row < 0) thread.call.first_row = row.number;
  return row.number;
}

}  // namespace warpstack::cudart
