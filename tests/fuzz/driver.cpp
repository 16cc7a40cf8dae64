// Runs a fuzz target without libFuzzer: over the given files, then over random changes of them.
//
//   fuzz_target [--seconds N] [--seed N] [--limit N] [--save PATH] FILE...
//
//   --seconds N  for how long changed inputs are tried (10); 0: the files alone
//   --seed N     of the changes; a fresh one by default. It is printed first, and the same seed and
//                files give the same inputs in the same order
//   --limit N    seconds that one input may take (20)
//   --save PATH  where the input goes at which the target crashes or exceeds the limit
//                (fuzz-failure-SEED)
//
// Exit status: 0 when every input passed, 3 when one took too long, and that of the target or of
// the signal when it crashed.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Exit status when an input takes too long.
constexpr int too_slow = 3;

// What a signal handler needs; it may call nothing that is not safe there.
const Bytes* running = nullptr;
std::string save_path;
std::string slow_message, crash_message;

void say(const std::string& text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void save_running() {
  if (running == nullptr) return;
  const int file = open(save_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  for (std::size_t at = 0; at < running->size();) {
    const auto written = write(file, running->data() + at, running->size() - at);
    if (written <= 0) break;
    at += static_cast<std::size_t>(written);
  }
  close(file);
}

extern "C" void on_alarm(int) {
  save_running();
  say(slow_message);
  _exit(too_slow);
}

/// Of aborts and of processor faults; the handler is gone when the signal comes again.
extern "C" void on_crash(int signal) {
  save_running();
  say(crash_message);
  raise(signal);
}

/// Called by the sanitizers, where the target has them, before they end the program.
extern "C" void on_sanitizer_report() {
  save_running();
  say(crash_message);
}
/// Called by the address sanitizer before it writes its report, which can take long.
extern "C" void __asan_on_error() { alarm(0); }
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    // The sanitizers have handlers of their own for some of them.
    struct sigaction old = {};
    sigaction(signal, nullptr, &old);
    if (old.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(on_sanitizer_report);
  }
}

void try_input(const Bytes& input, unsigned limit) {
  running = &input;
  alarm(limit);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  alarm(0);
  running = nullptr;
}

/// Cuts, repeats, overwrites or splices parts of the input, a few times.
Bytes changed(const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  const auto below = [&random](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  Bytes bytes = corpus[below(corpus.size())];
  for (std::size_t n = 1 + below(4); n > 0; --n) {
    const std::size_t at = below(bytes.size() + 1);
    const auto position = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t length = below(bytes.size() - at + 1);
    const auto end = position + static_cast<std::ptrdiff_t>(
                                    below(2) ? length : std::min<std::size_t>(length, 8));
    switch (below(6)) {
      case 0:
        bytes.erase(position, end);
        break;
      case 1: {
        const Bytes part(position, end);
        bytes.insert(position, part.begin(), part.end());
        break;
      }
      case 2:
        for (auto byte = position; byte != end; ++byte) *byte = static_cast<std::uint8_t>(random());
        break;
      case 3: {  // a number becomes another one
        const std::string number = std::to_string(random() >> below(64));
        bytes.insert(position, number.begin(), number.end());
        break;
      }
      case 4: {
        const Bytes& other = corpus[below(corpus.size())];
        const std::size_t from = below(other.size() + 1);
        bytes.insert(position, other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        break;
      }
      default:
        if (at < bytes.size()) bytes[at] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
    }
    if (bytes.size() > 1 << 20) bytes.resize(1 << 20);
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 10;
  std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  unsigned limit = 20;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value) {
      seconds = std::atof(argv[++i]);
    } else if (word == "--seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--limit" && has_value) {
      limit = static_cast<unsigned>(std::max(1l, std::strtol(argv[++i], nullptr, 10)));
    } else if (word == "--save" && has_value) {
      save_path = argv[++i];
    } else if (word.starts_with("--")) {
      std::fprintf(stderr, "%s: unknown option, or its value is missing\n", argv[i]);
      return 2;
    } else {
      files.push_back(word);
    }
  }
  if (save_path.empty()) save_path = "fuzz-failure-" + std::to_string(seed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  slow_message =
      "an input took longer than " + std::to_string(limit) + " s; it is in " + save_path + "\n";
  crash_message = "the input is in " + save_path + "\n";
  catch_signals();
  std::vector<Bytes> corpus;
  for (const std::string& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 2;
    }
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    try_input(corpus.back(), limit);
  }
  if (corpus.empty()) corpus.emplace_back();
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t runs = 0;
  while (std::chrono::steady_clock::now() < end) {
    try_input(changed(corpus, random), limit);
    ++runs;
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(runs));
  return 0;
}
