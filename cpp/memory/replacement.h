#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

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
/// LRU and FIFO keep the ways of a set in order: up to 16 ways as the nibbles of one word, more as
/// a linked list, so that a use costs the same whatever the associativity.
class ReplacementOrder {
 public:
  /// `ways` is a power of two for pseudo-LRU.
  ReplacementOrder(std::uint64_t sets, std::uint32_t ways, Replacement replacement);

  [[nodiscard]] std::uint32_t victim(std::uint32_t set) const {
    if (form_ == Form::nibbles)
      return static_cast<std::uint32_t>(nibbles_[set] >> last_shift_ & 15);
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
    place_first(set, way);
    if (replacement_ == Replacement::plru && filled_[set] < ways_) ++filled_[set];
    return way;
  }
  /// This way makes room next, after the empty ones.
  void place_last(std::uint32_t set, std::uint32_t way, std::uint32_t num_empty);
  void prefetch(std::uint32_t set) const {
    if (form_ == Form::nibbles) __builtin_prefetch(&nibbles_[set]);
  }
  /// The ways of a set, the last to make room first; with pseudo-LRU in the order of their numbers.
  void ways_of(std::uint32_t set, std::vector<std::uint32_t>& ways) const;
  void clear();

 private:
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
      std::uint64_t& order = nibbles_[set];
      if ((order & 15) == way) return;
      const unsigned shift = position(order, way);
      const std::uint64_t before = order & ((std::uint64_t{1} << shift) - 1);
      const std::uint64_t after = order & ~((std::uint64_t{16} << shift) - 1);
      order = after | before << 4 | way;
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
  void list_place_first(std::uint32_t set, std::uint32_t way);
  void unlink(std::uint32_t set, std::uint32_t way);
  [[nodiscard]] std::uint32_t tree_victim(std::uint32_t set) const;
  void point(std::uint32_t set, std::uint32_t way, bool away);

  enum class Form : std::uint8_t { nibbles, list, tree };

  std::uint32_t ways_;
  Form form_;
  Replacement replacement_;
  unsigned last_shift_;
  std::uint64_t order_mask_;            ///< of the nibbles in use
  std::vector<std::uint64_t> nibbles_;  ///< by set; the way that makes room last in the low nibble
  std::vector<Link> links_;             ///< by set and way
  std::vector<Ends> ends_;              ///< by set
  /// By set, the inner nodes of its tree in heap order from 1: whether the right half makes room.
  std::vector<std::uint8_t> tree_;
  std::vector<std::uint32_t> filled_;  ///< ways that have been filled, by set
};

}  // namespace warpstack
