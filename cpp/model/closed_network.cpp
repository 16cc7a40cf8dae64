#include "model/closed_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gpu/reference_machine.h"

namespace warpstack::model {
namespace {

/// Share of a mean queue that a customer who joins it does not make up itself.
double share_of_others(const Station& station) {
  return 1 - 1 / std::max(station.competitors, 1.0);
}

/// Cycles of a visit, waiting included, at a rate.
double residence(const Station& station, double rate) {
  const double free = 1 - share_of_others(station) * station.capacity_cycles * rate;
  return station.demand == 0 ? 0 : station.demand / 2 * (1 + 1 / free) - station.early;
}

/// What the stations of an SM's memory system are in the network.
enum Resource : std::size_t {
  issue,
  tensor,
  unit,  ///< of a scheduler, that of the class of instructions that keeps it busiest
  lsu,
  send_port,
  receive_port,
  request_network,
  reply_network,
  slice,
  dram
};
constexpr std::size_t num_resources = 10;
using Stations = std::array<Station, num_resources>;

using Details = DetailedStack<double>;

using Services = std::array<double, num_resources>;

/// Where the time at a station shows in the stack: each station has a detail of which its time is,
/// but for others that take a share of it. What waits for a slice of L2 waits in the NoC: the
/// slice's own queue is short.
class Shown {
 public:
  Shown(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
    const auto of = [](double part, double all) {
      return all > 0 ? std::clamp(part / all, 0.0, 1.0) : 0.0;
    };
    const double unit = demands.lsu_cycles;
    shares_[lsu] = {{{StackDetail::tags, of(demands.tag_cycles, unit)},
                     {StackDetail::shared_memory, of(demands.shared_cycles, unit)},
                     {StackDetail::bank_conflicts, of(demands.conflict_cycles, unit)}}};
    shares_[slice] = {{{StackDetail::atomics, of(demands.atomic_turns, demands.slice_turns)}}};
    const double transfers = demands.dram_bytes * gpu.clock_ghz / gpu.dram_bandwidth_gbs;
    const double turnarounds = turnaround_cycles(demands, gpu);
    const double all = transfers + turnarounds;
    shares_[dram] = {{{StackDetail::dram_turnarounds, of(turnarounds, all)},
                      {StackDetail::dram_rows, of(transfers * (1 - gpu.dram_efficiency), all)}}};
  }

  /// Adds cycles at a station.
  void add(std::size_t station, double cycles, Details& time) const {
    double rest = cycles;
    for (const auto& [detail, share] : shares_[station]) {
      time[detail] += cycles * share;
      rest -= cycles * share;
    }
    time[usual[station]] += rest;
  }
  /// Cycles of DRAM, of an instruction, in which its bus turns around.
  static double turnaround_cycles(const interval::ResourceDemands& demands,
                                  const ModelParameters& gpu) {
    if (!(demands.dram_bytes > 0)) return 0;
    const double writes = demands.dram_write_bytes / demands.dram_bytes;
    return demands.dram_bytes / gpu.l2_request_bytes * writes * (1 - writes) *
           gpu.dram_turnaround_cycles;
  }

