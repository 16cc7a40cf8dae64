#include "simt/async/bulk_copies.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "common/text.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {

void BulkCopies::copy(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  if (warp.detector != nullptr) warp.detector->work();
  warp.clock = nullptr;
  moved_.clear();
  const BulkCopy& copy = program_.bulk_copies[step.detail];
  const trace::PhaseStep phase =
      barriers_.count_completion(registers, copy.barrier, mask, copy.blocks);
  std::uint64_t shared_bytes = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    copy_lane(warp, step, registers, lane);
    shared_bytes += lane_u32(registers, copy.bytes, static_cast<int>(lane));
  }
  if (copy.to.space == AddressSpace::global || copy.from.space == AddressSpace::global) {
    recorder_.record_moved(warp, step, mask, moved_, phase);
  } else {
    recorder_.record_wavefronts(warp, step, mask,
                                static_cast<std::uint32_t>((shared_bytes + 127) / 128), phase);
  }
}

void BulkCopies::copy_lane(Warp& warp, const Step& step, std::byte* registers, std::uint32_t lane) {
  const BulkCopy& copy = program_.bulk_copies[step.detail];
  const auto number = static_cast<int>(lane);
  const std::uint32_t bytes = lane_u32(registers, copy.bytes, number);
  const std::uint64_t from = address_in(execution_, registers, copy.from, lane);
  require_multiple(warp, step, lane, "a number of bytes", bytes);
  require_multiple(warp, step, lane, "the source's address", from);
  const std::uint32_t byte_mask =
      copy.byte_mask == none ? 0xffff : lane_u32(registers, copy.byte_mask, number) & 0xffff;
  // A view would also count bytes outside the mask as written.
  if (byte_mask != 0xffff) execution_.need_turn();
  if (copy.to.space == AddressSpace::global) {
    actor_ = warp.number;
    const std::uint64_t to = address_in(execution_, registers, copy.to, lane);
    require_multiple(warp, step, lane, "the target's address", to);
    for (std::uint32_t at = 0; at < bytes; at += piece_bytes) {
      move_piece(warp, step, lane, copy, from + at, to + at, byte_mask);
    }
    moved_.push_back({to, bytes});
    return;
  }
  const CopyTargets targets =
      targets_of(warp, step, registers, lane, copy.to, copy.barrier, copy.blocks);
  begin(warp, copy.barrier, targets);
  for (std::uint32_t t = 0; t < targets.count; ++t) {
    require_multiple(warp, step, lane, "the target's address", targets.address[t]);
    for (std::uint32_t at = 0; at < bytes; at += piece_bytes) {
      move_piece(warp, step, lane, copy, from + at, targets.address[t] + at, byte_mask);
    }
  }
  if (copy.from.space == AddressSpace::global) moved_.push_back({from, bytes});
  signal(warp, step, lane, copy.barrier, targets, bytes);
}

void BulkCopies::move_piece(Warp& warp, const Step& step, std::uint32_t lane, const BulkCopy& copy,
                            std::uint64_t from, std::uint64_t to, std::uint32_t byte_mask) {
  // The target of a copy into shared memory is an address there, whatever the operand's space.
  const AddressSpace target_space =
      copy.to.space == AddressSpace::global ? AddressSpace::global : AddressSpace::shared;
  std::array<std::byte, piece_bytes> piece;
  const std::byte* const source =
      spaces_.pointer(warp, step, copy.from.space, lane, from, piece_bytes, {.reads = true});
  std::memcpy(piece.data(), source, piece_bytes);
  std::byte* const target = spaces_.pointer(warp, step, target_space, lane, to, piece_bytes,
                                            {.reads = copy.reduction != nullptr, .writes = true});
  note(warp, step, lane, copy.from.space, from, piece_bytes, false);
  note(warp, step, lane, target_space, to, piece_bytes, true);
  if (copy.reduction == nullptr) {
    for (std::uint32_t b = 0; b < piece_bytes; ++b) {
      if ((byte_mask >> b & 1) != 0) target[b] = piece[b];
    }
    return;
  }
  for (std::uint32_t b = 0; b < piece_bytes; b += copy.element_bytes) {
    const std::uint64_t value = copy.reduction(read_value(target + b, copy.element_bytes),
                                               read_value(piece.data() + b, copy.element_bytes), 0);
    std::memcpy(target + b, &value, copy.element_bytes);
  }
}

