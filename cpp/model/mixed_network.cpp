#include "model/mixed_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace warpstack::model {
namespace {

/// The class of instructions that keeps its unit busiest.
std::size_t busiest_unit(const interval::ResourceDemands& demands, const ModelParameters& gpu) {
  std::size_t busiest = 0;
  double most = 0;
  for (std::size_t c = 0; c < gpu.unit_intervals.size(); ++c) {
    const double cycles = demands.unit_instructions[c] * gpu.unit_intervals[c];
    if (gpu.unit_intervals[c] > 1 && cycles > most) {
      busiest = c;
      most = cycles;
    }
  }
  return busiest;
}

/// Customers of one class in one group.
struct Population {
  std::size_t group = 0;
  std::size_t of_class = 0;
  double warps = 0;  ///< on an SM
};

/// The equations of all populations.
class Equations {
 public:
  Equations(std::span<const CustomerClass> classes, std::span<const SmGroup> groups, double mshrs)
      : classes_(classes), groups_(groups), mshrs_(mshrs) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t c = 0; c < classes.size(); ++c) {
        const double blocks = groups[g].blocks[c];
        if (blocks > 0) populations_.push_back({g, c, blocks * classes[c].warps_per_block});
      }
    }
  }

  [[nodiscard]] const std::vector<Population>& populations() const { return populations_; }

  /// Cycles of an instruction of each population at the SM's rates of all of them. False where a
  /// station would have no end of a queue.
  bool times(const std::vector<double>& rates, std::vector<double>& result) const {
    // What a station has of each group: how busy it is, and the service that is under way.
    struct Queue {
      double busy = 0;
      double residual = 0;
    };
    std::vector<std::array<Queue, num_mixed_stations>> of_group(groups_.size());
    std::array<Queue, num_mixed_stations> of_all{};
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      const Population& one = populations_[p];
      const auto& visits = classes_[one.of_class].visits;
      for (std::size_t k = 0; k < num_mixed_stations; ++k) {
        const auto& visit = visits[k];
        if (visit.busy == 0) continue;
        const double busy =
            visit.busy * rates[p] * (is_shared_by_sms(k) ? groups_[one.group].sms : 1);
        Queue& queue = is_shared_by_sms(k) ? of_all[k] : of_group[one.group][k];
        queue.busy += busy;
        queue.residual += busy * visit.service / 2;
      }
    }
    result.assign(populations_.size(), 0);
    Held misses{populations_.size()};
    Held stores{populations_.size()};
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      const Population& one = populations_[p];
      const CustomerClass& its = classes_[one.of_class];
      double time = its.think;
      double behind_ports = 0;  // of what is waited for, waiting and service beyond L1
      double store = 0;         // of a store
      for (std::size_t k = 0; k < num_mixed_stations; ++k) {
        const auto& visit = its.visits[k];
        if (visit.busy == 0) continue;
        const double sms = is_shared_by_sms(k) ? groups_[one.group].sms : 1;
        const Queue& queue = is_shared_by_sms(k) ? of_all[k] : of_group[one.group][k];
        const double customers =
            std::max(one.warps * sms / visit.sharers / std::min(visit.in_step, one.warps), 1.0);
        const double own = visit.busy * rates[p] * sms;
        // Nobody waits for itself; but what the station can do is everybody's.
        if (queue.busy >= 1) return false;
        const double ahead = queue.residual - own / customers * visit.service / 2;
        const double wait = std::max(ahead, 0.0) / (1 - queue.busy);
        const bool is_behind = k >= send_port && k < num_resources;
        if (is_behind) store += visit.service + wait;
        if (visit.demand == 0) continue;
        const double visit_time = visit.demand + visit.count * wait;
        time += visit_time - visit.early;
        if (is_behind) behind_ports += visit_time;
      }
      misses.count[p] = its.held_misses;
      misses.cycles[p] = its.trip;
      if (its.waiting_loads > 0) misses.cycles[p] += behind_ports / its.waiting_loads;
      stores.count[p] = its.posted;
      stores.cycles[p] = store;
      constexpr double shortest = 1e-9;  // of who does nothing
      result[p] = std::max(time, shortest);
    }
    return wait_for(misses, rates, result) && wait_for(stores, rates, result);
  }

 private:
  /// Places of an SM that are held for a while, by population.
  struct Held {
    explicit Held(std::size_t populations) : count(populations), cycles(populations) {}
    std::vector<double> count;   ///< of an instruction
    std::vector<double> cycles;  ///< for which each is held
  };

  bool wait_for(const Held& held, const std::vector<double>& rates,
                std::vector<double>& result) const {
    const double exponent = std::sqrt(2 * (mshrs_ + 1)) - 1;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      double cycles = 0;
      double count = 0;
      for (std::size_t p = 0; p < populations_.size(); ++p) {
        if (populations_[p].group != g) continue;
        count += rates[p] * held.count[p];
        cycles += rates[p] * held.count[p] * held.cycles[p];
      }
      if (cycles == 0) continue;
      const double busy = cycles / mshrs_;
      if (busy >= 1) return false;
      const double wait = cycles / count / mshrs_ * std::pow(busy, exponent) / (1 - busy);
      for (std::size_t p = 0; p < populations_.size(); ++p) {
        // Each of the requests of an instruction waits for a place behind those before it.
        if (populations_[p].group == g) result[p] += wait * held.count[p];
      }
    }
    return true;
  }

  std::span<const CustomerClass> classes_;
  std::span<const SmGroup> groups_;
  double mshrs_;
  std::vector<Population> populations_;
};

