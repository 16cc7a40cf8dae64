#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/interrupt.h"
#include "trace/columns/block_storage.h"
#include "trace/instructions/coalescing.h"
#include "trace/instructions/effects.h"
#include "trace/instructions/source_table.h"
#include "trace/instructions/static_instruction.h"

namespace warpstack::trace {

using Dim3 = std::array<std::uint64_t, 3>;

/// Consecutive blocks of a grid that consist of whole clusters.
[[nodiscard]] constexpr std::uint64_t consecutive_blocks(const Dim3& grid, const Dim3& cluster) {
  if (cluster[2] > 1) return grid[0] * grid[1] * cluster[2];
  if (cluster[1] > 1) return grid[0] * cluster[1];
  return cluster[0];
}

/// What warps of a launch have waited for at the clock of their SM or the device's timer, in ticks
/// of it. They only read it, until it was late enough: a GPU takes no less, whatever its
/// instructions take. Of a block it is the longest wait of a warp.
struct AwaitedTicks {
  std::uint64_t most = 0;   ///< of a block
  std::uint64_t total = 0;  ///< of all blocks of the grid
  std::uint64_t least = 0;  ///< of a block
  bool operator==(const AwaitedTicks&) const = default;
};

/// What is known of a launch besides its instructions.
struct KernelHeader {
  std::string name;  ///< as in the trace (mangled)
  std::uint64_t launch_id = 0;
  std::uint64_t parent = 0;  ///< launch whose kernel launched this one; 0: the host did
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  Dim3 cluster{1, 1, 1};                  ///< blocks that are resident together and meet
  std::uint64_t shared_memory_bytes = 0;  ///< static and dynamic, per thread block
  std::uint64_t registers_per_thread = 0;
  std::uint64_t binary_version = 0;  ///< compute capability of the machine code, 80 for 8.0
  std::uint64_t stream = 0;
  /// First byte of the windows of shared and local memory in generic addresses; 0: unknown, every
  /// generic access is global.
  std::uint64_t shared_window = 0;
  std::uint64_t local_window = 0;
  AwaitedTicks awaited_cycles;  ///< no digest has these
  AwaitedTicks awaited_ns;
  std::string source;   ///< what made the trace: "accelsim", "builder", "ptx"
  SourceTable sources;  ///< of the instructions; no digest has it

  [[nodiscard]] std::uint64_t num_blocks() const { return grid[0] * grid[1] * grid[2]; }
  /// Consecutive blocks that consist of whole clusters.
  [[nodiscard]] std::uint64_t blocks_together() const { return consecutive_blocks(grid, cluster); }
  [[nodiscard]] std::uint64_t threads_per_block() const { return block[0] * block[1] * block[2]; }
  [[nodiscard]] std::uint64_t warps_per_block() const {
    return (threads_per_block() + warp_size - 1) / warp_size;
  }
  /// The space that a generic address reaches.
  [[nodiscard]] MemorySpace space_of(std::uint64_t generic_address) const;
  /// The lanes whose generic address reaches a space; local memory is addressed from its window.
  [[nodiscard]] LaneAddresses lanes_in(MemorySpace space, const LaneAddresses& lanes) const;
  /// Throws InputError on dimensions that no GPU accepts.
  void validate() const;

  bool operator==(const KernelHeader&) const = default;
};

/// Identifies a warp of a trace by the position of its block in the trace and its position in the
/// block.
struct WarpPosition {
  std::uint32_t block = 0;
  std::uint32_t warp = 0;
  bool operator==(const WarpPosition&) const = default;
};

/// How often a row of the instruction table was issued.
struct RowCounts {
  std::uint64_t issued = 0;
  std::uint64_t active = 0;             ///< with an active lane; only for memory instructions
  std::uint64_t shared_wavefronts = 0;  ///< sum over shared-memory instructions

  bool operator==(const RowCounts&) const = default;
};

/// The immutable trace of one kernel launch, in columns. Blocks that were not traced are absent;
/// one at least is there, and has an instruction (TraceBuilder::finish).
class KernelTrace {
 public:
  KernelTrace(KernelHeader header, std::vector<StaticInstruction> instructions,
              std::vector<Effects> effects, std::vector<RowCounts> row_counts,
              std::uint32_t num_registers, std::unique_ptr<BlockStorage> blocks, std::string digest,
              std::string content_digest, std::string digest_without_lanes);

