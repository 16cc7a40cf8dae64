#include <unordered_set>

#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

/// Whether others may change or await what the row accesses.
bool is_seen_by_others(const StaticInstruction& row) {
  for (const char* word : {"volatile", "acquire", "release", "relaxed", "mmio", "STRONG"}) {
    if (row.opcode.find(word) != std::string::npos) return true;
  }
  return false;
}

/// A plain load or store of lanes through the caches.
bool is_plain(const StaticInstruction& row) {
  return row.uses_caches() && is_of_lanes(row) &&
         (row.kind == MemoryKind::load || row.kind == MemoryKind::store) && !is_seen_by_others(row);
}

class KeptInRegisters final : public BlockChange {
 public:
  using BlockChange::BlockChange;

  void write(const Block& block, BlockWriter& writer) override {
    held_.find(block, rows_);
    std::size_t place = 0;
    write_each(block, writer, [&](const Issued& one) {
      return !(held_.is_held(place++) && rows_.contains(one.row));
    });
  }

 private:
  HeldAccesses held_;
};

/// A load of what its block has loaded before becomes one of shared memory.
class KeptInBlock final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  [[nodiscard]] bool keeps_classes() const override { return false; }

  void add_rows(TraceBuilder& builder) override {
    shared_row_.resize(rows_.trace.instructions().size());
    for (std::uint32_t row = 0; row < shared_row_.size(); ++row) {
      if (!may_keep_in_block(rows_[row]) || !rows_.contains(row)) continue;
      StaticInstruction shared = rows_[row];
      shared.space = MemorySpace::shared;
      shared.cache_operator = CacheOperator::none;
      shared_row_[row] = builder.intern(std::move(shared));
    }
  }

  void write(const Block& block, BlockWriter& writer) override {
    seen_.clear();
    write_each(block, writer, [this](Issued& one) {
      if (one.row >= shared_row_.size() || shared_row_[one.row] == 0) return true;
      fresh_.clear();
      for (const std::uint64_t sector : one.sectors) {
        if (seen_.insert(sector).second) fresh_.push_back(sector);
      }
      if (fresh_.size() == one.sectors.size()) return true;
      const std::uint16_t passes = least_passes(rows_[one.row], one);
      one.passes = 0;
      if (fresh_.empty()) {
        one.count = passes;
        one.row = shared_row_[one.row];
        one.sectors = {};
        return true;
      }
      one.sectors = fresh_;
      one.count = static_cast<std::uint16_t>(fresh_.size());
      return true;
    });
  }

 private:
  std::vector<std::uint32_t> shared_row_;   ///< the same load of shared memory; 0: none
  std::unordered_set<std::uint64_t> seen_;  ///< sectors that the block has loaded
  std::vector<std::uint64_t> fresh_;
};

}  // namespace

void HeldAccesses::find(const Block& block, const ChosenRows& rows) {
  if (is_plain_.empty()) {
    for (const StaticInstruction& row : rows.trace.instructions()) {
      is_plain_.push_back(is_plain(row));
    }
  }
  is_held_.clear();
  runs_.assign(rows.trace.instructions().size(), {});
  std::size_t warp = 0;
  block.for_each(rows.trace.instructions(), [&](const Issued& one) {
    const std::size_t place = is_held_.size();
    is_held_.push_back(0);
    if (one.warp != warp) {
      warp = one.warp;
      runs_.assign(runs_.size(), {});
    }
    if (is_plain_[one.row] == 0 || one.count == 0) return;
    const StaticInstruction& row = rows[one.row];
    Run& run = runs_[one.row];
    const bool is_same = !run.places.empty() && run.last.mask == one.mask &&
                         std::ranges::equal(run.last.sectors, one.sectors) &&
                         std::ranges::equal(run.last.bytes, one.bytes);
    if (!is_same) run.places.clear();
    run.last = one;
    run.places.push_back(place);
    if (row.kind == MemoryKind::store) {
      // The last one stays.
      if (run.places.size() > 1) is_held_[run.places[run.places.size() - 2]] = 1;
      return;
    }
    const std::size_t words = least_of(sector_bytes, row.width);
    if (run.places.size() == words + 1) {
      for (std::size_t i = 1; i < run.places.size(); ++i) is_held_[run.places[i]] = 1;
    } else if (run.places.size() > words) {
      is_held_[place] = 1;
    }
  });
}

bool may_keep_in_block(const StaticInstruction& row) {
  return row.kind == MemoryKind::load && row.uses_caches() && row.space != MemorySpace::local &&
         is_of_lanes(row) && !is_seen_by_others(row);
}

std::unique_ptr<BlockChange> kept_in_registers_change(const ChosenRows& rows) {
  return std::make_unique<KeptInRegisters>(rows);
}

std::unique_ptr<BlockChange> kept_in_block_change(const ChosenRows& rows) {
  return std::make_unique<KeptInBlock>(rows);
}

}  // namespace warpstack::trace
