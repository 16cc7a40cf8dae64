// Runs a fuzz target without libFuzzer: over the given files, then over random changes of them.
//
//   fuzz_target [--seconds N] [--seed N] FILE...

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

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
  std::uint64_t seed = 1;
  std::vector<Bytes> corpus;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::ifstream file(argv[i], std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      LLVMFuzzerTestOneInput(corpus.back().data(), corpus.back().size());
    }
  }
  if (corpus.empty()) corpus.emplace_back();
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t runs = 0;
  while (std::chrono::steady_clock::now() < end) {
    const Bytes input = changed(corpus, random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++runs;
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(runs));
  return 0;
}
