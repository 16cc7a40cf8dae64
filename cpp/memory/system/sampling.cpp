#include "memory/system/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/error.h"
#include "memory/system/l2_port.h"

namespace warpstack::memory {
namespace {

/// A sample of fewer SMs does not allow an estimate of its error.
constexpr std::size_t least_leaders = 3;

/// Quantile 0.975 of Student's t distribution.
double student(std::size_t degrees) {
  constexpr std::array<double, 12> values = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                                             2.365,  2.306, 2.262, 2.228, 2.201, 2.179};
  if (degrees == 0) return values[0];
  if (degrees <= values.size()) return values[degrees - 1];
  // Cornish-Fisher expansion: exact to three digits from here on.
  constexpr double z = 1.959964;
  constexpr double z3 = z * z * z;
  constexpr double z5 = z3 * z * z;
  const auto n = static_cast<double>(degrees);
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n);
}

/// The position of a group's leader. It changes from group to group, so that patterns which repeat
/// over SMs do not always meet the same position.
std::size_t leader_of_group(std::size_t group, std::size_t size) { return group * 7 / 3 % size; }

std::uint64_t scaled(double count) {
  return static_cast<std::uint64_t>(std::llround(std::max(count, 0.0)));
}

double ratio(double a, double b, double otherwise = 1) { return b > 0 ? a / b : otherwise; }

}  // namespace

std::vector<SampleGroup> sample_of(std::span<const std::vector<std::uint32_t>> blocks_of_sms,
                                   double share, std::optional<std::uint32_t> observed_block) {
  const std::size_t sms = blocks_of_sms.size();
  const auto per_group = static_cast<std::size_t>(
      std::clamp(std::round(1 / share), 1.0, static_cast<double>(std::max<std::size_t>(sms, 1))));
  if (per_group == 1 || sms < least_leaders * 2) return {};
  // Groups neighbours with as many blocks, which run as many at the same time.
  std::vector<std::size_t> order(sms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t sm) { return blocks_of_sms[sm].size(); });
  std::vector<SampleGroup> groups;
  for (std::size_t first = 0; first < sms;) {
    const std::size_t blocks = blocks_of_sms[order[first]].size();
    std::size_t last = first;
    while (last < sms && blocks_of_sms[order[last]].size() == blocks) ++last;
    // Makes groups of nearly equal size.
    const std::size_t count = (last - first + per_group - 1) / per_group;
    for (std::size_t g = 0; g < count; ++g) {
      const std::size_t begin = first + (last - first) * g / count;
      const std::size_t end = first + (last - first) * (g + 1) / count;
      std::size_t chosen = begin + leader_of_group(groups.size(), end - begin);
      for (std::size_t i = begin; observed_block && i < end; ++i) {
        const auto& of_sm = blocks_of_sms[order[i]];
        if (std::ranges::find(of_sm, *observed_block) != of_sm.end()) chosen = i;
      }
      SampleGroup group{order[chosen], {}};
      for (std::size_t i = begin; i < end; ++i) {
        if (i != chosen) group.followers.push_back(order[i]);
      }
      groups.push_back(std::move(group));
    }
    first = last;
  }
  if (groups.size() < least_leaders || groups.size() == sms) return {};
  return groups;
}

double ratio_error(std::span<const double> weights, std::span<const double> x,
                   std::span<const double> y) {
  if (x.size() != weights.size() || y.size() != weights.size()) {
    throw InputError("a ratio needs as many weights as values");
  }
  double sum_x = 0;
  double sum_y = 0;
  double all = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum_x += weights[i] * x[i];
    sum_y += weights[i] * y[i];
    all += weights[i];
  }
  if (!(sum_x > 0) || !(sum_y > 0)) return 0;
  const double rate = sum_y / sum_x;
  const auto n = static_cast<double>(weights.size());
  double squares = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double rest = weights[i] * (y[i] - rate * x[i]);
    squares += rest * rest;
  }
  const double variance = (1 - n / all) * n / (n - 1) * squares;
  return student(weights.size() - 1) * std::sqrt(variance) / sum_y;
}

namespace {

/// The errors of requests that leave L1, per line, and of waited cycles, per access.
SampleErrors errors_of(std::span<const double> weights,
                       std::span<const InstructionCounters> of_leaders) {
  std::vector<double> lines;
  std::vector<double> requests;
  std::vector<double> accesses;
  std::vector<double> waits;
  for (const InstructionCounters& mine : of_leaders) {
    lines.push_back(static_cast<double>(mine.requests));
    requests.push_back(static_cast<double>(mine.l2_requests));
    accesses.push_back(static_cast<double>(mine.events[0] + mine.events[1] + mine.events[2]));
    waits.push_back(static_cast<double>(mine.wait_cycles[1] + mine.wait_cycles[2]));
  }
  return {ratio_error(weights, lines, requests), ratio_error(weights, accesses, waits)};
}

}  // namespace

