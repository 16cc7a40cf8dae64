#pragma once

#include <array>
#include <span>

#include "model/model.h"
#include "model/stall_lengths.h"

namespace warpstack::model {

/// A station of a closed queueing network as one customer sees it.
struct Station {
  double demand = 0;  ///< its own cycles of service per visit to all stations
  /// Cycles of service per visit that the station spends on it and all its competitors; they are
  /// alike, so that 1 / capacity_cycles bounds the rate of the customer's class.
  double capacity_cycles = 0;
  double competitors = 1;  ///< customers that share the station, this one included
  /// Cycles by which a visit is shorter in the mean than `demand`: of a customer that is a group
  /// served one after the other, who is not the last of it leaves earlier, and who does not wait
  /// for its service leaves at once. No more than `demand`.
  double early = 0;
};

/// Rate of a class of customers.
struct NetworkRate {
  double root = 0;   ///< of the equation
  double bound = 0;  ///< by the station that is busiest
  [[nodiscard]] double bounded() const;
};

/// Rate of a class of customers in a closed network: x with
///   customers / x = think + sum of demand / 2 (1 + 1 / (1 - others capacity_cycles x)) - early,
///   others = 1 - 1 / competitors:
/// Schweitzer's approximation of mean-value analysis in one unknown: a customer that arrives finds
/// the queue that the others leave, `others` of the mean. Service takes the same time for all, so
/// that who is being served is half done in the mean.
/// The bound is 1 / capacity_cycles.
/// Infinite when nothing takes time. At most 16 stations.
NetworkRate closed_network_rate(double customers, double think, std::span<const Station> stations);

/// The closed network model (docs/explanation/closed-network-model.md): the warps of each phase as
/// customers of a closed network of issue slots, tensor cores, load-store unit, NoC, L2 and DRAM,
/// whose misses an inner network with a customer per MSHR bounds; before them the burst in which
/// all warps make their first access.
ModelResult evaluate_closed_network(const interval::PhaseList& launch,
                                    const interval::ResourceDemands& demands,
                                    const StallLengths& stalls, const ModelParameters& parameters);

}  // namespace warpstack::model
