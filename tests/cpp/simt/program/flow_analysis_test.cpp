#include "simt/program/flow_analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace {

using warpstack::simt::Allocation32;
using warpstack::simt::DefinitionsAndUses;
using warpstack::simt::post_dominators;
using warpstack::simt::Successors;

constexpr std::uint32_t unused = ~0u;

/// Post-dominator sets by their definition: what lies on all paths to the end, which every step
/// reaches.
std::vector<std::set<std::uint32_t>> sets_of(const Successors& successors) {
  const auto end = static_cast<std::uint32_t>(successors.size());
  std::set<std::uint32_t> all;
  for (std::uint32_t i = 0; i <= end; ++i) all.insert(i);
  std::vector<std::set<std::uint32_t>> sets(end + 1, all);
  sets[end] = {end};
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = 0; i < end; ++i) {
      std::set<std::uint32_t> common = all;
      for (const std::uint32_t next : successors[i]) {
        std::set<std::uint32_t> both;
        std::ranges::set_intersection(common, sets[next], std::inserter(both, both.begin()));
        common = both;
      }
      common.insert(i);
      if (common != sets[i]) {
        sets[i] = common;
        changed = true;
      }
    }
  }
  return sets;
}

bool reaches_end(const Successors& successors, std::uint32_t from) {
  std::set<std::uint32_t> seen{from};
  std::vector<std::uint32_t> work{from};
  while (!work.empty()) {
    const std::uint32_t step = work.back();
    work.pop_back();
    if (step == successors.size()) return true;
    for (const std::uint32_t next : successors[step]) {
      if (seen.insert(next).second) work.push_back(next);
    }
  }
  return false;
}

Successors random_graph(std::mt19937& random, std::uint32_t steps, bool forwards) {
  Successors successors(steps);
  for (std::uint32_t i = 0; i < steps; ++i) {
    const std::uint32_t kind = random() % 6;
    const std::uint32_t target = forwards ? i + 1 + random() % (steps - i) : random() % (steps + 1);
    if (kind == 0) {
      successors[i] = {target};
    } else if (kind <= 2 && target != i + 1) {
      successors[i] = {target, i + 1};
    } else {
      successors[i] = {i + 1};
    }
  }
  return successors;
}

TEST(PostDominators, EqualTheirDefinitionOnRandomGraphs) {
  std::mt19937 random(1);
  int checked = 0;
  for (int round = 0; round < 3000; ++round) {
    const Successors successors = random_graph(random, 1 + random() % 14, round % 2 == 0);
    bool ends = true;
    for (std::uint32_t i = 0; i < successors.size(); ++i) {
      ends = ends && reaches_end(successors, i);
    }
    if (!ends) continue;
    const auto sets = sets_of(successors);
    const auto found = post_dominators(successors);
    for (std::uint32_t i = 0; i < successors.size(); ++i) {
      if (successors[i].size() < 2) continue;
      // The immediate one is the strict post-dominator that all the others post-dominate.
      std::uint32_t immediate = unused;
      for (const std::uint32_t candidate : sets[i]) {
        if (candidate == i) continue;
        const bool nearest = std::ranges::all_of(sets[i], [&](std::uint32_t other) {
          return other == i || sets[candidate].contains(other);
        });
        if (nearest) immediate = candidate;
      }
      ASSERT_EQ(found[i], immediate) << "round " << round << ", step " << i;
      ++checked;
    }
  }
  EXPECT_GT(checked, 3000);
}

TEST(PostDominators, OfIfElseAndLoop) {
  // 0: branch to 3; 1, 2: jump to 4; 3; 4: the join, branch back to 0; 5
  const Successors successors{{3, 1}, {2}, {4}, {4}, {0, 5}, {6}};
  const auto found = post_dominators(successors);
  EXPECT_EQ(found[0], 4u);
  EXPECT_EQ(found[4], 5u);
}

TEST(PostDominators, EndlessLoopsHaveAnAnswer) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const Successors successors = random_graph(random, 1 + random() % 10, false);
    for (const std::uint32_t found : post_dominators(successors)) {
      ASSERT_LE(found, successors.size());
    }
  }
  EXPECT_TRUE(post_dominators({}).empty());
}

/// Which values are live before each step, by their definition: some path leads from there to a use
/// without passing a definition that overwrites all lanes.
std::vector<std::set<std::uint32_t>> live_before(const Successors& successors,
                                                 const std::vector<DefinitionsAndUses>& steps) {
  std::vector<std::set<std::uint32_t>> live(steps.size() + 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = steps.size(); i-- > 0;) {
      std::set<std::uint32_t> now;
      for (const std::uint32_t next : successors[i])
        now.insert(live[next].begin(), live[next].end());
      if (!steps[i].partial) {
        for (const std::uint32_t value : steps[i].definitions) now.erase(value);
      }
      now.insert(steps[i].uses.begin(), steps[i].uses.end());
      if (now != live[i]) {
        live[i] = now;
        changed = true;
      }
    }
  }
  return live;
}

/// Whether some lane's part of one place overlaps another lane's part of another: lanes that wait
/// would lose what they hold. A lane of a place of one unit has 4 bytes, of two 8.
bool lanes_collide(std::uint32_t a, std::uint32_t a_units, std::uint32_t b, std::uint32_t b_units) {
  constexpr std::uint32_t unit_bytes = 128;
  for (std::uint32_t i = 0; i < 32; ++i) {
    for (std::uint32_t j = 0; j < 32; ++j) {
      const std::uint32_t a_first = a * unit_bytes + i * a_units * 4;
      const std::uint32_t b_first = b * unit_bytes + j * b_units * 4;
      if (i != j && a_first < b_first + b_units * 4 && b_first < a_first + a_units * 4) return true;
    }
  }
  return false;
}

