#include "model/closed_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "model/network.h"

namespace warpstack::model {
namespace {

using Details = DetailedStack<double>;

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

/// Blocks of the place that has most of them.
double rounds_of(const interval::PhaseList& launch) {
  double rounds = 1;
  for (const interval::SmWork& sm : launch.sms) rounds = std::max(rounds, sm.rounds);
  return rounds;
}

/// What fetching code costs: a share of the instructions goes no faster than its lines come, which
/// all warps of an SM go through together.
struct CodeFetches {
  double share = 0;
  double cycles = 0;  ///< of a warp for an instruction of them, at least

  static CodeFetches of(const memory::CodeWalk& code, const interval::PhaseList& launch) {
    const double rounds = rounds_of(launch);
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
  // What the services of resources take is no end: they work all the time.
  const double ends = cycles - std::max(in_phases, served);
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
  result.ends = std::min(ends + of_burst * shorter, cycles / rounds_of(launch));
  result.warp_instructions = launch.instructions;
  for (double& detail : details) detail /= result.sm_instructions;
  result.stack = components_of(details);
  result.details = details;
  result.cpi = result.stack.sum();
  return result;
}

}  // namespace warpstack::model
