#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/digest.h"
#include "common/zeroed_array.h"
#include "memory/cache/own_policy.h"
#include "memory/cache/replacement.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warpstack::memory {

/// Sectors of a line are numbered 0 to 7: lines have at most 256 bytes.
using SectorMask = std::uint8_t;

/// Calls `visit` with the number of each sector of a mask.
template <typename Visit>
void for_each_sector(SectorMask mask, const Visit& visit) {
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

/// The state of a line's sectors, a bit each.
struct alignas(4) LineState {
  SectorMask valid = 0;  ///< every byte is valid
  SectorMask dirty = 0;
  SectorMask partial = 0;     ///< some bytes are valid
  std::uint8_t reserved = 0;  ///< how often: see Cache::reserve
};

/// The lines in the ways of the sets, their states, and the replacement order of the ways. Empty
/// ways are filled first. Threads may work on different sets at once.
///
/// Sets of up to 32 ways are records of a few cache lines. All ways are compared at once, and no
/// branch depends on the result, because hits are hard to predict. Larger sets are lists with a
/// hash table each, so that an access costs the same whatever the associativity. All memory starts
/// as zero bytes: tags are stored as their complements, orders as differences from the initial one.
class SetStore {
 public:
  /// `ways` is a power of two for pseudo-LRU. Own policies are told addresses, which are numbers of
  /// lines times `line_bytes`.
  SetStore(std::uint64_t sets, std::uint32_t ways, Replacement replacement,
           std::uint32_t line_bytes = 1);

  static constexpr std::uint64_t no_line = ~std::uint64_t{0};

  struct Place {
    std::uint32_t way;
    LineState& state;
  };
  /// Uses a line. An absent line takes the way that is replaced next, with an empty state;
  /// `evict(way)` is called first if that way has dirty sectors.
  template <typename Evict>
  [[gnu::always_inline]] Place access(std::uint32_t set, std::uint64_t line, const Evict& evict) {
    // The usual cases: LRU, and loops of known length.
    if (usual_groups_ == 2) return access_record<2, true>(nibbles_, set, line, evict);
    if (usual_groups_ == 1) return access_record<1, true>(nibbles_, set, line, evict);
    if (usual_groups_ == 4) return access_record<4, true>(nibbles_, set, line, evict);
    return access_other(set, line, evict);
  }
  /// Whether a line is there, and which sectors of it are valid.
  struct Finding {
    std::uint32_t way = 0;  ///< of the line; if absent from a record, the way replaced next
    bool is_there = false;
    SectorMask valid = 0;
  };
  [[nodiscard, gnu::always_inline]] Finding look(std::uint32_t set, std::uint64_t line) const {
    if (usual_groups_ == 1) return look_into<1>(nibbles_, set, line);
    if (usual_groups_ == 2) return look_into<2>(nibbles_, set, line);
    if (usual_groups_ == 4) return look_into<4>(nibbles_, set, line);
    return look_into_other(set, line);
  }
  /// access() with the result of look() for the same line.
  template <typename Evict>
  [[gnu::always_inline]] Place access(std::uint32_t set, std::uint64_t line, const Finding& found,
                                      const Evict& evict) {
    if (usual_groups_ == 1) return use_record<1, true>(nibbles_, set, line, found, evict);
    if (usual_groups_ == 2) return use_record<2, true>(nibbles_, set, line, found, evict);
    if (usual_groups_ == 4) return use_record<4, true>(nibbles_, set, line, found, evict);
    if (form_ == Form::list) return access_list(set, line, found, evict);
    return access(set, line, evict);
  }
  /// access() of a line that look() has just found.
  [[gnu::always_inline]] void touch(std::uint32_t set, std::uint64_t line, const Finding& found) {
    if (usual_groups_ == 0) return touch_other(set, line, found);
    nibbles_.place_first(order_word<NibbleOrder>(record(set), usual_groups_), found.way);
  }
  /// The way that holds a line, or -1.
  [[nodiscard]] int find(std::uint32_t set, std::uint64_t line) const {
    if (form_ == Form::list) return look_up(set, line);
    const std::uint32_t found = search<0>(record(set), line);
    return found == 0 ? -1 : std::countr_zero(found);
  }
  /// The line in a way, or `no_line`.
  [[nodiscard]] std::uint64_t line(std::uint32_t set, std::uint32_t way) const {
    if (form_ == Form::list) return ~node(set, way).tag;
    const std::uint32_t* tags = low_tags(record(set));
    return ~(std::uint64_t{tags[groups_ * lanes + way]} << 32 | tags[way]);
  }
  [[nodiscard]] LineState& state(std::uint32_t set, std::uint32_t way) {
    return form_ == Form::list ? node(set, way).state : states(record(set))[way];
  }
  [[nodiscard]] const LineState& state(std::uint32_t set, std::uint32_t way) const {
    return const_cast<SetStore*>(this)->state(set, way);
  }
  /// When an empty set fills a way: 0 for the first one.
  [[nodiscard]] std::uint32_t turn_of(std::uint32_t way) const {
    const bool from_last = form_ == Form::nibbles || form_ == Form::ranks;
    return from_last ? ways_ - 1 - way : way;
  }
  /// Makes this way the next to be replaced, after the empty ones.
  void place_last(std::uint32_t set, std::uint32_t way);
  /// Makes a way that is not reserved the next to be replaced. Returns whether there is one.
  bool make_room(std::uint32_t set);
  /// The filled ways of a set, perhaps with empty ones, from the one replaced last; with pseudo-LRU
  /// and own policies in the order of their numbers.
  void ways_of(std::uint32_t set, std::vector<std::uint32_t>& ways);
  /// Adds the trees of pseudo-LRU.
  void add_trees_to(Digest& digest) const {
    if (tree_) tree_->add_to(digest);
  }
  /// Prefetches what an access will touch.
  void prefetch(std::uint32_t set, std::uint64_t line) const {
    if (form_ == Form::list) {
      __builtin_prefetch(&heads_[chain(set, line)]);
      __builtin_prefetch(&node(set, ends_[set].last));
      return;
    }
    const std::byte* first = record(set);
    for (std::size_t i = 0; i < record_bytes_; i += cache_line) __builtin_prefetch(first + i);
  }
  /// Whether prefetch_found() has something to do.
  [[nodiscard]] bool is_list() const { return form_ == Form::list; }
  /// Prefetches what prefetch() does not know the place of, once that has come.
  void prefetch_found(std::uint32_t set, std::uint64_t line) const {
    if (form_ != Form::list) return;
    const std::uint32_t link = heads_[chain(set, line)];
    if (link != 0) __builtin_prefetch(&node(set, link - 1));
  }
  /// Forgets everything, in a time that depends on what is there.
  void clear();

 private:
  /// `object`: records whose order is in tree_ or own_.
  enum class Form : std::uint8_t { nibbles, ranks, object, list };

  static constexpr std::size_t cache_line = 64;
  static constexpr std::uint32_t lanes = 4;
  static constexpr std::size_t group_bytes = lanes * sizeof(std::uint64_t);
  /// A way of a large set. Links and heads of chains are numbers of ways from 1; 0 ends a chain.
  struct alignas(32) Node {
    std::uint64_t tag;
    std::uint32_t next_in_chain;
    std::uint32_t before;  ///< in the order of the filled ways; unset in the first
    std::uint32_t after;   ///< unset in the last
    LineState state;
  };
  struct Ends {
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t num_filled;
  };

  // A record has the low halves of its tags (the complements of lines), then the high halves, in
  // groups that are compared at once; then the word of its order; then the states of its ways.
  [[nodiscard]] std::byte* record(std::uint32_t set) {
    return records_.data() + std::size_t{set} * record_bytes_;
  }
  [[nodiscard]] const std::byte* record(std::uint32_t set) const {
    return records_.data() + std::size_t{set} * record_bytes_;
  }
  static std::uint32_t* low_tags(std::byte* record) {
    return reinterpret_cast<std::uint32_t*>(record);
  }
  static const std::uint32_t* low_tags(const std::byte* record) {
    return reinterpret_cast<const std::uint32_t*>(record);
  }
  template <typename Order>
  static typename Order::Word& order_word(std::byte* record, std::uint32_t groups) {
    return *reinterpret_cast<typename Order::Word*>(record + groups * group_bytes);
  }
  template <typename Order>
  static const typename Order::Word& order_word(const std::byte* record, std::uint32_t groups) {
    return *reinterpret_cast<const typename Order::Word*>(record + groups * group_bytes);
  }
  [[nodiscard]] LineState* states(std::byte* record) const {
    return reinterpret_cast<LineState*>(record + states_offset_);
  }
  [[nodiscard]] const LineState* states(const std::byte* record) const {
    return reinterpret_cast<const LineState*>(record + states_offset_);
  }
  [[nodiscard]] Node& node(std::uint32_t set, std::uint32_t way) {
    return nodes_[std::size_t{set} * ways_ + way];
  }
  [[nodiscard]] const Node& node(std::uint32_t set, std::uint32_t way) const {
    return nodes_[std::size_t{set} * ways_ + way];
  }

  /// A bit for each way that holds the line. `known_groups` is the number of groups, or 0.
  template <std::uint32_t known_groups>
  [[nodiscard]] std::uint32_t search(const std::byte* record, std::uint64_t line) const {
    const std::uint32_t groups = known_groups > 0 ? known_groups : groups_;
    const std::uint32_t* low = low_tags(record);
    const std::uint32_t* high = low + groups * lanes;
    std::uint32_t found = 0;
    for (std::uint32_t first = 0; first < groups * lanes; first += lanes) {
      found |= matches(low + first, high + first, ~line) << first;
    }
    return found;
  }
  static std::uint32_t matches(const std::uint32_t* low, const std::uint32_t* high,
                               std::uint64_t tag) {
#if defined(__SSE2__)
    const auto equal = [](const std::uint32_t* halves, std::uint64_t half) {
      return _mm_cmpeq_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(halves)),
                             _mm_set1_epi32(static_cast<int>(half)));
    };
    const __m128i both = _mm_and_si128(equal(low, tag), equal(high, tag >> 32));
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(both)));
#else
    std::uint32_t mask = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const std::uint64_t here = std::uint64_t{high[lane]} << 32 | low[lane];
      mask |= std::uint32_t{here == tag} << lane;
    }
    return mask;
