#include "memory/tag_store.h"

#include <algorithm>

namespace warpstack {
namespace {

constexpr std::uint32_t most_searched_ways = 32;

}  // namespace

TagStore::TagStore(std::uint64_t sets, std::uint32_t ways)
    : ways_(ways),
      is_chained_(ways > most_searched_ways),
      blocks_per_set_((ways + lanes - 1) / lanes),
      blocks_(sets * blocks_per_set_) {
  if (is_chained_) {
    heads_per_set_ = std::bit_ceil(std::size_t{ways});
    hash_shift_ = 64 - std::countr_zero(heads_per_set_);
    heads_.resize(sets * heads_per_set_);
    next_.resize(sets * ways);
  }
  clear();
}

void TagStore::clear() {
  for (Block& block : blocks_) {
    std::ranges::fill(block.low, ~std::uint32_t{0});
    std::ranges::fill(block.high, ~std::uint32_t{0});
  }
  std::ranges::fill(heads_, end);
}

void TagStore::relink(std::uint32_t set, std::uint32_t way, std::uint64_t line) {
  std::uint32_t* next = next_.data() + std::size_t{set} * ways_;
  const std::uint64_t old = this->line(set, way);
  if (old != no_line) {
    std::uint32_t* link = &heads_[chain(set, old)];
    while (*link != way) link = &next[*link];
    *link = next[way];
  }
  std::uint32_t& head = heads_[chain(set, line)];
  next[way] = head;
  head = way;
}

}  // namespace warpstack
