// Saito's MTGP32 of period 2^11213 - 1 (A variant of Mersenne twister suitable for graphic
// processors, arXiv:1005.4973), with 192 sets of parameters, or 64 in the legacy ordering. Each set
// gives 256 results in turn.

#include <array>

#include "stand_ins/curand/buffered.h"

namespace warpstack::curand {
namespace {

constexpr std::size_t mtgp_words = 351, mtgp_turn = 256;
constexpr std::size_t mtgp_width = 192, mtgp_legacy_width = 64;
/// The bits of the oldest word that the state has.
constexpr std::uint32_t mtgp_mask = 0xfff80000U;

/// `recursion` and `tempering` are the maps of four bits: the images of bits 0 to 3.
struct MtgpParameters {
  std::uint32_t position, shift1, shift2;
  std::array<std::uint32_t, 4> recursion, tempering;
};
constexpr std::array<MtgpParameters, mtgp_width> mtgp_parameters{{
#include "stand_ins/curand/mtgp32_parameters.inc"
}};

std::uint32_t image(const std::array<std::uint32_t, 4>& map, std::uint32_t bits) {
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < 4; ++i) result ^= map[i] & (0U - (bits >> i & 1));
  return result;
}

class Mtgp : public Buffered {
 public:
  Mtgp(std::size_t width, std::uint64_t seed)
      : width_(width), seed_(static_cast<std::uint32_t>(seed ^ seed >> 32)) {}

  void uniform(float* out, std::size_t count) override { each(out, count, uniform_of); }
  void uniform(double* out, std::size_t count) override { each(out, count, upper_of); }
  void normal(float* out, std::size_t count) override {
    each(out, count, [](std::uint32_t x) { return normal_of(x); });
  }
  void normal(double* out, std::size_t count) override {
    each(out, count, [](std::uint32_t x) { return static_cast<double>(normal_of(x)); });
  }

 private:
  /// The oldest word first, with room for a turn's.
  using State = std::array<std::uint32_t, mtgp_words + mtgp_turn>;

  [[nodiscard]] State start(std::size_t index) const {
    const MtgpParameters& own = mtgp_parameters[index];
    const std::uint32_t hidden = own.recursion[2] ^ own.recursion[3] << 16;
    std::uint32_t fill = hidden + (hidden >> 16);
    fill += fill >> 8;
    State state{};
    std::fill_n(state.begin(), mtgp_words, (fill & 0xff) * 0x01010101U);
    state[0] = seed_ + static_cast<std::uint32_t>(index) + 1;
    state[1] = hidden;
    for (std::uint32_t i = 1; i < mtgp_words; ++i) {
      state[i] ^= 1812433253U * (state[i - 1] ^ state[i - 1] >> 30) + i;
    }
    return state;
  }

  std::span<const std::uint32_t> more() override {
    if (states_.size() <= current_) states_.push_back(start(current_));
    State& s = states_[current_];
    const MtgpParameters& own = mtgp_parameters[current_];
    for (std::size_t i = 0; i < mtgp_turn; ++i) {
      std::uint32_t x = (s[i] & mtgp_mask) ^ s[i + 1];
      x ^= x << own.shift1;
      const std::uint32_t y = x ^ s[i + own.position] >> own.shift2;
      s[i + mtgp_words] = y ^ image(own.recursion, y);
      std::uint32_t t = s[i + own.position - 1];
      t ^= t >> 16;
      t ^= t >> 8;
      turn_[i] = s[i + mtgp_words] ^ image(own.tempering, t);
    }
    std::copy(s.begin() + mtgp_turn, s.end(), s.begin());
    if (++current_ == width_) current_ = 0;
    return turn_;
  }

  std::size_t width_;
  std::uint32_t seed_;
  std::size_t current_ = 0;
  std::vector<State> states_;
  std::array<std::uint32_t, mtgp_turn> turn_{};
};

}  // namespace

std::unique_ptr<Generator> make_mtgp32(const Settings& settings) {
  const bool legacy = settings.ordering == Ordering::pseudo_legacy;
  return std::make_unique<Mtgp>(legacy ? mtgp_legacy_width : mtgp_width, settings.seed);
}

}  // namespace warpstack::curand
