#include "stand_ins/state/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "common/demangle.h"
#include "common/error.h"
#include "trace/columns/trace_file.h"

namespace warpstack::cudart {
namespace {

/// Bytes of unread traces from which on the program waits for their reader.
constexpr std::uint64_t max_waiting_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t default_budget = std::uint64_t{1} << 31;
constexpr const char* folder_variable = "WARPSTACK_CUDART_SPOOL";
constexpr std::string_view trace_ending = ".wstrace";

/// An open file with an exclusive lock; both are released at the end.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0 || ::flock(file_, LOCK_EX) != 0) {
      const int reason = errno;
      if (file_ >= 0) ::close(file_);
      throw InputError(path + ": cannot be opened: " + std::strerror(reason));
    }
  }
  ~LockedFile() { ::close(file_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  [[nodiscard]] int number() const { return file_; }

 private:
  int file_;
};

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::optional<std::uint64_t> environment_number(const char* name) {
  const std::string text = environment(name);
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError(std::string(name) + " = " + text + ": expected a number");
  }
  return value;
}

bool say(std::string_view kind, std::string_view message) {
  // Repeated lines are printed once, unless there are very many different ones.
  constexpr std::size_t most = 10'000;
  static std::mutex* const mutex = new std::mutex;
  static auto* const said = new std::unordered_set<std::string>;
  {
    const std::scoped_lock lock(*mutex);
    std::string both = std::string(kind) + ' ' + std::string(message);
    if (said->contains(both)) return false;
    if (said->size() < most) said->insert(std::move(both));
  }
  std::string line = "warpstack: ";
  line.append(kind).append(": ").append(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  std::fflush(stdout);  // keeps the order with the program's output
  std::fwrite(line.data(), 1, line.size(), stderr);
  return true;
}

struct Spool::Pattern {
  regex_t compiled{};
  ~Pattern() { ::regfree(&compiled); }
};

Spool::Spool() : folder_(environment(folder_variable)) {
  if (!folder_.empty()) LockedFile(file("attached"));
  const std::string pattern = environment("WARPSTACK_CUDART_KERNEL");
  if (!pattern.empty()) {
    regex_t compiled;
    if (const int error = ::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB)) {
      std::array<char, 128> reason{};
      ::regerror(error, &compiled, reason.data(), reason.size());
      throw InputError("kernel pattern " + pattern + ": " + reason.data() +
                       "; expected a POSIX extended regular expression, as for grep -E");
    }
    pattern_ = std::make_unique<Pattern>();
    pattern_->compiled = compiled;
  }
  limit_ = environment_number("WARPSTACK_CUDART_LIMIT");
  if (folder_.empty()) return;
  storage_ = std::make_shared<trace::StorageBudget>(
      environment_number("WARPSTACK_CUDART_BUDGET").value_or(default_budget), folder_);
}

Spool::~Spool() = default;

std::string Spool::file(std::string_view name) const { return folder_ + "/" + std::string(name); }

bool Spool::wanted(const std::string& kernel) const {
  if (pattern_ == nullptr) return true;
  const auto matches = [this](const std::string& name) {
    return ::regexec(&pattern_->compiled, name.c_str(), 0, nullptr, 0) == 0;
  };
  return matches(demangled(kernel)) || matches(kernel);
}

Spool::Ticket Spool::next_launch(const std::string& kernel) {
  if (folder_.empty()) return {++local_launches_, false};
  const bool is_wanted = wanted(kernel);
  const LockedFile state(file("state"));
  std::array<std::uint64_t, 2> counts{};
  if (::pread(state.number(), counts.data(), sizeof counts, 0) < 0) {
    throw InputError(file("state") + ": cannot be read: " + std::strerror(errno));
  }
  ++counts[0];
  const Ticket ticket{counts[0], is_wanted && (!limit_ || counts[1] < *limit_)};
  if (ticket.traced) ++counts[1];
  if (::pwrite(state.number(), counts.data(), sizeof counts, 0) !=
      static_cast<ssize_t>(sizeof counts)) {
    throw InputError(file("state") + ": cannot be written: " + std::strerror(errno));
  }
  return ticket;
}

