#include <array>
#include <bit>
#include <utility>

#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

constexpr std::uint64_t sectors_per_line = 4;
constexpr std::uint32_t whole_line = 0xf;

/// What is known of a line: the sectors that changed accesses touch, and how many they have kept.
struct LineUse {
  std::uint64_t key = 0;  ///< the line, and whether it is written; 0: a free place
  std::uint32_t touched = 0;
  std::uint32_t kept = 0;
};

/// Lines by key, 16 bytes each, at most half of the places taken.
class LineUses {
 public:
  LineUses() : places_(1024) {}

  LineUse& at(std::uint64_t key) {
    if (2 * count_ >= places_.size()) grow();
    LineUse& found = place_of(key);
    if (found.key == 0) {
      found.key = key;
      ++count_;
    }
    return found;
  }

 private:
  LineUse& place_of(std::uint64_t key) {
    const int shift = 64 - std::countr_zero(places_.size());
    std::size_t place = key * 0x9e3779b97f4a7c15u >> shift;
    while (places_[place].key != 0 && places_[place].key != key) {
      place = (place + 1) % places_.size();
    }
    return places_[place];
  }
  void grow() {
    std::vector<LineUse> old(2 * places_.size());
    old.swap(places_);
    for (const LineUse& use : old) {
      if (use.key != 0) place_of(use.key) = use;
    }
  }

  std::vector<LineUse> places_;
  std::size_t count_ = 0;
};

class Coalesced final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  [[nodiscard]] bool keeps_classes() const override { return false; }
  [[nodiscard]] bool looks() const override { return true; }

  void look(const Block& block) override {
    block.for_each(rows_.trace.instructions(), [this](const Issued& one) {
      if (!is_changed(one)) return;
      for (const std::uint64_t sector : one.sectors) {
        uses_.at(key_of(one, sector)).touched |= 1u << sector % sectors_per_line;
      }
    });
  }

  void write(const Block& block, BlockWriter& writer) override {
    write_each(block, writer, [this](Issued& one) {
      if (is_changed(one)) change(one);
      return true;
    });
  }

 private:
  /// A line that an access may keep, and which of its sectors.
  struct Candidate {
    std::uint64_t line;
    std::uint32_t sectors;
    LineUse* use;
  };

  [[nodiscard]] bool is_changed(const Issued& one) const {
    if (!one.is_memory || one.count < 2) return false;
    const StaticInstruction& row = rows_[one.row];
    return row.uses_caches() && !row.is_atomic() && is_of_lanes(row) && rows_.contains(one.row) &&
           one.count > least_sectors(row, one);
  }

  /// Loads and stores share out lines apart, as both may reach the same array. Never 0.
  [[nodiscard]] std::uint64_t key_of(const Issued& one, std::uint64_t sector) const {
    return (sector / sectors_per_line + 1) << 1 | std::uint64_t{!one.bytes.empty()};
  }

  void find_candidates(const Issued& one) {
    lines_.clear();
    for (const std::uint64_t sector : one.sectors) {
      const std::uint64_t line = sector / sectors_per_line;
      if (lines_.empty() || lines_.back() != line) lines_.push_back(line);
    }
    std::ranges::sort(lines_);
    lines_.erase(std::ranges::unique(lines_).begin(), lines_.end());
    candidates_.clear();
    std::uint32_t touched = 0;
    for (const std::uint64_t line : lines_) {
      LineUse& use = uses_.at(key_of(one, line * sectors_per_line));
      candidates_.push_back({line, use.touched, &use});
      touched += static_cast<std::uint32_t>(std::popcount(use.touched));
    }
    const std::size_t packed = least_of(touched, sectors_per_line);
    if (packed >= candidates_.size()) return;
    candidates_.resize(packed);
    for (Candidate& each : candidates_) each.sectors = whole_line;
    if (const std::uint32_t rest = touched % sectors_per_line) {
      candidates_.back().sectors = (1u << rest) - 1;
    }
  }

  void change(Issued& one) {
    const std::uint32_t least = least_sectors(rows_[one.row], one);
    find_candidates(one);
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& c) { return c.use->kept; });
    kept_.clear();
    for (const Candidate& each : candidates_) {
      const auto size = static_cast<std::uint32_t>(std::popcount(each.sectors));
      const std::uint32_t taken = std::min(size, least - static_cast<std::uint32_t>(kept_.size()));
      // Of a line that was kept in part the next sectors.
      const std::uint32_t first = each.use->kept % size;
      std::uint32_t number = 0;
      for (std::uint32_t s = 0; s < sectors_per_line; ++s) {
        if ((each.sectors >> s & 1) == 0) continue;
        if ((number++ + size - first) % size < taken) {
          kept_.push_back(each.line * sectors_per_line + s);
        }
      }
      each.use->kept += taken;
      if (kept_.size() == least) break;
    }
    if (!one.bytes.empty()) {
      std::uint32_t bytes = 0;
      for (const std::uint32_t mask : one.bytes) {
        bytes += static_cast<std::uint32_t>(std::popcount(mask));
      }
      bytes = std::min(bytes, one.active() * rows_[one.row].width);
      bytes_.assign(kept_.size(), ~std::uint32_t{0});
      if (const std::uint32_t rest = bytes % sector_bytes) bytes_.back() = (1u << rest) - 1;
      one.bytes = bytes_;
      if (!one.lanes.empty()) one.lanes = one.lanes.first(kept_.size());
    }
    one.sectors = kept_;
    one.count = static_cast<std::uint16_t>(kept_.size());
    one.passes = 0;
  }

  LineUses uses_;
  std::vector<std::uint64_t> lines_;
  std::vector<Candidate> candidates_;
  std::vector<std::uint64_t> kept_;
  std::vector<std::uint32_t> bytes_;
};

}  // namespace

std::unique_ptr<BlockChange> coalesced_change(const ChosenRows& rows) {
  return std::make_unique<Coalesced>(rows);
}

}  // namespace warpstack::trace
