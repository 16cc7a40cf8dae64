#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"
#include "simt/arithmetic/atomics.h"
#include "trace/instructions/copy_groups.h"

// Copies of blocks of bytes and of tiles of tensors, and the maps that describe the tensors.

namespace warpstack::ptx::handlers {
namespace {

using simt::BulkCopy;
using simt::TensorCopy;
using simt::TensorElement;
using simt::TensorMapChange;
using simt::TensorMapCopy;
using simt::TensorMapField;

/// Target and source of a copy, and the operands behind its addresses.
struct Route {
  bool to_shared = false;
  bool from_global = false;
  bool to_many = false;        ///< `.multicast::cluster`
  bool has_byte_mask = false;  ///< `.cp_mask`
};

Route take_route(Modifiers& modifiers) {
  Route route;
  const bool global = modifiers.take("global");
  const bool by_barrier = modifiers.take("mbarrier::complete_tx::bytes");
  if (by_barrier == modifiers.take("bulk_group")) {
    throw Unsupported{"it is completed neither by an mbarrier nor in a group"};
  }
  modifiers.take("shared::cta");
  modifiers.take("shared::cluster");
  route.to_shared = by_barrier;
  route.from_global = by_barrier && global;
  route.to_many = modifiers.take("multicast::cluster");
  route.has_byte_mask = modifiers.take("cp_mask");
  modifiers.take("L2::cache_hint");
  return route;
}

void set_bulk_row(Emitter& e, const Route& route, bool reduces) {
  e.set_class(OpClass::memory);
  constexpr std::uint32_t width = 16;
  if (!route.to_shared) {
    set_memory_row(e, AddressSpace::global, reduces ? MemoryKind::reduction : MemoryKind::store,
                   width);
  } else if (route.from_global) {
    set_memory_row(e, AddressSpace::global, MemoryKind::async_copy, width);
    e.row().cache_operator = CacheOperator::bypass_l1;
  } else {
    set_memory_row(e, AddressSpace::shared, MemoryKind::load, width);
  }
}

/// The operation of a reduction, or empty for a copy.
std::string_view take_reduction(Modifiers& modifiers) {
  for (const std::string_view name : {"add", "min", "max", "inc", "dec", "and", "or", "xor"}) {
    if (modifiers.take(name)) return name;
  }
  throw Unsupported{"it names no operation"};
}

void copy_bytes(Emitter& e, Modifiers& modifiers, bool reduces) {
  const Route route = take_route(modifiers);
  BulkCopy copy;
  copy.to = address_operand(e, e.operand(0),
                            route.to_shared ? AddressSpace::shared : AddressSpace::global);
  copy.from = address_operand(e, e.operand(1),
                              route.from_global ? AddressSpace::global : AddressSpace::shared);
  copy.bytes = e.in(2, Type::u32);
  std::size_t next = 3;
  if (route.to_shared) {
    copy.barrier = address_operand(e, e.operand(next++), AddressSpace::shared);
  }
  if (route.to_many) copy.blocks = e.in(next++, Type::b16);
  if (route.has_byte_mask) copy.byte_mask = e.in(e.num_operands() - 1, Type::b16);
  if (reduces) {
    const std::string_view name = take_reduction(modifiers);
    modifiers.take("noftz");
    const Type type = modifiers.need_type();
    copy.reduction = simt::find_atomic(name, type, !route.to_shared);
    copy.element_bytes = static_cast<std::uint8_t>(bytes_of(type));
    if (copy.reduction == nullptr) throw Unsupported{"this reduction is not supported"};
  }
  e.emit(
      Action::bulk_copy, e.program().bulk_copies, copy, {},
      {copy.to.slot, copy.from.slot, copy.bytes, copy.barrier.slot, copy.blocks, copy.byte_mask});
  set_bulk_row(e, route, reduces);
}

/// `[map, {coordinates}]`
void take_map(Emitter& e, TensorCopy& copy, const Operand& operand) {
  if (operand.kind != Operand::Kind::texture || operand.elements.size() != 2) {
    throw Unsupported{"its tensor operand is not [map, {coordinates}]"};
  }
  Operand map;
  map.kind = Operand::Kind::address;
  map.elements.push_back(operand.elements[0]);
  copy.map = address_operand(e, map, AddressSpace::generic);
  const auto coordinates = elements_of(operand.elements[1]);
  if (coordinates.size() != copy.dimensions) {
    throw Unsupported{"it has " + std::to_string(coordinates.size()) + " coordinates instead of " +
                      std::to_string(copy.dimensions)};
  }
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    copy.coordinates[d] = e.in(*coordinates[d], Type::s32);
  }
}

void copy_tile(Emitter& e, Modifiers& modifiers, bool reduces) {
  TensorCopy copy;
  const auto dimensions = modifiers.take_one_of({"1d", "2d", "3d", "4d", "5d"});
  if (!dimensions) throw Unsupported{"it names no number of dimensions"};
  copy.dimensions = static_cast<std::uint8_t>(*dimensions + 1);
  if (modifiers.take_prefix("im2col")) {
    throw Unsupported{"im2col copies are not supported; tiles are"};
  }
  modifiers.take("tile");
  if (modifiers.take_prefix("tile::")) {
    throw Unsupported{
        "gathered and scattered tiles, which are for compute capability 10.0, are "
        "not supported"};
  }
  const auto group = modifiers.take_one_of({"cta_group::1", "cta_group::2"});
  const Route route = take_route(modifiers);
  copy.to_shared = route.to_shared;
  copy.is_of_pair = group && *group == 1;
  copy.reduces = reduces;
  take_map(e, copy, e.operand(copy.to_shared ? 1 : 0));
  copy.tile = address_operand(e, e.operand(copy.to_shared ? 0 : 1), AddressSpace::shared);
  if (copy.to_shared) copy.barrier = address_operand(e, e.operand(2), AddressSpace::shared);
  if (route.to_many) copy.blocks = e.in(3, Type::b16);
  if (reduces) copy.reductions = simt::tensor_reductions(take_reduction(modifiers));
  std::vector<std::uint32_t> uses{copy.map.slot, copy.tile.slot, copy.barrier.slot, copy.blocks};
  uses.insert(uses.end(), copy.coordinates.begin(), copy.coordinates.begin() + copy.dimensions);
  e.emit(Action::tensor_copy, e.program().tensor_copies, copy, {}, std::move(uses));
  set_bulk_row(e, {.to_shared = route.to_shared, .from_global = true}, reduces);
}

void replace(Emitter& e, Modifiers& modifiers) {
  static constexpr std::string_view names[] = {
      "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
      "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode"};
  if (!modifiers.take("tile") || !modifiers.take("b1024")) {
    throw Unsupported{"only maps of tiles (.tile, .b1024) are supported"};
  }
  TensorMapChange change;
  bool is_named = false;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (!modifiers.take(names[i])) continue;
    change.field = static_cast<TensorMapField>(i);
    is_named = true;
  }
  if (!is_named) throw Unsupported{"it names no field of a tensor map"};
  const auto space = modifiers.take_one_of({"global", "shared::cta", "shared"});
  const Type type = modifiers.need_type();
  change.map = address_operand(e, e.operand(0),
                               !space        ? AddressSpace::generic
                               : *space == 0 ? AddressSpace::global
                                             : AddressSpace::shared);
  const bool per_dimension = change.field == TensorMapField::box_dim ||
                             change.field == TensorMapField::global_dim ||
                             change.field == TensorMapField::global_stride ||
                             change.field == TensorMapField::element_stride;
  if (per_dimension) change.ordinal = static_cast<std::uint32_t>(e.operand(1).integer);
  change.value = e.in(per_dimension ? 2 : 1, type);
  change.value_bytes = static_cast<std::uint8_t>(bytes_of(type));
  e.emit(Action::tensor_map, e.program().tensor_map_changes, change, {},
         {change.map.slot, change.value});
}

}  // namespace