void Spool::show_progress(std::uint64_t launch, const std::string& kernel, std::uint64_t done,
                          std::uint64_t blocks) {
  if (folder_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  if (launch != shown_launch_) {
    shown_launch_ = launch;
    next_look_ = now + std::chrono::seconds(1);
  }
  if (now < next_look_) return;
  next_look_ = now + std::chrono::milliseconds(500);
  is_shown_ = true;
  std::ofstream(file("progress.part")) << launch << ' ' << done << ' ' << blocks << ' ' << kernel;
  std::rename(file("progress.part").c_str(), file("progress").c_str());
}

void Spool::end_progress() {
  if (std::exchange(is_shown_, false)) ::unlink(file("progress").c_str());
}

bool Spool::is_enough() const {
  if (folder_.empty() || !limit_ || environment("WARPSTACK_CUDART_STOP").empty()) return false;
  const LockedFile state(file("state"));
  std::array<std::uint64_t, 2> counts{};
  return ::pread(state.number(), counts.data(), sizeof counts, 0) ==
             static_cast<ssize_t>(sizeof counts) &&
         counts[1] >= *limit_;
}

void Spool::wait_for_reader() const {
  while (DIR* folder = ::opendir(folder_.c_str())) {
    std::uint64_t waiting = 0;
    while (const dirent* entry = ::readdir(folder)) {
      struct stat status{};
      if (std::string_view(entry->d_name).ends_with(trace_ending) &&
          ::stat(file(entry->d_name).c_str(), &status) == 0) {
        waiting += static_cast<std::uint64_t>(status.st_size);
      }
    }
    ::closedir(folder);
    if (waiting <= max_waiting_bytes) return;
    if (!has_reader()) return;
    ::usleep(20'000);
  }
}

bool Spool::has_reader() const {
  // The reader removes the folder when it ends, unless it is killed.
  const auto reader =
      static_cast<pid_t>(environment_number("WARPSTACK_CUDART_READER").value_or(std::uint64_t{0}));
  if (reader > 0 && ::kill(reader, 0) != 0 && errno == ESRCH) return false;
  return ::access(folder_.c_str(), F_OK) == 0;
}

std::string Spool::listing(const FatBinaryImage& image, const std::string& name) {
  if (folder_.empty()) {
    throw InputError("machine code runs under warpstack trace only");
  }
  static std::uint64_t number = 0;  // of this process; the runtime is locked
  const std::string base =
      file("module-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
  const std::string question = base + (image.kind == FatBinaryEntry::Kind::ptx ? ".ptx" : ".cubin");
  std::ofstream(base + ".part", std::ios::binary) << name << '\n' << image.bytes;
  if (std::rename((base + ".part").c_str(), question.c_str()) != 0) {
    throw InputError(question + ": cannot be written: " + std::strerror(errno));
  }
  const auto answer = [&base](const char* ending) -> std::optional<std::string> {
    const std::string path = base + ending;
    if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    ::unlink(path.c_str());
    return text.str();
  };
  for (;;) {
    if (const auto problem = answer(".problem")) throw InputError(*problem);
    if (auto text = answer(".sass")) return *std::move(text);
    if (!has_reader()) throw InputError("warpstack trace has ended before its program");
    ::usleep(5'000);
  }
}

void Spool::write(const trace::KernelTrace& trace) {
  wait_for_reader();
  const std::string name = "kernel-" + std::to_string(trace.header().launch_id);
  write_trace_file(trace, file(name + std::string(trace_ending)));
}

void report(std::string_view message) {
  if (!say("error", message)) return;
  const std::string folder = environment(folder_variable);
  if (folder.empty()) return;
  const int errors =
      ::open((folder + "/errors").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (errors < 0) return;
  std::string line(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  [[maybe_unused]] const ssize_t written = ::write(errors, line.data(), line.size());
  ::close(errors);
}

}  // namespace warpstack::cudart
