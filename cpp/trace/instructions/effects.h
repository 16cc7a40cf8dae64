#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/instructions/barrier_steps.h"
#include "trace/instructions/coalescing.h"
#include "trace/instructions/copy_groups.h"
#include "trace/instructions/opcode.h"
#include "trace/instructions/phase_steps.h"
#include "trace/instructions/static_instruction.h"
#include "trace/instructions/tensor_operation.h"

namespace warpstack::trace {

/// What an instruction does besides reading and writing registers and memory, read from its opcode
/// once. Later stages take it from here and never look at the text.
struct Effects {
  /// The class of operations whose unit executes it: of conversions from and to 64-bit types that
  /// for double precision (CUDA C++ Programming Guide, throughput of arithmetic instructions: they
  /// are as slow where it has few cores), of others their own.
  OpClass unit = OpClass::unknown;
  /// How the lanes of an access to shared memory share its words.
  SharedAccess shared_access = SharedAccess::other;
  /// Warps of a block wait for each other (`BAR.SYNC`, `BAR.RED`, `barrier.cta.red`).
  bool is_block_barrier = false;
  /// Its write barrier is for the asynchronous copies before it (`LDGDEPBAR`).
  bool awaits_copies = false;
  /// A product that goes on without its warp (`wgmma.mma_async`, `tcgen05.mma`).
  bool is_async_product = false;
  /// A bulk copy to, or reduction in, global memory, which is in a group.
  bool is_bulk_store = false;
  CopyGroupStep groups;  ///< what it does with groups of copies and products
  PhaseStep phase;       ///< what it does at an mbarrier
  BarrierStep barrier;   ///< what it does at a barrier of its block
  /// An asynchronous copy that is in a group; one that completes something at an mbarrier is not.
  bool is_grouped_copy = false;
  std::optional<TensorOperation> tensor;  ///< of matrix instructions whose type is known
};

/// Reads what an instruction does from its opcode, SASS or PTX.
Effects effects_of(const StaticInstruction& instruction);

/// Whether instructions wait for products with a number or at an mbarrier, as those of traces
/// before version 0.2 do not: there, registers say when sums are there.
bool has_product_waits(std::span<const Effects> effects);

/// The registers that a product that goes on without its warp waits for: not those of its sums,
/// which products before it may still be adding to.
std::vector<std::uint16_t> awaited_by_product(const StaticInstruction& instruction);

}  // namespace warpstack::trace
