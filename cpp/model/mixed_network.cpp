#include "model/mixed_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace warpstack::model {
namespace {

/// Customers of one class in one group.
struct Population {
  std::size_t group = 0;
  std::size_t of_class = 0;
  double warps = 0;  ///< on an SM
};

/// ln(free), and in a straight line from where a station has less than `least` left: stations that
/// could not serve all who come have an answer, too.
double log_of_free(double free, double least) {
  return free >= least ? std::log(free) : std::log(least) + (free - least) / least;
}
double slope_of_log(double free, double least) { return 1 / std::max(free, least); }

/// The equations of all populations, in the waits at what they share.
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
    queue_of_.assign(populations_.size(), {});
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      queue_of_[p].fill(nothing);
      for (std::size_t k = 0; k < num_mixed_stations; ++k) {
        const Visit& visit = its(populations_[p]).visits[k];
        if (visit.busy == 0) continue;
        std::size_t& queue = queue_of_[p][k];
        for (std::size_t other = 0; other < p && queue == nothing; ++other) {
          if (share(populations_[p], populations_[other], k)) queue = queue_of_[other][k];
        }
        if (queue == nothing) {
          queue = waits.size();
          waits.push_back(0);
        }
        waits[queue] = std::max({waits[queue], visit.service, shortest});
      }
    }
    num_queues_ = waits.size();
    for (auto* places : {&misses_, &stores_}) {
      places->assign(groups.size(), nothing);
      for (const Population& one : populations_) {
        const double held = places == &misses_ ? its(one).held_misses : its(one).posted;
        if (held == 0 || (*places)[one.group] != nothing) continue;
        (*places)[one.group] = waits.size();
        waits.push_back(1);
      }
    }
    own_.assign(populations_.size(), {});
    times.resize(populations_.size());
  }

  [[nodiscard]] const std::vector<Population>& populations() const { return populations_; }

  /// The excess of the logarithm of each wait. With little to do it depends on this wait
  /// alone. Returns what the busiest has left of its capacity.
  double misfits(const std::vector<double>& of_waits, double least, std::vector<double>& result) {
    find_times(of_waits);
    double least_free = 1;
    busy_.assign(num_queues_, 0);
    residual_.assign(num_queues_, 0);
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      const Population& one = populations_[p];
      for (std::size_t k = 0; k < num_mixed_stations; ++k) {
        const Visit& visit = its(one).visits[k];
        if (visit.busy == 0) continue;
        const double of_these = visit.busy * rate(p) * sharing_sms(one, k);
        busy_[queue_of_[p][k]] += of_these;
        residual_[queue_of_[p][k]] += of_these * visit.service / 2;
      }
    }
    result.resize(of_waits.size());
    for (std::size_t q = 0; q < num_queues_; ++q) {
      const double free = 1 - busy_[q];
      least_free = std::min(least_free, free);
      const double queued = std::max(residual_[q], nearly_nothing);
      result[q] = std::log(of_waits[q] / queued) + log_of_free(free, least);
    }
    for (const Places of : {Places::of_misses, Places::of_stores}) {
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const std::size_t wait = queue_of(of, g);
        if (wait == nothing) continue;
        const Held held = held_in(of, g);
        least_free = std::min(least_free, 1 - held.full(mshrs_));
        const double mean = std::max(held.cycles, nearly_nothing) / held.count;
        result[wait] = std::log(of_waits[wait] / mean * mshrs_) -
                       exponent() * std::log(held.full(mshrs_)) +
                       log_of_free(1 - held.full(mshrs_), least);
      }
    }
    return least_free;
  }

  /// How the misfits of the last waits change with the logarithm of each wait, by row: each wait
  /// makes those slower who wait there, and these then do less at all of their stations.
  void slopes(const std::vector<double>& of_waits, double least,
              std::vector<double>& result) const {
    const std::size_t n = of_waits.size();
    result.assign(n * n, 0);
    for (std::size_t q = 0; q < n; ++q) result[q * n + q] = 1;
    std::vector<Effect> effects;
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      if (times[p] <= shortest) continue;
      find_effects(p, of_waits, effects);
      const Population& one = populations_[p];
      const std::array<Held, 2> all_held = {held_in(Places::of_misses, one.group),
                                            held_in(Places::of_stores, one.group)};
      for (const Effect& effect : effects) {
        const double of_rate = -rate(p) / times[p] * effect.time;
        for (std::size_t k = 0; k < num_mixed_stations; ++k) {
          const Visit& visit = its(one).visits[k];
          if (visit.busy == 0) continue;
          const std::size_t queue = queue_of_[p][k];
          const double of_busy = visit.busy * sharing_sms(one, k) * of_rate;
          double& slope = result[queue * n + effect.queue];
          slope -= slope_of_log(1 - busy_[queue], least) * of_busy;
          if (residual_[queue] > nearly_nothing) {
            slope -= of_busy * visit.service / 2 / residual_[queue];
          }
        }
        for (const Places of : {Places::of_misses, Places::of_stores}) {
          const std::size_t queue = queue_of(of, one.group);
          const double count = count_of(of, one);
          if (queue == nothing || count == 0) continue;
          const Held& held = all_held[static_cast<std::size_t>(of)];
          const double of_stay = of == Places::of_misses ? effect.trip : effect.stay;
          const double of_cycles = count * (of_rate * stay_of(of, p) + rate(p) * of_stay);
          double& slope = result[queue * n + effect.queue];
          slope += count * of_rate / held.count;
          if (held.cycles > nearly_nothing) slope -= of_cycles / held.cycles;
          if (held.cycles / mshrs_ > hardly_full) {
            const double full = held.full(mshrs_);
            slope -= (exponent() / full + slope_of_log(1 - full, least)) * of_cycles / mshrs_;
          }
        }
      }
    }
  }

  /// Finds which share of a queue is a customer's own, which it does not wait for. Returns by how
  /// much a share has changed.
  double find_own() {
    double change = 0;
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      const Population& one = populations_[p];
      for (std::size_t k = 0; k < num_mixed_stations; ++k) {
        const Visit& visit = its(one).visits[k];
        const double residual = visit.busy == 0 ? 0 : residual_[queue_of_[p][k]];
        if (residual == 0) continue;
        const double sms = sharing_sms(one, k);
        const double customers =
            std::max(one.warps * sms / visit.sharers / std::min(visit.in_step, one.warps), 1.0);
        const double own = visit.busy * rate(p) * sms / customers * visit.service / 2;
        const double share = std::min(own / residual, 1.0);
        change = std::max(change, std::abs(share - own_[p][k]));
        own_[p][k] = share;
      }
    }
    return change;
  }

  std::vector<double> waits;  ///< to begin with, then the solution
  std::vector<double> times;  ///< cycles of an instruction, by population, of the last waits

 private:
  static constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();
  static constexpr double shortest = 1e-9;
  static constexpr double nearly_nothing = 1e-12;
  static constexpr double hardly_full = 1e-3;  ///< nobody waits for a place

  /// What is held: MSHRs, or places of stores on their way.
  enum class Places : std::uint8_t { of_misses, of_stores };
  /// Who holds places of an SM.
  struct Held {
    double cycles = 0;
    double count = 0;
    [[nodiscard]] double full(double places) const {
      return std::max(cycles / places, hardly_full);
    }
  };
  /// What the logarithm of a wait does to one population.
  struct Effect {
    std::size_t queue = 0;
    double time = 0;
    double trip = 0;
    double stay = 0;
  };

  [[nodiscard]] std::size_t queue_of(Places of, std::size_t group) const {
    return (of == Places::of_misses ? misses_ : stores_)[group];
  }
  [[nodiscard]] double count_of(Places of, const Population& one) const {
    return of == Places::of_misses ? its(one).held_misses : its(one).posted;
  }
  [[nodiscard]] double stay_of(Places of, std::size_t p) const {
    return (of == Places::of_misses ? trips_ : stays_)[p];
  }
  [[nodiscard]] double exponent() const { return std::sqrt(2 * (mshrs_ + 1)) - 1; }
  [[nodiscard]] Held held_in(Places of, std::size_t group) const {
    Held held;
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      if (populations_[p].group != group) continue;
      const double count = rate(p) * count_of(of, populations_[p]);
      held.count += count;
      held.cycles += count * stay_of(of, p);
    }
    return held;
  }
  void find_effects(std::size_t p, const std::vector<double>& of_waits,
                    std::vector<Effect>& effects) const {
    const Population& one = populations_[p];
    effects.clear();
    for (std::size_t k = 0; k < num_mixed_stations; ++k) {
      const Visit& visit = its(one).visits[k];
      if (visit.busy == 0) continue;
      const double wait = of_waits[queue_of_[p][k]] * (1 - own_[p][k]);
      Effect effect{.queue = queue_of_[p][k]};
      if (is_behind_ports(k)) effect.stay = wait;
      if (visit.demand > 0) effect.time = visit.count * wait;
      if (is_behind_ports(k) && its(one).waiting_loads > 0) {
        effect.trip = effect.time / its(one).waiting_loads;
      }
      effects.push_back(effect);
    }
    for (const Places of : {Places::of_misses, Places::of_stores}) {
      const std::size_t queue = queue_of(of, one.group);
      if (queue == nothing) continue;
      effects.push_back({.queue = queue, .time = of_waits[queue] * count_of(of, one)});
    }
  }

  [[nodiscard]] const CustomerClass& its(const Population& one) const {
    return classes_[one.of_class];
  }
  /// Whether two populations wait in one queue at a station.
  [[nodiscard]] static bool share(const Population& one, const Population& other, std::size_t k) {
    return is_of_one_class(k) ? one.of_class == other.of_class
                              : is_shared_by_sms(k) || one.group == other.group;
  }
  [[nodiscard]] double sharing_sms(const Population& one, std::size_t station) const {
    return is_shared_by_sms(station) ? groups_[one.group].sms : 1;
  }
  [[nodiscard]] double rate(std::size_t p) const { return populations_[p].warps / times[p]; }

  void find_times(const std::vector<double>& of_waits) {
    trips_.assign(populations_.size(), 0);
    stays_.assign(populations_.size(), 0);
    for (std::size_t p = 0; p < populations_.size(); ++p) {
      const Population& one = populations_[p];
      double time = its(one).think;
      double behind_ports = 0;  // of what is waited for, waiting and service beyond L1
      for (std::size_t k = 0; k < num_mixed_stations; ++k) {
        const Visit& visit = its(one).visits[k];
        if (visit.busy == 0) continue;
        // Nobody waits for itself; but what the station can do is everybody's.
        const double wait = of_waits[queue_of_[p][k]] * (1 - own_[p][k]);
        const bool is_behind = is_behind_ports(k);
        if (is_behind) stays_[p] += visit.service + wait;
        if (visit.demand == 0) continue;
        const double visit_time = visit.demand + visit.count * wait;
        time += visit_time - visit.early;
        if (is_behind) behind_ports += visit_time;
      }
      trips_[p] = its(one).trip;
      if (its(one).waiting_loads > 0) trips_[p] += behind_ports / its(one).waiting_loads;
      // Each of the requests of an instruction waits for a place behind those before it.
      if (misses_[one.group] != nothing)
        time += of_waits[misses_[one.group]] * its(one).held_misses;
      if (stores_[one.group] != nothing) time += of_waits[stores_[one.group]] * its(one).posted;
      times[p] = std::max(time, shortest);
    }
  }

  std::span<const CustomerClass> classes_;
  std::span<const SmGroup> groups_;
  double mshrs_;
  std::vector<Population> populations_;
  std::vector<std::array<std::size_t, num_mixed_stations>> queue_of_;  ///< by population
  std::size_t num_queues_ = 0;
  std::vector<std::size_t> misses_;                          ///< by group: the wait for an MSHR
  std::vector<std::size_t> stores_;                          ///< and for the place of a store
  std::vector<std::array<double, num_mixed_stations>> own_;  ///< by population
  std::vector<double> busy_;
  std::vector<double> residual_;
  std::vector<double> trips_;
  std::vector<double> stays_;
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

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

