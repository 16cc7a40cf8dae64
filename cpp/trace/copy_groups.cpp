#include "trace/copy_groups.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace warpstack::trace {
namespace {

constexpr std::string_view wait_start = "cp.async.wait_group";
constexpr std::string_view product_wait_start = "wgmma.wait_group";

/// The number behind the last dot of an opcode; nothing when there is no number.
std::optional<std::uint32_t> last_number(std::string_view opcode) {
  opcode.remove_prefix(opcode.rfind('.') + 1);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(opcode.data(), opcode.data() + opcode.size(), number);
  if (error != std::errc{} || end != opcode.data() + opcode.size()) return {};
  return number;
}

}  // namespace

std::string copy_wait_opcode(std::uint32_t most) {
  return std::string(wait_start) + "." + std::to_string(most);
}

std::string product_wait_opcode(const std::string& opcode, std::uint32_t most) {
  return opcode + "." + std::to_string(most);
}

bool is_async_product(const StaticInstruction& instruction) {
  return instruction.opcode.starts_with("wgmma.mma_async");
}

bool has_product_waits(const std::vector<StaticInstruction>& instructions) {
  return std::ranges::any_of(instructions, [](const StaticInstruction& instruction) {
    const CopyGroupStep step = copy_group_step(instruction);
    return step.kind == CopyGroupStep::Kind::wait && step.is_of_products;
  });
}

std::vector<std::uint16_t> awaited_by_product(const StaticInstruction& instruction) {
  std::vector<std::uint16_t> result = instruction.sources;
  std::erase_if(result, [&](std::uint16_t reg) {
    return std::ranges::find(instruction.destinations, reg) != instruction.destinations.end();
  });
  return result;
}

CopyGroupStep copy_group_step(const StaticInstruction& instruction) {
  using Kind = CopyGroupStep::Kind;
  const std::string_view opcode = instruction.opcode;
  if (opcode == "cp.async.commit_group") return {Kind::commit, 0};
  if (opcode == "cp.async.wait_all") return {Kind::wait_all, 0};
  if (opcode.starts_with("wgmma.commit_group")) return {Kind::commit, 0, true};
  const bool is_of_products = opcode.starts_with(product_wait_start);
  if (!is_of_products && !opcode.starts_with(wait_start)) return {};
  const auto most = last_number(opcode);
  if (!most) return {};
  return {Kind::wait, *most, is_of_products};
}

}  // namespace warpstack::trace