 private:
  static constexpr std::array<StackDetail, num_resources> usual = {
      StackDetail::issue,           StackDetail::units,     StackDetail::units,
      StackDetail::load_store_unit, StackDetail::send_port, StackDetail::receive_port,
      StackDetail::network,         StackDetail::network,   StackDetail::slices,
      StackDetail::dram_bandwidth};
  struct Share {
    StackDetail detail = StackDetail::issue;
    double share = 0;
  };
  std::array<std::array<Share, 3>, num_resources> shares_{};
};

/// Cycles of each resource from the load-store unit to DRAM per warp instruction; those of what all
/// SMs share, too.
Services services_of(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
  const double noc_cycles_per_byte = gpu.clock_ghz / gpu.noc_bandwidth_gbs;
  Services cycles{};
  cycles[lsu] = demands.lsu_cycles;
  const double sent = demands.write_bytes + demands.read_misses * gpu.noc_control_bytes;
  if (gpu.noc_sm_bytes_per_cycle > 0) {
    cycles[send_port] = sent / gpu.noc_sm_bytes_per_cycle;
    cycles[receive_port] = demands.read_bytes / gpu.noc_sm_bytes_per_cycle;
  }
  cycles[request_network] = sent * noc_cycles_per_byte;
  cycles[reply_network] = demands.read_bytes * noc_cycles_per_byte;
  // The slice that is asked most; what it answers is in proportion.
  cycles[slice] = demands.hottest_slice_turns / gpu.l2_requests_per_cycle;
  if (gpu.l2_bytes_per_cycle > 0 && demands.slice_turns > 0) {
    const double answered = demands.hit_bytes * demands.hottest_slice_turns / demands.slice_turns;
    // Lines from DRAM have a port of their own, and come as evenly as its channels move them.
    const double filled = (demands.dram_bytes - demands.dram_write_bytes) * demands.dram_imbalance;
    cycles[slice] = std::max(
        {cycles[slice], answered / gpu.l2_bytes_per_cycle, filled / gpu.l2_bytes_per_cycle});
  }
  // A channel goes over to writes and back when no bank is left whose request goes the same way. A
  // bank takes up one of the other way with probability 1 - w, so that all of them have served
  // their count over 1 - w writes, and over w reads, before the channel is back: both turns once
  // for count / (w (1 - w)) requests.
  cycles[dram] = demands.dram_bytes * gpu.clock_ghz / gpu.dram_bandwidth_gbs;
  cycles[dram] += Shown::turnaround_cycles(demands, gpu);
  cycles[dram] *= demands.dram_imbalance;
  return cycles;
}

/// The same of the capacity of each: slices that are asked unevenly by those under way together
/// serve less meanwhile, though nobody's own visit takes longer.
Services busy_times(interval::ResourceDemands demands, const ModelParameters& gpu) {
  demands.hottest_slice_turns = std::max(demands.hottest_slice_turns, demands.crowded_slice_turns);
  return services_of(demands, gpu);
}

/// Only what loads and atomics ask, whose results are waited for.
interval::ResourceDemands without_posted(interval::ResourceDemands demands) {
  demands.write_requests -= demands.posted_requests;
  demands.write_bytes -= demands.posted_bytes;
  const double asked = demands.read_misses + demands.write_requests;
  demands.hit_bytes = std::min(demands.hit_bytes, demands.read_bytes + demands.write_bytes);
  demands.dram_bytes -= demands.dram_write_bytes;
  demands.dram_write_bytes = 0;
  const double share = demands.slice_turns > 0 ? std::min(asked / demands.slice_turns, 1.0) : 0;
  demands.hottest_slice_turns *= share;
  demands.crowded_slice_turns *= share;
  demands.slice_turns *= share;
  return demands;
}

/// Cycles of the unit of a scheduler that instructions take longest, per warp instruction. An
/// interval of one cycle is the issue slot.
double unit_cycles(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
  double cycles = 0;
  for (std::size_t c = 0; c < gpu.unit_intervals.size(); ++c) {
    if (gpu.unit_intervals[c] <= 1) continue;
    cycles = std::max(cycles, demands.unit_instructions[c] * gpu.unit_intervals[c]);
  }
  return cycles;
}

/// The stations that a warp instruction visits while `warps` warps share its SM, and `sms` times as
/// many share the GPU.
Stations stations_of(const interval::ResourceDemands& demands, double warps, double sms,
                     const ModelParameters& gpu) {
  Stations stations;
  stations[issue] = {gpu.schedulers / gpu.issue_rate, 1 / gpu.issue_rate, warps / gpu.schedulers};
  // Warps that come together are one customer. Each waits for half of the others of its group in
  // the mean, and for all of the groups before it.
  const double in_step = std::min(demands.warps_in_step, std::max(warps, 1.0));
  stations[lsu] = {demands.lsu_cycles * in_step, demands.lsu_cycles, warps / in_step,
                   demands.lsu_cycles * (in_step - 1) / 2};
  // As issue slots, each scheduler's tensor cores are for its warps alone.
  const double at_scheduler = std::max(in_step / gpu.schedulers, 1.0);
  // A warp alone spends the cycles between its products anyway. Groups that share the tensor cores
  // have their products at the same time, so that these cycles are only for the own ones.
  const double groups = warps / (at_scheduler * gpu.schedulers);
  stations[tensor] = {demands.tensor_cycles * at_scheduler, demands.tensor_cycles / gpu.schedulers,
                      groups,
                      demands.tensor_cycles * (at_scheduler - 1) / 2 +
                          demands.spaced_tensor_cycles / std::max(groups, 1.0)};
  // A warp goes on when it has issued, so that alone it does not wait: its own instructions have a
  // latency.
  const double at_unit = unit_cycles(demands, gpu);
  stations[unit] = {at_unit, at_unit / gpu.schedulers, warps / gpu.schedulers, at_unit};
  const Services cycles = services_of(demands, gpu);
  const Services busy = busy_times(demands, gpu);
  for (std::size_t k = send_port; k < num_resources; ++k) {
    const double sharers = k < request_network ? 1 : sms;
    stations[k] = {cycles[k], busy[k] * sharers, warps * sharers};
  }
  return stations;
}

/// The same as warps see them, which go on while their stores are served: `awaited` is without
/// these.
Stations stations_of_warps(const interval::ResourceDemands& demands, const Services& awaited,
                           double warps, double sms, const ModelParameters& gpu) {
  Stations stations = stations_of(demands, warps, sms, gpu);
  for (std::size_t k = send_port; k < num_resources; ++k) {
    stations[k].demand = std::min(stations[k].demand, awaited[k]);
  }
  return stations;
}

/// The station from `from` to `to` with the longest visit at a rate.
std::size_t longest_visit(const Stations& stations, double rate, std::size_t from, std::size_t to) {
  std::size_t longest = from;
  for (std::size_t k = from + 1; k < to; ++k) {
    if (residence(stations[k], rate) > residence(stations[longest], rate)) longest = k;
  }
  return longest;
}

/// The lines of a load pass one station while others pass the next: all of them count at the
/// station `longest`, elsewhere one.
Stations overlapped(Stations stations, double lines, std::size_t longest) {
  for (std::size_t k = lsu; k < num_resources; ++k) {
    if (k == longest) continue;
    stations[k].demand /= lines;
    stations[k].early /= lines;
  }
  return stations;
}

/// Whether a visit to `a` is no shorter than one to `b` at any rate.
bool is_always_longer(const Station& a, const Station& b) {
  return a.demand >= b.demand && a.early <= b.early &&
         share_of_others(a) * a.capacity_cycles >= share_of_others(b) * b.capacity_cycles;
}

/// The rate at which the lines of a load overlap with the longest visit of all: the lowest one, as
/// every other station in its place leaves some of the time out.
NetworkRate overlapped_rate(double warps, double think, const Stations& stations, double lines) {
  if (lines == 1) return closed_network_rate(warps, think, stations);
  NetworkRate lowest{std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::infinity()};
  for (std::size_t k = lsu; k < num_resources; ++k) {
    bool is_shorter = false;
    for (std::size_t other = lsu; other < num_resources && !is_shorter; ++other) {
      if (other == k || !is_always_longer(stations[other], stations[k])) continue;
      // Of equal ones the first.
      is_shorter = other < k || !is_always_longer(stations[k], stations[other]);
    }
    if (is_shorter) continue;
    const NetworkRate rate = closed_network_rate(warps, think, overlapped(stations, lines, k));
    if (rate.root <= lowest.root) lowest = rate;
  }
  return lowest;
}

/// The round trips of misses, each of which holds an MSHR.
struct RoundTrips {
  double rate = std::numeric_limits<double>::infinity();   ///< instructions per cycle they allow
  Details queues;                                          ///< waiting of a trip
  double latency = 0;                                      ///< of a trip that waits nowhere
  double mshrs = std::numeric_limits<double>::infinity();  ///< for each miss of an instruction

