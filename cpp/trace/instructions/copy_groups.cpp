#include "trace/instructions/copy_groups.h"

#include <optional>
#include <string_view>

#include "trace/instructions/opcode.h"

namespace warpstack::trace {
namespace {

constexpr std::string_view wait_start = "cp.async.wait_group";
constexpr std::string_view bulk_start = "cp.async.bulk.";
constexpr std::string_view product_wait_start = "wgmma.wait_group";
// Machine code, with operands that the lowering adds to its opcodes.
constexpr std::string_view sass_product_end = ".gsb0";
constexpr std::string_view sass_product_wait_start = "WARPGROUP.DEPBAR.LE.";
constexpr std::string_view sass_bulk_wait_start = "DEPBAR.LE.bulk.";

/// The number after the last dot of an opcode; nothing if there is no number.
std::optional<std::uint32_t> last_number(std::string_view opcode) {
  return decimal(opcode.substr(opcode.rfind('.') + 1));
}

}  // namespace

std::string wait_opcode(const std::string& opcode, std::uint32_t most) {
  return opcode + "." + std::to_string(most);
}

CopyGroupStep copy_group_step(std::string_view opcode) {
  using Kind = CopyGroupStep::Kind;
  using Of = CopyGroupStep::Of;
  if (opcode == "cp.async.commit_group") return {Kind::commit};
  if (opcode == "cp.async.wait_all") return {Kind::wait_all};
  if (opcode.starts_with("wgmma.commit_group")) return {Kind::commit, 0, Of::products};
  if (opcode.ends_with(sass_product_end)) return {Kind::commit, 0, Of::products};
  if (opcode == "UTMACMDFLUSH") return {Kind::commit, 0, Of::bulk_stores};
  const bool awaits_products = opcode.starts_with(sass_product_wait_start);
  if (awaits_products || opcode.starts_with(sass_bulk_wait_start)) {
    const auto most = last_number(opcode);
    if (!most) return {};
    return awaits_products ? CopyGroupStep{Kind::wait, *most, Of::products}
                           : CopyGroupStep{Kind::wait, *most, Of::bulk_stores, true};
  }
  if (opcode.starts_with(bulk_start)) {
    const std::string_view rest = opcode.substr(bulk_start.size());
    if (rest == "commit_group") return {Kind::commit, 0, Of::bulk_stores};
    if (!rest.starts_with("wait_group.")) return {};
    const auto number = last_number(opcode);
    if (!number) return {};
    return {Kind::wait, *number, Of::bulk_stores, rest.starts_with("wait_group.read.")};
  }
  const bool is_of_products = opcode.starts_with(product_wait_start);
  if (!is_of_products && !opcode.starts_with(wait_start)) return {};
  const auto most = last_number(opcode);
  if (!most) return {};
  return {Kind::wait, *most, is_of_products ? Of::products : Of::copies};
}

}  // namespace warpstack::trace