  [[nodiscard]] const KernelHeader& header() const { return header_; }
  [[nodiscard]] const std::vector<StaticInstruction>& instructions() const { return instructions_; }
  /// Whether memory instructions of a row have sectors, by row of the table.
  [[nodiscard]] std::vector<std::uint8_t> has_sectors() const;
  /// What each row of the instruction table does, in its order.
  [[nodiscard]] const std::vector<Effects>& effects() const { return effects_; }
  /// Whether instructions have control fields, which say when they may issue.
  [[nodiscard]] bool has_control() const { return instructions_.front().control.has_value(); }
  /// Size of a scoreboard: registers are numbered 0 to num_registers() - 1.
  [[nodiscard]] std::uint32_t num_registers() const { return num_registers_; }
  [[nodiscard]] const BlockStorage& blocks() const { return *blocks_; }
  [[nodiscard]] const std::string& digest() const { return digest_; }
  /// A digest that is equal for launches that differ only in their number and stream.
  [[nodiscard]] const std::string& content_digest() const { return content_digest_; }
  /// The digest in files without the lanes of atomics; it only differs for kernels with atomics.
  [[nodiscard]] const std::string& digest_without_lanes() const { return digest_without_lanes_; }
  /// Whether instructions are atomics or reductions that go through the caches.
  [[nodiscard]] bool has_atomics() const;
  [[nodiscard]] const std::vector<RowCounts>& row_counts() const { return row_counts_; }
  /// Opcodes outside the table, with the number of issued warp instructions of each.
  [[nodiscard]] std::map<std::string, std::uint64_t> unknown_opcodes() const;

  [[nodiscard]] std::uint64_t num_warps() const { return blocks_->num_warps(); }
  /// Traced warps without instructions.
  [[nodiscard]] std::uint64_t num_idle_warps() const { return num_idle_warps_; }
  /// Traced blocks without instructions.
  [[nodiscard]] std::uint64_t num_idle_blocks() const { return num_idle_blocks_; }
  /// Mean number of warps with instructions in the blocks that are not idle. Untraced warps count
  /// like traced ones.
  [[nodiscard]] double working_warps_per_block() const;
  [[nodiscard]] const ColumnCounts& totals() const { return totals_; }
  /// Issued warp instructions of global, local and generic space.
  [[nodiscard]] std::uint64_t num_memory_instructions() const { return num_memory_instructions_; }
  [[nodiscard]] std::uint64_t num_missing_blocks() const {
    return header_.num_blocks() - blocks_->size();
  }
  /// Warps missing from traced blocks.
  [[nodiscard]] std::uint64_t num_missing_warps() const {
    return blocks_->size() * header_.warps_per_block() - num_warps();
  }

  /// Columns of one warp. `scratch` holds them when the trace lives in a file.
  [[nodiscard]] ColumnView warp(const WarpPosition& position,
                                std::vector<std::byte>& scratch) const;
  /// Columns of a whole block.
  [[nodiscard]] ColumnView block(std::size_t index, std::vector<std::byte>& scratch) const;

  /// Load warp instructions that touch more than one line of `line_bytes`, per 1000 warp
  /// instructions (MDM, Section I: "DPKI").
  [[nodiscard]] double dpki(std::uint32_t line_bytes, const InterruptCheck& interrupt = {}) const;

  /// Sum of the active lanes of all issued warp instructions.
  [[nodiscard]] std::uint64_t num_thread_instructions(const InterruptCheck& interrupt = {}) const;

 private:
  KernelHeader header_;
  std::vector<StaticInstruction> instructions_;
  std::vector<Effects> effects_;
  std::vector<RowCounts> row_counts_;
  std::uint32_t num_registers_;
  std::unique_ptr<BlockStorage> blocks_;
  std::string digest_;
  std::string content_digest_;
  std::string digest_without_lanes_;
  std::uint64_t num_idle_warps_ = 0;
  std::uint64_t num_idle_blocks_ = 0;
  std::uint64_t num_warps_of_idle_blocks_ = 0;
  std::uint64_t num_memory_instructions_ = 0;
  ColumnCounts totals_;
};

}  // namespace warpstack::trace