SampledSimulation::SampledSimulation(std::vector<SampleGroup> groups, const MakeSm& make_sm,
                                     const std::vector<std::vector<std::uint32_t>>& blocks_of_sms,
                                     const Followers::Launch& launch, Cache& l2,
                                     FetchesUnderWay& under_way, std::uint64_t most_under_way)
    : instructions_(launch.trace.instructions()),
      l2_(l2),
      under_way_(under_way),
      known_slice_turns_(l2.config().slices),
      slice_dram_sectors_(l2.config().slices),
      crowding_(l2.config().slices, most_under_way) {
  under_way_.begin_launch();
  // L2 takes requests in the order of the SMs.
  std::ranges::sort(groups, {}, &SampleGroup::leader);
  for (SampleGroup& group : groups) {
    std::vector<std::vector<std::uint32_t>> followers;
    for (const std::size_t sm : group.followers) followers.push_back(blocks_of_sms[sm]);
    const auto before = std::ranges::lower_bound(group.followers, group.leader);
    auto led =
        std::make_unique<Followers>(launch, blocks_of_sms[group.leader], std::move(followers),
                                    static_cast<std::size_t>(before - group.followers.begin()));
    auto sm = make_sm(group.leader);
    sm->lead(led.get());
    leaders_.push_back({std::move(group), std::move(sm), std::move(led),
                        Worker(instructions_.size(), launch.l1.line_bytes, 0)});
  }
}

bool SampledSimulation::run(std::optional<trace::WarpPosition> observed,
                            const InterruptCheck& interrupt) {
  ReferenceCycle end = TimedSchedule::window;
  for (std::size_t window = 0;; ++window) {
    if (window % 32 == 0) {
      if (interrupt) interrupt();
      if (loses_lines()) return false;
    }
    bool is_empty = true;
    ReferenceCycle first = never;
    for (Leader& leader : leaders_) {
      leader.sm->settle(leader.worker);
      leader.sm->run(0, end, observed, leader.worker);
      is_empty = is_empty && leader.sm->num_turns() == 0 && !leader.followers->has_requests();
      first = std::min(first, leader.sm->next_event(end));
    }
    if (is_empty && first == never) break;
    const ReferenceCycle served = end - TimedSchedule::window;
    if (first != never) end = std::max(end, first) + TimedSchedule::window;
    serve(turns_of_window, served);
  }
  flush();
  return !loses_lines();
}

void SampledSimulation::serve(std::size_t turns, ReferenceCycle begin) {
  L2Port port(l2_, of_followers_, &slice_dram_sectors_);
  const auto serve_follower = [&](const Request& request, const ByteMasks& bytes, double turns) {
    const Outcome outcome = port.serve(request, bytes);
    under_way_.is_awaited(request, outcome, now_);
    if (outcome.missed) note_miss(request.line << 8 | request.mask);
    const std::uint32_t slice = l2_.slice_of(request.set);
    known_slice_turns_[slice] += turns;
    crowding_.pass([&](const auto& add) { add(slice, turns); });
    return outcome;
  };
  for (Leader& leader : leaders_) leader.sm->outcomes(0).resize(leader.sm->num_requests());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    now_ = begin + turn * cycles_of_turn;
    for (Leader& leader : leaders_) {
      leader.followers->serve(Followers::Side::before, turn, serve_follower);
      if (turn < leader.sm->num_turns()) {
        serve_leader(leader, leader.sm->first_request(turn), leader.sm->first_request(turn + 1));
      }
      leader.followers->serve(Followers::Side::after, turn, serve_follower);
    }
  }
}

void SampledSimulation::serve_leader(Leader& leader, std::size_t first, std::size_t last) {
  L2Port port(l2_, leader.worker.totals, &slice_dram_sectors_);
  SmCaches& sm = *leader.sm;
  for (std::size_t i = first; i < last; ++i) {
    const Request& request = sm.request(i);
    Outcome outcome = port.serve(request, sm.bytes(request));
    outcome.waits_for_dram = under_way_.is_awaited(request, outcome, now_);
    if (outcome.missed) note_miss(request.line << 8 | request.mask);
    sm.outcomes(0)[i] = outcome;
    const double turns = sm.turns(request);
    const std::uint32_t slice = l2_.slice_of(request.set);
    known_slice_turns_[slice] += turns;
    if (!is_flushing_) crowding_.pass([&](const auto& add) { add(slice, turns); });
    slice_turns_of_all_ += leader.group.weight() * turns;
  }
}

