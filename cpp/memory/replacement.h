#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warpstack {

enum class Replacement : std::uint8_t {
  lru,   ///< the least recently used line makes room
  fifo,  ///< the oldest line makes room
  plru,  ///< tree pseudo-LRU: each node of a binary tree over the ways points away from the last
         ///< use
};
inline constexpr std::size_t num_replacements = 3;
std::string_view name_of(Replacement replacement);

/// Which way of a set makes room next. Empty ways come first.
///
/// LRU and FIFO keep the ways of a set in order: up to 16 ways as the nibbles of one word, up to 32
/// as the rank of each, which a few vector instructions update, more as a linked list, so that a
/// use costs the same whatever the associativity.
class ReplacementOrder {
 public:
  /// `ways` is a power of two for pseudo-LRU.
  ReplacementOrder(std::uint64_t sets, std::uint32_t ways, Replacement replacement);

  [[nodiscard]] std::uint32_t victim(std::uint32_t set) const {
    if (form_ == Form::nibbles)
      return static_cast<std::uint32_t>(nibbles_[set] >> last_shift_ & 15);
    if (form_ == Form::ranks) return last_of_ranks(set);
    if (form_ == Form::list) return ends_[set].last;
    return tree_victim(set);
  }
  /// A line that is resident was used.
  void use(std::uint32_t set, std::uint32_t way) {
    if (replacement_ != Replacement::fifo) place_first(set, way);
  }
  /// The way that makes room takes a new line.
  std::uint32_t fill(std::uint32_t set) {
    if (form_ == Form::nibbles) {
      // All ways move on by one place.
      std::uint64_t& order = nibbles_[set];
      const std::uint64_t way = order >> last_shift_ & 15;
      order = (order << 4 & order_mask_) | way;
      return static_cast<std::uint32_t>(way);
    }
    const std::uint32_t way = victim(set);
    if (form_ == Form::ranks) {
      move_first(set, static_cast<std::uint8_t>(ways_ - 1));
      return way;
    }
    place_first(set, way);
    if (replacement_ == Replacement::plru && filled_[set] < ways_) ++filled_[set];
    return way;
  }
  /// This way makes room next, after the empty ones.
  void place_last(std::uint32_t set, std::uint32_t way, std::uint32_t num_empty);
  void prefetch(std::uint32_t set) const {
    if (form_ == Form::nibbles) __builtin_prefetch(&nibbles_[set]);
    if (form_ == Form::ranks)
      __builtin_prefetch(ranks_.data() + std::size_t{set} * vectors_per_set);
  }
  /// The ways of a set, the last to make room first; with pseudo-LRU in the order of their numbers.
  void ways_of(std::uint32_t set, std::vector<std::uint32_t>& ways) const;
  void clear();

 private:
  enum class Form : std::uint8_t { nibbles, ranks, list, tree };

  static constexpr std::uint32_t vector_ways = 16;
  static constexpr std::size_t vectors_per_set = 2;
  /// Ranks of sixteen ways, 0 for the last to make room; beyond the last way one that no way has or
  /// passes. Vectors of bytes compare with a sign, so none is above 127.
  struct alignas(16) Ranks {
    std::uint8_t of[vector_ways];
  };
  struct Link {
    std::uint32_t before;
    std::uint32_t after;
  };
  struct Ends {
    std::uint32_t first;
    std::uint32_t last;
  };

