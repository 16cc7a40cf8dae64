#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

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

std::unique_ptr<BlockChange> kept_in_registers_change(const ChosenRows& rows) {
  return std::make_unique<KeptInRegisters>(rows);
}

}  // namespace warpstack::trace