void bulk_copy(Emitter& e, Modifiers& modifiers, bool reduces) {
  // Copies finish at once, so neither waiting for them nor prefetching takes a step. Models and
  // simulator see in the trace which groups are waited for.
  if (modifiers.take("wait_group")) {
    const auto most = static_cast<std::uint32_t>(e.operand(0).integer);
    e.row().opcode = trace::wait_opcode(e.opcode_text(), most);
    modifiers.take("read");
    return;
  }
  if (modifiers.take("commit_group")) return;
  if (modifiers.take("prefetch")) {
    modifiers.take_all();
    return;
  }
  modifiers.take("async");
  modifiers.take("bulk");
  if (modifiers.take("tensor")) {
    copy_tile(e, modifiers, reduces);
  } else {
    copy_bytes(e, modifiers, reduces);
  }
}

void tensormap(Emitter& e, Modifiers& modifiers) {
  if (modifiers.take("replace")) {
    replace(e, modifiers);
    return;
  }
  if (!modifiers.take("cp_fenceproxy")) throw Unsupported{"it neither replaces nor copies"};
  modifiers.take_all();
  TensorMapCopy copy;
  copy.to = address_operand(e, e.operand(0), AddressSpace::global);
  copy.from = address_operand(e, e.operand(1), AddressSpace::shared);
  e.emit(Action::tensor_map_copy, e.program().tensor_map_copies, copy, {},
         {copy.to.slot, copy.from.slot});
}

/// A cache policy, which accesses ignore.
void createpolicy(Emitter& e, Modifiers& modifiers) {
  modifiers.take_all();
  e.copy(e.out(0, Type::b64), e.constant(0, 8), Type::b64);
}

}  // namespace warpstack::ptx::handlers
