// Matsumoto and Nishimura's MT19937 (Mersenne twister, ACM TOMACS 8, 1998). Generator i of 8192
// starts i * 2^2048 draws into the sequence and gives eight results in turn. Of the 624 draws that
// a generator makes at once, the first turn takes eight that lie apart; the runs of 56 between them
// follow, one after the other, in seven turns each.

#include <array>
#include <bit>

#include "stand_ins/curand/buffered.h"

namespace warpstack::curand {
namespace {

constexpr std::size_t twister_words = 624, twister_middle = 397;
constexpr std::size_t twister_width = 8192, twister_turn = 8;
constexpr std::size_t turns_of_run = 7, turns_of_state = twister_words / twister_turn;
constexpr std::array<std::size_t, twister_turn> first_turn{0, 113, 170, 283, 340, 397, 510, 567};
constexpr std::array<std::size_t, 11> runs{1, 57, 114, 171, 227, 284, 341, 398, 454, 511, 568};
/// x^(2^2048) modulo the characteristic polynomial of the sequence: coefficients, lowest first.
constexpr std::array<std::uint64_t, 312> jump_polynomial{
#include "stand_ins/curand/mt19937_jump.inc"
};
constexpr std::size_t jump_degree = 19936;

using TwisterState = std::array<std::uint32_t, twister_words>;

std::uint32_t twist(std::uint32_t first, std::uint32_t second, std::uint32_t middle) {
  const std::uint32_t y = (first & 0x80000000U) | (second & 0x7fffffffU);
  return middle ^ y >> 1 ^ ((y & 1) != 0 ? 0x9908b0dfU : 0);
}

void advance(TwisterState& s) {
  for (std::size_t i = 0; i < twister_words; ++i) {
    s[i] = twist(s[i], s[(i + 1) % twister_words], s[(i + twister_middle) % twister_words]);
  }
}

TwisterState seeded(std::uint32_t seed) {
  TwisterState s{seed};
  for (std::uint32_t i = 1; i < twister_words; ++i) {
    s[i] = 1812433253U * (s[i - 1] ^ s[i - 1] >> 30) + i;
  }
  return s;
}

/// The state 2^2048 draws later: the sum of the states as many draws later as the powers of the
/// polynomial. Those whose coefficients are alike in eight powers on end are summed first, and then
/// shifted by these powers.
TwisterState jumped(const TwisterState& start) {
  constexpr std::size_t group = 8, patterns = 1U << group, wide = twister_words + group;
  std::vector<std::uint32_t> sequence(start.begin(), start.end());
  sequence.resize(jump_degree + wide + group);
  for (std::size_t i = 0; i + twister_words < sequence.size(); ++i) {
    sequence[i + twister_words] = twist(sequence[i], sequence[i + 1], sequence[i + twister_middle]);
  }
  std::vector<std::uint32_t> sums(patterns * wide);
  for (std::size_t power = 0; power <= jump_degree; power += group) {
    const std::size_t pattern = jump_polynomial[power / 64] >> power % 64 & (patterns - 1);
    if (pattern == 0) continue;
    std::uint32_t* sum = &sums[pattern * wide];
    for (std::size_t i = 0; i < wide; ++i) sum[i] ^= sequence[power + i];
  }
  TwisterState result{};
  for (std::size_t pattern = 1; pattern < patterns; ++pattern) {
    for (std::size_t rest = pattern; rest != 0; rest &= rest - 1) {
      const std::uint32_t* sum =
          &sums[pattern * wide] + static_cast<std::size_t>(std::countr_zero(rest));
      for (std::size_t i = 0; i < twister_words; ++i) result[i] ^= sum[i];
    }
  }
  return result;
}

std::uint32_t tempered(std::uint32_t y) {
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680U;
  y ^= y << 15 & 0xefc60000U;
  return y ^ y >> 18;
}

class Twister : public Buffered {
 public:
  explicit Twister(std::uint32_t seed) : start_(seeded(seed)) {}

  void uniform(float* out, std::size_t count) override {
    each(out, count, [](std::uint32_t x) { return static_cast<float>(middle_of(x)); });
  }
  void uniform(double* out, std::size_t count) override { each(out, count, middle_of); }
  void normal(float* out, std::size_t count) override {
    each(out, count, [](std::uint32_t x) { return normal_of(x); });
  }
  void normal(double* out, std::size_t count) override {
    each(out, count, [](std::uint32_t x) { return normal_double_of(x); });
  }

 private:
  std::span<const std::uint32_t> more() override {
    if (states_.size() <= current_) {
      if (current_ != 0) start_ = jumped(start_);
      states_.push_back(start_);
    }
    TwisterState& state = states_[current_];
    if (turn_ == 0) advance(state);
    for (std::size_t lane = 0; lane < twister_turn; ++lane) {
      const std::size_t place = turn_ == 0 ? first_turn[lane]
                                           : runs[(turn_ - 1) / turns_of_run] +
                                                 (turn_ - 1) % turns_of_run + turns_of_run * lane;
      results_[lane] = tempered(state[place]);
    }
    if (++current_ == twister_width) {
      current_ = 0;
      if (++turn_ == turns_of_state) turn_ = 0;
    }
    return results_;
  }

  TwisterState start_;  ///< of the generator that was made last
  std::vector<TwisterState> states_;
  std::size_t current_ = 0;
  std::size_t turn_ = 0;
  std::array<std::uint32_t, twister_turn> results_{};
};

}  // namespace

std::unique_ptr<Generator> make_mt19937(const Settings& settings) {
  return std::make_unique<Twister>(static_cast<std::uint32_t>(settings.seed));
}

}  // namespace warpstack::curand
