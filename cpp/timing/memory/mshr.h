#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/cache/cache.h"

namespace warpstack::timing {

/// Miss status holding registers: each holds the sectors of one line that are on their way, and who
/// waits for them.
template <typename Target>
class MshrFile {
 public:
  /// `capacity` 0: as many as needed. `targets`: requests that one register can hold.
  MshrFile(std::uint32_t capacity, std::uint32_t targets)
      : capacity_(capacity),
        most_targets_(targets),
        heads_(std::bit_ceil(std::clamp<std::uint64_t>(2 * std::uint64_t{capacity}, 64, 4096)),
               none) {}

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool is_full() const { return capacity_ != 0 && size_ == capacity_; }
  [[nodiscard]] bool has_room(std::uint32_t id) const {
    return entries_[id].num_targets < most_targets_;
  }

  /// Calls `visit(id, mask)` for each register that holds sectors of a line.
  template <typename Visit>
  void for_each(std::uint64_t line, Visit visit) const {
    for (std::uint32_t id = heads_[bucket(line)]; id != none; id = entries_[id].next) {
      if (entries_[id].line == line) visit(id, entries_[id].mask);
    }
  }

  /// Takes a register; only while not is_full().
  std::uint32_t allocate(std::uint64_t line, memory::SectorMask mask) {
    std::uint32_t id = free_;
    if (id == none) {
      id = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      free_ = entries_[id].next;
    }
    std::uint32_t& head = heads_[bucket(line)];
    entries_[id].line = line;
    entries_[id].mask = mask;
    entries_[id].next = head;
    head = id;
    ++size_;
    return id;
  }
  void add_target(std::uint32_t id, const Target& target) {
    Entry& entry = entries_[id];
    if (entry.num_targets < few) {
      entry.first[entry.num_targets] = target;
    } else {
      if (entry.num_targets == few) entry.all.assign(entry.first.begin(), entry.first.end());
      entry.all.push_back(target);
    }
    ++entry.num_targets;
  }
  [[nodiscard]] std::uint64_t line(std::uint32_t id) const { return entries_[id].line; }
  [[nodiscard]] memory::SectorMask mask(std::uint32_t id) const { return entries_[id].mask; }
  [[nodiscard]] std::span<const Target> targets(std::uint32_t id) const {
    const Entry& entry = entries_[id];
    if (entry.num_targets > few) return entry.all;
    return {entry.first.data(), entry.num_targets};
  }
  void release(std::uint32_t id) {
    std::uint32_t* link = &heads_[bucket(entries_[id].line)];
    while (*link != id) link = &entries_[*link].next;
    *link = entries_[id].next;
    entries_[id].num_targets = 0;
    entries_[id].next = free_;
    free_ = id;
    --size_;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// Targets that lie in their register, as those of most do.
  static constexpr std::uint32_t few = sizeof(Target) > 8 ? 1 : 4;
  struct Entry {
    std::uint64_t line = 0;
    memory::SectorMask mask = 0;
    std::uint32_t next = none;  ///< in its bucket, or the next free one
    std::uint32_t num_targets = 0;
    std::array<Target, few> first{};
    std::vector<Target> all;  ///< where they are more than `few`
  };

  [[nodiscard]] std::size_t bucket(std::uint64_t line) const {
    return (line * 0x9e3779b97f4a7c15 >> 40) & (heads_.size() - 1);
  }

  std::uint32_t capacity_;
  std::uint32_t most_targets_;
  std::vector<std::uint32_t> heads_;  ///< first register of each bucket
  std::vector<Entry> entries_;
  std::uint32_t free_ = none;
  std::uint32_t size_ = 0;
};

}  // namespace warpstack::timing
