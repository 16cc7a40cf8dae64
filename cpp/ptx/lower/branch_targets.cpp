#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "ptx/lower/draft.h"
#include "simt/program/flow_analysis.h"

// Branches: their targets, their successors and their reconvergence points.

namespace warpstack::ptx {
namespace {

/// Whether a step only ends the kernel.
bool exits_at(const FunctionDraft& draft, std::uint32_t step) {
  if (!draft.is_kernel || step >= draft.result.steps.size()) return draft.is_kernel;
  return draft.result.steps[step].action == Action::exit && draft.result.steps[step].guard == none;
}

/// Turns targets of branches into steps and lists the successors of each step.
void list_successors(FunctionDraft& draft, KernelProgram& program) {
  const auto end = static_cast<std::uint32_t>(draft.result.steps.size());
  draft.successors.resize(end);
  for (std::uint32_t i = 0; i < end; ++i) {
    Step& step = draft.result.steps[i];
    const bool guarded = step.guard != none;
    auto& next = draft.successors[i];
    switch (step.action) {
      case Action::branch:
        step.jump = draft.first_step[step.jump];
        if (exits_at(draft, step.jump)) {
          // Machine code exits on the spot, and so must a simulation: no barrier may wait for lanes
          // on their way to the kernel's end.
          step.action = Action::exit;
          if (step.num_rows > 0) draft.rows[step.first_row].instruction.opcode = "exit";
          next.push_back(end);
          if (guarded && i + 1 != end) next.push_back(i + 1);
          break;
        }
        next.push_back(step.jump);
        if (guarded && step.jump != i + 1) next.push_back(i + 1);
        break;
      case Action::indexed_branch:
        for (std::uint32_t& target : program.indexed_branches[step.detail].targets) {
          target = draft.first_step[target];
          if (std::ranges::find(next, target) == next.end()) next.push_back(target);
        }
        if (guarded && std::ranges::find(next, i + 1) == next.end()) next.push_back(i + 1);
        break;
      case Action::exit:
      case Action::function_return:
      case Action::trap:
        next.push_back(end);
        if (guarded && i + 1 != end) next.push_back(i + 1);
        break;
      default:
        next.push_back(i + 1);
        break;
    }
  }
}

/// Steps from which `to` can be reached, including `to`.
std::vector<bool> leading_to(const Successors& previous, std::uint32_t to) {
  std::vector<bool> leads(previous.size(), false);
  std::vector<std::uint32_t> work{to};
  leads[to] = true;
  while (!work.empty()) {
    const std::uint32_t step = work.back();
    work.pop_back();
    for (const std::uint32_t from : previous[step]) {
      if (leads[from]) continue;
      leads[from] = true;
      work.push_back(from);
    }
  }
  return leads;
}

/// Successors without the edges that lead only to early exits: lanes that have exited need not
/// reconverge. The exit that most steps can reach is the regular one, all others are early. Steps
/// that cannot reach it keep all their edges.
Successors without_early_exits(const FunctionDraft& draft) {
  const auto end = static_cast<std::uint32_t>(draft.result.steps.size());
  Successors previous(end);
  for (std::uint32_t i = 0; i < end; ++i) {
    for (const std::uint32_t next : draft.successors[i]) {
      if (next != end) previous[next].push_back(i);
    }
  }
  std::uint32_t natural = end;
  std::ptrdiff_t most = 0;
  std::vector<bool> core;
  for (std::uint32_t i = 0; i < end; ++i) {
    if (draft.successors[i] != std::vector{end} || draft.result.steps[i].action == Action::trap)
      continue;
    std::vector<bool> leads = leading_to(previous, i);
    const std::ptrdiff_t count = std::ranges::count(leads, true);
    if (count < most) continue;
    natural = i;
    most = count;
    core = std::move(leads);
  }
  Successors result = draft.successors;
  if (natural == end) return result;
  for (std::uint32_t i = 0; i < end; ++i) {
    if (!core[i] || i == natural) continue;
    std::erase_if(result[i], [&](std::uint32_t next) { return next == end || !core[next]; });
  }
  return result;
}

}  // namespace

void connect_branches(FunctionDraft& draft, KernelProgram& program) {
  list_successors(draft, program);
  const auto end = static_cast<std::uint32_t>(draft.result.steps.size());
  for (std::uint32_t i = 0; i + 1 < end; ++i) {
    // Lanes that call different functions reconverge behind the call.
    if (draft.result.steps[i].action == Action::indirect_call)
      draft.result.steps[i + 1].reconverges = true;
  }
  const std::vector<std::uint32_t> meeting = post_dominators(without_early_exits(draft));
  for (std::uint32_t i = 0; i < end; ++i) {
    Step& step = draft.result.steps[i];
    if (step.action != Action::branch && step.action != Action::indexed_branch) continue;
    step.reconvergence = meeting[i];
    if (meeting[i] == end) continue;
    draft.result.steps[meeting[i]].reconverges = true;
  }
}

}  // namespace warpstack::ptx
