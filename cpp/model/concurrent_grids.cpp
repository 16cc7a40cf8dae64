#include "model/concurrent_grids.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/error.h"

namespace warpstack::model {
namespace {

/// Where a grid has blocks for more rounds than this, half of them go as one.
constexpr double few_rounds = 8;
/// Ends of blocks that are no further apart than this share of their time are one.
constexpr double near_ends = 0.02;
/// Share of a block that counts as nothing.
constexpr double nothing = 1e-9;

bool are_near(double one, double other, double scale) {
  return std::abs(one - other) <= nothing * scale;
}

}  // namespace

double SmRoom::times(const SmRoom& need) const {
  double count = std::numeric_limits<double>::infinity();
  const auto limit = [&count](double has, double needs) {
    if (needs > 0) count = std::min(count, std::floor(has / needs * (1 + nothing)));
  };
  limit(blocks, need.blocks);
  limit(warps, need.warps);
  limit(threads, need.threads);
  limit(registers, need.registers);
  limit(shared_memory, need.shared_memory);
  return count;
}

void SmRoom::take(const SmRoom& need, double count) {
  blocks -= count * need.blocks;
  warps -= count * need.warps;
  threads -= count * need.threads;
  registers -= count * need.registers;
  shared_memory -= count * need.shared_memory;
}

ConcurrentGrids::ConcurrentGrids(std::vector<GridClass> classes, const Machine& machine)
    : classes_(std::move(classes)), machine_(machine) {
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const GridClass& one = classes_[c];
    if (!(one.duration >= 0) || !std::isfinite(one.duration)) {
      throw InputError("duration of kernel " + std::to_string(c) + " = " +
                       std::to_string(one.duration) + " is not a number from 0 up");
    }
    if (!(one.ends >= 0) || one.ends > one.duration) {
      throw InputError("ends of kernel " + std::to_string(c) + " = " + std::to_string(one.ends) +
                       " are not within its duration");
    }
    if (!(one.instructions > 0) || !std::isfinite(one.instructions)) {
      throw InputError("instructions of kernel " + std::to_string(c) + " = " +
                       std::to_string(one.instructions) + " are not a number above 0");
    }
    if (!(one.blocks >= 1)) {
      throw InputError("blocks of kernel " + std::to_string(c) + " = " +
                       std::to_string(one.blocks) + " are fewer than one");
    }
    const double on_sm = machine_.room.times(one.need);
    if (!(on_sm >= 1) || !std::isfinite(on_sm)) {
      throw InputError("a thread block of kernel " + std::to_string(c) + " does not fit on an SM");
    }
    capacity_.push_back(on_sm * machine_.sms);
    paces_.push_back({});
    alone_.push_back(0);  // until its pace is known
    find_pace(c);
  }
  rest();
}

void ConcurrentGrids::rest() {
  groups_.assign(1, {machine_.sms, machine_.room, now_, ++number_, {}});
}

void ConcurrentGrids::find_pace(std::size_t of_class) {
  Pace& pace = paces_[of_class];
  if (!classes_[of_class].customers) pace.beside = 1;
  double time = time_alone(of_class);
  const double duration = classes_[of_class].duration;
  pace.ends = classes_[of_class].ends;
  if (classes_[of_class].customers) {
    pace.ends = std::clamp(duration - time, 0.0, pace.ends);
  }
  const double wanted = duration - pace.ends;
  if (time < wanted && classes_[of_class].customers) {
    // Time beside the network adds up along the longest chain of blocks: nearly a line.
    constexpr int most_steps = 8;
    constexpr double exact = 1e-9;
    double more = wanted / time;
    double last_beside = 0;
    double last_time = time;
    for (int step = 0; step < most_steps; ++step) {
      pace.beside = std::max(more, 0.0);
      time = time_alone(of_class);
      if (are_near(time, wanted, wanted) || time == last_time) break;
      more = last_beside + (wanted - last_time) * (pace.beside - last_beside) / (time - last_time);
      last_beside = pace.beside;
      last_time = time;
      if (std::abs(more - pace.beside) <= exact * more) break;
    }
  }
  constexpr double shortest = 1e-200;  // no rate is infinite
  pace.scale = std::max(time > 0 ? wanted / time : 0, shortest);
  alone_[of_class] = duration;
}

double ConcurrentGrids::time_alone(std::size_t of_class) {
  rest();
  now_ = 0;
  line_free_ = 0;
  grids_.assign(1, {of_class, 0, classes_[of_class].blocks});
  waiting_.assign(1, 0);
  has_changed_ = true;
  settle();
  while (grids_[0].ending == never) step(next());
  const double time = now_;
  line_free_ = 0;
  last_given_ = nobody;
  grids_.clear();
  ending_.clear();
  under_way_ = 0;
  ended_.clear();
  now_ = 0;
  return time;
}

std::size_t ConcurrentGrids::add(std::size_t of_class, std::int32_t priority) {
  const std::size_t grid = grids_.size();
  grids_.push_back({of_class, priority, classes_[of_class].blocks});
  if (lone_ == nobody && under_way_ == 0 && waiting_.empty()) {
    lone_ = grid;
    lone_since_ = now_;
    grids_[grid].start = now_;
    return grid;
  }
  if (lone_ != nobody) play_lone();
  waiting_.push_back(grid);
  has_changed_ = true;
  return grid;
}

