// Marsaglia's XORWOW (Xorshift RNGs, Journal of Statistical Software 8, 2003), with the seeds of
// curand_kernel.h. Lane i of 4096 starts i * 2^67 draws into the sequence.

#include <array>
#include <bit>
#include <tuple>

#include "stand_ins/curand/interleaved.h"

namespace warpstack::curand {
namespace {

constexpr std::size_t xorwow_width = 4096;
constexpr int xorwow_spacing = 67;
constexpr std::uint32_t weyl_step = 362437;

using Words = std::array<std::uint32_t, 5>;
/// A linear map of the five words over GF(2): the image of each of their bits.
using BitMatrix = std::array<Words, 160>;

Words product(const BitMatrix& matrix, const Words& words) {
  Words result{};
  for (std::size_t word = 0; word < 5; ++word) {
    for (std::uint32_t rest = words[word]; rest != 0; rest &= rest - 1) {
      const Words& image = matrix[word * 32 + static_cast<std::size_t>(std::countr_zero(rest))];
      for (std::size_t i = 0; i < 5; ++i) result[i] ^= image[i];
    }
  }
  return result;
}

BitMatrix squared(const BitMatrix& matrix) {
  BitMatrix result;
  for (std::size_t bit = 0; bit < matrix.size(); ++bit) result[bit] = product(matrix, matrix[bit]);
  return result;
}

void step(Words& v) {
  const std::uint32_t t = v[0] ^ v[0] >> 2;
  v = {v[1], v[2], v[3], v[4], (v[4] ^ v[4] << 4) ^ (t ^ t << 1)};
}

/// The maps of 2^0, 2^1, ... 2^67 steps.
const std::array<BitMatrix, xorwow_spacing + 1>& powers() {
  static const auto* const all = [] {
    auto* result = new std::array<BitMatrix, xorwow_spacing + 1>;
    for (std::size_t bit = 0; bit < 160; ++bit) {
      Words words{};
      words[bit / 32] = 1U << bit % 32;
      step(words);
      (*result)[0][bit] = words;
    }
    for (std::size_t i = 1; i <= xorwow_spacing; ++i) (*result)[i] = squared((*result)[i - 1]);
    return result;
  }();
  return *all;
}

struct XorwowLane {
  Words v{};
  std::uint32_t d = 0;

  explicit XorwowLane(std::uint64_t seed) {
    const std::uint32_t t0 = 1099087573U * (static_cast<std::uint32_t>(seed) ^ 0xaad26b49U);
    const std::uint32_t t1 = 2591861531U * (static_cast<std::uint32_t>(seed >> 32) ^ 0xf7dcefddU);
    d = 6615241U + t1 + t0;
    v = {123456789U + t0, 362436069U ^ t0, 521288629U + t1, 88675123U ^ t1, 5783321U + t0};
  }

  void skip(std::uint64_t steps) {
    d += weyl_step * static_cast<std::uint32_t>(steps);
    for (std::size_t i = 0; steps != 0; ++i, steps >>= 1) {
      if ((steps & 1) != 0) v = product(powers()[i], v);
    }
  }

  std::uint32_t next_bits() {
    step(v);
    d += weyl_step;
    return v[4] + d;
  }
  template <typename T>
  T next_uniform() {
    const std::uint32_t x = next_bits();
    if constexpr (std::is_same_v<T, float>) {
      return uniform_of(x);
    } else {
      return middle53(bits53(x, next_bits()));
    }
  }
  template <typename T>
  std::pair<T, T> next_normal() {
    if constexpr (std::is_same_v<T, float>) {
      const std::uint32_t x = next_bits();
      return box_muller(x, next_bits());
    } else {
      std::array<std::uint32_t, 4> draws{};
      for (std::uint32_t& draw : draws) draw = next_bits();
      return box_muller(draws.data());
    }
  }
};

template <typename MakeLane>
std::unique_ptr<Generator> interleaved(const Settings& settings, MakeLane make) {
  return std::make_unique<Interleaved<XorwowLane, MakeLane>>(xorwow_width, settings.offset,
                                                             std::move(make));
}

}  // namespace

std::unique_ptr<Generator> make_xorwow(const Settings& settings) {
  if (settings.ordering == Ordering::pseudo_seeded) {
    // The guide says that each lane has a seed of the program's and its number, but not which.
    return interleaved(settings, [seed = settings.seed](std::size_t index, std::uint64_t steps) {
      XorwowLane lane(seed + index * 0x9e3779b97f4a7c15U);
      lane.skip(steps);
      return lane;
    });
  }
  return interleaved(
      settings, [start = XorwowLane(settings.seed)](std::size_t, std::uint64_t steps) mutable {
        XorwowLane lane = start;
        lane.skip(steps);
        start.v = product(powers()[xorwow_spacing], start.v);  // 2^67 steps leave d as it is
        return lane;
      });
}

}  // namespace warpstack::curand
