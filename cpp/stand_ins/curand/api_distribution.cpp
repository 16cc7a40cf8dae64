// Poisson's distribution for curand_discrete in the program's own kernels.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "stand_ins/curand/context.h"
#include "stand_ins/curand/distributions.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::curand;

namespace {

/// A histogram of equal columns, each of at most two numbers, from which one uniform number draws
/// (Marsaglia, Tsang and Wang, Journal of Statistical Software 11, 2004): below `thresholds[j]`
/// column j gives j, else others[j].
struct Columns {
  std::vector<double> thresholds;
  std::vector<std::uint32_t> others;
};

Columns columns_of(std::vector<double> shares) {
  const std::size_t count = shares.size();
  const double width = 1.0 / static_cast<double>(count);
  double total = 0;
  for (const double share : shares) total += share;
  for (double& share : shares) share /= total;
  Columns result{std::vector<double>(count + 1), std::vector<std::uint32_t>(count + 1)};
  std::vector<std::size_t> few;
  std::vector<std::size_t> many;
  for (std::size_t j = 0; j < count; ++j) (shares[j] < width ? few : many).push_back(j);
  const auto close = [&](std::size_t j, double share, std::size_t other) {
    result.thresholds[j] = static_cast<double>(j) * width + share;
    result.others[j] = static_cast<std::uint32_t>(other);
  };
  while (!few.empty() && !many.empty()) {
    const std::size_t j = few.back();
    const std::size_t other = many.back();
    few.pop_back();
    close(j, shares[j], other);
    shares[other] -= width - shares[j];
    if (shares[other] < width) {
      many.pop_back();
      few.push_back(other);
    }
  }
  for (const std::size_t j : few) close(j, width, j);
  for (const std::size_t j : many) close(j, width, j);
  // A uniform number of 1 lies just behind the last column.
  result.thresholds[count] = 2;
  result.others[count] = static_cast<std::uint32_t>(count - 1);
  return result;
}

/// The parts of a distribution in one allocation of device memory.
struct Image {
  DiscreteDistribution distribution{};
  ShiftedHistogram shifted{};
  Histogram histogram{};
};

}  // namespace

CURAND_EXPORT Status curandCreatePoissonDistribution(double mean,
                                                     DiscreteDistribution** distribution) {
  return call(__func__, [&] {
    constexpr double largest_mean = 400000;
    require(distribution != nullptr, Status::out_of_range, "nowhere to put the distribution");
    require(mean > 0 && mean <= largest_mean, Status::out_of_range,
            "lambda = " + std::to_string(mean) + " is not above 0 and at most 400000");
    Columns columns;
    const bool by_normal = mean >= Poisson::normal_from;
    if (!by_normal) columns = columns_of(Poisson::probabilities(mean));
    const std::size_t count = columns.thresholds.size();
    const std::size_t thresholds_at = sizeof(Image);
    const std::size_t others_at = thresholds_at + count * sizeof(double);
    std::vector<std::byte> bytes(others_at + count * sizeof(std::uint32_t));

    void* place = nullptr;
    require_success(cudaMalloc(&place, bytes.size()));
    auto* const base = static_cast<std::byte*>(place);
    Image image;
    auto* const on_device = reinterpret_cast<Image*>(base);
    image.distribution.self = &on_device->distribution;
    image.distribution.deviation = std::sqrt(mean);
    image.distribution.mean = mean;
    image.distribution.method = by_normal ? method_normal : method_histogram;
    if (!by_normal) {
      image.distribution.histogram = &on_device->shifted;
      image.shifted.histogram = &on_device->histogram;
      image.shifted.length = static_cast<std::uint32_t>(count - 1);
      image.histogram.thresholds = reinterpret_cast<double*>(base + thresholds_at);
      image.histogram.others = reinterpret_cast<std::uint32_t*>(base + others_at);
      std::memcpy(&bytes[thresholds_at], columns.thresholds.data(), count * sizeof(double));
      std::memcpy(&bytes[others_at], columns.others.data(), count * sizeof(std::uint32_t));
    }
    std::memcpy(bytes.data(), &image, sizeof image);
    const std::size_t size = bytes.size();
    require_success(warpstack_cudart_write("cuRAND", place, bytes.data(), size, size, {}, 0));
    *distribution = static_cast<DiscreteDistribution*>(place);
  });
}

CURAND_EXPORT Status curandDestroyDistribution(DiscreteDistribution* distribution) {
  return call(__func__, [&] {
    require(distribution != nullptr, Status::not_initialized, "the distribution is null");
    require_success(cudaFree(distribution));
  });
}