  /// Cycles that a trip waits at most while instructions go at a rate.
  [[nodiscard]] double longest_wait(double at_rate) const {
    return std::max(mshrs / at_rate - latency, 0.0);
  }
};

/// SMs share what is behind their ports alike, whatever their warps: each has its MSHRs.
RoundTrips round_trips(const interval::ResourceDemands& demands, double sms, const Shown& shown,
                       const ModelParameters& gpu) {
  RoundTrips result;
  const double holding = demands.read_misses - demands.misses_past_l1;
  if (!(holding > 0)) return result;
  result.latency =
      gpu.l2_latency + demands.dram_read_requests / demands.read_misses * gpu.dram_latency;
  result.mshrs = gpu.l1_mshrs / holding;
  // A miss takes its share of what an instruction takes, writes and loads past L1 included: they
  // pass the same queues.
  Stations of_miss = stations_of(demands, gpu.l1_mshrs, sms, gpu);
  for (std::size_t k = send_port; k < num_resources; ++k) {
    of_miss[k].demand /= holding;
    of_miss[k].capacity_cycles /= holding;
  }
  of_miss[issue] = of_miss[tensor] = of_miss[unit] = of_miss[lsu] = {};
  const double misses = closed_network_rate(gpu.l1_mshrs, result.latency, of_miss).bounded();
  result.rate = misses / holding;
  for (std::size_t k = send_port; k < num_resources; ++k) {
    shown.add(k, residence(of_miss[k], misses), result.queues);
  }
  return result;
}

/// A load that waits for a place in its set of L1 holds up the load-store unit until data come
/// back.
double place_waits(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
  using Reference = gpu::ReferenceMachine;
  return demands.place_wait_l2 * gpu.l2_latency / Reference::l2 +
         demands.place_wait_dram * (gpu.l2_latency + gpu.dram_latency) / Reference::round_trips[2];
}

/// Adds `cycles` to the parts of a stack as `shares` are.
void divide(double cycles, const Details& shares, Details& stack) {
  const double total = shares.sum();
  if (total <= 0) {
    stack[StackDetail::arithmetic] += cycles;
    return;
  }
  for (const StackDetail d : values_of<StackDetail>) stack[d] += cycles * shares[d] / total;
}

/// The network of a phase in its steady state.
struct Solution {
  double busy_sms = 0;
  double think = 0;  ///< of a warp for an instruction, outside the stations
  Stations stations;
  NetworkRate of_warps;  ///< instructions per cycle of the SM, without a bound by MSHRs
  double rate = 0;
  RoundTrips trips;
  double trip_rate = 0;  ///< instructions per cycle that MSHRs allow
};

/// The rate that MSHRs allow. Where other SMs have fewer warps than this one, its share of the
/// memory grows when they end: its trips take no longer than all that the SMs share takes to serve
/// everybody, and then as many trips alone.
double bounded_by_trips(const RoundTrips& trips, const RoundTrips& alone,
                        const Stations& stations) {
  double everybody = 0;
  for (std::size_t k = request_network; k < num_resources; ++k) {
    everybody = std::max(everybody, stations[k].capacity_cycles);
  }
  return std::max(trips.rate, 1 / (everybody + 1 / alone.rate));
}

/// The time of a warp alone per instruction, without its issue cycle.
struct TimeAlone {
  double stalls = 0;
  double for_stores = 0;  ///< at its end, until they are acknowledged
  const StallLengths* lengths = nullptr;