// A loss is counted only if the same request misses again: sectors of a line may be fetched one
// after the other.
void SampledSimulation::note_miss(std::uint64_t line_and_sectors) {
  if ((line_and_sectors >> 8) * 0x9e3779b97f4a7c15 >> 60 != 0) return;
  repeated_misses_ += !missed_lines_.insert(line_and_sectors).second;
}

bool SampledSimulation::loses_lines() const {
  constexpr std::uint64_t some = 32;
  return repeated_misses_ > std::max<std::uint64_t>(some, missed_lines_.size() / 10);
}

void SampledSimulation::flush() {
  crowding_.finish();
  is_flushing_ = true;
  for (Leader& leader : leaders_) {
    SmCaches& sm = *leader.sm;
    sm.flush(leader.worker);
    sm.outcomes(0).resize(sm.num_requests());
    serve_leader(leader, 0, sm.num_requests());
    sm.settle(leader.worker);
  }
}

void SampledSimulation::estimate(std::span<const trace::RowCounts> counts,
                                 MemoryProfile& profile) const {
  for (std::size_t row = 0; row < instructions_.size(); ++row) {
    estimate_row(row, counts[row], profile.per_row[row]);
  }
  estimate_totals(profile);
  estimate_errors(profile);
  for (const Leader& leader : leaders_) {
    const auto& mine = leader.sm->observed();
    profile.observed.insert(profile.observed.end(), mine.begin(), mine.end());
  }
}

void SampledSimulation::estimate_row(std::size_t row, const trace::RowCounts& counts,
                                     InstructionCounters& all) const {
  // Weighted sums over the leaders, and counts known for all SMs.
  using Levels = std::array<double, num_miss_events>;
  constexpr auto l2 = static_cast<std::size_t>(MissEvent::l2_hit);
  constexpr auto dram = static_cast<std::size_t>(MissEvent::dram);
  double lines = 0;
  double requests = 0;
  double sectors = 0;
  double dram_requests = 0;
  Levels events{};
  Levels waits{};
  Levels repeat_cycles{};
  double repeats = 0;
  Levels cycles{};
  std::array<double, 2> known{};  // events of L2 and DRAM
  for (const Leader& leader : leaders_) {
    const InstructionCounters& mine = leader.worker.per_row[row];
    const FollowerCounts& others = leader.followers->per_row()[row];
    const double weight = leader.group.weight();
    all.requests += mine.requests + others.requests;
    all.l1_passes += mine.l1_passes + others.l1_passes;
    all.sectors += mine.sectors + others.sectors;
    all.dram_requests += mine.dram_requests + others.dram_requests;
    all.dram_sectors += mine.dram_sectors + others.dram_sectors;
    known[0] += static_cast<double>(mine.events[l2] + others.l2_events);
    known[1] += static_cast<double>(mine.events[dram] + others.dram_events);
    lines += weight * static_cast<double>(mine.requests);
    requests += weight * static_cast<double>(mine.l2_requests);
    sectors += weight * static_cast<double>(mine.l2_request_sectors);
    dram_requests += weight * static_cast<double>(mine.dram_requests);
    repeats += weight * static_cast<double>(mine.repeats);
    for (std::size_t e = 0; e < num_miss_events; ++e) {
      events[e] += weight * static_cast<double>(mine.events[e]);
      waits[e] += weight * static_cast<double>(mine.waits[e]);
      cycles[e] += weight * static_cast<double>(mine.wait_cycles[e]);
      repeat_cycles[e] += weight * static_cast<double>(mine.repeat_cycles[e]);
    }
  }
  if (lines == 0) {
    // Only followers execute this store: all its lines go to L2.
    lines = requests = static_cast<double>(all.requests);
    sectors = static_cast<double>(all.sectors);
    events[l2] = known[0];
    events[dram] = known[1];
  }
  const double by_lines = ratio(static_cast<double>(all.requests), lines);
  all.l2_requests = scaled(by_lines * requests);
  all.l2_request_sectors = scaled(by_lines * sectors);
  // A follower may ask for a line that its own L1 would have, but L2 has lost.
  if (all.dram_requests > all.l2_requests) {
    all.dram_sectors =
        scaled(static_cast<double>(all.dram_sectors) * static_cast<double>(all.l2_requests) /
               static_cast<double>(all.dram_requests));
    all.dram_requests = all.l2_requests;
  }
  // The first of several SMs that want a line waits for DRAM, and leaders may be first more often
  // than others. The number of lines from DRAM is known for all SMs, but not the number of
  // accesses: lines that miss L1 together in a leader do not miss together in its followers.
  const double left = events[l2] + events[dram];
  const double to_dram = dram_requests > 0
                             ? std::min(events[dram] * static_cast<double>(all.dram_requests) /
                                            (by_lines * dram_requests),
                                        left)
                             : left * ratio(known[1], known[0] + known[1], 0);
  const double more = ratio(to_dram, events[dram]);
  const double waiting = waits[l2] + waits[dram];
  const Levels mean = {0, ratio(cycles[l2], waits[l2], gpu::ReferenceMachine::round_trips[l2]),
                       ratio(cycles[dram], waits[dram], gpu::ReferenceMachine::round_trips[dram])};
  events[dram] = to_dram;
  events[l2] = left - to_dram;
  waits[dram] = std::min(more * waits[dram], waiting);
  waits[l2] = waiting - waits[dram];
  for (const std::size_t e : {l2, dram}) {
    const double before = cycles[e];
    cycles[e] = waits[e] * mean[e];
    repeat_cycles[e] *= ratio(cycles[e], before);
  }
  const double by_accesses =
      ratio(static_cast<double>(counts.active), events[0] + events[1] + events[2]);
  all.repeats = scaled(by_accesses * repeats);
  for (std::size_t e = 0; e < num_miss_events; ++e) {
    all.events[e] = scaled(by_accesses * events[e]);
    all.waits[e] = scaled(by_accesses * waits[e]);
    all.wait_cycles[e] = scaled(by_accesses * cycles[e]);
    all.repeat_cycles[e] = scaled(by_accesses * repeat_cycles[e]);
  }
}

