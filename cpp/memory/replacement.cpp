#include "memory/replacement.h"

#include <algorithm>
#include <numeric>

namespace warpstack {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};
constexpr std::uint32_t most_nibbles = 16;
constexpr std::uint32_t most_ranks = 32;
constexpr std::uint8_t no_rank = 127;

}  // namespace

std::string_view name_of(Replacement replacement) {
  static constexpr std::string_view names[num_replacements] = {"lru", "fifo", "plru"};
  return names[static_cast<std::size_t>(replacement)];
}

ReplacementOrder::ReplacementOrder(std::uint64_t sets, std::uint32_t ways, Replacement replacement)
    : ways_(ways),
      form_(replacement == Replacement::plru ? Form::tree
            : ways <= most_nibbles           ? Form::nibbles
            : ways <= most_ranks             ? Form::ranks
                                             : Form::list),
      replacement_(replacement),
      last_shift_(4 * (std::min(ways, most_nibbles) - 1)),
      order_mask_((std::uint64_t{16} << last_shift_) - 1) {
  switch (form_) {
    case Form::nibbles:
      nibbles_.resize(sets);
      break;
    case Form::ranks:
      ranks_.resize(sets * vectors_per_set);
      break;
    case Form::list:
      links_.resize(sets * ways);
      ends_.resize(sets);
      break;
    case Form::tree:
      tree_.resize(sets * ways);
      filled_.resize(sets);
      break;
  }
  clear();
}

void ReplacementOrder::clear() {
  std::uint64_t order = 0;
  for (std::uint32_t way = 0; way < std::min(ways_, most_nibbles); ++way) {
    order |= std::uint64_t{way} << 4 * way;
  }
  std::ranges::fill(nibbles_, order);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const std::size_t first = i % vectors_per_set * vector_ways;
    for (std::size_t way = 0; way < vector_ways; ++way) {
      ranks_[i].of[way] = first + way < ways_ ? static_cast<std::uint8_t>(first + way) : no_rank;
    }
  }
  std::ranges::fill(tree_, std::uint8_t{0});
  std::ranges::fill(filled_, 0);
  for (std::size_t set = 0; set < ends_.size(); ++set) {
    for (std::uint32_t way = 0; way < ways_; ++way) {
      links_[set * ways_ + way] = {way == 0 ? none : way - 1, way + 1 == ways_ ? none : way + 1};
    }
    ends_[set] = {0, ways_ - 1};
  }
}

void ReplacementOrder::place_last(std::uint32_t set, std::uint32_t way, std::uint32_t num_empty) {
  switch (form_) {
    case Form::nibbles: {
      const auto below = [](unsigned bits) { return (std::uint64_t{1} << bits) - 1; };
      std::uint64_t& order = nibbles_[set];
      const unsigned shift = position(order, way);
      // Without the way, its followers move up; then it goes in before the empty ones.
      const std::uint64_t others = (order & below(shift)) | (order >> 4 & ~below(shift));
      const unsigned place = last_shift_ - 4 * num_empty;
      order = (others & below(place)) | std::uint64_t{way} << place |
              ((others & ~below(place)) << 4 & order_mask_);
      break;
    }
    case Form::ranks: {
      std::uint8_t* ranks = set_ranks(set);
      const std::uint8_t rank = ranks[way];
      const auto place = static_cast<std::uint8_t>(ways_ - 1 - num_empty);
      // Those between the two places move on by one, towards where the way was.
      for (std::uint32_t i = 0; i < ways_; ++i) {
        if (ranks[i] > rank && ranks[i] <= place) {
          --ranks[i];
        } else if (ranks[i] < rank && ranks[i] >= place) {
          ++ranks[i];
        }
      }
      ranks[way] = place;
      break;
    }
    case Form::list: {
      unlink(set, way);
      Ends& ends = ends_[set];
      Link* links = links_.data() + std::size_t{set} * ways_;
      std::uint32_t before = ends.last;
      for (std::uint32_t i = 0; i < num_empty; ++i) before = links[before].before;
      const std::uint32_t after = before == none ? ends.first : links[before].after;
      links[way] = {before, after};
      (before == none ? ends.first : links[before].after) = way;
      (after == none ? ends.last : links[after].before) = way;
      break;
    }
    case Form::tree:
      point(set, way, false);
      break;
  }
}

void ReplacementOrder::list_place_first(std::uint32_t set, std::uint32_t way) {
  Ends& ends = ends_[set];
  if (ends.first == way) return;
  unlink(set, way);
  Link* links = links_.data() + std::size_t{set} * ways_;
  links[way] = {none, ends.first};
  links[ends.first].before = way;
  ends.first = way;
}

void ReplacementOrder::unlink(std::uint32_t set, std::uint32_t way) {
  Ends& ends = ends_[set];
  Link* links = links_.data() + std::size_t{set} * ways_;
  const Link link = links[way];
  (link.before == none ? ends.first : links[link.before].after) = link.after;
  (link.after == none ? ends.last : links[link.after].before) = link.before;
}

std::uint32_t ReplacementOrder::tree_victim(std::uint32_t set) const {
  if (filled_[set] < ways_) return filled_[set];
  const std::uint8_t* tree = tree_.data() + std::size_t{set} * ways_;
  std::uint32_t node = 1;
  while (node < ways_) node = 2 * node + tree[node];
  return node - ways_;
}

void ReplacementOrder::point(std::uint32_t set, std::uint32_t way, bool away) {
  std::uint8_t* tree = tree_.data() + std::size_t{set} * ways_;
  for (std::uint32_t node = ways_ + way; node > 1; node /= 2) {
    const bool is_right = node % 2 == 1;
    tree[node / 2] = is_right != away;
  }
}

void ReplacementOrder::ways_of(std::uint32_t set, std::vector<std::uint32_t>& ways) const {
  ways.resize(ways_);
  if (form_ == Form::nibbles) {
    for (std::uint32_t i = 0; i < ways_; ++i) {
      ways[i] = static_cast<std::uint32_t>(nibbles_[set] >> 4 * i & 15);
    }
  } else if (form_ == Form::ranks) {
    const std::uint8_t* ranks = set_ranks(set);
    for (std::uint32_t way = 0; way < ways_; ++way) ways[ranks[way]] = way;
  } else if (form_ == Form::list) {
    std::uint32_t way = ends_[set].first;
    for (std::uint32_t& place : ways) {
      place = way;
      way = links_[std::size_t{set} * ways_ + way].after;
    }
  } else {
    std::iota(ways.begin(), ways.end(), 0);
  }
}

}  // namespace warpstack