  [[nodiscard]] double sum() const { return stalls + for_stores; }
  /// By cause, when other warps leave `share` of it uncovered.
  [[nodiscard]] Details by_cause(double share) const {
    const DetailShares shares = lengths->uncovered_details(share);
    Details result;
    double known = 0;
    for (std::size_t d = 0; d < shares.size(); ++d) {
      result[stall_details[d]] = stalls * shares[d];
      known += shares[d];
    }
    result[StackDetail::arithmetic] += stalls * std::max(1 - known, 0.0);
    result[StackDetail::l2_latency] += for_stores;
    return result;
  }
};

/// What the issue slots of an instruction that are lost in a phase are lost to. All warps that wait
/// share a lost slot alike, so that it is a warp's time by cause.
Details lost_to(const interval::ResourceDemands& demands, const Solution& solution, double warps,
                const TimeAlone& alone, double issue_cycles, const Shown& shown) {
  const Stations& stations = solution.stations;
  Details time;
  // The load-store unit waits for places as for MSHRs.
  const double at_unit = stations[lsu].capacity_cycles;
  const double of_places = at_unit > 0 ? std::max(1 - demands.lsu_cycles / at_unit, 0.0) : 0;
  const auto show = [&](std::size_t station, double cycles) {
    if (station == lsu) {
      time[StackDetail::places] += cycles * of_places;
      cycles *= 1 - of_places;
    }
    shown.add(station, cycles, time);
  };
  for (std::size_t k = tensor; k < num_resources; ++k) {
    show(k, residence(stations[k], solution.rate));
  }
  // Who waits for an MSHR waits in front of L1, where others pass at times.
  const double passing = std::min(solution.rate * demands.lsu_cycles, 1.0);
  const auto wait_for_mshr = [&](double cycles) {
    time[StackDetail::load_store_unit] += cycles * passing;
    time[StackDetail::mshrs] += cycles * (1 - passing);
  };
  // What a bound adds is waiting at the station that sets it; of a bound by MSHRs, in the queues of
  // the trips that hold them, or for the MSHRs alone.
  const double rest = std::max(
      warps / solution.rate - alone.sum() - time.sum() - residence(stations[issue], solution.rate),
      0.0);
  // Both may be the capacity of one station; rounding does not decide.
  if (solution.trip_rate < solution.of_warps.bounded() * (1 - 1e-9)) {
    if (solution.trips.queues.sum() > 0) {
      divide(rest, solution.trips.queues, time);
    } else {
      wait_for_mshr(rest);
    }
  } else {
    std::size_t busiest = issue;
    for (std::size_t k = tensor; k < num_resources; ++k) {
      if (stations[k].capacity_cycles > stations[busiest].capacity_cycles) busiest = k;
    }
    if (busiest != issue) show(busiest, rest);
  }
  // No more requests are on their way than there are MSHRs (Little's law); what waits beyond that
  // waits for an MSHR.
  const auto is_queue = [](StackDetail detail) {
    const StackComponent component = component_of(detail);
    return component == StackComponent::noc || component == StackComponent::queue;
  };
  double queues = 0;
  for (const StackDetail d : values_of<StackDetail>) queues += is_queue(d) ? time[d] : 0;
  const double most = demands.missing_loads * solution.trips.longest_wait(solution.rate);
  if (queues > most) {
    for (const StackDetail d : values_of<StackDetail>) {
      if (!is_queue(d)) continue;
      wait_for_mshr(time[d] * (1 - most / queues));
      time[d] *= most / queues;
    }
  }
  // A warp loses the same share of its time alone as of the rest.
  const double all = alone.sum() + time.sum();
  const double lost = std::max(1 / solution.rate - issue_cycles, 0.0) * warps;
  time += alone.by_cause(all > 0 ? lost / all : 0);
  return time;
}

/// The warps of a launch start together, so that their first accesses meet at the station that
/// these keep busy longest. Then its service has spread the warps.
struct Burst {
  double cycles =
      0;  ///< of an instruction whose accesses are all in the burst, beside its own time
  std::size_t busiest = issue;  ///< the station that it keeps busy longest
};

Burst first_burst(const interval::ResourceDemands& demands, const interval::PhaseList& launch,
                  const ModelParameters& gpu) {
  Burst burst;
  if (demands.loads == 0 || launch.first_warps == 0) return burst;
  // A first access is a load; writes and atomics come when the warps have spread.
  interval::ResourceDemands loads = demands;
  loads.lsu_cycles = std::max(demands.lsu_cycles - demands.write_requests, 0.0);
  loads.write_requests = loads.write_bytes = loads.dram_write_bytes = 0;
  // Stores fetch lines, too.
  loads.dram_bytes = demands.read_misses > 0 ? demands.dram_bytes - demands.dram_write_bytes : 0;
  loads.hit_bytes = std::min(demands.hit_bytes, demands.read_bytes);
  loads.slice_turns = loads.hottest_slice_turns = loads.crowded_slice_turns = loads.read_misses;
  const Stations stations =
      stations_of(loads, launch.first_warps, launch.first_all_warps / launch.first_warps, gpu);
  // One after the other: the whole burst at one station, a warp's own access at the others.
  double own = 0;
  double longest = 0;
  for (std::size_t k = lsu; k < num_resources; ++k) own += stations[k].demand - stations[k].early;
  for (std::size_t k = lsu; k < num_resources; ++k) {
    const double together = launch.first_warps * launch.accessing * stations[k].capacity_cycles;
    if (together == 0) continue;
    const double others = own - stations[k].demand + stations[k].early;
    burst.cycles = std::max(burst.cycles, together + others);
    if (together > longest) burst.busiest = k;
    longest = std::max(longest, together);
  }
  return burst;
}

/// The earliest end of the launch that each resource allows: somebody comes to it first, it serves
/// everybody, and who it serves last goes on to its end, or waits for its store.
double end_of_services(const interval::PhaseList& launch, const interval::ResourceDemands& demands,
                       const ModelParameters& gpu) {
  double end = 0;
  const auto with_stores = [&gpu](const interval::TimeOffUnit& off) {
    return off.after + std::min(off.for_stores, gpu.l2_latency);
  };
  const interval::TimeOffUnit& off = launch.off_units[0];
  if (off.warps > 0) {
    Services cycles = busy_times(demands, gpu);
    cycles[lsu] += place_waits(demands, gpu);
    const double after = with_stores(off);
    for (std::size_t k = lsu; k < num_resources; ++k) {
      if (cycles[k] == 0) continue;
      if (k >= request_network) {
        end = std::max(end, off.before + launch.instructions * cycles[k] + after);
        continue;
      }
      for (const interval::SmWork& sm : launch.sms) {
        end = std::max(end, off.before + sm.instructions * cycles[k] + after);
        // The same holds for each block, between any two barriers, and blocks of one place follow
        // one another.
        end = std::max(
            end, sm.rounds * off.of_parts + sm.round_instructions * cycles[k] + after - off.after);
      }
    }
  }
  for (std::size_t c = 0; c < gpu.unit_intervals.size(); ++c) {
    const double interval = gpu.unit_intervals[c];
    const interval::TimeOffUnit& off_class = launch.off_units[1 + c];
    if (interval <= 1 || off_class.warps == 0) continue;
    for (const interval::SmWork& sm : launch.sms) {
      const double cycles = sm.instructions * interval / gpu.schedulers;
      // An instruction leaves its unit busy behind it, and goes on. No more than an instruction of
      // each warp is served meanwhile counts, so that one more at the end never makes it shorter.
      const double after = std::min(with_stores(off_class), off_class.warps * cycles);
      const double served = std::max(demands.unit_instructions[c] * cycles - interval, 0.0);
      end = std::max(end, off_class.before + served + after);
    }
  }
  return end;
}

/// The most instructions that follow one another in a place.
double deepest_place(const interval::PhaseList& launch) {
  double deepest = 0;
  for (const interval::SmWork& sm : launch.sms) {
    deepest = std::max(deepest, std::accumulate(sm.depth.begin(), sm.depth.end(), 0.0));
  }
  return deepest;
}

/// What fetching code costs: a share of the instructions goes no faster than its lines come, which
/// all warps of an SM go through together.
struct CodeFetches {
  double share = 0;
  double cycles = 0;  ///< of a warp for an instruction of them, at least

