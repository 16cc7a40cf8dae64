// L'Ecuyer's MRG32k3a (Good parameters and implementations for combined multiple recursive random
// number generators, Operations Research 47, 1999), with the seeds of curand_kernel.h. Lane i of
// 81,920 (4096 in the legacy ordering) starts i * 2^76 draws into the sequence.

#include <array>
#include <tuple>

#include "stand_ins/curand/interleaved.h"

namespace warpstack::curand {
namespace {

constexpr std::size_t mrg_width = 81920, mrg_legacy_width = 4096;
constexpr int mrg_spacing = 76;
constexpr std::uint64_t m1 = 4294967087U, m2 = 4294944443U;
constexpr std::uint64_t a12 = 1403580, a13 = m1 - 810728, a21 = 527612, a23 = m2 - 1370589;
/// The factors of curand_kernel.h: to 32 bits, and to (0, 1].
constexpr double to_bits = 1.000000048662, to_unit = 2.3283065498378288e-10;
constexpr float two_pi = 6.2831855F;

using Vector = std::array<std::uint64_t, 3>;
using Matrix = std::array<Vector, 3>;

Vector product(const Matrix& matrix, const Vector& vector, std::uint64_t modulus) {
  Vector result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      result[i] = (result[i] + matrix[i][k] * vector[k] % modulus) % modulus;
    }
  }
  return result;
}

Matrix squared(const Matrix& matrix, std::uint64_t modulus) {
  Matrix result{};
  for (std::size_t j = 0; j < 3; ++j) {
    const Vector column = product(matrix, {matrix[0][j], matrix[1][j], matrix[2][j]}, modulus);
    for (std::size_t i = 0; i < 3; ++i) result[i][j] = column[i];
  }
  return result;
}

/// The maps of both parts for 2^0, 2^1, ... 2^76 steps.
struct MrgPowers {
  std::array<Matrix, mrg_spacing + 1> first, second;
  MrgPowers() {
    first[0] = {{{0, 1, 0}, {0, 0, 1}, {a13, a12, 0}}};
    second[0] = {{{0, 1, 0}, {0, 0, 1}, {a23, 0, a21}}};
    for (std::size_t i = 1; i <= mrg_spacing; ++i) {
      first[i] = squared(first[i - 1], m1);
      second[i] = squared(second[i - 1], m2);
    }
  }
};
const MrgPowers& mrg_powers() {
  static const auto* const all = new MrgPowers;
  return *all;
}

struct MrgLane {
  Vector s1{12345, 12345, 12345}, s2{12345, 12345, 12345};

  explicit MrgLane(std::uint64_t seed) {
    if (seed == 0) return;
    const std::uint64_t x1 = static_cast<std::uint32_t>(seed) ^ 0x55555555U;
    const std::uint64_t x2 = static_cast<std::uint32_t>(seed >> 32) ^ 0xaaaaaaaaU;
    s1 = {x1 * s1[0] % m1, x2 * s1[1] % m1, x1 * s1[2] % m1};
    s2 = {x2 * s2[0] % m2, x1 * s2[1] % m2, x2 * s2[2] % m2};
  }

  void apply(std::size_t power) {
    s1 = product(mrg_powers().first[power], s1, m1);
    s2 = product(mrg_powers().second[power], s2, m2);
  }
  void skip(std::uint64_t steps) {
    for (std::size_t i = 0; steps != 0; ++i, steps >>= 1) {
      if ((steps & 1) != 0) apply(i);
    }
  }

  /// An integer from 1 to m1, as a double.
  double draw() {
    const std::uint64_t p1 = (a12 * s1[1] % m1 + a13 * s1[0] % m1) % m1;
    const std::uint64_t p2 = (a21 * s2[2] % m2 + a23 * s2[0] % m2) % m2;
    s1 = {s1[1], s1[2], p1};
    s2 = {s2[1], s2[2], p2};
    return static_cast<double>(p1 > p2 ? p1 - p2 : p1 + m1 - p2);
  }
  std::uint32_t next_bits() { return static_cast<std::uint32_t>(draw() * to_bits); }
  template <typename T>
  T next_uniform() {
    return static_cast<T>(draw() * to_unit);
  }
  template <typename T>
  std::pair<T, T> next_normal() {
    const T u = next_uniform<T>();
    const T v = next_uniform<T>();
    if constexpr (std::is_same_v<T, float>) {
      return box_muller(u, v * two_pi);
    } else {
      return box_muller(u, v * 2.0);
    }
  }
};

}  // namespace

std::unique_ptr<Generator> make_mrg32k3a(const Settings& settings) {
  auto make = [start = MrgLane(settings.seed)](std::size_t, std::uint64_t steps) mutable {
    MrgLane lane = start;
    lane.skip(steps);
    start.apply(mrg_spacing);
    return lane;
  };
  const bool legacy = settings.ordering == Ordering::pseudo_legacy;
  return std::make_unique<Interleaved<MrgLane, decltype(make)>>(
      legacy ? mrg_legacy_width : mrg_width, settings.offset, make);
}

}  // namespace warpstack::curand
