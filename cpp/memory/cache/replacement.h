#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "common/digest.h"
#include "gpu/choices.h"

namespace warpstack::memory {

using gpu::Replacement;

/// The replacement order of up to 16 ways, as the nibbles of a word: the lowest nibble is the way
/// that is replaced last. Zero stands for the order of their numbers.
class NibbleOrder {
 public:
  using Word = std::uint64_t;
  static constexpr std::uint32_t most_ways = 16;

  explicit NibbleOrder(std::uint32_t ways);

  /// The way that is replaced next.
  [[nodiscard]] std::uint32_t last(Word word) const {
    return static_cast<std::uint32_t>((word ^ identity_) >> last_shift_ & 15);
  }
  /// The way that is replaced after `later` others.
  [[nodiscard]] std::uint32_t from_last(Word word, std::uint32_t later) const {
    return static_cast<std::uint32_t>((word ^ identity_) >> (last_shift_ - 4 * later) & 15);
  }
  [[gnu::always_inline]] void place_first(Word& word, std::uint32_t way) const {
    // Done even if the way is first already: a branch on that is unpredictable and would cost more.
    const std::uint64_t order = word ^ identity_;
    const std::uint64_t top = top_bit(order, way);
    const std::uint64_t before = order & ((top >> 3) - 1);
    const std::uint64_t after = order & (0 - (top << 1));
    word = (after | before << 4 | way) ^ identity_;
  }
  /// Makes this way the next to be replaced, after the empty ones.
  void place_last(Word& word, std::uint32_t way, std::uint32_t num_empty) const;
  void ways_of(const Word& word, std::vector<std::uint32_t>& ways) const;

 private:
  /// The upper bit of a way's nibble.
  static std::uint64_t top_bit(std::uint64_t order, std::uint32_t way) {
    constexpr std::uint64_t ones = 0x1111111111111111;
    const std::uint64_t x = order ^ (ones * way);  // zero where the way is
    const std::uint64_t zeros = (x - ones) & ~x & (ones << 3);
    return zeros & (0 - zeros);  // nibbles above the lowest match may be false matches
  }

  std::uint32_t ways_;
  unsigned last_shift_;
  std::uint64_t identity_ = 0;  ///< encodes the order of the ways' numbers
};

/// The same for up to 32 ways, as a rank per way; rank 0 is replaced last. A few vector
/// instructions update the ranks.
class RankOrder {
 public:
  static constexpr std::uint32_t most_ways = 32;
  static constexpr std::uint32_t lanes = 16;
  struct alignas(16) Word {
    std::uint8_t rank[most_ways];
  };

  explicit RankOrder(std::uint32_t ways);

  [[nodiscard]] std::uint32_t last(const Word& word) const {
    const std::uint32_t found = ways_of_last(word, 0) | ways_of_last(word, lanes) << lanes;
    return static_cast<std::uint32_t>(std::countr_zero(found));
  }
  [[gnu::always_inline]] void place_first(Word& word, std::uint32_t way) const {
    const auto rank = static_cast<std::uint8_t>(word.rank[way] ^ identity_.rank[way]);
    place_first(word, 0, rank);
    place_first(word, lanes, rank);
  }
  void place_last(Word& word, std::uint32_t way, std::uint32_t num_empty) const;
  void ways_of(const Word& word, std::vector<std::uint32_t>& ways) const;

 private:
  /// A bit for the way of the last rank if it is among the sixteen ways from `first`.
  [[nodiscard]] std::uint32_t ways_of_last(const Word& word, std::uint32_t first) const {
#if defined(__SSE2__)
    return static_cast<std::uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(load(word, first), load(last_, first))));
#else
    std::uint32_t mask = 0;
    for (std::uint32_t i = 0; i < lanes; ++i) {
      mask |= std::uint32_t{(word.rank[first + i] ^ identity_.rank[first + i]) == ways_ - 1} << i;
    }
    return mask;
#endif
  }
  /// Moves the way of this rank to the front and those of lower rank back by one.
  void place_first(Word& word, std::uint32_t first, std::uint8_t rank) const {
#if defined(__SSE2__)
    const __m128i identity = load(identity_, first);
    const __m128i old = _mm_xor_si128(load(word, first), identity);
    const __m128i moved = _mm_set1_epi8(static_cast<char>(rank));
    const __m128i back = _mm_sub_epi8(old, _mm_cmplt_epi8(old, moved));
    _mm_store_si128(reinterpret_cast<__m128i*>(word.rank + first),
                    _mm_xor_si128(_mm_andnot_si128(_mm_cmpeq_epi8(old, moved), back), identity));
#else
    for (std::uint32_t i = first; i < first + lanes; ++i) {
      const auto old = static_cast<std::uint8_t>(word.rank[i] ^ identity_.rank[i]);
      word.rank[i] =
          static_cast<std::uint8_t>((old == rank ? 0 : old + (old < rank)) ^ identity_.rank[i]);
    }
#endif
  }
#if defined(__SSE2__)
  static __m128i load(const Word& word, std::uint32_t first) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(word.rank + first));
  }
#endif

  std::uint32_t ways_;
  /// The ways in the order of their numbers; entries beyond the last way have a rank that no way
  /// reaches. Ranks are at most 127, because vectors of bytes compare as signed.
  Word identity_;
  Word last_;  ///< the rank of the way replaced next, as encoded in a word
};

/// Tree pseudo-LRU. Empty ways come first.
class TreeOrder {
 public:
  /// `ways` is a power of two.
  TreeOrder(std::uint64_t sets, std::uint32_t ways)
      : ways_(ways), tree_(sets * ways), filled_(sets) {}

  [[nodiscard]] std::uint32_t last(std::uint32_t set) const;
  void use(std::uint32_t set, std::uint32_t way) {
    if (way == filled_[set]) ++filled_[set];
    point(set, way, true);
  }
  void place_last(std::uint32_t set, std::uint32_t way) { point(set, way, false); }
  void add_to(Digest& digest) const {
    digest.add_bytes(tree_.data(), tree_.size());
    digest.add_bytes(filled_.data(), filled_.size() * sizeof(filled_.front()));
  }

 private:
  void point(std::uint32_t set, std::uint32_t way, bool away);

  std::uint32_t ways_;
  /// By set, the inner nodes of its tree in heap order from 1: true if the right half is replaced
  /// next.
  std::vector<std::uint8_t> tree_;
  std::vector<std::uint32_t> filled_;  ///< number of filled ways, by set
};

}  // namespace warpstack::memory