#endif
  }

  template <typename Evict>
  [[gnu::noinline]] Place access_other(std::uint32_t set, std::uint64_t line, const Evict& evict) {
    if (form_ == Form::nibbles) return access_record<0, false>(nibbles_, set, line, evict);
    if (form_ == Form::ranks) {
      switch (groups_) {
        case 5:
          return access_record<5, false>(*ranks_, set, line, evict);
        case 6:
          return access_record<6, false>(*ranks_, set, line, evict);
        case 8:
          return access_record<8, false>(*ranks_, set, line, evict);
        default:
          return access_record<0, false>(*ranks_, set, line, evict);
      }
    }
    if (form_ == Form::list) return access_list(set, line, look_into_list(set, line), evict);
    const int found = find(set, line);
    const bool is_there = found >= 0;
    const std::uint32_t way = is_there ? static_cast<std::uint32_t>(found) : last_of_object(set);
    if (!is_there && state(set, way).dirty != 0) evict(way);
    use_in_object(set, way, line, is_there);
    return take(record(set), groups_, way, line, is_there);
  }
  template <std::uint32_t known_groups, bool is_lru, typename Order, typename Evict>
  [[gnu::always_inline]] Place access_record(const Order& order, std::uint32_t set,
                                             std::uint64_t line, const Evict& evict) {
    return use_record<known_groups, is_lru>(order, set, line,
                                            look_into<known_groups>(order, set, line), evict);
  }
  /// The way of a line, or the way replaced next. No branch depends on which it is.
  template <std::uint32_t known_groups, typename Order>
  [[nodiscard, gnu::always_inline]] Finding look_into(const Order& order, std::uint32_t set,
                                                      std::uint64_t line) const {
    const std::uint32_t groups = known_groups > 0 ? known_groups : groups_;
    const std::byte* record = this->record(set);
    const auto& word = order_word<Order>(record, groups);
    const std::uint32_t found = search<known_groups>(record, line);
    const bool is_there = found != 0;
    const std::uint32_t last = order.last(word);
    // is_there ? first bit of found : last
    const auto first = static_cast<std::uint32_t>(std::countr_zero(found | std::uint32_t{1} << 31));
    const std::uint32_t way = last ^ ((last ^ first) & (0 - std::uint32_t{is_there}));
    const LineState* states = reinterpret_cast<const LineState*>(&word + 1);
    return {way, is_there,
            static_cast<SectorMask>(states[way].valid & (0 - std::uint32_t{is_there}))};
  }
  [[nodiscard]] Finding look_into_list(std::uint32_t set, std::uint64_t line) const {
    const int way = look_up(set, line);
    if (way < 0) return {};
    return {static_cast<std::uint32_t>(way), true,
            node(set, static_cast<std::uint32_t>(way)).state.valid};
  }
  [[nodiscard, gnu::noinline]] Finding look_into_other(std::uint32_t set,
                                                       std::uint64_t line) const {
    if (form_ == Form::list) return look_into_list(set, line);
    const int way = find(set, line);
    if (way < 0) return {};
    return {static_cast<std::uint32_t>(way), true,
            state(set, static_cast<std::uint32_t>(way)).valid};
  }
  template <std::uint32_t known_groups, bool is_lru, typename Order, typename Evict>
  [[gnu::always_inline]] Place use_record(const Order& order, std::uint32_t set, std::uint64_t line,
                                          const Finding& found, const Evict& evict) {
    const std::uint32_t groups = known_groups > 0 ? known_groups : groups_;
    std::byte* record = this->record(set);
    auto& word = order_word<Order>(record, groups);
    // The only branch; it is easy to predict if lines are rarely dirty.
    const LineState* states = reinterpret_cast<const LineState*>(&word + 1);
    if ((states[found.way].dirty & (std::uint32_t{found.is_there} - 1)) != 0) evict(found.way);
    if (is_lru || policy_ != Replacement::fifo || !found.is_there) {
      order.place_first(word, found.way);
    }
    return take(record, groups, found.way, line, found.is_there);
  }
  /// Puts a line into a way of a record and empties its state unless it is there already.
  [[gnu::always_inline]] Place take(std::byte* record, std::uint32_t groups, std::uint32_t way,
                                    std::uint64_t line, bool is_there) const {
    std::uint32_t* tags = low_tags(record);
    tags[way] = static_cast<std::uint32_t>(~line);
    tags[groups * lanes + way] = static_cast<std::uint32_t>(~line >> 32);
    LineState& state = states(record)[way];
    state = std::bit_cast<LineState>(std::bit_cast<std::uint32_t>(state) &
                                     (0 - std::uint32_t{is_there}));
    return {way, state};
  }

  void touch_other(std::uint32_t set, std::uint64_t line, const Finding& found);
  template <typename Evict>
  [[gnu::noinline]] Place access_list(std::uint32_t set, std::uint64_t line, const Finding& found,
                                      const Evict& evict) {
    if (found.is_there) {
      const std::uint32_t way = found.way;
      if (has_object()) {
        use_in_object(set, way, line, true);
      } else if (policy_ != Replacement::fifo && ends_[set].first != way) {
        unlink(set, way);
        link_first(set, way);
      }
      return {way, node(set, way).state};
    }
    const std::uint32_t way = way_for_new_line(set, line);
    Node& place = node(set, way);
    if (place.state.dirty != 0) evict(way);
    place.state = {};
    move_to_chain(set, way, line);
    return {way, place.state};
  }

  /// Where the chain of a line begins, in heads_.
  [[nodiscard]] std::size_t chain(std::uint32_t set, std::uint64_t line) const {
    return std::size_t{set} * heads_per_set_ + (line * 0x9e3779b97f4a7c15 >> hash_shift_);
  }
  [[nodiscard]] int look_up(std::uint32_t set, std::uint64_t line) const {
    const Node* nodes = &node(set, 0);
    std::uint32_t link = heads_[chain(set, line)];
    while (link != 0 && nodes[link - 1].tag != ~line) link = nodes[link - 1].next_in_chain;
    return static_cast<int>(link) - 1;
  }
  /// An empty way of a large set, or the way replaced next; it becomes the one replaced last.
  std::uint32_t way_for_new_line(std::uint32_t set, std::uint64_t line);
  /// Whether an object has the replacement order: pseudo-LRU and own policies.
  [[nodiscard]] bool has_object() const { return tree_.has_value() || own_.has_value(); }
  std::uint32_t last_of_object(std::uint32_t set) {
    return own_ ? own_->last(set) : tree_->last(set);
  }
  void use_in_object(std::uint32_t set, std::uint32_t way, std::uint64_t line, bool is_there) {
    if (own_) return own_->use(set, way, line, is_there);
    tree_->use(set, way);
  }
  void move_to_chain(std::uint32_t set, std::uint32_t way, std::uint64_t line);
  void clear_lists();
  void unlink(std::uint32_t set, std::uint32_t way) {
    Ends& ends = ends_[set];
    const Node& node = this->node(set, way);
    if (way == ends.first) {
      ends.first = node.after;
    } else {
      this->node(set, node.before).after = node.after;
    }
    if (way == ends.last) {
      ends.last = node.before;
    } else {
      this->node(set, node.after).before = node.before;
    }
  }
  void link_first(std::uint32_t set, std::uint32_t way) {
    Ends& ends = ends_[set];
    node(set, way).after = ends.first;
    node(set, ends.first).before = way;
    ends.first = way;
  }

  std::uint64_t sets_;
  std::uint32_t ways_;
  std::uint32_t line_bytes_;
  Form form_;
  Replacement policy_;
  std::uint32_t groups_ = 0;        ///< of tags in a record
  std::uint32_t usual_groups_ = 0;  ///< groups_ if the order is LRU in nibbles, else 0
  std::size_t states_offset_ = 0;
  std::size_t record_bytes_ = 0;
  NibbleOrder nibbles_;
  std::optional<RankOrder> ranks_;
  std::optional<TreeOrder> tree_;  ///< pseudo-LRU, with any number of ways
  std::optional<OwnOrder> own_;    ///< an own policy, likewise
  ZeroedArray<std::byte> records_;
  // Only for large sets:
  ZeroedArray<Node> nodes_;  ///< by set and way
  ZeroedArray<Ends> ends_;   ///< by set: its filled ways, the one replaced last first
  ZeroedArray<std::uint32_t> heads_;
  std::size_t heads_per_set_ = 0;
  int hash_shift_ = 0;
};

}  // namespace warpstack::memory
