#include "memory/cache/set_store.h"

#include <algorithm>
#include <numeric>

namespace warpstack::memory {

SetStore::SetStore(std::uint64_t sets, std::uint32_t ways, Replacement replacement,
                   std::uint32_t line_bytes)
    : sets_(sets),
      ways_(ways),
      line_bytes_(line_bytes),
      form_(ways > RankOrder::most_ways                                    ? Form::list
            : replacement == Replacement::plru || gpu::is_own(replacement) ? Form::object
            : ways <= NibbleOrder::most_ways                               ? Form::nibbles
                                                                           : Form::ranks),
      policy_(replacement),
      nibbles_(std::min(ways, NibbleOrder::most_ways)) {
  if (form_ == Form::ranks) ranks_.emplace(ways);
  if (form_ == Form::list) {
    heads_per_set_ = std::bit_ceil(std::size_t{ways});
    hash_shift_ = 64 - std::countr_zero(heads_per_set_);
  } else {
    groups_ = (ways + lanes - 1) / lanes;
    if (form_ == Form::nibbles && policy_ == Replacement::lru) usual_groups_ = groups_;
    states_offset_ = groups_ * group_bytes +
                     (form_ == Form::ranks ? sizeof(RankOrder::Word) : sizeof(NibbleOrder::Word));
    const std::size_t bytes = states_offset_ + ways * sizeof(LineState);
    record_bytes_ = (bytes + cache_line - 1) / cache_line * cache_line;
  }
  if (replacement == Replacement::plru) tree_.emplace(sets, ways);
  if (gpu::is_own(replacement)) own_.emplace(replacement, sets, ways, line_bytes);
  records_ = ZeroedArray<std::byte>(sets * record_bytes_);
  if (form_ != Form::list) return;
  nodes_ = ZeroedArray<Node>(sets * ways);
  ends_ = ZeroedArray<Ends>(sets);
  heads_ = ZeroedArray<std::uint32_t>(sets * heads_per_set_);
}

void SetStore::clear() {
  records_.clear();
  if (form_ == Form::list) clear_lists();
  if (tree_) tree_.emplace(sets_, ways_);
  if (own_) own_.emplace(policy_, sets_, ways_, line_bytes_);
}

void SetStore::touch_other(std::uint32_t set, std::uint64_t line, const Finding& found) {
  access(set, line, found, [](std::uint32_t) {});
}

void SetStore::clear_lists() {
  // Ways are filled in the order of their numbers, unless an object says which.
  for (std::uint64_t set = 0; set < sets_ && !has_object(); ++set) {
    const std::size_t filled = ends_[set].num_filled;
    if (filled == 0) continue;
    std::fill_n(&node(static_cast<std::uint32_t>(set), 0), filled, Node{});
    std::fill_n(&heads_[set * heads_per_set_], heads_per_set_, 0);
  }
  if (has_object()) {
    nodes_.clear();
    heads_.clear();
  }
  ends_.clear();
}

void SetStore::place_last(std::uint32_t set, std::uint32_t way) {
  if (own_) return own_->place_last(set, way);
  if (tree_) return tree_->place_last(set, way);
  if (form_ == Form::list) {
    Ends& ends = ends_[set];
    if (ends.last == way) return;
    unlink(set, way);
    node(set, way).before = ends.last;
    node(set, ends.last).after = way;
    ends.last = way;
    return;
  }
  std::uint32_t num_empty = 0;
  for (std::uint32_t w = 0; w < ways_; ++w) num_empty += line(set, w) == no_line;
  if (form_ == Form::nibbles) {
    nibbles_.place_last(order_word<NibbleOrder>(record(set), groups_), way, num_empty);
  } else {
    ranks_->place_last(order_word<RankOrder>(record(set), groups_), way, num_empty);
  }
}

bool SetStore::make_room(std::uint32_t set) {
  const auto is_free = [&](std::uint32_t way) { return state(set, way).reserved == 0; };
  // Empty ways come first and are free.
  if (form_ == Form::nibbles) {  // the usual case, without memory of its own
    const NibbleOrder::Word word = order_word<NibbleOrder>(record(set), groups_);
    for (std::uint32_t later = 0; later < ways_; ++later) {
      const std::uint32_t way = nibbles_.from_last(word, later);
      if (!is_free(way)) continue;
      if (later > 0) place_last(set, way);
      return true;
    }
    return false;
  }
  if (form_ == Form::list && ends_[set].num_filled < ways_) return true;
  if (is_free(has_object()          ? last_of_object(set)
              : form_ == Form::list ? ends_[set].last
                                    : ranks_->last(order_word<RankOrder>(record(set), groups_)))) {
    return true;
  }
  std::vector<std::uint32_t> ways;
  ways_of(set, ways);
  if (!has_object()) std::ranges::reverse(ways);
  const auto found = std::ranges::find_if(ways, is_free);
  if (found == ways.end()) return false;
  place_last(set, *found);
  return true;
}

void SetStore::ways_of(std::uint32_t set, std::vector<std::uint32_t>& ways) {
  if (has_object()) {
    ways.resize(ways_);
    std::iota(ways.begin(), ways.end(), 0);
  } else if (form_ == Form::nibbles) {
    nibbles_.ways_of(order_word<NibbleOrder>(record(set), groups_), ways);
  } else if (form_ == Form::ranks) {
    ranks_->ways_of(order_word<RankOrder>(record(set), groups_), ways);
  } else {
    ways.resize(ends_[set].num_filled);
    std::uint32_t way = ends_[set].first;
    for (std::uint32_t& place : ways) {
      place = way;
      way = node(set, way).after;
    }
  }
}

std::uint32_t SetStore::way_for_new_line(std::uint32_t set, std::uint64_t line) {
  Ends& ends = ends_[set];
  const bool is_full = ends.num_filled == ways_;
  if (has_object()) {
    const std::uint32_t way = last_of_object(set);
    use_in_object(set, way, line, false);
    ends.num_filled += !is_full;
    return way;
  }
  if (is_full) {
    const std::uint32_t way = ends.last;
    unlink(set, way);
    link_first(set, way);
    return way;
  }
  const std::uint32_t way = ends.num_filled++;
  if (way > 0) link_first(set, way);
  return way;
}

void SetStore::move_to_chain(std::uint32_t set, std::uint32_t way, std::uint64_t line) {
  Node* nodes = &node(set, 0);
  const std::uint32_t link_here = way + 1;
  const std::uint64_t old = ~nodes[way].tag;
  if (old != no_line) {
    std::uint32_t* link = &heads_[chain(set, old)];
    while (*link != link_here) link = &nodes[*link - 1].next_in_chain;
    *link = nodes[way].next_in_chain;
  }
  std::uint32_t& head = heads_[chain(set, line)];
  nodes[way].tag = ~line;
  nodes[way].next_in_chain = head;
  head = link_here;
}

}  // namespace warpstack::memory
