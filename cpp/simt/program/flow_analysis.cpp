#include "simt/program/flow_analysis.h"

#include <algorithm>
#include <queue>

namespace warpstack::simt {
namespace {

/// Basic blocks: runs of steps that are entered at the first and left at the last.
struct Blocks {
  std::vector<std::uint32_t> first;              ///< step; one more entry: the number of steps
  std::vector<std::uint32_t> of_step;            ///< block of each step
  std::vector<std::vector<std::uint32_t>> next;  ///< blocks; the number of blocks is the end
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(next.size()); }
};

Blocks find_blocks(const Successors& successors) {
  const auto num_steps = static_cast<std::uint32_t>(successors.size());
  std::vector<bool> leads(num_steps + 1, false);
  leads[0] = true;
  for (std::uint32_t i = 0; i < num_steps; ++i) {
    const auto& next = successors[i];
    if (next.size() == 1 && next[0] == i + 1) continue;
    for (const std::uint32_t target : next) leads[target] = true;
    leads[i + 1] = true;
  }
  Blocks blocks;
  blocks.of_step.resize(num_steps);
  for (std::uint32_t i = 0; i < num_steps; ++i) {
    if (leads[i]) blocks.first.push_back(i);
    blocks.of_step[i] = static_cast<std::uint32_t>(blocks.first.size() - 1);
  }
  const auto num_blocks = static_cast<std::uint32_t>(blocks.first.size());
  blocks.first.push_back(num_steps);
  blocks.next.resize(num_blocks);
  for (std::uint32_t b = 0; b < num_blocks; ++b) {
    for (const std::uint32_t target : successors[blocks.first[b + 1] - 1]) {
      blocks.next[b].push_back(target == num_steps ? num_blocks : blocks.of_step[target]);
    }
  }
  return blocks;
}

/// Adds an edge to the end from every block that cannot reach it.
void connect_to_end(Blocks& blocks) {
  const std::uint32_t end = blocks.size();
  std::vector<std::vector<std::uint32_t>> previous(end + 1);
  for (std::uint32_t b = 0; b < end; ++b) {
    for (const std::uint32_t target : blocks.next[b]) previous[target].push_back(b);
  }
  std::vector<bool> reaches(end + 1, false);
  std::vector<std::uint32_t> work{end};
  reaches[end] = true;
  const auto spread = [&] {
    while (!work.empty()) {
      const std::uint32_t block = work.back();
      work.pop_back();
      for (const std::uint32_t from : previous[block]) {
        if (!reaches[from]) {
          reaches[from] = true;
          work.push_back(from);
        }
      }
    }
  };
  spread();
  for (std::uint32_t b = end; b-- > 0;) {
    if (reaches[b]) continue;
    blocks.next[b].push_back(end);
    reaches[b] = true;
    work.push_back(b);
    spread();
  }
}

/// Immediate post-dominator of each block; the number of blocks is the end.
std::vector<std::uint32_t> block_post_dominators(const Blocks& blocks) {
  const std::uint32_t end = blocks.size();
  std::vector<std::vector<std::uint32_t>> previous(end + 1);
  for (std::uint32_t b = 0; b < end; ++b) {
    for (const std::uint32_t target : blocks.next[b]) previous[target].push_back(b);
  }
  // Postorder of the reversed graph from the end.
  std::vector<std::uint32_t> number(end + 1, ~0u);
  std::vector<std::uint32_t> order;
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{end, 0}};
  std::vector<bool> seen(end + 1, false);
  seen[end] = true;
  while (!stack.empty()) {
    auto& [block, position] = stack.back();
    if (position < previous[block].size()) {
      const std::uint32_t from = previous[block][position++];
      if (!seen[from]) {
        seen[from] = true;
        stack.emplace_back(from, 0);
      }
      continue;
    }
    number[block] = static_cast<std::uint32_t>(order.size());
    order.push_back(block);
    stack.pop_back();
  }
  constexpr std::uint32_t unknown = ~0u;
  std::vector<std::uint32_t> dominator(end + 1, unknown);
  dominator[end] = end;
  const auto intersect = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) {
      while (number[a] < number[b]) a = dominator[a];
      while (number[b] < number[a]) b = dominator[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::uint32_t block = order[i];
      if (block == end) continue;
      std::uint32_t found = unknown;
      for (const std::uint32_t target : blocks.next[block]) {
        if (dominator[target] == unknown) continue;
        found = found == unknown ? target : intersect(found, target);
      }
      if (dominator[block] != found) {
        dominator[block] = found;
        changed = true;
      }
    }
  }
  return dominator;
}

}  // namespace