CopyTargets BulkCopies::targets_of(Warp& warp, const Step& step, const std::byte* registers,
                                   std::uint32_t lane, const AddressOperand& to,
                                   const AddressOperand& barrier, std::uint32_t blocks,
                                   bool of_pairs) {
  const auto shared_address = [&](const AddressOperand& operand) {
    const std::uint64_t address = address_in(execution_, registers, operand, lane);
    return operand.space == AddressSpace::generic ? address - shared_window : address;
  };
  CopyTargets targets;
  const std::uint64_t address = shared_address(to);
  const std::uint64_t signalled =
      barrier.space == AddressSpace::local ? 0 : shared_address(barrier);
  if (blocks == none) {
    targets.address[0] = address;
    targets.barrier[0] = signalled;
    targets.count = 1;
    return targets;
  }
  const std::uint32_t ranks = lane_u32(registers, blocks, static_cast<int>(lane)) & 0xffff;
  const std::uint64_t present = cluster_blocks(execution_.cluster);
  if (ranks >> present != 0) {
    faults_.stop(warp, step, lane,
                 "a copy to the blocks of the mask " + hexadecimal(ranks) + " of a cluster of " +
                     std::to_string(present));
  }
  const std::uint32_t half =
      (in_cluster(signalled) ? rank_of_address(signalled)
                             : rank_in_cluster(execution_.block, execution_.cluster)) &
      1;
  // The same offset in each block.
  for (std::uint32_t rank = 0; rank < present; ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    targets.address[targets.count] = cluster_address(address % trace::window_bytes, rank);
    const std::uint32_t waiting = of_pairs ? (rank & ~1u) | half : rank;
    targets.barrier[targets.count++] = cluster_address(signalled % trace::window_bytes, waiting);
  }
  return targets;
}

void BulkCopies::begin(const Warp& warp, const AddressOperand& barrier,
                       const CopyTargets& targets) {
  actor_ = warp.number;
  if (!races_.is_on() || barrier.space == AddressSpace::local) return;
  for (std::uint32_t t = 0; t < targets.count; ++t) {
    // The block's own warps can wait for the copy.
    const std::optional<std::uint64_t> own = races_.own_offset(targets.barrier[t]);
    if (own) actor_ = races_.actors().begin_copy(warp.number, *own);
  }
}

void BulkCopies::signal(Warp& warp, const Step& step, std::uint32_t lane,
                        const AddressOperand& barrier, const CopyTargets& targets,
                        std::uint64_t bytes) {
  if (barrier.space == AddressSpace::local) return;
  for (std::uint32_t t = 0; t < targets.count; ++t) {
    barriers_.complete(warp, step, lane, AddressSpace::shared, targets.barrier[t], bytes, actor_);
  }
}

void BulkCopies::note(const Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                      std::uint64_t address, std::uint32_t bytes, bool writes) {
  if (!races_.is_on()) return;
  const RaceKind kind = writes ? RaceKind::store : RaceKind::load;
  if (space == AddressSpace::shared) {
    const std::optional<std::uint64_t> own = races_.own_offset(address);
    if (!own) return;
    address = *own;
  }
  races_.check_async(warp, step, space, lane, address, bytes, kind, actor_);
}

void BulkCopies::require_multiple(Warp& warp, const Step& step, std::uint32_t lane,
                                  const char* what, std::uint64_t value) {
  if (value % piece_bytes == 0) return;
  faults_.stop(warp, step, lane,
               std::string("a bulk copy: ") + what + ", " + hexadecimal(value) +
                   ", is not a multiple of 16");
}

}  // namespace warpstack::simt
