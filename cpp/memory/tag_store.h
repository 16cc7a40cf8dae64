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
    return index_.empty() ? search(set, line) : look_up(set, line);
  }
  /// The line in a way, or `no_line`.
  [[nodiscard]] std::uint64_t line(std::uint32_t set, std::uint32_t way) const {
    const Block* blocks = set_blocks(set);
    const Block& block = blocks[way / lanes];
    return std::uint64_t{block.high[way % lanes]} << 32 | block.low[way % lanes];
  }
  /// Puts a line into a way; what was there is forgotten.
  void replace(std::uint32_t set, std::uint32_t way, std::uint64_t line);
  void prefetch(std::uint32_t set) const {
    if (!index_.empty()) return;
    const Block* blocks = set_blocks(set);
    for (std::uint32_t i = 0; i < blocks_per_set_; i += 2) __builtin_prefetch(blocks + i);
  }
  void clear();

  static constexpr std::uint64_t no_line = ~std::uint64_t{0};

 private:
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
    const Block* blocks = set_blocks(set);
    const auto low = static_cast<std::uint32_t>(line);
    const auto high = static_cast<std::uint32_t>(line >> 32);
    unsigned found = 0;
    for (std::uint32_t i = 0; i < blocks_per_set_; ++i) {
      found |= matches(blocks[i], low) << lanes * i;
    }
    // The low halves of different lines are rarely equal.
    for (; found != 0; found &= found - 1) {
      const int way = std::countr_zero(found);
      if (blocks[way / lanes].high[way % lanes] == high) return way;
    }
    return -1;
  }
  [[nodiscard]] std::size_t home(std::uint64_t line) const {
    return static_cast<std::size_t>(line * 0x9e3779b97f4a7c15 >> hash_shift_);
  }
  [[nodiscard]] int look_up(std::uint32_t set, std::uint64_t line) const;
  void erase(std::uint32_t set, std::uint64_t line);
  void insert(std::uint32_t set, std::uint64_t line, std::uint32_t way);

  struct Entry {
    std::uint64_t line;
    std::uint32_t way;
  };

  std::uint32_t blocks_per_set_;
  std::vector<Block> blocks_;
  /// Of each set: open addressing with linear probing, at most half full. Empty for small sets.
  std::vector<Entry> index_;
  std::size_t entries_per_set_ = 0;
  int hash_shift_ = 0;
};

}  // namespace warpstack
