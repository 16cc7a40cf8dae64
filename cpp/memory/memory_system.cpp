#include "memory/memory_system.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "common/error.h"
#include "memory/schedule.h"

namespace warpstack {
namespace {

/// The sectors that an instruction touches in one line.
struct LineAccess {
  std::uint64_t line;
  SectorMask mask;
};

/// Groups the sectors of an instruction by line, in order of first touch.
class LineGrouper {
 public:
  explicit LineGrouper(std::uint32_t line_bytes) : sectors_per_line_(line_bytes / sector_bytes) {}

  std::span<const LineAccess> group(const MemoryAccess& access) {
    lines_.clear();
    bytes_.clear();
    std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < access.sectors.size(); ++i) {
      const std::uint64_t line = sectors_per_line_.quotient(access.sectors[i]);
      const std::uint64_t sector = sectors_per_line_.remainder(access.sectors[i]);
      // Only a line inside the range seen so far can have come before.
      std::size_t index = lines_.size();
      if (line <= highest && line >= lowest) index = find(line);
      highest = std::max(highest, line);
      lowest = std::min(lowest, line);
      if (index == lines_.size()) {
        lines_.push_back({line, 0});
        if (!access.store_bytes.empty()) bytes_.emplace_back();
      }
      lines_[index].mask |= static_cast<SectorMask>(1u << sector);
      if (!access.store_bytes.empty()) bytes_[index][sector] = access.store_bytes[i];
    }
    return lines_;
  }
  /// Byte masks of the written sectors of a line that group() returned.
  [[nodiscard]] const ByteMasks& bytes(std::size_t index) const { return bytes_[index]; }

 private:
  [[nodiscard]] std::size_t find(std::uint64_t line) const {
    for (std::size_t i = lines_.size(); i-- > 0;) {
      if (lines_[i].line == line) return i;
    }
    return lines_.size();
  }

  Divisor sectors_per_line_;
  std::vector<LineAccess> lines_;
  std::vector<ByteMasks> bytes_;
};

/// What L2 did for one request of an SM.
struct L2Outcome {
  std::uint64_t dram_sectors = 0;  ///< fetched, or for a write miss without a fetch, written
  bool missed = false;             ///< a sector was not in L2
};

/// L2 and DRAM as the SMs see them: takes sectors of an L1 line, whatever the L2 line is.
class L2Port {
 public:
  L2Port(Cache& cache, std::uint32_t l1_line_bytes, MemoryTotals& totals)
      : cache_(cache),
        l1_sectors_(l1_line_bytes / sector_bytes),
        l2_sectors_(cache.config().line_bytes / sector_bytes),
        totals_(totals) {}

  L2Outcome read(std::uint64_t l1_line, SectorMask mask) {
    L2Outcome outcome;
    static constexpr ByteMasks none{};
    for_each_piece(l1_line, mask, none, [&](std::uint64_t line, SectorMask part, const ByteMasks&) {
      Cache::Eviction eviction;
      const Cache::ReadResult result = cache_.read(line, part, eviction);
      ++totals_.l2_read_requests;
      totals_.l2_read_request_hits += result.hit == part;
      totals_.l2_read_sectors += count_sectors(part);
      totals_.l2_read_sector_hits += count_sectors(result.hit);
      settle(result.fetch, eviction, outcome);
      outcome.missed |= result.hit != part;
    });
    return outcome;
  }

  L2Outcome write(std::uint64_t l1_line, SectorMask mask, const ByteMasks& bytes) {
    L2Outcome outcome;
    for_each_piece(l1_line, mask, bytes,
                   [&](std::uint64_t line, SectorMask part, const ByteMasks& part_bytes) {
                     Cache::Eviction eviction;
                     const Cache::WriteResult result =
                         cache_.write(line, part, part_bytes, no_writer, eviction);
                     ++totals_.l2_write_requests;
                     totals_.l2_write_sectors += count_sectors(part);
                     totals_.l2_write_sector_hits += count_sectors(result.hit);
                     totals_.dram_write_sectors += count_sectors(result.forward);
                     settle(result.fetch, eviction, outcome);
                     if (!result.fetch)
                       outcome.dram_sectors +=
                           count_sectors(static_cast<SectorMask>(part & ~result.hit));
                     outcome.missed |= result.hit != part;
                   });
    return outcome;
  }

  /// Atomics read the old value, so that a miss always fetches.
  L2Outcome read_modify_write(std::uint64_t l1_line, SectorMask mask, const ByteMasks& bytes) {
    L2Outcome outcome;
    for_each_piece(l1_line, mask, bytes,
                   [&](std::uint64_t line, SectorMask part, const ByteMasks& part_bytes) {
                     Cache::Eviction eviction;
                     const Cache::ReadResult read = cache_.read(line, part, eviction);
                     const Cache::WriteResult write =
                         cache_.write(line, part, part_bytes, no_writer, eviction);
                     totals_.l2_atomic_sectors += count_sectors(part);
                     totals_.l2_atomic_sector_hits += count_sectors(read.hit);
                     totals_.dram_write_sectors += count_sectors(write.forward);
                     settle(read.fetch, eviction, outcome);
                     outcome.missed |= read.hit != part;
                   });
    return outcome;
  }

