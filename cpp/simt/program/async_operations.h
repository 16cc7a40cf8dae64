#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/program/operand.h"
#include "simt/program/tensor_map.h"

// Asynchronous operations of programs of compute capability 9.0: barriers in shared memory, copies
// of whole blocks and tiles, products of four warps. Here all of them are done when they are
// issued; their waits only wait for other warps.

namespace warpstack::simt {

/// mbarrier: what a lane does at a barrier in shared memory.
struct AsyncBarrier {
  enum class Kind : std::uint8_t {
    init,
    invalidate,
    expect,    ///< expect_tx
    complete,  ///< complete_tx
    arrive,    ///< also arrive.expect_tx, arrive_drop
    wait,      ///< test_wait, try_wait
    pending,   ///< pending_count of a state
    copies     ///< cp.async.mbarrier.arrive: expects one more arrival, made by the copies
  };
  Kind kind = Kind::init;
  bool drops = false;      ///< later phases expect fewer arrivals, too
  bool by_parity = false;  ///< wait: `state` is a parity, not what arrive returned
  AddressOperand address{};
  std::uint32_t count = none;   ///< slot of the arrivals; none: 1
  std::uint32_t bytes = none;   ///< slot of the bytes expected or complete; none: 0
  std::uint32_t state = none;   ///< slot of a state or parity
  std::uint32_t result = none;  ///< slot: arrive's state, wait's predicate, the pending count
};

/// cp.async.bulk: each active lane copies `bytes` from one place to another.
struct BulkCopy {
  AddressOperand to;
  AddressOperand from;
  std::uint32_t bytes = none;                            ///< slot
  AddressOperand barrier{.space = AddressSpace::local};  ///< local: there is none
  std::uint32_t blocks = none;         ///< slot of a mask: ranks in the cluster that get the bytes
  std::uint32_t byte_mask = none;      ///< slot: which of 16 bytes are written
  AtomicFunction reduction = nullptr;  ///< null: a plain copy
  std::uint8_t element_bytes = 4;      ///< of a reduction
};

/// cp.async.bulk.tensor: a tile between global and shared memory.
struct TensorCopy {
  bool to_shared = true;
  std::uint8_t dimensions = 2;
  AddressOperand tile;  ///< in shared memory
  AddressOperand map{.space = AddressSpace::generic};
  std::array<std::uint32_t, 5> coordinates{};  ///< slots
  AddressOperand barrier{.space = AddressSpace::local};
  std::uint32_t blocks = none;  ///< as in BulkCopy
  /// `.cta_group::2`: of each pair of blocks of a cluster that gets bytes, the mbarrier of that
  /// block is signalled whose rank is even or odd as that of the block of `barrier`.
  bool is_of_pair = false;
  /// The functions of a reduction, by TensorElement; null in a plain copy.
  std::array<AtomicFunction, num_tensor_elements> reductions{};
  bool reduces = false;
};

/// tensormap.replace
struct TensorMapChange {
  AddressOperand map;
  TensorMapField field = TensorMapField::global_address;
  std::uint32_t ordinal = 0;  ///< of a field with one value per dimension
  std::uint32_t value = none;
  std::uint8_t value_bytes = 4;
};

/// tensormap.cp_fenceproxy: 128 bytes by a warp.
struct TensorMapCopy {
  AddressOperand to{.space = AddressSpace::global};
  AddressOperand from;
};

/// The elements of products of four warps. A `b1` matrix counts in words of 32 bits.
enum class FactorElement : std::uint8_t { none, f16, bf16, tf32, e4m3, e5m2, s8, u8, b1, f32, s32 };

constexpr std::uint32_t bits_of(FactorElement element) {
  switch (element) {
    case FactorElement::f16:
    case FactorElement::bf16:
      return 16;
    case FactorElement::e4m3:
    case FactorElement::e5m2:
    case FactorElement::s8:
    case FactorElement::u8:
      return 8;
    default:
      return 32;
  }
}

/// wgmma.mma_async: D = A * B + D of 64 x N x 32 bytes by four warps, of which each has 16 rows.
struct WarpgroupMultiply {
  FactorElement a = FactorElement::f16;
  FactorElement b = FactorElement::f16;
  FactorElement d = FactorElement::f32;
  std::uint32_t columns = 8;  ///< N
  bool saturate = false;
  bool negate_a = false;
  bool negate_b = false;
  bool transpose_a = false;                 ///< A is stored by columns in shared memory
  bool transpose_b = false;                 ///< B is stored by rows
  std::uint32_t a_descriptor = none;        ///< slot; none: A is in registers
  std::array<std::uint32_t, 4> a_values{};  ///< slots
  std::uint32_t b_descriptor = none;        ///< slot
  std::uint32_t accumulates = none;         ///< slot of a predicate; if false: D = A * B
  std::vector<std::uint32_t> d_values;      ///< slots
};

/// wgmma.wait_group
struct WarpgroupWait {
  std::uint64_t pending = 0;  ///< groups that may be unfinished
};

}  // namespace warpstack::simt
