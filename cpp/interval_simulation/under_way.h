#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "memory/cache/cache.h"

namespace warpstack::interval_simulation {

/// The lines of a cache that are on their way, and who waits for them: miss status holding
/// registers. All lies in two arrays, as thousands of lines are on their way at a time.
template <typename Target>
class LinesUnderWay {
 public:
  /// `capacity` 0: as many as needed. `targets`: those that one line can have.
  LinesUnderWay(std::uint32_t capacity, std::uint32_t targets)
      : capacity_(capacity),
        most_targets_(targets),
        heads_(std::bit_ceil(std::clamp<std::uint64_t>(2 * std::uint64_t{capacity}, 64, 4096)),
               none) {}

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool is_full() const { return capacity_ != 0 && size_ == capacity_; }
  [[nodiscard]] bool has_room(std::uint32_t id) const {
    return entries_[id].num_targets < most_targets_;
  }
  /// Calls `visit(id, mask)` for each entry of a line.
  template <typename Visit>
  void for_each(std::uint64_t line, Visit visit) const {
    for (std::uint32_t id = heads_[bucket(line)]; id != none; id = entries_[id].next) {
      if (entries_[id].line == line) visit(id, entries_[id].mask);
    }
  }
  /// Makes an entry; only while not is_full().
  std::uint32_t allocate(std::uint64_t line, memory::SectorMask mask, const Target& target) {
    std::uint32_t id = free_;
    if (id == none) {
      id = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      free_ = entries_[id].next;
    }
    std::uint32_t& head = heads_[bucket(line)];
    Entry& entry = entries_[id];
    entry.line = line;
    entry.mask = mask;
    entry.next = head;
    entry.num_targets = 1;
    entry.target = target;
    entry.first_more = entry.last_more = none;
    head = id;
    ++size_;
    return id;
  }
  void add_target(std::uint32_t id, const Target& target) {
    std::uint32_t node = free_node_;
    if (node == none) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_node_ = nodes_[node].next;
    }
    nodes_[node] = {target, none};
    Entry& entry = entries_[id];
    ++entry.num_targets;
    (entry.last_more == none ? entry.first_more : nodes_[entry.last_more].next) = node;
    entry.last_more = node;
  }
  void prefetch(std::uint32_t id) const { __builtin_prefetch(&entries_[id]); }
  [[nodiscard]] std::uint64_t line(std::uint32_t id) const { return entries_[id].line; }
  [[nodiscard]] memory::SectorMask mask(std::uint32_t id) const { return entries_[id].mask; }
  /// Calls `visit(target)` for each target, in their order.
  template <typename Visit>
  void for_each_target(std::uint32_t id, Visit visit) const {
    visit(entries_[id].target);
    for (std::uint32_t node = entries_[id].first_more; node != none;) {
      const Node one = nodes_[node];
      visit(one.target);
      node = one.next;
    }
  }
  void release(std::uint32_t id) {
    Entry& entry = entries_[id];
    std::uint32_t* link = &heads_[bucket(entry.line)];
    while (*link != id) link = &entries_[*link].next;
    *link = entry.next;
    if (entry.last_more != none) {
      nodes_[entry.last_more].next = free_node_;
      free_node_ = entry.first_more;
    }
    entry.next = free_;
    free_ = id;
    --size_;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Entry {
    std::uint64_t line = 0;
    std::uint32_t next = none;  ///< in its bucket, or the next free one
    std::uint32_t num_targets = 0;
    std::uint32_t first_more = none;  ///< of the targets but the first one, in nodes_
    std::uint32_t last_more = none;
    memory::SectorMask mask = 0;
    Target target{};
  };
  struct Node {
    Target target{};
    std::uint32_t next = none;
  };

  [[nodiscard]] std::size_t bucket(std::uint64_t line) const {
    return (line * 0x9e3779b97f4a7c15 >> 40) & (heads_.size() - 1);
  }

  std::uint32_t capacity_;
  std::uint32_t most_targets_;
  std::vector<std::uint32_t> heads_;
  std::vector<Entry> entries_;
  std::vector<Node> nodes_;
  std::uint32_t free_ = none;
  std::uint32_t free_node_ = none;
  std::uint32_t size_ = 0;
};

}  // namespace warpstack::interval_simulation
