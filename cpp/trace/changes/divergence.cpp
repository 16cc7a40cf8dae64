#include <limits>
#include <unordered_map>
#include <utility>

#include "trace/changes/block_change.h"

namespace warpstack::trace {
namespace {

/// Executions of one instruction by warps of a block, each for the n-th time, with a part of their
/// lanes.
struct Gathering {
  std::uint32_t lanes = 0;
  std::vector<std::size_t> places;  ///< in the block, warp after warp
};

class NoDivergence final : public BlockChange {
 public:
  using BlockChange::BlockChange;
  [[nodiscard]] bool keeps_classes() const override { return false; }

  void write(const Block& block, BlockWriter& writer) override {
    gather(block);
    choose(block);
    std::size_t place = 0;
    write_each(block, writer, [&](Issued& one) {
      const std::size_t here = place++;
      if (keeper_of_[here] == not_gathered) return true;
      if (keeper_of_[here] == dropped) return false;
      merge(keeper_of_[here], one);
      return true;
    });
  }

 private:
  static constexpr std::uint32_t not_gathered = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t dropped = not_gathered - 1;

  /// An execution that stays, and what it takes over.
  struct Keeper {
    std::uint32_t mask;
    std::vector<std::size_t> taken;  ///< numbers in partial_
  };

  [[nodiscard]] bool may_gather(const Issued& one, std::uint32_t all_lanes) const {
    if (one.mask == 0 || one.active() >= all_lanes || !rows_.contains(one.row)) return false;
    const StaticInstruction& row = rows_[one.row];
    const Effects& effects = rows_.effects(one.row);
    return !row.is_atomic() && !effects.tensor && !effects.is_async_product &&
           row.op_class != OpClass::barrier && row.op_class != OpClass::uniform &&
           effects.barrier.kind == BarrierStep::Kind::none && !effects.is_block_barrier &&
           effects.groups.kind == CopyGroupStep::Kind::none &&
           effects.phase.kind == PhaseStep::Kind::none &&
           (!one.is_memory || one.count == 0 || is_of_lanes(row));
  }

  /// Finds the partial executions, by instruction and by how often the warp has come there.
  void gather(const Block& block) {
    gatherings_.clear();
    number_.clear();
    partial_.clear();
    keeper_of_.clear();
    times_.assign(rows_.trace.instructions().size(), 0);
    const std::uint64_t threads = rows_.trace.header().threads_per_block();
    std::size_t warp = 0;
    block.for_each(rows_.trace.instructions(), [&](const Issued& one) {
      if (one.warp != warp) {
        warp = one.warp;
        times_.assign(times_.size(), 0);
      }
      const std::uint64_t time = times_[one.row]++;
      const std::uint64_t left = threads - std::uint64_t{warp_size} * block.warps[warp].number;
      keeper_of_.push_back(not_gathered);
      if (!may_gather(one, static_cast<std::uint32_t>(std::min<std::uint64_t>(left, warp_size)))) {
        return;
      }
      const auto [entry, is_new] =
          number_.try_emplace(std::uint64_t{one.row} << 40 | time, gatherings_.size());
      if (is_new) gatherings_.emplace_back();
      Gathering& found = gatherings_[entry->second];
      found.lanes += one.active();
      found.places.push_back(partial_.size());
      partial_.push_back(one);
      place_.resize(std::max(place_.size(), partial_.size()));
      place_[partial_.size() - 1] = keeper_of_.size() - 1;
    });
  }

  /// Whether the same warps with the same lanes come to both, as to neighbours in a branch.
  [[nodiscard]] bool are_alike(const Gathering& one, const Gathering& other) const {
    return std::ranges::equal(one.places, other.places, [this](std::size_t a, std::size_t b) {
      return partial_[a].warp == partial_[b].warp && partial_[a].mask == partial_[b].mask;
    });
  }

  /// Sorted work is in any of a block's warps: blocks begin with different ones, so that together
  /// they load the schedulers of an SM evenly.
  static std::size_t warp_of_first_choice(std::uint64_t block, std::size_t num_warps) {
    return (block * 0x9e3779b97f4a7c15u >> 32) % num_warps;
  }