/// Newton's method in the logarithms of the waits. Returns what the busiest station has left.
double find_waits(Equations& equations, double least) {
  constexpr int most_steps = 100;
  constexpr double exact = 1e-10;
  constexpr double longest_step = 5;
  constexpr double smallest_part = 1e-6;
  constexpr int most_relaxations = 8;
  std::vector<double>& waits = equations.waits;
  std::vector<double> misfits;
  std::vector<double> nearby;
  std::vector<double> slopes;
  // Where no step along the slopes leads nearer, each wait goes on by itself for a while: a longer
  // one makes who waits there slower, and so the station less busy.
  const auto relax = [&] {
    constexpr int steps = 60;
    constexpr double share = 0.2;
    constexpr double most = 0.5;
    for (int step = 0; step < steps; ++step) {
      for (std::size_t q = 0; q < waits.size(); ++q) {
        waits[q] *= std::exp(std::clamp(-share * misfits[q], -most, most));
      }
      equations.misfits(waits, least, misfits);
    }
  };
  int relaxations = 0;
  equations.misfits(waits, least, misfits);
  for (int step = 0; step < most_steps; ++step) {
    if (sum_of_squares(misfits) <= exact * exact) break;
    equations.slopes(waits, least, slopes);
    std::vector<double> change = misfits;
    const bool is_solved = solve(slopes, change);
    bool is_nearer = false;
    for (double part = 1; is_solved && part > smallest_part && !is_nearer; part /= 2) {
      std::vector<double> next = waits;
      for (std::size_t q = 0; q < next.size(); ++q) {
        next[q] *= std::exp(std::clamp(-part * change[q], -longest_step, longest_step));
      }
      equations.misfits(next, least, nearby);
      is_nearer = sum_of_squares(nearby) < sum_of_squares(misfits);
      if (is_nearer) waits = std::move(next);
    }
    if (is_nearer) {
      misfits = nearby;
    } else if (++relaxations <= most_relaxations) {
      equations.misfits(waits, least, misfits);
      relax();
    } else {
      break;
    }
  }
  return equations.misfits(waits, least, misfits);
}

