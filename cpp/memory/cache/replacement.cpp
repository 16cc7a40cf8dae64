#include "memory/cache/replacement.h"

#include <algorithm>

namespace warpstack::memory {

NibbleOrder::NibbleOrder(std::uint32_t ways) : ways_(ways), last_shift_(4 * (ways - 1)) {
  for (std::uint32_t way = 0; way < ways; ++way) identity_ |= std::uint64_t{way} << 4 * way;
}

void NibbleOrder::place_last(Word& word, std::uint32_t way, std::uint32_t num_empty) const {
  const auto below = [](auto bits) { return (std::uint64_t{1} << bits) - 1; };
  const std::uint64_t order = word ^ identity_;
  const int shift = std::countr_zero(top_bit(order, way)) - 3;
  // The way is taken out, its followers move up, and it is put in before the empty ones.
  const std::uint64_t others = (order & below(shift)) | (order >> 4 & ~below(shift));
  const unsigned place = last_shift_ - 4 * num_empty;
  const std::uint64_t in_use = below(last_shift_) << 4 | 15;
  word = ((others & below(place)) | std::uint64_t{way} << place |
          ((others & ~below(place)) << 4 & in_use)) ^
         identity_;
}

void NibbleOrder::ways_of(const Word& word, std::vector<std::uint32_t>& ways) const {
  ways.resize(ways_);
  for (std::uint32_t i = 0; i < ways_; ++i) {
    ways[i] = static_cast<std::uint32_t>((word ^ identity_) >> 4 * i & 15);
  }
}

RankOrder::RankOrder(std::uint32_t ways) : ways_(ways) {
  constexpr std::uint8_t no_rank = 127;
  for (std::uint32_t way = 0; way < most_ways; ++way) {
    identity_.rank[way] = way < ways ? static_cast<std::uint8_t>(way) : no_rank;
    last_.rank[way] = static_cast<std::uint8_t>((ways - 1) ^ identity_.rank[way]);
  }
}

void RankOrder::place_last(Word& word, std::uint32_t way, std::uint32_t num_empty) const {
  const auto rank_of = [&](std::uint32_t i) {
    return static_cast<std::uint8_t>(word.rank[i] ^ identity_.rank[i]);
  };
  const std::uint8_t rank = rank_of(way);
  const auto place = static_cast<std::uint8_t>(ways_ - 1 - num_empty);
  // The ways between its old and its new place move by one towards the old one.
  for (std::uint32_t i = 0; i < ways_; ++i) {
    std::uint8_t moved = rank_of(i);
    if (moved > rank && moved <= place) {
      --moved;
    } else if (moved < rank && moved >= place) {
      ++moved;
    }
    word.rank[i] = moved ^ identity_.rank[i];
  }
  word.rank[way] = place ^ identity_.rank[way];
}

void RankOrder::ways_of(const Word& word, std::vector<std::uint32_t>& ways) const {
  ways.resize(ways_);
  for (std::uint32_t way = 0; way < ways_; ++way) ways[word.rank[way] ^ identity_.rank[way]] = way;
}

std::uint32_t TreeOrder::last(std::uint32_t set) const {
  if (filled_[set] < ways_) return filled_[set];
  const std::uint8_t* tree = tree_.data() + std::size_t{set} * ways_;
  std::uint32_t node = 1;
  while (node < ways_) node = 2 * node + tree[node];
  return node - ways_;
}

void TreeOrder::point(std::uint32_t set, std::uint32_t way, bool away) {
  std::uint8_t* tree = tree_.data() + std::size_t{set} * ways_;
  for (std::uint32_t node = ways_ + way; node > 1; node /= 2) {
    const bool is_right = node % 2 == 1;
    tree[node / 2] = is_right != away;
  }
}

}  // namespace warpstack::memory
