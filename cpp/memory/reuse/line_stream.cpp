#include "memory/reuse/line_stream.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/error.h"
#include "memory/cache/lru_sets.h"
#include "memory/order/block_assignment.h"
#include "memory/order/schedule.h"
#include "memory/reuse/reuse_profile.h"

namespace warpstack::memory {
namespace {

constexpr std::size_t piece = 1 << 16;

AccessKind kind_of(const trace::StaticInstruction& instruction) {
  if (instruction.is_atomic()) return AccessKind::atomic;
  return instruction.kind == trace::MemoryKind::store ? AccessKind::store : AccessKind::load;
}

bool uses_l1(const trace::StaticInstruction& instruction) {
  if (instruction.is_atomic()) return false;
  return instruction.kind == trace::MemoryKind::store ||
         instruction.cache_operator != trace::CacheOperator::bypass_l1;
}

/// Gathers lines into pieces worth passing on.
class Gatherer {
 public:
  Gatherer(const std::vector<trace::StaticInstruction>& instructions, std::uint32_t line_bytes,
           LineSink& sink)
      : instructions_(instructions), by_sectors_(line_bytes / trace::sector_bytes), sink_(sink) {}

  /// Appends the lines of an access. `l1` filters unless it is null.
  void append(const MemoryAccess& access, LruSets* l1, const LineFilter& filter) {
    const trace::StaticInstruction& instruction = instructions_[access.row];
    const AccessKind kind = kind_of(instruction);
    touched_.clear();
    for (const std::uint64_t sector : access.sectors) {
      const std::uint64_t line = by_sectors_.quotient(sector);
      if (std::find(touched_.rbegin(), touched_.rend(), line) == touched_.rend()) {
        touched_.push_back(line);
      }
    }
    for (const std::uint64_t line : touched_) {
      if (l1 != nullptr && hits(*l1, filter, instruction, kind, line)) continue;
      lines_.push_back(line);
      kinds_.push_back(static_cast<std::uint8_t>(kind));
    }
    if (lines_.size() >= piece) flush();
  }
  void end_stream() {
    flush();
    sink_.end_stream();
  }

 private:
  static bool hits(LruSets& l1, const LineFilter& filter,
                   const trace::StaticInstruction& instruction, AccessKind kind,
                   std::uint64_t line) {
    if (kind == AccessKind::atomic) {
      l1.erase(line);
    } else if (kind == AccessKind::store) {
      if (filter.allocate_stores || l1.contains(line)) l1.access(line);
    } else if (uses_l1(instruction)) {
      return l1.access(line) < filter.ways;
    }
    return false;
  }
  void flush() {
    sink_.lines(lines_, kinds_);
    lines_.clear();
    kinds_.clear();
  }

  const std::vector<trace::StaticInstruction>& instructions_;
  Divisor by_sectors_;
  LineSink& sink_;
  std::vector<std::uint64_t> touched_;
  std::vector<std::uint64_t> lines_;
  std::vector<std::uint8_t> kinds_;
};

}  // namespace

void LineStreamConfig::validate() const {
  if (num_sms == 0) throw InputError("num_sms = 0; a GPU has at least one SM");
  if (blocks_per_sm == 0) throw InputError("blocks_per_sm = 0; an SM runs at least one block");
  if (line_bytes == 0 || line_bytes % trace::sector_bytes != 0) {
    throw InputError("line_bytes = " + std::to_string(line_bytes) +
                     " is not a positive multiple of 32");
  }
  if (filter && (filter->sets == 0 || filter->ways == 0)) {
    throw InputError("the L1 cache that filters has no line of " + std::to_string(line_bytes) +
                     " bytes; take smaller lines");
  }
}

void stream_lines(const trace::KernelTrace& trace, const LineStreamConfig& config, LineSink& sink,
                  const InterruptCheck& interrupt) {
  config.validate();
  const std::vector<trace::StaticInstruction>& instructions = trace.instructions();
  const RowFlags flags(instructions);
  std::vector<std::vector<std::uint32_t>> blocks =
      assign_blocks(trace, flags, config.num_sms, config.blocks_per_sm, BlockOrder{});
  std::erase_if(blocks, [](const auto& of_sm) { return of_sm.empty(); });

  Gatherer gatherer(instructions, config.line_bytes, sink);
  const LineFilter filter = config.filter.value_or(LineFilter{});
  std::uint64_t turn = 0;
  const auto check = [&] {
    if (turn++ % 4096 == 0 && interrupt) interrupt();
  };
  if (!config.merged) {
    for (std::vector<std::uint32_t>& of_sm : blocks) {
      SmSchedule schedule(trace, flags, std::move(of_sm), config.blocks_per_sm);
      while (const MemoryAccess* access = schedule.next()) {
        check();
        if (uses_l1(instructions[access->row])) gatherer.append(*access, nullptr, filter);
      }
      gatherer.end_stream();
    }
    return;
  }

  std::vector<SmSchedule> schedules;
  std::vector<LruSets> l1;
  for (std::vector<std::uint32_t>& of_sm : blocks) {
    schedules.emplace_back(trace, flags, std::move(of_sm), config.blocks_per_sm);
    if (config.filter) l1.emplace_back(filter.sets, filter.ways);
  }
  std::vector<std::size_t> running(schedules.size());
  for (std::size_t sm = 0; sm < running.size(); ++sm) running[sm] = sm;
  while (!running.empty()) {
    std::size_t kept = 0;
    for (const std::size_t sm : running) {
      const MemoryAccess* access = schedules[sm].next();
      if (access == nullptr) continue;
      check();
      gatherer.append(*access, config.filter ? &l1[sm] : nullptr, filter);
      running[kept++] = sm;
    }
    running.resize(kept);
  }
  gatherer.end_stream();
}

}  // namespace warpstack::memory