/// The same as if all slices of L2 and all channels of DRAM were asked alike.
interval::ResourceDemands spread_evenly(interval::ResourceDemands demands) {
  demands.hottest_slice_turns = demands.crowded_slice_turns = demands.slice_turns;
  demands.dram_imbalance = 1;
  return demands;
}

/// Of what DRAM sends to L2, the share that somebody waits for: stores that fetch their lines go
/// on.
double awaited_share_of_fills(const interval::ResourceDemands& demands) {
  const double fills = demands.dram_bytes - demands.dram_write_bytes;
  if (!(fills > 0)) return 1;
  const double of_loads =
      demands.read_misses > 0
          ? demands.read_bytes * demands.dram_read_requests / demands.read_misses
          : 0;
  const double of_atomics = demands.write_bytes - demands.posted_bytes;
  return std::clamp((of_loads + of_atomics) / fills, 0.0, 1.0);
}

/// What the warps of a kernel ask of the stations: everything, and what they wait for.
struct Asked {
  Stations all;
  Stations own;
};

Asked asked_by(const interval::ResourceDemands& demands, double warps, double sms,
               const ModelParameters& gpu) {
  const Services awaited = services_of(without_posted(demands), gpu);
  Asked result{stations_of(demands, warps, sms, gpu),
               stations_of_warps(demands, awaited, warps, sms, gpu)};
  const double of_places = place_waits(demands, gpu);
  for (Stations* stations : {&result.all, &result.own}) {
    (*stations)[lsu].demand += of_places;
    (*stations)[lsu].capacity_cycles += of_places;
  }
  result.own[dram].demand *= awaited_share_of_fills(demands);
  return result;
}

}  // namespace

