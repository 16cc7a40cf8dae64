#include "stand_ins/curand/distributions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace warpstack::curand {
namespace {

constexpr double pi = 3.1415926535897932;

/// A quotient of two polynomials of degree 7, from the highest coefficient down.
double quotient(double r, const std::array<double, 8>& above, const std::array<double, 8>& below) {
  double top = 0;
  double bottom = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    top = top * r + above[i];
    bottom = bottom * r + below[i];
  }
  return top / bottom;
}

/// Of a lower tail's probability, at most 0.5, and whether it is that of the upper tail.
double tail_quantile(double p, bool upper) {
  const double z = normal_quantile(p);
  return upper ? -z : z;
}

}  // namespace

std::pair<float, float> box_muller(float u, float angle) {
  const float size = std::sqrt(-2.0F * std::log(u));
  return {std::sin(angle) * size, std::cos(angle) * size};
}

std::pair<float, float> box_muller(std::uint32_t x, std::uint32_t y) {
  constexpr float turn = static_cast<float>(unit32) * 6.2831855F;
  return box_muller(uniform_of(x), static_cast<float>(y) * turn + turn / 2);
}

std::pair<double, double> box_muller(double u, double angle) {
  const double size = std::sqrt(-2.0 * std::log(u));
  return {std::sin(angle * pi) * size, std::cos(angle * pi) * size};
}

std::pair<double, double> box_muller(const std::uint32_t* draws) {
  const auto z = static_cast<double>(bits53(draws[2], draws[3]));
  return box_muller(middle53(bits53(draws[0], draws[1])), z * (unit53 * 2) + unit53);
}

double normal_quantile(double p) {
  constexpr double centre = 0.425;
  constexpr double far = 5;
  const double q = p - 0.5;
  if (std::abs(q) <= centre) {
    return q * quotient(centre * centre - q * q,
                        {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
                         4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
                         1.3314166789178437745e2, 3.3871328727963666080e0},
                        {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
                         2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
                         4.2313330701600911252e1, 1.0});
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double size =
      r <= far
          ? quotient(
                r - 1.6,
                {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                 1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
                 4.63033784615654529590e0, 1.42343711074968357734e0},
                {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
                 1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
                 2.05319162663775882187e0, 1.0})
          : quotient(
                r - far,
                {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                 2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
                 5.46378491116411436990e0, 6.65790464350110377720e0},
                {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
                 7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
                 5.99832206555887937690e-1, 1.0});
  return q < 0 ? -size : size;
}

float normal_of(std::uint32_t x) {
  const bool upper = x > 0x80000000U;
  return static_cast<float>(tail_quantile(uniform_of(upper ? ~x : x), upper));
}

double normal_double_of(std::uint32_t x) {
  const bool upper = x > 0x80000000U;
  return tail_quantile(middle_of(upper ? ~x : x), upper);
}

double normal_double_of(std::uint64_t x) {
  constexpr std::uint64_t half = std::uint64_t{1} << 52;
  x >>= 11;
  const bool upper = x > half;
  return tail_quantile(middle53(upper ? 2 * half - 1 - x : x), upper);
}

std::vector<double> Poisson::probabilities(double mean) {
  // By logarithms from the mean outwards, so that a large mean's do not vanish at 0.
  const auto last = static_cast<std::size_t>(mean + 12 * std::sqrt(mean) + 40);
  std::vector<double> result(last + 1);
  for (std::size_t k = 0; k <= last; ++k) {
    const auto number = static_cast<double>(k);
    result[k] = std::exp(number * std::log(mean) - mean - std::lgamma(number + 1));
  }
  return result;
}

Poisson::Poisson(double mean) : mean_(mean) {
  if (mean >= normal_from) return;
  cumulative_ = probabilities(mean);
  for (std::size_t k = 1; k < cumulative_.size(); ++k) cumulative_[k] += cumulative_[k - 1];
}

std::uint32_t Poisson::operator()(double u) const {
  if (cumulative_.empty()) {
    const double z = u <= 0.5 ? normal_quantile(u) : -normal_quantile(1 - u);
    return static_cast<std::uint32_t>(std::sqrt(mean_) * z + mean_ + 0.5);
  }
  const auto found = std::lower_bound(cumulative_.begin(), cumulative_.end(), u);
  return static_cast<std::uint32_t>(found - cumulative_.begin());
}

}  // namespace warpstack::curand
