#include "trace/copy_groups.h"

#include <charconv>
#include <string_view>

namespace warpstack::trace {
namespace {

constexpr std::string_view wait_start = "cp.async.wait_group";

}  // namespace

std::string copy_wait_opcode(std::uint32_t most) {
  return std::string(wait_start) + "." + std::to_string(most);
}

CopyGroupStep copy_group_step(const StaticInstruction& instruction) {
  using Kind = CopyGroupStep::Kind;
  std::string_view opcode = instruction.opcode;
  if (opcode == "cp.async.commit_group") return {Kind::commit, 0};
  if (opcode == "cp.async.wait_all") return {Kind::wait_all, 0};
  if (!opcode.starts_with(wait_start)) return {};
  opcode.remove_prefix(wait_start.size());
  if (!opcode.starts_with('.')) return {};
  opcode.remove_prefix(1);
  std::uint32_t most = 0;
  const auto [end, error] = std::from_chars(opcode.data(), opcode.data() + opcode.size(), most);
  if (error != std::errc{} || end != opcode.data() + opcode.size()) return {};
  return {Kind::wait, most};
}

}  // namespace warpstack::trace