TEST(AllocateRegisters, ValuesThatAreLiveAtOnceShareNoUnit) {
  std::mt19937 random(3);
  std::uint32_t shared = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::uint32_t num_steps = 1 + random() % 16;
    const std::uint32_t num_values = 1 + random() % 12;
    const Successors successors = random_graph(random, num_steps, round % 2 == 0);
    std::vector<DefinitionsAndUses> steps(num_steps);
    for (DefinitionsAndUses& step : steps) {
      if (random() % 2 == 0) step.definitions.push_back(random() % num_values);
      for (std::uint32_t n = random() % 3; n > 0; --n) step.uses.push_back(random() % num_values);
      step.partial = random() % 4 == 0;
    }
    std::vector<std::uint8_t> units(num_values), counts(num_values, 1);
    for (std::uint32_t v = 0; v < num_values; ++v) {
      units[v] = static_cast<std::uint8_t>(1 + random() % 2);
      counts[v] = random() % 4 != 0;
    }
    const Allocation32 places =
        warpstack::simt::allocate_registers(successors, steps, units, counts);
    const auto live = live_before(successors, steps);
    std::uint32_t pressure = 0;
    std::uint32_t all_units = 0;
    for (std::uint32_t a = 0; a < num_values; ++a) {
      for (std::uint32_t b = a + 1; b < num_values; ++b) {
        if (places.unit[a] == unused || places.unit[b] == unused) continue;
        ASSERT_FALSE(lanes_collide(places.unit[a], units[a], places.unit[b], units[b]))
            << "round " << round << ", values " << a << " and " << b;
      }
    }
    for (std::uint32_t i = 0; i < num_steps; ++i) {
      // At a step: what is live before it, what it defines, and what is live behind it.
      std::set<std::uint32_t> present = live[i];
      present.insert(steps[i].definitions.begin(), steps[i].definitions.end());
      for (const std::uint32_t next : successors[i]) {
        present.insert(live[next].begin(), live[next].end());
      }
      std::set<std::uint32_t> taken;
      for (const std::uint32_t value : present) {
        ASSERT_NE(places.unit[value], unused) << "round " << round << ", value " << value;
        ASSERT_EQ(places.unit[value] % units[value], 0u) << "pairs are aligned";
        for (std::uint32_t u = 0; u < units[value]; ++u) {
          ASSERT_LT(places.unit[value] + u, places.num_units);
          ASSERT_TRUE(taken.insert(places.unit[value] + u).second)
              << "round " << round << ", step " << i << ", value " << value;
        }
      }
      std::uint32_t before = 0;
      for (const std::uint32_t value : live[i]) before += counts[value] != 0 ? units[value] : 0;
      pressure = std::max(pressure, before);
      std::set<std::uint32_t> behind;
      for (const std::uint32_t next : successors[i])
        behind.insert(live[next].begin(), live[next].end());
      std::uint32_t after = 0;
      for (const std::uint32_t value : behind) after += counts[value] != 0 ? units[value] : 0;
      pressure = std::max(pressure, after);
    }
    EXPECT_EQ(places.pressure, pressure) << "round " << round;
    for (std::uint32_t v = 0; v < num_values; ++v) {
      if (places.unit[v] != unused) all_units += units[v];
    }
    shared += all_units > places.num_units ? 1 : 0;
  }
  EXPECT_GT(shared, 300u) << "values take turns in the same units";
}

TEST(AllocateRegisters, UnusedValuesHaveNoPlace) {
  const Allocation32 places = warpstack::simt::allocate_registers(
      {{1}, {2}}, std::vector<DefinitionsAndUses>{{{0}, {}, false}, {{}, {0}, false}},
      std::vector<std::uint8_t>{2, 1}, std::vector<std::uint8_t>{1, 1});
  EXPECT_EQ(places.unit[0], 0u);
  EXPECT_EQ(places.unit[1], unused);
  EXPECT_EQ(places.num_units, 2u);
  EXPECT_EQ(places.pressure, 2u);
}

TEST(Stretches, EndAtGuardsMeetingPointsAndGapsInTheTrace) {
  using warpstack::simt::Action;
  warpstack::simt::ProgramFunction function;
  const auto add = [&](Action action, std::uint32_t row) -> warpstack::simt::Step& {
    warpstack::simt::Step step;
    step.action = action;
    step.first_row = row;
    step.num_rows = row == warpstack::simt::none ? 0 : 1;
    return function.steps.emplace_back(step);
  };
  const std::uint32_t folded = warpstack::simt::none;
  add(Action::lanes, 0);
  add(Action::lanes, folded);
  add(Action::lanes, 1);
  add(Action::lanes, 2).guard = 0;
  add(Action::lanes, 3);
  add(Action::lanes, 4).reconverges = true;
  add(Action::lanes, 5);
  add(Action::lanes, 9);
  add(Action::load, 10);
  add(Action::lanes, 11);
  find_stretches(function);
  std::vector<int> lengths;
  for (const auto& step : function.steps) lengths.push_back(step.stretch);
  EXPECT_EQ(lengths, (std::vector<int>{3, 2, 1, 0, 1, 2, 1, 1, 0, 1}));
}

}  // namespace