void ConcurrentGrids::play_lone() {
  const double until = now_;
  now_ = lone_since_;
  rest();
  waiting_.push_back(lone_);
  grids_[lone_].start = never;
  lone_ = nobody;
  has_changed_ = true;
  // What starts at the same time is in line together.
  while (now_ < until) {
    settle();
    step(std::min(next(), until));
  }
}

double ConcurrentGrids::next() {
  if (lone_ != nobody) return lone_since_ + class_of(lone_).duration;
  settle();
  const auto end_of = [this](const Cohort& one) {
    return one.has_ended() ? one.until : now_ + one.left / one.rate;
  };
  const Cohort* first = nullptr;
  for (const Group& group : groups_) {
    for (const Cohort& one : group.cohorts) {
      if (!one.has_ended() && (first == nullptr || end_of(one) < end_of(*first))) first = &one;
    }
  }
  // Blocks of a grid that end nearly together leave their room together: if a few SMs were a
  // little earlier, they would get all that is left of the grid.
  double time = first == nullptr ? never : end_of(*first);
  const double nearly = first == nullptr ? 0
                                         : time + near_ends * class_of(first->grid).instructions *
                                                      first->rounds / first->rate;
  double others = never;
  for (const Group& group : groups_) {
    for (const Cohort& one : group.cohorts) {
      const bool is_mate = first != nullptr && !one.has_ended() && one.grid == first->grid;
      if (is_mate && end_of(one) <= nearly) {
        time = std::max(time, end_of(one));
      } else {
        others = std::min(others, end_of(one));
      }
    }
  }
  time = std::min(time, others);
  if (!waiting_.empty() && now_ < line_free_) time = std::min(time, line_free_);
  for (const std::size_t grid : ending_) time = std::min(time, grids_[grid].ending);
  return time;
}

void ConcurrentGrids::advance(double time) {
  if (lone_ == nobody) {
    settle();
    step(time);
    return;
  }
  now_ = time;
  if (time < lone_since_ + class_of(lone_).duration) return;
  grids_[lone_].end = time;
  grids_[lone_].unstarted = 0;
  ended_.push_back(lone_);
  lone_ = nobody;
}

std::vector<std::size_t> ConcurrentGrids::take_ended() { return std::exchange(ended_, {}); }

void ConcurrentGrids::step(double time) {
  const double passed = time - now_;
  has_changed_ = has_changed_ || (now_ < line_free_ && time >= line_free_);
  now_ = time;
  ++number_;
  for (Group& group : groups_) {
    for (Cohort& one : group.cohorts) {
      if (one.has_ended()) {
        if (one.until <= now_) clear(one, group);
        continue;
      }
      const double all = class_of(one.grid).instructions * one.rounds;
      one.left -= passed * one.rate;
      one.is_new = false;
      if (one.left > all * nothing && now_ + one.left / one.rate > now_) continue;
      one.left = 0;
      one.until = now_ + paces_[grids_[one.grid].of_class].scale * machine_.replacement;
      has_changed_ = true;
      Grid& grid = grids_[one.grid];
      grid.running -= one.blocks * group.sms;
      if (grid.running <= 0.5 && grid.unstarted <= 0) {
        // Nobody makes it shorter than alone.
        const double alone = grid.start + alone_[grid.of_class];
        grid.ending = std::max(now_ + paces_[grid.of_class].ends, alone);
        ending_.push_back(one.grid);
      }
      if (one.until <= now_) clear(one, group);
    }
    std::erase_if(group.cohorts, [](const Cohort& one) { return one.blocks == 0; });
  }
  std::erase_if(ending_, [this](std::size_t grid) {
    if (grids_[grid].ending > now_) return false;
    grids_[grid].end = now_;
    ended_.push_back(grid);
    --under_way_;
    has_changed_ = true;
    return true;
  });
  if (under_way_ == 0) rest();
}

void ConcurrentGrids::clear(Cohort& cohort, Group& group) {
  group.room.take(class_of(cohort.grid).need, -cohort.blocks);
  group.free_since = now_;
  group.number = number_;
  cohort.blocks = 0;
  has_changed_ = true;
}

void ConcurrentGrids::settle() {
  if (!has_changed_) return;
  has_changed_ = false;
  for (std::size_t grid = in_line(); grid != nobody; grid = in_line()) {
    if ((grid != last_given_ && now_ < line_free_) || !give(grid)) break;
  }
  merge_groups();
  find_rates();
}

std::size_t ConcurrentGrids::in_line() const {
  std::size_t first = nobody;
  for (const std::size_t grid : waiting_) {
    const bool has_started = grids_[grid].start != never;
    const bool is_full = machine_.concurrent_grids > 0 && under_way_ >= machine_.concurrent_grids;
    if (!has_started && is_full) continue;
    if (first == nobody || grids_[grid].priority > grids_[first].priority) first = grid;
  }
  return first;
}

