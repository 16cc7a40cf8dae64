#include "model/network.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace warpstack {
namespace {

/// Share of a mean queue that a customer who joins it does not make up itself.
double share_of_others(const Station& station) {
  return 1 - 1 / std::max(station.competitors, 1.0);
}

/// Cycles of a visit, waiting included, at a rate.
double residence(const Station& station, double rate) {
  const double free = 1 - share_of_others(station) * station.capacity_cycles * rate;
  return station.demand == 0 ? 0 : station.demand / free;
}

double bound_of(std::span<const Station> stations) {
  double bound = std::numeric_limits<double>::infinity();
  for (const Station& station : stations) {
    if (station.capacity_cycles > 0) bound = std::min(bound, 1 / station.capacity_cycles);
  }
  return bound;
}

/// What the stations of an SM's memory system are in the network.
enum Resource : std::size_t {
  issue,
  lsu,
  send_port,
  receive_port,
  request_network,
  reply_network,
  l2,
  dram
};
constexpr std::size_t num_resources = 8;
using Stations = std::array<Station, num_resources>;

/// Where the time at a station shows in the stack.
constexpr std::array<StackComponent, num_resources> shown_as = {
    StackComponent::base, StackComponent::l1,  StackComponent::noc, StackComponent::noc,
    StackComponent::noc,  StackComponent::noc, StackComponent::l2,  StackComponent::queue};

double& part(Stack& stack, StackComponent component) {
  return stack[static_cast<std::size_t>(component)];
}

/// The stations that a warp instruction visits while so many SMs run so many warps each. What all
/// SMs share serves the requests of all.
Stations stations_of(const Demands& demands, double warps, double sms, const ModelParameters& gpu) {
  const double noc_cycles_per_byte = gpu.clock_ghz / gpu.noc_bandwidth_gbs;
  const double dram_cycles_per_byte = gpu.clock_ghz / gpu.dram_bandwidth_gbs;
  const auto own = [&](double cycles) { return Station{cycles, cycles, warps}; };
  const auto shared = [&](double cycles) { return Station{cycles, cycles * sms, warps * sms}; };
  Stations stations;
  stations[issue] = own(1 / gpu.issue_rate);
  stations[lsu] = own(demands.lsu_cycles);
  const double sent = demands.write_bytes + demands.read_misses * gpu.noc_control_bytes;
  if (gpu.noc_sm_bytes_per_cycle > 0) {
    stations[send_port] = own(sent / gpu.noc_sm_bytes_per_cycle);
    stations[receive_port] = own(demands.read_bytes / gpu.noc_sm_bytes_per_cycle);
  }
  stations[request_network] = shared(sent * noc_cycles_per_byte);
  stations[reply_network] = shared(demands.read_bytes * noc_cycles_per_byte);
  stations[l2] = shared((demands.read_misses + demands.write_requests) / gpu.l2_requests_per_cycle);
  stations[dram] = shared(demands.dram_bytes * dram_cycles_per_byte);
  return stations;
}

/// The round trips of misses, each of which holds an MSHR.
struct RoundTrips {
  double rate = std::numeric_limits<double>::infinity();  ///< instructions per cycle they allow
  Stack time{};                                           ///< of a trip, by cause
};

RoundTrips round_trips(const Demands& demands, const Stations& stations,
                       const ModelParameters& gpu) {
  RoundTrips result;
  if (demands.read_misses == 0) return result;
  const double latency =
      gpu.l2_latency + demands.dram_read_requests / demands.read_misses * gpu.dram_latency;
  // A miss takes its share of what an instruction takes, writes included: they pass the same
  // queues.
  std::array<Station, num_resources> of_miss{};
  for (std::size_t k = send_port; k < num_resources; ++k) {
    const double sms =
        stations[k].demand > 0 ? stations[k].capacity_cycles / stations[k].demand : 1;
    of_miss[k] = {stations[k].demand / demands.read_misses,
                  stations[k].capacity_cycles / demands.read_misses, gpu.l1_mshrs * sms};
  }
  const double misses = network_rate(gpu.l1_mshrs, latency, of_miss);
  result.rate = misses / demands.read_misses;
  part(result.time, StackComponent::mshr) = latency;
  for (std::size_t k = send_port; k < num_resources; ++k) {
    part(result.time, shown_as[k]) += residence(of_miss[k], misses);
  }
  return result;
}

/// The warps of a launch start together, so that their first accesses meet; how long the station
/// that these keep busy longest needs for them. Then its service has spread the warps.
struct Burst {
  double cycles = 0;
  StackComponent shown = StackComponent::base;
};

Burst first_burst(const Demands& demands, const PhaseList& launch, const ModelParameters& gpu) {
  Burst burst;
  if (demands.memory_instructions == 0) return burst;
  const Stations stations = stations_of(demands, launch.first_warps, launch.first_sms, gpu);
  for (std::size_t k = lsu; k < num_resources; ++k) {
    const double cycles =
        launch.first_warps * stations[k].capacity_cycles / demands.memory_instructions;
    if (cycles > burst.cycles) burst = {cycles, shown_as[k]};
  }
  return burst;
}

/// Adds `cycles` to the parts of a stack as `shares` are.
void divide(double cycles, const Stack& shares, Stack& stack) {
  double total = 0;
  for (const double share : shares) total += share;
  if (total <= 0) {
    part(stack, StackComponent::dep) += cycles;
    return;
  }
  for (std::size_t c = 0; c < num_stack_components; ++c) stack[c] += cycles * shares[c] / total;
}

}  // namespace

