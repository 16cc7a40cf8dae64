#include "stand_ins/curand/direction_vectors.h"

#include <bit>
#include <memory>
#include <stdexcept>

#include "stand_ins/curand/generator.h"

/// data/libraries/curand/joe_kuo.txt without its notice.
extern "C" const char warpstack_joe_kuo[];

namespace warpstack::curand {
namespace {

/// Numbers of few bits, the first of each the highest, in base 64.
class BitReader {
 public:
  explicit BitReader(const char* text) : next_(text) {}

  std::uint64_t read(int bits) {
    std::uint64_t result = 0;
    for (; bits != 0; --bits) {
      if (left_ == 0) {
        digit_ = next_digit();
        left_ = 6;
      }
      result = result << 1 | (digit_ >> --left_ & 1);
    }
    return result;
  }

 private:
  std::uint32_t next_digit() {
    while (*next_ == '\n') ++next_;
    const char c = *next_++;
    if (c >= 'A' && c <= 'Z') return static_cast<std::uint32_t>(c - 'A');
    if (c >= 'a' && c <= 'z') return static_cast<std::uint32_t>(c - 'a' + 26);
    if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0' + 52);
    if (c == '+') return 62;
    if (c == '/') return 63;
    throw std::logic_error("the table of direction numbers is damaged");
  }

  const char* next_;
  std::uint32_t digit_ = 0;
  int left_ = 0;
};

/// The number of primitive polynomials of each degree from 1 to 18, of which the table has one for
/// each dimension but the first, in this order.
constexpr std::array<std::size_t, 18> polynomials{1,  1,   2,   2,   6,   6,    18,   16,   48,
                                                  60, 176, 144, 630, 756, 1800, 2048, 7710, 7776};

template <typename Word>
Directions<Word> read_directions() {
  constexpr int bits = sizeof(Word) * 8;
  Directions<Word> result(1);
  for (int i = 0; i < bits; ++i) {
    result[0][static_cast<std::size_t>(i)] = Word{1} << (bits - 1 - i);
  }
  BitReader reader(warpstack_joe_kuo);
  for (int degree = 1; degree <= static_cast<int>(polynomials.size()); ++degree) {
    for (std::size_t n = polynomials[static_cast<std::size_t>(degree) - 1];
         n != 0 && result.size() < most_dimensions; --n) {
      const std::uint64_t inner = reader.read(degree - 1);  // coefficients between the outermost
      auto& v = result.emplace_back();
      for (int i = 0; i < bits; ++i) {
        auto& own = v[static_cast<std::size_t>(i)];
        if (i < degree) {
          own = static_cast<Word>(reader.read(i) * 2 + 1) << (bits - 1 - i);
          continue;
        }
        const Word last = v[static_cast<std::size_t>(i - degree)];
        own = last ^ last >> degree;
        for (int k = 1; k < degree; ++k) {
          if ((inner >> (degree - 1 - k) & 1) != 0) own ^= v[static_cast<std::size_t>(i - k)];
        }
      }
    }
  }
  return result;
}

/// Random words that are the same in every run.
class Scrambler {
 public:
  explicit Scrambler(std::uint64_t seed) {
    Settings settings;
    settings.kind = Kind::philox;
    settings.seed = seed;
    source_ = make_generator(settings);
  }
  std::uint64_t next() {
    std::array<std::uint32_t, 2> draws{};
    source_->bits(draws.data(), draws.size());
    return static_cast<std::uint64_t>(draws[0]) << 32 | draws[1];
  }

 private:
  std::unique_ptr<Generator> source_;
};

constexpr std::uint64_t matrix_seed = 1, constant_seed = 2;

}  // namespace

template <typename Word>
const Directions<Word>& directions() {
  static const auto* const all = new Directions<Word>(read_directions<Word>());
  return *all;
}

template <typename Word>
const Directions<Word>& scrambled_directions() {
  static const auto* const all = [] {
    auto* result = new Directions<Word>(directions<Word>());
    constexpr int bits = sizeof(Word) * 8;
    Scrambler random(matrix_seed);
    for (auto& vectors : *result) {
      // Row r, from the highest bit down, has a one at r and anything at higher bits.
      std::array<Word, sizeof(Word) * 8> rows{};
      for (int r = 0; r < bits; ++r) {
        const Word diagonal = Word{1} << (bits - 1 - r);
        const Word higher = static_cast<Word>(~(diagonal | (diagonal - 1)));
        rows[static_cast<std::size_t>(r)] =
            diagonal | (static_cast<Word>(random.next() >> (64 - bits)) & higher);
      }
      for (Word& vector : vectors) {
        Word image = 0;
        for (int r = 0; r < bits; ++r) {
          const int parity = std::popcount(rows[static_cast<std::size_t>(r)] & vector) & 1;
          image |= static_cast<Word>(parity) << (bits - 1 - r);
        }
        vector = image;
      }
    }
    return result;
  }();
  return *all;
}

template <typename Word>
const std::vector<Word>& scramble_constants() {
  static const auto* const all = [] {
    auto* result = new std::vector<Word>(most_dimensions);
    Scrambler random(constant_seed);
    for (Word& word : *result) word = static_cast<Word>(random.next() >> (64 - sizeof(Word) * 8));
    return result;
  }();
  return *all;
}

template const Directions<std::uint32_t>& directions();
template const Directions<std::uint64_t>& directions();
template const Directions<std::uint32_t>& scrambled_directions();
template const Directions<std::uint64_t>& scrambled_directions();
template const std::vector<std::uint32_t>& scramble_constants();
template const std::vector<std::uint64_t>& scramble_constants();

}  // namespace warpstack::curand