/// Solves a x = b for a small system; `a` by rows. False where it has no one solution.
bool solve(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row * n + column]) > std::abs(a[pivot * n + column])) pivot = row;
    }
    if (!(std::abs(a[pivot * n + column]) > 0)) return false;
    if (pivot != column) {
      for (std::size_t k = 0; k < n; ++k) std::swap(a[pivot * n + k], a[column * n + k]);
      std::swap(b[pivot], b[column]);
    }
    for (std::size_t row = column + 1; row < n; ++row) {
      const double factor = a[row * n + column] / a[column * n + column];
      if (factor == 0) continue;
      for (std::size_t k = column; k < n; ++k) a[row * n + k] -= factor * a[column * n + k];
      b[row] -= factor * b[column];
    }
  }
  for (std::size_t row = n; row-- > 0;) {
    for (std::size_t k = row + 1; k < n; ++k) b[row] -= a[row * n + k] * b[k];
    b[row] /= a[row * n + row];
  }
  return true;
}

/// By how much the rates that follow from the times are above the rates that the times follow from,
/// of those without a queue, where each population has a share of its warps. In the rates this is
/// nearly linear: with little to do the times hardly change, and close to the end of a station's
/// capacity their reciprocals fall in a line.
bool distances(const Equations& equations, double share, const std::vector<double>& rates,
               const std::vector<double>& free, std::vector<double>& times,
               std::vector<double>& result) {
  if (!equations.times(rates, times)) return false;
  result.resize(rates.size());
  for (std::size_t p = 0; p < rates.size(); ++p) {
    result[p] = (share * equations.populations()[p].warps / times[p] - rates[p]) / free[p];
  }
  return true;
}

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