void SampledSimulation::estimate_totals(MemoryProfile& profile) const {
  MemoryTotals of_all = of_followers_;
  std::array<double, num_totals> sums{};
  for (const Leader& leader : leaders_) {
    of_all += leader.worker.totals;
    for (std::size_t i = 0; i < num_totals; ++i) {
      sums[i] +=
          leader.group.weight() * static_cast<double>(leader.worker.totals[static_cast<Total>(i)]);
    }
  }
  for (std::size_t i = 0; i < num_totals; ++i) {
    profile.totals[static_cast<Total>(i)] = scaled(sums[i]);
  }
  // Misses of L2 are known for all SMs.
  constexpr std::array<std::array<Total, 2>, 4> hits_of = {{
      {Total::l2_read_sector_hits, Total::l2_read_sectors},
      {Total::l2_write_sector_hits, Total::l2_write_sectors},
      {Total::l2_atomic_sector_hits, Total::l2_atomic_sectors},
      {Total::l2_read_request_hits, Total::l2_read_requests},
  }};
  for (const auto& [hits, accesses] : hits_of) {
    const std::uint64_t misses = of_all[accesses] - of_all[hits];
    profile.totals[hits] = profile.totals[accesses] - std::min(profile.totals[accesses], misses);
  }
  for (const Total total : {Total::dram_read_sectors, Total::dram_write_sectors}) {
    profile.totals[total] = of_all[total];
  }
  // The requests of all SMs show best which slices are busier than others.
  const double known = std::accumulate(known_slice_turns_.begin(), known_slice_turns_.end(), 0.0);
  for (const double turns : known_slice_turns_) {
    profile.slice_turns.push_back(turns * ratio(slice_turns_of_all_, known));
  }
  profile.slice_dram_sectors = slice_dram_sectors_;
  profile.slice_crowding = crowding_of(crowding_.turns(), crowding_.crowded_turns());
  std::array<double, 2> waits{};
  for (const Leader& leader : leaders_) {
    for (std::size_t i = 0; i < waits.size(); ++i) {
      waits[i] +=
          leader.group.weight() * static_cast<double>(leader.sm->timed()->place_wait_cycles()[i]);
    }
    profile.most_read_sectors = std::max(profile.most_read_sectors, leader.sm->read_sectors());
  }
  for (std::size_t i = 0; i < waits.size(); ++i) profile.place_wait_cycles[i] = scaled(waits[i]);
}

void SampledSimulation::estimate_errors(MemoryProfile& profile) const {
  SampleSummary& sample = profile.sample;
  std::vector<double> weights;
  double working_sms = 0;
  for (const Leader& leader : leaders_) {
    weights.push_back(leader.group.weight());
    working_sms += weights.back();
    sample.sms.push_back({weights.back(), leader.worker.totals});
  }
  sample.working_sms = static_cast<std::uint32_t>(working_sms);
  std::vector<InstructionCounters> counters(leaders_.size());
  std::vector<InstructionCounters> sums(leaders_.size());
  for (std::size_t row = 0; row < instructions_.size(); ++row) {
    for (std::size_t i = 0; i < leaders_.size(); ++i) {
      counters[i] = leaders_[i].worker.per_row[row];
      sums[i] += counters[i];
    }
    sample.row_errors.push_back(errors_of(weights, counters));
  }
  sample.errors = errors_of(weights, sums);
}

}  // namespace warpstack::memory
