#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warpstack {

/// Which line is in which way of which set. Sets of up to 32 ways are searched side by side; larger
/// ones have a hash table each, so that a search costs the same whatever the associativity. Threads
/// may work on different sets at once.
class TagStore {
 public:
  TagStore(std::uint64_t sets, std::uint32_t ways);

  /// The way that holds a line, or -1.
  [[nodiscard]] int find(std::uint32_t set, std::uint64_t line) const {
    return !is_chained_ ? search(set, line) : look_up(set, line);
  }
  /// The line in a way, or `no_line`.
  [[nodiscard]] std::uint64_t line(std::uint32_t set, std::uint32_t way) const {
    const Block* blocks = set_blocks(set);
    const Block& block = blocks[way / lanes];
    return std::uint64_t{block.high[way % lanes]} << 32 | block.low[way % lanes];
  }
  /// Puts a line into a way; what was there is forgotten.
  void replace(std::uint32_t set, std::uint32_t way, std::uint64_t line) {
    if (is_chained_) relink(set, way, line);
    Block& block = blocks_[std::size_t{set} * blocks_per_set_ + way / lanes];
    block.low[way % lanes] = static_cast<std::uint32_t>(line);
    block.high[way % lanes] = static_cast<std::uint32_t>(line >> 32);
  }
  void prefetch(std::uint32_t set) const {
    if (is_chained_) return;
    const Block* blocks = set_blocks(set);
    for (std::uint32_t i = 0; i < blocks_per_set_; i += 2) __builtin_prefetch(blocks + i);
  }
  void clear();

  static constexpr std::uint64_t no_line = ~std::uint64_t{0};

 private:
  static constexpr std::uint32_t end = ~std::uint32_t{0};  ///< of a chain; -1 as an int
  static constexpr std::uint32_t lanes = 4;
  /// Four tags, their halves apart: the low ones are compared at once.
  struct alignas(32) Block {
    std::uint32_t low[lanes];
    std::uint32_t high[lanes];
  };

  [[nodiscard]] const Block* set_blocks(std::uint32_t set) const {
    return blocks_.data() + std::size_t{set} * blocks_per_set_;
  }
  /// Lanes whose low half equals `low`, one bit each.
  static unsigned matches(const Block& block, std::uint32_t low) {
#if defined(__SSE2__)
    const __m128i equal =
        _mm_cmpeq_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(block.low)),
                        _mm_set1_epi32(static_cast<int>(low)));
    return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(equal)));
#else
    unsigned mask = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) mask |= (block.low[lane] == low) << lane;
    return mask;
#endif
  }
  [[nodiscard]] int search(std::uint32_t set, std::uint64_t line) const {
    // The usual sizes have loops of known length.
    switch (blocks_per_set_) {
      case 1:
        return search_blocks<1>(set, line);
      case 2:
        return search_blocks<2>(set, line);
      case 4:
        return search_blocks<4>(set, line);
      default:
        return search_blocks<0>(set, line);
    }
  }
  template <std::uint32_t blocks_per_set>
  [[nodiscard]] int search_blocks(std::uint32_t set, std::uint64_t line) const {
    const std::uint32_t count = blocks_per_set > 0 ? blocks_per_set : blocks_per_set_;
    const Block* blocks = blocks_.data() + std::size_t{set} * count;
    const auto low = static_cast<std::uint32_t>(line);
    const auto high = static_cast<std::uint32_t>(line >> 32);
    unsigned found = 0;
    for (std::uint32_t i = 0; i < count; ++i) found |= matches(blocks[i], low) << lanes * i;
    // The low halves of different lines are rarely equal.
    for (; found != 0; found &= found - 1) {
      const auto way = static_cast<std::uint32_t>(std::countr_zero(found));
      if (blocks[way / lanes].high[way % lanes] == high) return static_cast<int>(way);
    }
    return -1;
  }
  /// Where the chain of a line begins, in heads_.
  [[nodiscard]] std::size_t chain(std::uint32_t set, std::uint64_t line) const {
    return std::size_t{set} * heads_per_set_ + (line * 0x9e3779b97f4a7c15 >> hash_shift_);
  }
  [[nodiscard]] int look_up(std::uint32_t set, std::uint64_t line) const {
    const Block* blocks = set_blocks(set);
    const auto low = static_cast<std::uint32_t>(line);
    const auto high = static_cast<std::uint32_t>(line >> 32);
    const std::uint32_t* next = next_.data() + std::size_t{set} * ways_;
    std::uint32_t way = heads_[chain(set, line)];
    for (; way != end; way = next[way]) {
      const Block& block = blocks[way / lanes];
      if (block.low[way % lanes] == low && block.high[way % lanes] == high) break;
    }
    return static_cast<int>(way);
  }
  void relink(std::uint32_t set, std::uint32_t way, std::uint64_t line);

  std::uint32_t ways_;
  bool is_chained_;
  std::uint32_t blocks_per_set_;
  std::vector<Block> blocks_;
  // Of large sets: chains of ways by a hash of their lines. Empty for small sets.
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> next_;  ///< by set and way
  std::size_t heads_per_set_ = 0;
  int hash_shift_ = 0;
};

}  // namespace warpstack
