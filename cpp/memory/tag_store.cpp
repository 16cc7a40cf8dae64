#include "memory/tag_store.h"

#include <algorithm>

namespace warpstack {
namespace {

constexpr std::uint32_t most_searched_ways = 32;

}  // namespace

TagStore::TagStore(std::uint64_t sets, std::uint32_t ways)
    : blocks_per_set_((ways + lanes - 1) / lanes), blocks_(sets * blocks_per_set_) {
  if (ways > most_searched_ways) {
    entries_per_set_ = std::bit_ceil(std::size_t{2} * ways);
    hash_shift_ = 64 - std::countr_zero(entries_per_set_);
    index_.resize(sets * entries_per_set_);
  }
  clear();
}

void TagStore::clear() {
  for (Block& block : blocks_) {
    std::ranges::fill(block.low, ~std::uint32_t{0});
    std::ranges::fill(block.high, ~std::uint32_t{0});
  }
  std::ranges::fill(index_, Entry{no_line, 0});
}

int TagStore::look_up(std::uint32_t set, std::uint64_t line) const {
  const Entry* entries = index_.data() + set * entries_per_set_;
  const std::size_t mask = entries_per_set_ - 1;
  for (std::size_t i = home(line); entries[i].line != no_line; i = (i + 1) & mask) {
    if (entries[i].line == line) return static_cast<int>(entries[i].way);
  }
  return -1;
}

void TagStore::replace(std::uint32_t set, std::uint32_t way, std::uint64_t line) {
  if (!index_.empty()) {
    const std::uint64_t old = this->line(set, way);
    if (old != no_line) erase(set, old);
    insert(set, line, way);
  }
  Block& block = blocks_[std::size_t{set} * blocks_per_set_ + way / lanes];
  block.low[way % lanes] = static_cast<std::uint32_t>(line);
  block.high[way % lanes] = static_cast<std::uint32_t>(line >> 32);
}

void TagStore::insert(std::uint32_t set, std::uint64_t line, std::uint32_t way) {
  Entry* entries = index_.data() + set * entries_per_set_;
  const std::size_t mask = entries_per_set_ - 1;
  std::size_t i = home(line);
  while (entries[i].line != no_line) i = (i + 1) & mask;
  entries[i] = {line, way};
}

void TagStore::erase(std::uint32_t set, std::uint64_t line) {
  Entry* entries = index_.data() + set * entries_per_set_;
  const std::size_t mask = entries_per_set_ - 1;
  std::size_t hole = home(line);
  while (entries[hole].line != line) hole = (hole + 1) & mask;
  // Entries after the hole move back into it unless that would put them before their home.
  for (std::size_t i = (hole + 1) & mask; entries[i].line != no_line; i = (i + 1) & mask) {
    if (((i - home(entries[i].line)) & mask) >= ((i - hole) & mask)) {
      entries[hole] = entries[i];
      hole = i;
    }
  }
  entries[hole].line = no_line;
}

}  // namespace warpstack