std::vector<std::uint32_t> post_dominators(const Successors& successors) {
  const auto num_steps = static_cast<std::uint32_t>(successors.size());
  std::vector<std::uint32_t> result(num_steps, num_steps);
  if (num_steps == 0) return result;
  Blocks blocks = find_blocks(successors);
  connect_to_end(blocks);
  const std::vector<std::uint32_t> dominator = block_post_dominators(blocks);
  for (std::uint32_t i = 0; i < num_steps; ++i) {
    if (successors[i].size() < 2) continue;
    result[i] = blocks.first[dominator[blocks.of_step[i]]];
  }
  return result;
}

Allocation32 allocate_registers(const Successors& successors,
                                std::span<const DefinitionsAndUses> steps,
                                std::span<const std::uint8_t> units,
                                std::span<const std::uint8_t> counts) {
  const auto num_values = static_cast<std::uint32_t>(units.size());
  Allocation32 result;
  result.unit.assign(num_values, ~0u);
  if (steps.empty()) return result;
  const Blocks blocks = find_blocks(successors);
  const std::uint32_t num_blocks = blocks.size();

  // Liveness, backwards until nothing changes.
  const std::size_t words = (num_values + 63) / 64;
  const auto bit = [](std::uint32_t value) { return std::uint64_t{1} << (value % 64); };
  std::vector<std::uint64_t> live_in(num_blocks * words), live_out(num_blocks * words);
  std::vector<std::uint64_t> uses(num_blocks * words), kills(num_blocks * words);
  std::vector<std::vector<std::uint32_t>> previous(num_blocks);
  for (std::uint32_t b = 0; b < num_blocks; ++b) {
    for (const std::uint32_t next : blocks.next[b]) {
      if (next < num_blocks) previous[next].push_back(b);
    }
    for (std::uint32_t i = blocks.first[b]; i < blocks.first[b + 1]; ++i) {
      for (const std::uint32_t value : steps[i].uses) {
        if ((kills[b * words + value / 64] & bit(value)) == 0) {
          uses[b * words + value / 64] |= bit(value);
        }
      }
      if (steps[i].partial) continue;
      for (const std::uint32_t value : steps[i].definitions) {
        kills[b * words + value / 64] |= bit(value);
      }
    }
  }
  std::vector<std::uint32_t> work;
  std::vector<bool> queued(num_blocks, true);
  for (std::uint32_t b = 0; b < num_blocks; ++b) work.push_back(b);
  while (!work.empty()) {
    const std::uint32_t b = work.back();
    work.pop_back();
    queued[b] = false;
    bool changed = false;
    for (std::size_t w = 0; w < words; ++w) {
      std::uint64_t out = 0;
      for (const std::uint32_t next : blocks.next[b]) {
        if (next < num_blocks) out |= live_in[next * words + w];
      }
      live_out[b * words + w] = out;
      const std::uint64_t in = uses[b * words + w] | (out & ~kills[b * words + w]);
      changed = changed || in != live_in[b * words + w];
      live_in[b * words + w] = in;
    }
    if (!changed) continue;
    for (const std::uint32_t from : previous[b]) {
      if (!queued[from]) {
        queued[from] = true;
        work.push_back(from);
      }
    }
  }

  // One interval per value, in text order, over all steps where it is live.
  const auto num_steps = static_cast<std::uint32_t>(steps.size());
  std::vector<std::uint32_t> first(num_values, ~0u), last(num_values, 0);
  const auto touch = [&](std::uint32_t value, std::uint32_t step) {
    first[value] = std::min(first[value], step);
    last[value] = std::max(last[value], step);
  };
  for (std::uint32_t b = 0; b < num_blocks; ++b) {
    for (std::uint32_t value = 0; value < num_values; ++value) {
      if ((live_in[b * words + value / 64] & bit(value)) != 0) touch(value, blocks.first[b]);
      if ((live_out[b * words + value / 64] & bit(value)) != 0) {
        touch(value, blocks.first[b + 1] - 1);
      }
    }
    // The pressure counts values that are live after each step, without holes.
    std::vector<std::uint64_t> live(
        live_out.begin() + static_cast<std::ptrdiff_t>(b * words),
        live_out.begin() + static_cast<std::ptrdiff_t>((b + 1) * words));
    std::uint32_t pressure = 0;
    const auto contains = [&](std::uint32_t v) { return (live[v / 64] & bit(v)) != 0; };
    for (std::uint32_t value = 0; value < num_values; ++value) {
      if (contains(value) && counts[value] != 0) pressure += units[value];
    }
    result.pressure = std::max(result.pressure, pressure);
    for (std::uint32_t i = blocks.first[b + 1]; i-- > blocks.first[b];) {
      for (const std::uint32_t value : steps[i].definitions) {
        touch(value, i);
        if (contains(value) && !steps[i].partial) {
          live[value / 64] &= ~bit(value);
          if (counts[value] != 0) pressure -= units[value];
        }
      }
      for (const std::uint32_t value : steps[i].uses) {
        touch(value, i);
        if (!contains(value)) {
          live[value / 64] |= bit(value);
          if (counts[value] != 0) pressure += units[value];
        }
      }
      result.pressure = std::max(result.pressure, pressure);
    }
  }

  // Linear scan, once per width: see the header for why values of different widths never share a
  // place. A value's place is free again in the step after the last that touches it: a target never
  // shares a place with a source of its own step.
  std::vector<std::uint32_t> order;
  for (std::uint32_t value = 0; value < num_values; ++value) {
    if (first[value] != ~0u) order.push_back(value);
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return first[a] != first[b] ? first[a] < first[b] : a < b;
  });
  using Heap = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;
  for (const std::uint32_t width : {2u, 1u}) {
    std::vector<std::vector<std::uint32_t>> ending(num_steps);
    Heap free;
    std::uint32_t swept = 0;
    for (const std::uint32_t value : order) {
      if (units[value] != width) continue;
      for (; swept < first[value]; ++swept) {
        for (const std::uint32_t ended : ending[swept]) free.push(result.unit[ended]);
      }
      if (free.empty()) {
        result.unit[value] = result.num_units;
        result.num_units += width;
      } else {
        result.unit[value] = free.top();
        free.pop();
      }
      ending[last[value]].push_back(value);
    }
  }
  return result;
}

void find_stretches(ProgramFunction& function) {
  constexpr std::uint8_t longest = 255;
  std::uint32_t row = none;  // the first one of the stretch behind a step
  std::uint8_t behind = 0;
  for (std::size_t i = function.steps.size(); i-- > 0;) {
    Step& step = function.steps[i];
    if (step.action != Action::lanes || step.guard != none) {
      step.stretch = behind = 0;
      row = none;
      continue;
    }
    const bool follows = step.num_rows == 0 || row == none || step.first_row + step.num_rows == row;
    if (!follows) {
      behind = 0;
      row = none;
    }
    step.stretch = behind == longest ? longest : static_cast<std::uint8_t>(behind + 1);
    if (step.num_rows > 0) row = step.first_row;
    behind = step.stretch;
    if (step.reconverges) {  // such a step can only be the first of a stretch
      behind = 0;
      row = none;
    }
  }
}

}  // namespace warpstack::simt
