#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/program/operand.h"

// Operations on the memory of the tensor cores of compute capability 10.0 (PTX ISA, "TensorCore 5th
// Generation Family Instructions"): 128 lanes of 512 columns of 32 bits in each SM. An address has
// the lane in its upper and the column in its lower 16 bits. Here all operations are done when they
// are issued. Those of a pair (`.cta_group::2`) use the memory of two blocks of a cluster, whose
// ranks differ in bit 0; one of them issues them for both, but allocations.

namespace warpstack::simt {

inline constexpr std::uint32_t tensor_lanes = 128;
inline constexpr std::uint32_t tensor_columns = 512;
/// Lanes that one warp of four can load and store.
inline constexpr std::uint32_t lanes_of_warp = 32;

/// tcgen05.alloc, dealloc, relinquish_alloc_permit: by a warp. Machine code counts columns in
/// groups of 32: it finds free groups, for both blocks of a pair at once, and frees those of a
/// mask.
struct TensorAllocation {
  enum class Kind : std::uint8_t { allocate, release, relinquish, find_groups, free_groups };
  Kind kind = Kind::allocate;
  bool is_of_pair = false;
  AddressOperand result{};       ///< allocate: where the address is written, in shared memory
  std::uint32_t address = none;  ///< slot, of release; find_groups: for the first group's number
  /// Slot: columns, or groups of them; free_groups: a mask of those that stay.
  std::uint32_t columns = none;
};

/// What the factors of a product may be. Machine code has one kind for f16 and tf32.
enum class TensorKind : std::uint8_t { f16, tf32, f16_tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

[[nodiscard]] constexpr bool is_block_scaled(TensorKind kind) {
  return kind >= TensorKind::mxf8f6f4;
}

/// tcgen05.mma: D = A * B + D, by each active lane.
struct TensorProduct {
  TensorKind kind = TensorKind::f16;
  bool weights_stationary = false;  ///< .ws
  bool is_of_pair = false;
  std::uint32_t elements_per_scale = 0;  ///< 16 or 32, of block-scaled kinds
  AddressOperand d{};
  std::uint32_t a_descriptor = none;  ///< slot; none: A is in tensor memory
  AddressOperand a{};
  std::uint32_t b_descriptor = none;  ///< slot
  std::uint32_t instruction = none;   ///< slot of the instruction descriptor
  std::uint32_t accumulates = none;   ///< slot of a predicate; if false: D = A * B
  /// Slots of masks of lanes to leave alone, in the even and then in the odd block of a pair.
  std::array<std::uint32_t, 8> disabled{none, none, none, none, none, none, none, none};
  std::uint32_t shift_of_d = 0;  ///< D counts 2^-shift times
  AddressOperand scale_a{};
  AddressOperand scale_b{};

  /// Blocks whose memory it uses.
  [[nodiscard]] constexpr std::uint32_t num_blocks() const { return is_of_pair ? 2 : 1; }
};

/// How the words of tensor memory go to the lanes of a warp: lanes x bits of a unit, which is
/// repeated along the columns.
enum class TensorShape : std::uint8_t { l16b64, l16b128, l16b256, l32b32, l16b32x2 };

/// tcgen05.ld, tcgen05.st
struct TensorTransfer {
  bool is_store = false;
  TensorShape shape = TensorShape::l32b32;
  /// Registers hold pairs of 16 bits, which are the lower halves of neighbouring columns.
  bool is_packed = false;
  AddressOperand address{};
  std::uint32_t second = 0;      ///< columns from the first half of l16b32x2 to the second
  std::uint32_t first_lane = 0;  ///< machine code moves the halves of l16b32x2 one by one
  std::uint32_t end_lane = 32;
  std::vector<std::uint32_t> values;  ///< slots
};

/// tcgen05.cp: rows of shared memory to lanes.
struct TensorFill {
  /// What a row of shared memory is there: 16 bytes, or 16 numbers of 4 or 6 bits and padding, of
  /// which each gets a byte.
  enum class Format : std::uint8_t { bytes, b4, b6 };
  Format format = Format::bytes;
  std::uint32_t rows = 128;
  std::uint32_t bytes = 32;  ///< of a row
  /// The lanes of the first copy of a row: `lane_step` from one to the next within 32 rows.
  std::uint32_t lane_step = 1;
  std::uint32_t upper_rows = 32;  ///< lanes from a row to the one 32 rows on
  std::uint32_t copies = 1;       ///< of each row
  std::uint32_t copy_step = 0;    ///< lanes from one copy to the next
  AddressOperand address{};
  std::uint32_t descriptor = none;  ///< slot
  bool is_of_pair = false;          ///< each block copies from its own shared memory
};

/// tcgen05.shift: 31 lanes get the 32 bytes of the lane behind each.
struct TensorShift {
  AddressOperand address{};
  bool is_of_pair = false;
};

/// tcgen05.commit: an arrival at an mbarrier when the operations so far are done.
struct TensorCommit {
  AddressOperand barrier{};
  std::uint32_t blocks = none;  ///< slot of a mask: ranks in the cluster whose barriers get one
};

}  // namespace warpstack::simt
