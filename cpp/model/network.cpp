#include "model/network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/reference_machine.h"

namespace warpstack::model {
namespace {

/// Whether a visit to `a` is no shorter than one to `b` at any rate.
bool is_always_longer(const Station& a, const Station& b) {
  return a.demand >= b.demand && a.early <= b.early &&
         share_of_others(a) * a.capacity_cycles >= share_of_others(b) * b.capacity_cycles;
}

}  // namespace

double share_of_others(const Station& station) {
  return 1 - 1 / std::max(station.competitors, 1.0);
}

double residence(const Station& station, double rate) {
  const double free = 1 - share_of_others(station) * station.capacity_cycles * rate;
  return station.demand == 0 ? 0 : station.demand / 2 * (1 + 1 / free) - station.early;
}

double turnaround_cycles(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
  if (!(demands.dram_bytes > 0)) return 0;
  const double writes = demands.dram_write_bytes / demands.dram_bytes;
  return demands.dram_bytes / gpu.l2_request_bytes * writes * (1 - writes) *
         gpu.dram_turnaround_cycles;
}

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
  cycles[dram] += turnaround_cycles(demands, gpu);
  cycles[dram] *= demands.dram_imbalance;
  return cycles;
}

Services busy_times(interval::ResourceDemands demands, const ModelParameters& gpu) {
  demands.hottest_slice_turns = std::max(demands.hottest_slice_turns, demands.crowded_slice_turns);
  return services_of(demands, gpu);
}

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

std::optional<std::size_t> busiest_unit(const interval::ResourceDemands& demands,
                                        const ModelParameters& gpu) {
  std::optional<std::size_t> busiest;
  double most = 0;
  for (std::size_t c = 0; c < gpu.unit_intervals.size(); ++c) {
    const double cycles = demands.unit_instructions[c] * gpu.unit_intervals[c];
    if (gpu.unit_intervals[c] <= 1 || cycles <= most) continue;
    busiest = c;
    most = cycles;
  }
  return busiest;
}

double unit_cycles(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
  const auto busiest = busiest_unit(demands, gpu);
  return busiest ? demands.unit_instructions[*busiest] * gpu.unit_intervals[*busiest] : 0;
}

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

Stations stations_of_warps(const interval::ResourceDemands& demands, const Services& awaited,
                           double warps, double sms, const ModelParameters& gpu) {
  Stations stations = stations_of(demands, warps, sms, gpu);
  for (std::size_t k = send_port; k < num_resources; ++k) {
    stations[k].demand = std::min(stations[k].demand, awaited[k]);
  }
  return stations;
}

std::size_t longest_visit(const Stations& stations, double rate, std::size_t from, std::size_t to) {
  std::size_t longest = from;
  for (std::size_t k = from + 1; k < to; ++k) {
    if (residence(stations[k], rate) > residence(stations[longest], rate)) longest = k;
  }
  return longest;
}

Stations overlapped(Stations stations, double lines, std::size_t longest) {
  for (std::size_t k = lsu; k < num_resources; ++k) {
    if (k == longest) continue;
    stations[k].demand /= lines;
    stations[k].early /= lines;
  }
  return stations;
}

double place_waits(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
  using Reference = gpu::ReferenceMachine;
  return demands.place_wait_l2 * gpu.l2_latency / Reference::l2 +
         demands.place_wait_dram * (gpu.l2_latency + gpu.dram_latency) / Reference::round_trips[2];
}

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

}  // namespace warpstack::model
