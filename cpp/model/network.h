#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "interval/work.h"
#include "model/model.h"

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

/// Share of a mean queue that a customer who joins it does not make up itself.
double share_of_others(const Station& station);
/// Cycles of a visit, waiting included, at a rate.
double residence(const Station& station, double rate);

/// What the stations of an SM and its memory system are in the network.
enum Resource : std::size_t {
  issue,
  tensor,
  unit,  ///< of a scheduler, that of the class of instructions that keeps it busiest
  lsu,
  send_port,
  receive_port,
  request_network,  ///< the first that all SMs share
  reply_network,
  slice,
  dram
};
inline constexpr std::size_t num_resources = 10;
using Stations = std::array<Station, num_resources>;
using Services = std::array<double, num_resources>;

/// Cycles of DRAM, of an instruction, in which its bus turns around.
double turnaround_cycles(const interval::ResourceDemands& demands, const ModelParameters& gpu);
/// Cycles of each resource from the load-store unit to DRAM per warp instruction; those of what all
/// SMs share, too.
Services services_of(const interval::ResourceDemands& demands, const ModelParameters& gpu);
/// The same of the capacity of each: slices that are asked unevenly by those under way together
/// serve less meanwhile, though nobody's own visit takes longer.
Services busy_times(interval::ResourceDemands demands, const ModelParameters& gpu);
/// Only what loads and atomics ask, whose results are waited for.
interval::ResourceDemands without_posted(interval::ResourceDemands demands);
/// The class of instructions whose unit of a scheduler works longest. An interval of one cycle is
/// the issue slot.
std::optional<std::size_t> busiest_unit(const interval::ResourceDemands& demands,
                                        const ModelParameters& gpu);
/// Cycles of that unit per warp instruction.
double unit_cycles(const interval::ResourceDemands& demands, const ModelParameters& gpu);
/// A load that waits for a place in its set of L1 holds up the load-store unit until data come
/// back: cycles per warp instruction.
double place_waits(const interval::ResourceDemands& demands, const ModelParameters& gpu);

/// The stations that a warp instruction visits while `warps` warps share its SM, and `sms` times as
/// many share the GPU.
Stations stations_of(const interval::ResourceDemands& demands, double warps, double sms,
                     const ModelParameters& gpu);
/// The same as warps see them, which go on while their stores are served: `awaited` is without
/// these.
Stations stations_of_warps(const interval::ResourceDemands& demands, const Services& awaited,
                           double warps, double sms, const ModelParameters& gpu);
/// The station from `from` to `to` with the longest visit at a rate.
std::size_t longest_visit(const Stations& stations, double rate, std::size_t from, std::size_t to);
/// The lines of a load pass one station while others pass the next: all of them count at the
/// station `longest`, elsewhere one.
Stations overlapped(Stations stations, double lines, std::size_t longest);
/// The rate at which the lines of a load overlap with the longest visit of all: the lowest one, as
/// every other station in its place leaves some of the time out.
NetworkRate overlapped_rate(double warps, double think, const Stations& stations, double lines);

}  // namespace warpstack::model
