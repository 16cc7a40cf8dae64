#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

constexpr std::size_t small_tile = 8 * 1024 / sector_bytes;
constexpr std::size_t large_tile = 48 * 1024 / sector_bytes;

/// What a block loads more than once goes through a tile in shared memory.
class KeptInBlock final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  [[nodiscard]] bool keeps_classes() const override { return false; }
  [[nodiscard]] bool looks() const override { return true; }

  void look(const Block& block) override {
    plan(block);
    for (const Phase& phase : phases_) tile_ = std::max(tile_, phase.sectors.size());
  }

  void change_header(KernelHeader& header) const override {
    header.shared_memory_bytes += static_cast<std::uint32_t>(tile_ * sector_bytes);
  }

  void add_rows(TraceBuilder& builder) override {
    const auto num_rows = static_cast<std::uint32_t>(rows_.trace.instructions().size());
    shared_row_.resize(num_rows);
    for (std::uint32_t row = 0; row < num_rows; ++row) {
      if (!is_chosen(row)) continue;
      StaticInstruction shared = rows_[row];
      shared.space = MemorySpace::shared;
      shared.cache_operator = CacheOperator::none;
      shared_row_[row] = builder.intern(std::move(shared));
    }
    store_row_.resize(num_rows);
    barrier_row_.resize(num_rows);
    for (std::uint32_t row = 0; row < num_rows; ++row) {
      if (!is_chosen(row)) continue;
      store_row_[row] = builder.intern(shared_store_beside(rows_[row]));
      barrier_row_[row] = builder.intern(barrier_beside(rows_[row]));
    }
  }

  void write(const Block& block, BlockWriter& writer) override {
    plan(block);
    std::size_t begun = 0;
    std::size_t done = 0;   // accesses of the warp
    std::size_t phase = 0;  // that comes next
    const auto begin_until = [&](std::size_t end) {
      for (; begun < end; ++begun) {
        writer.begin_warp(block.warps[begun].number);
        done = phase = 0;
        while (accesses_[begun].empty() && phase < phases_.size()) {
          begin_phase(begun, phase++, writer);
        }
      }
    };
    block.for_each(rows_.trace.instructions(), [&](Issued one) {
      begin_until(one.warp + 1);
      if (!is_kept(one)) {
        writer.append(one);
        return;
      }
      if (phase == 0 || done == phases_[phase - 1].end) begin_phase(one.warp, phase++, writer);
      one.count = least_passes(rows_[one.row], one);
      one.row = shared_row_[one.row];
      one.passes = 0;
      one.sectors = {};
      writer.append(one);
      if (++done < accesses_[one.warp].size()) return;
      while (phase < phases_.size()) begin_phase(one.warp, phase++, writer);
    });
    begin_until(block.warps.size());
  }

 private:
  /// What a tile serves.
  struct Phase {
    std::size_t end = 0;                 ///< behind the last access of each warp
    std::vector<std::uint64_t> sectors;  ///< in order
  };

  [[nodiscard]] bool is_chosen(std::uint32_t row) const {
    return may_keep_in_block(rows_[row]) && rows_.contains(row);
  }
  [[nodiscard]] bool is_kept(const Issued& one) const {
    return one.is_memory && one.count > 0 && is_chosen(one.row) &&
           std::ranges::all_of(one.sectors,
                               [this](std::uint64_t sector) { return times_.at(sector) > 1; });
  }

  /// Finds the accesses that are kept, by warp, and the phases.
  void plan(const Block& block) {
    times_.clear();
    accesses_.assign(block.warps.size(), {});
    block.for_each(rows_.trace.instructions(), [this](const Issued& one) {
      if (!one.is_memory || !is_chosen(one.row)) return;
      for (const std::uint64_t sector : one.sectors) ++times_[sector];
    });
    bool is_first = true;
    block.for_each(rows_.trace.instructions(), [&](const Issued& one) {
      if (!is_kept(one)) return;
      if (is_first) lead_ = one.row;
      is_first = false;
      accesses_[one.warp].push_back(one.sectors);
    });
    phases_ = phases_of(small_tile);
    std::vector<Phase> others = phases_of(large_tile);
    if (4 * loads_of(others) < 3 * loads_of(phases_)) phases_ = std::move(others);
  }

  static std::size_t loads_of(const std::vector<Phase>& phases) {
    std::size_t result = 0;
    for (const Phase& each : phases) result += each.sectors.size();
    return result;
  }

  [[nodiscard]] std::vector<Phase> phases_of(std::size_t tile) const {
    std::size_t most = 0;
    for (const auto& of_warp : accesses_) most = std::max(most, of_warp.size());
    std::vector<Phase> phases;
    std::unordered_set<std::uint64_t> held;
    std::vector<std::uint64_t> step;
    const auto close = [&](std::size_t end) {
      phases.push_back({end, {held.begin(), held.end()}});
      std::ranges::sort(phases.back().sectors);
      held.clear();
    };
    for (std::size_t n = 0; n < most; ++n) {
      step.clear();
      for (const auto& of_warp : accesses_) {
        if (n < of_warp.size()) step.insert(step.end(), of_warp[n].begin(), of_warp[n].end());
      }
      std::ranges::sort(step);
      step.erase(std::ranges::unique(step).begin(), step.end());
      const auto fresh = static_cast<std::size_t>(std::ranges::count_if(
          step, [&](std::uint64_t sector) { return !held.contains(sector); }));
      if (!held.empty() && held.size() + fresh > tile) close(n);
      held.insert(step.begin(), step.end());
    }
    if (most > 0) close(most);
    return phases;
  }

  /// Writes the warp's share of a tile's copies.
  void begin_phase(std::size_t warp, std::size_t number, BlockWriter& writer) const {
    const StaticInstruction& row = rows_[lead_];
    const Issued barrier{.warp = warp, .row = barrier_row_[lead_], .mask = ~std::uint32_t{0}};
    const std::span<const std::uint64_t> sectors = phases_[number].sectors;
    // A warp's lanes load a sector for each byte of their width, but at least one lane has one.
    const std::size_t at_once = std::min<std::size_t>(row.width, warp_size);
    if (number > 0) writer.append(barrier);
    for (std::size_t first = warp * at_once; first < sectors.size();
         first += accesses_.size() * at_once) {
      const auto here = sectors.subspan(first, std::min(at_once, sectors.size() - first));
      const auto bytes = static_cast<std::uint32_t>(here.size() * sector_bytes);
      Issued copy{.warp = warp,
                  .row = lead_,
                  .mask = first_lanes(least_of(bytes, row.width)),
                  .is_memory = true,
                  .count = static_cast<std::uint16_t>(here.size()),
                  .sectors = here};
      writer.append(copy);
      copy.row = store_row_[lead_];
      copy.sectors = {};
      copy.count = static_cast<std::uint16_t>(least_of(bytes, bytes_of_pass));
      writer.append(copy);
    }
    writer.append(barrier);
  }

  std::vector<std::uint32_t> shared_row_;   ///< by row, the same load of shared memory
  std::vector<std::uint32_t> store_row_;    ///< by row, the store of what it loads
  std::vector<std::uint32_t> barrier_row_;  ///< by row
  std::size_t tile_ = 0;                    ///< sectors of the largest tile
  std::uint32_t lead_ = 0;                  ///< the row of the first kept access, which copies
  std::unordered_map<std::uint64_t, std::uint32_t> times_;  ///< loads of a sector
  /// By warp, the sectors of its accesses that are kept.
  std::vector<std::vector<std::span<const std::uint64_t>>> accesses_;
  std::vector<Phase> phases_;
};

}  // namespace

bool may_keep_in_block(const StaticInstruction& row) {
  return row.kind == MemoryKind::load && row.uses_caches() && row.space != MemorySpace::local &&
         is_of_lanes(row) && !is_seen_by_others(row);
}

std::unique_ptr<BlockChange> kept_in_block_change(const ChosenRows& rows) {
  return std::make_unique<KeptInBlock>(rows);
}

}  // namespace warpstack::trace