/// Newton's method, from rates that all stations can serve. False where it does not get there.
bool approach(const Equations& equations, double share, const std::vector<double>& free,
              std::vector<double>& rates, std::vector<double>& times) {
  constexpr int most_steps = 100;
  constexpr double exact = 1e-11;
  constexpr double step_of_slope = 1e-6;
  constexpr double smallest_part = 1e-6;
  const std::size_t n = rates.size();
  std::vector<double> distance;
  std::vector<double> nearby;
  std::vector<double> other_times;
  if (!distances(equations, share, rates, free, times, distance)) return false;
  for (int step = 0; step < most_steps; ++step) {
    if (sum_of_squares(distance) <= exact * exact) return true;
    // Slopes by differences; downwards, where every rate has an answer.
    std::vector<double> slopes(n * n);
    for (std::size_t column = 0; column < n; ++column) {
      std::vector<double> moved = rates;
      const double by = step_of_slope * rates[column];
      moved[column] -= by;
      if (!distances(equations, share, moved, free, other_times, nearby)) return false;
      for (std::size_t row = 0; row < n; ++row) {
        slopes[row * n + column] = (distance[row] - nearby[row]) / by;
      }
    }
    std::vector<double> change = distance;
    if (!solve(slopes, change)) return false;
    // Half as far where a queue would have no end, or nothing is gained.
    bool is_nearer = false;
    for (double part = 1; part > smallest_part && !is_nearer; part /= 2) {
      std::vector<double> next = rates;
      for (std::size_t p = 0; p < n; ++p) {
        next[p] = std::max(rates[p] - part * change[p], rates[p] / 2);
      }
      is_nearer = distances(equations, share, next, free, other_times, nearby) &&
                  sum_of_squares(nearby) < sum_of_squares(distance);
      if (is_nearer) rates = std::move(next);
    }
    if (!is_nearer) return false;
    times = other_times;
    distance = nearby;
  }
  return false;
}

/// Goes to where rates and times agree in small steps: the way for where Newton's method finds
/// none.
void relax(const Equations& equations, std::vector<double>& rates) {
  constexpr int most_steps = 20000;
  constexpr double exact = 1e-9;
  constexpr double largest_power = 0.5;
  double power = largest_power;
  std::vector<double> times;
  std::vector<double> other_times;
  equations.times(rates, times);
  double last = std::numeric_limits<double>::infinity();
  for (int step = 0; step < most_steps; ++step) {
    std::vector<double> next = rates;
    double furthest = 0;
    for (std::size_t p = 0; p < rates.size(); ++p) {
      const double off = equations.populations()[p].warps / times[p] / rates[p];
      furthest = std::max(furthest, std::abs(std::log(off)));
      next[p] *= std::pow(off, power);
    }
    if (furthest <= exact) return;
    if (furthest > last || !equations.times(next, other_times)) {
      power /= 2;
      last = std::numeric_limits<double>::infinity();
      if (power < exact) return;
      continue;
    }
    last = furthest;
    rates = std::move(next);
    times = other_times;
    power = std::min(power * 1.05, largest_power);
  }
}

}  // namespace