CustomerClass customers_of(const interval::PhaseList& launch,
                           const interval::ResourceDemands& demands, double warps_per_block,
                           double places, const ModelParameters& gpu) {
  CustomerClass customers;
  customers.warps_per_block = std::max(warps_per_block, 1.0);
  const double own_issue = gpu.schedulers / gpu.issue_rate;
  customers.think = std::max(launch.alone_cycles - own_issue, 0.0);
  const double warps = customers.warps_per_block * std::max(places, 1.0);
  const double sms = std::max(launch.phases.empty() ? 1.0 : launch.phases.front().busy_sms, 1.0);
  const interval::ResourceDemands evenly = spread_evenly(demands);
  Asked hot = asked_by(demands, warps, sms, gpu);
  Asked even = asked_by(evenly, warps, sms, gpu);
  // The lines of its loads overlap as they do where it is alone.
  const double lines = demands.missing_lines;
  const NetworkRate alone = overlapped_rate(warps, customers.think, hot.own, lines);
  const std::size_t longest = longest_visit(hot.own, alone.bounded(), lsu, num_resources);
  for (Asked* asked : {&hot, &even}) {
    asked->own = overlapped(asked->own, lines, longest);
    asked->all = overlapped(asked->all, lines, longest);
  }
  const Stations& own = even.own;
  const Stations& all = even.all;

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
      const std::size_t of = busiest_unit(demands, gpu).value_or(0);
      visit.count = std::max(demands.unit_instructions[of], 1e-6);
      visit.service = visit.demand / visit.count;
      customers.visits[first_unit + of] = visit;
    } else {
      customers.visits[k] = visit;
    }
  }
  for (const auto& [mean, hottest] : {std::pair(slice, hot_slice), std::pair(dram, hot_channel)}) {
    constexpr double hardly_more = 1.001;
    const double cycles = hot.own[mean].capacity_cycles / sms;
    if (!(cycles > customers.visits[mean].busy * hardly_more)) continue;
    Visit& visit = customers.visits[hottest];
    constexpr double nearly_nothing = 1e-12;  // it waits, though its own visit takes no longer
    const bool is_awaited = hot.own[mean].demand > 0;
    visit.demand =
        is_awaited ? std::max(hot.own[mean].demand - own[mean].demand, nearly_nothing) : 0;
    visit.busy = cycles;
    visit.count = missing;
    visit.service =
        is_awaited ? hot.own[mean].demand / missing : hot.all[mean].demand / with_posted;
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
  Equations equations(classes, groups, mshrs);
  std::vector<double> answer(groups.size() * classes.size(),
                             std::numeric_limits<double>::infinity());
  if (equations.populations().empty()) return answer;
  // Stations that could not serve all who come have ever less of the straight line.
  constexpr double first_least = 0.3;
  constexpr double least_of_all = 1e-9;
  constexpr double less = 4;
  constexpr int most_rounds = 60;
  constexpr double exact = 1e-9;
  constexpr double near_enough = 1e-6;
  // Longer or shorter waits to begin with lead there where these do not.
  const std::vector<double> first = equations.waits;
  std::vector<double> misfits;
  for (const double scale : {1.0, 100.0, 0.01}) {
    for (std::size_t q = 0; q < first.size(); ++q) equations.waits[q] = scale * first[q];
    double least = first_least;
    for (int round = 0; round < most_rounds; ++round) {
      while (find_waits(equations, least) < least && least > least_of_all) least /= less;
      if (equations.find_own() <= exact) break;
    }
    equations.misfits(equations.waits, least_of_all, misfits);
    if (sum_of_squares(misfits) <= near_enough * near_enough) break;
  }
  for (std::size_t p = 0; p < equations.populations().size(); ++p) {
    const Population& one = equations.populations()[p];
    answer[one.group * classes.size() + one.of_class] = equations.times[p];
  }
  return answer;
}

}  // namespace warpstack::model