double network_rate(double customers, double think, std::span<const Station> stations) {
  const double bound = bound_of(stations);
  // h(x) = x (think + sum of residences) - customers is convex and grows up to the first pole.
  const Station* first = nullptr;
  double alone = think;
  for (const Station& station : stations) {
    alone += station.demand;
    if (station.demand == 0) continue;
    if (first == nullptr || share_of_others(station) * station.capacity_cycles >
                                share_of_others(*first) * first->capacity_cycles) {
      first = &station;
    }
  }
  if (!(alone > 0)) return bound;
  double rate = customers / alone;
  if (first != nullptr) {
    // With a queue at this station only the equation is quadratic; its root lies above the root of
    // h, so that Newton's method comes down to that without a step too far.
    const double pole = share_of_others(*first) * first->capacity_cycles;
    const double rest = alone - first->demand;
    const double b = alone + customers * pole;
    rate = 2 * customers / (b + std::sqrt(std::max(b * b - 4 * rest * pole * customers, 0.0)));
    constexpr int most_steps = 64;
    for (int step = 0; step < most_steps && rate > 0; ++step) {
      double time = think;
      double slope = think;
      for (const Station& station : stations) {
        if (station.demand == 0) continue;
        const double free = 1 - share_of_others(station) * station.capacity_cycles * rate;
        time += station.demand / free;
        slope += station.demand / (free * free);
      }
      const double next = rate - (rate * time - customers) / slope;
      const bool done = !(next < rate * (1 - 1e-13));
      if (next > 0 && next < rate) rate = next;
      if (done) break;
    }
  }
  return std::min(rate, bound);
}

ModelResult evaluate_network(const PhaseList& launch, const Demands& demands,
                             const std::array<double, num_stall_causes>& stall_shares,
                             const ModelParameters& parameters) {
  constexpr std::array<StackComponent, num_stall_causes> components = {
      StackComponent::dep, StackComponent::l1, StackComponent::l2, StackComponent::dram};
  const double issue_cycles = 1 / parameters.issue_rate;
  ModelResult result;
  double sm_cycles = 0;
  for (const Phase& phase : launch.phases) {
    if (!(phase.instructions > 0)) continue;
    const double warps = std::max(phase.warps, 1.0);
    const double think = std::max(phase.warp_cycles / phase.instructions - issue_cycles, 0.0);
    const double sms = std::max(phase.active_sms, 1.0);
    const Stations stations = stations_of(demands, warps, sms, parameters);
    const double unbounded = network_rate(warps, think, stations);
    const RoundTrips trips = round_trips(demands, stations, parameters);
    const double rate = std::min(unbounded, trips.rate);

    // A warp's time per instruction, by cause; what is not issue shows as far as it is not hidden.
    Stack shares{};
    double other = 0;
    for (std::size_t c = 0; c < num_stall_causes; ++c) {
      part(shares, components[c]) = think * stall_shares[c];
      other += stall_shares[c];
    }
    part(shares, StackComponent::dep) += think * std::max(1 - other, 0.0);
    double time = think;
    double busiest = 0;
    StackComponent bottleneck = StackComponent::base;
    for (std::size_t k = 0; k < num_resources; ++k) {
      const double here = residence(stations[k], rate);
      time += here;
      if (k != issue) part(shares, shown_as[k]) += here;
      if (stations[k].capacity_cycles > busiest) {
        busiest = stations[k].capacity_cycles;
        bottleneck = shown_as[k];
      }
    }
    const double waiting = std::max(warps / rate - time, 0.0);
    if (trips.rate < unbounded) {
      divide(waiting, trips.time, shares);
    } else if (bottleneck != StackComponent::base) {
      part(shares, bottleneck) += waiting;
    }
    Stack stack{};
    part(stack, StackComponent::base) = issue_cycles;
    divide(std::max(1 / rate - issue_cycles, 0.0), shares, stack);

    double cycles = 0;
    for (std::size_t c = 0; c < num_stack_components; ++c) {
      result.stack[c] += phase.instructions * stack[c];
      cycles += phase.instructions * stack[c];
    }
    sm_cycles += cycles;
    result.cycles += cycles / sms;
    result.warp_instructions += phase.instructions;
  }
  const Burst burst = first_burst(demands, launch, parameters);
  result.cycles += burst.cycles;
  sm_cycles += burst.cycles * launch.first_sms;
  part(result.stack, burst.shown) += burst.cycles * launch.first_sms;
  for (double& component : result.stack) component /= result.warp_instructions;
  result.cpi = sm_cycles / result.warp_instructions;
  result.sm_instructions = result.cycles / result.cpi;
  return result;
}

}  // namespace warpstack
