#include <algorithm>
#include <bit>
#include <map>

#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

class PrivateAtomics final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  [[nodiscard]] bool keeps_classes() const override { return false; }

  void add_rows(TraceBuilder& builder) override {
    shared_row_.resize(rows_.trace.instructions().size());
    for (std::uint32_t row = 0; row < shared_row_.size(); ++row) {
      if (!is_changed(row)) continue;
      StaticInstruction shared = rows_[row];
      shared.space = MemorySpace::shared;
      shared_row_[row] = builder.intern(std::move(shared));
    }
    store_row_.resize(shared_row_.size());
    barrier_row_.resize(shared_row_.size());
    for (std::uint32_t row = 0; row < shared_row_.size(); ++row) {
      if (!is_changed(row)) continue;
      store_row_[row] = builder.intern(shared_store_beside(rows_[row]));
      barrier_row_[row] = builder.intern(barrier_beside(rows_[row]));
    }
  }

  void write(const Block& block, BlockWriter& writer) override {
    plan(block);
    std::size_t begun = 0;
    std::size_t left = 0;  // instructions of the warp
    const auto begin_until = [&](std::size_t end) {
      for (; begun < end; ++begun) {
        writer.begin_warp(block.warps[begun].number);
        left = block.warps[begun].instructions;
        if (!sums_.empty()) clear(begun, writer);
        // Warps without instructions take part, too.
        if (!sums_.empty() && left == 0) add_up(begun, writer);
      }
    };
    block.for_each(rows_.trace.instructions(), [&](Issued one) {
      begin_until(one.warp + 1);
      const bool is_last = --left == 0;
      const bool is_atomic = one.is_memory && one.count > 0 && is_changed(one.row);
      // The warp ends with its last instruction, unless that is an atomic.
      if (is_last && !is_atomic && !sums_.empty()) add_up(one.warp, writer);
      if (is_atomic) change(one);
      writer.append(one);
      if (is_last && is_atomic) add_up(one.warp, writer);
    });
    begin_until(block.warps.size());
  }

 private:
  [[nodiscard]] bool is_changed(std::uint32_t row) const {
    return rows_[row].is_cached_atomic() && is_of_lanes(rows_[row]) && rows_.contains(row);
  }

  /// Finds the words that the block adds to.
  void plan(const Block& block) {
    bytes_.clear();
    sums_.clear();
    num_warps_ = block.warps.size();
    block.for_each(rows_.trace.instructions(), [this](const Issued& one) {
      if (!one.is_memory || one.count == 0 || !is_changed(one.row)) return;
      if (bytes_.empty()) lead_ = one.row;
      for (std::size_t i = 0; i < one.sectors.size(); ++i) bytes_[one.sectors[i]] |= one.bytes[i];
    });
    for (const auto& [sector, bytes] : bytes_) sums_.push_back(sector);
    masks_.clear();
    lanes_.clear();
    const std::uint32_t width = rows_[lead_].width;
    for (const std::uint64_t sector : sums_) {
      masks_.push_back(bytes_[sector]);
      const std::uint32_t words = words_of(masks_.back(), width);
      lanes_.push_back({.sector = static_cast<std::uint8_t>(words), .word = 1});
    }
  }

  static std::uint32_t words_of(std::uint32_t bytes, std::uint32_t width) {
    return least_of(static_cast<std::uint32_t>(std::popcount(bytes)), width);
  }

  /// Writes the warp's share of the stores that clear the words, and the barrier behind them.
  void clear(std::size_t warp, BlockWriter& writer) const {
    for (std::size_t first = warp * at_once; first < sums_.size(); first += num_warps_ * at_once) {
      writer.append({.warp = warp,
                     .row = store_row_[lead_],
                     .mask = lanes_of(first),
                     .is_memory = true,
                     .count = 1});
    }
    writer.append({.warp = warp, .row = barrier_row_[lead_], .mask = ~std::uint32_t{0}});
  }

  /// Writes the barrier, and the warp's share of the atomics behind it.
  void add_up(std::size_t warp, BlockWriter& writer) const {
    writer.append({.warp = warp, .row = barrier_row_[lead_], .mask = ~std::uint32_t{0}});
    for (std::size_t first = warp * at_once; first < sums_.size(); first += num_warps_ * at_once) {
      const std::size_t count = std::min(at_once, sums_.size() - first);
      writer.append({.warp = warp,
                     .row = lead_,
                     .mask = lanes_of(first),
                     .is_memory = true,
                     .count = static_cast<std::uint16_t>(count),
                     .sectors = std::span(sums_).subspan(first, count),
                     .bytes = std::span(masks_).subspan(first, count),
                     .lanes = std::span(lanes_).subspan(first, count)});
    }
  }

  /// A lane for each word of the sectors from this one on that a warp takes at once.
  [[nodiscard]] std::uint32_t lanes_of(std::size_t first) const {
    std::uint32_t words = 0;
    for (std::size_t i = first; i < std::min(first + at_once, sums_.size()); ++i) {
      words += lanes_[i].sector;
    }
    return first_lanes(words);
  }

  void change(Issued& one) const {
    std::uint16_t turns = 1;
    for (const AtomicLanes& lanes : one.lanes) {
      turns = std::max<std::uint16_t>(turns, lanes.word);
    }
    one.row = shared_row_[one.row];
    one.count = turns;
    one.sectors = {};
    one.bytes = {};
    one.lanes = {};
  }

  /// Sectors of a line, which a warp clears and adds up at once.
  static constexpr std::size_t at_once = 4;

  std::vector<std::uint32_t> shared_row_;         ///< the same atomic on shared memory
  std::vector<std::uint32_t> store_row_;          ///< by row, what clears its words
  std::vector<std::uint32_t> barrier_row_;        ///< by row
  std::map<std::uint64_t, std::uint32_t> bytes_;  ///< of the block's sectors
  std::uint32_t lead_ = 0;                        ///< the row of the block's first atomic
  std::size_t num_warps_ = 0;
  std::vector<std::uint64_t> sums_;  ///< sectors that the block adds to, with bytes and lanes
  std::vector<std::uint32_t> masks_;
  std::vector<AtomicLanes> lanes_;
};

}  // namespace

std::unique_ptr<BlockChange> private_atomics_change(const ChosenRows& rows) {
  return std::make_unique<PrivateAtomics>(rows);
}

}  // namespace warpstack::trace
