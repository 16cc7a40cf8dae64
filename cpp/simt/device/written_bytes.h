#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "common/lazy_bytes.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

using trace::LaneAddresses;
using trace::warp_size;

/// Which bytes of a block's shared memory, or of its threads' local memory, have been written.
class WrittenBytes {
 public:
  /// Marks all of `bytes` bytes as not written. With 0 bytes nothing is checked.
  void reset(std::uint64_t bytes) {
    assign_zeros(memory_, (bytes + 63) / 64 * sizeof(std::uint64_t));
    words_ = reinterpret_cast<std::uint64_t*>(memory_.get());
    missing_ = bytes;
  }
  /// Whether all bytes have been written, so that nothing is left to check or to note.
  [[nodiscard]] bool whole() const { return missing_ == 0; }

  void mark(std::uint64_t address, std::uint64_t bytes) {
    for_words(address, bytes, [this](std::uint64_t word, std::uint64_t bits) { add(word, bits); });
  }
  void forget(std::uint64_t address, std::uint64_t bytes) {
    for_words(address, bytes, [this](std::uint64_t word, std::uint64_t bits) {
      missing_ += static_cast<std::uint64_t>(std::popcount(words_[word] & bits));
      words_[word] &= ~bits;
    });
  }
  /// Whether one of the bytes has been written.
  [[nodiscard]] bool any(std::uint64_t address, std::uint64_t bytes) const {
    std::uint64_t found = 0;
    for_words(address, bytes,
              [&](std::uint64_t word, std::uint64_t bits) { found |= words_[word] & bits; });
    return found != 0;
  }

  /// Accesses of a warp within the memory. `bytes` is a power of two up to 32; the addresses are
  /// multiples of it.
  void mark_lanes(const LaneAddresses& lanes, std::uint32_t bytes) {
    const std::uint64_t pattern = (std::uint64_t{1} << bytes) - 1;
    std::uint64_t word = ~std::uint64_t{0};
    std::uint64_t bits = 0;
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const std::uint64_t address = lanes.address[std::countr_zero(rest)];
      if (address / 64 != word) {  // neighbours mostly share a word
        if (bits != 0) add(word, bits);
        word = address / 64;
        bits = 0;
      }
      bits |= pattern << address % 64;
    }
    if (bits != 0) add(word, bits);
  }
  /// Whether every byte of every lane has been written.
  [[nodiscard]] bool holds_lanes(const LaneAddresses& lanes, std::uint32_t bytes) const {
    const std::uint64_t pattern = (std::uint64_t{1} << bytes) - 1;
    std::uint64_t all = pattern;
    for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
      const std::uint64_t address = lanes.address[std::countr_zero(rest)];
      all &= words_[address / 64] >> address % 64;
    }
    return all == pattern;
  }

 private:
  void add(std::uint64_t word, std::uint64_t bits) {
    const std::uint64_t fresh = bits & ~words_[word];
    if (fresh == 0) return;
    missing_ -= static_cast<std::uint64_t>(std::popcount(fresh));
    words_[word] |= fresh;
  }
  template <class F>
  static void for_words(std::uint64_t address, std::uint64_t bytes, F f) {
    for (const std::uint64_t end = address + bytes; address < end;) {
      const std::uint64_t count = std::min(64 - address % 64, end - address);
      f(address / 64, ~std::uint64_t{0} >> (64 - count) << address % 64);
      address += count;
    }
  }

  LazyBytes memory_;                ///< of large arrays only touched pages take memory
  std::uint64_t* words_ = nullptr;  ///< one bit per byte
  std::uint64_t missing_ = 0;
};

}  // namespace warpstack::simt
