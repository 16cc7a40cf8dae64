#include "trace/instructions/phase_steps.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace warpstack::trace {
namespace {

constexpr std::string_view mark = ".barrier";

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

std::string phase_opcode(const std::string& opcode, const PhaseStep& step) {
  std::string result = opcode + std::string(mark) + std::to_string(step.barrier);
  if (step.kind == PhaseStep::Kind::wait) result += "." + std::to_string(step.count);
  return result;
}

PhaseStep phase_step(std::string_view opcode) {
  using Kind = PhaseStep::Kind;
  const std::size_t at = opcode.rfind(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view numbers = opcode.substr(at + mark.size());
  const std::size_t dot = numbers.find('.');
  const auto barrier = number(numbers.substr(0, dot));
  if (!barrier) return {};
  if (dot == std::string_view::npos) {
    return {Kind::complete, *barrier, 0, opcode.starts_with("cp.async.mbarrier.")};
  }
  const auto count = number(numbers.substr(dot + 1));
  if (!count) return {};
  return {Kind::wait, *barrier, *count};
}

}  // namespace warpstack::trace
