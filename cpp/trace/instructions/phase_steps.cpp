#include "trace/instructions/phase_steps.h"

#include <string_view>

#include "trace/instructions/opcode.h"

namespace warpstack::trace {
namespace {

constexpr std::string_view mark = ".barrier";

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
  const auto barrier = decimal(numbers.substr(0, dot));
  if (!barrier) return {};
  if (dot == std::string_view::npos) {
    const bool is_after_copies =
        opcode.starts_with("cp.async.mbarrier.") || opcode.starts_with("ARRIVES.LDGSTSBAR");
    const bool is_after_products =
        opcode.starts_with("tcgen05.commit.") || opcode.starts_with("UTCBAR");
    return {Kind::complete, *barrier, 0, is_after_copies, is_after_products};
  }
  const auto count = decimal(numbers.substr(dot + 1));
  if (!count) return {};
  return {Kind::wait, *barrier, *count};
}

}  // namespace warpstack::trace