 private:
  static constexpr std::uint32_t no_writer = 0;  // nobody asks whose sectors L2 writes back

  void settle(SectorMask fetch, const Cache::Eviction& eviction, L2Outcome& outcome) {
    totals_.dram_read_sectors += count_sectors(fetch);
    totals_.dram_write_sectors += count_sectors(eviction.dirty);
    outcome.dram_sectors += count_sectors(fetch);
  }

  template <typename Visit>
  void for_each_piece(std::uint64_t l1_line, SectorMask mask, const ByteMasks& bytes, Visit visit) {
    if (l1_sectors_ == l2_sectors_) {
      visit(l1_line, mask, bytes);
      return;
    }
    while (mask != 0) {
      const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
      const std::uint64_t l2_line = (l1_line * l1_sectors_ + first) / l2_sectors_;
      SectorMask part = 0;
      ByteMasks part_bytes{};
      for (std::uint32_t s = first; s < l1_sectors_; ++s) {
        const std::uint64_t sector = l1_line * l1_sectors_ + s;
        if (!(mask >> s & 1) || sector / l2_sectors_ != l2_line) continue;
        part |= static_cast<SectorMask>(1u << sector % l2_sectors_);
        part_bytes[sector % l2_sectors_] = bytes[s];
        mask &= static_cast<SectorMask>(~(1u << s));
      }
      visit(l2_line, part, part_bytes);
    }
  }

  Cache& cache_;
  std::uint64_t l1_sectors_;
  std::uint64_t l2_sectors_;
  MemoryTotals& totals_;
};

/// Sends the accesses of SMs through their L1 caches and on to L2.
class AccessPath {
 public:
  AccessPath(const MemoryConfig& config, const std::vector<StaticInstruction>& instructions,
             Cache& l2, MemoryProfile& profile)
      : instructions_(instructions),
        grouper_(config.l1.line_bytes),
        l2_(l2, config.l1.line_bytes, profile.totals),
        totals_(profile.totals),
        per_row_(profile.per_row) {}

  /// Counts an access of a warp and says what it did.
  ObservedAccess access(const MemoryAccess& access, Cache& l1) {
    const StaticInstruction& instruction = instructions_[access.row];
    ObservedAccess seen;
    seen.row = access.row;
    const std::span<const LineAccess> lines = grouper_.group(access);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (instruction.is_atomic()) {
        l1.invalidate(lines[i].line, lines[i].mask);
        leave(seen, lines[i].mask,
              l2_.read_modify_write(lines[i].line, lines[i].mask, grouper_.bytes(i)));
      } else if (instruction.kind == MemoryKind::store) {
        store(access.row, lines[i], grouper_.bytes(i), l1, seen);
      } else {
        load(lines[i], l1, instruction.cache_operator == CacheOperator::bypass_l1, seen);
      }
    }
    InstructionCounters& counters = per_row_[access.row];
    counters.sectors += access.sectors.size();
    counters.requests += lines.size();
    ++counters.events[static_cast<std::size_t>(seen.event)];
    add(counters, seen);
    return seen;
  }

  /// Writes what is dirty in an L1 back when the kernel ends.
  void flush(Cache& l1) {
    l1.flush([this](const Cache::Eviction& line) {
      totals_.l1_flush_sectors += count_sectors(line.dirty);
      write_back(line);
    });
  }

 private:
  void load(const LineAccess& access, Cache& l1, bool bypass, ObservedAccess& seen) {
    ++totals_.l1_read_requests;
    totals_.l1_read_sectors += count_sectors(access.mask);
    if (bypass) {
      leave(seen, access.mask, l2_.read(access.line, access.mask));
      return;
    }
    Cache::Eviction eviction;
    const Cache::ReadResult result = l1.read(access.line, access.mask, eviction);
    totals_.l1_read_sector_hits += count_sectors(result.hit);
    totals_.l1_read_request_hits += result.hit == access.mask;
    write_back(eviction);
    if (result.fetch) leave(seen, result.fetch, l2_.read(access.line, result.fetch));
  }

  void store(std::uint32_t row, const LineAccess& access, const ByteMasks& bytes, Cache& l1,
             ObservedAccess& seen) {
    ++totals_.l1_write_requests;
    totals_.l1_write_sectors += count_sectors(access.mask);
    Cache::Eviction eviction;
    const Cache::WriteResult result = l1.write(access.line, access.mask, bytes, row, eviction);
    totals_.l1_write_sector_hits += count_sectors(result.hit);
    write_back(eviction);
    if (result.fetch) leave(seen, result.fetch, l2_.read(access.line, result.fetch));
    if (result.forward) {
      leave(seen, result.forward, l2_.write(access.line, result.forward, bytes));
    }
  }