  void choose(const Block& block) {
    keepers_.clear();
    std::vector<std::uint64_t> load(block.warps.size());
    const std::size_t first_warp = warp_of_first_choice(block.linear_index, load.size());
    std::vector<std::size_t> chosen;  // positions in `places`
    const Gathering* last = nullptr;
    for (const Gathering& each : gatherings_) {
      const std::uint32_t fewest = least_of(each.lanes, warp_size);
      if (last == nullptr || !are_alike(*last, each)) {
        chosen.resize(each.places.size());
        for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = i;
        std::ranges::stable_sort(chosen, {}, [&](std::size_t i) {
          const std::size_t warp = partial_[each.places[i]].warp;
          return std::pair{load[warp], (warp + load.size() - first_warp) % load.size()};
        });
        chosen.resize(fewest);
        std::ranges::sort(chosen);
        last = &each;
      }
      for (const std::size_t place : each.places) keeper_of_[place_[place]] = dropped;
      const std::size_t first = keepers_.size();
      for (std::uint32_t k = 0; k < fewest; ++k) {
        const std::size_t stays = each.places[chosen[k]];
        const std::uint32_t lanes = std::min(each.lanes - k * warp_size, warp_size);
        keeper_of_[place_[stays]] = static_cast<std::uint32_t>(keepers_.size());
        keepers_.push_back({~std::uint32_t{0} >> (warp_size - lanes), {}});
        ++load[partial_[stays].warp];
      }
      std::uint32_t lanes_before = 0;
      for (const std::size_t place : each.places) {
        // The keeper that has its last lane takes it: then each takes something.
        lanes_before += partial_[place].active();
        keepers_[first + (lanes_before - 1) / warp_size].taken.push_back(place);
      }
    }
  }

  void merge(std::uint32_t number, Issued& one) {
    const Keeper& keeper = keepers_[number];
    if (keeper.taken.size() == 1) {
      const Issued& alone = partial_[keeper.taken.front()];
      const std::size_t warp = one.warp;
      one = alone;
      one.warp = warp;
      one.mask = alone.active() == static_cast<std::uint32_t>(std::popcount(keeper.mask))
                     ? alone.mask
                     : keeper.mask;
      return;
    }
    one.mask = keeper.mask;
    if (!one.is_memory) return;
    sectors_.clear();
    bytes_.clear();
    place_of_sector_.clear();
    std::uint32_t count = 0;  // of passes through shared memory
    std::uint32_t passes = 0;
    bool has_passes = false;
    for (const std::size_t place : keeper.taken) {
      const Issued& part = partial_[place];
      count += part.count;
      has_passes = has_passes || part.passes != 0;
      passes += part.passes != 0 ? part.passes : implied_passes(part.sectors);
      for (std::size_t i = 0; i < part.sectors.size(); ++i) {
        const auto [entry, is_new] = place_of_sector_.try_emplace(part.sectors[i], sectors_.size());
        if (is_new) {
          sectors_.push_back(part.sectors[i]);
          if (!part.bytes.empty()) bytes_.push_back(0);
        }
        if (!part.bytes.empty()) bytes_[entry->second] |= part.bytes[i];
      }
    }
    one.lanes = {};
    if (rows_[one.row].uses_caches()) {
      one.sectors = sectors_;
      one.bytes = bytes_;
      count = static_cast<std::uint32_t>(sectors_.size());
      one.passes = static_cast<std::uint8_t>(has_passes && count > 0 ? std::min(passes, 0xffu) : 0);
    }
    one.count = static_cast<std::uint16_t>(std::min(count, 0xffffu));
  }

  std::vector<Gathering> gatherings_;  ///< in the order in which the first warp comes there
  std::unordered_map<std::uint64_t, std::size_t> number_;  ///< of a gathering, by row and time
  std::vector<Issued> partial_;
  std::vector<std::size_t> place_;        ///< in the block, of partial executions
  std::vector<std::uint32_t> keeper_of_;  ///< by place in the block
  std::vector<Keeper> keepers_;
  std::vector<std::uint64_t> times_;
  std::vector<std::uint64_t> sectors_;
  std::vector<std::uint32_t> bytes_;
  std::unordered_map<std::uint64_t, std::size_t> place_of_sector_;
};

}  // namespace

std::unique_ptr<BlockChange> divergence_change(const ChosenRows& rows) {
  return std::make_unique<NoDivergence>(rows);
}

}  // namespace warpstack::trace
