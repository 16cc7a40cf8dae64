#include "trace/columns/block_sample.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/error.h"
#include "trace/columns/trace_builder.h"

namespace warpstack::trace {
namespace {

/// Runs of a small sample, and of one of `many` blocks.
constexpr std::uint64_t few_runs = 4;
constexpr std::uint64_t many_runs = 8;
constexpr std::uint64_t many = 512;

/// `share` of `whole`, rounded down, for parts of blocks of a grid (below 2^63).
std::uint64_t part(std::uint64_t whole, std::uint64_t share, std::uint64_t of) {
  return whole / of * share + whole % of * share / of;
}

}  // namespace

BlockSample BlockSample::one_in(std::uint64_t num_blocks, std::uint64_t one_in,
                                std::uint64_t together, bool are_persistent) {
  const std::uint64_t fewest =
      are_persistent && num_blocks < 2 * least ? least_of_persistent : least;
  if (one_in <= 1 || num_blocks < 2 * fewest) return {num_blocks, num_blocks};
  return {num_blocks, std::max(fewest, (num_blocks - 1) / one_in + 1), together};
}

BlockSample::BlockSample(std::uint64_t num_blocks, std::uint64_t sampled, std::uint64_t together)
    : num_blocks_(num_blocks), size_(std::clamp<std::uint64_t>(sampled, 1, num_blocks)) {
  // Blocks are counted in groups.
  const std::uint64_t groups = num_blocks / together;
  const std::uint64_t chosen = (size_ - 1) / together + 1;
  if (num_blocks % together != 0 || chosen >= groups) {
    size_ = num_blocks;
    runs_.push_back({0, num_blocks});
    return;
  }
  size_ = chosen * together;
  const std::uint64_t runs = std::min(chosen, size_ < many ? few_runs : many_runs);
  for (std::uint64_t r = 0; r < runs; ++r) {
    // Each run lies in the middle of its part of the grid.
    const std::uint64_t length = part(chosen, r + 1, runs) - part(chosen, r, runs);
    const std::uint64_t begin = part(groups, r, runs);
    const std::uint64_t room = part(groups, r + 1, runs) - begin - length;
    runs_.push_back({(begin + room / 2) * together, length * together});
  }
}

bool is_sampled(const KernelTrace& trace) {
  const BlockStorage& blocks = trace.blocks();
  const BlockSample sample(trace.header().num_blocks(), blocks.size(),
                           trace.header().blocks_together());
  const std::uint64_t fewest = sample.num_blocks() < 2 * BlockSample::least
                                   ? BlockSample::least_of_persistent
                                   : BlockSample::least;
  if (sample.is_whole() || sample.size() != blocks.size() || sample.size() < fewest) return false;
  std::size_t position = 0;
  for (const BlockSample::Run& run : sample.runs()) {
    for (std::uint64_t b = 0; b < run.blocks; ++b) {
      if (blocks.linear_index(position++) != run.first + b) return false;
    }
  }
  return true;
}

KernelTrace launch_of_blocks(const KernelTrace& trace, const std::vector<std::size_t>& positions,
                             std::shared_ptr<StorageBudget> budget) {
  KernelHeader header = trace.header();
  header.grid = {std::max<std::size_t>(positions.size(), 1), 1, 1};
  TraceBuilder builder(std::move(header), std::move(budget));
  for (const StaticInstruction& instruction : trace.instructions()) builder.intern(instruction);
  std::vector<std::byte> scratch;
  for (std::size_t block = 0; block < positions.size(); ++block) {
    const std::size_t position = positions[block];
    if (position >= trace.blocks().size()) {
      throw InputError("position " + std::to_string(position) + " is not one of the " +
                       std::to_string(trace.blocks().size()) + " thread blocks of the trace");
    }
    builder.add_block(block, trace.blocks().warps(position), trace.block(position, scratch));
  }
  return builder.finish();
}

std::vector<std::uint64_t> touched_lines(const KernelTrace& trace,
                                         const std::vector<std::uint8_t>& levels_of,
                                         std::uint32_t levels, std::uint32_t line_bytes,
                                         std::uint64_t one_in) {
  if (levels_of.size() != trace.blocks().size()) {
    throw InputError("levels of " + std::to_string(levels_of.size()) + " thread blocks for " +
                     std::to_string(trace.blocks().size()));
  }
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() / one_in;
  const std::uint64_t sectors = line_bytes / sector_bytes;
  std::unordered_map<std::uint64_t, std::uint8_t> deepest;  // by line
  std::vector<std::byte> scratch;
  for (std::size_t b = 0; b < levels_of.size(); ++b) {
    if (levels_of[b] == 0) continue;
    const ColumnCounts end = trace.blocks().counts(b);
    const ColumnView columns =
        trace.blocks().read(b, {0, 0, 0, 0}, {0, 0, end.sectors, 0}, scratch);
    std::uint64_t last = ~std::uint64_t{0};
    for (const std::uint64_t sector : columns.sector) {
      const std::uint64_t line = sector / sectors;
      if (line == last) continue;
      last = line;
      if (line * spread > limit) continue;
      std::uint8_t& level = deepest[line];
      level = std::max(level, levels_of[b]);
    }
  }
  std::vector<std::uint64_t> lines(levels);
  for (const auto& [line, level] : deepest) {
    for (std::uint32_t l = 0; l < std::min<std::uint32_t>(level, levels); ++l) lines[l] += one_in;
  }
  return lines;
}

}  // namespace warpstack::trace
