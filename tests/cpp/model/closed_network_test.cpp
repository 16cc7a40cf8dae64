#include "model/closed_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace warpstack::model {
namespace {

TEST(ClosedNetwork, NothingThatTakesTimeHasNoBound) {
  EXPECT_EQ(closed_network_rate(4, 0, {}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(closed_network_rate(4, 0, std::vector<Station>(3)),
            std::numeric_limits<double>::infinity());
}

TEST(ClosedNetwork, ThinkingAloneIsLittlesLaw) {
  EXPECT_DOUBLE_EQ(closed_network_rate(6, 3, {}), 2);
}

TEST(ClosedNetwork, OneCustomerNeverWaits) {
  const Station stations[] = {{2, 2, 1}, {3, 3, 1}};
  EXPECT_DOUBLE_EQ(closed_network_rate(1, 5, stations), 1.0 / 10);
}

TEST(ClosedNetwork, TwoCustomersOfOneStation) {
  // 2 / x = 2 + 1 / (1 - x / 2): x^2 - 4 x + 2 = 0.
  const Station station{1, 1, 2};
  EXPECT_NEAR(closed_network_rate(2, 2, {&station, 1}), 2 - std::sqrt(2), 1e-12);
}

TEST(ClosedNetwork, ManyCustomersReachTheCapacity) {
  const Station stations[] = {{1, 1, 64}, {0.1, 2.8, 64 * 28}};
  EXPECT_NEAR(closed_network_rate(64, 10, stations), 1 / 2.8, 1e-3);
  EXPECT_LE(closed_network_rate(1e9, 10, stations), 1 / 2.8);
}

TEST(ClosedNetwork, SolvesItsEquation) {
  std::mt19937_64 random(1);
  const auto draw = [&random](double most) {
    return std::uniform_real_distribution<double>(0, most)(random);
  };
  for (int trial = 0; trial < 2000; ++trial) {
    const double customers = 1 + draw(100);
    const double think = draw(500);
    std::vector<Station> stations;
    double bound = std::numeric_limits<double>::infinity();
    for (int k = 0; k < 6; ++k) {
      const double sms = trial % 2 ? 1 : 28;
      const double demand = trial % 3 == k ? 0 : std::exp(draw(12) - 8);
      stations.push_back({demand, demand * sms, customers * sms});
      if (demand > 0) bound = std::min(bound, 1 / (demand * sms));
    }
    const double x = closed_network_rate(customers, think, stations);
    ASSERT_GT(x, 0);
    ASSERT_LE(x, bound);
    double time = think;
    for (const Station& s : stations) {
      time += s.demand / (1 - (1 - 1 / s.competitors) * s.capacity_cycles * x);
    }
    if (x < bound) {
      ASSERT_NEAR(x * time, customers, 1e-6 * customers);
    } else {
      ASSERT_LE(x * time, customers * (1 + 1e-9));
    }
  }
}

}  // namespace
}  // namespace warpstack::model
