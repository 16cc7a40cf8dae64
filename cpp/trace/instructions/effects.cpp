#include "trace/instructions/effects.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace warpstack::trace {
namespace {

bool is_wide_conversion(std::string_view opcode) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  const SassOpcode* row = find_sass_opcode(base);
  const bool converts =
      base == "cvt" ||
      (row != nullptr &&
       (row->registers == Registers::between_floats || row->registers == Registers::to_integer ||
        row->registers == Registers::from_integer || row->registers == Registers::rounding));
  if (!converts) return false;
  return std::ranges::any_of(std::array{"F64", "S64", "U64", "f64", "s64", "u64"},
                             [&](const char* type) { return has_modifier(opcode, type); });
}

OpClass unit_of(const StaticInstruction& instruction) {
  if (instruction.op_class != OpClass::sfu) return instruction.op_class;
  return is_wide_conversion(instruction.opcode) ? OpClass::fp64 : instruction.op_class;
}

bool is_matrix_load(std::string_view opcode) {
  return opcode.starts_with("LDSM") || opcode.starts_with("ldmatrix") || opcode.starts_with("wmma");
}

bool is_async_product(const StaticInstruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode.starts_with("wgmma.mma_async")) return true;
  if (instruction.op_class != OpClass::tensor) return false;
  if (opcode.starts_with("tcgen05.mma.")) return true;
  const SassOpcode* const row = find_sass_opcode(opcode.substr(0, opcode.find('.')));
  return row != nullptr && row->is_of_group;
}

bool is_bulk_store(std::string_view opcode) {
  constexpr std::array<std::string_view, 4> stores{"UTMASTG", "UTMAREDG", "UBLKCP.G", "UBLKRED.G"};
  return opcode.find(".bulk_group") != std::string_view::npos ||
         std::ranges::any_of(stores, [opcode](auto start) { return opcode.starts_with(start); });
}

/// Lanes that address one word of shared memory take turns: atomics but those that count lanes, of
/// which a word gets the number at once. Matrix loads have a row per lane.
SharedAccess shared_access_of(const StaticInstruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (instruction.is_atomic()) {
    const bool counts_lanes = opcode.find("POPC") != std::string_view::npos ||
                              opcode.find(lane_count_suffix) != std::string_view::npos;
    return counts_lanes ? SharedAccess::other : SharedAccess::in_turn;
  }
  return instruction.kind == MemoryKind::load && !is_matrix_load(opcode) ? SharedAccess::load
                                                                         : SharedAccess::other;
}

}  // namespace

Effects effects_of(const StaticInstruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  Effects effects;
  effects.unit = unit_of(instruction);
  effects.shared_access = shared_access_of(instruction);
  effects.barrier = barrier_step(opcode);
  effects.is_block_barrier = effects.barrier.kind == BarrierStep::Kind::wait;
  effects.awaits_copies = opcode.starts_with("LDGDEPBAR");
  effects.is_async_product = is_async_product(instruction);
  effects.is_bulk_store = instruction.writes_memory() && is_bulk_store(opcode);
  effects.groups = copy_group_step(opcode);
  effects.phase = phase_step(opcode);
  effects.is_grouped_copy =
      instruction.kind == MemoryKind::async_copy && effects.phase.kind == PhaseStep::Kind::none;
  if (instruction.op_class == OpClass::tensor) effects.tensor = tensor_operation(opcode);
  return effects;
}

bool has_product_waits(std::span<const Effects> effects) {
  return std::ranges::any_of(effects, [](const Effects& one) {
    if (one.phase.is_after_products) return true;
    return one.groups.kind == CopyGroupStep::Kind::wait &&
           one.groups.of == CopyGroupStep::Of::products;
  });
}

std::vector<std::uint16_t> awaited_by_product(const StaticInstruction& instruction) {
  std::vector<std::uint16_t> result = instruction.sources;
  std::erase_if(result, [&](std::uint16_t reg) {
    return std::ranges::find(instruction.destinations, reg) != instruction.destinations.end();
  });
  return result;
}

}  // namespace warpstack::trace