  void write_back(const Cache::Eviction& eviction) {
    if (!eviction.dirty) return;
    ObservedAccess request;
    leave(request, eviction.dirty, l2_.write(eviction.line, eviction.dirty, eviction.bytes));
    add(per_row_[eviction.writer], request);
  }

  static void add(InstructionCounters& counters, const ObservedAccess& seen) {
    counters.l2_requests += seen.l2_requests;
    counters.l2_request_sectors += seen.l2_request_sectors;
    counters.dram_requests += seen.dram_requests;
    counters.dram_sectors += seen.dram_sectors;
  }

  static void leave(ObservedAccess& seen, SectorMask sectors, const L2Outcome& l2) {
    ++seen.l2_requests;
    seen.l2_request_sectors += count_sectors(sectors);
    seen.dram_requests += l2.missed;
    seen.dram_sectors += static_cast<std::uint32_t>(l2.dram_sectors);
    seen.event = std::max(seen.event, l2.missed ? MissEvent::dram : MissEvent::l2_hit);
  }

  const std::vector<StaticInstruction>& instructions_;
  LineGrouper grouper_;
  L2Port l2_;
  MemoryTotals& totals_;
  std::vector<InstructionCounters>& per_row_;
};

/// Blocks of each SM: round robin by block number, in increasing order.
std::vector<std::vector<std::uint32_t>> assign_blocks(const KernelTrace& trace,
                                                      std::uint32_t num_sms) {
  std::vector<std::vector<std::uint32_t>> blocks(num_sms);
  for (std::uint32_t b = 0; b < trace.blocks().size(); ++b) {
    blocks[trace.blocks().linear_index(b) % num_sms].push_back(b);
  }
  return blocks;
}

}  // namespace

void MemoryConfig::validate() const {
  if (num_sms == 0) throw InputError("num_sms = 0; a GPU has at least one SM");
  l1.validate("L1 cache");
  l2.validate("L2 cache");
}

MemorySystem::MemorySystem(const MemoryConfig& config)
    : config_((config.validate(), config)), l2_(config.l2) {}

MemoryProfile MemorySystem::run(const KernelTrace& trace, std::optional<WarpPosition> observed,
                                const InterruptCheck& interrupt) {
  const std::scoped_lock lock(mutex_);
  MemoryProfile profile;
  profile.occupancy = occupancy(trace.header(), config_.sm);
  const std::vector<StaticInstruction>& instructions = trace.instructions();
  profile.per_row.resize(instructions.size());
  for (std::size_t row = 0; row < instructions.size(); ++row) {
    const RowCounts& counts = trace.row_counts()[row];
    InstructionCounters& counters = profile.per_row[row];
    counters.executions = counts.issued;
    counters.active_executions = counts.active;
    counters.shared_wavefronts = counts.shared_wavefronts;
    if (!instructions[row].uses_caches()) continue;
    if (instructions[row].is_atomic()) {
      profile.totals.atomic_instructions += counts.issued;
    } else if (instructions[row].kind == MemoryKind::store) {
      profile.totals.store_instructions += counts.issued;
    } else {
      profile.totals.load_instructions += counts.issued;
    }
  }

  const RowFlags flags(instructions);
  std::vector<SmSchedule> schedules;
  std::vector<Cache> l1;
  for (std::vector<std::uint32_t>& blocks : assign_blocks(trace, config_.num_sms)) {
    if (blocks.empty()) continue;
    schedules.emplace_back(trace, flags, std::move(blocks), profile.occupancy.blocks_per_sm);
    l1.emplace_back(config_.l1);
  }
  AccessPath path(config_, instructions, l2_, profile);

  std::vector<std::size_t> running(schedules.size());
  for (std::size_t sm = 0; sm < running.size(); ++sm) running[sm] = sm;
  for (std::uint64_t turn = 0; !running.empty(); ++turn) {
    if (interrupt && turn % 4096 == 0) interrupt();
    bool finished = false;
    for (std::size_t& sm : running) {
      const MemoryAccess* access = schedules[sm].next();
      if (access == nullptr) {
        sm = schedules.size();
        finished = true;
        continue;
      }
      const ObservedAccess seen = path.access(*access, l1[sm]);
      if (observed && schedules[sm].warp() == *observed) profile.observed.push_back(seen);
    }
    if (finished) std::erase(running, schedules.size());
  }
  for (Cache& cache : l1) path.flush(cache);
  profile.totals.l2_dirty_sectors = l2_.dirty_sectors();
  return profile;
}

}  // namespace warpstack
