#include "trace/instructions/barrier_steps.h"

#include <algorithm>
#include <optional>

#include "trace/instructions/coalescing.h"
#include "trace/instructions/opcode.h"

namespace warpstack::trace {
namespace {

constexpr std::string_view mark = ".id";
constexpr std::string_view part_suffix = "part";

/// What the name of an instruction says without numbers.
BarrierStep::Kind kind_of(std::string_view opcode) {
  using Kind = BarrierStep::Kind;
  for (const std::string_view start : {"BAR.", "bar.", "barrier."}) {
    if (!opcode.starts_with(start)) continue;
    opcode.remove_prefix(start.size());
    if (opcode.starts_with("cta.")) opcode.remove_prefix(4);
    const auto is_any = [opcode](const auto& kinds) {
      return std::ranges::any_of(
          kinds, [opcode](std::string_view kind) { return opcode.starts_with(kind); });
    };
    if (is_any(std::array{"SYNC", "RED", "sync", "red"})) return Kind::wait;
    if (is_any(std::array{"ARV", "arrive"})) return Kind::arrive;
    return Kind::none;
  }
  return Kind::none;
}

/// The end of an opcode with numbers; nothing where it has none.
std::optional<BarrierStep> numbers_of(std::string_view opcode, BarrierStep::Kind kind) {
  const std::size_t at = opcode.rfind(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view numbers = opcode.substr(at + mark.size());
  const std::size_t dot = numbers.find('.');
  const auto number = decimal(numbers.substr(0, dot));
  if (!number || *number >= num_block_barriers) return {};
  BarrierStep step{kind, static_cast<std::uint8_t>(*number), 0};
  if (dot == std::string_view::npos) return step;
  const std::string_view rest = numbers.substr(dot + 1);
  if (rest == part_suffix) return BarrierStep{BarrierStep::Kind::part, step.number, 0};
  const auto threads = decimal(rest);
  if (!threads) return {};
  step.threads = *threads;
  return step;
}

}  // namespace

std::string barrier_opcode(const std::string& opcode, const BarrierStep& step) {
  std::string result = opcode + std::string(mark) + std::to_string(step.number);
  if (step.kind == BarrierStep::Kind::part) return result + "." + std::string(part_suffix);
  if (step.threads > 0) result += "." + std::to_string(step.threads);
  return result;
}

BarrierStep barrier_step(std::string_view opcode) {
  const BarrierStep::Kind kind = kind_of(opcode);
  if (kind == BarrierStep::Kind::none) return {};
  if (const auto step = numbers_of(opcode, kind)) return *step;
  // Who arrives without a number could be meant anywhere.
  return {.kind = kind == BarrierStep::Kind::wait ? kind : BarrierStep::Kind::none};
}

void BlockBarriers::arrive(const BarrierStep& step) {
  Barrier& barrier = barriers_[step.number];
  if (barrier.warps++ == 0) barrier.threads = step.threads;
}

std::uint32_t BlockBarriers::awaited(std::uint32_t number, std::uint32_t unfinished) const {
  const std::uint32_t threads = barriers_[number].threads;
  return threads == 0 ? unfinished : (threads - 1) / warp_size + 1;
}

std::string BlockBarriers::describe(std::uint32_t number, std::uint32_t unfinished) const {
  return "barrier " + std::to_string(number) + ", at which " + std::to_string(arrived(number)) +
         " of " + std::to_string(awaited(number, unfinished)) + " warps have arrived";
}

}  // namespace warpstack::trace
