#pragma once

#include <cstdint>
#include <utility>
#include <vector>

/// How raw bits become numbers of a distribution, as curand_uniform.h and curand_normal.h define it
/// for the host. A GPU's normal numbers differ in their last bits: its sine and cosine are others.
namespace warpstack::curand {

/// 2^-32 and 2^-53.
inline constexpr double unit32 = 1.0 / 4294967296.0;
inline constexpr double unit53 = unit32 / 2097152.0;

inline float uniform_of(std::uint32_t x) {
  constexpr auto unit = static_cast<float>(unit32);
  return static_cast<float>(x) * unit + unit / 2;
}

/// The middle of one of 2^32 intervals.
inline double middle_of(std::uint32_t x) { return x * unit32 + unit32 / 2; }
/// Its upper end.
inline double upper_of(std::uint32_t x) { return x * unit32 + unit32; }
/// The middle of one of 2^53 intervals.
inline double middle53(std::uint64_t x) { return static_cast<double>(x) * unit53 + unit53 / 2; }

/// 53 bits of two draws.
inline std::uint64_t bits53(std::uint32_t low, std::uint32_t high) {
  return low ^ static_cast<std::uint64_t>(high) << 21;
}

/// Two normal numbers of two uniform ones (Box and Muller). `angle` is in radians.
std::pair<float, float> box_muller(float u, float angle);
/// The same of two draws.
std::pair<float, float> box_muller(std::uint32_t x, std::uint32_t y);
/// `angle` is in half turns.
std::pair<double, double> box_muller(double u, double angle);
/// The same of four draws.
std::pair<double, double> box_muller(const std::uint32_t* draws);

/// The number below which a standard normal one lies with probability p, 0 < p < 1, within a few
/// units of its last place. Source: Wichura, Algorithm AS 241, PPND16 (Applied Statistics 37,
/// 1988).
double normal_quantile(double p);
/// A normal number of one draw by the quantile, from the nearer tail, which is exact.
float normal_of(std::uint32_t x);
double normal_double_of(std::uint32_t x);
/// The same of the upper 32 or 53 of 64 bits.
inline float normal_of(std::uint64_t x) { return normal_of(static_cast<std::uint32_t>(x >> 32)); }
double normal_double_of(std::uint64_t x);

/// Poisson's distribution: numbers of it by the inverse of its cumulative probabilities; from
/// `normal_from` on, by rounding normal ones, as cuRAND does.
class Poisson {
 public:
  static constexpr double normal_from = 1000;
  explicit Poisson(double mean);
  [[nodiscard]] std::uint32_t operator()(double u) const;
  /// The probabilities of 0, 1, ... as far as they matter in a double; of a mean below normal_from.
  [[nodiscard]] static std::vector<double> probabilities(double mean);

 private:
  double mean_;
  std::vector<double> cumulative_;
};

}  // namespace warpstack::curand
