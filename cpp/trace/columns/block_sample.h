#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trace/columns/kernel_trace.h"

namespace warpstack::trace {

/// Which thread blocks of a launch stand for all of them: a few runs of consecutive blocks at equal
/// distances. Neighbours share data, so that runs are long; blocks far apart may do other work, or
/// share other data, so that there is more than one.
class BlockSample {
 public:
  /// Blocks of which a sample consists at least; launches of fewer than twice as many are whole.
  static constexpr std::uint64_t least = 128;
  /// The same for a launch of fewer blocks that stay for as long as there is work (a persistent
  /// kernel), so that each does much of it.
  static constexpr std::uint64_t least_of_persistent = 4;

  /// Consecutive blocks.
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t blocks = 0;

    bool operator==(const Run&) const = default;
  };

  /// About one in `one_in` of the blocks, at least `least`, or `least_of_persistent` if the blocks
  /// are persistent and fewer than 256.
  static BlockSample one_in(std::uint64_t num_blocks, std::uint64_t one_in,
                            std::uint64_t together = 1, bool are_persistent = false);
  /// So many of the blocks, 1 to all. Runs consist of whole groups of `together` consecutive blocks
  /// (whole clusters), for which their number is rounded up; all blocks if the grid does not.
  BlockSample(std::uint64_t num_blocks, std::uint64_t sampled, std::uint64_t together = 1);

  [[nodiscard]] std::uint64_t num_blocks() const { return num_blocks_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool is_whole() const { return size_ == num_blocks_; }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  /// Whether a block is in the sample.
  [[nodiscard]] bool has(std::uint64_t block) const {
    for (const Run& run : runs_) {
      if (block - run.first < run.blocks) return true;
    }
    return false;
  }
  /// The block at a position of the sample.
  [[nodiscard]] std::uint64_t block(std::uint64_t position) const {
    for (const Run& run : runs_) {
      if (position < run.blocks) return run.first + position;
      position -= run.blocks;
    }
    return num_blocks_;
  }

 private:
  std::uint64_t num_blocks_;
  std::uint64_t size_;
  std::vector<Run> runs_;
};

/// Whether blocks are missing of a trace, and those that are there are such a sample, of 128 at
/// least, or 4 of fewer than 256.
bool is_sampled(const KernelTrace& trace);

/// A launch of the blocks at these positions of the trace alone, in increasing order, with the same
/// instruction table: its grid is as long as there are positions. Throws InputError if a position
/// is not in the trace, or if the blocks have no instruction.
KernelTrace launch_of_blocks(const KernelTrace& trace, const std::vector<std::size_t>& positions,
                             std::shared_ptr<StorageBudget> budget);

/// Lines of memory that blocks of the trace touch, each line once. `levels_of` says of each
/// position in the trace in how many of the nested sets of blocks it is, 0 to `levels`: the answer
/// has the lines that the blocks of each set touch, the largest set first. Lines are counted from a
/// sample of one in `one_in`, chosen by their addresses.
std::vector<std::uint64_t> touched_lines(const KernelTrace& trace,
                                         const std::vector<std::uint8_t>& levels_of,
                                         std::uint32_t levels, std::uint32_t line_bytes,
                                         std::uint64_t one_in);

}  // namespace warpstack::trace