bool ConcurrentGrids::give(std::size_t number) {
  Grid& grid = grids_[number];
  const GridClass& its = class_of(number);
  std::size_t best = nobody;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!(groups_[g].room.times(its.need) >= 1)) continue;
    const auto key = [this](std::size_t of) {
      return std::pair(groups_[of].free_since, groups_[of].number);
    };
    if (best == nobody || key(g) < key(best)) best = g;
  }
  if (best == nobody) return false;
  if (grid.start == never) {
    grid.start = now_;
    ++under_way_;
  }
  const double in_rounds = grid.unstarted / capacity_[grid.of_class];
  const double rounds = in_rounds > few_rounds ? std::floor(in_rounds / 2) : 1;
  if (grid.unstarted < groups_[best].sms) {
    // Only some of the group's SMs get one.
    Group others = groups_[best];
    others.sms -= grid.unstarted;
    groups_[best].sms = grid.unstarted;
    groups_.push_back(std::move(others));
  }
  Group& group = groups_[best];
  group.room.take(its.need, 1);
  group.number = ++number_;
  line_free_ = std::max(line_free_, now_) + group.sms * machine_.interval;
  last_given_ = number;
  grid.unstarted -= group.sms * rounds;
  grid.running += group.sms;
  const auto same = std::ranges::find_if(group.cohorts, [&](const Cohort& one) {
    return one.is_new && one.grid == number && one.rounds == rounds;
  });
  if (same != group.cohorts.end()) {
    ++same->blocks;
  } else {
    group.cohorts.push_back({number, 1, rounds, its.instructions * rounds});
  }
  if (grid.unstarted <= 0) std::erase(waiting_, number);
  return true;
}

void ConcurrentGrids::merge_groups() {
  const auto are_alike = [this](const Group& one, const Group& other) {
    if (one.free_since != other.free_since || one.number != other.number ||
        one.cohorts.size() != other.cohorts.size()) {
      return false;
    }
    for (std::size_t c = 0; c < one.cohorts.size(); ++c) {
      const Cohort& mine = one.cohorts[c];
      const Cohort& theirs = other.cohorts[c];
      if (mine.grid != theirs.grid || mine.blocks != theirs.blocks ||
          mine.rounds != theirs.rounds || mine.until != theirs.until ||
          !are_near(mine.left, theirs.left, class_of(mine.grid).instructions)) {
        return false;
      }
    }
    return true;
  };
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t other = groups_.size(); other-- > g + 1;) {
      if (!are_alike(groups_[g], groups_[other])) continue;
      groups_[g].sms += groups_[other].sms;
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(other));
    }
  }
}

void ConcurrentGrids::find_rates() {
  // Classes and mixes that are there, in an order of their own.
  std::vector<std::size_t> present;
  for (const Group& group : groups_) {
    for (const Cohort& one : group.cohorts) {
      const std::size_t c = grids_[one.grid].of_class;
      if (classes_[c].customers && !one.has_ended()) present.push_back(c);
    }
  }
  std::ranges::sort(present);
  present.erase(std::ranges::unique(present).begin(), present.end());
  const auto mix_of = [&](const Group& group) {
    std::vector<double> blocks(present.size());
    for (const Cohort& one : group.cohorts) {
      const auto found = std::ranges::find(present, grids_[one.grid].of_class);
      if (found != present.end() && !one.has_ended()) {
        blocks[static_cast<std::size_t>(found - present.begin())] += one.blocks;
      }
    }
    return blocks;
  };
  std::map<std::vector<double>, double> mixes;
  for (const Group& group : groups_) mixes[mix_of(group)] += group.sms;
  mixes.erase(std::vector<double>(present.size()));
  std::vector<double> key(present.begin(), present.end());
  std::vector<SmGroup> together;
  for (const auto& [blocks, sms] : mixes) {
    key.push_back(sms);
    key.insert(key.end(), blocks.begin(), blocks.end());
    together.push_back({sms, blocks});
  }
  auto known = known_.find(key);
  if (known == known_.end()) {
    std::vector<CustomerClass> customers;
    for (const std::size_t c : present) customers.push_back(*classes_[c].customers);
    known = known_.emplace(key, mixed_network_times(customers, together, machine_.mshrs)).first;
  }
  for (Group& group : groups_) {
    const auto mix = mix_of(group);
    const auto row = static_cast<std::size_t>(std::distance(mixes.begin(), mixes.find(mix)));
    for (Cohort& one : group.cohorts) {
      if (one.has_ended()) continue;
      const auto found = std::ranges::find(present, grids_[one.grid].of_class);
      const auto column = static_cast<std::size_t>(found - present.begin());
      const double in_network =
          found == present.end() ? 0 : known->second[row * present.size() + column];
      const Pace& pace = paces_[grids_[one.grid].of_class];
      // Between its rounds nobody is in its places.
      const double empty =
          machine_.replacement * (1 - 1 / one.rounds) / class_of(one.grid).instructions;
      one.rate = 1 / (pace.scale * (in_network + pace.beside + empty));
    }
  }
}

}  // namespace warpstack::model
