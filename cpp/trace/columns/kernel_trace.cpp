#include "trace/columns/kernel_trace.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/error.h"

namespace warpstack::trace {
namespace {

struct Limit {
  const char* field;
  std::uint64_t value;
  std::uint64_t least;
  std::uint64_t most;
};

}  // namespace

MemorySpace KernelHeader::space_of(std::uint64_t generic_address) const {
  const auto inside = [generic_address](std::uint64_t base) {
    return base != 0 && generic_address >= base && generic_address - base < window_bytes;
  };
  if (inside(shared_window)) return MemorySpace::shared;
  if (inside(local_window)) return MemorySpace::local;
  return MemorySpace::global;
}

LaneAddresses KernelHeader::lanes_in(MemorySpace space, const LaneAddresses& lanes) const {
  LaneAddresses kept = lanes;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (space_of(lanes.address[lane]) != space) kept.mask &= ~(1u << lane);
    // Addresses of local memory count from the window's base.
    if (space == MemorySpace::local) kept.address[lane] -= local_window;
  }
  return kept;
}

void KernelHeader::validate() const {
  // Limits of every compute capability so far (CUDA C++ Programming Guide, "Compute Capabilities"),
  // with room above the present shared memory sizes.
  const Limit limits[] = {
      {"grid dim x", grid[0], 1, 2147483647},
      {"grid dim y", grid[1], 1, 65535},
      {"grid dim z", grid[2], 1, 65535},
      {"block dim x", block[0], 1, 1024},
      {"block dim y", block[1], 1, 1024},
      {"block dim z", block[2], 1, 64},
      {"threads per block", threads_per_block(), 1, 1024},
      {"shared memory bytes", shared_memory_bytes, 0, 1 << 20},
      {"registers per thread", registers_per_thread, 0, 256},
  };
  for (const Limit& limit : limits) {
    if (limit.value < limit.least || limit.value > limit.most) {
      throw InputError(std::string(limit.field) + " = " + std::to_string(limit.value) +
                       " is outside " + std::to_string(limit.least) + " to " +
                       std::to_string(limit.most) + "; no GPU launches such a kernel");
    }
  }
  sources.validate();
}

KernelTrace::KernelTrace(KernelHeader header, std::vector<StaticInstruction> instructions,
                         std::vector<Effects> effects, std::vector<RowCounts> row_counts,
                         std::uint32_t num_registers, std::unique_ptr<BlockStorage> blocks,
                         std::string digest, std::string content_digest,
                         std::string digest_without_lanes)
    : header_(std::move(header)),
      instructions_(std::move(instructions)),
      effects_(std::move(effects)),
      row_counts_(std::move(row_counts)),
      num_registers_(num_registers),
      blocks_(std::move(blocks)),
      digest_(std::move(digest)),
      content_digest_(std::move(content_digest)),
      digest_without_lanes_(std::move(digest_without_lanes)) {
  for (std::size_t b = 0; b < blocks_->size(); ++b) {
    totals_ += blocks_->counts(b);
    const auto warps = blocks_->warps(b);
    const auto idle = static_cast<std::uint64_t>(
        std::ranges::count(warps, std::uint32_t{0}, &WarpEntry::instructions));
    num_idle_warps_ += idle;
    if (idle == warps.size()) {
      ++num_idle_blocks_;
      num_warps_of_idle_blocks_ += idle;
    }
  }
  for (std::size_t row = 0; row < instructions_.size(); ++row) {
    if (instructions_[row].uses_caches()) num_memory_instructions_ += row_counts_[row].issued;
  }
}

std::vector<std::uint8_t> KernelTrace::has_sectors() const {
  std::vector<std::uint8_t> result;
  for (const StaticInstruction& row : instructions_) result.push_back(row.uses_caches());
  return result;
}

bool KernelTrace::has_atomics() const {
  return std::ranges::any_of(instructions_, &StaticInstruction::is_cached_atomic);
}

double KernelTrace::working_warps_per_block() const {
  const std::uint64_t warps = num_warps() - num_warps_of_idle_blocks_;
  if (warps == 0) return 0;
  return static_cast<double>(header_.warps_per_block()) *
         static_cast<double>(num_warps() - num_idle_warps_) / static_cast<double>(warps);
}

std::map<std::string, std::uint64_t> KernelTrace::unknown_opcodes() const {
  std::map<std::string, std::uint64_t> unknown;
  for (std::size_t row = 0; row < instructions_.size(); ++row) {
    if (!instructions_[row].known_opcode) {
      unknown[instructions_[row].opcode] += row_counts_[row].issued;
    }
  }
  return unknown;
}

ColumnView KernelTrace::warp(const WarpPosition& position, std::vector<std::byte>& scratch) const {
  return blocks_->read(position.block, blocks_->begin(position.block, position.warp),
                       blocks_->begin(position.block, position.warp + 1), scratch);
}

ColumnView KernelTrace::block(std::size_t index, std::vector<std::byte>& scratch) const {
  return blocks_->read(index, ColumnCounts{}, blocks_->counts(index), scratch);
}

double KernelTrace::dpki(std::uint32_t line_bytes, const InterruptCheck& interrupt) const {
  if (line_bytes < sector_bytes || line_bytes % sector_bytes != 0) {
    throw InputError("line_bytes = " + std::to_string(line_bytes) +
                     " is not a positive multiple of 32");
  }
  if (totals_.instructions == 0) return 0.0;
  const std::uint64_t sectors_per_line = line_bytes / sector_bytes;
  std::uint64_t divergent = 0;
  std::vector<std::byte> scratch;
  for (std::size_t b = 0; b < blocks_->size(); ++b) {
    if (b % 1024 == 0 && interrupt) interrupt();
    const ColumnCounts end = blocks_->counts(b);
    const ColumnView columns =
        blocks_->read(b, {0, 0, 0, 0}, {0, end.memory, end.sectors, 0}, scratch);
    std::size_t next = 0;
    for (std::size_t i = 0; i < columns.memory_static.size(); ++i) {
      const StaticInstruction& instruction = instructions_[columns.memory_static[i]];
      if (!instruction.uses_caches()) continue;
      const auto sectors = columns.sector.subspan(next, columns.memory_count[i]);
      next += sectors.size();
      if (!instruction.reads_memory()) continue;
      for (const std::uint64_t sector : sectors) {
        if (sector / sectors_per_line != sectors[0] / sectors_per_line) {
          ++divergent;
          break;
        }
      }
    }
  }
  return 1000.0 * static_cast<double>(divergent) / static_cast<double>(totals_.instructions);
}

std::uint64_t KernelTrace::num_thread_instructions(const InterruptCheck& interrupt) const {
  std::uint64_t count = 0;
  std::vector<std::byte> scratch;
  for (std::size_t b = 0; b < blocks_->size(); ++b) {
    if (b % 1024 == 0 && interrupt) interrupt();
    const ColumnView columns =
        blocks_->read(b, {0, 0, 0, 0}, {blocks_->counts(b).instructions, 0, 0, 0}, scratch);
    for (const std::uint32_t mask : columns.active_mask) {
      count += static_cast<std::uint64_t>(std::popcount(mask));
    }
  }
  return count;
}

}  // namespace warpstack::trace