CustomerClass customers_of(const interval::PhaseList& launch,
                           const interval::ResourceDemands& demands, double warps_per_block,
                           double places, const ModelParameters& gpu) {
  CustomerClass customers;
  customers.warps_per_block = std::max(warps_per_block, 1.0);
  const double own_issue = gpu.schedulers / gpu.issue_rate;
  customers.think = std::max(launch.alone_cycles - own_issue, 0.0) +
                    launch.replacements * gpu.block_replacement_cycles;
  const double warps = customers.warps_per_block * std::max(places, 1.0);
  const double sms = std::max(launch.phases.empty() ? 1.0 : launch.phases.front().busy_sms, 1.0);
  const Services awaited = services_of(without_posted(demands), gpu);
  Stations all = stations_of(demands, warps, sms, gpu);
  Stations own = stations_of_warps(demands, awaited, warps, sms, gpu);
  const double of_places = place_waits(demands, gpu);
  for (Stations* stations : {&all, &own}) {
    (*stations)[lsu].demand += of_places;
    (*stations)[lsu].capacity_cycles += of_places;
  }
  // The lines of its loads overlap as they do where it is alone.
  const double lines = demands.missing_lines;
  const NetworkRate alone = overlapped_rate(warps, customers.think, own, lines);
  const std::size_t longest = longest_visit(own, alone.bounded(), lsu, num_resources);
  own = overlapped(own, lines, longest);
  all = overlapped(all, lines, longest);

  double computing = 0;
  for (const double count : demands.unit_instructions) computing += count;
  const double accesses = std::clamp(1 - computing, 1e-6, 1.0);
  // A load that misses visits what is behind L1 once with all of its lines; so does a store.
  const double asked = demands.missing_loads +
                       (demands.write_requests - demands.posted_requests) / std::max(lines, 1.0);
  const double missing = std::clamp(asked, 1e-6, 1.0);
  const double with_posted =
      std::clamp(asked + demands.posted_requests / std::max(lines, 1.0), 1e-6, 1.0);
  for (std::size_t k = 0; k < num_resources; ++k) {
    const bool is_behind = k >= send_port;
    Visit visit;
    visit.demand = own[k].demand;
    visit.early = own[k].early;
    visit.busy = own[k].capacity_cycles / (is_shared_by_sms(k) ? sms : 1);
    visit.count = k < lsu ? 1 : is_behind ? missing : accesses;
    visit.service = visit.demand > 0 ? visit.demand / visit.count
                                     : all[k].demand / (is_behind ? with_posted : 1);
    if (k == issue || k == tensor || k == unit) visit.sharers = gpu.schedulers;
    if (k == lsu) visit.in_step = demands.warps_in_step;
    if (k == tensor) visit.in_step = std::max(demands.warps_in_step / gpu.schedulers, 1.0);
    if (k == unit) {
      const std::size_t of = busiest_unit(demands, gpu);
      visit.count = std::max(demands.unit_instructions[of], 1e-6);
      visit.service = visit.demand / visit.count;
      customers.visits[num_resources + of] = visit;
    } else {
      customers.visits[k] = visit;
    }
  }
  customers.held_misses = std::max(demands.read_misses - demands.misses_past_l1, 0.0);
  customers.waiting_loads = demands.missing_loads;
  customers.posted = demands.posted_requests / std::max(lines, 1.0);
  if (customers.held_misses > 0) {
    customers.trip =
        gpu.l2_latency + demands.dram_read_requests / demands.read_misses * gpu.dram_latency;
  }
  return customers;
}

std::vector<double> mixed_network_times(std::span<const CustomerClass> classes,
                                        std::span<const SmGroup> groups, double mshrs) {
  const Equations equations(classes, groups, mshrs);
  const auto& populations = equations.populations();
  const std::size_t n = populations.size();
  std::vector<double> answer(groups.size() * classes.size(),
                             std::numeric_limits<double>::infinity());
  if (n == 0) return answer;
  std::vector<double> times;
  std::vector<double> rates(n, 0);
  equations.times(rates, times);
  std::vector<double> free(n);
  for (std::size_t p = 0; p < n; ++p) free[p] = rates[p] = populations[p].warps / times[p];
  // From so few warps that they hardly meet, to all of them: what the stations serve of the fewer
  // they serve of more.
  double share = 1;
  while (!equations.times(rates, times)) {
    share /= 2;
    for (double& rate : rates) rate /= 2;
  }
  constexpr double less = 4;
  constexpr double least_more = 1.02;
  for (double& rate : rates) rate /= less;
  share /= less;
  double more = 2;
  bool is_there = false;
  while (true) {
    const std::vector<double> before = rates;
    is_there = approach(equations, share, free, rates, times);
    if (!is_there && more > least_more) {
      // Fewer at once.
      rates = before;
      share /= more;
      more = std::sqrt(more);
    } else if (share == 1) {
      break;
    }
    share = std::min(share * more, 1.0);
  }
  if (!is_there) relax(equations, rates);
  for (std::size_t p = 0; p < n; ++p) {
    answer[populations[p].group * classes.size() + populations[p].of_class] =
        populations[p].warps / rates[p];
  }
  return answer;
}

}  // namespace warpstack::model