  static CodeFetches of(const memory::CodeWalk& code, const interval::PhaseList& launch) {
    double rounds = 1;
    for (const interval::SmWork& sm : launch.sms) rounds = std::max(rounds, sm.rounds);
    // Blocks that come later find what is left of the code.
    const double share = (code.share + (rounds - 1) * code.share_after) / rounds;
    return {share, code.fetch_cycles};
  }
  /// Cycles that they add to those between two instructions of a warp.
  [[nodiscard]] double beyond(double time) const {
    return share > 0 ? share * std::max(cycles - time, 0.0) : 0;
  }
};

/// The latest end of the launch: all warps as if alone, and each resource serves everybody
/// meanwhile without anything else going on. MSHRs and places of lines are held one after the
/// other.
double end_one_after_another(const interval::PhaseList& launch,
                             const interval::ResourceDemands& demands, const RoundTrips& trips,
                             const ModelParameters& gpu) {
  double most = 0;    // instructions of an SM
  double rounds = 1;  // blocks of a place
  for (const interval::SmWork& sm : launch.sms) {
    double instructions = 0;
    for (std::size_t p = 0; p < launch.phases.size(); ++p) {
      instructions += sm.depth[p] * std::max(launch.phases[p].warps, 1.0);
    }
    most = std::max(most, instructions);
    rounds = std::max(rounds, sm.rounds);
  }
  Services cycles = busy_times(demands, gpu);
  cycles[issue] = 1 / gpu.issue_rate;
  cycles[tensor] = demands.tensor_cycles / gpu.schedulers;
  cycles[unit] = unit_cycles(demands, gpu) / gpu.schedulers;
  cycles[lsu] += place_waits(demands, gpu);
  double end = launch.span + (rounds - 1) * gpu.block_replacement_cycles;
  for (std::size_t k = issue; k < num_resources; ++k) {
    end += cycles[k] * (k < request_network ? most : launch.instructions);
  }
  if (std::isfinite(trips.mshrs)) end += most * trips.latency / trips.mshrs;
  return end;
}

}  // namespace

double NetworkRate::bounded() const { return std::min(root, bound); }

NetworkRate closed_network_rate(double customers, double think, std::span<const Station> stations) {
  // What has a part: a station's demand, and the rate at which its queue would have no end.
  constexpr std::size_t most_stations = 16;
  std::array<double, most_stations> demands;
  std::array<double, most_stations> poles;
  std::size_t count = 0;
  std::size_t first = 0;  // of the highest pole
  double bound = std::numeric_limits<double>::infinity();
  double queued_alone = 0;
  for (const Station& station : stations) {
    if (station.capacity_cycles > 0) bound = std::min(bound, 1 / station.capacity_cycles);
    if (station.demand == 0) continue;
    // Half of a visit is as without a queue.
    think += station.demand / 2 - station.early;
    demands[count] = station.demand / 2;
    poles[count] = share_of_others(station) * station.capacity_cycles;
    if (poles[count] > poles[first]) first = count;
    queued_alone += demands[count];
    ++count;
  }
  const double alone = think + queued_alone;
  if (!(alone > 0)) return {bound, bound};
  if (count == 0) return {customers / alone, bound};
  // h(x) = x (think + sum of residences) - customers is convex and grows up to the first pole. With
  // a queue at that station only the equation is quadratic; its root lies above the root of h, so
  // that Newton's method comes down to that without a step too far. From near a pole each step is
  // as far again.
  const double queued = customers * poles[first];
  const double apart = alone - queued;
  double rate =
      2 * customers / (alone + queued + std::sqrt(apart * apart + 4 * demands[first] * queued));
  constexpr double exact = 1e-12;
  if (poles[first] > 0) rate = std::min(rate, (1 - exact) / poles[first]);
  constexpr int most_steps = 128;
  for (int step = 0; step < most_steps; ++step) {
    double time = think;
    double slope = think;
    for (std::size_t k = 0; k < count; ++k) {
      const double over_free = 1 / (1 - poles[k] * rate);
      const double here = demands[k] * over_free;
      time += here;
      slope += here * over_free;
    }
    const double above = rate * time - customers;
    const double next = rate - above / slope;
    if (!(above > customers * exact && next < rate)) break;
    rate = next;
  }
  return {rate, bound};
}

ModelResult evaluate_closed_network(const interval::PhaseList& launch,
                                    const interval::ResourceDemands& demands,
                                    const StallLengths& lengths,
                                    const ModelParameters& parameters) {
  const double issue_cycles = 1 / parameters.issue_rate;
  const double own_issue = parameters.schedulers / parameters.issue_rate;
  // A place that is empty between two blocks is a place whose warps wait.
  const double replaced = launch.replacements * parameters.block_replacement_cycles;
  // The launch waits for its last stores as the last block of a place would: time that a place
  // stands still, so that more of it never ends earlier. L2 acknowledges them, whatever DRAM does.
  const double after_stores = std::min(launch.after_stores, parameters.l2_latency);
  const double deepest = deepest_place(launch);
  const double at_the_end = deepest > 0 ? after_stores / deepest : 0;
  const double think = std::max(launch.alone_cycles - own_issue, 0.0) + replaced + at_the_end;
  const double for_stores = std::min(launch.store_cycles + at_the_end, think);
  const TimeAlone alone{think - for_stores, for_stores, &lengths};
  const auto alone_in = [&](double think_of_phase) {
    return TimeAlone{std::max(think_of_phase - for_stores, 0.0), for_stores, &lengths};
  };

  const double of_places = place_waits(demands, parameters);
  const Services awaited = services_of(without_posted(demands), parameters);
  const Shown shown(demands, parameters);
  const RoundTrips trips_alone = round_trips(demands, 1, shown, parameters);
  const CodeFetches code = CodeFetches::of(demands.code, launch);
  std::vector<Solution> solutions(launch.phases.size());
  for (std::size_t p = 0; p < launch.phases.size(); ++p) {
    const double warps = std::max(launch.phases[p].warps, 1.0);
    const double sms = std::max(launch.phases[p].all_warps / warps, 1.0);
    Solution& solution = solutions[p];
    solution.stations = stations_of_warps(demands, awaited, warps, sms, parameters);
    // They depend on the SMs alone, which several phases have in common.
    solution.busy_sms = launch.phases[p].busy_sms;
    const auto* known =
        std::ranges::find(solutions.data(), &solution, solution.busy_sms, &Solution::busy_sms);
    solution.trips = known != &solution
                         ? known->trips
                         : round_trips(demands, solution.busy_sms, shown, parameters);
    solution.stations[lsu].demand += of_places;
    solution.stations[lsu].capacity_cycles += of_places;
    const double lines = demands.missing_lines;
    const double in_step = launch.phases[p].in_step;
    solution.think = think;
    if (in_step > 0) {
      // What the warps of the SM wait for at its own units is in the time that was played.
      for (const Resource k : {issue, tensor, unit, lsu}) {
        solution.stations[k].demand = solution.stations[k].early = 0;
      }
      solution.think = in_step + replaced + at_the_end;
    }
    solution.of_warps = overlapped_rate(warps, solution.think, solution.stations, lines);
    solution.trip_rate = bounded_by_trips(solution.trips, trips_alone, solution.stations);
    solution.rate = std::min(solution.of_warps.bounded(), solution.trip_rate);
    const std::size_t longest = longest_visit(solution.stations, solution.rate, lsu, num_resources);
    solution.stations = overlapped(solution.stations, lines, longest);
  }

  // The launch ends with its last SM.
  double in_phases = 0;
  double draining = 0;
  // The last block starts among all others: its warps go no faster than those of the fullest SM at
  // the start, but for issue, where the oldest go first.
  double paced = 0;
  for (std::size_t p = 0; p < solutions.size(); ++p) {
    if (launch.at_start[p] == 0) continue;
    const Solution& solution = solutions[p];
    const double warps = std::max(launch.phases[p].warps, 1.0);
    const double root = solution.of_warps.root;
    const double issuing = residence(solution.stations[issue], root);
    const double time = warps / root - issuing + (launch.phases[p].in_step > 0 ? 0 : own_issue);
    paced += launch.at_start[p] * (time + code.beyond(time));
  }
  const Burst burst = first_burst(demands, launch, parameters);
  // Before its first access has passed the burst, the last warp waits for the SM to issue all
  // others, and is on its own way.
  const double to_issue = launch.first_warps * issue_cycles;
  const double beside = std::max(think + own_issue, to_issue) + to_issue * demands.loads;
  // Who is alone meets the burst, too.
  const double at_burst =
      burst.cycles > 0 ? burst.cycles * std::min(1 / demands.loads, deepest) : 0;
  double of_burst = 0;
  double issued = 0;  // cycles of the last SM in which it issues
  for (const interval::SmWork& sm : launch.sms) {
    double cycles = 0;
    double longer = 0;
    double issuing = 0;
    for (std::size_t p = 0; p < solutions.size(); ++p) {
      const double running = std::max(launch.phases[p].warps, 1.0) / solutions[p].rate;
      const double time = running + code.beyond(running);
      cycles += sm.depth[p] * time;
      issuing += sm.depth[p] * std::max(launch.phases[p].warps, 1.0) * issue_cycles;
      const double first = std::min(launch.at_start[p] / demands.loads, sm.depth[p]);
      if (burst.cycles > 0) longer += first * std::max(burst.cycles + beside - time, 0.0);
    }
    if (cycles + longer > in_phases) {
      of_burst = longer;
      issued = issuing;
    }
    in_phases = std::max(in_phases, cycles + longer);
    // Where those of the start are soon gone, it takes no longer than all that the SM does.
    const double in_company = std::min(sm.drain_instructions * paced, cycles);
    const double drain = std::max(sm.drain_cycles + after_stores, in_company);
    const double with_burst = std::min(drain + at_burst, std::max(drain, cycles + longer));
    draining = std::max(draining, sm.instructions * issue_cycles + with_burst);
  }
  ModelResult result;
  if (launch.sms.empty()) return result;
  // What the launch takes of the time that its phases would wait.
  double shorter = 1;
  if (launch.has_latest_end) {
    const double latest = end_one_after_another(launch, demands, trips_alone, parameters) +
                          deepest * code.share * code.cycles + after_stores;
    if (in_phases > latest) {
      shorter = std::max(latest - issued, 0.0) / std::max(in_phases - issued, latest - issued);
    }
    in_phases = std::min(in_phases, latest);
    draining = std::min(draining, latest + at_burst);
  }
  const double served = end_of_services(launch, demands, parameters);
  double cycles = std::max({in_phases, launch.span + at_burst + after_stores, served});
  if (parameters.scheduler != gpu::Scheduler::lrr) cycles = std::max(cycles, draining);
  // Warps that are alone wait for their own results.
  Details details;
  divide(cycles - in_phases, alone.by_cause(1), details);
  // No SM ends before its port has moved what it reads.
  if (parameters.noc_sm_bytes_per_cycle > 0) {
    cycles = std::max(
        cycles, launch.instructions * demands.most_read_bytes / parameters.noc_sm_bytes_per_cycle);
  }

  // The stack is that of the mean SM, until its own end.
  for (std::size_t p = 0; p < solutions.size(); ++p) {
    const double warps = std::max(launch.phases[p].warps, 1.0);
    const double instructions = launch.mean_depth[p] * warps;
    if (instructions == 0) continue;
    const double rate = solutions[p].rate;
    details[StackDetail::issue] += instructions * issue_cycles;
    const Details shares =
        lost_to(demands, solutions[p], warps, alone_in(solutions[p].think), issue_cycles, shown);
    divide(instructions * shorter * std::max(1 / rate - issue_cycles, 0.0), shares, details);
    details[StackDetail::instruction_fetch] +=
        launch.mean_depth[p] * code.beyond(warps / rate) * shorter;
    result.sm_instructions += instructions;
  }
  // No load waits for a place yet.
  shown.add(burst.busiest, of_burst * shorter, details);
  result.cycles = cycles;
  result.warp_instructions = launch.instructions;
  for (double& detail : details) detail /= result.sm_instructions;
  result.stack = components_of(details);
  result.details = details;
  result.cpi = result.stack.sum();
  return result;
}

}  // namespace warpstack::model