  void place_first(std::uint32_t set, std::uint32_t way) {
    if (form_ == Form::nibbles) {
      // Also where the way is first already: that is unpredictable, and a wrong guess costs more.
      std::uint64_t& order = nibbles_[set];
      const unsigned shift = position(order, way);
      const std::uint64_t before = order & ((std::uint64_t{1} << shift) - 1);
      const std::uint64_t after = order & ~((std::uint64_t{16} << shift) - 1);
      order = after | before << 4 | way;
    } else if (form_ == Form::ranks) {
      move_first(set, set_ranks(set)[way]);
    } else if (form_ == Form::list) {
      list_place_first(set, way);
    } else {
      point(set, way, true);
    }
  }
  /// Bit position of a way's nibble.
  static unsigned position(std::uint64_t order, std::uint32_t way) {
    constexpr std::uint64_t ones = 0x1111111111111111;
    const std::uint64_t x = order ^ (ones * way);  // zero where the way is
    return static_cast<unsigned>(std::countr_zero((x - ones) & ~x & (ones << 3))) - 3;
  }
  [[nodiscard]] std::uint8_t* set_ranks(std::uint32_t set) {
    return reinterpret_cast<std::uint8_t*>(ranks_.data() + std::size_t{set} * vectors_per_set);
  }
  [[nodiscard]] const std::uint8_t* set_ranks(std::uint32_t set) const {
    return reinterpret_cast<const std::uint8_t*>(ranks_.data() +
                                                 std::size_t{set} * vectors_per_set);
  }
  /// The way that makes room next.
  [[nodiscard]] std::uint32_t last_of_ranks(std::uint32_t set) const {
    const Ranks* vectors = ranks_.data() + std::size_t{set} * vectors_per_set;
    const std::uint32_t last = ways_ - 1;
    const std::uint32_t found = ways_of_rank(vectors[0], last) | ways_of_rank(vectors[1], last)
                                                                     << vector_ways;
    return static_cast<std::uint32_t>(std::countr_zero(found));
  }
  /// The way of this rank will make room last.
  void move_first(std::uint32_t set, std::uint8_t rank) {
    Ranks* vectors = ranks_.data() + std::size_t{set} * vectors_per_set;
    move_first(vectors[0], rank);
    move_first(vectors[1], rank);
  }
  /// A bit for the way of this rank if it is one of these sixteen.
  static std::uint32_t ways_of_rank(const Ranks& ranks, std::uint32_t rank) {
#if defined(__SSE2__)
    return static_cast<std::uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(reinterpret_cast<const __m128i*>(ranks.of)),
                                         _mm_set1_epi8(static_cast<char>(rank)))));
#else
    std::uint32_t mask = 0;
    for (std::uint32_t way = 0; way < vector_ways; ++way) {
      mask |= std::uint32_t{ranks.of[way] == rank} << way;
    }
    return mask;
#endif
  }
  /// Moves the ways of lower rank back by one and that of this rank to the front.
  static void move_first(Ranks& ranks, std::uint8_t rank) {
#if defined(__SSE2__)
    auto* vector = reinterpret_cast<__m128i*>(ranks.of);
    const __m128i old = _mm_load_si128(vector);
    const __m128i moved = _mm_set1_epi8(static_cast<char>(rank));
    const __m128i back = _mm_sub_epi8(old, _mm_cmplt_epi8(old, moved));
    _mm_store_si128(vector, _mm_andnot_si128(_mm_cmpeq_epi8(old, moved), back));
#else
    for (std::uint8_t& place : ranks.of) place = place == rank ? 0 : place + (place < rank);
#endif
  }
  void list_place_first(std::uint32_t set, std::uint32_t way);
  void unlink(std::uint32_t set, std::uint32_t way);
  [[nodiscard]] std::uint32_t tree_victim(std::uint32_t set) const;
  void point(std::uint32_t set, std::uint32_t way, bool away);

  std::uint32_t ways_;
  Form form_;
  Replacement replacement_;
  unsigned last_shift_;
  std::uint64_t order_mask_;            ///< of the nibbles in use
  std::vector<std::uint64_t> nibbles_;  ///< by set; the way that makes room last in the low nibble
  std::vector<Ranks> ranks_;            ///< by set and sixteen ways
  std::vector<Link> links_;             ///< by set and way
  std::vector<Ends> ends_;              ///< by set
  /// By set, the inner nodes of its tree in heap order from 1: whether the right half makes room.
  std::vector<std::uint8_t> tree_;
  std::vector<std::uint32_t> filled_;  ///< ways that have been filled, by set
};

}  // namespace warpstack
