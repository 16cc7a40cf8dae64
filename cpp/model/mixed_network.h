#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "model/network.h"
#include "trace/instructions/opcode.h"

namespace warpstack::model {

/// What a warp instruction of a kernel does at a station.
struct Visit {
  double demand = 0;   ///< cycles of service that the warp waits for
  double early = 0;    ///< by which its visit is shorter
  double busy = 0;     ///< cycles for which the station works, for what nobody waits for, too
  double count = 0;    ///< visits that the warp waits for
  double service = 0;  ///< cycles that who comes behind waits for one of its visits
  double sharers = 1;  ///< stations of this kind among which an SM's warps are divided
  double in_step = 1;  ///< warps that visit it as one
};

/// Stations of a network that several kernels share: `Resource`, and the unit of each class of
/// instructions behind these, where `unit` has no visits. Where a kernel asks some slices of L2 or
/// some channels of DRAM more than others, those that it asks most are two stations more. Others
/// meet it at the mean ones: they have other slices to wait for.
inline constexpr std::size_t first_unit = num_resources;
inline constexpr std::size_t hot_slice = first_unit + trace::num_op_classes;
inline constexpr std::size_t hot_channel = hot_slice + 1;
inline constexpr std::size_t num_mixed_stations = hot_channel + 1;
/// Whether all SMs share a station.
constexpr bool is_shared_by_sms(std::size_t station) {
  return (station >= request_network && station < num_resources) || station >= hot_slice;
}
/// Whether a kernel has a station for itself.
constexpr bool is_of_one_class(std::size_t station) { return station >= hot_slice; }
/// Whether a request comes to a station behind the ports of its SM.
constexpr bool is_behind_ports(std::size_t station) {
  return (station >= send_port && station < num_resources) || station >= hot_slice;
}

/// A kernel whose warps are a class of customers.
struct CustomerClass {
  double warps_per_block = 1;
  double think = 0;  ///< cycles of an instruction outside the stations
  std::array<Visit, num_mixed_stations> visits{};
  double held_misses = 0;    ///< misses of an instruction that hold an MSHR
  double waiting_loads = 0;  ///< instructions that wait for misses
  double trip = 0;           ///< cycles of a round trip that waits nowhere
  double posted = 0;         ///< visits behind L1 that nobody waits for: stores
};

/// The class that the network of a launch alone would have, without the time in which places are
/// empty between two blocks. `places` are the blocks that an SM
/// holds at once.
CustomerClass customers_of(const interval::PhaseList& launch,
                           const interval::ResourceDemands& demands, double warps_per_block,
                           double places, const ModelParameters& gpu);

/// SMs that hold the same: so many blocks of each class.
struct SmGroup {
  double sms = 1;
  std::vector<double> blocks;  ///< by class
};

/// Cycles that a warp of each class needs for an instruction in each group, by group and class:
/// entry g * classes + c; infinite where the group has no block of the class. The classes share the
/// stations of an SM within a group, and those of the GPU with all.
///
/// Schweitzer's approximation of mean-value analysis for several classes: who arrives at a station
/// finds the queues of all classes, its own less by one customer, and waits for what they are
/// served. With one class it is closed_network_rate(), but that no capacity is exceeded without a
/// bound beside the equation: for those who come from several classes there is none that is just.
/// MSHRs are a station with many
/// servers, whose customers hold one for a round trip (Sakasegawa, "An Approximation Formula
/// L_q = a rho^b / (1 - rho)", 1977). An SM has as many places for stores on their way, so that
/// they do not fill the queues of all without an end.
std::vector<double> mixed_network_times(std::span<const CustomerClass> classes,
                                        std::span<const SmGroup> groups, double mshrs);

}  // namespace warpstack::model
