#include <unordered_map>

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
  }

  void write(const Block& block, BlockWriter& writer) override {
    seen_.clear();
    write_each(block, writer, [this](Issued& one) {
      if (one.is_memory && one.count > 0 && is_changed(one.row)) change(one);
      return true;
    });
  }

 private:
  [[nodiscard]] bool is_changed(std::uint32_t row) const {
    return rows_[row].is_cached_atomic() && is_of_lanes(rows_[row]) && rows_.contains(row);
  }

  void change(Issued& one) {
    sectors_.clear();
    bytes_.clear();
    lanes_.clear();
    std::uint16_t turns = 1;
    for (std::size_t i = 0; i < one.sectors.size(); ++i) {
      const AtomicLanes lanes = one.lanes.empty() ? AtomicLanes{1, 1} : one.lanes[i];
      turns = std::max<std::uint16_t>(turns, lanes.word);
      std::uint32_t& seen = seen_[one.sectors[i]];
      const std::uint32_t fresh = one.bytes[i] & ~seen;
      seen |= one.bytes[i];
      if (fresh == 0) continue;
      sectors_.push_back(one.sectors[i]);
      bytes_.push_back(fresh);
      lanes_.push_back(combined(lanes, fresh, rows_[one.row].width));
    }
    one.sectors = sectors_;
    one.bytes = bytes_;
    one.lanes = lanes_;
    one.count = static_cast<std::uint16_t>(sectors_.size());
    if (!sectors_.empty()) return;
    one.row = shared_row_[one.row];
    one.count = turns;
  }

  std::vector<std::uint32_t> shared_row_;                  ///< the same atomic on shared memory
  std::unordered_map<std::uint64_t, std::uint32_t> seen_;  ///< bytes of the block's sectors
  std::vector<std::uint64_t> sectors_;
  std::vector<std::uint32_t> bytes_;
  std::vector<AtomicLanes> lanes_;
};

}  // namespace

std::unique_ptr<BlockChange> private_atomics_change(const ChosenRows& rows) {
  return std::make_unique<PrivateAtomics>(rows);
}

}  // namespace warpstack::trace
