#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ptx/lower/draft.h"

// The registers in the rows that a function's steps write into the trace.

namespace warpstack::ptx {
namespace {

/// The first value of each value's chain of folded copies; the value itself if it is no copy.
/// Copies in a cycle, which never get a value, share one of them.
std::vector<std::uint32_t> origins(const FunctionDraft& draft,
                                   const std::vector<std::uint32_t>& writes) {
  std::vector<std::uint32_t> origin(draft.values.size(), none);
  std::vector<std::uint32_t> chain;
  for (std::uint32_t first = 0; first < draft.values.size(); ++first) {
    chain.clear();
    std::uint32_t value = first;
    while (origin[value] == none) {
      origin[value] = value;
      chain.push_back(value);
      const auto next = draft.aliases.find(value);
      if (next == draft.aliases.end() || writes[value] != 1 || writes[next->second] > 1 ||
          draft.values[next->second].is_constant) {
        break;
      }
      value = next->second;
    }
    for (const std::uint32_t copy : chain) origin[copy] = origin[value];
  }
  return origin;
}

}  // namespace

void add_rows(FunctionDraft& draft, KernelProgram& program, std::uint32_t& first_register) {
  std::vector<std::uint32_t> writes(draft.values.size(), 0);
  for (const DefinitionsAndUses& effect : draft.effects) {
    for (const std::uint32_t value : effect.definitions) ++writes[value];
  }
  std::vector<std::uint32_t> number(draft.values.size());
  for (std::size_t v = 0; v < draft.values.size(); ++v) {
    number[v] = first_register;
    if (!draft.values[v].is_constant) first_register += draft.values[v].units;
  }
  const std::vector<std::uint32_t> origin = origins(draft, writes);
  const auto append = [&](std::vector<std::uint16_t>& registers, std::uint32_t value) {
    value = origin[value];
    for (std::uint32_t i = 0; i < draft.values[value].units; ++i) {
      // 255 is the zero register of the machine's own names; numbers must fit 16 bits.
      const std::uint32_t n = (number[value] + i) % 65000;
      registers.push_back(static_cast<std::uint16_t>(n < trace::zero_register ? n : n + 1));
    }
  };
  std::vector<char> is_read(draft.values.size(), 0);
  for (const DefinitionsAndUses& effect : draft.effects) {
    for (const std::uint32_t value : effect.uses) {
      if (value != none) is_read[value] = 1;
    }
  }
  for (std::size_t i = 0; i < draft.result.steps.size(); ++i) {
    const Step& step = draft.result.steps[i];
    if (step.action != Action::atomic) continue;
    program.memory[step.detail].result_is_read =
        std::ranges::any_of(draft.effects[i].definitions,
                            [&](std::uint32_t v) { return v != none && is_read[v] != 0; });
  }
  const auto base = static_cast<std::uint32_t>(program.rows.size());
  for (PendingRow& row : draft.rows) {
    std::string& opcode = row.instruction.opcode;
    if (opcode.ends_with(trace::lane_count_suffix) &&
        std::ranges::any_of(row.destinations, [&](std::uint32_t v) { return is_read[v] != 0; })) {
      opcode.resize(opcode.size() - trace::lane_count_suffix.size());
    }
    for (const std::uint32_t value : row.destinations) append(row.instruction.destinations, value);
    for (const std::uint32_t value : row.sources) append(row.instruction.sources, value);
    row.instruction.pc = static_cast<std::uint32_t>(program.rows.size() * 16);
    program.rows.push_back(std::move(row.instruction));
  }
  for (Step& step : draft.result.steps) {
    if (step.num_rows > 0) step.first_row += base;
  }
}

}  // namespace warpstack::ptx
